//! Leave to write: a permit of the guard for every device that a plan writes to.

use super::Opened;
use crate::backend::{DeviceFacts, DeviceKind};
use crate::config::Plan;
use crate::session::SessionError;
use crate::session::guard::{Consent, Guard, Intent, Permit};
use crate::session::spdk::writes;
use crate::sysfs::Sysfs;
use crate::workload::OpMix;
use std::collections::HashMap;
use std::path::Path;

/// Asks the guard about every device that some step writes to, trims or flushes. Devices that are nobody's
/// (simulated ones, scratch files) need no leave. Permits are kept by the device's name.
///
/// # Errors
/// [`SessionError::Guard`] with everything that was found; nothing has been opened for writing.
pub fn permits(
    plan: &Plan,
    opened: &Opened,
    consent: &Consent,
    sysfs: &Sysfs,
) -> Result<HashMap<String, Permit>, SessionError> {
    let mut permits = HashMap::new();
    for (index, facts) in (0_u32..).zip(&opened.facts()) {
        let Some(intent) = intent(plan, index) else {
            continue;
        };
        if !facts.own_scratch {
            let permit = match opened {
                Opened::Spdk { devices, .. } => {
                    writes::permit(devices, index as usize, consent, intent, sysfs)?
                }
                _ => permit(facts, consent, intent, sysfs)?,
            };
            permits.insert(facts.path.clone(), permit);
        }
    }
    Ok(permits)
}

/// The guard's word on one device.
///
/// # Errors
/// [`SessionError::Guard`].
pub fn permit(
    facts: &DeviceFacts,
    consent: &Consent,
    intent: Intent,
    sysfs: &Sysfs,
) -> Result<Permit, SessionError> {
    match facts.kind {
        DeviceKind::Block | DeviceKind::File => {
            Ok(Guard::new(sysfs).check(Path::new(&facts.path), consent, intent)?)
        }
        // A node of the kernel's beside the block node.
        DeviceKind::Nvme | DeviceKind::Scsi if facts.block_path.is_some() => {
            Ok(Guard::new(sysfs).check(Path::new(&facts.path), consent, intent)?)
        }
        _ => Err(SessionError::Refused {
            device: facts.path.clone(),
            why: "writing through this backend is not guarded yet, and so it is refused".to_owned(),
        }),
    }
}

/// What the plan does to a device besides reading; `None` where it only reads.
fn intent(plan: &Plan, device_index: u32) -> Option<Intent> {
    let streams = plan.steps.iter().flat_map(|step| &step.streams);
    let mut ops = streams
        .filter(|stream| stream.device_index == device_index)
        .map(|stream| stream.ops)
        .filter(|ops| !ops.only_reads())
        .peekable();
    ops.peek()?;
    let trims_only = ops.all(|ops| ops == OpMix::Trim);
    Some(if trims_only {
        Intent::Trim
    } else {
        Intent::Write
    })
}

//! NVMe namespaces for backend `uring-cmd`: opened by their generic node or by the block node beside it, written
//! with the guard's leave.

use super::Opened;
use super::reopen::reopen;
use crate::backend::uring_cmd::{UringCmdDevice, UringCmdOptions};
use crate::config::BackendChoice;
use crate::session::SessionError;
use crate::session::device::describe::describe;
use crate::session::guard::Permit;
use crate::session::machine::Seen;
use crate::sysfs::Sysfs;
use std::collections::HashMap;
use std::path::Path;

pub(in crate::session) fn open(
    names: &[&str],
    choice: BackendChoice,
    seen: &Seen<'_>,
) -> Result<Opened, SessionError> {
    let mut devices = Vec::new();
    for name in names {
        let options = UringCmdOptions::default();
        let device = UringCmdDevice::open_at(seen.sysfs, Path::new(name), options)?;
        devices.push(device.with_facts(|facts| describe(facts, name, seen)));
    }
    let reason = match choice {
        BackendChoice::UringCmd => "asked for",
        _ => "auto: a generic node of an NVMe namespace",
    };
    Ok(Opened::UringCmd {
        devices,
        reason: reason.to_owned(),
    })
}

/// Opens again for writing what the guard has permitted, after its second look.
pub(in crate::session) fn permit_writes(
    devices: &mut [UringCmdDevice],
    permits: &HashMap<String, Permit>,
    sysfs: &Sysfs,
) -> Result<(), SessionError> {
    let options = UringCmdOptions {
        writes: true,
        ..UringCmdOptions::default()
    };
    let seen = Seen::new(sysfs);
    reopen(devices, permits, sysfs, |name, path, held| {
        let writable = UringCmdDevice::open_at(sysfs, path, options)?;
        let writable = writable.with_facts(|facts| describe(facts, name, &seen));
        Ok(writable.holding(held))
    })
}

//! SCSI devices for backend `sg`: opened by their sg node or by their disk, written with the guard's leave.

use super::Opened;
use super::reopen::reopen;
use crate::backend::sg::SgDevice;
use crate::config::BackendChoice;
use crate::session::SessionError;
use crate::session::device::describe::describe;
use crate::session::guard::Permit;
use crate::session::machine::Seen;
use crate::sysfs::{BlockDev, DevNum, Sysfs, scsi};
use std::collections::HashMap;
use std::path::Path;

/// Whether this is the number of an sg node.
pub(in crate::session) fn is_node(sysfs: &Sysfs, major: u32, minor: u32) -> bool {
    matches!(
        scsi::device_of_generic(sysfs, DevNum { major, minor }),
        Ok(Some(_))
    )
}

/// Whether this is the number of a SCSI disk, or of a partition of one.
pub(in crate::session) fn is_disk(sysfs: &Sysfs, major: u32, minor: u32) -> bool {
    let disk = BlockDev::numbered(sysfs, DevNum { major, minor })
        .and_then(|block| BlockDev::named(sysfs, block.disk_name()));
    disk.is_ok_and(|disk| scsi::device_dir(disk.dir()).is_some())
}

pub(in crate::session) fn open(
    names: &[&str],
    choice: BackendChoice,
    seen: &Seen<'_>,
) -> Result<Opened, SessionError> {
    let mut devices = Vec::new();
    for name in names {
        let device = SgDevice::open_at(seen.sysfs, Path::new(name))?;
        devices.push(device.with_facts(|facts| describe(facts, name, seen)));
    }
    let reason = match choice {
        BackendChoice::Sg => "asked for",
        _ => "auto: named by its sg node",
    };
    Ok(Opened::Sg {
        devices,
        reason: reason.to_owned(),
    })
}

/// Opens again for writing what the guard has permitted, after its second look.
pub(in crate::session) fn permit_writes(
    devices: &mut [SgDevice],
    permits: &HashMap<String, Permit>,
    sysfs: &Sysfs,
) -> Result<(), SessionError> {
    let seen = Seen::new(sysfs);
    reopen(devices, permits, sysfs, |name, path, held| {
        let writable = SgDevice::open_at(sysfs, path)?.with_writes(held)?;
        Ok(writable.with_facts(|facts| describe(facts, name, &seen)))
    })
}

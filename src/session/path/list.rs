//! Devices by name, or all that hang on something, with what is known of them without opening them.

use super::SeenPath;
use crate::session::device::identity::{Identity, Target, resolve};
use crate::session::machine::Machine;
use crate::sysfs::attach::Attachment;
use crate::sysfs::pci::Function;
use crate::sysfs::{BlockDev, Sysfs, SysfsError};
use std::path::Path;

/// A device that was looked at and not opened.
#[derive(Debug, Clone)]
pub struct LookedAt {
    /// As it was named, or its node.
    pub name: String,
    /// Model.
    pub model: Option<String>,
    /// Size.
    pub capacity_bytes: Option<u64>,
    /// Its path.
    pub path: SeenPath,
}

/// Every whole disk that hangs on a bus, and every NVMe controller that user space has.
///
/// # Errors
/// [`SysfsError::Read`] where there is no list of block devices.
pub fn all(sysfs: &Sysfs) -> Result<Vec<LookedAt>, SysfsError> {
    let machine = Machine::read(sysfs)?;
    let mut found = Vec::new();
    for disk in machine.disks().filter(|disk| disk.dev.is_some()) {
        let hangs = Attachment::of_block(sysfs, disk).is_ok_and(|found| found.transport.is_some());
        if hangs {
            let name = machine.node_path(&disk.name).display().to_string();
            found.push(of_disk(sysfs, &name, Some(disk)));
        }
    }
    let functions = Function::all(sysfs).unwrap_or_default();
    for function in functions
        .iter()
        .filter(|f| f.is_nvme() && f.is_in_user_space())
    {
        found.push(of_disk(sysfs, &function.bdf.to_string(), None));
    }
    Ok(found)
}

/// The device of this name: a node, a PCI address, a transport ID, or one that has no links.
#[must_use]
pub fn named(sysfs: &Sysfs, name: &str) -> LookedAt {
    let head = name.split(':').next().unwrap_or_default();
    let unseen = |why| LookedAt {
        name: name.to_owned(),
        model: None,
        capacity_bytes: None,
        path: SeenPath::unseen(name, why),
    };
    match head {
        "sim" => {
            return LookedAt {
                path: SeenPath::simulated(name),
                ..unseen("")
            };
        }
        "null" => return unseen("no device: it has no links"),
        "scratch" => return unseen("a file: the file system decides where its blocks are"),
        _ => {}
    }
    let disk = Machine::read(sysfs).ok().and_then(|machine| {
        match resolve(&machine, Path::new(name)).ok()? {
            Target::Device(device) => device.disks.into_iter().next(),
            Target::File(_) => None,
        }
    });
    of_disk(sysfs, name, disk.as_ref())
}

fn of_disk(sysfs: &Sysfs, name: &str, disk: Option<&BlockDev>) -> LookedAt {
    let identity = disk
        .and_then(|disk| Identity::of_disk(disk).ok())
        .unwrap_or_default();
    let capacity_bytes = disk.and_then(|disk| disk.size().ok()).map(|size| size.0);
    let mut path = SeenPath::of_name(sysfs, name);
    path.count();
    path.promise(identity.model.as_deref(), capacity_bytes.unwrap_or(0));
    LookedAt {
        name: name.to_owned(),
        model: identity.model,
        capacity_bytes,
        path,
    }
}

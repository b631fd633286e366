//! Devices that have no block node: NVMe controllers in the hands of user space or of nobody, or without a
//! namespace; SCSI disks that have only their sg node.

use super::attached::Paths;
use super::{DeviceEntry, Facts, attach, model};
use crate::session::claim::{seen_driving, sees_all};
use crate::session::device::identity::Identity;
use crate::session::machine::Machine;
use crate::sysfs::attach::Attachment;
use crate::sysfs::pci::{Bdf, Function};
use crate::sysfs::{Sysfs, names_in, read_u64, real_path, scsi};

/// SPC-5, PERIPHERAL DEVICE TYPE: direct access, and the zoned kind of it.
const DISK_TYPES: [u64; 2] = [0x00, 0x14];

/// SCSI disks without a block node, which no disk driver has taken.
pub(super) fn generic_only(
    machine: &Machine<'_>,
    paths: &mut Paths<'_>,
) -> Vec<(DeviceEntry, Attachment)> {
    let class = machine.sysfs.sys("class/scsi_generic");
    let mut found = Vec::new();
    for name in names_in(&class).unwrap_or_default() {
        let Ok(dir) = real_path(&class.join(&name).join("device")) else {
            continue;
        };
        let is_disk = read_u64(&dir.join("type")).is_ok_and(|kind| DISK_TYPES.contains(&kind));
        if !is_disk || !matches!(scsi::block_of_device(&dir), Ok(None)) {
            continue;
        }
        let mut facts = Facts::default();
        let identity = facts.take(Identity::of_scsi(&dir)).unwrap_or_default();
        let attachment = Attachment::of_scsi(machine.sysfs, &dir);
        let mut device = DeviceEntry {
            path: machine.node_path(&name).display().to_string(),
            identity: identity.best(),
            model: model(&identity),
            serial: identity.serial,
            firmware: identity.firmware,
            in_use: Some(Vec::new()),
            problems: facts.problems,
            name,
            ..DeviceEntry::default()
        };
        attach(&mut device, &attachment, paths);
        found.push((device, attachment));
    }
    found
}

/// Mass-storage functions that no listed device hangs on and that no kernel driver of their own has, and NVMe
/// controllers without a namespace.
pub(super) fn functions(
    sysfs: &Sysfs,
    covered: &[Bdf],
    paths: &mut Paths<'_>,
) -> Vec<(DeviceEntry, Attachment)> {
    let mut found = Vec::new();
    for function in Function::all_storage(sysfs).unwrap_or_default() {
        let is_free = function.driver.is_none() || function.is_in_user_space();
        if covered.contains(&function.bdf) || !(is_free || function.is_nvme()) {
            continue;
        }
        let Ok(attachment) = Attachment::of_function(sysfs, function.bdf) else {
            continue;
        };
        let address = function.bdf.to_string();
        let in_use = in_use(sysfs, &function);
        let controller = attachment.controllers.first();
        let mut device = DeviceEntry {
            name: address.clone(),
            path: address.clone(),
            model: controller.and_then(|one| one.model.clone()),
            serial: controller.and_then(|one| one.serial.clone()),
            firmware: controller.and_then(|one| one.firmware.clone()),
            driver: function.driver.as_ref().map(|driver| driver.name.clone()),
            in_use,
            ..DeviceEntry::default()
        };
        attach(&mut device, &attachment, paths);
        // Its own address is its path already; SPDK's longer name for it is another one.
        device.other_paths.retain(|path| *path != address);
        if function.is_nvme() && function.is_in_user_space() {
            device
                .other_paths
                .push(format!("trtype:PCIe traddr:{address}"));
        }
        found.push((device, attachment));
    }
    found
}

/// Who drives it from user space; `None` where that cannot be told.
fn in_use(sysfs: &Sysfs, function: &Function) -> Option<Vec<String>> {
    if !function.is_in_user_space() {
        return Some(Vec::new());
    }
    match seen_driving(sysfs, function.bdf) {
        Some(process) => Some(vec![format!("driven by process {process} from user space")]),
        None => sees_all(sysfs).then(Vec::new),
    }
}

//! What block devices there are, and what each is used for. Survives machines that are half broken: a fact
//! that cannot be read is left out and named among the problems.

use super::guard;
use super::identity::{Identity, pci_address};
use super::machine::Machine;
use crate::sysfs::{BlockDev, Sysfs, SysfsError, nvme, scsi};
use serde::Serialize;

/// One whole disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeviceEntry {
    /// Kernel name.
    pub name: String,
    /// Its block node.
    pub path: String,
    /// Its other nodes: sg, ng.
    pub other_paths: Vec<String>,
    /// World-wide name, or the serial number where there is none.
    pub identity: Option<String>,
    /// Model, vendor in front where that says something.
    pub model: Option<String>,
    /// Serial number.
    pub serial: Option<String>,
    /// Firmware revision.
    pub firmware: Option<String>,
    /// How it is attached.
    pub transport: Option<String>,
    /// Kernel driver.
    pub driver: Option<String>,
    /// PCI function it hangs on.
    pub pci: Option<String>,
    /// Size.
    pub size_bytes: Option<u64>,
    /// Logical block.
    pub logical_block_bytes: Option<u32>,
    /// Physical block.
    pub physical_block_bytes: Option<u32>,
    /// Rotating medium.
    pub rotational: Option<bool>,
    /// The kernel refuses writes.
    pub read_only: Option<bool>,
    /// Scheduler in force.
    pub scheduler: Option<String>,
    /// Whether the kernel's queue polls for completions.
    pub polls: Option<bool>,
    /// Its partitions.
    pub parts: Vec<PartEntry>,
    /// What it is used for; empty: nothing was found; absent: it cannot be told.
    pub in_use: Option<Vec<String>>,
    /// Facts that are missing or garbled.
    pub problems: Vec<String>,
}

/// One partition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PartEntry {
    /// Its node.
    pub path: String,
    /// Size.
    pub size_bytes: Option<u64>,
}

/// Everything found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Inventory {
    /// Whole disks by name, numbers in natural order.
    pub devices: Vec<DeviceEntry>,
    /// What kept others from being listed, or from being judged.
    pub problems: Vec<String>,
}

impl DeviceEntry {
    /// A loop, RAM or compressed RAM device that holds nothing yet.
    #[must_use]
    pub fn is_idle_virtual(&self) -> bool {
        let is_virtual = ["loop", "zram", "ram", "nbd"]
            .iter()
            .any(|kind| self.name.starts_with(kind));
        is_virtual && self.size_bytes == Some(0)
    }
}

/// Lists every whole block device.
///
/// # Errors
/// [`SysfsError::Read`] where there is no list of block devices at all.
pub fn scan(sysfs: &Sysfs) -> Result<Inventory, SysfsError> {
    let machine = Machine::read(sysfs)?;
    let mut problems: Vec<String> = machine.problems.iter().map(ToString::to_string).collect();
    problems.extend(machine.mounts.as_ref().err().map(ToString::to_string));
    problems.extend(machine.swaps.as_ref().err().map(ToString::to_string));
    problems.extend(machine.members.as_ref().err().map(ToString::to_string));
    let mut devices: Vec<DeviceEntry> = machine.disks().map(|disk| entry(&machine, disk)).collect();
    devices.sort_by_key(|device| natural_key(&device.name));
    Ok(Inventory { devices, problems })
}

/// Facts that are there, and what was wrong with the others.
#[derive(Default)]
struct Facts {
    problems: Vec<String>,
}

impl Facts {
    fn take<T>(&mut self, fact: Result<T, SysfsError>) -> Option<T> {
        match fact {
            Ok(value) => Some(value),
            // Absent: bio-based devices have no scheduler, for one. That is no fault of the machine.
            Err(error) if error.is_absent() => None,
            Err(error) => {
                self.problems.push(error.to_string());
                None
            }
        }
    }
}

fn entry(machine: &Machine<'_>, disk: &BlockDev) -> DeviceEntry {
    let mut facts = Facts::default();
    let identity = facts.take(Identity::of_disk(disk)).unwrap_or_default();
    let path = |name: &str| machine.node_path(name).display().to_string();
    let in_use = uses(machine, disk, &mut facts);
    let size = facts.take(disk.size());
    if size.is_none() && facts.problems.is_empty() {
        facts
            .problems
            .push(format!("the size of {} is missing", disk.name));
    }
    DeviceEntry {
        name: disk.name.clone(),
        path: path(&disk.name),
        other_paths: other_nodes(machine, disk, &mut facts)
            .iter()
            .map(|name| path(name))
            .collect(),
        identity: identity.best(),
        model: model(&identity),
        serial: identity.serial,
        firmware: identity.firmware,
        transport: identity.transport,
        driver: disk.driver(),
        pci: pci_address(disk),
        size_bytes: size.map(|size| size.0),
        logical_block_bytes: facts.take(disk.logical_block()).map(|size| size.bytes()),
        physical_block_bytes: facts.take(disk.physical_block()).map(|size| size.bytes()),
        rotational: facts.take(disk.rotational()),
        read_only: facts.take(disk.read_only()),
        scheduler: facts.take(disk.scheduler()),
        polls: facts.take(disk.polls()),
        parts: machine
            .parts(&disk.name)
            .map(|part| PartEntry {
                path: path(&part.name),
                size_bytes: facts.take(part.size()).map(|size| size.0),
            })
            .collect(),
        in_use,
        problems: facts.problems,
    }
}

/// A list that cannot be read is told once for the machine, not for each of its disks.
fn uses(machine: &Machine<'_>, disk: &BlockDev, facts: &mut Facts) -> Option<Vec<String>> {
    match guard::of_disk(machine, disk) {
        Ok(found) => Some(found.iter().map(ToString::to_string).collect()),
        Err(error) => {
            let lists = [
                machine.mounts.as_ref().err(),
                machine.swaps.as_ref().err(),
                machine.members.as_ref().err(),
            ];
            if !lists.contains(&Some(&error)) {
                facts.problems.push(error.to_string());
            }
            None
        }
    }
}

fn other_nodes(machine: &Machine<'_>, disk: &BlockDev, facts: &mut Facts) -> Vec<String> {
    let mut names = Vec::new();
    if let Some(dir) = scsi::device_dir(disk.dir()) {
        names.extend(
            facts
                .take(scsi::generic_node(&dir))
                .flatten()
                .map(|(name, _)| name),
        );
    }
    let generic = facts.take(nvme::generic_node(machine.sysfs, &disk.name));
    names.extend(generic.flatten().map(|(name, _)| name));
    names
}

/// `ATA` is the kernel's word for SATA, not a vendor.
fn model(identity: &Identity) -> Option<String> {
    let model = identity.model.clone()?;
    match identity.vendor.as_deref() {
        None | Some("ATA") => Some(model),
        Some(vendor) if model.starts_with(vendor) => Some(model),
        Some(vendor) => Some(format!("{vendor} {model}")),
    }
}

/// `sda2` before `sda10`, `sdz` before `sdaa`.
fn natural_key(name: &str) -> Vec<(usize, String)> {
    let mut key: Vec<(usize, String)> = Vec::new();
    let mut was_digit = None;
    for c in name.chars() {
        let is_digit = c.is_ascii_digit();
        if was_digit == Some(is_digit)
            && let Some((length, text)) = key.last_mut()
        {
            text.push(c);
            *length = if is_digit { text.len() } else { 0 };
        } else {
            key.push((usize::from(is_digit), c.to_string()));
        }
        was_digit = Some(is_digit);
    }
    // Letters are ordered by themselves, but a longer suffix of SCSI disks comes later.
    if name.starts_with("sd")
        && let Some((length, text)) = key.first_mut()
    {
        *length = text.len();
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_the_order_people_expect() {
        let mut names = [
            "sdaa", "sdb", "sdz", "sda", "loop10", "loop2", "nvme1n1", "nvme0n12", "nvme0n2",
        ];
        names.sort_by_key(|name| natural_key(name));
        assert_eq!(
            names,
            [
                "loop2", "loop10", "nvme0n2", "nvme0n12", "nvme1n1", "sda", "sdb", "sdz", "sdaa"
            ]
        );
    }
}

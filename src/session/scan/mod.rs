//! What block devices there are, and what each is used for. Survives machines that are half broken: a fact
//! that cannot be read is left out and named among the problems.

mod attached;
mod bare;
mod claimable;
mod formats;
mod order;

pub use attached::{ControllerEntry, LinkEntry};
pub use claimable::{SpdkEntry, SpdkState};

use super::guard;
use super::machine::Machine;
use crate::session::device::identity::Identity;
use crate::sysfs::absent::fault;
use crate::sysfs::attach::Attachment;
use crate::sysfs::{BlockDev, Sysfs, SysfsError, format, nvme, read_text, scsi};
use attached::Paths;
use claimable::Spdk;
use order::natural_key;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::HashMap;

/// One device: a whole disk, or a PCI function whose disk the kernel does not show.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct DeviceEntry {
    /// Kernel name.
    pub name: String,
    /// Its block node; without one its sg node, its PCI address.
    pub path: String,
    /// Every other way to name it: its sg or ng node, the PCI address of an NVMe controller, a transport ID.
    pub other_paths: Vec<String>,
    /// World-wide name, or the serial number where there is none.
    pub identity: Option<String>,
    /// Model, vendor in front where that says something.
    pub model: Option<String>,
    /// Serial number.
    pub serial: Option<String>,
    /// Firmware revision.
    pub firmware: Option<String>,
    /// What speaks to it: `nvme`, `sas`, `sata`, `raid`, `virtio` …; absent for what has no device of its own.
    pub transport: Option<String>,
    /// Driver of the disk: `nvme`, `sd`, `virtio_blk`; without a disk that of its function.
    pub driver: Option<String>,
    /// PCI function it hangs on; the first, where there are several.
    pub pci: Option<String>,
    /// The controllers that lead to it, each with its driver and versions.
    pub controllers: Vec<ControllerEntry>,
    /// The links from the device up to the root port.
    pub links: Vec<LinkEntry>,
    /// NUMA node of its controller.
    pub numa_node: Option<u32>,
    /// Size.
    pub size_bytes: Option<u64>,
    /// Logical block.
    pub logical_block_bytes: Option<u32>,
    /// Physical block.
    pub physical_block_bytes: Option<u32>,
    /// Metadata beside each logical block.
    pub metadata_bytes: Option<u32>,
    /// Protection information that the kernel handles.
    pub integrity: Option<String>,
    /// Formats that the namespace could be given; absent where they cannot be read.
    pub formats: Option<Vec<FormatEntry>>,
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
    /// Whether SPDK can drive it.
    pub spdk: Option<SpdkEntry>,
    /// Facts that are missing or garbled.
    pub problems: Vec<String>,
}

/// One format of an NVMe namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FormatEntry {
    /// Its number in the namespace's table.
    pub index: u8,
    /// Logical block.
    pub block_bytes: u32,
    /// Metadata beside each block.
    pub metadata_bytes: u16,
    /// Relative performance: 0 best, 1 better, 2 good, 3 degraded.
    pub relative_performance: u8,
    /// The namespace has it now.
    pub in_use: bool,
}

/// One partition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PartEntry {
    /// Its node.
    pub path: String,
    /// Size.
    pub size_bytes: Option<u64>,
}

/// Everything found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Inventory {
    /// The kernel, whose version is that of its own drivers.
    pub kernel: Option<String>,
    /// Whole disks by name, numbers in natural order, then what has no disk.
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

/// How the formats of namespaces are asked for, by their nodes: a command to the device, which no captured tree
/// answers.
pub type AskFormats<'f> = &'f dyn Fn(&[String]) -> HashMap<String, Vec<FormatEntry>>;

/// Lists every device.
///
/// # Errors
/// [`SysfsError::Read`] where there is no list of block devices at all.
pub fn scan(sysfs: &Sysfs) -> Result<Inventory, SysfsError> {
    let ask: AskFormats<'_> = if sysfs.is_host() {
        &formats::ask
    } else {
        &|_| HashMap::new()
    };
    scan_with(sysfs, crate::spdk::absent(), ask)
}

/// The same with a way to ask for formats, and the reason why this program has no SPDK.
///
/// # Errors
/// [`SysfsError::Read`] where there is no list of block devices at all.
pub fn scan_with(
    sysfs: &Sysfs,
    spdk_absent: Option<&'static str>,
    formats: AskFormats<'_>,
) -> Result<Inventory, SysfsError> {
    let machine = Machine::read(sysfs)?;
    let mut problems: Vec<String> = machine.problems.iter().map(ToString::to_string).collect();
    problems.extend(machine.mounts.as_ref().err().map(ToString::to_string));
    problems.extend(machine.swaps.as_ref().err().map(ToString::to_string));
    problems.extend(machine.members.as_ref().err().map(ToString::to_string));
    let mut paths = Paths::new(sysfs);
    let mut found: Vec<(DeviceEntry, Attachment)> = machine
        .disks()
        // Paths of a multipath head have no node: they are told with the head.
        .filter(|disk| disk.dev.is_some() || !nvme::is_nvme(&disk.name))
        .map(|disk| entry(&machine, disk, &mut paths))
        .collect();
    found.sort_by_key(|(device, _)| natural_key(&device.name));
    found.extend(bare::generic_only(&machine, &mut paths));
    let covered: Vec<_> = found
        .iter()
        .flat_map(|(_, attachment)| attachment.functions.clone())
        .collect();
    found.extend(bare::functions(sysfs, &covered, &mut paths));
    let spdk = Spdk::look(sysfs, spdk_absent);
    let judged: Vec<SpdkEntry> = found
        .iter()
        .map(|(_, attachment)| {
            spdk.judge(
                attachment,
                shared_uses(&found, attachment).as_deref(),
                &mut paths,
            )
        })
        .collect();
    let mut devices: Vec<DeviceEntry> = found.into_iter().map(|(device, _)| device).collect();
    let askable = devices.iter().filter(|device| may_ask(device));
    let nodes: Vec<String> = askable.map(|device| device.path.clone()).collect();
    let mut known = formats(&nodes);
    for (device, judged) in devices.iter_mut().zip(judged) {
        device.spdk = Some(judged);
        device.formats = known.remove(&device.path);
    }
    Ok(Inventory {
        kernel: kernel(sysfs),
        devices,
        problems,
    })
}

/// A namespace on PCIe whose controllers all work.
fn may_ask(device: &DeviceEntry) -> bool {
    let is_live = |one: &ControllerEntry| one.state.as_deref() == Some("live");
    let is_namespace = device.transport.as_deref() == Some("nvme") && device.size_bytes.is_some();
    is_namespace && device.controllers.iter().all(is_live)
}

/// `Linux version 6.12.41+deb13-amd64 (…`: the third word.
fn kernel(sysfs: &Sysfs) -> Option<String> {
    let text = read_text(&sysfs.proc("version")).ok()?;
    text.split_whitespace().nth(2).map(str::to_owned)
}

/// What the devices of the same controllers are used for; `None` where it cannot be told of one of them.
fn shared_uses(
    found: &[(DeviceEntry, Attachment)],
    attachment: &Attachment,
) -> Option<Vec<String>> {
    let mut all = Vec::new();
    for (device, other) in found {
        let shares = other
            .functions
            .iter()
            .any(|bdf| attachment.functions.contains(bdf));
        if shares {
            all.extend(device.in_use.clone()?);
        }
    }
    Some(all)
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

fn entry(
    machine: &Machine<'_>,
    disk: &BlockDev,
    paths: &mut Paths<'_>,
) -> (DeviceEntry, Attachment) {
    let mut facts = Facts::default();
    let identity = facts.take(Identity::of_disk(disk)).unwrap_or_default();
    let attachment = facts
        .take(Attachment::of_block(machine.sysfs, disk))
        .unwrap_or_default();
    let path = |name: &str| machine.node_path(name).display().to_string();
    let in_use = uses(machine, disk, &mut facts);
    let size = facts.take(disk.size());
    if size.is_none() && facts.problems.is_empty() {
        facts
            .problems
            .push(format!("the size of {} is missing", disk.name));
    }
    let other_paths = other_nodes(machine, disk, &mut facts);
    let mut device = DeviceEntry {
        name: disk.name.clone(),
        path: path(&disk.name),
        other_paths: other_paths.iter().map(|name| path(name)).collect(),
        identity: identity.best(),
        model: model(&identity),
        serial: identity.serial,
        firmware: identity.firmware,
        driver: disk.driver(),
        size_bytes: size.map(|size| size.0),
        logical_block_bytes: facts.take(disk.logical_block()).map(|size| size.bytes()),
        physical_block_bytes: facts.take(disk.physical_block()).map(|size| size.bytes()),
        metadata_bytes: metadata(disk, &mut facts),
        integrity: format::integrity(disk),
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
        ..DeviceEntry::default()
    };
    attach(&mut device, &attachment, paths);
    (device, attachment)
}

fn metadata(disk: &BlockDev, facts: &mut Facts) -> Option<u32> {
    match format::metadata_bytes(disk) {
        Ok(bytes) => u32::try_from(bytes).ok(),
        Err(absent) => {
            facts.problems.extend(fault(&Err::<(), _>(absent)));
            None
        }
    }
}

/// Puts controllers, links and what follows from them into the entry.
fn attach(device: &mut DeviceEntry, attachment: &Attachment, paths: &mut Paths<'_>) {
    let mut problems = Vec::new();
    let name = device.name.clone();
    device.transport = attachment
        .transport
        .map(|transport| transport.name().to_owned());
    device.controllers = attached::controllers(attachment, &name, paths, &mut problems);
    device.links = attached::links(attachment, paths, &mut problems);
    device.pci = attachment.functions.first().map(ToString::to_string);
    device.numa_node = device.controllers.iter().find_map(|one| one.numa_node);
    let is_nvme = !attachment.controllers.is_empty();
    for controller in &attachment.controllers {
        let address = controller.bdf().map(|bdf| bdf.to_string());
        let known = address.or_else(|| claimable::transport_id(controller));
        device.other_paths.extend(known.filter(|_| is_nvme));
    }
    for problem in problems {
        if !device.problems.contains(&problem) {
            device.problems.push(problem);
        }
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

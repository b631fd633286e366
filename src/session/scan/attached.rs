//! The controllers of a device, and the links up to the root.

use crate::sysfs::absent::{Fact, fault};
use crate::sysfs::attach::Attachment;
use crate::sysfs::nvme_controller::Controller;
use crate::sysfs::pci::{Bdf, Hop, PciPath};
use crate::sysfs::sas::{SasPort, SasRate};
use crate::sysfs::{Sysfs, names_in, read_word};
use serde::Serialize;
use std::collections::HashMap;

/// A controller through which a device is reached.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct ControllerEntry {
    /// Kernel name, `nvme0` or `host7`; the PCI address where the kernel has none.
    pub name: String,
    /// PCI function.
    pub pci: Option<String>,
    /// PCI vendor and device: `8086:0a54`.
    pub pci_id: Option<String>,
    /// Where it is on a network.
    pub address: Option<String>,
    /// Name of the board, where the driver tells.
    pub board: Option<String>,
    /// Firmware of the controller, where the driver tells.
    pub firmware: Option<String>,
    /// Driver of its PCI function, or of its host.
    pub driver: Option<String>,
    /// Version of the driver's module; the kernel's own drivers often have none.
    pub driver_version: Option<String>,
    /// State in the kernel's words, where it has one.
    pub state: Option<String>,
    /// For a path of a multipath head: the path's name and how good it is.
    pub path: Option<String>,
    /// Commands that it takes at once.
    pub commands_count: Option<u64>,
    /// IOMMU group.
    pub iommu_group: Option<u32>,
    /// NUMA node.
    pub numa_node: Option<u32>,
}

/// One link on the way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LinkEntry {
    /// `pcie`, `sas` or `sata`.
    pub kind: &'static str,
    /// Its two ends, or its port.
    pub at: String,
    /// Speed of one lane or phy now.
    pub speed: Option<String>,
    /// Lanes or phys now.
    pub width_count: Option<u64>,
    /// Highest speed that both ends could do.
    pub max_speed: Option<String>,
    /// Most lanes that both ends could use.
    pub max_width_count: Option<u64>,
    /// Whether it runs below what both ends could do; absent where that cannot be told.
    pub degraded: Option<bool>,
    /// Why speed or width is not known.
    pub unknown: Option<String>,
}

impl LinkEntry {
    /// `8 GT/s x4`, `12 Gbit/s x4`, `6 Gbit/s`; absent where speed or width is not known.
    #[must_use]
    pub fn now(&self) -> Option<String> {
        in_words(self.kind, self.speed.as_ref(), self.width_count)
    }

    /// The same for the most that both ends could do.
    #[must_use]
    pub fn at_most(&self) -> Option<String> {
        in_words(self.kind, self.max_speed.as_ref(), self.max_width_count)
    }
}

fn in_words(kind: &str, speed: Option<&String>, width_count: Option<u64>) -> Option<String> {
    let speed = speed?;
    Some(match width_count {
        Some(1) if kind != "pcie" => speed.clone(),
        Some(width_count) => format!("{speed} x{width_count}"),
        // A speed without a width says little of what the link carries.
        None => return None,
    })
}

/// PCI paths, each read once: 64 disks may share one HBA.
pub(super) struct Paths<'a> {
    sysfs: &'a Sysfs,
    known: HashMap<Bdf, Option<PciPath>>,
}

impl<'a> Paths<'a> {
    pub(super) fn new(sysfs: &'a Sysfs) -> Self {
        Self {
            sysfs,
            known: HashMap::new(),
        }
    }

    pub(super) fn of(&mut self, bdf: Bdf) -> Option<&PciPath> {
        let sysfs = self.sysfs;
        let read = || PciPath::read(sysfs, bdf).ok();
        self.known.entry(bdf).or_insert_with(read).as_ref()
    }
}

/// The controllers of a device, by its attachment. `disk` is its kernel name.
pub(super) fn controllers(
    attachment: &Attachment,
    disk: &str,
    paths: &mut Paths<'_>,
    problems: &mut Vec<String>,
) -> Vec<ControllerEntry> {
    let mut entries = Vec::new();
    for controller in &attachment.controllers {
        let mut entry = of_function(controller.bdf(), paths, problems);
        entry.name.clone_from(&controller.name);
        entry.firmware.clone_from(&controller.firmware);
        entry.state.clone_from(&controller.state);
        if controller.is_fabrics() {
            entry.address.clone_from(&controller.address);
            let transport = controller.transport.as_deref().unwrap_or("fabrics");
            entry.driver = Some(format!("nvme-{transport}"));
        }
        entry.path = path_of(controller, disk);
        entry.commands_count = controller.commands_count().map(u64::from);
        entries.push(entry);
    }
    if let (true, Some(host)) = (entries.is_empty(), &attachment.host) {
        let mut entry = of_function(attachment.functions.first().copied(), paths, problems);
        entry.name.clone_from(&host.name);
        entry.board.clone_from(&host.board);
        entry.firmware.clone_from(&host.firmware);
        entry.driver = entry.driver.or_else(|| host.driver.clone());
        entry.commands_count = host.can_queue_count.as_ref().ok().copied();
        entries.push(entry);
    }
    if entries.is_empty() {
        let functions = attachment.functions.iter();
        entries.extend(functions.map(|bdf| of_function(Some(*bdf), paths, problems)));
    }
    entries
}

fn of_function(
    bdf: Option<Bdf>,
    paths: &mut Paths<'_>,
    problems: &mut Vec<String>,
) -> ControllerEntry {
    let mut entry = ControllerEntry::default();
    let Some(bdf) = bdf else { return entry };
    entry.name = bdf.to_string();
    entry.pci = Some(bdf.to_string());
    let path = paths.of(bdf);
    let function = path.and_then(|path| path.functions.iter().find(|one| one.bdf == bdf));
    let Some(function) = function else {
        return entry;
    };
    problems.extend(fault(&function.vendor));
    problems.extend(fault(&function.numa_node));
    if let (Ok(vendor), Ok(device)) = (&function.vendor, &function.device) {
        entry.pci_id = Some(format!("{vendor:04x}:{device:04x}"));
    }
    entry.driver = function.driver.as_ref().map(|driver| driver.name.clone());
    let version = function.driver.as_ref();
    entry.driver_version = version.and_then(|driver| driver.version.clone());
    entry.iommu_group = function.iommu_group;
    entry.numa_node = function.numa_node.as_ref().ok().copied().flatten();
    entry
}

/// `nvme0c1n1 (optimized)` for a controller with a path to the head `nvme0n1`.
fn path_of(controller: &Controller, disk: &str) -> Option<String> {
    let (subsystem, namespace) = disk.rsplit_once('n')?;
    let names = names_in(controller.dir()).ok()?;
    let name = names.into_iter().find(|name| {
        let rest = name.strip_prefix(subsystem);
        rest.and_then(|rest| rest.strip_prefix('c')?.split_once('n'))
            .is_some_and(|(_, number)| number == namespace)
    })?;
    let state = read_word(&controller.dir().join(&name).join("ana_state"));
    Some(match state.ok().flatten() {
        Some(state) => format!("{name} ({state})"),
        None => name,
    })
}

/// The links from the device up: its phy or SATA link, expanders' ports, then PCI Express up to the root port.
pub(super) fn links(
    attachment: &Attachment,
    paths: &mut Paths<'_>,
    problems: &mut Vec<String>,
) -> Vec<LinkEntry> {
    let mut links = Vec::new();
    if let Some(way) = &attachment.sas {
        for port in way.ports.iter().rev() {
            links.push(sas_link(port, problems));
        }
    }
    if let Some(ata) = &attachment.ata {
        for fact in [&ata.rate, &ata.port_max, &ata.drive_max] {
            problems.extend(fault(fact));
        }
        links.push(LinkEntry {
            kind: "sata",
            at: ata.port.clone(),
            speed: shown(&ata.rate),
            width_count: Some(1),
            max_speed: ata.most_of_either().as_ref().map(ToString::to_string),
            max_width_count: Some(1),
            degraded: (ata.rate.as_ref().ok().copied())
                .zip(ata.most_of_both())
                .map(|(rate, most)| rate < most),
            unknown: reason(&ata.rate),
        });
    }
    for bdf in &attachment.functions {
        let hops = paths.of(*bdf).map(PciPath::hops).unwrap_or_default();
        links.extend(hops.iter().rev().map(|hop| pcie_link(hop, problems)));
    }
    links
}

fn sas_link(port: &SasPort, problems: &mut Vec<String>) -> LinkEntry {
    problems.extend(port.phys.iter().filter_map(|phy| fault(&phy.rate)));
    let rates: Vec<SasRate> = known(port.phys.iter().map(|phy| &phy.rate));
    let most: Vec<SasRate> = known(port.phys.iter().map(|phy| &phy.max_rate));
    let phys_count = u64::try_from(port.phys.len()).unwrap_or(u64::MAX);
    let speed = rates.iter().min();
    let max_speed = most.iter().min();
    LinkEntry {
        kind: "sas",
        at: port.name.clone(),
        speed: speed.map(ToString::to_string),
        width_count: Some(phys_count),
        max_speed: max_speed.map(ToString::to_string),
        max_width_count: Some(phys_count),
        // The other side of a phy may be the slower one, as a drive on a faster expander is: that is no fault.
        degraded: None,
        unknown: port.phys.iter().find_map(|phy| reason(&phy.rate)),
    }
}

fn known<'a, T: Copy + 'a>(facts: impl Iterator<Item = &'a Fact<T>>) -> Vec<T> {
    facts
        .filter_map(|fact| fact.as_ref().ok().copied())
        .collect()
}

fn pcie_link(hop: &Hop, problems: &mut Vec<String>) -> LinkEntry {
    problems.extend(fault(&hop.speed));
    problems.extend(fault(&hop.width_count));
    problems.extend(fault(&hop.max_speed));
    problems.extend(fault(&hop.max_width_count));
    let width = |fact: &Fact<u8>| {
        fact.as_ref()
            .ok()
            .map(|lanes_count| u64::from(*lanes_count))
    };
    LinkEntry {
        kind: "pcie",
        at: match hop.upper {
            Some(upper) => format!("{upper} to {}", hop.lower),
            None => hop.lower.to_string(),
        },
        speed: shown(&hop.speed),
        width_count: width(&hop.width_count),
        max_speed: shown(&hop.max_speed),
        max_width_count: width(&hop.max_width_count),
        degraded: hop.is_degraded(),
        unknown: reason(&hop.speed).or_else(|| reason(&hop.width_count)),
    }
}

fn shown<T: ToString>(fact: &Fact<T>) -> Option<String> {
    fact.as_ref().ok().map(ToString::to_string)
}

fn reason<T>(fact: &Fact<T>) -> Option<String> {
    fact.as_ref().err().map(ToString::to_string)
}

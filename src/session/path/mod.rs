//! The way from the host to a device: its links, what they carry, what is wrong with them, what cannot be seen.

mod ceilings;
mod counters;
mod disk;
mod hidden;
mod list;
mod loads;
mod pcie;
mod promise;
mod sata;
mod simulated;
mod watch;

pub use ceilings::{Workload, ceilings, narrowest_shared};
pub use list::{LookedAt, all as all_devices, named as named_device};
pub use loads::{Moved, loads};
pub use watch::PathWatch;

use crate::backend::{DeviceFacts, DeviceKind};
use crate::ceiling::datasheet::{self, Controller, Drive};
use crate::ceiling::exact;
use crate::ceiling::pcie::{PacketSizes, PcieLink};
use crate::ceiling::sas::SasPort;
use crate::ceiling::sata::SataLink;
use crate::record::{DevicePath, Hop, LinkState, PathFinding, PathFindingKind, RateBand, Unseen};
use crate::spdk::{Transport as SpdkTransport, TransportId};
use crate::sysfs::Sysfs;
use crate::sysfs::ata::{AtaLink, SharedLink};
use crate::sysfs::attach::{Attachment, Ground, Transport};
use crate::sysfs::host::cpu_flags;
use crate::sysfs::pci::{Bdf, PciPath};
use crate::sysfs::sas::Phy;
use std::path::PathBuf;

/// A path with all that is needed to compute with it and to look at it again.
#[derive(Debug, Clone)]
pub struct SeenPath {
    /// As records carry it; without what only a window shows.
    pub record: DevicePath,
    /// The links, in the order of its hops.
    pub links: Vec<SeenLink>,
    /// What the device is attached by; absent where that is not known.
    pub transport: Option<Transport>,
    /// What its maker promises, of the whole card.
    pub drive: Option<&'static Drive>,
    /// The rating of the controller in between, and where that is.
    pub controller: Option<(&'static Controller, Bdf)>,
    /// NUMA node of its controller; absent where the machine has but one, or firmware does not say.
    pub numa_node: Option<u32>,
    /// PCI vendor and device, where the device is a PCI function itself.
    pub(super) own_id: Option<(u16, u16)>,
    /// Folders of the PCI functions on the way, by address, for error counters.
    pub(super) functions: Vec<(String, PathBuf)>,
}

/// One link.
#[derive(Debug, Clone)]
pub struct SeenLink {
    /// Name of its hop.
    pub name: String,
    /// What it is for arithmetic; absent where speed or width is not known.
    pub carrier: Option<Carrier>,
    /// How to look at it again.
    pub(super) look: Look,
}

/// A link as arithmetic takes it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Carrier {
    /// PCI Express, and what packets on it are cut to.
    Pcie(PcieLink, PacketSizes),
    /// SAS; the rate of the slowest phy behind it, and whether what is behind it is SATA.
    Sas {
        /// Its phys.
        port: SasPort,
        /// Slowest phy on the rest of the way.
        slowest_gbit_per_s: f64,
        /// A SATA drive through SAS.
        is_stp: bool,
    },
    /// SATA.
    Sata(SataLink),
    /// A simulated hop: bytes a second, both directions together.
    Simulated(f64),
}

/// Where speed and width of a link are read.
#[derive(Debug, Clone)]
pub(super) enum Look {
    /// Folders of both ends.
    Pcie {
        upper: Option<PathBuf>,
        lower: PathBuf,
    },
    /// Phys; of the port of a SATA drive also the drive's folder as a SCSI device.
    Sas(Vec<Phy>, Option<PathBuf>),
    /// An ATA link.
    Ata(Box<AtaLink>),
    /// The one above a port multiplier.
    AtaShared(SharedLink),
    /// Nowhere: it never changes.
    Fixed,
}

impl Carrier {
    /// Payload toward the host, nothing else going on.
    #[must_use]
    pub fn read_ceiling(&self) -> RateBand {
        match self {
            Self::Pcie(link, sizes) => link.read_ceiling(sizes),
            Self::Sas {
                port,
                slowest_gbit_per_s,
                is_stp,
            } => port.behind(*slowest_gbit_per_s, *is_stp),
            Self::Sata(link) => link.ceiling(),
            Self::Simulated(bytes_per_s) => exact(*bytes_per_s),
        }
    }

    /// Payload toward the device, nothing else going on.
    #[must_use]
    pub fn write_ceiling(&self) -> RateBand {
        match self {
            Self::Pcie(link, sizes) => link.write_ceiling(sizes),
            other => other.read_ceiling(),
        }
    }
}

impl SeenPath {
    /// Looks at the path of a device as the user named it. What cannot be seen is in it with the reason: this
    /// never fails.
    #[must_use]
    pub fn read(sysfs: &Sysfs, facts: &DeviceFacts) -> Self {
        let mut path = match facts.kind {
            DeviceKind::Null => {
                Self::unseen(&facts.path, "no device: null answers in this process")
            }
            DeviceKind::Sim => Self::simulated(&facts.path),
            DeviceKind::File => Self::unseen(
                &facts.path,
                "a file: the file system decides where its blocks are, and what is cached",
            ),
            DeviceKind::Block | DeviceKind::Nvme | DeviceKind::Scsi => {
                Self::of_name(sysfs, &facts.path)
            }
        };
        path.promise(facts.model.as_deref(), facts.capacity.0);
        path
    }

    /// Looks at the path to a node, a PCI address or a transport ID.
    #[must_use]
    pub fn of_name(sysfs: &Sysfs, name: &str) -> Self {
        let mut address = name.to_owned();
        if let Ok(id) = name.parse::<TransportId>() {
            match id.transport {
                SpdkTransport::Pcie => address = id.address,
                SpdkTransport::Tcp | SpdkTransport::Rdma => {
                    return Self::unseen(name, "over a network: its links are not in this machine");
                }
                SpdkTransport::VfioUser => {
                    return Self::unseen(name, "in another process: there is no link");
                }
            }
        }
        match Attachment::of(sysfs, &address) {
            Ok(found) => Self::of_attachment(sysfs, name, &found),
            Err(error) => Self::unseen(name, &error.to_string()),
        }
    }

    fn of_attachment(sysfs: &Sysfs, name: &str, found: &Attachment) -> Self {
        let mut path = Self::empty();
        path.transport = found.transport;
        let is_virtual = found.transport == Some(Transport::Virtio);
        if let Some(&bdf) = found.functions.first().filter(|_| !is_virtual) {
            match PciPath::read(sysfs, bdf) {
                Ok(pci) => path.add_pcie(&pci, is_own_controller(found.transport)),
                Err(error) => path.hide(&bdf.to_string(), &error.to_string()),
            }
        }
        if found.functions.len() > 1 {
            let why = format!(
                "{} ways lead to it, and the kernel chooses among them",
                found.functions.len()
            );
            path.hide(name, &why);
        }
        path.add_disk(name, found);
        if let Some(why) = hidden_by(found) {
            path.hide(name, why);
        }
        if path.links.is_empty() && path.record.unseen.is_empty() {
            path.hide(name, "the kernel shows no link on the way to it");
        }
        // The ports of a virtual machine are its maker's invention, whatever speed they show. The flag is x86's.
        let is_virtual_machine = cpu_flags(sysfs).is_ok_and(|flags| flags.contains("hypervisor"));
        if is_virtual_machine && !path.links.is_empty() {
            path.record.unseen.push(Unseen {
                name: "this machine".to_owned(),
                why: "a virtual one: the host's links are hidden".to_owned(),
                is_invented: true,
            });
        }
        path.find_narrowest();
        path
    }

    /// The controller between PCI Express and the device, where that is not the device itself.
    #[must_use]
    pub fn hba(&self) -> Option<&str> {
        let is_device = is_own_controller(self.transport);
        let last = self.functions.last().filter(|_| !is_device);
        last.map(|(name, _)| name.as_str())
    }

    /// The one controller that all of these hang on.
    #[must_use]
    pub fn common_hba(paths: &[Self]) -> Option<&str> {
        let mut hbas = paths.iter().map(Self::hba);
        let first = hbas.next()??;
        hbas.all(|other| other == Some(first)).then_some(first)
    }

    pub(super) const fn empty() -> Self {
        Self {
            record: DevicePath {
                device_index: 0,
                hops: Vec::new(),
                narrowest_index: None,
                unseen: Vec::new(),
                findings: Vec::new(),
                changes: Vec::new(),
                counters_before: Vec::new(),
                counters: Vec::new(),
                counters_unseen: Vec::new(),
                samples_count: 0,
            },
            links: Vec::new(),
            transport: None,
            drive: None,
            controller: None,
            numa_node: None,
            own_id: None,
            functions: Vec::new(),
        }
    }

    /// A path of which nothing can be seen.
    fn unseen(name: &str, why: &str) -> Self {
        let mut path = Self::empty();
        path.hide(name, why);
        path
    }

    fn hide(&mut self, name: &str, why: &str) {
        self.record.unseen.push(Unseen {
            name: name.to_owned(),
            why: why.to_owned(),
            is_invented: false,
        });
    }

    fn find(&mut self, kind: PathFindingKind, at: &str, text: String, next_step: &str) {
        self.record.findings.push(PathFinding {
            kind,
            at: at.to_owned(),
            text,
            next_step: next_step.to_owned(),
        });
    }

    /// Adds a link below all others. One whose speed is not known is also a part that cannot be seen.
    fn push(&mut self, mut hop: Hop, link: SeenLink) {
        hop.read_ceiling = link.carrier.map(|carrier| carrier.read_ceiling());
        hop.write_ceiling = link.carrier.map(|carrier| carrier.write_ceiling());
        self.record.hops.push(hop);
        self.links.push(link);
    }

    fn find_narrowest(&mut self) {
        let most = |hop: &Hop| Some(hop.read_ceiling?.high_bytes_per_s);
        let known = (0..).zip(&self.record.hops);
        let known = known.filter_map(|(index, hop)| Some((index, most(hop)?)));
        let least = known.min_by(|one, other| one.1.total_cmp(&other.1));
        self.record.narrowest_index = least.map(|(index, _)| index);
    }

    /// Reads what the kernel has counted of errors on the way; no device is asked.
    pub fn count(&mut self) {
        self.record.counters_before = counters::Counts::kernels(self).totals();
    }

    /// Looks up what the maker promises, and whether the way allows it.
    pub fn promise(&mut self, model: Option<&str>, capacity_bytes: u64) {
        let by_model = model.and_then(|model| datasheet::drive(model, capacity_bytes));
        let by_id = |(vendor, device)| datasheet::drive_on_pci(vendor, device, capacity_bytes);
        self.drive = by_model.or_else(|| self.own_id.and_then(by_id));
        promise::check(self);
    }
}

/// Whether the PCI function is the device itself.
const fn is_own_controller(transport: Option<Transport>) -> bool {
    matches!(transport, Some(Transport::Nvme | Transport::Pcie))
}

/// What the kind of attachment hides whatever else is seen.
const fn hidden_by(found: &Attachment) -> Option<&'static str> {
    Some(match found.transport {
        Some(Transport::NvmeTcp | Transport::NvmeRdma | Transport::NvmeFc) => {
            "over a fabric: its links are not in this machine"
        }
        Some(Transport::NvmeOther) => "a transport without links that could be read",
        Some(Transport::Raid) => "behind a RAID card, which hides the ports of its drives",
        Some(Transport::Virtio) => "a disk of a virtual machine: the host's links are hidden",
        Some(Transport::Usb) => "on USB, whose links are not read",
        Some(Transport::Iscsi | Transport::Fc) => "over a storage network",
        Some(Transport::Scsi | Transport::Pata) => "a bus whose speed is not shown",
        Some(Transport::Nvme | Transport::Pcie | Transport::Sas | Transport::Sata) => return None,
        None => match found.ground {
            Ground::Others => "no device of its own: it stands on others",
            Ground::Memory => "in memory: there is no link",
            Ground::Server => "a server answers for it, whose links are not in this machine",
            Ground::File => "a file: the file system decides where its blocks are",
            Ground::Bus => "on a bus whose links are not read",
            Ground::None => "no disk: the ways to what may hang on it are not looked at",
        },
    })
}

/// `8 GT/s x4`.
fn state(text: String, lane_gbit_per_s: Option<f64>, lanes_count: Option<u32>) -> LinkState {
    LinkState {
        text,
        lane_gbit_per_s,
        lanes_count,
    }
}

/// `16 GT/s x4 by one end's word`: what only one end tells.
fn by_one_end(state: LinkState) -> LinkState {
    LinkState {
        text: state.text + " by one end's word",
        ..state
    }
}

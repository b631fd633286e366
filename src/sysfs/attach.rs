//! How a device is attached: for a block, sg or ng node, or a PCI address, the controller's PCI function and
//! what lies between it and the device. [`PciPath`](super::pci::PciPath) goes on from there to the root port.

use super::ata::AtaLink;
use super::nvme_controller::Controller;
use super::pci::{Bdf, Driver, Function};
use super::sas::SasWay;
use super::scsi_host::ScsiHost;
use super::{BlockDev, Node, NodeKind, Sysfs, SysfsError, nvme, real_path, scsi};
use std::path::{Path, PathBuf};

/// What speaks to the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// NVMe on PCI Express.
    Nvme,
    /// A PCI Express SSD that a vendor's own driver shows: the block device stands on the PCI function itself.
    Pcie,
    /// NVMe/TCP.
    NvmeTcp,
    /// NVMe/RDMA.
    NvmeRdma,
    /// NVMe over Fibre Channel.
    NvmeFc,
    /// NVMe on the same machine, or a transport without a name here.
    NvmeOther,
    /// A SAS drive on an HBA that shows its ports.
    Sas,
    /// A SATA drive, on an ATA port or through SAS.
    Sata,
    /// A parallel ATA drive.
    Pata,
    /// A volume, or a drive, of a RAID card that hides what is behind it.
    Raid,
    /// A disk of a virtual machine: virtio-blk, virtio-scsi, Xen, Hyper-V, VMware.
    Virtio,
    /// USB.
    Usb,
    /// iSCSI.
    Iscsi,
    /// Fibre Channel.
    Fc,
    /// SCSI of another kind: parallel, `scsi_debug`.
    Scsi,
}

impl Transport {
    /// The word in lists and records.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nvme => "nvme",
            Self::Pcie => "pcie",
            Self::NvmeTcp => "nvme-tcp",
            Self::NvmeRdma => "nvme-rdma",
            Self::NvmeFc => "nvme-fc",
            Self::NvmeOther => "nvme-other",
            Self::Sas => "sas",
            Self::Sata => "sata",
            Self::Pata => "pata",
            Self::Raid => "raid",
            Self::Virtio => "virtio",
            Self::Usb => "usb",
            Self::Iscsi => "iscsi",
            Self::Fc => "fc",
            Self::Scsi => "scsi",
        }
    }

    fn of_nvme(controllers: &[Controller]) -> Self {
        let word = controllers
            .first()
            .and_then(|first| first.transport.as_deref());
        match word {
            // Before Linux 4.8 only PCIe was there, and not named.
            None | Some("pcie" | "apple-nvme") => Self::Nvme,
            Some("tcp") => Self::NvmeTcp,
            Some("rdma") => Self::NvmeRdma,
            Some("fc") => Self::NvmeFc,
            Some(_) => Self::NvmeOther,
        }
    }
}

/// What a device without a transport is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ground {
    /// No block device: a PCI function by itself, a folder, another character device.
    #[default]
    None,
    /// A regular file.
    File,
    /// A block device made of others: loop, device-mapper, md, bcache.
    Others,
    /// In memory: zram, RAM disk, `null_blk`, persistent memory.
    Memory,
    /// A server answers: nbd, rbd.
    Server,
    /// On a bus that has no name here: SD cards, NAND.
    Bus,
}

impl Ground {
    /// By the kernel's name of a disk, whose `device` is in sysfs or not.
    fn of(disk_name: &str, has_device: bool) -> Self {
        let kind = disk_name.trim_end_matches(|c: char| c.is_ascii_digit());
        match kind {
            "zram" | "ram" | "nullb" | "pmem" => Self::Memory,
            "nbd" | "rbd" => Self::Server,
            _ if has_device => Self::Bus,
            _ => Self::Others,
        }
    }
}

/// Drivers of cards that present volumes and hide the drives' ports.
const RAID_DRIVERS: [&str; 15] = [
    "megaraid_sas",
    "megaraid",
    "hpsa",
    "cciss",
    "cpqarray",
    "DAC960",
    "smartpqi",
    "aacraid",
    "arcmsr",
    "3w-9xxx",
    "3w-sas",
    "3w-xxxx",
    "ips",
    "hptiop",
    "mvumi",
];

/// Everything between a device and its controller's PCI function.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Attachment {
    /// `None` for what hangs on no bus that is known here; then `ground` says more.
    pub transport: Option<Transport>,
    /// What it is where it has no transport.
    pub ground: Ground,
    /// PCI functions of its controllers: one for each way of a multipath head, none where there is no PCI.
    pub functions: Vec<Bdf>,
    /// NVMe controllers.
    pub controllers: Vec<Controller>,
    /// SCSI host.
    pub host: Option<ScsiHost>,
    /// The way through SAS, where the kernel shows it.
    pub sas: Option<SasWay>,
    /// The ATA link.
    pub ata: Option<AtaLink>,
}

impl Attachment {
    /// What a path or an address leads to: a block device or a partition of one, an sg or ng node, a PCI address
    /// with or without its domain. Symbolic links are followed; files lead nowhere.
    ///
    /// # Errors
    /// [`SysfsError`] where nothing is there, or what is there cannot be looked at.
    pub fn of(sysfs: &Sysfs, name: &str) -> Result<Self, SysfsError> {
        if let Some(bdf) = Bdf::parse_typed(name) {
            return Self::of_function(sysfs, bdf);
        }
        let node = Node::inspect(sysfs, Path::new(name))?;
        match node.kind {
            NodeKind::Block(dev) => Self::of_block(sysfs, &BlockDev::numbered(sysfs, dev)?),
            NodeKind::Char(dev) => {
                if let Some(dir) = scsi::device_of_generic(sysfs, dev)? {
                    return Ok(Self::of_scsi(sysfs, &dir));
                }
                match nvme::block_of_generic(sysfs, dev)? {
                    Some(name) => Self::of_block(sysfs, &BlockDev::named(sysfs, &name)?),
                    None => Ok(Self::default()),
                }
            }
            NodeKind::File { .. } => Ok(Self {
                ground: Ground::File,
                ..Self::default()
            }),
            NodeKind::Folder | NodeKind::Other => Ok(Self::default()),
        }
    }

    /// A PCI function, whether or not a kernel driver shows a disk on it.
    ///
    /// # Errors
    /// [`SysfsError::Read`] where there is no such function.
    pub fn of_function(sysfs: &Sysfs, bdf: Bdf) -> Result<Self, SysfsError> {
        let function = Function::read(sysfs, bdf)?;
        let controllers = Controller::all(sysfs)?;
        Ok(Self {
            transport: function.is_nvme().then_some(Transport::Nvme),
            functions: vec![bdf],
            controllers: controllers
                .into_iter()
                .filter(|controller| controller.bdf() == Some(bdf))
                .collect(),
            ..Self::default()
        })
    }

    /// A block device or partition.
    ///
    /// # Errors
    /// [`SysfsError`] where a list of NVMe controllers cannot be read.
    pub fn of_block(sysfs: &Sysfs, device: &BlockDev) -> Result<Self, SysfsError> {
        if nvme::is_nvme(device.disk_name()) {
            let controllers = Controller::of_namespace(sysfs, device.disk_name())?;
            return Ok(Self {
                transport: Some(Transport::of_nvme(&controllers)),
                functions: controllers.iter().filter_map(Controller::bdf).collect(),
                controllers,
                ..Self::default()
            });
        }
        if let Some(dir) = scsi::device_dir(device.disk_dir()) {
            return Ok(Self::of_scsi(sysfs, &dir));
        }
        let dir = real_path(&device.disk_dir().join("device")).ok();
        let ground = Ground::of(device.disk_name(), dir.is_some());
        let Some(dir) = dir else {
            return Ok(Self {
                ground,
                ..Self::default()
            });
        };
        let mut found = Self {
            functions: function_above(&dir).into_iter().collect(),
            ground,
            ..Self::default()
        };
        found.transport = found.other_transport(sysfs, &dir);
        Ok(found)
    }

    /// A SCSI device's folder: a disk, or what has only an sg node.
    #[must_use]
    pub fn of_scsi(sysfs: &Sysfs, device_dir: &Path) -> Self {
        let mut found = Self {
            transport: None,
            ground: Ground::None,
            functions: function_above(device_dir).into_iter().collect(),
            controllers: Vec::new(),
            host: ScsiHost::of(sysfs, device_dir),
            sas: SasWay::of(sysfs, device_dir),
            ata: AtaLink::of(sysfs, device_dir),
        };
        found.transport = Some(found.scsi_transport(sysfs, device_dir));
        found
    }

    fn scsi_transport(&self, sysfs: &Sysfs, device_dir: &Path) -> Transport {
        if let Some(way) = &self.sas {
            return if way.end.is_sata() {
                Transport::Sata
            } else {
                Transport::Sas
            };
        }
        if let Some(link) = &self.ata {
            // A parallel port never has a SATA speed, and its controller no AHCI capabilities.
            let is_parallel =
                link.rate.is_err() && link.drive_max.is_err() && link.port_max.is_err();
            return if is_parallel {
                Transport::Pata
            } else {
                Transport::Sata
            };
        }
        let has_part = |start: &str| {
            let mut names = device_dir.iter().filter_map(|name| name.to_str());
            names.any(|name| name.strip_prefix(start).is_some_and(starts_with_digit))
        };
        let driver = self.host.as_ref().and_then(|host| host.driver.clone());
        let driver = driver
            .or_else(|| self.pci_driver(sysfs))
            .unwrap_or_default();
        match driver.as_str() {
            "virtio_scsi" | "storvsc" | "storvsc_host_t" | "vmw_pvscsi" | "xen-scsifront" => {
                Transport::Virtio
            }
            name if RAID_DRIVERS.contains(&name) => Transport::Raid,
            // Volumes of an HBA with RAID firmware hang on the host itself, not on a port.
            "mpt3sas" | "mpt2sas" | "mptsas" | "mpi3mr" => Transport::Raid,
            _ if has_part("usb") => Transport::Usb,
            _ if has_part("session") => Transport::Iscsi,
            _ if has_part("rport-") => Transport::Fc,
            _ => Transport::Scsi,
        }
    }

    /// Of what is neither NVMe nor SCSI.
    fn other_transport(&self, sysfs: &Sysfs, device_dir: &Path) -> Option<Transport> {
        let mut names = device_dir.iter().filter_map(|name| name.to_str());
        let is_virtual = |name: &str| {
            let rest = name
                .strip_prefix("virtio")
                .or_else(|| name.strip_prefix("vbd-"));
            rest.is_some_and(starts_with_digit)
        };
        if names.any(is_virtual) {
            return Some(Transport::Virtio);
        }
        let own = device_dir.file_name()?.to_str().and_then(Bdf::parse);
        own.filter(|bdf| self.functions.contains(bdf))?;
        let driver = self.pci_driver(sysfs).unwrap_or_default();
        Some(if RAID_DRIVERS.contains(&driver.as_str()) {
            Transport::Raid
        } else {
            Transport::Pcie
        })
    }

    fn pci_driver(&self, sysfs: &Sysfs) -> Option<String> {
        let bdf = self.functions.first()?;
        let dir = sysfs.sys("bus/pci/devices").join(bdf.to_string());
        Some(Driver::of(sysfs, &dir)?.name)
    }
}

/// The closest PCI function above a folder.
#[must_use]
pub fn function_above(dir: &Path) -> Option<Bdf> {
    dir.ancestors()
        .filter_map(|dir| dir.file_name()?.to_str())
        .find_map(Bdf::parse)
}

/// The folder of a PCI function.
#[must_use]
pub fn function_dir(sysfs: &Sysfs, bdf: Bdf) -> PathBuf {
    sysfs.sys("bus/pci/devices").join(bdf.to_string())
}

fn starts_with_digit(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
}

//! PCI functions and the chain of bridges above them.
//!
//! - [`Function::read`]: one function by its address: who it is, its driver, its IOMMU group, its link
//!   (`current_link_speed` …) and, for root, its PCI Express capability ([`Express`]: payload and request sizes).
//! - [`PciPath::read`]: the function and every bridge up to its root port, and the links between them as
//!   [`Hop`]s with speed and width now and at most.
//! - [`LinkState::read`] and [`Aer::read`] take [`Function::dir`] and are cheap: for a look before, during and
//!   after a window.
//! - [`IommuGroup::read`]: who shares the group, and who keeps VFIO from it.
//!
//! Facts that hardware or an old kernel may lack are a [`Fact`]: the value, or [`Absent`] with the reason.

mod aer;
mod bdf;
mod config;
mod group;
mod link;
mod path;

pub use super::absent::{Absent, Fact, fault};
pub use aer::{Aer, AerClass, Growth};
pub use bdf::{BadBdf, Bdf};
pub use config::{Express, PortKind};
pub use group::{IommuGroup, Member};
pub use link::{LinkState, PciSpeed};
pub use path::{Hop, PciPath};

use super::absent::hex;
use super::{Sysfs, SysfsError, link_name, names_in, read_text, read_word, real_path};
use std::path::{Path, PathBuf};

/// A kernel driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Driver {
    /// Its name: `nvme`, `mpt3sas`, `vfio-pci`.
    pub name: String,
    /// Version of its module, where it has one of its own (vendors' drivers do; the others' is the kernel's).
    pub version: Option<String>,
}

impl Driver {
    /// The driver bound to a device's folder. The same for PCI functions, SCSI devices and virtio.
    #[must_use]
    pub fn of(sysfs: &Sysfs, dir: &Path) -> Option<Self> {
        let name = Self::name_in(dir)?;
        // Built-in drivers have no `module`; those that have a version keep the folder of their name.
        let module = link_name(&dir.join("driver/module"));
        let module = module.unwrap_or_else(|| name.replace('-', "_"));
        let version = read_word(&sysfs.sys("module").join(module).join("version"));
        Some(Self {
            name,
            version: version.ok().flatten(),
        })
    }

    fn name_in(dir: &Path) -> Option<String> {
        link_name(&dir.join("driver"))
    }
}

/// A PCI function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Its address.
    pub bdf: Bdf,
    /// Vendor ID: `0x8086` is Intel.
    pub vendor: Fact<u16>,
    /// Device ID.
    pub device: Fact<u16>,
    /// Class code, 24 bits: class, subclass, programming interface. `0x010802` is NVMe.
    pub class: Fact<u32>,
    /// Its driver; `None` where none is bound.
    pub driver: Option<Driver>,
    /// NUMA node; `Ok(None)` where the machine has but one, or firmware does not say (`-1`).
    pub numa_node: Fact<Option<u32>>,
    /// Number of its IOMMU group; `None` without an IOMMU.
    pub iommu_group: Option<u32>,
    /// Its link.
    pub link: LinkState,
    /// Its PCI Express capability; [`Absent::Closed`] for all but root.
    pub express: Fact<Express>,
    /// For a virtual function, the physical one, whose link is in truth the one it uses.
    pub physical: Option<Bdf>,
    /// For a bridge, the bus below it.
    pub secondary_bus: Option<u8>,
    dir: PathBuf,
}

impl Function {
    /// Reads the function at this address.
    ///
    /// # Errors
    /// [`SysfsError::Read`] where there is no such function. Anything else that is missing or garbled is a
    /// [`Fact`] of its own.
    pub fn read(sysfs: &Sysfs, bdf: Bdf) -> Result<Self, SysfsError> {
        let dir = real_path(&sysfs.sys("bus/pci/devices").join(bdf.to_string()))?;
        Ok(Self::at(sysfs, bdf, dir))
    }

    fn at(sysfs: &Sysfs, bdf: Bdf, dir: PathBuf) -> Self {
        let id = |name: &str| {
            let value = hex(&dir.join(name), 0xffff)?;
            Ok(u16::try_from(value).unwrap_or_default())
        };
        let physical = link_name(&dir.join("physfn"));
        let bus = read_text(&dir.join("secondary_bus_number"));
        let group = link_name(&dir.join("iommu_group"));
        Self {
            bdf,
            vendor: id("vendor"),
            device: id("device"),
            class: class_of(&dir),
            driver: Driver::of(sysfs, &dir),
            numa_node: numa_node(&dir.join("numa_node")),
            iommu_group: group.and_then(|number| number.parse().ok()),
            link: LinkState::read(&dir),
            express: Express::read(&dir),
            physical: physical.and_then(|name| Bdf::parse(&name)),
            secondary_bus: bus.ok().and_then(|text| text.parse().ok()),
            dir,
        }
    }

    /// Every function of the machine, in order.
    ///
    /// # Errors
    /// [`SysfsError::Read`] where there is no list of them (a machine without PCI).
    pub fn all(sysfs: &Sysfs) -> Result<Vec<Self>, SysfsError> {
        let names = names_in(&sysfs.sys("bus/pci/devices"))?;
        let mut all: Vec<Self> = names
            .iter()
            .filter_map(|name| Bdf::parse(name))
            .filter_map(|bdf| Self::read(sysfs, bdf).ok())
            .collect();
        all.sort_by_key(|function| function.bdf);
        Ok(all)
    }

    /// The functions of mass storage only (class 01h), in order: the others are not looked at.
    ///
    /// # Errors
    /// [`SysfsError::Read`] where there is no list of functions.
    pub fn all_storage(sysfs: &Sysfs) -> Result<Vec<Self>, SysfsError> {
        let folder = sysfs.sys("bus/pci/devices");
        let mut all: Vec<Self> = names_in(&folder)?
            .iter()
            .filter(|name| class_of(&folder.join(name)).is_ok_and(|class| class >> 16 == 1))
            .filter_map(|name| Self::read(sysfs, Bdf::parse(name)?).ok())
            .collect();
        all.sort_by_key(|function| function.bdf);
        Ok(all)
    }

    /// Its folder in sysfs, for [`LinkState::read`], [`Aer::read`] and whoever binds drivers.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Whether it is an NVMe I/O controller (class 01h, subclass 08h, interface 02h).
    #[must_use]
    pub fn is_nvme(&self) -> bool {
        self.class == Ok(0x01_0802)
    }

    /// Whether it is mass storage of any kind (class 01h).
    #[must_use]
    pub fn is_storage(&self) -> bool {
        self.class.as_ref().is_ok_and(|class| class >> 16 == 1)
    }

    /// Whether it is a bridge between PCI buses (class 06h, subclass 04h): a root port, or a switch's port.
    #[must_use]
    pub fn is_bridge(&self) -> bool {
        self.class.as_ref().is_ok_and(|class| class >> 8 == 0x0604)
    }

    /// Whether a driver that gives the device to user space has it.
    #[must_use]
    pub fn is_in_user_space(&self) -> bool {
        let name = self.driver.as_ref().map(|driver| driver.name.as_str());
        matches!(name, Some("vfio-pci" | "uio_pci_generic" | "igb_uio"))
    }
}

fn class_of(dir: &Path) -> Fact<u32> {
    hex(&dir.join("class"), 0xff_ffff)
}

/// `-1` where there is no node to tell.
fn numa_node(path: &Path) -> Fact<Option<u32>> {
    let text = read_text(path)?;
    if text == "-1" {
        return Ok(None);
    }
    let number = text.parse().ok().filter(|_| !text.starts_with('+'));
    let garbled = || SysfsError::garbled(path, &text, "the number of a NUMA node");
    number.map(Some).ok_or_else(|| garbled().into())
}

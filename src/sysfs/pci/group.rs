//! IOMMU groups: what has to be given to VFIO together.

use super::{Bdf, Driver};
use crate::sysfs::{Sysfs, SysfsError, names_in, read_word};

/// One function of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Its address.
    pub bdf: Bdf,
    /// Its driver.
    pub driver: Option<String>,
    /// Class code, 24 bits; absent where it cannot be read.
    pub class: Option<u32>,
}

impl Member {
    /// Whether it is a bridge between PCI buses, which VFIO lets stay with its driver.
    #[must_use]
    pub fn is_bridge(&self) -> bool {
        self.class.is_some_and(|class| class >> 8 == 0x0604)
    }

    /// Whether VFIO refuses the group for it: bound to a driver that does its own DMA. Those of VFIO itself,
    /// `pci-stub` and `pcieport` do none (Linux `driver_managed_dma`).
    #[must_use]
    pub fn blocks_vfio(&self) -> bool {
        match self.driver.as_deref() {
            None | Some("pci-stub" | "pcieport") => false,
            Some(driver) => !(driver.starts_with("vfio") || driver.ends_with("-vfio-pci")),
        }
    }
}

/// A group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IommuGroup {
    /// Its number.
    pub number: u32,
    /// `DMA`, `DMA-FQ`, `identity`: how the kernel translates for it; absent before Linux 4.20.
    pub kind: Option<String>,
    /// Its functions, in order.
    pub members: Vec<Member>,
}

impl IommuGroup {
    /// Reads the group of this number.
    ///
    /// # Errors
    /// [`SysfsError`] where it cannot be listed.
    pub fn read(sysfs: &Sysfs, number: u32) -> Result<Self, SysfsError> {
        let dir = sysfs.sys("kernel/iommu_groups").join(number.to_string());
        let mut members: Vec<Member> = names_in(&dir.join("devices"))?
            .iter()
            // Platform devices may share a group; VFIO's PCI driver has nothing to do with them.
            .filter_map(|name| Bdf::parse(name))
            .map(|bdf| {
                let dir = sysfs.sys("bus/pci/devices").join(bdf.to_string());
                Member {
                    bdf,
                    driver: Driver::name_in(&dir),
                    class: super::class_of(&dir).ok(),
                }
            })
            .collect();
        members.sort_by_key(|member| member.bdf);
        let kind = read_word(&dir.join("type"))?;
        Ok(Self {
            number,
            kind,
            members,
        })
    }

    /// The members other than `bdf` for which VFIO refuses the group.
    pub fn blockers(&self, bdf: Bdf) -> impl Iterator<Item = &Member> {
        self.members
            .iter()
            .filter(move |member| member.bdf != bdf && member.blocks_vfio())
    }
}

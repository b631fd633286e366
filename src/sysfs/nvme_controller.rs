//! NVMe controllers, and which of them lead to a namespace.

use super::absent::Fact;
use super::pci::Bdf;
use super::{Sysfs, SysfsError, names_in, optional, read_u64, read_word, real_path};
use std::path::{Path, PathBuf};

/// One controller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Controller {
    /// Kernel name: `nvme0`.
    pub name: String,
    /// `pcie`, `tcp`, `rdma`, `fc`, `loop`.
    pub transport: Option<String>,
    /// PCI address, or where it is on the network: `traddr=…,trsvcid=…`.
    pub address: Option<String>,
    /// `live`, `connecting`, `deleting`, `dead` …
    pub state: Option<String>,
    /// Model.
    pub model: Option<String>,
    /// Serial number.
    pub serial: Option<String>,
    /// Firmware revision.
    pub firmware: Option<String>,
    /// Qualified name of its subsystem.
    pub subsystem_nqn: Option<String>,
    /// Queues, the admin queue included.
    pub queues_count: Fact<u64>,
    /// Submission queue entries (the kernel's `sqsize` counts from 0).
    pub queue_entries_count: Fact<u64>,
    dir: PathBuf,
}

impl Controller {
    /// Reads `class/nvme/NAME`.
    ///
    /// # Errors
    /// [`SysfsError::Read`] where there is none of this name.
    pub fn named(sysfs: &Sysfs, name: &str) -> Result<Self, SysfsError> {
        let dir = real_path(&sysfs.sys("class/nvme").join(name))?;
        let word = |file: &str| read_word(&dir.join(file)).ok().flatten();
        let entries = read_u64(&dir.join("sqsize")).map(|last| last.saturating_add(1));
        Ok(Self {
            name: name.to_owned(),
            transport: word("transport"),
            address: word("address"),
            state: word("state"),
            model: word("model"),
            serial: word("serial"),
            firmware: word("firmware_rev"),
            subsystem_nqn: word("subsysnqn"),
            queues_count: read_u64(&dir.join("queue_count")).map_err(Into::into),
            queue_entries_count: entries.map_err(Into::into),
            dir,
        })
    }

    /// Every controller, by name.
    ///
    /// # Errors
    /// [`SysfsError::Read`] where the class exists but cannot be listed.
    pub fn all(sysfs: &Sysfs) -> Result<Vec<Self>, SysfsError> {
        let names = optional(names_in(&sysfs.sys("class/nvme")))?.unwrap_or_default();
        Ok(names
            .iter()
            .filter_map(|name| Self::named(sysfs, name).ok())
            .collect())
    }

    /// The controllers that lead to a namespace's block device or to one of a multipath head's paths, given by the
    /// kernel's name: `nvme0n1`, `nvme0c1n1`. More than one where the head has several paths.
    ///
    /// # Errors
    /// [`SysfsError`] where the block device is not there, or a class cannot be listed.
    pub fn of_namespace(sysfs: &Sysfs, name: &str) -> Result<Vec<Self>, SysfsError> {
        let dir = real_path(&sysfs.sys("class/block").join(name))?;
        // Plain namespaces and paths lie in their controller's folder; heads in their subsystem's.
        let above = dir.parent().unwrap_or(&dir);
        if let Some(own) = name_of(above).filter(|name| is_controller(name)) {
            return Ok(vec![Self::named(sysfs, &own)?]);
        }
        let mut found = Vec::new();
        for controller in Self::all(sysfs)? {
            if controller.leads_to(name) {
                found.push(controller);
            }
        }
        Ok(found)
    }

    /// Whether this controller has a path (`nvme0c1n1`) to the head `nvme0n1`. The first number is the
    /// subsystem's, the last the head's: both are the same in the two names.
    fn leads_to(&self, head: &str) -> bool {
        let Some((subsystem, namespace)) = head.rsplit_once('n') else {
            return false;
        };
        let names = names_in(&self.dir).unwrap_or_default();
        names.iter().any(|name| {
            let rest = name.strip_prefix(subsystem);
            rest.and_then(|rest| rest.strip_prefix('c')?.split_once('n'))
                .is_some_and(|(_, number)| number == namespace)
        })
    }

    /// The PCI function it is; `None` over fabrics.
    #[must_use]
    pub fn bdf(&self) -> Option<Bdf> {
        if let Some(bdf) = self.address.as_deref().and_then(Bdf::parse) {
            return Some(bdf);
        }
        // Before Linux 4.x there was no `address`.
        self.dir
            .ancestors()
            .find_map(|dir| Bdf::parse(&name_of(dir)?))
    }

    /// Whether it is reached over a network.
    #[must_use]
    pub fn is_fabrics(&self) -> bool {
        let transport = self.transport.as_deref();
        transport.is_some_and(|transport| !matches!(transport, "pcie" | "apple-nvme"))
    }

    /// Its folder in sysfs.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }
}

fn name_of(dir: &Path) -> Option<String> {
    Some(dir.file_name()?.to_str()?.to_owned())
}

/// `nvme0` and not `nvme-subsys0`.
fn is_controller(name: &str) -> bool {
    let digits = name.strip_prefix("nvme").unwrap_or_default();
    !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit())
}

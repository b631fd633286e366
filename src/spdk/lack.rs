//! What the machine lacks for SPDK, each with what to do about it.

use super::trid::Bdf;
use std::fmt;

/// A lack. Its text is the finding, a semicolon, and the remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PreflightError {
    /// Too few free hugepages.
    Hugepages {
        /// What is needed in MiB.
        needed_mib: u64,
        /// What is free, per node, in words.
        free: String,
        /// Pages that are missing.
        pages_count: u64,
        /// The setting that would do.
        target_count: u64,
    },
    /// No such PCI device.
    NoDevice {
        /// Its address.
        bdf: Bdf,
    },
    /// The kernel has it.
    KernelDriver {
        /// Its address.
        bdf: Bdf,
        /// The driver.
        driver: String,
    },
    /// Nobody has it.
    NoDriver {
        /// Its address.
        bdf: Bdf,
    },
    /// A neighbour in its IOMMU group is in the kernel's hands.
    Group {
        /// Its address.
        bdf: Bdf,
        /// The group's number.
        group: String,
        /// The neighbours with their drivers.
        others: String,
    },
    /// No access to the group.
    Permission {
        /// The file.
        path: String,
    },
    /// Without an IOMMU only root learns the physical addresses that the device needs.
    NeedsRoot {
        /// Its address.
        bdf: Bdf,
        /// The driver.
        driver: String,
    },
    /// Another process drives it.
    Busy {
        /// Its address.
        bdf: Bdf,
        /// The process, where it is known.
        process: Option<i32>,
    },
    /// The IOMMU cannot address the memory.
    NarrowIommu {
        /// Its width.
        bits: u32,
        /// The least that can be handled.
        least: u32,
    },
    /// Locked memory is limited.
    Memlock {
        /// The limit in MiB.
        limit_mib: u64,
        /// What is needed in MiB.
        needed_mib: u64,
    },
    /// Transports that SPDK should have brought along did not register.
    Unregistered {
        /// Their names.
        transports: String,
    },
}

impl PreflightError {
    /// What was found.
    #[must_use]
    pub fn finding(&self) -> String {
        match self {
            Self::Hugepages {
                needed_mib, free, ..
            } => format!("no free hugepages: {needed_mib} MiB needed, {free}"),
            Self::NoDevice { bdf } => format!("{bdf}: no such PCI device"),
            Self::KernelDriver { bdf, driver } => {
                format!("{bdf}: on the kernel's {driver} driver")
            }
            Self::NoDriver { bdf } => format!("{bdf}: no driver is bound"),
            Self::Group { bdf, group, others } => {
                format!("{bdf}: its IOMMU group {group} is not viable, {others} is in it")
            }
            Self::Permission { path } => format!("{path}: no permission"),
            Self::NeedsRoot { bdf, driver } => {
                format!("{bdf}: on {driver}, where only root may drive it")
            }
            Self::Busy { bdf, process } => {
                let who = process.map_or_else(String::new, |id| format!(" (process {id})"));
                format!("{bdf}: another process drives it{who}")
            }
            Self::NarrowIommu { bits, least } => {
                format!("the IOMMU is {bits} bits wide, at least {least} are needed")
            }
            Self::Memlock {
                limit_mib,
                needed_mib,
            } => {
                format!("locked memory is limited to {limit_mib} MiB, {needed_mib} MiB are needed")
            }
            Self::Unregistered { transports } => {
                format!("the transports {transports} are missing from this program")
            }
        }
    }

    /// What to do about it.
    #[must_use]
    pub fn remedy(&self) -> String {
        match self {
            Self::Hugepages {
                pages_count,
                target_count,
                ..
            } => format!("reserve {pages_count} more: sysctl vm.nr_hugepages={target_count}"),
            Self::NoDevice { .. } => "lanemark devices lists them".to_owned(),
            Self::KernelDriver { bdf, .. } => {
                format!("run lanemark claim {bdf}, or use --claim")
            }
            Self::NoDriver { bdf } => format!("run lanemark claim {bdf}"),
            Self::Group { .. } => {
                "unbind what else is in the group too, or bind it to vfio-pci".to_owned()
            }
            Self::Permission { .. } => "run as root, or give your user this file".to_owned(),
            Self::NeedsRoot { .. } => {
                "run as root, or bind it to vfio-pci where there is an IOMMU".to_owned()
            }
            Self::Busy { .. } => "end that process first".to_owned(),
            Self::NarrowIommu { .. } => {
                "boot with iommu=pt and intel_iommu=off, or use uio_pci_generic".to_owned()
            }
            Self::Memlock { .. } => "raise it (ulimit -l unlimited) or run as root".to_owned(),
            Self::Unregistered { .. } => {
                "build against an SPDK with static libraries (scripts/install-spdk)".to_owned()
            }
        }
    }
}

impl fmt::Display for PreflightError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.finding(), self.remedy())
    }
}

impl std::error::Error for PreflightError {}

//! What speaks against claiming a device, each in words that name the thing found and what to do.

use crate::session::guard::Finding;
use crate::sysfs::pci::Bdf;
use std::fmt;
use std::path::PathBuf;

/// One reason why a device is not claimed, or not given back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Obstacle {
    /// One of its namespaces is in use.
    InUse(Finding),
    /// A process has one of its nodes open.
    Open {
        /// The node.
        node: PathBuf,
        /// The process.
        process: u32,
        /// Its name.
        name: String,
    },
    /// The kernel says that somebody has a namespace for himself, and nothing above tells who.
    Held {
        /// The node.
        node: PathBuf,
    },
    /// It is no NVMe controller.
    NotNvme {
        /// Its class code, in words.
        class: String,
        /// Its driver.
        driver: Option<String>,
    },
    /// `PCI_BLOCKED` names it.
    Blocked,
    /// `PCI_ALLOWED` is set and does not name it.
    NotAllowed,
    /// Other functions of its IOMMU group are on drivers that VFIO does not tolerate.
    Group {
        /// Number of the group.
        number: u32,
        /// Address and driver of each.
        members: Vec<(Bdf, String)>,
        /// Whether all of them could be claimed too.
        all_nvme: bool,
    },
    /// A module is missing.
    Module {
        /// Its name.
        name: &'static str,
        /// What modprobe said.
        why: String,
    },
    /// Another process drives it from user space.
    Driven {
        /// The process, where it can be told.
        process: Option<i64>,
    },
    /// A fact that decides is missing or garbled.
    Unreadable {
        /// Which.
        what: String,
    },
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InUse(finding) => write!(f, "{finding}"),
            Self::Open {
                node,
                process,
                name,
            } => write!(
                f,
                "{} is open in process {process} ({name})",
                node.display()
            ),
            Self::Held { node } => write!(
                f,
                "{} is held exclusively by something in the kernel that shows in no list",
                node.display()
            ),
            Self::NotNvme { class, driver } => {
                write!(f, "it is no NVMe controller ({class}")?;
                if let Some(driver) = driver {
                    write!(f, ", driver {driver}")?;
                }
                f.write_str("): SPDK has no driver for it")
            }
            Self::Blocked => f.write_str("PCI_BLOCKED names it"),
            Self::NotAllowed => f.write_str("PCI_ALLOWED is set and does not name it"),
            Self::Group {
                number, members, ..
            } => {
                let names: Vec<String> = members
                    .iter()
                    .map(|(bdf, driver)| format!("{bdf} ({driver})"))
                    .collect();
                write!(
                    f,
                    "its IOMMU group {number} is not viable: {} would stay with the kernel",
                    names.join(", ")
                )
            }
            Self::Module { name, why } => write!(f, "module {name} is missing: {why}"),
            Self::Driven {
                process: Some(process),
            } => write!(f, "process {process} drives it from user space"),
            Self::Driven { process: None } => {
                f.write_str("another process drives it from user space")
            }
            Self::Unreadable { what } => write!(f, "cannot be judged: {what}"),
        }
    }
}

impl Obstacle {
    /// Short kind for scripts.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::InUse(finding) => finding.kind(),
            Self::Open { .. } => "open",
            Self::Held { .. } => "held",
            Self::NotNvme { .. } => "not-nvme",
            Self::Blocked | Self::NotAllowed => "pci-blocked",
            Self::Group { .. } => "iommu-group",
            Self::Module { .. } => "module",
            Self::Driven { .. } => "driven",
            Self::Unreadable { .. } => "unreadable",
        }
    }

    /// What the user can do about it.
    #[must_use]
    pub fn next_step(&self) -> String {
        match self {
            Self::InUse(finding) => finding.next_step(),
            Self::Open { process, .. } => format!("end process {process}, or name another device"),
            Self::Held { .. } => {
                "find what uses it (a ZFS pool, an exported target?) and end that".into()
            }
            Self::NotNvme { .. } => {
                "name its node (such as /dev/sda, /dev/vda): it is measured by io_uring".into()
            }
            Self::Blocked => "take it out of PCI_BLOCKED, if it may be claimed".into(),
            Self::NotAllowed => "add it to PCI_ALLOWED, if it may be claimed".into(),
            Self::Group {
                members,
                all_nvme: true,
                ..
            } => {
                let names: Vec<String> = members.iter().map(|(bdf, _)| bdf.to_string()).collect();
                format!("claim them together, adding {}", names.join(" "))
            }
            Self::Group { .. } => {
                "put the device into a slot of its own, or behind a port with access control \
                 services (ACS)"
                    .into()
            }
            Self::Module { name, .. } => {
                format!("modprobe {name}, or a kernel package that has it")
            }
            Self::Driven { .. } => "end that process first".into(),
            Self::Unreadable { .. } => {
                "make that fact readable (run as root?), or name another device".into()
            }
        }
    }
}

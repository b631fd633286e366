//! What a device string names, and which backends can drive that.

use crate::config::BackendChoice;
use crate::session::SessionError;
use crate::session::open::sg;
use crate::spdk::TransportId;
use crate::sys::ioctl::{self, NodeKind};
use crate::sysfs::{BlockDev, DevNum, Sysfs, nvme};
use std::path::Path;

/// What a device string names.
pub(in crate::session) enum Named<'a> {
    /// `null`, and what follows the colon.
    Null(&'a str),
    /// `sim`, likewise.
    Sim(&'a str),
    /// `scratch`, likewise.
    Scratch(&'a str),
    /// A transport ID or a PCI address.
    Spdk,
    /// A generic node of an NVMe namespace.
    NvmeGeneric,
    /// A block node of an NVMe namespace.
    NvmeBlock,
    /// A generic node of a SCSI device.
    ScsiGeneric,
    /// A block node of a SCSI disk.
    ScsiBlock,
    /// Any other node or file.
    Path,
}

impl<'a> Named<'a> {
    pub(in crate::session) fn of(name: &'a str, sysfs: &Sysfs) -> Self {
        let after = |word: &str| {
            let rest = name.strip_prefix(word)?;
            if rest.is_empty() {
                Some("")
            } else {
                rest.strip_prefix(':')
            }
        };
        if let Some(rest) = after("null") {
            Self::Null(rest)
        } else if let Some(rest) = after("sim") {
            Self::Sim(rest)
        } else if let Some(rest) = after("scratch") {
            Self::Scratch(rest)
        } else if TransportId::looks_like_one(name) {
            Self::Spdk
        } else {
            match ioctl::path_kind(Path::new(name)) {
                Ok(NodeKind::Char { major, minor }) if is_generic(sysfs, major, minor) => {
                    Self::NvmeGeneric
                }
                Ok(NodeKind::Block { major, minor }) if is_nvme(sysfs, major, minor) => {
                    Self::NvmeBlock
                }
                Ok(NodeKind::Char { major, minor }) if sg::is_node(sysfs, major, minor) => {
                    Self::ScsiGeneric
                }
                Ok(NodeKind::Block { major, minor }) if sg::is_disk(sysfs, major, minor) => {
                    Self::ScsiBlock
                }
                _ => Self::Path,
            }
        }
    }

    /// Whether it is the name of a node or file.
    pub(in crate::session) const fn is_path(&self) -> bool {
        !matches!(
            self,
            Self::Null(_) | Self::Sim(_) | Self::Scratch(_) | Self::Spdk
        )
    }

    /// The backends that can drive it, best first.
    const fn backends(&self) -> &'static [BackendChoice] {
        match self {
            Self::Null(_) => &[BackendChoice::Null],
            Self::Sim(_) => &[BackendChoice::Sim],
            Self::Spdk => &[BackendChoice::Spdk],
            Self::NvmeGeneric => &[BackendChoice::UringCmd],
            Self::NvmeBlock => &[BackendChoice::Uring, BackendChoice::UringCmd],
            Self::ScsiGeneric => &[BackendChoice::Sg],
            Self::ScsiBlock => &[BackendChoice::Uring, BackendChoice::Sg],
            Self::Scratch(_) | Self::Path => &[BackendChoice::Uring],
        }
    }
}

fn is_generic(sysfs: &Sysfs, major: u32, minor: u32) -> bool {
    matches!(
        nvme::block_of_generic(sysfs, DevNum { major, minor }),
        Ok(Some(_))
    )
}

fn is_nvme(sysfs: &Sysfs, major: u32, minor: u32) -> bool {
    BlockDev::numbered(sysfs, DevNum { major, minor }).is_ok_and(|disk| nvme::is_nvme(&disk.name))
}

/// The backend for a device: the one asked for if it can, the best otherwise.
pub(in crate::session) fn backend_for(
    name: &str,
    choice: BackendChoice,
    sysfs: &Sysfs,
) -> Result<BackendChoice, SessionError> {
    let can = Named::of(name, sysfs).backends();
    if choice == BackendChoice::Auto {
        return Ok(can[0]);
    }
    if can.contains(&choice) {
        return Ok(choice);
    }
    let names: Vec<_> = can.iter().map(|kind| kind.name()).collect();
    Err(SessionError::WrongBackend {
        device: name.to_owned(),
        backend: choice.name(),
        why: format!("use backend auto or {}", names.join(", ")),
    })
}

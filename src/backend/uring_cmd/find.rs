//! From a path to the generic node of its namespace, and to what sysfs knows of it.

use crate::backend::BackendError;
use crate::errno::Errno;
use crate::sys::ioctl::{self, NodeKind};
use crate::sys::nvme::NvmeNode;
use crate::sysfs::absent::fault;
use crate::sysfs::nvme_controller::Controller;
use crate::sysfs::queue::BlockQueue;
use crate::sysfs::{BlockDev, DevNum, Sysfs, SysfsError, nvme};
use std::path::{Path, PathBuf};

/// A namespace's nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    /// The generic node's name: `ng0n1`.
    pub(super) generic: String,
    /// Its path.
    pub(super) node: PathBuf,
    /// Its number.
    pub(super) dev: DevNum,
    /// The block device beside it: `nvme0n1`.
    pub(super) block: String,
    /// The controllers that lead to it.
    pub(super) controllers: Vec<Controller>,
}

/// Finds the generic node that `path` is, or that stands beside it.
pub(super) fn find(sysfs: &Sysfs, path: &Path) -> Result<Found, BackendError> {
    let name = path.display().to_string();
    let unsuitable = |why: String| BackendError::Unsuitable {
        path: name.clone(),
        why,
    };
    let garbled = |error: SysfsError| unsuitable(format!("is shown wrongly: {error}"));
    let kind = ioctl::path_kind(path).map_err(|errno| BackendError::Open {
        path: name.clone(),
        errno,
        hint: match errno {
            Errno(libc::ENOENT) => "; check the name: `lanemark devices` lists what is here",
            _ => "",
        }
        .to_owned(),
    })?;
    let (block, node) = match kind {
        NodeKind::Char { major, minor } => {
            let dev = DevNum { major, minor };
            let block = nvme::block_of_generic(sysfs, dev).map_err(garbled)?;
            let block = block.ok_or_else(|| unsuitable(NO_NAMESPACE.to_owned()))?;
            (block, path.to_owned())
        }
        NodeKind::Block { major, minor } => {
            let disk = BlockDev::numbered(sysfs, DevNum { major, minor }).map_err(garbled)?;
            let block = whole_namespace(&disk).map_err(|why| unsuitable(why.to_owned()))?;
            let generic = nvme::generic_node(sysfs, &block).map_err(garbled)?;
            let (generic, _) = generic.ok_or_else(|| unsuitable(NO_GENERIC.to_owned()))?;
            (block, sysfs.dev(generic))
        }
        _ => return Err(unsuitable(NO_NAMESPACE.to_owned())),
    };
    let generic = nvme::generic_node(sysfs, &block).map_err(garbled)?;
    let (generic, dev) = generic.ok_or_else(|| unsuitable(NO_GENERIC.to_owned()))?;
    let controllers = Controller::of_generic(sysfs, &generic).map_err(garbled)?;
    if let Some(why) = controllers
        .iter()
        .find_map(|one| fault(&one.queue_entries_count))
    {
        return Err(unsuitable(format!("is shown wrongly: {why}")));
    }
    Ok(Found {
        generic,
        node,
        dev,
        block,
        controllers,
    })
}

const NO_NAMESPACE: &str =
    "is no NVMe namespace; uring-cmd drives /dev/ngXnY, or /dev/nvmeXnY by it";
const NO_GENERIC: &str = "has no generic node beside it (Linux 5.13 has them, and so does only the multipath head where there is one); use backend: uring";
const A_PART: &str =
    "is a partition, and NVMe commands go to the whole namespace; name that, or use backend: uring";

fn whole_namespace(disk: &BlockDev) -> Result<String, &'static str> {
    if !nvme::is_nvme(&disk.name) {
        return Err(NO_NAMESPACE);
    }
    if disk.is_partition() {
        return Err(A_PART);
    }
    Ok(disk.name.clone())
}

/// The node may have been exchanged since it was looked at: what counts is what is open.
pub(super) fn is_still(node: &NvmeNode, found: &Found, path: &str) -> Result<(), BackendError> {
    let now = ioctl::node_kind(node.file());
    let DevNum { major, minor } = found.dev;
    if now == Ok(NodeKind::Char { major, minor }) {
        return Ok(());
    }
    Err(BackendError::Unsuitable {
        path: path.to_owned(),
        why: "has just become another device; try again".to_owned(),
    })
}

/// The limits of the block device's queue, which are those of passthrough too.
pub(super) fn block_queue(
    sysfs: &Sysfs,
    found: &Found,
    path: &str,
) -> Result<BlockQueue, BackendError> {
    let read = || {
        let disk = BlockDev::named(sysfs, &found.block)?;
        match disk.dev {
            Some(dev) => BlockQueue::read(sysfs, dev.major, dev.minor),
            None => Ok(BlockQueue::default()),
        }
    };
    read().map_err(|error: SysfsError| BackendError::Unsuitable {
        path: path.to_owned(),
        why: format!("has a queue that cannot be read: {error}"),
    })
}

//! From a path to the sg node of its device.

use crate::backend::BackendError;
use crate::errno::Errno;
use crate::sys::ioctl::{self, NodeKind};
use crate::sysfs::{BlockDev, DevNum, Sysfs, SysfsError, scsi};
use std::path::{Path, PathBuf};

/// Where commands go, and where the kernel tells of the device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) node: PathBuf,
    pub(super) device_dir: PathBuf,
}

/// Finds the sg node for an sg node itself, or for the block node of a whole SCSI disk.
pub(super) fn place(sysfs: &Sysfs, path: &Path) -> Result<Place, BackendError> {
    let name = path.display().to_string();
    let unsuitable = |why: String| BackendError::Unsuitable {
        path: name.clone(),
        why,
    };
    let unread = |error: SysfsError| unsuitable(format!("cannot be looked up: {error}"));
    match ioctl::path_kind(path).map_err(|errno| open_error(&name, errno))? {
        NodeKind::Char { major, minor } => {
            let dir = scsi::device_of_generic(sysfs, DevNum { major, minor }).map_err(unread)?;
            let device_dir = dir.ok_or_else(|| {
                unsuitable(
                    "is a character device that is no sg node; name an sg node (`ls -l /dev/sg*`), or the disk itself"
                        .to_owned(),
                )
            })?;
            Ok(Place {
                node: path.to_owned(),
                device_dir,
            })
        }
        NodeKind::Block { major, minor } => {
            let block = BlockDev::numbered(sysfs, DevNum { major, minor }).map_err(unread)?;
            if let Some(disk) = &block.disk {
                return Err(unsuitable(format!(
                    "is a partition, and sg knows whole devices only: name its disk {disk} and set offset and size"
                )));
            }
            let device_dir = scsi::device_dir(block.dir()).ok_or_else(|| {
                unsuitable("is no SCSI disk (SAS, SATA, RAID volume); use backend auto".to_owned())
            })?;
            let node = scsi::generic_node(&device_dir).map_err(unread)?;
            let (node, _) = node.ok_or_else(|| {
                unsuitable("has no sg node: load the driver (modprobe sg)".to_owned())
            })?;
            Ok(Place {
                node: sysfs.dev(node),
                device_dir,
            })
        }
        NodeKind::File | NodeKind::Directory | NodeKind::Other => Err(unsuitable(
            "is no device; backend sg wants an sg node or a SCSI disk".to_owned(),
        )),
    }
}

pub(super) fn open_error(path: &str, errno: Errno) -> BackendError {
    let hint = match errno {
        Errno(libc::ENOENT) => "; check the name: `lanemark devices` lists what is here",
        Errno(libc::EACCES | libc::EPERM) => {
            "; sg takes commands from root (CAP_SYS_RAWIO) or the group that owns the node, even those that only read"
        }
        Errno(libc::EBUSY) => "; another program has it open exclusively",
        Errno(libc::ENXIO | libc::ENODEV) => "; there is no device behind this node",
        Errno(libc::EMFILE | libc::ENFILE) => {
            "; a file takes 16 commands: raise `ulimit -n` or lower iodepth"
        }
        _ => "",
    };
    BackendError::Open {
        path: path.to_owned(),
        errno,
        hint: hint.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_is_no_scsi_device_is_named() {
        let sysfs = Sysfs::host();
        let why = |path: &Path| place(&sysfs, path).unwrap_err().to_string();
        assert!(why(&sysfs.dev("null")).contains("no sg node"));
        let dir = tempfile::tempdir().unwrap();
        assert!(why(dir.path()).contains("is no device"));
        assert!(why(&dir.path().join("x")).contains("ENOENT"));
    }
}

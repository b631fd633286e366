//! Opening a path and learning what it is.

use crate::backend::{BackendError, DeviceFacts, DeviceKind};
use crate::errno::Errno;
use crate::sys::ioctl::{self, DirectAlign, NodeKind, OpenMode};
use crate::sysfs::Sysfs;
use crate::sysfs::queue::BlockQueue;
use crate::units::{BlockSize, Bytes};
use std::fs::File;
use std::path::Path;

/// Logical block of a file where the kernel does not say (before 6.1): no file system asks for more.
const UNKNOWN_ALIGN_BYTES: u32 = 4096;

/// The block layer carries no command without media.
const NO_PROBE: &str = "the block layer has no command without media; use rw: probe-read, or the backend for its kind (uring-cmd for NVMe, sg for SCSI)";

/// The kernel zeroes a block device by fallocate alone (block/fops.c, `blkdev_fallocate`): under the inode's lock, so
/// that one waits for the other, and from a worker thread. What would be measured is that lock.
const NO_ZEROES: &str = "the kernel zeroes block devices one request at a time, under a lock of its own; use the backend for its kind (uring-cmd or spdk for NVMe, sg for SCSI)";
const NO_ZEROES_IN_FILES: &str = "zeros in a file are its file system's notes, no writes to the device; use the block device by the backend for its kind";

/// An opened path.
pub(super) struct Opened {
    pub(super) file: File,
    pub(super) facts: DeviceFacts,
    /// Whether the block queue has poll support; `None` where there is no block queue or no word.
    pub(super) queue_polls: Option<bool>,
    /// See [`BlockQueue::has_requests`].
    pub(super) has_requests: bool,
}

pub(super) fn open(sysfs: &Sysfs, path: &Path, writes: bool) -> Result<Opened, BackendError> {
    let name = path.display().to_string();
    let kind = ioctl::path_kind(path).map_err(|errno| open_error(&name, errno, false))?;
    let block = matches!(kind, NodeKind::Block { .. });
    suitable(&name, kind)?;
    let mode = OpenMode {
        direct: true,
        write: writes,
        exclusive: writes && block,
    };
    let file = ioctl::open(path, mode).map_err(|errno| open_error(&name, errno, writes))?;
    // The node may have been exchanged since it was looked at: what counts is what is open.
    match ioctl::node_kind(&file).map_err(|errno| asked(&name, "fstat", errno))? {
        NodeKind::Block { major, minor } => block_device(sysfs, name, file, major, minor),
        NodeKind::File => regular_file(name, file),
        other => suitable(&name, other).and(Err(unsuitable(&name, "has changed its kind"))),
    }
}

fn suitable(name: &str, kind: NodeKind) -> Result<(), BackendError> {
    let why = match kind {
        NodeKind::Block { .. } | NodeKind::File => return Ok(()),
        NodeKind::Directory => "is a directory; a block device or a regular file is needed",
        NodeKind::Char { .. } => {
            "is a character device, which io_uring cannot read blocks from; name the block device, or use the backend for its kind (uring-cmd for /dev/ng, sg for /dev/sg)"
        }
        NodeKind::Other => "is a pipe or socket; a block device or a regular file is needed",
    };
    Err(unsuitable(name, why))
}

fn block_device(
    sysfs: &Sysfs,
    path: String,
    file: File,
    major: u32,
    minor: u32,
) -> Result<Opened, BackendError> {
    let ask = |what, answer: Result<u64, Errno>| answer.map_err(|errno| asked(&path, what, errno));
    let capacity = ask("BLKGETSIZE64", ioctl::block_capacity_bytes(&file))?;
    let logical = ask(
        "BLKSSZGET",
        ioctl::logical_block_bytes(&file).map(u64::from),
    )?;
    let logical_block = block_of(&path, logical, capacity)?;
    let physical = ioctl::physical_block_bytes(&file).ok();
    let queue =
        BlockQueue::read(sysfs, major, minor).map_err(|error| BackendError::Unsuitable {
            path: path.clone(),
            why: format!("has a queue that cannot be read: {error}"),
        })?;
    let trim = match queue.discard_max {
        Some(Bytes(0)) => Err("the device has no discard".to_owned()),
        Some(_) => Ok(()),
        None => Err("the kernel does not say whether the device has discard".to_owned()),
    };
    let facts = DeviceFacts {
        kind: DeviceKind::Block,
        identity: None,
        capacity: Bytes(capacity),
        logical_block,
        physical_block: physical.and_then(BlockSize::new),
        rotational: queue.rotational,
        max_io: queue.max_io,
        max_command: None,
        block_path: None,
        device_depth: queue.device_depth_count(),
        trim,
        write_zeroes: Err(NO_ZEROES.to_owned()),
        flush: Ok(()),
        probe: Err(NO_PROBE.to_owned()),
        in_use: Vec::new(),
        own_scratch: false,
        model: queue.model,
        serial: queue.serial,
        firmware: queue.firmware,
        path,
    };
    Ok(Opened {
        file,
        facts,
        queue_polls: queue.polls,
        has_requests: queue.has_requests,
    })
}

fn regular_file(path: String, file: File) -> Result<Opened, BackendError> {
    let metadata = file
        .metadata()
        .map_err(|error| asked(&path, "fstat", Errno::of(&error)))?;
    let align = ioctl::direct_align(&file).map_err(|errno| asked(&path, "statx", errno))?;
    let block_bytes = match align {
        DirectAlign::Refused => return Err(page_cache(&path)),
        DirectAlign::Unknown => UNKNOWN_ALIGN_BYTES,
        DirectAlign::Known { offset_bytes, .. } => offset_bytes,
    };
    let capacity = metadata.len();
    let logical_block = block_of(&path, u64::from(block_bytes), capacity)?;
    let facts = DeviceFacts {
        kind: DeviceKind::File,
        identity: None,
        model: None,
        serial: None,
        firmware: None,
        capacity: Bytes(capacity),
        logical_block,
        physical_block: None,
        rotational: None,
        max_io: None,
        max_command: None,
        block_path: None,
        device_depth: None,
        trim: Err("a file is not trimmed: holes would be punched into it".to_owned()),
        write_zeroes: Err(NO_ZEROES_IN_FILES.to_owned()),
        flush: Ok(()),
        probe: Err(NO_PROBE.to_owned()),
        in_use: Vec::new(),
        own_scratch: false,
        path,
    };
    Ok(Opened {
        file,
        facts,
        queue_polls: None,
        has_requests: true,
    })
}

/// The logical block, where at least one fits.
fn block_of(path: &str, block_bytes: u64, capacity_bytes: u64) -> Result<BlockSize, BackendError> {
    let block = u32::try_from(block_bytes).ok().and_then(BlockSize::new);
    let Some(block) = block else {
        return Err(unsuitable(path, "has no logical block size"));
    };
    if capacity_bytes == 0 {
        return Err(unsuitable(
            path,
            "is empty (0 bytes); nothing can be measured on it",
        ));
    }
    if capacity_bytes < block_bytes {
        let why = format!(
            "holds {capacity_bytes} bytes, less than one block of {block_bytes} bytes; make it larger"
        );
        return Err(unsuitable(path, &why));
    }
    Ok(block)
}

fn open_error(path: &str, errno: Errno, writes: bool) -> BackendError {
    let hint = match errno {
        Errno(libc::EINVAL) => return page_cache(path),
        Errno(libc::ENOENT) => "; check the name: `lanemark devices` lists what is here",
        Errno(libc::EACCES) => "; run as root, or as a member of the group that owns it",
        // Bits of the node that do not match give EACCES: this is somebody's rule, which binds root too.
        Errno(libc::EPERM) => {
            "; a rule forbids it: the devices that this container may open, or lockdown"
        }
        Errno(libc::EBUSY) if writes => {
            "; it is mounted or held (file system, swap, LVM, md, another process): writes need it free"
        }
        Errno(libc::EROFS) => "; it is read-only",
        Errno(libc::ENXIO | libc::ENODEV | libc::ENOMEDIUM) => {
            "; there is no device behind this node"
        }
        _ => "",
    };
    BackendError::Open {
        path: path.to_owned(),
        errno,
        hint: hint.to_owned(),
    }
}

/// Direct I/O is refused: going on would measure memory.
fn page_cache(path: &str) -> BackendError {
    BackendError::Open {
        path: path.to_owned(),
        errno: Errno(libc::EINVAL),
        hint: "; its file system refuses O_DIRECT, so the page cache would be measured instead of a device: use a file on another file system, or the block device".to_owned(),
    }
}

fn asked(path: &str, what: &'static str, errno: Errno) -> BackendError {
    BackendError::Setup {
        path: path.to_owned(),
        what,
        errno,
        hint: String::new(),
    }
}

fn unsuitable(path: &str, why: &str) -> BackendError {
    BackendError::Unsuitable {
        path: path.to_owned(),
        why: why.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn why(path: &Path) -> String {
        match open(&Sysfs::host(), path, false) {
            Err(error) => error.to_string(),
            Ok(_) => panic!("{} was opened", path.display()),
        }
    }

    #[test]
    fn what_cannot_be_driven_is_named() {
        let dir = tempfile::tempdir().unwrap();
        assert!(why(dir.path()).contains("is a directory"));
        assert!(why(&Sysfs::host().dev("null")).contains("character device"));
        let missing = why(&dir.path().join("nothing"));
        assert!(missing.contains("ENOENT") && missing.contains("lanemark devices"));
        let socket = dir.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        assert!(why(&socket).contains("pipe or socket"));
    }

    #[test]
    fn a_block_must_fit() {
        let err = |capacity| block_of("f", 4096, capacity).unwrap_err().to_string();
        assert!(err(0).contains("is empty"));
        assert!(err(4095).contains("4095 bytes, less than one block of 4096 bytes"));
        assert_eq!(block_of("f", 4096, 4096).unwrap().bytes(), 4096);
        assert!(block_of("f", 0, 4096).is_err());
    }

    #[test]
    fn refused_direct_io_says_what_would_be_measured() {
        let error = open_error("f", Errno(libc::EINVAL), false);
        assert!(matches!(error, BackendError::Open { .. }));
        assert!(error.to_string().contains("page cache"));
        let busy = open_error("f", Errno(libc::EBUSY), true).to_string();
        assert!(busy.contains("mounted or held") && busy.contains("another process"));
        let forbidden = open_error("f", Errno(libc::EPERM), true).to_string();
        assert!(!forbidden.contains("root"), "{forbidden}");
    }
}

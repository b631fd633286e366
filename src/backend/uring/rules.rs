//! What a block device or file is sent for an I/O.

use crate::backend::ring_queue::{Fate, Rules};
use crate::backend::{DeviceFacts, Gone, QueueSpec};
use crate::errno::Errno;
use crate::request::{Io, Op, Status};
use crate::sys::ioctl;
use crate::sys::slots::{Files, Request};
use crate::sysfs::scsi;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

/// What may be sent, and in which units.
#[derive(Debug)]
pub struct FileRules {
    block_bytes: u64,
    slot_bytes: u32,
    writes: bool,
    trim: bool,
    /// The device itself, to be asked whether it is still there.
    file: Arc<File>,
    /// Where the kernel tells the state of a SCSI disk.
    scsi_dir: Option<PathBuf>,
}

impl FileRules {
    pub(super) fn new(
        (file, scsi_dir): (Arc<File>, Option<PathBuf>),
        spec: QueueSpec,
        facts: &DeviceFacts,
        writes: bool,
    ) -> Self {
        Self {
            block_bytes: u64::from(facts.logical_block.bytes()),
            slot_bytes: spec.slot_bytes,
            writes,
            trim: facts.trim.is_ok(),
            file,
            scsi_dir,
        }
    }
}

impl Rules for FileRules {
    type Kind = Files;

    /// The request for an I/O, or why it is refused: EPERM for a change on a queue that was opened
    /// without writes, EOPNOTSUPP for a trim where there is none, EINVAL for more than a slot holds.
    #[inline]
    fn request(&self, io: Io) -> Result<Request, Errno> {
        if io.op == Op::Probe {
            return Err(Errno(libc::EOPNOTSUPP));
        }
        if io.op != Op::Read && !self.writes {
            return Err(Errno(libc::EPERM));
        }
        let offset_bytes = io.lba.wrapping_mul(self.block_bytes);
        let length = u64::from(io.blocks) * self.block_bytes;
        let length_bytes = match u32::try_from(length) {
            Ok(length_bytes) if length_bytes <= self.slot_bytes => length_bytes,
            _ if matches!(io.op, Op::Trim | Op::Flush) => 0,
            _ => return Err(Errno(libc::EINVAL)),
        };
        match io.op {
            Op::Read => Ok(Request::Read {
                offset_bytes,
                length_bytes,
            }),
            Op::Write => Ok(Request::Write {
                offset_bytes,
                length_bytes,
            }),
            Op::Trim if self.trim => Ok(Request::Discard {
                offset_bytes,
                length_bytes: length,
            }),
            Op::Trim | Op::WriteZeroes | Op::Probe => Err(Errno(libc::EOPNOTSUPP)),
            Op::Flush => Ok(Request::Datasync),
        }
    }

    /// Whether a failed I/O says that the device is gone. A removed block device says so by its size alone:
    /// the kernel sets it to nothing (block/genhd.c, `__blk_mark_disk_dead`), so that reads find the end of
    /// the device (0 bytes moved) and writes no room (ENOSPC, block/fops.c). A file's size is its own affair.
    /// A SCSI disk that was set offline keeps its size and fails everything with EIO; its state tells.
    #[cold]
    fn fate(&self, status: Status) -> Fate {
        if status.is_gone() {
            return Fate::Gone(Gone(status));
        }
        let at_the_end = matches!(
            status,
            Status::Short { got_bytes: 0 } | Status::Errno(Errno(libc::ENOSPC))
        );
        let is_offline = status == Status::Errno(Errno(libc::EIO))
            && self.scsi_dir.as_deref().is_some_and(scsi::is_dead);
        let is_nothing = at_the_end && ioctl::block_capacity_bytes(&self.file) == Ok(0);
        if is_nothing || is_offline {
            Fate::Gone(Gone(Status::Errno(Errno(libc::ENODEV))))
        } else {
            Fate::Here
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_failed_read_is_the_end_where_the_disk_was_set_offline() {
        let dir = tempfile::tempdir().unwrap();
        let state = |text: &str| std::fs::write(dir.path().join("state"), text).unwrap();
        let rules = |scsi_dir| FileRules {
            block_bytes: 512,
            slot_bytes: 512,
            writes: false,
            trim: false,
            file: Arc::new(tempfile::tempfile().unwrap()),
            scsi_dir,
        };
        let (disk, other) = (rules(Some(dir.path().to_owned())), rules(None));
        let failed = Status::Errno(Errno(libc::EIO));
        state("running\n");
        assert_eq!(disk.fate(failed), Fate::Here, "a medium error is no end");
        state("offline\n");
        let gone = Fate::Gone(Gone(Status::Errno(Errno(libc::ENODEV))));
        assert_eq!((disk.fate(failed), other.fate(failed)), (gone, Fate::Here));
    }
}

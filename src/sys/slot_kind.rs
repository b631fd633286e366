//! What the slots of a ring carry: reads and writes of a file, or NVMe commands. Only this folder says so,
//! since an entry may name any memory.

use super::ring_kinds::{Entries, Plain};
use super::uapi as k;
use crate::errno::Errno;
use crate::request::{Slot, Status};

pub(super) mod sealed {
    /// Keeps [`super::SlotKind`] to this folder.
    pub trait Sealed {}
}

/// Builds and reads the entries of one kind of request.
pub trait SlotKind: sealed::Sealed {
    /// Size of the entries.
    type Entries: Entries + std::fmt::Debug;
    /// What is asked.
    type Request: Copy;

    /// Bytes from the start of the slot's buffer that the request names: at most these are touched.
    #[doc(hidden)]
    fn buffer_bytes(&self, request: Self::Request) -> u64;
    /// Bytes that the completion must report.
    #[doc(hidden)]
    fn expected(&self, request: Self::Request) -> u32;
    /// Whether a polled ring cannot carry it.
    #[doc(hidden)]
    fn is_aside(&self, request: Self::Request) -> bool;
    /// Writes into the slot's buffer what the device is to read there beside data.
    #[doc(hidden)]
    fn prepare(&self, _request: Self::Request, _buffer: &mut [u8]) {}
    /// The entry.
    #[doc(hidden)]
    fn entry(&self, frame: &Frame, request: Self::Request) -> <Self::Entries as Entries>::Sqe;
    /// How it ended.
    #[doc(hidden)]
    fn status(&self, res: i32, expected: u32) -> Status;
}

/// What the ring knows of an entry.
#[derive(Debug, Clone, Copy)]
pub struct Frame {
    pub(super) slot: Slot,
    /// The slot's buffer.
    pub(super) address: u64,
    /// Index of the registered buffer that it lies in.
    pub(super) buf_index: u16,
    /// Whether buffers are registered.
    pub(super) fixed_buffers: bool,
    /// Descriptors, or indices of registered files: the device, and what else the kind names.
    pub(super) fds: [i32; 2],
    pub(super) flags: u8,
}

impl Frame {
    /// An entry that names nothing yet but its file and slot.
    #[inline]
    pub(super) fn base(&self) -> k::Sqe {
        k::Sqe {
            flags: self.flags,
            fd: self.fds[0],
            user_data: u64::from(self.slot.0),
            ..k::Sqe::default()
        }
    }
}

/// What to do with a slot, in bytes of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    /// Reads into the slot's buffer.
    Read {
        /// Where.
        offset_bytes: u64,
        /// How much, at most the slot.
        length_bytes: u32,
    },
    /// Writes from the slot's buffer.
    Write {
        /// Where.
        offset_bytes: u64,
        /// How much, at most the slot.
        length_bytes: u32,
    },
    /// Discards blocks of a block device (Linux 6.12).
    Discard {
        /// Where.
        offset_bytes: u64,
        /// How much.
        length_bytes: u64,
    },
    /// Makes data durable, `fdatasync(2)`.
    Datasync,
}

/// Reads and writes of a block device or file.
#[derive(Debug, Clone, Copy)]
pub struct Files {
    pub(super) discard_flags: u8,
}

impl sealed::Sealed for Files {}

impl SlotKind for Files {
    type Entries = Plain;
    type Request = Request;

    #[inline]
    fn buffer_bytes(&self, request: Request) -> u64 {
        u64::from(self.expected(request))
    }

    #[inline]
    fn expected(&self, request: Request) -> u32 {
        match request {
            Request::Read { length_bytes, .. } | Request::Write { length_bytes, .. } => {
                length_bytes
            }
            Request::Discard { .. } | Request::Datasync => 0,
        }
    }

    #[inline]
    fn is_aside(&self, request: Request) -> bool {
        matches!(request, Request::Discard { .. } | Request::Datasync)
    }

    #[inline]
    fn entry(&self, frame: &Frame, request: Request) -> k::Sqe {
        let base = frame.base();
        let transfer = |fixed, plain, off, len| k::Sqe {
            opcode: if frame.fixed_buffers { fixed } else { plain },
            off,
            len,
            addr: frame.address,
            buf_index: frame.buf_index,
            ..base
        };
        match request {
            Request::Read {
                offset_bytes,
                length_bytes,
            } => transfer(
                k::IORING_OP_READ_FIXED,
                k::IORING_OP_READ,
                offset_bytes,
                length_bytes,
            ),
            Request::Write {
                offset_bytes,
                length_bytes,
            } => transfer(
                k::IORING_OP_WRITE_FIXED,
                k::IORING_OP_WRITE,
                offset_bytes,
                length_bytes,
            ),
            Request::Discard {
                offset_bytes,
                length_bytes,
            } => k::Sqe {
                opcode: k::IORING_OP_URING_CMD,
                off: u64::from(k::BLOCK_URING_CMD_DISCARD),
                addr: offset_bytes,
                addr3: length_bytes,
                flags: base.flags | self.discard_flags,
                ..base
            },
            Request::Datasync => k::Sqe {
                opcode: k::IORING_OP_FSYNC,
                op_flags: k::IORING_FSYNC_DATASYNC,
                ..base
            },
        }
    }

    #[inline]
    fn status(&self, res: i32, expected: u32) -> Status {
        if res < 0 {
            return Status::Errno(Errno(-res));
        }
        let got_bytes = res as u32;
        if got_bytes == expected {
            Status::Ok
        } else {
            Status::Short { got_bytes }
        }
    }
}

//! One I/O: what is asked, where it is kept while in flight, and how it ended.

use crate::errno::Errno;

/// What an I/O does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Op {
    /// Reads blocks.
    Read = 0,
    /// Writes blocks.
    Write = 1,
    /// Deallocates blocks (discard, UNMAP, dataset management).
    Trim = 2,
    /// Makes blocks read as zeros without sending them (Write Zeroes, WRITE SAME).
    WriteZeroes = 3,
    /// Makes earlier writes durable (flush, SYNCHRONIZE CACHE).
    Flush = 4,
    /// A command that touches no media (TEST UNIT READY, Get Features): the latency of the path alone.
    Probe = 5,
}

impl Op {
    /// Number of kinds, for tables indexed by `Op as usize`.
    pub const COUNT: usize = 6;
    /// Every kind, in index order.
    pub const ALL: [Op; Op::COUNT] = [
        Op::Read,
        Op::Write,
        Op::Trim,
        Op::WriteZeroes,
        Op::Flush,
        Op::Probe,
    ];

    /// The name used in tables and records.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Op::Read => "read",
            Op::Write => "write",
            Op::Trim => "trim",
            Op::WriteZeroes => "writezeroes",
            Op::Flush => "flush",
            Op::Probe => "probe",
        }
    }

    /// Whether the device's content changes.
    #[must_use]
    pub const fn changes_data(self) -> bool {
        matches!(self, Op::Write | Op::Trim | Op::WriteZeroes)
    }

    /// Whether it names blocks; what does not has neither place nor length.
    #[must_use]
    pub const fn has_place(self) -> bool {
        !matches!(self, Op::Flush | Op::Probe)
    }
}

/// The place of one in-flight I/O in a queue's fixed table, counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(pub u32);

impl Slot {
    /// The index into the table.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// One request to a device. `lba` and `blocks` count logical blocks of that device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Io {
    /// First logical block.
    pub lba: u64,
    /// Number of logical blocks; 0 for a flush and a probe.
    pub blocks: u32,
    /// What to do.
    pub op: Op,
}

impl Io {
    /// A flush of the whole device.
    pub const FLUSH: Io = Io {
        lba: 0,
        blocks: 0,
        op: Op::Flush,
    };

    /// A command without media.
    pub const PROBE: Io = Io {
        lba: 0,
        blocks: 0,
        op: Op::Probe,
    };
}

/// How an I/O ended, as the device or the kernel said it. Small and `Copy`: the hot loop carries it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// Done, every byte of it.
    Ok,
    /// The kernel refused or failed it.
    Errno(Errno),
    /// Fewer bytes were moved than asked.
    Short {
        /// Bytes that were moved.
        got_bytes: u32,
    },
    /// An NVMe completion status (NVMe Base 2.x, Completion Queue Entry: Status Field).
    Nvme {
        /// Status Code Type.
        sct: u8,
        /// Status Code.
        sc: u8,
    },
    /// A SCSI status with its sense (SPC-5, sense key, ASC, ASCQ).
    Scsi {
        /// SAM status byte.
        status: u8,
        /// Sense key.
        key: u8,
        /// Additional sense code.
        asc: u8,
        /// Additional sense code qualifier.
        ascq: u8,
    },
    /// The transport or host adapter failed it before the device answered (SCSI host byte).
    Host {
        /// Host byte of the sg header.
        host: u8,
    },
}

impl Status {
    /// Whether the I/O did all that was asked.
    #[must_use]
    #[inline]
    pub const fn is_ok(self) -> bool {
        matches!(self, Status::Ok)
    }

    /// Whether the device itself is gone, so that the run must end.
    #[must_use]
    pub const fn is_gone(self) -> bool {
        matches!(
            self,
            Status::Errno(Errno(
                libc::ENODEV | libc::ENXIO | libc::ESHUTDOWN | libc::ENOMEDIUM
            ))
        )
    }
}

//! What is known of an opened device. Plans are made from these facts and from nothing else.

use crate::units::{BlockSize, Blocks, Bytes};

/// What kind of thing it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceKind {
    /// A block device node of the kernel.
    Block,
    /// A regular file.
    File,
    /// An NVMe namespace driven without the block layer.
    Nvme,
    /// A SCSI device driven without the block layer.
    Scsi,
    /// Completes at once; prices the engine.
    Null,
    /// A simulated device in virtual time.
    Sim,
}

impl DeviceKind {
    /// The name in records.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Block => "block",
            Self::File => "file",
            Self::Nvme => "nvme",
            Self::Scsi => "scsi",
            Self::Null => "null",
            Self::Sim => "sim",
        }
    }
}

/// Facts of one device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceFacts {
    /// As the user named it.
    pub path: String,
    /// The block node through which the kernel shows the same content, where `path` is another node of it.
    pub block_path: Option<String>,
    /// What kind of thing.
    pub kind: DeviceKind,
    /// World-wide identity.
    pub identity: Option<String>,
    /// Model.
    pub model: Option<String>,
    /// Serial number.
    pub serial: Option<String>,
    /// Firmware revision.
    pub firmware: Option<String>,
    /// Size.
    pub capacity: Bytes,
    /// Logical block: I/O is in whole multiples of it.
    pub logical_block: BlockSize,
    /// Physical block, where known.
    pub physical_block: Option<BlockSize>,
    /// Rotating medium, where known.
    pub rotational: Option<bool>,
    /// Largest single I/O; larger ones are split below us or refused by the backend.
    pub max_io: Option<Bytes>,
    /// Largest single read or write that can be sent: what is larger is refused. `None` where larger ones are
    /// split below us.
    pub max_command: Option<Bytes>,
    /// Most commands the device (or its queue) holds at once.
    pub device_depth: Option<u32>,
    /// Whether trim can be sent, or why not.
    pub trim: Result<(), String>,
    /// Whether zeros can be written without sending them, and the most that one such request may name (`None`: it
    /// has no limit, or is sent as several); or why not.
    pub write_zeroes: Result<Option<Bytes>, String>,
    /// Whether flush can be sent, or why not.
    pub flush: Result<(), String>,
    /// Whether a command without media can be sent, or why not.
    pub probe: Result<(), String>,
    /// Mounts, holders and the like.
    pub in_use: Vec<String>,
    /// A scratch file that lanemark itself made: writes to it need no consent.
    pub own_scratch: bool,
}

impl DeviceFacts {
    /// Where the kernel shows its content as a file: to look at it, or to fill it.
    #[must_use]
    pub fn content_path(&self) -> Option<&str> {
        match self.kind {
            DeviceKind::Block | DeviceKind::File => Some(&self.path),
            _ => self.block_path.as_deref(),
        }
    }

    /// Capacity in whole logical blocks.
    #[must_use]
    pub const fn blocks(&self) -> Blocks {
        self.logical_block.blocks_floor(self.capacity)
    }
}

//! What is asked of the safe layer, and what it tells; the same with and without SPDK.

use super::Lane;
use crate::proto::nvme::{IdentifyNamespace, NamespaceIds, NvmeStatus};
use std::time::Duration;

/// How the environment is started. Once per process: the first wins.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EnvOptions {
    /// Whether devices on the PCI bus will be attached.
    pub pci: bool,
    /// Width of the narrowest IOMMU in front of them in bits; absent: none, or unknown.
    pub iommu_bits: Option<u32>,
}

/// How a controller is attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttachOptions {
    /// I/O queues that will be opened: one per reactor and namespace.
    pub io_queues_count: u32,
    /// Entries per queue to ask for; the controller may grant fewer. A queue of n holds n - 1 commands.
    pub queue_entries: u32,
    /// How long attaching, and each admin command, may take.
    pub limit: Duration,
}

impl Default for AttachOptions {
    fn default() -> Self {
        Self {
            io_queues_count: 1,
            queue_entries: 4096,
            limit: Duration::from_secs(15),
        }
    }
}

/// An active namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Namespace {
    /// Its identifier, from 1.
    pub nsid: u32,
    /// Its Identify structure.
    pub identify: IdentifyNamespace,
    /// Its identifiers.
    pub ids: NamespaceIds,
}

/// How a queue pair is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QpairSpec {
    /// The namespace it serves.
    pub nsid: u32,
    /// Slots, each with its buffer.
    pub slots_count: u32,
    /// Bytes of a slot's buffer.
    pub slot_bytes: u32,
    /// Bytes of a slot's second buffer, for metadata or ranges; 0: none.
    pub extra_bytes: u32,
    /// Most commands in the device at once: entries less one are at least this where granted.
    pub depth: u32,
    /// Requests the driver must hold: more than the depth where it splits.
    pub requests_count: u32,
    /// Ring once per poll instead of once per command, where the transport has doorbells.
    pub deferred: bool,
    /// Queues asked of the controller in all, for the error.
    pub queues_asked_count: u32,
}

/// What moves with a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Payload {
    /// Nothing.
    None,
    /// This many bytes at the start of the slot's buffer.
    Data(u32),
    /// This many bytes of the slot's second buffer.
    Extra(u32),
    /// Data from the slot's buffer, metadata from its second buffer.
    DataAndExtra {
        /// Data.
        bytes: u32,
        /// Metadata.
        extra_bytes: u32,
    },
    /// The driver makes several commands of it; the command given is not looked at.
    Split(Split),
}

/// A read or write that is larger than one command may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Split {
    /// Whether it writes.
    pub write: bool,
    /// First block.
    pub lba: u64,
    /// Number of blocks.
    pub blocks: u32,
    /// Data.
    pub bytes: u32,
    /// Metadata in the second buffer; 0: none.
    pub extra_bytes: u32,
    /// Flags in CDW12's upper half.
    pub flags: u32,
}

/// Why a command was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// The driver has no room.
    Full,
    /// The queue or the controller is dead.
    Dead,
    /// The slot has a command in flight, does not exist, or its buffer is too small.
    Misuse,
}

/// Told of each completion, inside a poll.
pub trait Completions {
    /// The command of `slot` ended with `status`. The lane may be used to send the next.
    fn completed(&mut self, lane: &mut Lane<'_>, slot: u32, status: NvmeStatus);
}

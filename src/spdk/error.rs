//! What can go wrong with SPDK, and what to do about it.

use super::trid::TridError;
use crate::errno::Errno;
use crate::proto::nvme::{NvmeStatus, Truncated};

/// Why something of SPDK's could not be had. The hot path has its own small errors.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpdkError {
    /// The program was built without SPDK.
    #[error("built without SPDK: {why}")]
    Absent {
        /// The reason and the remedy.
        why: &'static str,
    },
    /// The environment (DPDK) did not start.
    #[error("SPDK's environment did not start: {errno}{said}{hint}")]
    Env {
        /// Its answer.
        errno: Errno,
        /// Its last complaint, with a leading separator; may be empty.
        said: String,
        /// What to do, with a leading separator; may be empty.
        hint: String,
    },
    /// Something the machine must offer first.
    #[error(transparent)]
    Preflight(#[from] super::preflight::PreflightError),
    /// Not a transport ID.
    #[error(transparent)]
    Id(#[from] TridError),
    /// SPDK was built without the transport.
    #[error(
        "{device}: this SPDK has no {transport} transport; rebuild SPDK with it (scripts/install-spdk builds PCIE, TCP and VFIOUSER)"
    )]
    Transport {
        /// The device.
        device: String,
        /// The transport's name.
        transport: &'static str,
    },
    /// No controller answered there.
    #[error("{device}: cannot attach{said}{hint}")]
    Attach {
        /// The device.
        device: String,
        /// The driver's last complaint, with a leading separator; may be empty.
        said: String,
        /// What to do, with a leading separator; may be empty.
        hint: String,
    },
    /// Attaching took too long.
    #[error("{device}: no answer within {limit_s} s while attaching; is the target alive?{said}")]
    AttachTimeout {
        /// The device.
        device: String,
        /// What was waited.
        limit_s: u64,
        /// The driver's last complaint, with a leading separator; may be empty.
        said: String,
    },
    /// A discovery controller has no namespaces.
    #[error(
        "{device}: this is a discovery controller, it has no namespaces; add subnqn:NQN of the subsystem to the transport ID"
    )]
    Discovery {
        /// The device.
        device: String,
    },
    /// An admin command failed.
    #[error("{device}: {what} failed: {status}")]
    Admin {
        /// The device.
        device: String,
        /// Which command.
        what: &'static str,
        /// How it ended.
        status: NvmeStatus,
    },
    /// An admin command was not answered, or could not be sent.
    #[error("{device}: {what} got no answer; the controller is gone or stuck")]
    AdminLost {
        /// The device.
        device: String,
        /// Which command.
        what: &'static str,
    },
    /// A structure came short.
    #[error("{device}: {cut}")]
    Short {
        /// The device.
        device: String,
        /// What was cut.
        cut: Truncated,
    },
    /// No I/O queue left.
    #[error(
        "{device}: no I/O queue left: the controller granted {granted_count}, {asked_count} are needed; use fewer reactors{said}"
    )]
    NoQueue {
        /// The device.
        device: String,
        /// Queues granted to us.
        granted_count: u32,
        /// Queues that the run needs.
        asked_count: u32,
        /// The driver's last complaint, with a leading separator; may be empty.
        said: String,
    },
    /// No DMA memory.
    #[error(
        "{device}: no DMA memory for {bytes} bytes on {node}: more free hugepages are needed there (see lanemark check), or less depth, block size or reactors"
    )]
    NoMemory {
        /// The device.
        device: String,
        /// What was asked.
        bytes: u64,
        /// NUMA node in words.
        node: String,
    },
}

//! What kinds of rings there are: entry sizes, how completions are delivered, and why one cannot be made.

use super::uapi as k;
use crate::errno::Errno;

/// The size of entries: 64 and 16 bytes, or 128 and 32 for NVMe passthrough.
pub trait Entries {
    /// Submission entry.
    type Sqe: Copy + std::fmt::Debug;
    /// Completion entry.
    type Cqe: Copy + std::fmt::Debug;
    /// Flags of `io_uring_setup` that ask for these sizes.
    const SETUP_FLAGS: u32;
    /// What every completion has.
    #[doc(hidden)]
    fn base(cqe: &Self::Cqe) -> k::Cqe;
}

/// 64-byte submissions, 16-byte completions.
#[derive(Debug, Clone, Copy)]
pub struct Plain;

/// 128-byte submissions, 32-byte completions.
#[derive(Debug, Clone, Copy)]
pub struct Wide;

impl Entries for Plain {
    type Sqe = k::Sqe;
    type Cqe = k::Cqe;
    const SETUP_FLAGS: u32 = 0;

    #[inline]
    fn base(cqe: &k::Cqe) -> k::Cqe {
        *cqe
    }
}

impl Entries for Wide {
    type Sqe = k::Sqe128;
    type Cqe = k::Cqe32;
    const SETUP_FLAGS: u32 = k::IORING_SETUP_SQE128 | k::IORING_SETUP_CQE32;

    #[inline]
    fn base(cqe: &k::Cqe32) -> k::Cqe {
        cqe.base
    }
}

/// How completions are delivered, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskRun {
    /// Only when we ask for events: SINGLE_ISSUER and DEFER_TASKRUN (6.1).
    Deferred,
    /// At any system call, without an interrupt: COOP_TASKRUN (5.19).
    Cooperative,
    /// At any time.
    Interrupting,
}

impl TaskRun {
    pub(super) const ALL: [TaskRun; 3] = [Self::Deferred, Self::Cooperative, Self::Interrupting];

    pub(super) const fn setup_flags(self) -> u32 {
        match self {
            Self::Deferred => {
                k::IORING_SETUP_SUBMIT_ALL
                    | k::IORING_SETUP_SINGLE_ISSUER
                    | k::IORING_SETUP_DEFER_TASKRUN
                    | k::IORING_SETUP_TASKRUN_FLAG
            }
            Self::Cooperative => {
                k::IORING_SETUP_SUBMIT_ALL
                    | k::IORING_SETUP_COOP_TASKRUN
                    | k::IORING_SETUP_TASKRUN_FLAG
            }
            Self::Interrupting => 0,
        }
    }

    /// The words in records.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Deferred => "deferred task work",
            Self::Cooperative => "cooperative task work (kernel without DEFER_TASKRUN)",
            Self::Interrupting => "interrupting task work (kernel without COOP_TASKRUN)",
        }
    }
}

/// Why a ring could not be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RingError {
    /// More entries than a ring may have.
    #[error(
        "a ring holds at most {} entries, {asked} are asked for",
        k::IORING_MAX_ENTRIES
    )]
    TooDeep {
        /// Entries asked for.
        asked: u32,
    },
    /// A kernel without what we cannot do without.
    #[error("this kernel's io_uring is too old (Linux 5.11 is needed)")]
    TooOld,
    /// A call failed.
    #[error("{what} failed: {errno}")]
    Kernel {
        /// Which.
        what: &'static str,
        /// Why.
        errno: Errno,
    },
}

impl RingError {
    pub(super) const fn kernel(what: &'static str, errno: Errno) -> Self {
        Self::Kernel { what, errno }
    }
}

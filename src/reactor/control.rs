//! The few words that reactors, collector and signal handlers share.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// Why a step was stopped before its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum StopCause {
    /// Nobody asked.
    None = 0,
    /// The step has come to the steady state it was to run until.
    Steady = 1,
    /// So many I/Os failed that the job's limit was met.
    ErrorLimit = 2,
    /// SIGINT, SIGTERM or SIGHUP.
    Signal = 3,
    /// The device is gone, or a reactor failed.
    Gone = 4,
    /// A second signal: do not even wait for what is in flight.
    Abort = 5,
}

/// Shared by everything that runs a step. All accesses are relaxed: the words are independent hints, and
/// results travel through thread joins.
#[derive(Debug, Default)]
pub struct Control {
    cause: AtomicU8,
    errors_count: AtomicU64,
    start_tick: AtomicU64,
}

impl Control {
    /// Asks every reactor to stop. A weightier cause replaces a lighter one.
    pub fn stop(&self, cause: StopCause) {
        self.cause.fetch_max(cause as u8, Ordering::Relaxed);
    }

    /// Why to stop.
    #[inline]
    #[must_use]
    pub fn cause(&self) -> StopCause {
        match self.cause.load(Ordering::Relaxed) {
            0 => StopCause::None,
            1 => StopCause::Steady,
            2 => StopCause::ErrorLimit,
            3 => StopCause::Signal,
            4 => StopCause::Gone,
            _ => StopCause::Abort,
        }
    }

    /// Counts a failure over all reactors; the number so far, this one included.
    pub fn count_error(&self) -> u64 {
        self.errors_count.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Failures so far.
    #[must_use]
    pub fn errors_count(&self) -> u64 {
        self.errors_count.load(Ordering::Relaxed)
    }

    /// Sets the common start (never 0); release, so that what the leader did before is seen.
    pub(super) fn set_start(&self, tick: u64) {
        self.start_tick.store(tick, Ordering::Release);
    }

    /// The common start; 0 until it is set.
    pub(super) fn start(&self) -> u64 {
        self.start_tick.load(Ordering::Acquire)
    }

    /// Ready for the next step; a signal stays.
    pub fn next_step(&self) {
        if self.cause() < StopCause::Signal || self.cause() == StopCause::Gone {
            self.cause.store(0, Ordering::Relaxed);
        }
        self.errors_count.store(0, Ordering::Relaxed);
        self.start_tick.store(0, Ordering::Relaxed);
    }
}

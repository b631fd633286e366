//! What a reactor leaves behind.

use super::control::StopCause;
use crate::measure::{ErrorTable, Gaps, Interval, Slowest, StampBound, StreamTally};
use crate::record::StampMode;
use crate::request::{Io, Status};
use crate::workload::Generator;

/// An I/O that was in flight when the reactor gave up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Abandoned {
    /// What it was.
    pub io: Io,
    /// How long it had been in flight.
    pub age_ns: u64,
    /// How long ago its arrival was due; absent in the closed loop.
    pub scheduled_age_ns: Option<u64>,
    /// Its stream's number in the step.
    pub stream: u32,
}

/// What one stream did.
#[derive(Debug, Clone)]
pub struct StreamOutcome {
    /// Its number in the step.
    pub index: u32,
    /// Successes in the window.
    pub tally: StreamTally,
    /// Its generator, which knows what it has given.
    pub generator: Generator,
    /// When its last I/O completed, nanoseconds of the clock; only where it ran out of I/Os.
    pub ended_ns: Option<u64>,
    /// Arrivals that were due but never issued.
    pub backlog_count: u64,
    /// How long the oldest of them had waited.
    pub backlog_oldest_ns: u64,
    /// Failures, from start to end.
    pub failed_count: u64,
}

/// What one reactor did.
#[derive(Debug)]
pub struct ReactorOutcome {
    /// Its number in the step.
    pub index: u32,
    /// The CPU it ran on.
    pub cpu: Option<u32>,
    /// When the window began, nanoseconds of its clock.
    pub window_start_ns: u64,
    /// When it ended; equal to the start where it never began.
    pub window_end_ns: u64,
    /// What ended the step early.
    pub cause: StopCause,
    /// A queue was found dead: the number in the step of a stream that issues there, and the status.
    pub gone: Option<(u32, Status)>,
    /// It gave up on I/Os that did not complete in time.
    pub stuck: bool,
    /// I/Os submitted, from start to end.
    pub submitted_count: u64,
    /// Successes, from start to end.
    pub completed_count: u64,
    /// Failures, from start to end.
    pub failed_count: u64,
    /// Failures inside the window, and the sum of their latencies.
    pub window_failed_count: u64,
    /// Sum of the latencies of failures inside the window.
    pub window_failed_sum_ns: u64,
    /// Still in flight at the end, oldest first.
    pub abandoned: Vec<Abandoned>,
    /// Failures by status.
    pub errors: ErrorTable,
    /// The slowest I/Os of the window.
    pub slowest: Slowest,
    /// Gaps between polls in the window; empty for queues that sleep.
    pub gaps: Gaps,
    /// Stamping in the window.
    pub stamp_mode: StampMode,
    /// Sampled spans of stamps.
    pub stamp_bound: StampBound,
    /// Nanoseconds of work inside the window.
    pub busy_ns: u64,
    /// CPU time of the kernel's workers on this reactor's behalf, over the window; beside `busy_ns`. `None`
    /// where the window was too short to tell.
    pub worker_ns: Option<u64>,
    /// Whether `busy_ns` is the thread's CPU time.
    pub busy_is_cpu_time: bool,
    /// Polls in the window.
    pub polls_count: u64,
    /// Integral of the I/Os in flight over the window, in I/O-nanoseconds.
    pub in_flight_area_ns: u128,
    /// Longest latency among completions after the window.
    pub drain_max_ns: u64,
    /// Longest time in flight among failures, from start to end.
    pub failed_max_ns: u64,
    /// The last interval, which never went through the port.
    pub last_interval: Box<Interval>,
    /// Its streams.
    pub streams: Vec<StreamOutcome>,
}

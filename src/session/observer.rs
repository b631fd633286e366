//! What a run tells while it goes on. Called from the collector's thread, never from a reactor's.

/// What the run is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Opening devices and filling buffers.
    Setup,
    /// Running, not counting yet.
    Ramp,
    /// The window.
    Measure,
    /// Waiting for what is in flight.
    Drain,
    /// Nothing is sent, so that the device cools down.
    CoolDown,
}

/// One moment of a run, about once a second and at every change of phase.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    /// Name of the step.
    pub step: String,
    /// Place of the step, counted from 1.
    pub step_number: usize,
    /// Steps in all.
    pub steps_count: usize,
    /// What it is doing.
    pub phase: Phase,
    /// Seconds since the step began.
    pub elapsed_s: f64,
    /// Seconds the step will take; absent where a count ends it.
    pub total_s: Option<f64>,
    /// Intervals of this step complete so far: the figures below are new when it has grown.
    pub intervals_count: usize,
    /// I/Os a second over the last interval, successes only; absent before the first is complete.
    pub iops: Option<f64>,
    /// Bytes a second over the last interval; absent like `iops`.
    pub bytes_per_s: Option<f64>,
    /// Median latency of the last interval; absent without samples.
    pub p50_ns: Option<u64>,
    /// 99th percentile of the last interval; absent without samples.
    pub p99_ns: Option<u64>,
    /// I/Os in flight.
    pub in_flight_count: u64,
    /// Failures so far.
    pub errors_count: u64,
}

/// Follows a run.
pub trait Observer: Send {
    /// Told what is going on now.
    fn snapshot(&mut self, now: &Snapshot);
    /// A step has ended.
    fn step_done(&mut self, step: &crate::record::Step);
    /// The steps of the whole run are known: about how long each takes, in seconds.
    fn planned(&mut self, _steps_s: &[f64]) {}
}

/// Follows nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Observer for Silent {
    fn snapshot(&mut self, _now: &Snapshot) {}
    fn step_done(&mut self, _step: &crate::record::Step) {}
}

//! The validated job: no unresolved default, every size in blocks of its device.

use crate::backend::Batch;
pub use crate::measure::StampChoice;
use crate::units::Nanos;
use crate::workload::StreamSpec;

/// The whole job.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The job's name.
    pub name: String,
    /// The seed everything is derived from.
    pub seed: u64,
    /// Steps in order.
    pub steps: Vec<StepPlan>,
    /// Doubts that arose while planning, such as dropped shares of a bssplit.
    pub notes: Vec<crate::record::Warning>,
}

/// One workload, ready to run.
#[derive(Debug, Clone, PartialEq)]
pub struct StepPlan {
    /// Its name.
    pub name: String,
    /// One line that says what it does, with resolved values.
    pub summary: String,
    /// Every stream on every device; `reactor_of` says who runs it.
    pub streams: Vec<StreamSpec>,
    /// The reactor of each stream, by index.
    pub reactor_of: Vec<u32>,
    /// Number of reactors.
    pub reactors_count: u32,
    /// CPUs the user asked for, in order of reactors; empty: the session chooses.
    pub cpus: Vec<u32>,
    /// Batching.
    pub batch: Batch,
    /// Times and limits.
    pub limits: Limits,
    /// How latency is stamped.
    pub stamp: StampChoice,
}

/// When a step starts to count, and when it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Not counted at the start.
    pub ramp: Nanos,
    /// Length of the window; absent: until every stream has met its quota.
    pub runtime: Option<Nanos>,
    /// How long after the end of the window I/Os in flight are waited for.
    pub grace: Nanos,
    /// The step ends when this many I/Os have failed; absent: never.
    pub max_errors: Option<u64>,
}

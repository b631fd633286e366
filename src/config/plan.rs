//! The validated job: no unresolved default, every size in blocks of its device.

use super::expect::Expectation;
use crate::backend::Batch;
pub use crate::measure::StampChoice;
use crate::units::{BlockSize, Nanos};
use crate::workload::{OpMix, StreamSpec};

/// The whole job.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The job's name.
    pub name: String,
    /// The seed everything is derived from.
    pub seed: u64,
    /// The devices, in the order of [`StreamSpec::device_index`].
    pub devices: Vec<PlannedDevice>,
    /// Steps in order.
    pub steps: Vec<StepPlan>,
    /// Doubts that arose while planning, such as dropped shares of a bssplit.
    pub notes: Vec<crate::record::Warning>,
}

/// What the plan took for granted of one device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedDevice {
    /// As the user named it.
    pub path: String,
    /// Logical block.
    pub logical_block: BlockSize,
    /// Capacity in logical blocks.
    pub blocks: u64,
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
    /// Criteria that the result has to meet.
    pub expect: Vec<Expectation>,
    /// Most I/Os in flight at once: the sum of the depths of all streams.
    pub in_flight_count: u64,
}

impl StepPlan {
    /// Whether the step changes what is on a device, or flushes it: then it needs consent.
    #[must_use]
    pub fn writes(&self) -> bool {
        self.streams.iter().any(|stream| stream.ops != OpMix::Read)
    }
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

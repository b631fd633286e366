//! The validated job: no unresolved default, every size in blocks of its device.

use super::expect::Expectation;
use super::rounds::{Derive, Rounds, SteadySeconds};
use crate::backend::Batch;
pub use crate::measure::StampChoice;
use crate::units::{BlockSize, Nanos};
use crate::workload::{OpMix, StreamSpec, stream_seed};

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
    /// What the job measures, in a line.
    pub about: Option<String>,
    /// Steps that are not run, each with the reason.
    pub left_out: Vec<LeftOut>,
    /// Where the steps are one round of many.
    pub rounds: Option<Rounds>,
    /// Figures of the whole.
    pub derive: Vec<Derive>,
    /// How long it takes and how much it writes.
    pub estimate: super::Estimate,
}

impl Plan {
    /// About how long each step takes that is run, in seconds: with rounds, those of all of them.
    #[must_use]
    pub fn all_steps_s(&self) -> Vec<f64> {
        let most = self.rounds.as_ref().map_or(1, |rounds| rounds.most_count);
        let mut all = Vec::new();
        for round in 0..most {
            for (step, step_s) in self.steps.iter().zip(&self.estimate.steps_s) {
                if round == 0 || !step.origin.is_precondition {
                    all.push(*step_s);
                }
            }
        }
        all
    }
}

/// A step that is not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// Its name.
    pub step: String,
    /// Its name as written.
    pub written: String,
    /// Why.
    pub why: String,
}

/// Where a step comes from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Origin {
    /// Its name as written: all points of a sweep share it.
    pub step: String,
    /// The swept keys with their values, as written.
    pub point: Vec<(String, String)>,
    /// Which repetition, from 0.
    pub pass_index: u32,
    /// Whether it is the preconditioning, which is not measured for its own sake.
    pub is_precondition: bool,
    /// Shares of a mix that the device cannot do, as people read them: the rest was renormalised.
    pub dropped: Vec<String>,
}

/// Who decides what is left out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Choices {
    /// Only the steps of these names, expanded or as written; empty: all.
    pub only: Vec<String>,
    /// Leave out what writes.
    pub read_only: bool,
    /// Leave out by name what a device cannot do; otherwise that is refused, but for points of a sweep.
    pub lenient: bool,
    /// CPUs that may be used; absent where it does not matter.
    pub cpus_count: Option<usize>,
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
    /// Where it comes from.
    pub origin: Origin,
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
    /// Nothing is sent for so long before the next step.
    pub cool_down: Nanos,
    /// Whether the step ends early once its seconds are steady.
    pub steady: Option<SteadySeconds>,
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

    /// The same step in a later round: another name, and other random numbers.
    #[must_use]
    pub fn in_round(&self, round_index: u32) -> Self {
        let mut step = self.reseeded(round_index);
        step.name = format!("{}, round {}", self.name, u64::from(round_index) + 1);
        step
    }

    /// The same step with other random numbers: the same places again would be answered by a cache.
    #[must_use]
    pub fn reseeded(&self, number: u32) -> Self {
        let mut step = self.clone();
        for stream in &mut step.streams {
            stream.seed = stream_seed(stream.seed, number, 0);
        }
        step
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

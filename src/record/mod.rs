//! The versioned result of a run: what is written as JSON and what every report reads.
//!
//! A figure without a sample is absent (`null`), never 0. Every name ends in its unit.

mod comparison;
mod conditions;
mod environment;
mod figures;
mod lanes;
mod path;
mod scale;
mod schema;
mod step;
mod suite;
mod verdict;

pub use comparison::{
    Against, Aggregate, COMPARISON_KIND, ComparedIndex, ComparedMetric, ComparedSide, ComparedStep,
    Comparison, ComparisonDesign, ComparisonVerdict, Confounder, Efficiency, Estimate,
    IndexAgainst, MergedHistogram, Saturation, SideSaturation, StepSide,
};
pub use conditions::{
    Alarm, AlarmKind, Conditions, CpuConditions, DeviceConditions, Health, OthersIo, WriteCache,
    WriteCacheState,
};
pub use environment::{Environment, Tool};
pub use figures::{Direction, Latency, Second, SecondDirection};
pub use lanes::{LaneBurn, LaneDevice, LaneMeasurement, LanePoint, LanesReport, SharedLink};
pub use path::{
    CounterDelta, DevicePath, Hop, LinkChange, LinkKind, LinkState, PathFinding, PathFindingKind,
    Unseen,
};
pub use scale::{DEVICES_KEY, Scale, ScaleDepth, ScaleDrive, ScaleNodes, ScaleRow, SharedHop};
pub use schema::schema;
pub use step::{
    BackendUse, Depth, DeviceUse, ErrorTally, MixCheck, PollGap, ReactorUse, SlowIo, Stamp,
    StampMode, Step, StreamUse,
};
pub use verdict::{
    Ceiling, CeilingKind, Ceilings, Criterion, DirectionCeilings, IopsBand, Predicted, RateBand,
    ShareOfCeiling, Verdict, VerdictKind,
};

pub use suite::{Derived, DerivedValue, LeftOut, Origin, PointValue, Steady, SteadyCell, SuiteUse};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Version of the layout below. Raised when a field changes its meaning or goes away.
pub const SCHEMA_VERSION: u32 = 1;

/// How a run or a step ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// Everything asked was measured.
    Finished,
    /// A signal ended it; what was measured until then is kept.
    Interrupted,
    /// An I/O or run error ended it, or I/Os failed.
    Failed,
    /// Nothing was started: bad input, or the guard said no.
    Refused,
}

/// An error as records carry it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Failure {
    /// Short machine-readable kind, such as `usage`, `device`, `stuck`, `gone`.
    pub kind: String,
    /// One sentence that names the device or path.
    pub text: String,
    /// What the user can do next; empty where there is nothing.
    pub next_step: String,
    /// The exit code that goes with it.
    pub exit_code: u8,
}

/// A doubt about a figure, with its cause and remedy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Warning {
    /// Stable machine-readable kind, in kebab case.
    pub kind: String,
    /// What was found.
    pub text: String,
    /// What to do about it.
    pub next_step: String,
}

/// The result of one invocation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Record {
    /// [`SCHEMA_VERSION`] at the time of writing.
    pub schema_version: u32,
    /// The command line that made it, the program's name first; empty in records of older versions.
    #[serde(default)]
    pub command: Vec<String>,
    /// How the whole run ended.
    pub status: Outcome,
    /// Why it did not finish.
    pub error: Option<Failure>,
    /// The program.
    pub tool: Tool,
    /// The machine.
    pub environment: Environment,
    /// The resolved job, echoed.
    pub job: serde_json::Value,
    /// The seed that repeats the run.
    pub seed: u64,
    /// The suite; absent for any other job.
    #[serde(default)]
    pub suite: Option<SuiteUse>,
    /// What the job measures, in a line.
    #[serde(default)]
    pub about: Option<String>,
    /// What the verb that searched or compared its own steps comes to, a sentence a line; empty for a job.
    #[serde(default)]
    pub answer: Vec<String>,
    /// One entry per step that was started.
    pub steps: Vec<Step>,
    /// Steps that were not run, by name.
    #[serde(default)]
    pub left_out: Vec<LeftOut>,
    /// Figures of several steps.
    #[serde(default)]
    pub derived: Vec<Derived>,
    /// Whether rounds of the steps came to a steady state; absent without rounds.
    #[serde(default)]
    pub steady: Option<Steady>,
    /// Devices from one to all at once; absent for everything but `scale`.
    #[serde(default)]
    pub scale: Option<Scale>,
    /// Doubts about the run as a whole.
    pub warnings: Vec<Warning>,
}

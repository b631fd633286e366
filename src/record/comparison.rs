//! A comparison: what two sides (or several saved records) came to, and how far apart they are.

use super::{Environment, Failure, Outcome, Step, Tool, Warning};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What [`Comparison::kind`] holds: it tells a comparison from the record of a run.
pub const COMPARISON_KIND: &str = "comparison";

/// The result of one `lanemark compare`. The first side is the baseline (A); every other side is held
/// against it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// [`super::SCHEMA_VERSION`] at the time of writing.
    pub schema_version: u32,
    /// [`COMPARISON_KIND`].
    pub kind: String,
    /// How it ended. What was measured before a failure or a signal is kept.
    pub status: Outcome,
    /// Why it did not finish.
    pub error: Option<Failure>,
    /// The program.
    pub tool: Tool,
    /// The machine.
    pub environment: Environment,
    /// The resolved job of the first side, echoed; absent for saved records.
    pub job: serde_json::Value,
    /// The seed that repeats it.
    pub seed: u64,
    /// How it was measured and judged.
    pub design: ComparisonDesign,
    /// The sides, the baseline first.
    pub sides: Vec<ComparedSide>,
    /// What differs between the sides besides what is compared.
    pub confounders: Vec<Confounder>,
    /// The steps that all sides have, in the order of the job.
    pub steps: Vec<ComparedStep>,
    /// Geometric means over the steps; empty where there is one step.
    pub indices: Vec<ComparedIndex>,
    /// Depth at which each side saturates, for steps that differ only in depth.
    pub saturations: Vec<Saturation>,
    /// Devices of a side against each other, and one side as the sum of its members.
    pub aggregates: Vec<Aggregate>,
    /// Criteria of `--fail-if` that were not met.
    pub misses: Vec<String>,
    /// One sentence for each side.
    pub conclusions: Vec<String>,
    /// Doubts about the comparison as a whole.
    pub warnings: Vec<Warning>,
}

/// How the sides were measured and judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparisonDesign {
    /// `live`, or `saved`: records that were measured at other times.
    pub mode: String,
    /// The order in which the sides were measured, such as `A B B A, B A A B`; empty for saved records.
    pub order: String,
    /// Rounds at most.
    pub rounds_asked_count: u32,
    /// Rounds finished on both sides, in every step.
    pub rounds_done_count: u32,
    /// Half-width of the intervals, relative to the baseline, at which the rounds end early; absent where
    /// all rounds are run.
    pub precision_pct: Option<f64>,
    /// Sides within this of each other count as equal.
    pub equal_within_pct: f64,
    /// Confidence of the intervals.
    pub confidence_pct: f64,
    /// Pause before every window.
    pub cool_down_s: f64,
    /// Why it ended: `precision`, `rounds`, `failed`, `interrupted`, `saved`.
    pub ended_by: String,
    /// How intervals were computed, in one sentence.
    pub method: String,
}

/// One side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedSide {
    /// `A`, `B`, … as tables name it.
    pub label: String,
    /// As the user named it: devices with their backend, or the file of a saved record.
    pub name: String,
    /// Windows or records that were measured.
    pub runs_count: u32,
}

/// Something that differs between the sides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Confounder {
    /// What: `backend`, `link of 0000:01:00.0`, `firmware`.
    pub name: String,
    /// What each side has, in the order of the sides; absent where a side has none.
    pub values: Vec<Option<String>>,
    /// Whether it makes the figures incomparable rather than being what is compared.
    pub forbids: bool,
}

/// One step on all sides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedStep {
    /// Its name in the job.
    pub name: String,
    /// The workload in one line.
    pub summary: String,
    /// Depth that was asked for, all streams together.
    pub depth_count: u64,
    /// Each side, in the order of the sides.
    pub sides: Vec<StepSide>,
    /// The metrics, in the order of tables.
    pub metrics: Vec<ComparedMetric>,
}

/// One side of a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StepSide {
    /// Place in `Comparison::sides`.
    pub side_index: u32,
    /// The record of its first window, in full: device, backend, path, plan, warnings.
    pub first: Step,
    /// Latencies of all its windows together, by direction.
    pub histograms: Vec<MergedHistogram>,
    /// Kinds of warnings that any of its windows raised.
    pub warnings: Vec<String>,
}

/// A distribution over several windows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MergedHistogram {
    /// `read`, `write`, `trim`, `writezeroes`, `flush`.
    pub direction: String,
    /// `[upper bound of the bucket in ns, count]`, ascending.
    pub histogram: Vec<(u64, u64)>,
}

/// One metric of a step on all sides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedMetric {
    /// `read`, `write`, `trim`, `writezeroes`, `flush`; empty for what belongs to the step as a whole.
    pub direction: String,
    /// `iops`, `bandwidth`, `mean`, `p50`, `p99`, `p99_9`, `busy`, and with a rate `scheduled_mean`,
    /// `scheduled_p50`, `scheduled_p99`, `scheduled_p99_9`.
    pub metric: String,
    /// Unit of all values: `iops`, `bytes_per_s`, `ns`, `ns_per_io`.
    pub unit: String,
    /// Whether more is better.
    pub more_is_better: bool,
    /// Value of each round (of each record, for saved ones), for each side; absent where it had no sample.
    pub rounds: Vec<Vec<Option<f64>>>,
    /// Mean of the rounds, for each side.
    pub means: Vec<Option<f64>>,
    /// Every side but the first against the first.
    pub against: Vec<Against>,
}

/// One side held against the baseline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Against {
    /// Place in `Comparison::sides`.
    pub side_index: u32,
    /// This side less the baseline, in the metric's unit.
    pub difference: Estimate,
    /// This side divided by the baseline.
    pub ratio: Estimate,
    /// What may be said.
    pub verdict: ComparisonVerdict,
    /// Why no more may be said; empty where the figures say it.
    pub why: String,
}

/// A figure with its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Estimate {
    /// The best single figure; absent where a side has no sample.
    pub value: Option<f64>,
    /// Lower end of the interval; absent where there are too few rounds for one.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
}

/// What may be said of two sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ComparisonVerdict {
    /// The baseline is better: the interval of the difference lies on its side of zero.
    ABetter,
    /// The other side is better.
    BBetter,
    /// The interval holds zero and is too wide to call the sides equal.
    NoDifferenceShown,
    /// Equivalence was shown: the difference is smaller than what counts as equal.
    Equal,
    /// There is nothing to judge by: too few runs a side for an interval, or no sample.
    NotJudged,
}

/// The geometric mean of a metric over all steps, relative to the baseline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedIndex {
    /// The metric and its direction: `read iops`.
    pub metric: String,
    /// Steps that went in.
    pub steps_count: u32,
    /// Whether more is better.
    pub more_is_better: bool,
    /// Every side but the first.
    pub against: Vec<IndexAgainst>,
}

/// The index of one side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IndexAgainst {
    /// Place in `Comparison::sides`.
    pub side_index: u32,
    /// Geometric mean over the steps of this side divided by the baseline.
    pub ratio: Estimate,
    /// What may be said.
    pub verdict: ComparisonVerdict,
}

/// Steps that differ only in depth: where each side stops to gain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Saturation {
    /// The workload without its depth.
    pub workload: String,
    /// The depths, ascending.
    pub depths_count: Vec<u64>,
    /// Each side.
    pub sides: Vec<SideSaturation>,
}

/// Where one side saturates.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SideSaturation {
    /// Place in `Comparison::sides`.
    pub side_index: u32,
    /// Mean IOPS, all directions together, at each depth.
    pub at_depth_iops: Vec<f64>,
    /// Least depth with 97 % of the most IOPS; absent where the side still gained at the last depth.
    pub saturation_depth_count: Option<u64>,
    /// Whether IOPS fall by more than 3 % beyond their best depth.
    pub falls_beyond: bool,
}

/// A side of several devices, by device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Aggregate {
    /// The step.
    pub step: String,
    /// Place in `Comparison::sides`.
    pub side_index: u32,
    /// The devices.
    pub members: Vec<String>,
    /// Mean IOPS of each.
    pub member_iops: Vec<f64>,
    /// Their sum.
    pub sum_iops: f64,
    /// Least member divided by the mean of the members: 1 is perfectly fair.
    pub fairness_ratio: f64,
    /// The other side divided by the sum of these members: what a volume of them makes of its members.
    pub efficiency: Option<Efficiency>,
}

/// One side as a share of the sum of the other's members.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Efficiency {
    /// Place in `Comparison::sides` of the volume.
    pub volume_index: u32,
    /// Volume divided by the sum of the members, with its interval.
    pub ratio: Estimate,
}

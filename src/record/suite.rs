//! What holds several steps together: where a step comes from, what was left out, what was derived, and
//! whether it was steady.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where a step comes from.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Origin {
    /// Its name as written in the job; all points of a sweep and all repetitions share it.
    pub step: String,
    /// The swept keys with their values, as written, in the order of the sweep.
    pub point: Vec<PointValue>,
    /// Which repetition, from 0.
    pub pass_index: u32,
    /// Which round, from 0; absent without rounds.
    pub round_index: Option<u32>,
    /// Whether it only prepared the device.
    pub is_precondition: bool,
    /// Shares of its mix that the device cannot do; the rest was renormalised, and its figures compare
    /// with nothing that has all shares.
    pub dropped: Vec<String>,
}

/// A swept key at one point.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PointValue {
    /// The key.
    pub key: String,
    /// Its value, as written.
    pub value: String,
}

/// A step that was not run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeftOut {
    /// Its name.
    pub step: String,
    /// Why.
    pub why: String,
}

/// What was run, where it was one of the suites.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SuiteUse {
    /// The suite, by name or path.
    pub name: String,
    /// A first look: short windows, nothing preconditioned.
    pub is_quick: bool,
    /// The steps that were asked for; empty: all.
    pub only: Vec<String>,
}

/// A figure of several steps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Derived {
    /// Its name.
    pub name: String,
    /// The group of steps it is of; absent where it is of all of them.
    pub group: Option<String>,
    /// How it was made: `geomean`, `span`, `best` and so on.
    pub kind: String,
    /// The figure of the steps that it was made of.
    pub of: String,
    /// The unit of every value that carries none of its own.
    pub unit: String,
    /// What it came to.
    pub values: Vec<DerivedValue>,
    /// Whether it may be compared with the same figure of another device.
    pub is_comparable: bool,
    /// Why not; empty where it may.
    pub why_not: Vec<String>,
    /// The steps it was made of.
    pub steps: Vec<String>,
}

/// One number of a derived figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DerivedValue {
    /// What it is: `min`, `mean`, `max`, `geomean`, `stream 0` and so on.
    pub name: String,
    /// The number; absent without samples.
    pub value: Option<f64>,
    /// Its own unit, where it is not that of the figure.
    pub unit: Option<String>,
    /// The step where it was reached, where that is one.
    pub at: Option<String>,
}

/// Whether it was steady, and the evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Steady {
    /// Whose definition: `snia-pts` (rounds of steps) or `fio` (seconds of one step).
    pub definition: String,
    /// The figure that was looked at.
    pub of: String,
    /// Its unit.
    pub unit: String,
    /// Whether all of it was steady at the end.
    pub is_attained: bool,
    /// Rounds, or seconds, in all.
    pub samples_count: usize,
    /// Rounds, or seconds, in the window.
    pub window_count: usize,
    /// The limits in words.
    pub limit: String,
    /// What was tracked, each with its evidence.
    pub cells: Vec<SteadyCell>,
}

/// One tracked series.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SteadyCell {
    /// The step.
    pub step: String,
    /// Every sample in order; absent where nothing was measured.
    pub values: Vec<Option<f64>>,
    /// Where the last window begins; absent while there were too few samples.
    pub window_index: Option<usize>,
    /// Mean over the last window.
    pub mean: Option<f64>,
    /// Largest minus smallest in the window, in percent of the mean.
    pub range_pct: Option<f64>,
    /// Rise of the fitted line over the window, in percent of the mean; may be negative.
    pub slope_pct: Option<f64>,
    /// The fitted line at the first sample of the window.
    pub line_first: Option<f64>,
    /// The fitted line at the last sample of the window.
    pub line_last: Option<f64>,
    /// Whether this series was steady.
    pub is_steady: bool,
}

impl SteadyCell {
    /// A series with too few samples for a window: not steady, and nothing is known of one.
    #[must_use]
    pub fn without_window(step: &str, values: Vec<Option<f64>>) -> Self {
        Self {
            step: step.to_owned(),
            values,
            window_index: None,
            mean: None,
            range_pct: None,
            slope_pct: None,
            line_first: None,
            line_last: None,
            is_steady: false,
        }
    }
}

//! From the job the user wrote to the plan the engine runs.
//!
//! `yaml` (or the flags of the command line) gives a [`Job`]: texts with their places. [`Job::check`]
//! refuses what is wrong without any device; [`plan()`] fits the job to devices and leaves no default open.

mod batch;
mod echo;
mod echo_json;
mod error;
mod expect;
mod fit;
mod intent;
mod key;
mod lookup;
mod place;
mod plan;
mod planner;
mod resolve;
mod resolve_stream;
mod schema;
mod share;
mod suggest;
mod target;
mod totals;
mod value;
mod yaml;

pub use batch::batch_from_text;
pub use echo::describe;
pub use echo_json::{plan_json, step_json};
pub use error::{ConfigError, PlanError};
pub use expect::{Direction, Expectation, Figure, FigureKind, Relation};
pub use key::{JOB_KEYS, Key, STEP_KEYS, STREAM_KEYS};
pub use place::{At, Place, Word};
pub use plan::{Limits, Plan, PlannedDevice, StampChoice, StepPlan};
pub use planner::plan;
pub use schema::{BackendChoice, Job, Keys, Step, Streams};

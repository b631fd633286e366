//! From the job the user wrote to the plan the engine runs.
//!
//! `yaml` (or the flags of the command line) gives a [`Job`]: texts with their places. [`Job::check`]
//! refuses what is wrong without any device; [`plan()`] fits the job to devices and leaves no default open.

mod batch;
mod choose;
mod echo;
mod echo_json;
mod error;
mod estimate;
mod expand;
mod expect;
pub mod fio;
mod fit;
mod intent;
mod judge;
mod key;
mod lookup;
mod place;
mod plan;
mod planner;
mod resolve;
mod resolve_stream;
mod rounds;
mod schema;
mod sets;
mod share;
mod suggest;
mod target;
mod totals;
mod value;
mod variables;
mod yaml;

pub use batch::{batch_from_text, sweep_from_texts};
pub use echo::describe;
pub use echo_json::{plan_json, step_json};
pub use error::{ConfigError, PlanError};
pub use estimate::{Estimate, Pace, time_text};
pub use expect::{Direction, Expectation, Figure, FigureKind, LatencyBasis, Relation};
pub use fit::PAST_THE_DEVICE;
pub use key::{JOB_KEYS, Key, PRECONDITION_KEYS, STEP_KEYS, STREAM_KEYS};
pub use place::{At, Place, Word};
pub use plan::{Choices, LeftOut, Limits, Origin, Plan, PlannedDevice, StampChoice, StepPlan};
pub use planner::{plan, plan_chosen};
pub use rounds::{Derive, Deriving, Grouping, Rounds, SteadyLimit, SteadySeconds, StepFigure};
pub use schema::{BackendChoice, Fields, Job, Keys, Step, Streams};
pub use yaml::Loader;

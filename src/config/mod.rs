//! From the job the user wrote to the plan the engine runs.

mod plan;

pub use plan::{Limits, Plan, StampChoice, StepPlan};

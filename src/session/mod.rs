//! From a plan and the device's facts, over reactors, to a record.

pub mod guard;
pub mod identity;
pub mod machine;
pub mod preflight;
pub mod prepare;
pub mod scan;
pub mod written;

mod assemble;
mod cost;
mod doubts;
mod environment;
mod error;
mod idle;
mod leave;
mod mix;
mod observer;
mod open;
mod place;
mod queue_cost;
mod readiness;
mod scratch;
mod scratch_fs;
mod spdk_writes;
mod step;
mod watch;

pub use cost::{EngineCost, EngineLoad, engine_cost, random_reads, tool_cost_ns};
pub use environment::{environment, tool};
pub use error::SessionError;
pub use leave::permits;
pub use observer::{Observer, Phase, Silent, Snapshot};
pub use open::Opened;
pub use queue_cost::QueueCost;
pub use readiness::{never_written, prepare};
pub use scratch::{Scratch, ScratchSpec, Setup};
pub use step::Session;

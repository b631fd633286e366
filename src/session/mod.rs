//! From a plan and the device's facts, over reactors, to a record.

pub mod claim;
pub mod guard;
pub mod identity;
pub mod machine;
pub mod preflight;
pub mod prepare;
pub mod scan;
pub mod written;

mod assemble;
mod auto;
mod cost;
mod describe;
mod doubts;
mod environment;
mod error;
mod hold;
mod judge;
mod leave;
mod mix;
mod named;
mod observer;
mod open;
mod open_sg;
pub mod path;
mod place;
mod preflight_polling;
mod queue_cost;
mod readiness;
mod scratch;
mod scratch_fs;
mod spdk_writes;
mod step;
mod watch;

pub use auto::{settled, why_not_spdk};
pub use cost::{EngineCost, EngineLoad, engine_cost, random_reads, tool_cost_ns};
pub use environment::{environment, tool};
pub use error::SessionError;
pub use judge::{Proofs, add_verdict};
pub use leave::permits;
pub use observer::{Observer, Phase, Silent, Snapshot};
pub use open::Opened;
pub use queue_cost::QueueCost;
pub use readiness::{never_written, prepare};
pub use scratch::{Scratch, ScratchSpec, Setup};
pub use step::{Probe, Session};

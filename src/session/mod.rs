//! From a plan and the device's facts, over reactors, to a record.

pub mod claim;
pub mod device;
pub mod fill;
pub mod guard;
pub mod machine;
pub mod path;
pub mod preflight;
pub mod scan;

mod cost;
mod environment;
mod error;
mod health;
mod observer;
mod open;
mod spdk;
mod step;

pub use cost::queue::QueueCost;
pub use cost::{EngineCost, EngineLoad, engine_cost, random_reads, tool_cost_ns};
pub use device::auto::{settled, why_not_spdk};
pub use device::nodes::{NearAndFar, near_and_far};
pub use environment::{environment, tool};
pub use error::{SessionError, is_gone};
pub use fill::readiness::{may_prepare, never_written, prepare};
pub use observer::{Observer, Phase, Silent, Snapshot};
pub use open::Opened;
pub use open::leave::permits;
pub use open::scratch::{Scratch, ScratchSpec, Setup};
pub use step::judge::{Proofs, add_verdict, workload_of};
pub use step::{Probe, Session};

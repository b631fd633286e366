//! From a plan and the device's facts, over reactors, to a record.

pub mod guard;
pub mod identity;
pub mod machine;
mod observer;

pub use observer::{Observer, Phase, Silent, Snapshot};

//! From a plan and the device's facts, over reactors, to a record.

mod observer;

pub use observer::{Observer, Phase, Silent, Snapshot};

//! Pinned cores that poll: the hot loop, its table of in-flight I/Os, and the team that runs it.

mod account;
mod control;
mod finish;
#[cfg(test)]
mod handover_tests;
#[cfg(test)]
mod kept_back_tests;
mod outcome;
mod poll;
mod setup;
mod sink;
mod slots;
mod stream;
mod team;
#[cfg(test)]
mod tests;
mod virtual_team;
mod workers;

pub use control::{Control, StopCause};
pub use outcome::{Abandoned, ReactorOutcome, StreamOutcome};
pub use poll::Reactor;
pub use setup::{ReactorError, ReactorSetup, StreamSetup};
pub use team::{TeamEnd, run_team};
pub use virtual_team::run_virtual_team;

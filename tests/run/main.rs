//! The program as its users run it: every outcome of `lanemark run` without root or a device.
#![allow(clippy::unwrap_used)]

mod calibrate;
mod common;
mod invariants;
mod outcomes;
mod probe;
mod quick;
mod rounds;
mod signals;
mod sim;
#[path = "../shared/skipped.rs"]
mod skipped;
mod suites;
mod traps;

//! The program as its users run it: every outcome of `lanemark run` without root or a device.
#![allow(clippy::unwrap_used)]

mod calibrate;
mod claimed;
mod common;
mod compare;
mod compare_saved;
mod compare_suites;
mod invariants;
mod lanes;
mod load;
mod numbers;
mod outcomes;
mod outputs;
mod peak;
mod prepare;
mod probe;
mod quick;
mod rounds;
mod scale;
mod signals;
mod sim;
#[path = "../shared/skipped.rs"]
mod skipped;
mod suites;
mod traps;

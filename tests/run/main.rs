//! The program as its users run it: every outcome of `lanemark run` without root or a device.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod calibrate;
mod common;
mod invariants;
mod outcomes;
mod quick;
mod signals;
mod sim;
mod traps;

//! The program as its users run it: every outcome of `lanemark run` without root or a device.
#![allow(clippy::unwrap_used)]

mod common;
mod invariants;
mod outcomes;
mod quick;
mod signals;
mod sim;
mod traps;

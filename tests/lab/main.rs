//! What needs root and devices: loop devices, zram, mounts, cgroups, all made and undone by the tests. Run by
//! `scripts/test` with `LANEMARK_LAB=1`; otherwise each test says that it was skipped.
#![allow(clippy::unwrap_used)]

mod guard;
#[path = "../skipped.rs"]
mod skipped;
mod support;
mod uring;

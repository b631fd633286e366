//! The spdk backend against an `nvmf_tgt` that each test starts: TCP on loopback, and vfio-user. Needs root,
//! hugepages and what scripts/install-spdk installs; otherwise each test says that it was skipped.
#![allow(clippy::unwrap_used)]

mod contract;
mod data;
mod doorbell;
mod faults;
mod prepare;
mod run;
#[path = "../shared/skipped.rs"]
mod skipped;
mod spdk_target;
mod suites;

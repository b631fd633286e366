//! What needs root and devices: loop devices, zram, mounts, cgroups, all made and undone by the tests. Run by
//! `scripts/test` with `LANEMARK_LAB=1`; otherwise each test says that it was skipped.
#![allow(clippy::unwrap_used)]

#[path = "../run/common.rs"]
mod common;
mod compare;
mod conditions;
mod emulated;
mod guard;
// Its makers of holders and mounts are for other tests.
#[allow(dead_code)]
#[path = "../unit/guard_tree.rs"]
mod guard_tree;
mod guest;
mod guest_claims;
mod inside;
#[path = "../run/invariants.rs"]
mod invariants;
mod lanes;
#[path = "../shared/links.rs"]
mod links;
mod nvme;
mod positions;
mod recorded;
mod report;
#[path = "../shared/report_cells.rs"]
mod report_cells;
mod runs;
mod sg;
mod sg_inside;
#[path = "../shared/skipped.rs"]
mod skipped;
#[path = "../shared/statistics.rs"]
mod statistics;
mod suites;
mod support;
mod topologies;
mod uring;

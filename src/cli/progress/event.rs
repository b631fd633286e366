//! What `--progress json` writes: an object a line.

use super::line;
use crate::record::Outcome;
use crate::session::Snapshot;
use serde::Serialize;

/// A line of `--progress json`.
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(super) enum Event<'a> {
    Progress {
        step: &'a str,
        step_number: usize,
        steps_count: usize,
        phase: &'static str,
        elapsed_s: f64,
        total_s: Option<f64>,
        left_s: Option<f64>,
        intervals_count: usize,
        iops: Option<f64>,
        bytes_per_s: Option<f64>,
        p50_ns: Option<u64>,
        p99_ns: Option<u64>,
        in_flight_count: u64,
        errors_count: u64,
    },
    StepDone {
        step: &'a str,
        step_number: usize,
        steps_count: usize,
        status: Outcome,
    },
}

impl<'a> Event<'a> {
    pub(super) fn of(now: &'a Snapshot, left_s: Option<f64>) -> Self {
        Self::Progress {
            step: &now.step,
            step_number: now.step_number,
            steps_count: now.steps_count,
            phase: line::phase(now.phase),
            elapsed_s: now.elapsed_s,
            total_s: now.total_s,
            left_s,
            intervals_count: now.intervals_count,
            iops: now.iops,
            bytes_per_s: now.bytes_per_s,
            p50_ns: now.p50_ns,
            p99_ns: now.p99_ns,
            in_flight_count: now.in_flight_count,
            errors_count: now.errors_count,
        }
    }
}

/// The event as a line.
pub(super) fn json(event: &Event) -> String {
    let text = serde_json::to_string(event);
    text.expect("events have string keys and write to memory: nothing can fail") + "\n"
}

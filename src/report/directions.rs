//! Which directions a step asked for, so that one without a sample is shown as missing, not left out.

use crate::record::{Direction, Step};
use crate::request::Op;

/// Each direction that the step asked for or has a sample of, in the order of [`Op::ALL`], with its
/// figures where there are any. Never empty: reads stand in where nothing is known.
pub fn of(step: &Step) -> Vec<(&'static str, Option<&Direction>)> {
    let found: Vec<_> = Op::ALL
        .into_iter()
        .map(|op| (op, figures(step, op)))
        .filter(|(op, direction)| direction.is_some() || is_asked(step, *op))
        .map(|(op, direction)| (op.name(), direction))
        .collect();
    if found.is_empty() {
        vec![(Op::Read.name(), None)]
    } else {
        found
    }
}

const fn figures(step: &Step, op: Op) -> Option<&Direction> {
    match op {
        Op::Read => step.read.as_ref(),
        Op::Write => step.write.as_ref(),
        Op::Trim => step.trim.as_ref(),
        Op::Flush => step.flush.as_ref(),
    }
}

/// A record does not list what was asked. The summary says it in the words of the job (`randrw …`), and
/// an I/O that failed or was slow was asked for too.
fn is_asked(step: &Step, op: Op) -> bool {
    let in_summary = step
        .summary
        .split(|c: char| !c.is_ascii_alphanumeric())
        .any(|word| match op {
            Op::Read => matches!(word, "read" | "randread" | "rw" | "randrw"),
            Op::Write => matches!(word, "write" | "randwrite" | "rw" | "randrw"),
            Op::Trim => matches!(word, "trim" | "randtrim"),
            Op::Flush => word == "fsync",
        });
    in_summary
        || step.errors.iter().any(|tally| tally.op == op.name())
        || step.slowest.iter().any(|slow| slow.op == op.name())
}

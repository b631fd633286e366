//! Which directions a step asked for, so that one without a sample is shown as missing, not left out.

use crate::record::{Direction, Step};
use crate::request::Op;
use serde_json::Value;

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
        Op::WriteZeroes => step.writezeroes.as_ref(),
        Op::Flush => step.flush.as_ref(),
        Op::Probe => step.probe.as_ref(),
    }
}

/// The plan says it for each stream, in the words of the job (`rw: randrw`). Where a record has none, its
/// summary begins with the same word; and an I/O that failed or was slow was asked for too.
fn is_asked(step: &Step, op: Op) -> bool {
    let planned = match step.plan.get("streams").and_then(Value::as_array) {
        Some(streams) => streams.iter().any(|stream| stream_asks(stream, op)),
        None => words(&step.summary).any(|word| asks(word, op)),
    };
    planned
        || step.errors.iter().any(|tally| tally.op == op.name())
        || step.slowest.iter().any(|slow| slow.op == op.name())
}

/// One stream of a plan.
fn stream_asks(stream: &Value, op: Op) -> bool {
    let flushes = stream.get("flush_every_count").is_some_and(Value::is_u64);
    let rw = stream.get("rw").and_then(Value::as_str).unwrap_or_default();
    // A mix of 100 % reads asks for no write.
    let none_left = match (op, stream.get("read_pct").and_then(Value::as_f64)) {
        (Op::Read, Some(read_pct)) => read_pct <= 0.0,
        (Op::Write, Some(read_pct)) => read_pct >= 100.0,
        _ => false,
    };
    (asks(rw, op) && !none_left) || (op == Op::Flush && flushes)
}

/// A word of a job.
fn asks(word: &str, op: Op) -> bool {
    match op {
        Op::Read => matches!(word, "read" | "randread" | "rw" | "randrw" | "probe-read"),
        Op::Write => matches!(word, "write" | "randwrite" | "rw" | "randrw"),
        Op::Trim => matches!(word, "trim" | "randtrim"),
        Op::WriteZeroes => matches!(word, "writezeroes" | "randwritezeroes"),
        Op::Flush => word == "fsync",
        Op::Probe => word == "probe",
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-')
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_stream_asks_for_what_its_job_says() {
        let asked = |stream: Value| {
            let ops = Op::ALL.into_iter().filter(|op| stream_asks(&stream, *op));
            ops.map(Op::name).collect::<Vec<_>>()
        };
        assert_eq!(asked(json!({"rw": "randread"})), ["read"]);
        assert_eq!(
            asked(json!({"rw": "randrw", "read_pct": 70.0})),
            ["read", "write"]
        );
        assert_eq!(asked(json!({"rw": "rw", "read_pct": 100.0})), ["read"]);
        assert_eq!(asked(json!({"rw": "rw", "read_pct": 0.0})), ["write"]);
        assert_eq!(asked(json!({"rw": "trim", "read_pct": null})), ["trim"]);
        assert_eq!(
            asked(json!({"rw": "randwritezeroes", "read_pct": null})),
            ["writezeroes"]
        );
        assert_eq!(asked(json!({"rw": "probe"})), ["probe"]);
        assert_eq!(asked(json!({"rw": "probe-read"})), ["read"]);
        let flushing = json!({"rw": "write", "flush_every_count": 8});
        assert_eq!(asked(flushing), ["write", "flush"]);
        assert_eq!(
            asked(json!({"rw": "write", "flush_every_count": null})),
            ["write"]
        );
    }
}

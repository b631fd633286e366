//! Holds a step against the criteria of its job.

use crate::config::{Direction, Expectation, Figure, FigureKind};
use crate::record::{Criterion, Latency, Step};

/// The criteria with what was measured. A figure without a sample is a miss.
#[must_use]
pub fn judge(step: &Step, expected: &[Expectation]) -> Vec<Criterion> {
    let criterion = |one: &Expectation| {
        let measured = measured(step, one.figure);
        Criterion {
            text: one.text.clone(),
            figure: one.figure.name(),
            unit: one.figure.kind.unit().to_owned(),
            limit: one.limit,
            measured,
            is_met: measured.is_some_and(|value| one.relation.holds(value, one.limit)),
        }
    };
    expected.iter().map(criterion).collect()
}

#[allow(clippy::cast_precision_loss)] // Latencies and counts are far below 2^53.
fn measured(step: &Step, figure: Figure) -> Option<f64> {
    if figure.kind == FigureKind::Errors {
        return Some((step.failed_count + step.abandoned_count) as f64);
    }
    let all = [
        (Direction::Read, &step.read),
        (Direction::Write, &step.write),
        (Direction::Trim, &step.trim),
        (Direction::WriteZeroes, &step.writezeroes),
    ];
    let values = all
        .into_iter()
        .filter(|(direction, _)| figure.direction.is_none_or(|asked| asked == *direction))
        .filter_map(|(_, found)| found.as_ref())
        .map(|found| match figure.kind {
            FigureKind::Iops => found.iops,
            FigureKind::BytesPerS => found.bytes_per_s,
            kind => latency(&found.latency_ns, kind),
        });
    if figure.kind.unit() == "ns" {
        values.max_by(f64::total_cmp)
    } else {
        values.reduce(|sum, value| sum + value)
    }
}

#[allow(clippy::cast_precision_loss)]
const fn latency(latency: &Latency, kind: FigureKind) -> f64 {
    let ns = match kind {
        FigureKind::P50 => latency.p50,
        FigureKind::P90 => latency.p90,
        FigureKind::P99 => latency.p99,
        FigureKind::P99_9 => latency.p99_9,
        FigureKind::P99_99 => latency.p99_99,
        FigureKind::Max => latency.max,
        FigureKind::Mean | FigureKind::Iops | FigureKind::BytesPerS | FigureKind::Errors => {
            return latency.mean;
        }
    };
    ns as f64
}

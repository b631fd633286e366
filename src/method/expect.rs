//! Holds a step against the criteria of its job.

use crate::config::{Direction, Expectation, Figure, FigureKind, LatencyBasis};
use crate::measure::bucket_start_ns;
use crate::record::{Criterion, Latency, Step};

/// The criteria with what was measured. A figure without a sample is a miss. A percentile is known to a bucket
/// of the histogram and told as its end: a criterion is missed where the whole bucket misses.
#[must_use]
pub fn judge(step: &Step, expected: &[Expectation]) -> Vec<Criterion> {
    let criterion = |one: &Expectation| {
        let figure = said(step, one.figure);
        let measured = measured(step, one.figure);
        let holds = |value| one.relation.holds(value, one.limit);
        Criterion {
            text: one.text.clone(),
            figure: figure.name(),
            unit: figure.kind.unit().to_owned(),
            limit: one.limit,
            measured: measured.map(|(_, told)| told),
            is_met: measured.is_some_and(|(least, told)| holds(least) || holds(told)),
        }
    };
    expected.iter().map(criterion).collect()
}

/// A latency of which nothing is said is the scheduled one where there is a rate: a stall hides in the other.
fn said(step: &Step, figure: Figure) -> Figure {
    let has_rate = directions(step, figure).any(|found| found.scheduled_latency_ns.is_some());
    let is_latency = figure.kind.unit() == "ns";
    match figure.basis {
        LatencyBasis::Unsaid if has_rate && is_latency => Figure {
            basis: LatencyBasis::Scheduled,
            ..figure
        },
        _ => figure,
    }
}

fn directions(step: &Step, figure: Figure) -> impl Iterator<Item = &crate::record::Direction> {
    let all = [
        (Direction::Read, &step.read),
        (Direction::Write, &step.write),
        (Direction::Trim, &step.trim),
        (Direction::WriteZeroes, &step.writezeroes),
    ];
    all.into_iter()
        .filter(move |(direction, _)| figure.direction.is_none_or(|asked| asked == *direction))
        .filter_map(|(_, found)| found.as_ref())
}

/// The least that a figure can be, and what is told of it.
#[allow(clippy::cast_precision_loss)] // Latencies and counts are far below 2^53.
fn measured(step: &Step, figure: Figure) -> Option<(f64, f64)> {
    if figure.kind == FigureKind::Errors {
        let count = (step.failed_count + step.abandoned_count) as f64;
        return Some((count, count));
    }
    let found = directions(step, figure);
    if figure.kind.unit() == "ns" {
        // Beside a stream with a rate there may be one without.
        let of = |found: &crate::record::Direction| {
            let service = (figure.basis != LatencyBasis::Scheduled).then_some(&found.latency_ns);
            let scheduled = found.scheduled_latency_ns.as_ref();
            let scheduled = scheduled.filter(|_| figure.basis != LatencyBasis::Service);
            [service, scheduled].map(|one| one.map(|latency| known(latency, figure.kind)))
        };
        let known = found.flat_map(of).flatten();
        return known.max_by(|one, other| one.1.total_cmp(&other.1));
    }
    let values = found.map(|found| match figure.kind {
        FigureKind::BytesPerS => found.bytes_per_s,
        _ => found.iops,
    });
    let sum = values.reduce(|sum, value| sum + value)?;
    Some((sum, sum))
}

/// The least and the most that a latency can be.
#[allow(clippy::cast_precision_loss)]
fn known(latency: &Latency, kind: FigureKind) -> (f64, f64) {
    let ns = match kind {
        FigureKind::P50 => latency.p50,
        FigureKind::P90 => latency.p90,
        FigureKind::P99 => latency.p99,
        FigureKind::P99_9 => latency.p99_9,
        FigureKind::P99_99 => latency.p99_99,
        FigureKind::Max => return (latency.max as f64, latency.max as f64),
        FigureKind::Mean | FigureKind::Iops | FigureKind::BytesPerS | FigureKind::Errors => {
            return (latency.mean, latency.mean);
        }
    };
    (bucket_start_ns(ns).max(latency.min) as f64, ns as f64)
}

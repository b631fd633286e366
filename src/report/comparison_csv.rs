//! A comparison as a table: one row for each step, metric and side that is held against the baseline.

use super::csv::{float, words};
use crate::record::{Against, ComparedMetric, Comparison, Estimate};

const HEADER: [&str; 17] = [
    "step",
    "direction",
    "metric",
    "unit",
    "side_a",
    "side_b",
    "rounds_count",
    "mean_a",
    "mean_b",
    "difference",
    "difference_low",
    "difference_high",
    "ratio",
    "ratio_low",
    "ratio_high",
    "verdict",
    "why",
];

/// The table; lines end in CR LF, as RFC 4180 has it.
pub fn render(comparison: &Comparison) -> String {
    let mut out = HEADER.join(",") + "\r\n";
    for step in &comparison.steps {
        for metric in &step.metrics {
            for against in &metric.against {
                out += &row(comparison, &step.name, metric, against).join(",");
                out += "\r\n";
            }
        }
    }
    out
}

fn row(
    comparison: &Comparison,
    step: &str,
    metric: &ComparedMetric,
    against: &Against,
) -> Vec<String> {
    let side = against.side_index as usize;
    let optional = |value: Option<f64>| value.map(float).unwrap_or_default();
    let estimate = |it: &Estimate| [optional(it.value), optional(it.low), optional(it.high)];
    let verdict = serde_json::to_value(against.verdict).ok();
    let verdict = verdict
        .and_then(|value| value.as_str().map(str::to_owned))
        .unwrap_or_default();
    let mut fields = vec![
        words(step),
        words(&metric.direction),
        words(&metric.metric),
        words(&metric.unit),
        words(&comparison.sides[0].name),
        words(&comparison.sides[side].name),
        comparison.design.rounds_done_count.to_string(),
        optional(metric.means[0]),
        optional(metric.means[side]),
    ];
    fields.extend(estimate(&against.difference));
    fields.extend(estimate(&against.ratio));
    fields.extend([words(&verdict), words(&against.why)]);
    fields
}

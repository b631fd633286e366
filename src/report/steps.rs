//! One row for each step, all directions side by side: RFC 4180, a header with units, an empty field
//! where nothing was measured.

use super::csv::{conditions, words};
use crate::record::{Direction, Record, Step};

const DIRECTIONS: [&str; 4] = ["read", "write", "trim", "writezeroes"];
const FIGURES: [&str; 8] = [
    "ios_count",
    "iops",
    "bytes_per_s",
    "latency_mean_ns",
    "latency_p50_ns",
    "latency_p99_ns",
    "latency_p99_9_ns",
    "latency_max_ns",
];

/// The table; lines end in CR LF.
#[must_use]
pub fn steps_table(record: &Record) -> String {
    let mut names: Vec<String> = [
        "name",
        "step",
        "point",
        "pass_index",
        "round_index",
        "status",
        "window_s",
    ]
    .map(str::to_owned)
    .into();
    for direction in DIRECTIONS {
        names.extend(FIGURES.map(|figure| format!("{direction}_{figure}")));
    }
    names.extend(
        [
            "in_flight_mean",
            "failed_count",
            "temperature_before_celsius",
            "temperature_after_celsius",
            "used_pct",
            "others_ios_count",
            "write_cache",
            "warnings",
        ]
        .map(str::to_owned),
    );
    let mut out = names.join(",") + "\r\n";
    for step in &record.steps {
        out.push_str(&(row(step).join(",") + "\r\n"));
    }
    out
}

fn row(step: &Step) -> Vec<String> {
    let origin = &step.origin;
    let point: Vec<String> = (origin.point.iter())
        .map(|at| format!("{}={}", at.key, at.value))
        .collect();
    let round = origin
        .round_index
        .map_or_else(String::new, |index| index.to_string());
    let status = serde_json::to_value(step.status);
    let status = status
        .ok()
        .and_then(|status| status.as_str().map(str::to_owned));
    let mut fields = vec![
        words(&step.name),
        words(&origin.step),
        words(&point.join(" ")),
        origin.pass_index.to_string(),
        round,
        status.unwrap_or_default(),
        step.window_s.to_string(),
    ];
    for direction in [&step.read, &step.write, &step.trim, &step.writezeroes] {
        match direction {
            Some(direction) => fields.extend(figures(direction)),
            None => fields.extend(FIGURES.map(|_| String::new())),
        }
    }
    let kinds: Vec<&str> = step
        .warnings
        .iter()
        .map(|warning| warning.kind.as_str())
        .collect();
    fields.push(step.depth.in_flight_mean.to_string());
    fields.push(step.failed_count.to_string());
    fields.extend(conditions(step));
    fields.push(words(&kinds.join(" ")));
    fields
}

fn figures(direction: &Direction) -> [String; 8] {
    let latency = &direction.latency_ns;
    [
        direction.ios_count.to_string(),
        direction.iops.to_string(),
        direction.bytes_per_s.to_string(),
        latency.mean.to_string(),
        latency.p50.to_string(),
        latency.p99.to_string(),
        latency.p99_9.to_string(),
        latency.max.to_string(),
    ]
}

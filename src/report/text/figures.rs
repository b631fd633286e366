//! Rates and latency: directions side by side, scheduled latency beside service latency.

use super::super::directions;
use super::super::figures::{self as show, GB_BYTES, GIB_BYTES, NOT_AVAILABLE};
use super::layout::{Columns, Page, Tone};
use crate::record::{Direction, Latency, Step};

/// The rows, top to bottom.
const LABELS: [&str; 11] = [
    "IOPS", "GB/s", "GiB/s", "mean", "min", "50 %", "90 %", "99 %", "99.9 %", "99.99 %", "max",
];

/// Rows before the latency.
const RATES: usize = 3;

/// The table of all directions, and what its `≥` and its two kinds of latency mean.
pub fn render(page: &mut Page, step: &Step) {
    let directions = directions::of(step);
    let mut columns = vec![(String::new(), LABELS.map(str::to_owned).to_vec())];
    for (name, direction) in &directions {
        columns.extend(columns_of(name, *direction));
    }
    page.table(&Columns { columns });
    let has = |test: fn(&Direction) -> bool| {
        let mut found = directions.iter().filter_map(|(_, direction)| *direction);
        found.any(test)
    };
    if has(|direction| direction.scheduled_latency_ns.is_some()) {
        page.paragraph(
            "service: submit to completion; scheduled: from the arrival the rate asked for",
            Tone::Quiet,
        );
    }
    if has(|direction| latencies(direction).any(|l| !l.lower_bounds.is_empty())) {
        page.paragraph(
            "≥: I/Os that never completed count with the age they had reached",
            Tone::Quiet,
        );
    }
}

fn latencies(direction: &Direction) -> impl Iterator<Item = &Latency> {
    std::iter::once(&direction.latency_ns).chain(&direction.scheduled_latency_ns)
}

fn columns_of(name: &str, direction: Option<&Direction>) -> Vec<(String, Vec<String>)> {
    let Some(direction) = direction else {
        return vec![(name.to_owned(), LABELS.map(|_| NOT_AVAILABLE.into()).into())];
    };
    let mut rates = vec![
        show::iops(direction.iops),
        show::rate(direction.bytes_per_s, GB_BYTES),
        show::rate(direction.bytes_per_s, GIB_BYTES),
    ];
    if matches!(name, "flush" | "probe") {
        // They move no bytes.
        rates[1..].fill(String::new());
    }
    let service = [rates, cells(&direction.latency_ns)].concat();
    match &direction.scheduled_latency_ns {
        None => vec![(name.to_owned(), service)],
        Some(scheduled) => vec![
            (format!("{name} service"), service),
            (
                format!("{name} scheduled"),
                [vec![String::new(); RATES], cells(scheduled)].concat(),
            ),
        ],
    }
}

/// One distribution, in the order of [`LABELS`].
fn cells(latency: &Latency) -> Vec<String> {
    let bound = |field: &str| latency.lower_bounds.iter().any(|name| name == field);
    let exact = |field: &str, ns: u64| {
        if bound(field) {
            show::time_at_least(ns)
        } else {
            show::time_ns(ns)
        }
    };
    let mean = format!(
        "{}{} ± {}",
        if bound("mean") { "≥ " } else { "" },
        show::time(latency.mean),
        show::time(latency.stddev)
    );
    vec![
        mean,
        exact("min", latency.min),
        exact("p50", latency.p50),
        exact("p90", latency.p90),
        exact("p99", latency.p99),
        exact("p99_9", latency.p99_9),
        exact("p99_99", latency.p99_99),
        exact("max", latency.max),
    ]
}

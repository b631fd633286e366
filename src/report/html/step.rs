//! One step: how it was measured, its charts, its streams, its slowest I/Os.

use super::super::{directions, figures as show, printable};
use super::derived;
use super::step_charts;
use super::table::{Cell, Row, Table, heads};
use crate::record::{Latency, StampMode, Step};

/// One step.
pub struct StepView {
    /// Its name.
    pub name: String,
    /// What it does.
    pub summary: String,
    /// How it was measured.
    pub rows: Vec<(String, String)>,
    /// Charts, as HTML.
    pub charts: Vec<String>,
    /// Streams, errors, slowest I/Os, gaps.
    pub tables: Vec<Table>,
}

/// Rows of a table that a person reads; the record has them all.
const ROWS_MOST: usize = 64;

pub fn view(step: &Step) -> StepView {
    let tables = [streams(step), errors(step), slowest(step), gaps(step)];
    StepView {
        name: printable(&step.name),
        summary: printable(&step.summary),
        rows: rows(step),
        charts: step_charts::charts(step),
        tables: tables.into_iter().flatten().collect(),
    }
}

fn rows(step: &Step) -> Vec<(String, String)> {
    let known =
        |value: Option<u64>| value.map_or_else(|| show::NOT_AVAILABLE.to_owned(), show::count);
    let depth = &step.depth;
    let stamps = match step.stamp.mode {
        StampMode::Exact => "one for each I/O",
        StampMode::Batch => "one for each batch",
    };
    let mut rows = vec![
        (
            "backend",
            format!("{}: {}", step.backend.name, step.backend.reason),
        ),
        ("set up", step.backend.features.join(", ")),
        (
            "window",
            format!(
                "{} after a ramp of {}",
                show::seconds(step.window_s),
                show::seconds(step.ramp_s)
            ),
        ),
        (
            "depth",
            format!(
                "asked {}, in the device at most {}, queued above it {}, in flight on average {}",
                show::count(depth.asked_count),
                known(depth.device_count),
                known(depth.queued_count),
                show::significant(depth.in_flight_mean, 4)
            ),
        ),
        (
            "I/Os",
            format!(
                "{} submitted = {} completed + {} failed + {} abandoned",
                show::count(step.submitted_count),
                show::count(step.completed_count),
                show::count(step.failed_count),
                show::count(step.abandoned_count)
            ),
        ),
        (
            "stamps",
            format!(
                "{stamps}; bias at most {} for 99 % of I/Os",
                show::time_ns(step.stamp.bound_ns)
            ),
        ),
    ];
    for (name, direction) in directions::of(step) {
        let scheduled = direction.and_then(|d| Some((d, d.scheduled_latency_ns.as_ref()?)));
        if let Some((direction, scheduled)) = scheduled {
            let (waited, own) = (tails(scheduled), tails(&direction.latency_ns));
            rows.insert(
                0,
                (
                    "latency",
                    format!("{name}, scheduled: {waited}; service: {own}"),
                ),
            );
        }
    }
    let mut shares = step.mix.iter().map(|share| {
        format!(
            "{}: asked {}, achieved {}",
            share.share,
            show::percent(share.asked_pct, 5),
            show::percent(share.achieved_pct, 5)
        )
    });
    if let Some(first) = shares.next() {
        let all = shares.fold(first, |all, share| format!("{all}; {share}"));
        rows.push(("mix", all));
    }
    let rates: Vec<f64> = step
        .streams
        .iter()
        .map(|stream| stream.bytes_per_s)
        .collect();
    rows.extend(derived::fairness(&rates).map(|text| ("fairness", text)));
    rows.into_iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| (name.to_owned(), printable(&value)))
        .collect()
}

/// `p50 100 µs, p99 …`
fn tails(latency: &Latency) -> String {
    let known = [
        ("p50", latency.p50),
        ("p99", latency.p99),
        ("p99_9", latency.p99_9),
        ("max", latency.max),
    ];
    let text = |(name, ns): (&str, u64)| {
        let is_bound = latency.lower_bounds.iter().any(|bound| bound == name);
        let time = if is_bound {
            show::time_at_least(ns)
        } else {
            show::time_ns(ns)
        };
        format!("{} {time}", name.replace('_', "."))
    };
    known.map(text).join(", ")
}

fn row(cells: Vec<Cell>) -> Row {
    Row {
        step: 0,
        direction: "",
        cells,
    }
}

/// A table of the first rows; `None` without any.
fn table(caption: &str, names: &[(&str, bool)], all: Vec<Row>) -> Option<Table> {
    if all.is_empty() {
        return None;
    }
    let count = all.len();
    let rows: Vec<Row> = all.into_iter().take(ROWS_MOST).collect();
    let caption = if count > rows.len() {
        format!("{caption} (the first {} of {count})", rows.len())
    } else {
        caption.to_owned()
    };
    Some(Table {
        caption,
        heads: heads(names),
        rows,
    })
}

fn streams(step: &Step) -> Option<Table> {
    if step.streams.len() < 2 {
        return None;
    }
    let total: f64 = step.streams.iter().map(|stream| stream.bytes_per_s).sum();
    let rows = step.streams.iter().map(|stream| {
        let device = step.devices.get(stream.device_index as usize);
        let share = if total > 0.0 {
            show::share(stream.bytes_per_s / total)
        } else {
            show::NOT_AVAILABLE.to_owned()
        };
        let mean = stream.mean_ns.map(show::time);
        let max = stream.max_ns.map(show::time_ns);
        row(vec![
            Cell::text(&stream.index.to_string()),
            Cell::text(device.map_or("", |device| &device.path)),
            Cell::shown(show::count(stream.first_lba)),
            Cell::shown(show::iops(stream.iops)),
            Cell::shown(show::rate(stream.bytes_per_s, show::GB_BYTES)),
            Cell::shown(share),
            Cell::shown(mean.unwrap_or_else(|| show::NOT_AVAILABLE.to_owned())),
            Cell::shown(max.unwrap_or_else(|| show::NOT_AVAILABLE.to_owned())),
        ])
    });
    let names = [
        ("stream", true),
        ("device", true),
        ("first LBA", false),
        ("IOPS", false),
        ("GB/s", false),
        ("share of bandwidth", false),
        ("mean", false),
        ("max", false),
    ];
    table("Each stream apart", &names, rows.collect())
}

fn errors(step: &Step) -> Option<Table> {
    let rows = step.errors.iter().map(|tally| {
        row(vec![
            Cell::text(&tally.status),
            Cell::text(&tally.op),
            Cell::shown(show::count(tally.count)),
            Cell::shown(show::count(tally.first_lba)),
        ])
    });
    let names = [
        ("status", true),
        ("operation", true),
        ("count", false),
        ("first LBA", false),
    ];
    table("Failed I/Os", &names, rows.collect())
}

fn slowest(step: &Step) -> Option<Table> {
    let rows = step.slowest.iter().map(|slow| {
        let latency = if slow.abandoned {
            show::time_at_least(slow.latency_ns)
        } else {
            show::time_ns(slow.latency_ns)
        };
        let cpu = slow.cpu.map(|cpu| cpu.to_string());
        row(vec![
            Cell::shown(latency),
            Cell::shown(show::seconds(slow.at_s)),
            Cell::text(&slow.op),
            Cell::shown(show::count(slow.lba)),
            Cell::shown(crate::units::Bytes(slow.bytes_count).to_string()),
            Cell::shown(slow.stream.to_string()),
            Cell::shown(cpu.unwrap_or_else(|| show::NOT_AVAILABLE.to_owned())),
        ])
    });
    let names = [
        ("latency", false),
        ("at", false),
        ("operation", true),
        ("LBA", false),
        ("size", false),
        ("stream", false),
        ("CPU", false),
    ];
    table("Slowest I/Os", &names, rows.collect())
}

fn gaps(step: &Step) -> Option<Table> {
    let rows = step.poll_gaps.iter().map(|gap| {
        row(vec![
            Cell::shown(show::time_ns(gap.up_to_ns)),
            Cell::shown(show::count(gap.count)),
        ])
    });
    let names = [("up to", false), ("count", false)];
    table("Gaps between two polls", &names, rows.collect())
}

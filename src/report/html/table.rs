//! Tables, and the one of everything: a row for each step and direction, in units, with the record's own
//! numbers beside the rounded texts.

use super::super::{directions, figures as show, printable};
use crate::record::{Direction, Outcome, Record, Step};

/// A table.
pub struct Table {
    /// What it shows.
    pub caption: String,
    /// Its columns.
    pub heads: Vec<Head>,
    /// Its rows.
    pub rows: Vec<Row>,
}

/// The head of a column.
pub struct Head {
    /// Name with the unit.
    pub text: String,
    /// Whether the column holds texts.
    pub is_text: bool,
}

/// One row.
pub struct Row {
    /// Which step, counted from 0.
    pub step: usize,
    /// Which direction; empty where there is none.
    pub direction: &'static str,
    /// One for each column.
    pub cells: Vec<Cell>,
}

/// One cell.
pub struct Cell {
    /// What is shown.
    pub text: String,
    /// Whether it is a text.
    pub is_text: bool,
    /// The record's field.
    pub field: &'static str,
    /// The record's number, in full.
    pub value: Option<String>,
}

impl Cell {
    /// A text.
    pub fn text(text: &str) -> Self {
        Self {
            text: printable(text),
            is_text: true,
            field: "",
            value: None,
        }
    }

    /// A figure that is shown only.
    pub fn shown(text: String) -> Self {
        Self {
            text,
            is_text: false,
            field: "",
            value: None,
        }
    }

    fn number(field: &'static str, text: String, value: Option<String>) -> Self {
        Self {
            text,
            is_text: false,
            field,
            value,
        }
    }
}

/// Heads from `(name, whether it holds texts)`.
pub fn heads(names: &[(&str, bool)]) -> Vec<Head> {
    names
        .iter()
        .map(|(text, is_text)| Head {
            text: (*text).to_owned(),
            is_text: *is_text,
        })
        .collect()
}

const HEADS: [(&str, bool); 20] = [
    ("step", true),
    ("direction", true),
    ("IOPS", false),
    ("GB/s", false),
    ("GiB/s", false),
    ("min", false),
    ("mean", false),
    ("p50", false),
    ("p90", false),
    ("p99", false),
    ("p99.9", false),
    ("p99.99", false),
    ("max", false),
    ("I/Os", false),
    ("failed", false),
    ("window", false),
    ("in flight", false),
    ("busy per I/O", false),
    ("device", true),
    ("backend", true),
];

/// The table of everything.
pub fn every_figure(record: &Record) -> Table {
    let mut rows = Vec::new();
    for (index, step) in record.steps.iter().enumerate() {
        for (direction, figures) in directions::of(step) {
            rows.push(Row {
                step: index,
                direction,
                cells: cells(step, direction, figures),
            });
        }
    }
    Table {
        caption: "Every step and direction".to_owned(),
        heads: heads(&HEADS),
        rows,
    }
}

fn cells(step: &Step, name: &'static str, direction: Option<&Direction>) -> Vec<Cell> {
    let mut title = step.name.clone();
    if step.status != Outcome::Finished {
        title += match step.status {
            Outcome::Interrupted => " (interrupted)",
            Outcome::Failed => " (failed)",
            _ => " (refused)",
        };
    }
    let mut cells = vec![Cell::text(&title), Cell::text(name)];
    let float = |field, of: fn(&Direction) -> f64, text: fn(f64) -> String| {
        let value = direction.map(of);
        let shown = value.map_or_else(|| show::NOT_AVAILABLE.to_owned(), text);
        Cell::number(field, shown, value.map(|value| value.to_string()))
    };
    cells.push(float("iops", |d| d.iops, show::iops));
    cells.push(float(
        "bytes_per_s",
        |d| d.bytes_per_s,
        |rate| show::rate(rate, show::GB_BYTES),
    ));
    cells.push(Cell::shown(direction.map_or_else(
        || show::NOT_AVAILABLE.to_owned(),
        |d| show::rate(d.bytes_per_s, show::GIB_BYTES),
    )));
    for (field, of) in LATENCY {
        let value = direction.map(of);
        let name = field.trim_start_matches("latency_ns.");
        let is_bound =
            direction.is_some_and(|d| d.latency_ns.lower_bounds.iter().any(|bound| bound == name));
        let text = match value {
            None => show::NOT_AVAILABLE.to_owned(),
            Some(Ns::Whole(ns)) if is_bound => show::time_at_least(ns),
            Some(Ns::Whole(ns)) => show::time_ns(ns),
            Some(Ns::Mean(ns)) if is_bound => format!("≥ {}", show::time(ns)),
            Some(Ns::Mean(ns)) => show::time(ns),
        };
        cells.push(Cell::number(field, text, value.map(Ns::digits)));
    }
    let ios = direction.map(|d| d.ios_count);
    cells.push(Cell::number(
        "ios_count",
        ios.map_or_else(|| show::NOT_AVAILABLE.to_owned(), show::count),
        ios.map(|ios| ios.to_string()),
    ));
    cells.extend(of_step(step));
    cells
}

/// A latency: a whole number, or the mean.
#[derive(Clone, Copy)]
enum Ns {
    Whole(u64),
    Mean(f64),
}

impl Ns {
    fn digits(self) -> String {
        match self {
            Self::Whole(ns) => ns.to_string(),
            Self::Mean(ns) => ns.to_string(),
        }
    }
}

type OfDirection = fn(&Direction) -> Ns;

const LATENCY: [(&str, OfDirection); 8] = [
    ("latency_ns.min", |d| Ns::Whole(d.latency_ns.min)),
    ("latency_ns.mean", |d| Ns::Mean(d.latency_ns.mean)),
    ("latency_ns.p50", |d| Ns::Whole(d.latency_ns.p50)),
    ("latency_ns.p90", |d| Ns::Whole(d.latency_ns.p90)),
    ("latency_ns.p99", |d| Ns::Whole(d.latency_ns.p99)),
    ("latency_ns.p99_9", |d| Ns::Whole(d.latency_ns.p99_9)),
    ("latency_ns.p99_99", |d| Ns::Whole(d.latency_ns.p99_99)),
    ("latency_ns.max", |d| Ns::Whole(d.latency_ns.max)),
];

fn of_step(step: &Step) -> Vec<Cell> {
    let devices: Vec<&str> = step.devices.iter().map(|d| d.path.as_str()).collect();
    vec![
        Cell::shown(show::count(step.failed_count)),
        Cell::shown(show::seconds(step.window_s)),
        Cell::shown(show::significant(step.depth.in_flight_mean, 4)),
        Cell::shown(busy(step)),
        Cell::text(&devices.join(", ")),
        Cell::text(&step.backend.name),
    ]
}

/// Busy time per I/O over all reactors, weighted by what each completed.
#[allow(clippy::cast_precision_loss)]
fn busy(step: &Step) -> String {
    let (mut spent_ns, mut ios_count) = (0.0, 0);
    for reactor in &step.reactors {
        if let Some(ns) = reactor.busy_ns_per_io {
            spent_ns += ns * reactor.ios_count as f64;
            ios_count += reactor.ios_count;
        }
    }
    if ios_count == 0 {
        return show::NOT_AVAILABLE.to_owned();
    }
    show::time(spent_ns / ios_count as f64)
}

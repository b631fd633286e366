//! Tables, and the one of everything: a row for each step and direction, in units, with the record's own
//! numbers beside the rounded texts.

use super::super::{directions, figures as show, printable};
use crate::record::{Direction, Latency, Outcome, Record, Step};

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
    pub field: String,
    /// The record's number, in full.
    pub value: Option<String>,
}

impl Cell {
    /// A text.
    pub fn text(text: &str) -> Self {
        Self {
            text: printable(text),
            is_text: true,
            field: String::new(),
            value: None,
        }
    }

    /// A figure that is shown only.
    pub fn shown(text: String) -> Self {
        Self {
            text,
            is_text: false,
            field: String::new(),
            value: None,
        }
    }

    fn number(field: &str, text: String, value: Option<String>) -> Self {
        Self {
            text,
            is_text: false,
            field: field.to_owned(),
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

/// Columns before the latency.
const FIRST: [(&str, bool); 5] = [
    ("step", true),
    ("direction", true),
    ("IOPS", false),
    ("GB/s", false),
    ("GiB/s", false),
];

/// Columns after it.
const LAST: [(&str, bool); 7] = [
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
    let is_scheduled = record.steps.iter().any(has_rate);
    let mut rows = Vec::new();
    for (index, step) in record.steps.iter().enumerate() {
        for (direction, figures) in directions::of(step) {
            rows.push(Row {
                step: index,
                direction,
                cells: cells(step, direction, figures, is_scheduled),
            });
        }
    }
    let mut heads = heads(&FIRST);
    if is_scheduled {
        heads.extend(latency_heads("scheduled "));
    }
    heads.extend(latency_heads(if is_scheduled { "service " } else { "" }));
    heads.extend(self::heads(&LAST));
    let mut caption = "Every step and direction".to_owned();
    if is_scheduled {
        caption += ". Scheduled: from the arrival that the rate asked for to completion; service: from submission";
    }
    Table {
        caption,
        heads,
        rows,
    }
}

/// Whether arrivals came at a rate, so that waiting counts too.
pub fn has_rate(step: &Step) -> bool {
    directions::of(step)
        .into_iter()
        .filter_map(|(_, direction)| direction)
        .any(|direction| direction.scheduled_latency_ns.is_some())
}

fn latency_heads(kind: &str) -> impl Iterator<Item = Head> {
    LATENCY.iter().map(move |(name, _)| Head {
        text: format!("{kind}{}", name.replace('_', ".")),
        is_text: false,
    })
}

fn cells(
    step: &Step,
    name: &'static str,
    direction: Option<&Direction>,
    is_scheduled: bool,
) -> Vec<Cell> {
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
    if is_scheduled {
        let latency = direction.and_then(|d| d.scheduled_latency_ns.as_ref());
        cells.extend(latency_cells("scheduled_latency_ns", latency));
    }
    let latency = direction.map(|d| &d.latency_ns);
    cells.extend(latency_cells("latency_ns", latency));
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

type OfLatency = fn(&Latency) -> Ns;

const LATENCY: [(&str, OfLatency); 8] = [
    ("min", |l| Ns::Whole(l.min)),
    ("mean", |l| Ns::Mean(l.mean)),
    ("p50", |l| Ns::Whole(l.p50)),
    ("p90", |l| Ns::Whole(l.p90)),
    ("p99", |l| Ns::Whole(l.p99)),
    ("p99_9", |l| Ns::Whole(l.p99_9)),
    ("p99_99", |l| Ns::Whole(l.p99_99)),
    ("max", |l| Ns::Whole(l.max)),
];

/// One distribution, in the order of [`LATENCY`].
fn latency_cells(of_record: &str, latency: Option<&Latency>) -> Vec<Cell> {
    let cell = |(name, of): (&str, OfLatency)| {
        let value = latency.map(of);
        let is_bound = latency.is_some_and(|l| l.lower_bounds.iter().any(|bound| bound == name));
        let text = match value {
            None => show::NOT_AVAILABLE.to_owned(),
            Some(Ns::Whole(ns)) if is_bound => show::time_at_least(ns),
            Some(Ns::Whole(ns)) => show::time_ns(ns),
            Some(Ns::Mean(ns)) if is_bound => format!("≥ {}", show::time(ns)),
            Some(Ns::Mean(ns)) => show::time(ns),
        };
        let field = format!("{of_record}.{name}");
        Cell::number(&field, text, value.map(Ns::digits))
    };
    LATENCY.into_iter().map(cell).collect()
}

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

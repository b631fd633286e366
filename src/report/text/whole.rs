//! What several steps come to: a row for each where they are many, derived figures, steady state, and what
//! was left out.

use super::super::figures::{self as show, GB_BYTES, NOT_AVAILABLE};
use super::super::{directions, printable};
use super::layout::{Columns, Page, Row, Tone};
use super::{conditions, details};
use crate::record::{Derived, DerivedValue, Outcome, Record, Steady, Step, Warning};

/// More steps than this are shown as a table; the record has all of each.
pub const PAGES_MOST_COUNT: usize = 8;

/// All steps as a table, with what all of them share above it.
pub fn table_of_steps(page: &mut Page, record: &Record) {
    if let Some(first) = record.steps.first() {
        page.rows(&details::setting(first));
        page.gap();
    }
    let mut columns: Vec<(String, Vec<String>)> = ["", "", "IOPS", "GB/s", "mean", "99 %", "max"]
        .map(|title| (title.to_owned(), Vec::new()))
        .into();
    for step in &record.steps {
        for (index, (name, direction)) in directions::of(step).into_iter().enumerate() {
            let title = if index == 0 {
                step_title(step)
            } else {
                String::new()
            };
            let missing = || NOT_AVAILABLE.to_owned();
            let cells = match direction {
                None => [
                    title,
                    name.to_owned(),
                    missing(),
                    missing(),
                    missing(),
                    missing(),
                    missing(),
                ],
                Some(direction) => [
                    title,
                    name.to_owned(),
                    show::iops(direction.iops),
                    show::rate(direction.bytes_per_s, GB_BYTES),
                    show::time(direction.latency_ns.mean),
                    show::time_ns(direction.latency_ns.p99),
                    show::time_ns(direction.latency_ns.max),
                ],
            };
            for ((_, column), cell) in columns.iter_mut().zip(cells) {
                column.push(cell);
            }
        }
    }
    page.table(&Columns { columns });
    page.gap();
    page.rows(&doubts_of_steps(record));
}

/// The name of a step, marked where it did not finish.
pub fn step_title(step: &Step) -> String {
    let name = printable(&step.name);
    match step.status {
        Outcome::Finished => name,
        Outcome::Interrupted => format!("{name} (interrupted)"),
        Outcome::Failed | Outcome::Refused => format!("{name} (failed)"),
    }
}

/// Errors by step, and each kind of warning once with the number of steps that have it. A step that has several of one
/// kind, such as one for each of its devices, has each of them here.
pub fn doubts_of_steps(record: &Record) -> Vec<Row> {
    let mut rows = Vec::new();
    for step in &record.steps {
        if let Some(error) = &step.error {
            let text = format!("{}: {}", printable(&step.name), printable(&error.text));
            rows.push(Row::toned("failed", text, Tone::Bad));
        }
    }
    for (warning, steps) in kinds(record) {
        let text = match steps.as_slice() {
            [one] => format!("{}: {}", printable(&one.name), printable(&warning.text)),
            [first, ..] => format!(
                "{} steps, first {}: {}",
                steps.len(),
                printable(&first.name),
                printable(&warning.text)
            ),
            [] => continue,
        };
        rows.push(Row::toned("warning", text, Tone::Caution));
        if !warning.next_step.is_empty() {
            let next = format!("-> {}", printable(&warning.next_step));
            rows.push(Row::toned("", next, Tone::Caution));
        }
    }
    rows
}

/// The nth warning of each kind with the steps that have an nth one.
fn kinds(record: &Record) -> Vec<(&Warning, Vec<&Step>)> {
    let mut kinds: Vec<(usize, &Warning, Vec<&Step>)> = Vec::new();
    for step in &record.steps {
        for (place, warning) in step.warnings.iter().enumerate() {
            let before = step.warnings[..place].iter();
            let nth = before.filter(|other| other.kind == warning.kind).count();
            let known = kinds
                .iter_mut()
                .find(|(number, known, _)| (*number, &known.kind) == (nth, &warning.kind));
            match known {
                Some((_, _, steps)) => steps.push(step),
                None => kinds.push((nth, warning, vec![step])),
            }
        }
    }
    let without_number = |(_, warning, steps)| (warning, steps);
    kinds.into_iter().map(without_number).collect()
}

/// Derived figures, steady state, steps left out.
pub fn rows(record: &Record) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for derived in &record.derived {
        rows.push(Row::new("derived", derived_text(derived)));
        if !derived.is_comparable {
            let why = printable(&derived.why_not.join("; "));
            rows.push(Row::toned(
                "",
                format!("not comparable: {why}"),
                Tone::Caution,
            ));
        }
    }
    let seconds = record.steps.iter().filter_map(|step| step.steady.as_ref());
    for steady in record.steady.iter().chain(seconds) {
        rows.push(steady_row(steady));
    }
    if record.steps.len() > PAGES_MOST_COUNT {
        rows.extend(conditions::over(record));
    }
    for left in &record.left_out {
        let text = format!("{}: {}", printable(&left.step), printable(&left.why));
        rows.push(Row::toned("left out", text, Tone::Caution));
    }
    rows
}

fn derived_text(derived: &Derived) -> String {
    let mut title = printable(&derived.name);
    if let Some(group) = &derived.group {
        title += &format!(", {}", printable(group));
    }
    let values: Vec<String> = derived
        .values
        .iter()
        .map(|value| value_text(derived, value))
        .collect();
    format!("{title}: {}", values.join(", "))
}

fn value_text(derived: &Derived, value: &DerivedValue) -> String {
    let unit = value.unit.as_deref().unwrap_or(&derived.unit);
    let number = value
        .value
        .map_or_else(|| NOT_AVAILABLE.to_owned(), |number| quantity(number, unit));
    let mut text = number;
    // The only value of a figure needs no name.
    if derived.values.len() > 1 {
        text = format!("{} {text}", printable(&value.name));
    }
    if let Some(at) = &value.at {
        text += &format!(" at {}", printable(at));
    }
    text
}

/// A number with its unit, as people read it.
pub fn quantity(number: f64, unit: &str) -> String {
    match unit {
        "iops" => format!("{} IOPS", show::iops(number)),
        "bytes_per_s" => format!("{} GB/s", show::rate(number, GB_BYTES)),
        "ns" => show::time(number),
        "count" => format!("{number:.0}"),
        _ => show::significant(number, 3),
    }
}

fn steady_row(steady: &Steady) -> Row {
    let (word, tone) = if steady.is_attained {
        ("attained", Tone::Plain)
    } else {
        ("NOT attained", Tone::Caution)
    };
    let mut text = format!(
        "{word} after {} samples ({}; {})",
        steady.samples_count, steady.definition, steady.limit
    );
    for cell in steady.cells.iter().take(PAGES_MOST_COUNT) {
        let mean = cell.mean.map_or_else(
            || NOT_AVAILABLE.to_owned(),
            |mean| quantity(mean, &steady.unit),
        );
        let pct = |value: Option<f64>| {
            value.map_or_else(|| NOT_AVAILABLE.to_owned(), |v| show::percent(v, 1))
        };
        text += &format!(
            "; {}: {mean}, range {}, rise {}",
            printable(&cell.step),
            pct(cell.range_pct),
            pct(cell.slope_pct)
        );
    }
    Row::toned("steady", text, tone)
}

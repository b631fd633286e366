//! The machine-readable reports: strict JSON that reads back, and CSV as RFC 4180 has it.

use lanemark::record::Record;
use lanemark::report::{Format, Style, render};
use std::path::Path;

pub fn fixtures() -> Vec<(String, Record)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/records");
    let mut found: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            let text = std::fs::read_to_string(path).unwrap();
            (name, serde_json::from_str(&text).unwrap())
        })
        .collect();
    found.sort_by(|a, b| a.0.cmp(&b.0));
    assert!(found.len() >= 8);
    found
}

fn json(record: &Record) -> String {
    render(record, Format::Json, &Style::PLAIN)
}

/// RFC 4180, section 2, read strictly: CR LF ends a record, quotes only around whole fields.
fn parse_csv(text: &str) -> Vec<Vec<String>> {
    let mut rows = vec![];
    let (mut row, mut field, mut quoted) = (vec![], String::new(), false);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => field.push(chars.next().unwrap()),
            '"' if quoted => {
                quoted = false;
                assert!(
                    matches!(chars.peek(), Some(',' | '\r')),
                    "text after a quote"
                );
            }
            '"' => {
                assert!(field.is_empty(), "a quote inside a bare field");
                quoted = true;
            }
            ',' if !quoted => row.push(std::mem::take(&mut field)),
            '\r' if !quoted => {
                assert_eq!(chars.next(), Some('\n'));
                row.push(std::mem::take(&mut field));
                rows.push(std::mem::take(&mut row));
            }
            c => field.push(c),
        }
    }
    assert!(
        row.is_empty() && field.is_empty() && !quoted,
        "the last line ends"
    );
    rows
}

fn csv(record: &Record) -> Vec<Vec<String>> {
    parse_csv(&render(record, Format::Csv, &Style::PLAIN))
}

/// The field of the row of a direction.
fn field(rows: &[Vec<String>], direction: &str, column: &str) -> String {
    let at = |name: &str| rows[0].iter().position(|title| title == name).unwrap();
    let row = rows.iter().find(|row| row[at("direction")] == direction);
    row.unwrap()[at(column)].clone()
}

#[test]
fn json_reads_back_as_the_same_record() {
    for (name, record) in fixtures() {
        let text = json(&record);
        assert!(text.ends_with("}\n") && !text.ends_with("\n\n"), "{name}");
        let back: Record = serde_json::from_str(&text).unwrap();
        assert_eq!(back, record, "{name}");
        assert!(
            !text.contains('\x1b'),
            "{name}: control characters are escaped"
        );
    }
}

#[test]
fn a_figure_that_is_not_finite_is_null_in_json_and_absent_elsewhere() {
    let (_, mut record) = fixtures().remove(4);
    let read = record.steps[0].read.as_mut().unwrap();
    read.iops = f64::INFINITY;
    read.latency_ns.stddev = f64::NAN;
    let value: serde_json::Value = serde_json::from_str(&json(&record)).unwrap();
    let read = &value["steps"][0]["read"];
    assert!(read["iops"].is_null() && read["latency_ns"]["stddev"].is_null());
    assert!(read["latency_ns"]["mean"].is_number());
    let rows = csv(&record);
    assert_eq!(field(&rows, "read", "iops"), "");
    assert_eq!(field(&rows, "read", "latency_stddev_ns"), "");
    let text = render(&record, Format::Text, &Style::PLAIN);
    assert!(text.contains("± n/a"), "{text}");
    assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
}

#[test]
fn csv_snapshots() {
    for (name, record) in fixtures() {
        insta::assert_snapshot!(
            format!("csv_{name}"),
            render(&record, Format::Csv, &Style::PLAIN)
        );
    }
}

#[test]
fn csv_has_a_full_row_for_each_step_and_direction() {
    for (name, record) in fixtures() {
        let rows = csv(&record);
        let width = rows[0].len();
        assert!(rows.iter().all(|row| row.len() == width), "{name}");
        assert!(rows.len() > record.steps.len(), "{name}");
    }
}

#[test]
fn csv_figures_are_those_of_the_record() {
    let record: Vec<_> = fixtures();
    let record = &record
        .iter()
        .find(|(name, _)| name == "mixed_scheduled")
        .unwrap()
        .1;
    let rows = csv(record);
    let read = record.steps[0].read.as_ref().unwrap();
    assert_eq!(rows.len(), 3, "reads and writes");
    assert_eq!(
        field(&rows, "read", "iops").parse::<f64>().unwrap(),
        read.iops
    );
    assert_eq!(field(&rows, "read", "latency_p99_ns"), "480255");
    assert_eq!(field(&rows, "read", "scheduled_latency_p99_ns"), "56098815");
    assert_eq!(field(&rows, "write", "latency_max_ns"), "611327");
}

#[test]
fn what_does_not_exist_is_empty_in_csv_and_never_zero() {
    let records = fixtures();
    let failed = &records
        .iter()
        .find(|(name, _)| name == "failed_abandoned")
        .unwrap()
        .1;
    let rows = csv(failed);
    for column in [
        "ios_count",
        "iops",
        "latency_min_ns",
        "scheduled_latency_max_ns",
    ] {
        assert_eq!(field(&rows, "write", column), "", "{column}");
    }
    assert_eq!(field(&rows, "read", "depth_device_count"), "");
    assert_eq!(
        field(&rows, "read", "latency_lower_bounds"),
        "mean stddev p99_99 max"
    );
    assert_eq!(field(&rows, "read", "abandoned_count"), "3");
}

#[test]
fn csv_text_is_disarmed() {
    let records = fixtures();
    let hostile = &records
        .iter()
        .find(|(name, _)| name == "hostile_strings")
        .unwrap()
        .1;
    let rows = csv(hostile);
    assert_eq!(field(&rows, "write", "step"), "'=cmd|'/C calc'!A0");
    assert_eq!(field(&rows, "write", "device"), "/tmp/a,b \"c\"\\x0ad.img");
    assert_eq!(field(&rows, "write", "warnings"), "'+odd");
    assert!(
        rows.iter()
            .flatten()
            .all(|f| !f.chars().any(char::is_control))
    );
}

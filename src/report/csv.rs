//! One row for each step and direction, for spreadsheets: RFC 4180, a header with units, `n/a` as an
//! empty field.

use super::conditions::Summary;
use super::{directions, printable};
use crate::record::{Direction, Latency, Record, Step};
use serde_json::Value;

/// The table; lines end in CR LF, as RFC 4180 has it.
pub fn render(record: &Record) -> String {
    let mut out = line(header());
    for step in &record.steps {
        for (name, direction) in directions::of(step) {
            out.push_str(&line(row(step, name, direction)));
        }
    }
    let columns = header();
    for (name, figures) in answers(record) {
        let fields = columns.iter().map(|column| {
            let own = figures.iter().find(|(of, _)| of == column);
            own.map_or_else(String::new, |(_, value)| value.clone())
        });
        let mut fields: Vec<String> = fields.collect();
        name.clone_into(&mut fields[0]);
        out.push_str(&line(fields));
    }
    out
}

/// A figure of several steps: its name, then columns with what stands in them.
type Answer = (&'static str, Vec<(&'static str, String)>);

/// What the verbs found that make their own steps, each as a row of its own below them.
fn answers(record: &Record) -> Vec<Answer> {
    let mut rows = Vec::new();
    let at = |verb: &str, path: &str| record.job.get(verb)?.pointer(path);
    let text = |value: Option<&Value>| match value {
        Some(Value::Number(number)) => number.to_string(),
        _ => String::new(),
    };
    if record.job.get("peak").is_some() {
        let of = |path| text(at("peak", path));
        let depth = ("depth_asked_count", of("/best/depth_count"));
        rows.push(("answer: peak", vec![("iops", of("/peak_iops")), depth]));
        let knee = ("depth_asked_count", of("/knee_depth_count"));
        rows.push(("answer: knee, 97 % of the peak", vec![knee]));
    }
    if record.job.get("load").is_some() {
        let of = |path| text(at("load", path));
        rows.push((
            "answer: peak of the closed loop",
            vec![("iops", of("/peak_iops"))],
        ));
        let limit = ("scheduled_latency_p99_ns", of("/p99_at_most_ns"));
        if !limit.1.is_empty() {
            let figures = vec![("iops", of("/highest_iops")), limit];
            rows.push(("answer: highest rate that keeps the p99", figures));
        }
    }
    rows
}

fn line(fields: Vec<String>) -> String {
    fields.join(",") + "\r\n"
}

const LATENCY: [&str; 11] = [
    "min_ns",
    "mean_ns",
    "stddev_ns",
    "p50_ns",
    "p90_ns",
    "p99_ns",
    "p99_9_ns",
    "p99_99_ns",
    "max_ns",
    "censored_count",
    "lower_bounds",
];

fn header() -> Vec<String> {
    let mut names: Vec<String> = [
        "step",
        "status",
        "direction",
        "device",
        "model",
        "serial",
        "backend",
        "window_s",
        "ios_count",
        "bytes_count",
        "iops",
        "bytes_per_s",
    ]
    .map(str::to_owned)
    .into();
    names.extend(LATENCY.map(|name| format!("latency_{name}")));
    names.extend(LATENCY.map(|name| format!("scheduled_latency_{name}")));
    names.extend(
        [
            "depth_asked_count",
            "depth_device_count",
            "depth_queued_count",
            "in_flight_mean",
            "submitted_count",
            "completed_count",
            "failed_count",
            "abandoned_count",
            "temperature_before_celsius",
            "temperature_after_celsius",
            "used_pct",
            "others_ios_count",
            "write_cache",
            "verdict",
            "warnings",
        ]
        .map(str::to_owned),
    );
    names
}

fn row(step: &Step, name: &str, direction: Option<&Direction>) -> Vec<String> {
    let status = serde_json::to_value(step.status)
        .ok()
        .and_then(|value| value.as_str().map(str::to_owned))
        .unwrap_or_default();
    let devices = |of: fn(&crate::record::DeviceUse) -> Option<&str>| {
        let found: Vec<_> = step.devices.iter().filter_map(of).collect();
        words(&found.join(" "))
    };
    let mut fields = vec![
        words(&step.name),
        words(&status),
        words(name),
        devices(|device| Some(&device.path)),
        devices(|device| device.model.as_deref()),
        devices(|device| device.serial.as_deref()),
        words(&step.backend.name),
        float(step.window_s),
    ];
    match direction {
        None => fields.extend(std::iter::repeat_n(String::new(), 4)),
        Some(direction) => fields.extend([
            direction.ios_count.to_string(),
            direction.bytes_count.to_string(),
            float(direction.iops),
            float(direction.bytes_per_s),
        ]),
    }
    fields.extend(latency(direction.map(|direction| &direction.latency_ns)));
    fields.extend(latency(
        direction.and_then(|direction| direction.scheduled_latency_ns.as_ref()),
    ));
    let warnings: Vec<_> = step.warnings.iter().map(|w| w.kind.as_str()).collect();
    fields.extend([
        step.depth.asked_count.to_string(),
        optional(step.depth.device_count),
        optional(step.depth.queued_count),
        float(step.depth.in_flight_mean),
        step.submitted_count.to_string(),
        step.completed_count.to_string(),
        step.failed_count.to_string(),
        step.abandoned_count.to_string(),
    ]);
    fields.extend(conditions(step));
    fields.extend([words(step.verdict.kind.name()), words(&warnings.join(" "))]);
    fields
}

/// What the step ran under: the hottest and most worn of its devices.
pub(super) fn conditions(step: &Step) -> [String; 5] {
    let summary = Summary::of(step);
    let celsius = |value: Option<f64>| value.map(float).unwrap_or_default();
    [
        celsius(summary.before_celsius),
        celsius(summary.after_celsius),
        optional(summary.used_pct.map(u64::from)),
        optional(summary.others_ios_count),
        summary.write_cache.unwrap_or_default(),
    ]
}

fn latency(latency: Option<&Latency>) -> Vec<String> {
    let Some(latency) = latency else {
        return vec![String::new(); LATENCY.len()];
    };
    vec![
        latency.min.to_string(),
        float(latency.mean),
        float(latency.stddev),
        latency.p50.to_string(),
        latency.p90.to_string(),
        latency.p99.to_string(),
        latency.p99_9.to_string(),
        latency.p99_99.to_string(),
        latency.max.to_string(),
        latency.censored_count.to_string(),
        words(&latency.lower_bounds.join(" ")),
    ]
}

/// Digits that read back as the same number; empty where it is not finite.
pub(super) fn float(value: f64) -> String {
    if value.is_finite() {
        value.to_string()
    } else {
        String::new()
    }
}

fn optional(value: Option<u64>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// A text field. Spreadsheets run what begins with `=`, `+`, `-` or `@`: an apostrophe in front keeps it
/// text. Quoted where RFC 4180 asks for it.
pub(super) fn words(text: &str) -> String {
    let mut text = printable(text);
    if text.trim_start().starts_with(['=', '+', '-', '@']) {
        text.insert(0, '\'');
    }
    if text.contains([',', '"', '\'']) || text.trim() != text {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_and_disarmed() {
        assert_eq!(words("plain"), "plain");
        assert_eq!(words("a,b"), "\"a,b\"");
        assert_eq!(words("say \"hi\""), "\"say \"\"hi\"\"\"");
        assert_eq!(words("=cmd|' /C calc'!A0"), "\"'=cmd|' /C calc'!A0\"");
        for evil in ["+1", "-1", "@SUM(A1)", " =1", "\u{3000}=1"] {
            assert!(words(evil).starts_with("\"'"), "{evil}");
        }
        assert_eq!(
            words("\t=1"),
            "\\x09=1",
            "control characters are spelled out"
        );
        assert_eq!(words("two\r\nlines"), "two\\x0d\\x0alines");
    }

    #[test]
    fn floats_read_back_as_the_same_number() {
        for value in [0.1_f64, 142_831.416_667, 1e-9, 5e300] {
            assert_eq!(float(value).parse::<f64>(), Ok(value));
        }
        assert_eq!(float(f64::NAN), "");
    }
}

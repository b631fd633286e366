//! `lanemark lanes` on a terminal: a tree of links with the devices at its ends, then what was measured.

use super::super::figures::{self as show, GB_BYTES};
use super::super::{Style, printable};
use super::layout::{Columns, Page, Row, Tone};
use super::path::{measured_rows, path_rows, rate_text};
use crate::record::{Hop, IopsBand, LaneDevice, LaneMeasurement, LanesReport, Outcome};

/// The whole report.
pub fn render(report: &LanesReport, style: &Style) -> String {
    let mut page = Page::new(*style);
    super::state(&mut page, report.status, report.error.as_ref());
    for line in tree(&report.devices) {
        page.paragraph(&printable(&line), Tone::Plain);
    }
    for device in &report.devices {
        page.gap();
        page.paragraph(&printable(&title(device)), Tone::Heading);
        page.rows(&device_rows(device));
    }
    if !report.shared.is_empty() {
        page.gap();
        let rows = report.shared.iter().map(|link| {
            let full = link.full_with_count.map_or(String::new(), |count| {
                format!("; full with {count} of them at the most of their own links")
            });
            let text = format!(
                "{}: the {} devices below can ask for {}, it carries {}{full}",
                link.at,
                link.devices_count,
                rate_text(link.below),
                rate_text(link.read_ceiling)
            );
            Row::toned("shared", printable(&text), Tone::Caution)
        });
        page.rows(&rows.collect::<Vec<_>>());
    }
    for measurement in &report.measurements {
        page.gap();
        measured(&mut page, measurement);
    }
    if !report.warnings.is_empty() {
        page.gap();
        page.rows(&super::details::warnings(&report.warnings));
    }
    if report.devices.is_empty() {
        page.paragraph(
            "no device hangs on a link that the kernel shows",
            Tone::Plain,
        );
    }
    page.finish()
}

fn title(device: &LaneDevice) -> String {
    let mut text = device.name.clone();
    if let Some(model) = &device.model {
        text += &format!(", {}", model.trim());
    }
    if let Some(bytes) = device.capacity_bytes.filter(|bytes| *bytes > 0) {
        text += &format!(", {}", show::capacity(bytes));
    }
    if let Some(transport) = &device.transport {
        text += &format!(", {transport}");
    }
    text
}

fn device_rows(device: &LaneDevice) -> Vec<Row> {
    let mut rows = path_rows(&device.path);
    let directions = [
        ("read", device.read, device.read_4k),
        ("write", device.write, device.write_4k),
    ];
    let mut label = "ceiling";
    for (name, rate, io) in directions {
        if let Some(rate) = rate {
            let io = io.map_or(String::new(), |io| format!(", {} of 4 KiB", iops_text(io)));
            let text = format!("{name} {}{io}", rate_text(rate));
            rows.push(Row::new(std::mem::take(&mut label), text));
        }
    }
    for (label, text) in [
        ("datasheet", &device.datasheet),
        ("rating", &device.controller),
    ] {
        if let Some(text) = text {
            rows.push(Row::new(label, printable(text)));
        }
    }
    rows
}

/// `410k IOPS`, or a range.
fn iops_text(band: IopsBand) -> String {
    let (low, high) = (show::compact(band.low_iops), show::compact(band.high_iops));
    if low == high {
        format!("{high} IOPS")
    } else {
        format!("{low} to {high} IOPS")
    }
}

/// A line for each link, once, with what is below it; then the devices without a link.
fn tree(devices: &[LaneDevice]) -> Vec<String> {
    let mut lines = Vec::new();
    let ends: Vec<(&[Hop], &LaneDevice)> = devices
        .iter()
        .map(|device| (device.path.hops.as_slice(), device))
        .collect();
    branches(&ends, 0, &mut lines);
    lines
}

fn branches(ends: &[(&[Hop], &LaneDevice)], level: usize, lines: &mut Vec<String>) {
    let indent = "  ".repeat(level);
    let mut done: Vec<&str> = Vec::new();
    for (hops, device) in ends {
        let Some(hop) = hops.first() else {
            let unseen = device.path.hops.is_empty();
            let mark = if unseen { " (no link seen)" } else { "" };
            lines.push(format!("{indent}= {}{mark}", device.name));
            continue;
        };
        if done.contains(&hop.name.as_str()) {
            continue;
        }
        done.push(&hop.name);
        lines.push(format!("{indent}{}", hop_line(hop)));
        let below: Vec<(&[Hop], &LaneDevice)> = ends
            .iter()
            .filter(|(hops, _)| hops.first().is_some_and(|other| other.name == hop.name))
            .map(|(hops, device)| (&hops[1..], *device))
            .collect();
        branches(&below, level + 1, lines);
    }
}

fn hop_line(hop: &Hop) -> String {
    let now = hop.now.as_ref().map_or("link not seen", |now| &now.text);
    let mut text = format!("{} > {}  {now}", hop.name, hop.to);
    if let Some(band) = hop.read_ceiling {
        text += &format!(", {}", rate_text(band));
    }
    text
}

fn measured(page: &mut Page, measurement: &LaneMeasurement) {
    let name = printable(&measurement.name);
    match measurement.step.status {
        Outcome::Finished => page.paragraph(&name, Tone::Heading),
        status => {
            let text = format!("{name}: {}", super::headline(status, None));
            page.paragraph(&text, Tone::Bad);
        }
    }
    let column = |title: &str, cell: &dyn Fn(usize) -> String| {
        let cells = (0..measurement.curve.len()).map(cell).collect();
        (title.to_owned(), cells)
    };
    let curve = &measurement.curve;
    page.table(&Columns {
        columns: vec![
            column("depth", &|at| {
                let mark = if is_cut(measurement, at) {
                    " (interrupted)"
                } else {
                    ""
                };
                show::count(curve[at].depth_count) + mark
            }),
            column("IOPS", &|at| show::iops(curve[at].iops)),
            column("GB/s", &|at| show::rate(curve[at].bytes_per_s, GB_BYTES)),
        ],
    });
    let mut rows = Vec::new();
    let mut label = "burnt";
    for burn in &measurement.burns {
        rows.push(Row::new(std::mem::take(&mut label), show::burnt(burn)));
    }
    rows.extend(measured_rows(&measurement.step));
    rows.extend(super::details::warnings(&measurement.step.warnings));
    page.rows(&rows);
}

/// Whether this point is the window that was not finished: then it is the measurement's own step.
fn is_cut(measurement: &LaneMeasurement, at: usize) -> bool {
    let LaneMeasurement { curve, step, .. } = measurement;
    let both = [&step.read, &step.write].into_iter().flatten();
    let iops: f64 = both.map(|direction| direction.iops).sum();
    step.status != Outcome::Finished
        && at + 1 == curve.len()
        && curve[at].iops.total_cmp(&iops).is_eq()
}

//! Everything of a step beside its rates and latency.

use super::super::figures::{self as show, GB_BYTES, NOT_AVAILABLE};
use super::super::printable;
use super::layout::{Columns, Page, Row, Tone};
use super::path;
use crate::record::{
    DeviceUse, ErrorTally, ReactorUse, SlowIo, StampMode, Step, StreamUse, Warning,
};
use crate::units::Bytes;

/// Reactors listed one by one; with more, the rest is summed up.
const REACTORS_SHOWN: usize = 8;

/// Streams listed; the record has them all.
const STREAMS_SHOWN: usize = 32;

/// Slowest I/Os listed; the record has them all.
const SLOWEST_SHOWN: usize = 5;

/// What was measured, by which way, for how long.
pub fn setting(step: &Step) -> Vec<Row> {
    let mut rows = Vec::new();
    for device in &step.devices {
        rows.extend(device_rows(device));
    }
    let backend = &step.backend;
    let mut text = backend.name.clone();
    if !backend.reason.is_empty() {
        text += &format!(": {}", backend.reason);
    }
    rows.push(Row::new("backend", printable(&text)));
    if !backend.features.is_empty() {
        rows.push(Row::new("", printable(&backend.features.join(", "))));
    }
    rows.extend(path::rows(step));
    let mut window = show::seconds(step.window_s);
    if step.ramp_s > 0.0 {
        window += &format!(" after a ramp of {}", show::seconds(step.ramp_s));
    }
    rows.push(Row::new("window", window));
    rows
}

fn device_rows(device: &DeviceUse) -> Vec<Row> {
    let mut name = device.path.clone();
    for (word, value) in [
        ("", &device.model),
        ("serial ", &device.serial),
        ("firmware ", &device.firmware),
    ] {
        if let Some(value) = value.as_deref().filter(|value| !value.trim().is_empty()) {
            name += &format!(", {word}{}", value.trim());
        }
    }
    // To the byte, where the rounded figures are not.
    let exact = match device.capacity_bytes {
        0..1_000_000 => String::new(),
        bytes => format!("{} B = ", show::count(bytes)),
    };
    let mut size = format!(
        "{}, {exact}{}, {} B blocks",
        device.kind,
        show::capacity(device.capacity_bytes),
        device.logical_block_bytes
    );
    if let Some(physical) = device.physical_block_bytes {
        size += &format!(" ({physical} B physical)");
    }
    let mut rows = vec![
        Row::new("device", printable(&name)),
        Row::new("", printable(&size)),
    ];
    if !device.in_use.is_empty() {
        let text = format!("in use by: {}", device.in_use.join(", "));
        rows.push(Row::toned("", printable(&text), Tone::Caution));
    }
    rows
}

/// Depth, mix, reactors, stamps: what the figures rest on.
pub fn trust(step: &Step) -> Vec<Row> {
    let depth = &step.depth;
    let known = |value: Option<u64>| value.map_or(NOT_AVAILABLE.to_owned(), show::count);
    let mut rows = vec![Row::new(
        "depth",
        format!(
            "asked {}, in the device at most {}, queued above it {}, in flight on average {}",
            show::count(depth.asked_count),
            known(depth.device_count),
            known(depth.queued_count),
            show::significant(depth.in_flight_mean, 4)
        ),
    )];
    let mut label = "mix";
    for share in &step.mix {
        let text = format!(
            "{}: asked {}, achieved {}",
            printable(&share.share),
            show::percent(share.asked_pct, 5),
            show::percent(share.achieved_pct, 5)
        );
        rows.push(Row::new(std::mem::take(&mut label), text));
    }
    rows.extend(reactors(&step.reactors));
    let mode = match step.stamp.mode {
        StampMode::Exact => "exact, one for each I/O",
        StampMode::Batch => "one for each batch",
    };
    let bound = show::time_ns(step.stamp.bound_ns);
    rows.push(Row::new(
        "stamps",
        format!("{mode}; bias at most {bound} for 99 % of I/Os"),
    ));
    rows
}

fn reactors(reactors: &[ReactorUse]) -> Vec<Row> {
    let mut label = "reactors";
    let mut rows: Vec<_> = reactors
        .iter()
        .take(REACTORS_SHOWN)
        .map(|reactor| Row::new(std::mem::take(&mut label), reactor_text(reactor)))
        .collect();
    let rest = reactors.get(REACTORS_SHOWN..).unwrap_or_default();
    if !rest.is_empty() {
        let shares = || rest.iter().filter_map(|reactor| reactor.busy_ratio);
        rows.push(Row::new(
            "",
            format!(
                "and {} more: busy {} to {}",
                rest.len(),
                show::share(shares().fold(f64::INFINITY, f64::min)),
                show::share(shares().fold(f64::NEG_INFINITY, f64::max))
            ),
        ));
    }
    rows
}

fn reactor_text(reactor: &ReactorUse) -> String {
    let (Some(cpu), Some(busy_ratio)) = (reactor.cpu, reactor.busy_ratio) else {
        return "simulated: work takes no time".to_owned();
    };
    let cost = reactor
        .busy_ns_per_io
        .map_or(NOT_AVAILABLE.to_owned(), show::time);
    let source = match reactor.busy_source.as_str() {
        "thread-cpu-time" => "CPU time",
        "thread-cpu-time-alone" => "CPU time; too short to see kernel workers",
        "thread-and-worker-cpu-time" => "CPU time, kernel workers included",
        other => other,
    };
    printable(&format!(
        "CPU {cpu}: busy {}, {cost} per I/O (by {source})",
        show::share(busy_ratio)
    ))
}

/// The table of streams, where there is more than one.
pub fn streams(page: &mut Page, step: &Step) {
    if step.streams.len() < 2 {
        return;
    }
    page.gap();
    let shown = &step.streams[..step.streams.len().min(STREAMS_SHOWN)];
    let column = |title: &str, cell: &dyn Fn(&StreamUse) -> String| {
        (title.to_owned(), shown.iter().map(cell).collect::<Vec<_>>())
    };
    let time = |ns: Option<f64>| ns.map_or(NOT_AVAILABLE.to_owned(), show::time);
    let mut columns = vec![column("stream", &|s| s.index.to_string())];
    if step.devices.len() > 1 {
        columns.push(column("device", &|s| device_name(step, s)));
    }
    columns.extend([
        column("first LBA", &|s| show::count(s.first_lba)),
        column("blocks", &|s| show::count(s.region_blocks)),
        column("IOPS", &|s| show::iops(s.iops)),
        column("GB/s", &|s| show::rate(s.bytes_per_s, GB_BYTES)),
        column("mean", &|s| time(s.mean_ns)),
        column("max", &|s| {
            s.max_ns.map_or(NOT_AVAILABLE.to_owned(), show::time_ns)
        }),
    ]);
    page.table(&Columns { columns });
    let more = step.streams.len() - shown.len();
    if more > 0 {
        page.paragraph(
            &format!("and {more} more streams: see --format json"),
            Tone::Quiet,
        );
    }
    page.gap();
}

fn device_name(step: &Step, stream: &StreamUse) -> String {
    usize::try_from(stream.device_index)
        .ok()
        .and_then(|index| step.devices.get(index))
        .map_or(NOT_AVAILABLE.to_owned(), |device| printable(&device.path))
}

/// Failures, the slowest I/Os, doubts, and what bound the result.
pub fn findings(step: &Step) -> Vec<Row> {
    let mut rows = Vec::new();
    if step.failed_count > 0 || step.abandoned_count > 0 {
        rows.push(Row::toned("I/Os", accounts(step), Tone::Bad));
    }
    let mut label = "errors";
    for tally in &step.errors {
        let text = error_text(tally);
        rows.push(Row::toned(std::mem::take(&mut label), text, Tone::Bad));
    }
    let mut label = "slowest";
    for slow in step.slowest.iter().take(SLOWEST_SHOWN) {
        rows.push(Row::new(std::mem::take(&mut label), slow_text(slow)));
    }
    if let Some(gap) = step.poll_gaps.iter().max_by_key(|gap| gap.up_to_ns) {
        let text = format!(
            "longest between two polls up to {} ({})",
            show::time_ns(gap.up_to_ns),
            times(gap.count)
        );
        rows.push(Row::new("gaps", text));
    }
    rows.extend(warnings(&step.warnings));
    rows.extend(path::verdict(step));
    rows
}

fn accounts(step: &Step) -> String {
    format!(
        "{} submitted = {} completed + {} failed + {} abandoned",
        show::count(step.submitted_count),
        show::count(step.completed_count),
        show::count(step.failed_count),
        show::count(step.abandoned_count)
    )
}

fn times(count: u64) -> String {
    match count {
        1 => "once".to_owned(),
        count => format!("{} times", show::count(count)),
    }
}

fn error_text(tally: &ErrorTally) -> String {
    printable(&format!(
        "{} {}, {}, first at LBA {}",
        tally.op,
        tally.status,
        times(tally.count),
        show::count(tally.first_lba)
    ))
}

fn slow_text(slow: &SlowIo) -> String {
    let latency = if slow.abandoned {
        show::time_at_least(slow.latency_ns)
    } else {
        show::time_ns(slow.latency_ns)
    };
    let mut text = format!(
        "{latency}: {} {} at LBA {}, {} into the window",
        slow.op,
        Bytes(slow.bytes_count),
        show::count(slow.lba),
        show::seconds(slow.at_s)
    );
    if let Some(cpu) = slow.cpu {
        text += &format!(", CPU {cpu}");
    }
    if slow.abandoned {
        text += ", never completed";
    }
    printable(&text)
}

/// Doubts, each with its next step.
pub fn warnings(warnings: &[Warning]) -> Vec<Row> {
    let mut rows = Vec::new();
    for warning in warnings {
        rows.push(Row::toned(
            "warning",
            printable(&warning.text),
            Tone::Caution,
        ));
        if !warning.next_step.is_empty() {
            rows.push(Row::new(
                "",
                format!("-> {}", printable(&warning.next_step)),
            ));
        }
    }
    rows
}

//! What `lanemark scale` found, as tables.

use crate::cli::listing::{lines, table, text_of};
use crate::record::{Outcome, Record, Scale, ScaleRow, Step};
use crate::report::{figures, printable, step_title};

/// Rows, devices, and what it comes to; nothing of a record without a scale.
pub(in crate::cli) fn text(record: &Record) -> String {
    let Some(scale) = &record.scale else {
        return String::new();
    };
    let shared = scale.shared.as_ref();
    let of_shared = shared.map_or_else(
        || "OF SHARED HOP".to_owned(),
        |hop| format!("OF {}", printable(&hop.at)),
    );
    let header = [
        "DEVICES",
        "IOPS",
        "GB/s",
        "LEAST",
        "MEAN",
        "MOST",
        "JAIN",
        "LEAST/MOST",
        "OF ALONE",
        &of_shared,
    ];
    let mut rows = table(&header);
    for row in &scale.rows {
        rows.add_row(fields(&row.devices_count.to_string(), row));
    }
    if let (Some(row), Some(node)) = (&scale.nodes.remote, scale.nodes.remote_node_index) {
        rows.add_row(fields(&format!("{}, node {node}", row.devices_count), row));
    }
    let mut drives = table(&["DEVICE", "GB/s ALONE", "WITH ALL", "KEPT"]);
    for drive in &scale.drives {
        drives.add_row([
            printable(&drive.path),
            gb(drive.alone_bytes_per_s),
            drive.together_bytes_per_s.map_or_else(not_available, gb),
            drive.kept_ratio.map_or_else(not_available, figures::share),
        ]);
    }
    let parts = [text_of(&rows), text_of(&drives), lines(&record.answer)];
    parts.join("\n")
}

fn not_available() -> String {
    figures::NOT_AVAILABLE.to_owned()
}

fn gb(bytes_per_s: f64) -> String {
    figures::rate(bytes_per_s, figures::GB_BYTES)
}

fn fields(name: &str, row: &ScaleRow) -> Vec<String> {
    let share = |ratio: Option<f64>| ratio.map_or_else(not_available, figures::share);
    let ratio =
        |ratio: Option<f64>| ratio.map_or_else(not_available, |ratio| format!("{ratio:.3}"));
    let of_shared = row.of_shared_low_pct.zip(row.of_shared_high_pct);
    vec![
        name.to_owned(),
        figures::iops(row.sum_iops),
        gb(row.sum_bytes_per_s),
        gb(row.least_bytes_per_s),
        gb(row.mean_bytes_per_s),
        gb(row.most_bytes_per_s),
        ratio(row.jain_ratio),
        share(row.least_to_most_ratio),
        share(row.of_alone_ratio),
        of_shared.map_or_else(not_available, |(low, high)| {
            let (low, high) = (format!("{low:.1}"), format!("{high:.1}"));
            if low == high {
                format!("{low} %")
            } else {
                format!("{low} to {high} %")
            }
        }),
    ]
}

/// What is shared, where it is full, what far reactors lose, what binds; nothing of a record without a scale.
pub(in crate::cli) fn answer(record: &Record) -> Vec<String> {
    let Some(scale) = &record.scale else {
        return Vec::new();
    };
    let mut lines = vec![shared_line(scale), saturation_line(scale)];
    let nodes = &scale.nodes;
    lines.push(
        match (
            nodes.local_node_index,
            nodes.remote_node_index,
            nodes.remote_ratio,
        ) {
            (Some(local), Some(remote), Some(ratio)) => format!(
                "nodes: from node {remote} {} of what node {local} moves, where the devices are",
                figures::share(ratio)
            ),
            (_, Some(remote), None) => format!("nodes: node {remote} was not reached"),
            _ => format!(
                "nodes: no reactor far from the devices was tried: {}",
                nodes.why_not
            ),
        },
    );
    let last = scale.rows.last().map(|row| &row.step);
    if let Some(step) = record.steps.iter().find(|step| Some(&step.name) == last) {
        lines.push(verdict_line(step, record.status));
    }
    let cut = record.steps.iter();
    let cut = cut.filter(|step| step.status != Outcome::Finished);
    lines.extend(cut.map(|step| format!("cut off: {}, which is in no row", step_title(step))));
    lines
}

fn shared_line(scale: &Scale) -> String {
    let Some(hop) = &scale.shared else {
        return format!(
            "shared hop: none that can be seen: {}",
            scale.why_not_shared
        );
    };
    let (low, high) = (
        gb(hop.ceiling.low_bytes_per_s),
        gb(hop.ceiling.high_bytes_per_s),
    );
    let ceiling = if low == high {
        high
    } else {
        format!("{low} to {high}")
    };
    format!(
        "shared hop: {}, the narrowest that leads to all: {ceiling} GB/s of this workload at most",
        hop.at
    )
}

fn saturation_line(scale: &Scale) -> String {
    let Some(count) = scale.saturation_count else {
        return if scale.rows.iter().any(|row| row.sum_bytes_per_s > 0.0) {
            "saturation: not all devices were run together".to_owned()
        } else {
            "saturation: nothing was moved".to_owned()
        };
    };
    let all = scale.drives.len();
    let of_alone = scale.rows.last().and_then(|row| row.of_alone_ratio);
    let kept = of_alone.map_or_else(not_available, figures::share);
    match scale.is_held_back {
        None => "saturation: not all devices were run together".to_owned(),
        Some(false) => format!(
            "saturation: none: all {all} together move {kept} of what they move alone, one by one"
        ),
        Some(true) => format!(
            "saturation: {count} of {all} devices give 97 % of the most; all together move {kept} of what they move alone, one by one"
        ),
    }
}

/// The verdict on the most devices that were run together.
fn verdict_line(step: &Step, status: Outcome) -> String {
    let of = match status {
        Outcome::Finished => String::new(),
        _ => format!(" so far, of {}", step.name),
    };
    let verdict = &step.verdict;
    let at = verdict
        .at
        .as_deref()
        .map_or_else(String::new, |at| format!(" at {at}"));
    format!("verdict{of}: {}{at}: {}", verdict.kind.words(), verdict.why)
}

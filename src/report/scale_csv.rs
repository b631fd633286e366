//! `scale` as a table: one row for each number of devices, then one for each device.

use super::csv::{float, words};
use crate::record::{Scale, ScaleDrive, ScaleRow};

const HEADER: [&str; 15] = [
    "kind",
    "devices_count",
    "step",
    "device",
    "iops",
    "bytes_per_s",
    "least_bytes_per_s",
    "mean_bytes_per_s",
    "most_bytes_per_s",
    "jain_ratio",
    "least_to_most_ratio",
    "of_alone_ratio",
    "of_shared_low_pct",
    "of_shared_high_pct",
    "alone_bytes_per_s",
];

/// The table; lines end in CR LF, as RFC 4180 has it.
pub fn render(scale: &Scale) -> String {
    let mut rows = vec![HEADER.map(str::to_owned)];
    rows.extend(scale.rows.iter().map(|found| row("together", found)));
    let remote = scale.nodes.remote.iter();
    rows.extend(remote.map(|found| row("remote", found)));
    rows.extend(scale.drives.iter().map(drive));
    rows.iter()
        .map(|fields| fields.join(",") + "\r\n")
        .collect()
}

fn optional(value: Option<f64>) -> String {
    value.map(float).unwrap_or_default()
}

fn row(kind: &str, row: &ScaleRow) -> [String; HEADER.len()] {
    [
        kind.to_owned(),
        row.devices_count.to_string(),
        words(&row.step),
        String::new(),
        float(row.sum_iops),
        float(row.sum_bytes_per_s),
        float(row.least_bytes_per_s),
        float(row.mean_bytes_per_s),
        float(row.most_bytes_per_s),
        optional(row.jain_ratio),
        optional(row.least_to_most_ratio),
        optional(row.of_alone_ratio),
        optional(row.of_shared_low_pct),
        optional(row.of_shared_high_pct),
        String::new(),
    ]
}

fn drive(drive: &ScaleDrive) -> [String; HEADER.len()] {
    let mut fields = [const { String::new() }; HEADER.len()];
    "device".clone_into(&mut fields[0]);
    fields[3] = words(&drive.path);
    fields[4] = optional(drive.together_iops);
    fields[5] = optional(drive.together_bytes_per_s);
    fields[11] = optional(drive.kept_ratio);
    fields[14] = float(drive.alone_bytes_per_s);
    fields
}

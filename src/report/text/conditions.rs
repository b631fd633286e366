//! Health of the devices and frequency of the CPUs, as rows.

use super::super::conditions::{Summary, celsius, frequency, health, write_cache};
use super::super::printable;
use super::layout::Row;
use crate::record::{Record, Step};

/// Rows of one step. A device that is no hardware of its own says nothing here.
pub fn rows(step: &Step) -> Vec<Row> {
    let Some(conditions) = &step.conditions else {
        return Vec::new();
    };
    let mut rows = Vec::new();
    let (mut label, mut cache_label) = ("health", "cache");
    let mut caches = Vec::new();
    for device in &conditions.devices {
        let Some(named) = step.devices.get(device.device_index as usize) else {
            continue;
        };
        if !matches!(named.kind.as_str(), "block" | "nvme" | "scsi") {
            continue;
        }
        let of_device = |text: String| match step.devices.len() {
            0 | 1 => printable(&text),
            _ => printable(&format!("{}: {text}", named.path)),
        };
        let text = of_device(health(device));
        rows.push(Row::new(std::mem::take(&mut label), text));
        let text = of_device(write_cache(device));
        caches.push(Row::new(std::mem::take(&mut cache_label), text));
    }
    rows.extend(caches);
    let mut label = "frequency";
    for text in conditions.cpus.iter().filter_map(frequency) {
        rows.push(Row::new(std::mem::take(&mut label), printable(&text)));
    }
    rows
}

/// One row over all steps: how warm it was and became.
pub fn over(record: &Record) -> Option<Row> {
    let all: Vec<Summary> = record.steps.iter().map(Summary::of).collect();
    let first = all.iter().find_map(|step| step.before_celsius)?;
    let hottest = all
        .iter()
        .flat_map(|step| [step.before_celsius, step.after_celsius])
        .flatten()
        .reduce(f64::max)?;
    let mut text = format!(
        "{} at the start, {} at most",
        celsius(first),
        celsius(hottest)
    );
    if let Some(used) = all.iter().filter_map(|step| step.used_pct).next_back() {
        text += &format!(", {used} % of the rated life used at the end");
    }
    Some(Row::new("health", text))
}

#[cfg(test)]
mod tests {
    use super::super::super::conditions::samples::{off, record};
    use super::*;

    #[test]
    fn the_write_cache_has_a_row_known_or_not() {
        for (cache, said) in [
            (off(), "write cache off (feature 06h by /dev/nvme0)"),
            (None, "write cache unknown: nobody may ask"),
        ] {
            let rows = rows(&record(cache).steps[0]);
            let row = rows.iter().find(|row| row.label == "cache");
            assert_eq!(row.map(|row| row.text.as_str()), Some(said));
        }
    }
}

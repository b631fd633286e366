//! What the steps ran under: health of the devices, I/O of others, frequency of the CPUs.

use super::super::conditions::{celsius, frequency, others};
use super::super::figures as show;
use super::super::printable;
use super::table::{Cell, Row, Table, heads};
use crate::record::{DeviceConditions, Health, Record, Step};

/// The tables of a record, and what could not be read with the reason, each once.
pub struct ConditionsView {
    /// Health and CPUs.
    pub tables: Vec<Table>,
    /// What is not known, and why.
    pub unknown: Vec<String>,
}

/// Everything of a record; empty where nothing was read.
pub fn view(record: &Record) -> ConditionsView {
    ConditionsView {
        tables: [devices(record), cpus(record)]
            .into_iter()
            .flatten()
            .collect(),
        unknown: unknown(record),
    }
}

fn with_index(record: &Record) -> impl Iterator<Item = (usize, &Step)> {
    record.steps.iter().enumerate()
}

fn devices(record: &Record) -> Option<Table> {
    let mut rows = Vec::new();
    for (index, step) in with_index(record) {
        for device in step.conditions.iter().flat_map(|found| &found.devices) {
            if device.before.is_some()
                || device.after.is_some()
                || device.others.is_some()
                || device.write_cache.is_some()
            {
                rows.push(Row {
                    step: index,
                    direction: "",
                    cells: cells(step, device),
                });
            }
        }
    }
    if rows.is_empty() {
        return None;
    }
    let names = [
        ("step", true),
        ("device", true),
        ("before", false),
        ("after", false),
        ("life used", false),
        ("spare", false),
        ("slowed down", false),
        ("media errors", false),
        ("I/O of others", false),
        ("write cache", true),
        ("warns of", true),
        ("read by", true),
    ];
    Some(Table {
        caption: "Devices before and after each step".to_owned(),
        heads: heads(&names),
        rows,
    })
}

fn cells(step: &Step, device: &DeviceConditions) -> Vec<Cell> {
    let shown =
        |text: Option<String>| Cell::shown(text.unwrap_or_else(|| show::NOT_AVAILABLE.to_owned()));
    let degrees = |health: &Option<Health>| health.as_ref()?.temperature_celsius.map(celsius);
    let last = device.after.as_ref().or(device.before.as_ref());
    let path = step.devices.get(device.device_index as usize);
    let percent = |of: fn(&Health) -> Option<u8>| last.and_then(of).map(|pct| format!("{pct} %"));
    let alarms = last.map(|health| {
        let texts: Vec<&str> = health
            .alarms
            .iter()
            .map(|alarm| alarm.text.as_str())
            .collect();
        match texts.join(", ") {
            none if none.is_empty() => "nothing".to_owned(),
            some => some,
        }
    });
    let cache = device.write_cache.as_ref();
    let cache = cache.map(|cache| cache.state.name());
    vec![
        Cell::text(&step.name),
        Cell::text(path.map_or("", |device| &device.path)),
        shown(degrees(&device.before)),
        shown(degrees(&device.after)),
        shown(percent(|health| health.used_pct)),
        shown(percent(|health| health.spare_pct)),
        shown(slowed(device)),
        shown(
            last.and_then(|health| health.media_errors_count)
                .map(show::count),
        ),
        shown(device.others.as_ref().map(others)),
        Cell::text(cache.unwrap_or(show::NOT_AVAILABLE)),
        Cell::text(alarms.as_deref().unwrap_or(show::NOT_AVAILABLE)),
        Cell::text(last.map_or(show::NOT_AVAILABLE, |health| &health.source)),
    ]
}

/// Times that it slowed down for heat during the step.
fn slowed(device: &DeviceConditions) -> Option<String> {
    let count = |health: &Health| {
        health
            .light_throttles_count?
            .checked_add(health.heavy_throttles_count?)
    };
    let grown = count(device.after.as_ref()?)?.checked_sub(count(device.before.as_ref()?)?)?;
    Some(match grown {
        0 => "never".to_owned(),
        1 => "once".to_owned(),
        times => format!("{} times", show::count(times)),
    })
}

fn cpus(record: &Record) -> Option<Table> {
    let mut rows = Vec::new();
    for (index, step) in with_index(record) {
        for cpu in step.conditions.iter().flat_map(|found| &found.cpus) {
            let Some(text) = frequency(cpu) else { continue };
            let throttles = |count: Option<u64>| {
                Cell::shown(count.map_or_else(|| show::NOT_AVAILABLE.to_owned(), show::count))
            };
            rows.push(Row {
                step: index,
                direction: "",
                cells: vec![
                    Cell::text(&step.name),
                    Cell::text(&text),
                    throttles(cpu.core_throttles_count),
                    throttles(cpu.package_throttles_count),
                ],
            });
        }
    }
    let names = [
        ("step", true),
        ("frequency", true),
        ("core throttled", false),
        ("package throttled", false),
    ];
    (!rows.is_empty()).then(|| Table {
        caption: "CPUs of the reactors".to_owned(),
        heads: heads(&names),
        rows,
    })
}

fn unknown(record: &Record) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for step in &record.steps {
        let Some(conditions) = &step.conditions else {
            continue;
        };
        for device in &conditions.devices {
            let path = step.devices.get(device.device_index as usize);
            let path = path.map_or("the device", |device| &device.path);
            for (what, why) in [
                ("health before", &device.why_not_before),
                ("health after", &device.why_not_after),
                ("I/O of others", &device.why_not_others),
                ("write cache", &device.why_not_write_cache),
            ] {
                found.extend(why.as_ref().map(|why| format!("{path}: {what}: {why}")));
            }
        }
        for cpu in &conditions.cpus {
            let why = cpu.why_no_frequency.as_ref();
            found.extend(why.map(|why| format!("CPU {}: frequency: {why}", cpu.cpu)));
            let why = cpu.why_no_throttles.as_ref();
            found.extend(why.map(|why| format!("CPU {}: throttling: {why}", cpu.cpu)));
        }
    }
    let mut each: Vec<String> = Vec::new();
    for text in found {
        let text = printable(&text);
        if !each.contains(&text) {
            each.push(text);
        }
    }
    each
}

#[cfg(test)]
mod tests {
    use super::super::super::conditions::samples::{off, record};
    use super::*;

    #[test]
    fn the_write_cache_has_a_cell_and_what_is_unknown_its_reason() {
        let known = view(&record(off()));
        let table = &known.tables[0];
        let cells = table.heads.iter().zip(&table.rows[0].cells);
        let mut of_cache = cells.filter(|(head, _)| head.text == "write cache");
        assert_eq!(
            of_cache.next().map(|(_, cell)| cell.text.as_str()),
            Some("off")
        );
        assert!(known.unknown.iter().all(|why| !why.contains("write cache")));
        let unknown = view(&record(None));
        let reason = "write cache: nobody may ask";
        assert!(unknown.unknown.iter().any(|why| why.ends_with(reason)));
    }
}

//! What differs between saved records: what they did (which forbids a comparison), and where and how.

use super::confound::is_same_device;
use super::saved::{SavedSide, steps_of};
use crate::record::{Confounder, Record, Step};
use serde_json::Value;
use std::collections::BTreeMap;

/// Keys of a plan that say how, not what: a difference is told, and forbids nothing.
const HOW: [&str; 8] = [
    "cpus",
    "batch",
    "ramp_ns",
    "runtime_ns",
    "grace_ns",
    "max_errors_count",
    "stamp",
    "reactors_count",
];
/// Keys that are told elsewhere, or are mere names. What is in blocks is in bytes too.
const ELSEWHERE: [&str; 6] = [
    "name",
    "summary",
    "device",
    "reactor_index",
    "seed",
    "blocks",
];

/// Every difference, each once, with the values of all sides. A side of several records shows its first that
/// differs.
#[must_use]
pub fn differences(sides: &[SavedSide], steps: &[String]) -> Vec<Confounder> {
    let mut found = Found::default();
    for name in steps {
        let of_side = |side| steps_of(side, name).collect::<Vec<&Step>>();
        let by_side: Vec<Vec<&Step>> = sides.iter().map(of_side).collect();
        device_differences(&by_side, &mut found);
        let facts: Vec<Vec<BTreeMap<String, String>>> = by_side
            .iter()
            .map(|steps| steps.iter().map(|step| step_facts(step)).collect())
            .collect();
        found.compare(&facts, |key| !is_how(key));
    }
    let records: Vec<Vec<BTreeMap<String, String>>> = sides
        .iter()
        .map(|side| side.records.iter().map(record_facts).collect())
        .collect();
    found.compare(&records, |_| false);
    found.all
}

/// The differences so far.
#[derive(Default)]
struct Found {
    all: Vec<Confounder>,
}

impl Found {
    fn add(&mut self, name: &str, values: Vec<Option<String>>, forbids: bool) {
        if self.all.iter().all(|known| known.name != name) {
            self.all.push(Confounder {
                name: name.to_owned(),
                values,
                forbids,
            });
        }
    }

    /// Every key whose values are not the same in all records of all sides.
    fn compare(&mut self, sides: &[Vec<BTreeMap<String, String>>], forbids: impl Fn(&str) -> bool) {
        let Some(first) = sides.iter().flatten().next() else {
            return;
        };
        let mut keys: Vec<&String> = sides.iter().flatten().flat_map(BTreeMap::keys).collect();
        keys.sort();
        keys.dedup();
        for key in keys {
            let base = first.get(key);
            if sides
                .iter()
                .any(|side| other_value(side, key, base).is_some())
            {
                let value = |side: &Vec<_>| other_value(side, key, base).unwrap_or(base).cloned();
                let name = readable(key);
                self.add(&name, sides.iter().map(value).collect(), forbids(key));
            }
        }
    }
}

/// The first value of a key in these records that is not `base`; `None` where all are.
fn other_value<'a>(
    records: &'a [BTreeMap<String, String>],
    key: &str,
    base: Option<&String>,
) -> Option<Option<&'a String>> {
    records
        .iter()
        .map(|facts| facts.get(key))
        .find(|value| *value != base)
}

fn device_differences(by_side: &[Vec<&Step>], found: &mut Found) {
    let Some(first) = by_side.iter().flatten().next() else {
        return;
    };
    let is_same = |step: &Step| {
        step.devices.len() == first.devices.len()
            && step
                .devices
                .iter()
                .zip(&first.devices)
                .all(|(a, b)| is_same_device(a, b))
    };
    if by_side.iter().flatten().all(|step| is_same(step)) {
        return;
    }
    let shown = |steps: &Vec<&Step>| {
        let step = steps.iter().find(|step| !is_same(step)).or(steps.first())?;
        let names = step.devices.iter().map(|device| {
            let known = [device.model.as_deref(), device.serial.as_deref()];
            let known: Vec<&str> = known.into_iter().flatten().map(str::trim).collect();
            if known.is_empty() {
                device.path.clone()
            } else {
                known.join(" ")
            }
        });
        Some(names.collect::<Vec<_>>().join(" + "))
    };
    found.add("device", by_side.iter().map(shown).collect(), true);
}

/// The plan of a step, flat; where a record from elsewhere has none, what its summary and its depth say.
fn step_facts(step: &Step) -> BTreeMap<String, String> {
    let mut facts = BTreeMap::new();
    if step.plan.is_object() {
        flatten("", &step.plan, &mut facts);
    } else {
        facts.insert("summary of the workload".to_owned(), step.summary.clone());
        facts.insert(
            "in_flight_count".to_owned(),
            step.depth.asked_count.to_string(),
        );
    }
    let blocks: Vec<String> = step
        .devices
        .iter()
        .map(|device| format!("{} B", device.logical_block_bytes))
        .collect();
    facts.insert("stamp/logical block".to_owned(), blocks.join(", "));
    facts.insert("stamp/backend".to_owned(), step.backend.name.clone());
    facts
}

/// Paths such as `streams/0/sizes/0/bytes`, with their values.
fn flatten(path: &str, value: &Value, facts: &mut BTreeMap<String, String>) {
    let below = |key: &str| {
        if path.is_empty() {
            key.to_owned()
        } else {
            format!("{path}/{key}")
        }
    };
    match value {
        Value::Object(map) => {
            for (key, value) in map
                .iter()
                .filter(|(key, _)| !ELSEWHERE.contains(&key.as_str()))
            {
                flatten(&below(key), value, facts);
            }
        }
        Value::Array(list) => {
            for (index, value) in list.iter().enumerate() {
                flatten(&below(&index.to_string()), value, facts);
            }
        }
        Value::Null => {}
        Value::String(text) => drop(facts.insert(path.to_owned(), text.clone())),
        other => drop(facts.insert(path.to_owned(), other.to_string())),
    }
}

fn is_how(key: &str) -> bool {
    key.split('/')
        .next()
        .is_some_and(|head| HOW.contains(&head))
}

/// The words of the job for a path of the plan: all streams and devices under one name.
fn readable(key: &str) -> String {
    if let Some((_, name)) = key.split_once("stamp/") {
        return name.to_owned();
    }
    let parts: Vec<&str> = key
        .split('/')
        .filter(|part| part.parse::<u32>().is_err())
        .collect();
    match parts.as_slice() {
        ["streams", "sizes", "bytes"] => "block size".to_owned(),
        ["streams", "sizes", "share_pct"] => "shares of block sizes".to_owned(),
        ["streams", "iodepth_count"] | ["in_flight_count"] => "depth".to_owned(),
        ["streams", "offset" | "size" | "align", "bytes"] => format!("{} of the region", parts[1]),
        ["streams", key, ..] => (*key).trim_end_matches("_count").to_owned(),
        ["batch", part] => format!("batch {}", part.trim_end_matches("_count")),
        [key] => key
            .trim_end_matches("_count")
            .trim_end_matches("_ns")
            .to_owned(),
        _ => parts.join(" "),
    }
}

/// What belongs to a record as a whole.
fn record_facts(record: &Record) -> BTreeMap<String, String> {
    let (tool, machine) = (&record.tool, &record.environment);
    let mut facts = BTreeMap::from([
        ("seed".to_owned(), record.seed.to_string()),
        (
            "version".to_owned(),
            format!("{} ({})", tool.version, tool.git_commit),
        ),
        ("kernel".to_owned(), machine.kernel.clone()),
        ("processor".to_owned(), machine.cpu.clone()),
        ("clock".to_owned(), machine.clock.clone()),
        (
            "status".to_owned(),
            format!("{:?}", record.status).to_lowercase(),
        ),
    ]);
    let optional = [
        ("SPDK", tool.spdk_version.clone()),
        ("governor", machine.governor.clone()),
        ("clocksource", machine.clocksource.clone()),
        (
            "SMT",
            machine
                .smt
                .map(|smt| if smt { "on" } else { "off" }.to_owned()),
        ),
    ];
    for (name, value) in optional {
        facts.extend(value.map(|value| (name.to_owned(), value)));
    }
    facts
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn paths_of_a_plan_get_the_words_of_the_job() {
        for (key, name) in [
            ("streams/0/sizes/1/bytes", "block size"),
            ("streams/3/iodepth_count", "depth"),
            ("in_flight_count", "depth"),
            ("streams/0/rw", "rw"),
            ("streams/0/size/bytes", "size of the region"),
            ("streams/0/rate_iops", "rate_iops"),
            ("batch/submit_count", "batch submit"),
            ("runtime_ns", "runtime"),
            ("stamp/backend", "backend"),
        ] {
            assert_eq!(readable(key), name, "{key}");
        }
        assert!(is_how("runtime_ns") && is_how("stamp/backend") && !is_how("streams/0/rw"));
    }

    #[test]
    fn names_and_places_that_are_told_elsewhere_are_left_out() {
        let mut facts = BTreeMap::new();
        let plan = json!({"name": "x", "streams": [{"device": "sda", "seed": 4, "rw": "read",
                          "size": {"bytes": 4096, "blocks": 8}, "read_pct": null}]});
        flatten("", &plan, &mut facts);
        let keys: Vec<&String> = facts.keys().collect();
        assert_eq!(keys, ["streams/0/rw", "streams/0/size/bytes"]);
    }
}

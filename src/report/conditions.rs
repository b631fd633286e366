//! What a step ran under, in words: one wording for all exporters.

use super::figures as show;
use crate::record::{
    Conditions, CpuConditions, DeviceConditions, Health, OthersIo, Step, WriteCacheState,
};
use std::collections::BTreeSet;

/// A temperature: `41 °C`.
pub fn celsius(value: f64) -> String {
    format!("{} °C", show::significant(value, 3))
}

/// Temperature before and after, the life used, what it warns of, and where that was read; or why it is unknown.
pub fn health(device: &DeviceConditions) -> String {
    let Some(last) = device.after.as_ref().or(device.before.as_ref()) else {
        let why = device.why_not_before.as_deref().unwrap_or("not read");
        return format!("unknown: {why}");
    };
    let degrees = |health: &Option<Health>| health.as_ref()?.temperature_celsius.map(celsius);
    let mut parts = vec![match (degrees(&device.before), degrees(&device.after)) {
        (Some(before), Some(after)) => format!("{before} before, {after} after"),
        (Some(before), None) => format!("{before} before"),
        (None, Some(after)) => format!("{after} after"),
        (None, None) => "it tells no temperature".to_owned(),
    }];
    parts.extend(
        last.limit_celsius
            .map(|limit| format!("at most {} for long", celsius(limit))),
    );
    parts.extend(
        last.used_pct
            .map(|used| format!("{used} % of its rated life used")),
    );
    parts.extend(last.spare_pct.map(|spare| format!("{spare} % spare")));
    parts.extend(
        last.alarms
            .iter()
            .map(|alarm| format!("WARNS: {}", alarm.text)),
    );
    format!("{} ({})", parts.join(", "), last.source)
}

/// How its write cache stands, and where that was read; or why it is unknown.
pub fn write_cache(device: &DeviceConditions) -> String {
    match &device.write_cache {
        Some(cache) => format!("write cache {} ({})", cache.state.name(), cache.source),
        None => {
            let why = device.why_not_write_cache.as_deref().unwrap_or("not read");
            format!("write cache unknown: {why}")
        }
    }
}

/// Frequency before and after, and the governor; `None` where the kernel shows neither.
pub fn frequency(cpu: &CpuConditions) -> Option<String> {
    let ghz = |hz: Option<u64>| {
        #[allow(clippy::cast_precision_loss)]
        hz.map(|hz| format!("{} GHz", show::significant(hz as f64 / 1e9, 3)))
    };
    let mut parts = Vec::new();
    parts.extend(ghz(cpu.before_hz).map(|text| format!("{text} before")));
    parts.extend(ghz(cpu.after_hz).map(|text| format!("{text} after")));
    parts.extend(cpu.governor.as_ref().map(|name| format!("governor {name}")));
    (!parts.is_empty()).then(|| format!("CPU {}: {}", cpu.cpu, parts.join(", ")))
}

/// What others did.
pub fn others(others: &OthersIo) -> String {
    if others.ios_count == 0 {
        return "none".to_owned();
    }
    format!(
        "≥ {} I/Os, {}",
        show::count(others.ios_count),
        crate::units::Bytes(others.bytes_count)
    )
}

/// The figures of a step that a table has room for: the hottest of its devices, the most worn, and all I/O of others.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Summary {
    /// Before the first I/O.
    pub before_celsius: Option<f64>,
    /// After the last.
    pub after_celsius: Option<f64>,
    /// Share of the rated life used.
    pub used_pct: Option<u8>,
    /// I/Os of others, over all devices; absent where it is unknown of one.
    pub others_ios_count: Option<u64>,
    /// How the write caches of its devices stand: `on`, or `on/off` where they differ; absent where it is unknown of
    /// one.
    pub write_cache: Option<String>,
}

impl Summary {
    /// Of a step.
    pub fn of(step: &Step) -> Self {
        step.conditions
            .as_ref()
            .map(Self::of_all)
            .unwrap_or_default()
    }

    fn of_all(conditions: &Conditions) -> Self {
        let hottest = |of: fn(&DeviceConditions) -> Option<&Health>| {
            let all = conditions.devices.iter().filter_map(of);
            all.filter_map(|health| health.temperature_celsius)
                .reduce(f64::max)
        };
        let devices = conditions.devices.iter();
        let last = devices
            .clone()
            .filter_map(|one| one.after.as_ref().or(one.before.as_ref()));
        let states: Option<BTreeSet<WriteCacheState>> = devices
            .clone()
            .map(|device| device.write_cache.as_ref().map(|cache| cache.state))
            .collect();
        let others: Option<Vec<&OthersIo>> = devices.map(|device| device.others.as_ref()).collect();
        Self {
            before_celsius: hottest(|device| device.before.as_ref()),
            after_celsius: hottest(|device| device.after.as_ref()),
            used_pct: last.filter_map(|health| health.used_pct).max(),
            others_ios_count: others
                .filter(|all| !all.is_empty())
                .map(|all| on_all_disks(&all)),
            write_cache: states.filter(|all| !all.is_empty()).map(|all| {
                let names: Vec<&str> = all.into_iter().map(WriteCacheState::name).collect();
                names.join("/")
            }),
        }
    }
}

/// I/Os of others on all disks, at least. Devices that share a disk, as two partitions do, are counted on it together:
/// the most that one of them tells stands for all of these.
fn on_all_disks(all: &[&OthersIo]) -> u64 {
    let mut groups: Vec<(BTreeSet<&str>, u64)> = Vec::new();
    for others in all {
        let mut disks: BTreeSet<&str> = others.counted_on.iter().map(String::as_str).collect();
        let mut ios_count = others.ios_count;
        groups.retain(|(known, count)| {
            let is_apart = known.is_disjoint(&disks);
            if !is_apart {
                disks.extend(known);
                ios_count = ios_count.max(*count);
            }
            is_apart
        });
        groups.push((disks, ios_count));
    }
    groups.iter().map(|(_, count)| count).sum()
}

/// Records for the tests of exporters.
#[cfg(test)]
pub mod samples {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::record::{Record, WriteCache};

    /// A record whose device tells of its write cache, or of nothing.
    pub fn record(write_cache: Option<WriteCache>) -> Record {
        let text = include_str!("../../tests/fixtures/records/normal_read.json");
        let mut record: Record = serde_json::from_str(text).unwrap();
        record.steps[0].devices[0].kind = "nvme".to_owned();
        record.steps[0].conditions = Some(Conditions {
            devices: vec![device(write_cache)],
            cpus: Vec::new(),
            cgroup_held_back_ns: None,
            why_no_cgroup: None,
        });
        record
    }

    /// A device of which nothing else is known.
    pub fn device(write_cache: Option<WriteCache>) -> DeviceConditions {
        DeviceConditions {
            device_index: 0,
            before: None,
            why_not_before: None,
            after: None,
            why_not_after: None,
            others: None,
            why_not_others: None,
            why_not_write_cache: write_cache.is_none().then(|| "nobody may ask".to_owned()),
            write_cache,
        }
    }

    /// A write cache that is switched off.
    pub fn off() -> Option<WriteCache> {
        Some(WriteCache {
            state: WriteCacheState::Off,
            source: "feature 06h by /dev/nvme0".to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::samples::{device, off};
    use super::*;
    use crate::record::WriteCache;

    fn conditions(of: &[(&[&str], u64)]) -> Conditions {
        let device = |&(disks, ios_count): &(&[&str], u64)| DeviceConditions {
            others: Some(OthersIo {
                counted_on: disks.iter().map(|&name| name.to_owned()).collect(),
                ios_count,
                bytes_count: ios_count * 4096,
            }),
            ..device(None)
        };
        Conditions {
            devices: of.iter().map(device).collect(),
            cpus: Vec::new(),
            cgroup_held_back_ns: None,
            why_no_cgroup: None,
        }
    }

    #[test]
    fn write_caches_of_many_devices_are_told_together_and_one_unknown_leaves_all_unknown() {
        let mut found = conditions(&[(&["sda"], 0), (&["sdb"], 0)]);
        found.devices[0].write_cache = off();
        assert_eq!(Summary::of_all(&found).write_cache, None);
        assert_eq!(
            write_cache(&found.devices[0]),
            "write cache off (feature 06h by /dev/nvme0)"
        );
        assert_eq!(
            write_cache(&found.devices[1]),
            "write cache unknown: nobody may ask"
        );
        for (state, text) in [
            (WriteCacheState::Off, "off"),
            (WriteCacheState::On, "on/off"),
        ] {
            found.devices[1].write_cache = off().map(|cache| WriteCache { state, ..cache });
            assert_eq!(Summary::of_all(&found).write_cache.as_deref(), Some(text));
        }
        assert_eq!(Summary::of_all(&conditions(&[])).write_cache, None);
    }

    #[test]
    fn ios_of_others_are_counted_once_on_each_disk() {
        let count = |of: &[(&[&str], u64)]| Summary::of_all(&conditions(of)).others_ios_count;
        assert_eq!(count(&[(&["sda"], 7), (&["sdb"], 5)]), Some(12));
        // Two partitions of one disk, and one of another.
        assert_eq!(
            count(&[(&["sda"], 7), (&["sda"], 7), (&["sdb"], 5)]),
            Some(12)
        );
        // Paths of a multipath device; what lies over two disks that were apart until then.
        let paths: &[&str] = &["nvme0c0n1", "nvme0c1n1"];
        assert_eq!(count(&[(paths, 9), (&["nvme0c1n1"], 4)]), Some(9));
        let apart: [(&[&str], u64); 3] = [(&["sda"], 3), (&["sdb"], 4), (&["sda", "sdb"], 6)];
        assert_eq!(count(&apart), Some(6));
        assert_eq!(count(&[]), None);
        let mut unknown = conditions(&[(&["sda"], 7), (&["sdb"], 5)]);
        unknown.devices[1].others = None;
        assert_eq!(Summary::of_all(&unknown).others_ios_count, None);
    }
}

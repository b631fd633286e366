//! Doubts that the conditions of a step raise.

use crate::record::{
    AlarmKind, Conditions, CpuConditions, DeviceConditions, Health, OthersIo, Step, Warning,
};
use crate::units::Bytes;

/// All of them.
pub(super) fn warnings(step: &Step, conditions: &Conditions) -> Vec<Warning> {
    let mut found = Vec::new();
    for device in &conditions.devices {
        let name = step.devices.get(device.device_index as usize);
        let name = name.map_or("the device", |device| &device.path);
        found.extend(throttled(name, device));
        found.extend(alarms(name, device));
        found.extend(errors(name, device));
        found.extend(
            device
                .others
                .as_ref()
                .and_then(|others| of_others(name, others)),
        );
    }
    found.extend(conditions.cpus.iter().filter_map(slowed));
    // Virtual time stands still with the process.
    if step.devices.iter().any(|device| device.kind != "sim") {
        found.extend(held_back(conditions, step.window_s));
    }
    found
}

fn warning(kind: &str, text: String, next_step: &str) -> Warning {
    Warning {
        kind: kind.to_owned(),
        text,
        next_step: next_step.to_owned(),
    }
}

type Figure = fn(&Health) -> Option<u64>;

/// How much a counter grew over the step; `None` where it is not told at both ends, or went back.
fn grown(device: &DeviceConditions, of: Figure) -> Option<u64> {
    let (before, after) = (device.before.as_ref()?, device.after.as_ref()?);
    of(after)?.checked_sub(of(before)?)
}

fn celsius(health: Option<&Health>) -> String {
    match health.and_then(|health| health.temperature_celsius) {
        Some(celsius) => format!("{celsius} °C"),
        None => "unknown".to_owned(),
    }
}

/// The counters of these that grew over the step, with their words; `None` where none did.
fn all_grown(device: &DeviceConditions, counters: &[(&str, Figure)]) -> Option<String> {
    let one = |(words, of): &(&str, Figure)| {
        let grown = grown(device, *of).filter(|grown| *grown > 0)?;
        Some(format!("{grown} {words}"))
    };
    let counted: Vec<String> = counters.iter().filter_map(one).collect();
    (!counted.is_empty()).then(|| counted.join(", "))
}

/// Thermal management: transitions and the time spent in it, and time over the warning temperature.
fn throttled(name: &str, device: &DeviceConditions) -> Option<Warning> {
    const COUNTERS: [(&str, Figure); 6] = [
        ("light slow-downs", |h| h.light_throttles_count),
        ("heavy slow-downs", |h| h.heavy_throttles_count),
        ("s slowed down lightly", |h| h.light_throttled_s),
        ("s slowed down heavily", |h| h.heavy_throttled_s),
        ("s above the warning temperature", |h| h.hot_s),
        ("s above the critical temperature", |h| h.critically_hot_s),
    ];
    let counted = all_grown(device, &COUNTERS)?;
    Some(warning(
        "device-throttled",
        format!(
            "{name} grew too hot: {counted} during this step ({} before, {} after)",
            celsius(device.before.as_ref()),
            celsius(device.after.as_ref())
        ),
        // A pause between steps by a key is not for every verb.
        "cool it better, or let it stand until it is cool, and measure again",
    ))
}

fn alarms(name: &str, device: &DeviceConditions) -> Vec<Warning> {
    let mut found: Vec<Warning> = Vec::new();
    for health in [&device.before, &device.after].into_iter().flatten() {
        for alarm in &health.alarms {
            let (kind, next_step) = match alarm.kind {
                AlarmKind::Temperature => ("device-hot", "cool it better and measure again"),
                AlarmKind::Wear => (
                    "device-health",
                    "look at its health log (smartctl -a); these figures need not be those of a sound device",
                ),
            };
            let text = format!("{name} warns: {}", alarm.text);
            if !found.iter().any(|known| known.text == text) {
                found.push(warning(kind, text, next_step));
            }
        }
    }
    found
}

fn errors(name: &str, device: &DeviceConditions) -> Option<Warning> {
    const COUNTERS: [(&str, Figure); 3] = [
        ("media errors", |h| h.media_errors_count),
        ("uncorrected reads", |h| h.read_uncorrected_count),
        ("uncorrected writes", |h| h.write_uncorrected_count),
    ];
    let counted = all_grown(device, &COUNTERS)?;
    Some(warning(
        "media-errors",
        format!("{name} counted {counted} during this step"),
        "look at its health log (smartctl -a); what it repeated is in the latency",
    ))
}

fn of_others(name: &str, others: &OthersIo) -> Option<Warning> {
    if others.ios_count == 0 {
        return None;
    }
    let ios = match others.ios_count {
        1 => "1 I/O".to_owned(),
        count => format!("{count} I/Os"),
    };
    Some(warning(
        "others-io",
        format!(
            "{name} was used by others during this step: at least {ios}, {}, were not ours (counted on {})",
            Bytes(others.bytes_count),
            others.counted_on.join(", ")
        ),
        "find who uses it (mounted file systems, other hosts' work), stop that and measure again",
    ))
}

fn slowed(cpu: &CpuConditions) -> Option<Warning> {
    let counts = [
        ("core", cpu.core_throttles_count),
        ("package", cpu.package_throttles_count),
    ];
    let counted: Vec<String> = counts
        .iter()
        .filter_map(|(what, count)| Some((what, count.filter(|count| *count > 0)?)))
        .map(|(what, count)| format!("its {what} {count} times"))
        .collect();
    if counted.is_empty() {
        return None;
    }
    Some(warning(
        "cpu-throttled",
        format!(
            "CPU {} was slowed down for heat during this step: {}",
            cpu.cpu,
            counted.join(", ")
        ),
        "cool the machine better; figures that the host binds are too low",
    ))
}

/// A CPU limit that held this process back for a hundredth of the window or more.
#[allow(clippy::cast_precision_loss)]
fn held_back(conditions: &Conditions, window_s: f64) -> Option<Warning> {
    let held_s = conditions.cgroup_held_back_ns? as f64 / 1e9;
    (held_s > 0.0 && held_s >= window_s / 100.0).then(|| {
        warning(
            "cpu-limited",
            format!(
                "the CPU limit of its cgroup held this process, or another in there, back for {held_s:.2} s over its CPUs during this step, its ramp included: rates may be too low and latencies too long"
            ),
            "run it outside of the container, or without a CPU limit (cpu.max, --cpus)",
        )
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::record::Alarm;

    fn device(before: Health, after: Option<Health>) -> DeviceConditions {
        DeviceConditions {
            device_index: 0,
            before: Some(before),
            why_not_before: None,
            after,
            why_not_after: None,
            others: None,
            why_not_others: None,
            write_cache: None,
            why_not_write_cache: None,
        }
    }

    #[test]
    fn thermal_counters_that_go_up_are_throttling_and_others_are_not() {
        let before = Health {
            temperature_celsius: Some(60.0),
            light_throttles_count: Some(3),
            light_throttled_s: Some(10),
            hot_s: Some(60),
            ..Health::default()
        };
        assert_eq!(
            throttled("D", &device(before.clone(), Some(before.clone()))),
            None
        );
        let after = Health {
            temperature_celsius: Some(84.0),
            light_throttles_count: Some(5),
            light_throttled_s: Some(22),
            ..before.clone()
        };
        let found = throttled("D", &device(before.clone(), Some(after))).unwrap();
        assert_eq!(found.kind, "device-throttled");
        assert_eq!(
            found.text,
            "D grew too hot: 2 light slow-downs, 12 s slowed down lightly during this step (60 °C before, 84 °C after)"
        );
        // `peak`, `load` and `scale` warn of it too, and refuse that key.
        assert!(
            !found.next_step.contains("cool_down"),
            "{}",
            found.next_step
        );
        // What is not told at both ends, or went back, tells nothing.
        assert_eq!(throttled("D", &device(before.clone(), None)), None);
        let reset = Health {
            light_throttles_count: Some(0),
            ..Health::default()
        };
        assert_eq!(throttled("D", &device(before, Some(reset))), None);
    }

    #[test]
    fn each_alarm_is_told_once_by_its_kind() {
        let alarm = |kind, text: &str| Alarm {
            kind,
            text: text.to_owned(),
        };
        let hot = Health {
            alarms: vec![
                alarm(AlarmKind::Temperature, "hot"),
                alarm(AlarmKind::Wear, "worn"),
            ],
            ..Health::default()
        };
        let kinds: Vec<_> = alarms("D", &device(hot.clone(), Some(hot)))
            .into_iter()
            .map(|warning| warning.kind)
            .collect();
        assert_eq!(kinds, ["device-hot", "device-health"]);
    }

    #[test]
    fn errors_of_the_media_are_told_only_where_they_grew() {
        let errors_of = |before, after| {
            let of = |count| Health {
                read_uncorrected_count: Some(count),
                ..Health::default()
            };
            errors("D", &device(of(before), Some(of(after))))
        };
        assert_eq!(errors_of(4, 4), None);
        assert!(
            errors_of(4, 6)
                .unwrap()
                .text
                .contains("2 uncorrected reads")
        );
    }

    #[test]
    fn others_and_hot_cpus_are_told_with_their_numbers() {
        let others = |ios_count, bytes_count| OthersIo {
            counted_on: vec!["sda".to_owned()],
            ios_count,
            bytes_count,
        };
        assert_eq!(of_others("D", &others(0, 0)), None);
        let found = of_others("D", &others(7, 28_672)).unwrap();
        assert!(
            found
                .text
                .contains("at least 7 I/Os, 28 KiB, were not ours"),
            "{}",
            found.text
        );
        let cpu = |core, package| CpuConditions {
            cpu: 3,
            governor: None,
            before_hz: None,
            after_hz: None,
            why_no_frequency: None,
            core_throttles_count: core,
            package_throttles_count: package,
            why_no_throttles: None,
        };
        assert_eq!(slowed(&cpu(None, Some(0))), None);
        let found = slowed(&cpu(Some(0), Some(9))).unwrap();
        assert!(
            found.text.ends_with("its package 9 times"),
            "{}",
            found.text
        );
    }

    #[test]
    fn a_cpu_limit_is_named_from_a_hundredth_of_the_window() {
        let limited = |held_back_ns| Conditions {
            devices: Vec::new(),
            cpus: Vec::new(),
            cgroup_held_back_ns: held_back_ns,
            why_no_cgroup: None,
        };
        let found = |held_back_ns, window_s| held_back(&limited(held_back_ns), window_s);
        let warning = found(Some(1_500_000_000), 5.0).unwrap();
        assert_eq!(warning.kind, "cpu-limited");
        assert!(warning.text.contains("for 1.50 s"), "{}", warning.text);
        assert!(found(Some(50_000_000), 5.0).is_some());
        for (held_back_ns, window_s) in [(Some(49_000_000), 5.0), (Some(0), 0.0), (None, 5.0)] {
            assert_eq!(found(held_back_ns, window_s), None);
        }
    }
}

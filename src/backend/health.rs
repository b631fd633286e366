//! What devices answer of their health, as records carry it.

use crate::proto::nvme::SmartLog;
use crate::proto::scsi::{ErrorCounters, Exceptions, Temperature, additional_name};
use crate::record::{Alarm, AlarmKind, Health};

/// Bit of the critical warnings that stands for temperature (Base, "SMART / Health Information Log Page").
const TEMPERATURE_WARNING: &str = "temperature is outside its thresholds";
/// Additional sense 0Bh/01h: specified temperature exceeded (SPC-5, "ASC and ASCQ assignments").
const TOO_HOT: (u8, u8) = (0x0b, 0x01);

/// The health of an NVMe controller. Counters that do not fit 64 bits are absent: no drive has them.
pub(super) fn of_smart(log: &SmartLog, source: String) -> Health {
    let count = |value: u128| u64::try_from(value).ok();
    let minutes = |minutes: u32| Some(u64::from(minutes) * 60);
    let alarm = |text: &str| Alarm {
        kind: if text == TEMPERATURE_WARNING {
            AlarmKind::Temperature
        } else {
            AlarmKind::Wear
        },
        text: text.to_owned(),
    };
    Health {
        source,
        temperature_celsius: log.temperature_c().map(f64::from),
        limit_celsius: None,
        used_pct: Some(log.used_pct),
        spare_pct: Some(log.spare_pct),
        spare_threshold_pct: Some(log.spare_threshold_pct),
        alarms: log.warnings().into_iter().map(alarm).collect(),
        read_bytes: count(log.read_bytes),
        written_bytes: count(log.written_bytes),
        power_on_s: count(log.power_on_hours).and_then(|hours| hours.checked_mul(3600)),
        power_cycles_count: count(log.power_cycles_count),
        unsafe_shutdowns_count: count(log.unsafe_shutdowns_count),
        media_errors_count: count(log.media_errors_count),
        error_log_entries_count: count(log.error_log_entries_count),
        hot_s: minutes(log.warning_temperature_minutes),
        critically_hot_s: minutes(log.critical_temperature_minutes),
        light_throttles_count: Some(u64::from(log.throttles_count[0])),
        heavy_throttles_count: Some(u64::from(log.throttles_count[1])),
        light_throttled_s: Some(u64::from(log.throttled_s[0])),
        heavy_throttled_s: Some(u64::from(log.throttled_s[1])),
        ..Health::default()
    }
}

/// The log pages that a SCSI device answered.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Pages {
    pub(super) temperature: Option<Temperature>,
    pub(super) exceptions: Option<Exceptions>,
    pub(super) reads: Option<ErrorCounters>,
    pub(super) writes: Option<ErrorCounters>,
}

impl Pages {
    /// Whether none was.
    pub(super) const fn is_empty(&self) -> bool {
        self.temperature.is_none()
            && self.exceptions.is_none()
            && self.reads.is_none()
            && self.writes.is_none()
    }
}

/// The health of a SCSI device.
pub(super) fn of_pages(pages: &Pages, source: String) -> Health {
    let now = pages.temperature.and_then(|page| page.celsius);
    let now = now.or(pages.exceptions.and_then(|page| page.celsius));
    let limit = pages.temperature.and_then(|page| page.reference_celsius);
    Health {
        source,
        temperature_celsius: now.map(f64::from),
        limit_celsius: limit.map(f64::from),
        alarms: pages.exceptions.and_then(exception).into_iter().collect(),
        read_corrected_count: pages.reads.and_then(|page| page.corrected_count),
        read_uncorrected_count: pages.reads.and_then(|page| page.uncorrected_count),
        write_corrected_count: pages.writes.and_then(|page| page.corrected_count),
        write_uncorrected_count: pages.writes.and_then(|page| page.uncorrected_count),
        ..Health::default()
    }
}

/// An additional sense code of 0 says that all is well.
fn exception(found: Exceptions) -> Option<Alarm> {
    let Exceptions { asc, ascq, .. } = found;
    let name = additional_name(asc, ascq).unwrap_or("an informational exception");
    let alarm = Alarm {
        kind: if (asc, ascq) == TOO_HOT {
            AlarmKind::Temperature
        } else {
            AlarmKind::Wear
        },
        text: format!("{name} ({asc:02x}h/{ascq:02x}h)"),
    };
    (asc != 0).then_some(alarm)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::proto::nvme::SMART_BYTES;

    #[test]
    fn a_smart_log_becomes_units_of_the_record() {
        let mut log = [0; SMART_BYTES];
        log[..6].copy_from_slice(&[0x06, 0x43, 0x01, 98, 10, 103]);
        (log[32], log[48], log[128], log[160]) = (2, 3, 4, 5);
        (log[192], log[196], log[216], log[220], log[224], log[228]) = (6, 7, 8, 9, 10, 11);
        let health = of_smart(&SmartLog::decode(&log).unwrap(), "here".to_owned());
        assert_eq!(health.temperature_celsius, Some(50.0), "323 K");
        assert_eq!((health.used_pct, health.spare_pct), (Some(103), Some(98)));
        assert_eq!(health.read_bytes, Some(2 * 512_000));
        assert_eq!(health.written_bytes, Some(3 * 512_000));
        assert_eq!(
            (health.power_on_s, health.media_errors_count),
            (Some(14_400), Some(5))
        );
        assert_eq!(
            (health.hot_s, health.critically_hot_s),
            (Some(360), Some(420))
        );
        let throttled = (health.light_throttles_count, health.heavy_throttles_count);
        assert_eq!(throttled, (Some(8), Some(9)));
        let throttled = (health.light_throttled_s, health.heavy_throttled_s);
        assert_eq!(throttled, (Some(10), Some(11)));
        let kinds: Vec<_> = health.alarms.iter().map(|alarm| alarm.kind).collect();
        assert_eq!(kinds, [AlarmKind::Temperature, AlarmKind::Wear]);
    }

    #[test]
    fn a_temperature_of_0_kelvin_and_counters_past_64_bits_are_not_told() {
        let mut log = [0; SMART_BYTES];
        log[160 + 8] = 1;
        let health = of_smart(&SmartLog::decode(&log).unwrap(), String::new());
        assert_eq!(
            (health.temperature_celsius, health.media_errors_count),
            (None, None)
        );
        assert_eq!(health.read_bytes, Some(0), "a new drive has read nothing");
    }

    #[test]
    fn pages_that_did_not_come_leave_figures_absent() {
        let none = of_pages(&Pages::default(), String::new());
        assert_eq!(none, Health::default());
        let hot = Exceptions {
            asc: 0x0b,
            ascq: 0x01,
            celsius: Some(71),
        };
        let pages = Pages {
            exceptions: Some(hot),
            ..Pages::default()
        };
        let health = of_pages(&pages, String::new());
        assert_eq!(health.temperature_celsius, Some(71.0));
        assert_eq!(health.alarms[0].kind, AlarmKind::Temperature);
        let failing = Exceptions { asc: 0x5d, ..hot };
        let pages = Pages {
            exceptions: Some(failing),
            ..pages
        };
        let alarms = of_pages(&pages, String::new()).alarms;
        assert_eq!(alarms[0].kind, AlarmKind::Wear);
        assert!(alarms[0].text.ends_with("(5dh/01h)"), "{alarms:?}");
    }
}

//! Figures with their units, as people read them. A figure that does not exist is `n/a`, never 0.

use crate::record::{CounterDelta, LaneBurn};
use crate::units::Bytes;

/// Stands where there is no sample.
pub const NOT_AVAILABLE: &str = "n/a";

/// Digits that a measured figure is worth: what the histograms keep.
const DIGITS: usize = 3;

/// `value` to `digits` significant digits, without zeros at the end of a fraction and with separators
/// between thousands. Digits before the decimal point are never cut: 12345.6 to 3 digits is `12,346`.
#[must_use]
pub fn significant(value: f64, digits: usize) -> String {
    if !value.is_finite() {
        return NOT_AVAILABLE.to_owned();
    }
    if value == 0.0 {
        // Without the sign that a sum of nothing has.
        return "0".to_owned();
    }
    // Exponent notation rounds first, so 9.996 is known to be 10.0 and not 1000e-2.
    let scientific = format!("{:.*e}", digits.saturating_sub(1), value);
    let exponent: i32 = scientific
        .rsplit_once('e')
        .and_then(|(_, exponent)| exponent.parse().ok())
        .unwrap_or(0);
    let places = i32::try_from(digits).unwrap_or(i32::MAX) - 1 - exponent;
    let fixed = format!("{:.*}", usize::try_from(places).unwrap_or(0), value);
    match fixed.split_once('.') {
        None => separated(&fixed),
        Some((whole, fraction)) => {
            let fraction = fraction.trim_end_matches('0');
            let whole = separated(whole);
            if fraction.is_empty() {
                whole
            } else {
                format!("{whole}.{fraction}")
            }
        }
    }
}

/// A whole number with separators between thousands: `1,234,567`.
#[must_use]
pub fn count(value: u64) -> String {
    separated(&value.to_string())
}

/// What became of an error counter: `grew by 1,200`, `went backwards`.
pub fn growth(counter: &CounterDelta) -> String {
    let grown = counter.grown_count;
    grown.map_or_else(|| counter.words(), |by| format!("grew by {}", count(by)))
}

fn separated(digits: &str) -> String {
    let (sign, digits) = digits
        .strip_prefix('-')
        .map_or(("", digits), |rest| ("-", rest));
    let mut out = sign.to_owned();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A time of `ns` nanoseconds in the unit that suits it: `850 ns`, `1.02 ms`, `94 s`.
#[must_use]
pub fn time(ns: f64) -> String {
    const UNITS: [(&str, f64); 3] = [("ns", 1.0), ("µs", 1e3), ("ms", 1e6)];
    if !ns.is_finite() {
        return NOT_AVAILABLE.to_owned();
    }
    for (name, scale) in UNITS {
        // 999.5 would be shown as 1000: that belongs to the next unit.
        if ns.abs() / scale < 999.5 {
            return format!("{} {name}", significant(ns / scale, DIGITS));
        }
    }
    format!("{} s", significant(ns / 1e9, DIGITS))
}

/// A whole number of nanoseconds, see [`time`].
#[must_use]
#[allow(clippy::cast_precision_loss)]
pub fn time_ns(ns: u64) -> String {
    time(ns as f64)
}

/// A time that is known only to be at least `ns`: `≥ 94 s`. Cut, not rounded: 93.96 s is not `≥ 94 s`.
#[must_use]
pub fn time_at_least(ns: u64) -> String {
    let cut = match ns.checked_ilog10() {
        Some(exponent) if exponent > 2 => {
            let unit = 10_u64.pow(exponent - 2);
            ns / unit * unit
        }
        _ => ns,
    };
    format!("≥ {}", time_ns(cut))
}

/// Seconds of a run or a window: `10 s`, `0.5 s`.
#[must_use]
pub fn seconds(s: f64) -> String {
    if s == 0.0 {
        return "0 s".to_owned();
    }
    if s.is_finite() && s.abs() >= 1.0 {
        return format!("{} s", significant(s, 4));
    }
    time(s * 1e9)
}

/// I/Os a second: whole from 100 on, three digits below.
#[must_use]
pub fn iops(value: f64) -> String {
    significant(value, DIGITS)
}

/// A rate in units of `unit_bytes` bytes a second: 1e9 for GB/s, 2^30 for GiB/s. Three digits.
#[must_use]
pub fn rate(bytes_per_s: f64, unit_bytes: f64) -> String {
    significant(bytes_per_s / unit_bytes, DIGITS)
}

/// Bytes in a GB, which lane arithmetic uses.
pub const GB_BYTES: f64 = 1e9;

/// Bytes in a GiB.
pub const GIB_BYTES: f64 = 1_073_741_824.0;

/// A size in GB with GiB beside it: `1,000.2 GB (931.51 GiB)`; in MB under 1 GB, in bytes under 1 MB.
#[must_use]
#[allow(clippy::cast_precision_loss)]
pub fn capacity(bytes: u64) -> String {
    if bytes < 1_000_000 {
        let plain = format!("{} B", count(bytes));
        let binary = Bytes(bytes).to_string();
        return if binary.ends_with("iB") {
            format!("{plain} ({binary})")
        } else {
            plain
        };
    }
    let (unit, fraction) = if bytes < 1_000_000_000 {
        ("M", 1e3)
    } else {
        ("G", 1.0)
    };
    let decimal = bytes as f64 / GB_BYTES * fraction;
    let binary = bytes as f64 / GIB_BYTES * if fraction > 1.0 { 1024.0 } else { 1.0 };
    format!(
        "{} {unit}B ({} {unit}iB)",
        significant(decimal, 5),
        significant(binary, 5)
    )
}

/// A share of 0 to 1 in percent: `34.5 %`.
#[must_use]
pub fn share(ratio: f64) -> String {
    percent(ratio * 100.0, DIGITS)
}

/// A share in percent to `digits` digits: `67.02 %`.
#[must_use]
pub fn percent(pct: f64, digits: usize) -> String {
    match significant(pct, digits) {
        text if text == NOT_AVAILABLE => text,
        text => format!("{text} %"),
    }
}

/// A moment as `2026-11-30 19:20:11 UTC`, from seconds since the epoch.
#[must_use]
pub fn date(unix_s: u64) -> String {
    // Days in the proleptic Gregorian calendar, counted from 1 March of year 0 (H. Hinnant, "chrono-compatible
    // low-level date algorithms"): a year then ends with its leap day.
    let days = unix_s / 86_400 + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (unix_s / 3600 % 24, unix_s / 60 % 60, unix_s % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}

/// A figure in a few characters, for lines that must stay short: `999`, `14.3k`, `1.43M`.
#[must_use]
pub fn compact(value: f64) -> String {
    const UNITS: [(&str, f64); 3] = [("", 1.0), ("k", 1e3), ("M", 1e6)];
    if !value.is_finite() {
        return NOT_AVAILABLE.to_owned();
    }
    for (name, scale) in UNITS {
        if value.abs() / scale < 999.5 {
            return format!("{}{name}", significant(value / scale, DIGITS));
        }
    }
    format!("{}G", significant(value / 1e9, DIGITS))
}

/// What a burn did to the rate.
#[must_use]
pub fn burnt(burn: &LaneBurn) -> String {
    format!(
        "{} for each I/O: {} IOPS ({} if the reactors were the limit)",
        time_ns(burn.burn_ns),
        iops(burn.iops),
        iops(burn.host_bound_iops)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn moments_are_dates_of_the_calendar() {
        assert_eq!(date(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(date(951_782_400), "2000-02-29 00:00:00 UTC");
        assert_eq!(date(1_796_066_411), "2026-11-30 19:20:11 UTC");
        assert_eq!(date(4_107_542_399), "2100-02-28 23:59:59 UTC");
        assert_eq!(date(4_107_542_400), "2100-03-01 00:00:00 UTC");
    }

    #[test]
    fn times_take_the_unit_that_suits_them() {
        for (ns, shown) in [
            (0, "0 ns"),
            (7, "7 ns"),
            (999, "999 ns"),
            (1_000, "1 µs"),
            (1_023, "1.02 µs"),
            (100_000, "100 µs"),
            (999_499, "999 µs"),
            (999_500, "1 ms"),
            (1_999_999, "2 ms"),
            (94_000_000_000, "94 s"),
            (94_049_000_000, "94 s"),
            (94_050_000_001, "94.1 s"),
            (3_600_000_000_000, "3,600 s"),
        ] {
            assert_eq!(time_ns(ns), shown);
        }
    }

    #[test]
    fn lower_bounds_are_cut_not_rounded() {
        assert_eq!(time_at_least(93_960_000_000), "≥ 93.9 s");
        assert_eq!(time_at_least(94_000_000_000), "≥ 94 s");
        assert_eq!(time_at_least(999), "≥ 999 ns");
        assert_eq!(time_at_least(999_999), "≥ 999 µs");
        assert_eq!(time_at_least(0), "≥ 0 ns");
    }

    #[test]
    fn rates_and_counts() {
        assert_eq!(significant(9.996, 3), "10");
        assert_eq!(significant(0.000_123_45, 3), "0.000123");
        assert_eq!(significant(12345.6, 3), "12,346");
        assert_eq!(significant(-1234.5678, 3), "-1,235");
        assert_eq!(significant(0.0, 3), "0");
        assert_eq!(significant(-0.0, 3), "0");
        assert_eq!(significant(f64::NAN, 3), "n/a");
        assert_eq!(iops(142_831.4), "142,831");
        assert_eq!(iops(12.345), "12.3");
        assert_eq!(rate(585_035_776.0, GB_BYTES), "0.585");
        assert_eq!(rate(585_035_776.0, GIB_BYTES), "0.545");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(count(u64::MAX), "18,446,744,073,709,551,615");
        assert_eq!(percent(67.0, 4), "67 %");
        assert_eq!(share(f64::INFINITY), "n/a");
        assert_eq!(seconds(2.0), "2 s");
        assert_eq!(seconds(0.25), "250 ms");
        assert_eq!(seconds(9.999_96), "10 s");
    }

    #[test]
    fn capacities_are_shown_both_ways() {
        assert_eq!(capacity(1_000_204_886_016), "1,000.2 GB (931.51 GiB)");
        assert_eq!(capacity(1 << 43), "8,796.1 GB (8,192 GiB)");
        assert_eq!(capacity(64 << 20), "67.109 MB (64 MiB)");
        assert_eq!(capacity(65_536), "65,536 B (64 KiB)");
        assert_eq!(capacity(511), "511 B");
    }

    #[test]
    fn compact_figures_stay_within_five_characters() {
        for (value, shown) in [
            (0.0, "0"),
            (999.0, "999"),
            (999.6, "1k"),
            (14_312.0, "14.3k"),
            (999_600.0, "1M"),
            (1_430_000.0, "1.43M"),
            (2e9, "2G"),
        ] {
            assert_eq!(compact(value), shown);
        }
    }

    proptest! {
        /// What is shown is the figure to three digits, in whatever unit.
        #[test]
        fn shown_times_are_within_half_a_unit_of_the_last_digit(ns in 1_u64..4_000_000_000_000) {
            let shown = time_ns(ns);
            let (digits, unit) = shown.split_once(' ').expect("a unit");
            let scale = match unit { "ns" => 1.0, "µs" => 1e3, "ms" => 1e6, _ => 1e9 };
            let back: f64 = digits.replace(',', "").parse::<f64>().expect("a number") * scale;
            let off = (back - ns as f64).abs() / ns as f64;
            prop_assert!(off <= 0.005 + 1e-9, "{ns} ns shown as {shown}");
        }

        #[test]
        fn a_lower_bound_is_never_above_the_figure(ns in 0_u64..4_000_000_000_000) {
            let shown = time_at_least(ns);
            let (digits, unit) = shown.trim_start_matches("≥ ").split_once(' ').expect("a unit");
            let scale = match unit { "ns" => 1.0, "µs" => 1e3, "ms" => 1e6, _ => 1e9 };
            let back: f64 = digits.replace(',', "").parse::<f64>().expect("a number") * scale;
            prop_assert!(back <= ns as f64 * (1.0 + 1e-12), "{ns} ns shown as {shown}");
        }
    }
}

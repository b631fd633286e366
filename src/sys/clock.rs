//! The clock that stamps I/Os on this machine: the time stamp counter where it can be trusted, the
//! kernel's `CLOCK_MONOTONIC_RAW` otherwise.
//!
//! The counter is trusted when three things hold:
//! 1. CPUID 80000007h, EDX bit 8: its rate is constant in every P-, C- and T-state (Intel SDM vol. 3,
//!    "Invariant TSC"; AMD APM vol. 2, "TscInvariant").
//! 2. The kernel keeps time with it: `current_clocksource` is `tsc`, or a paravirtual clock that is the
//!    same counter with a host's scale (`kvm-clock`, `hyperv_clocksource_tsc_page`).
//! 3. `available_clocksource` still lists `tsc`. The kernel drops a clocksource from that list once its
//!    watchdog, or the check that all CPUs count together, has marked it unstable
//!    (kernel/time/clocksource.c: an unstable source loses `CLOCK_SOURCE_VALID_FOR_HRES`). Without a list
//!    there is no such word, so the counter is not used.
//!
//! A hot read is a plain `rdtsc`, without `lfence` or `rdtscp`: a fence drains the pipeline (tens of
//! cycles, on every I/O) to pin down an instant that is not worth it. What may move is the reading
//! against loads that are still under way, by about a cache miss (under 100 ns); where the queue was
//! entered by a system call the kernel's exit has serialised already.

use crate::clock::{Clock, Tick};
use crate::sysfs::{Sysfs, read_text};
use std::time::Duration;

/// Fixed point: nanoseconds per tick and ticks per nanosecond carry this many fractional bits.
const FRACTION_BITS: u32 = 56;
/// Span of the calibration. The error is the width of two brackets over this: 60 ns in 80 ms, 1 ppm.
const CALIBRATION: Duration = Duration::from_millis(80);
/// Bracketed readings at each end of the calibration; the tightest is kept.
const READINGS_COUNT: usize = 200;

/// Clock of this machine. Readings of all copies compare, on every CPU.
#[derive(Debug, Clone, Copy)]
pub struct MachineClock {
    /// Whether ticks come from the time stamp counter.
    tsc: bool,
    /// Nanoseconds per tick, `FRACTION_BITS` of it after the point.
    ns_per_tick_fixed: u64,
    /// Ticks per nanosecond, `FRACTION_BITS` of it after the point.
    ticks_per_ns_fixed: u64,
    /// Where the calibration ended: the base of the drift check.
    base: Bracket,
    why_not_tsc: Option<WhyNotTsc>,
}

/// Why the time stamp counter is not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WhyNotTsc {
    /// Another architecture.
    #[error("no time stamp counter on this architecture")]
    NoCounter,
    /// CPUID does not promise it.
    #[error("the CPU does not promise an invariant time stamp counter (CPUID 80000007h EDX bit 8)")]
    NotInvariant,
    /// The kernel keeps time with something else.
    #[error("the kernel keeps time with another clocksource than the time stamp counter")]
    OtherClocksource,
    /// The kernel has marked it unstable.
    #[error("the kernel does not list the time stamp counter as a usable clocksource (unstable)")]
    Unstable,
    /// The kernel does not say.
    #[error("the kernel's clocksource cannot be read")]
    Unknown,
    /// Calibration gave a rate outside 10 MHz to 100 GHz.
    #[error("calibration against CLOCK_MONOTONIC_RAW gave no plausible rate")]
    Implausible,
}

/// Difference between this clock and `CLOCK_MONOTONIC_RAW` since calibration.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Drift {
    /// How much faster (positive) this clock ran, parts per million.
    pub ppm: f64,
    /// Over how long, nanoseconds. Short spans make `ppm` coarse.
    pub span_ns: u64,
}

/// A tick reading and a `CLOCK_MONOTONIC_RAW` reading taken together.
#[derive(Debug, Clone, Copy)]
struct Bracket {
    ticks: u64,
    raw_ns: u64,
}

impl MachineClock {
    /// Chooses the clock and calibrates it, which takes about 80 ms where it is the counter.
    #[must_use]
    pub fn new(sysfs: &Sysfs) -> Self {
        match counter_trusted(sysfs) {
            Ok(()) => Self::calibrated(),
            Err(why) => Self::monotonic_raw(why),
        }
    }

    fn calibrated() -> Self {
        let first = bracket();
        std::thread::sleep(CALIBRATION);
        let last = bracket();
        let ticks = last.ticks.wrapping_sub(first.ticks);
        let ns = last.raw_ns.saturating_sub(first.raw_ns);
        // Between 10 MHz and 100 GHz both fixed-point factors fit 64 bits.
        match (fixed_ratio(ns, ticks), fixed_ratio(ticks, ns)) {
            (Some(ns_per_tick_fixed), Some(ticks_per_ns_fixed)) => Self {
                tsc: true,
                ns_per_tick_fixed,
                ticks_per_ns_fixed,
                base: last,
                why_not_tsc: None,
            },
            _ => Self::monotonic_raw(WhyNotTsc::Implausible),
        }
    }

    /// The kernel's clock: one tick is one nanosecond.
    #[must_use]
    pub fn monotonic_raw(why: WhyNotTsc) -> Self {
        let raw_ns = raw_ns();
        Self {
            tsc: false,
            ns_per_tick_fixed: 1 << FRACTION_BITS,
            ticks_per_ns_fixed: 1 << FRACTION_BITS,
            base: Bracket {
                ticks: raw_ns,
                raw_ns,
            },
            why_not_tsc: Some(why),
        }
    }

    /// `tsc` or `monotonic_raw`.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        if self.tsc { "tsc" } else { "monotonic_raw" }
    }

    /// Why the counter is not used; `None` where it is.
    #[must_use]
    pub const fn why_not_tsc(&self) -> Option<WhyNotTsc> {
        self.why_not_tsc
    }

    /// Ticks a second.
    #[must_use]
    #[allow(clippy::cast_precision_loss)]
    pub fn hz(&self) -> f64 {
        self.ticks_per_ns_fixed as f64 / (1u64 << FRACTION_BITS) as f64 * 1e9
    }

    /// Compares with `CLOCK_MONOTONIC_RAW` over the time since calibration. 0 where that is the clock.
    #[must_use]
    #[allow(clippy::cast_precision_loss)]
    pub fn drift_check(&self) -> Drift {
        if !self.tsc {
            return Drift {
                ppm: 0.0,
                span_ns: raw_ns().saturating_sub(self.base.raw_ns),
            };
        }
        let now = bracket();
        let span_ns = now.raw_ns.saturating_sub(self.base.raw_ns).max(1);
        let ours_ns = self.to_ns(now.ticks.wrapping_sub(self.base.ticks));
        let ahead_ns = ours_ns as f64 - span_ns as f64;
        Drift {
            ppm: ahead_ns / span_ns as f64 * 1e6,
            span_ns,
        }
    }
}

impl Clock for MachineClock {
    #[inline(always)]
    fn now(&self) -> Tick {
        // Always the same way for one clock: the branch costs nothing once predicted.
        Tick(if self.tsc { counter() } else { raw_ns() })
    }

    #[inline]
    fn to_ns(&self, ticks: u64) -> u64 {
        scaled(ticks, self.ns_per_tick_fixed)
    }

    #[inline]
    fn to_ticks(&self, ns: u64) -> u64 {
        scaled(ns, self.ticks_per_ns_fixed)
    }
}

/// `value * factor` with the point moved back; the product of two 64-bit numbers always fits.
#[inline]
fn scaled(value: u64, factor_fixed: u64) -> u64 {
    let product = (u128::from(value) * u128::from(factor_fixed)) >> FRACTION_BITS;
    u64::try_from(product).unwrap_or(u64::MAX)
}

/// `part / whole` in fixed point, rounded; `None` where it does not fit or is under 0.01.
fn fixed_ratio(part: u64, whole: u64) -> Option<u64> {
    if whole == 0 {
        return None;
    }
    let whole = u128::from(whole);
    let ratio = ((u128::from(part) << FRACTION_BITS) + whole / 2) / whole;
    let least = (1u128 << FRACTION_BITS) / 100;
    (ratio >= least)
        .then(|| u64::try_from(ratio).ok())
        .flatten()
}

/// Whether the time stamp counter may be used, see the head of this file.
fn counter_trusted(sysfs: &Sysfs) -> Result<(), WhyNotTsc> {
    counter_invariant()?;
    clocksource_is_counter(sysfs)
}

fn clocksource_is_counter(sysfs: &Sysfs) -> Result<(), WhyNotTsc> {
    let read = |name: &str| {
        let path = format!("devices/system/clocksource/clocksource0/{name}");
        read_text(&sysfs.sys(path)).map_err(|_| WhyNotTsc::Unknown)
    };
    let current = read("current_clocksource")?;
    if !["tsc", "kvm-clock", "hyperv_clocksource_tsc_page"].contains(&current.as_str()) {
        return Err(WhyNotTsc::OtherClocksource);
    }
    if read("available_clocksource")?
        .split_whitespace()
        .any(|name| name == "tsc")
    {
        Ok(())
    } else {
        Err(WhyNotTsc::Unstable)
    }
}

#[cfg(target_arch = "x86_64")]
fn counter_invariant() -> Result<(), WhyNotTsc> {
    use std::arch::x86_64::__cpuid;
    const HIGHEST_LEAF: u32 = 0x8000_0000;
    const POWER_LEAF: u32 = 0x8000_0007;
    // Every x86-64 CPU has CPUID and leaf 8000_0000h; higher leaves are read only where it lists them.
    let invariant =
        __cpuid(HIGHEST_LEAF).eax >= POWER_LEAF && __cpuid(POWER_LEAF).edx & (1 << 8) != 0;
    if invariant {
        Ok(())
    } else {
        Err(WhyNotTsc::NotInvariant)
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn counter_invariant() -> Result<(), WhyNotTsc> {
    Err(WhyNotTsc::NoCounter)
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn counter() -> u64 {
    // SAFETY: RDTSC exists on every x86-64 CPU and touches no memory. Linux leaves CR4.TSD clear; a
    // process that forbade itself the read with PR_SET_TSC would get SIGSEGV, and we never do.
    unsafe { std::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn counter() -> u64 {
    raw_ns()
}

/// `CLOCK_MONOTONIC_RAW` in nanoseconds.
#[inline]
fn raw_ns() -> u64 {
    super::clock_ns(libc::CLOCK_MONOTONIC_RAW)
}

/// Both clocks read together, the counter on either side; of many tries the tightest.
fn bracket() -> Bracket {
    let mut best = Bracket {
        ticks: 0,
        raw_ns: 0,
    };
    let mut best_width = u64::MAX;
    for _ in 0..READINGS_COUNT {
        let before = counter();
        let raw_ns = raw_ns();
        let width = counter().wrapping_sub(before);
        if width < best_width {
            best_width = width;
            best = Bracket {
                ticks: before.wrapping_add(width / 2),
                raw_ns,
            };
        }
    }
    best
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn at_rate(hz: u64) -> MachineClock {
        MachineClock {
            tsc: true,
            ns_per_tick_fixed: fixed_ratio(1_000_000_000, hz).unwrap(),
            ticks_per_ns_fixed: fixed_ratio(hz, 1_000_000_000).unwrap(),
            base: Bracket {
                ticks: 0,
                raw_ns: 0,
            },
            why_not_tsc: None,
        }
    }

    #[test]
    fn long_spans_come_out_exact() {
        for hz in [
            10_000_000,
            999_999_999,
            2_299_998_000,
            3_700_000_001,
            5_000_000_000,
        ] {
            let clock = at_rate(hz);
            for seconds in [1, 94, 3600, 86_400] {
                let ns = clock.to_ns(hz * seconds);
                assert!(ns.abs_diff(seconds * 1_000_000_000) <= 1, "{hz} {ns}");
                let ticks = clock.to_ticks(seconds * 1_000_000_000);
                assert!(ticks.abs_diff(hz * seconds) <= 1, "{hz} {ticks}");
            }
        }
    }

    #[test]
    fn conversions_saturate() {
        let clock = at_rate(10_000_000);
        assert_eq!(clock.to_ns(u64::MAX), u64::MAX);
        assert_eq!(at_rate(3_000_000_000).to_ticks(u64::MAX), u64::MAX);
    }

    #[test]
    fn implausible_rates_are_refused() {
        assert_eq!(fixed_ratio(1, 0), None);
        assert_eq!(fixed_ratio(1, 1_000_000), None);
        assert_eq!(fixed_ratio(1_000_000, 1), None);
    }

    #[test]
    fn the_machine_clock_keeps_time_with_the_kernel() {
        let clock = MachineClock::new(&Sysfs::host());
        assert_eq!(clock.kind() == "tsc", clock.why_not_tsc().is_none());
        let (start, start_ns) = (clock.now(), raw_ns());
        std::thread::sleep(Duration::from_millis(50));
        let (end, end_ns) = (clock.now(), raw_ns());
        let ours_ns = clock.to_ns(end.since(start));
        let off_ns = ours_ns.abs_diff(end_ns - start_ns);
        // Being preempted between two reads is possible; being off by 5 ms of 50 is a wrong rate.
        assert!(off_ns < 5_000_000, "{off_ns}");
        let drift = clock.drift_check();
        assert!(drift.ppm.abs() < 1000.0 && drift.span_ns > 40_000_000);
    }

    #[test]
    fn the_fallback_counts_nanoseconds_and_says_why() {
        let clock = MachineClock::monotonic_raw(WhyNotTsc::Unstable);
        assert_eq!((clock.kind(), clock.to_ns(7)), ("monotonic_raw", 7));
        assert!((clock.hz() - 1e9).abs() < 1e-3);
        assert!(clock.now() <= clock.now());
        assert!(
            clock
                .why_not_tsc()
                .unwrap()
                .to_string()
                .contains("unstable")
        );
    }

    fn clocksource(current: &str, available: &str) -> Result<(), WhyNotTsc> {
        let root = tempfile::tempdir().unwrap();
        let dir = root
            .path()
            .join("sys/devices/system/clocksource/clocksource0");
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join("current_clocksource"), current).unwrap();
        std::fs::write(dir.join("available_clocksource"), available).unwrap();
        clocksource_is_counter(&Sysfs::at(root.path()))
    }

    #[test]
    fn the_kernels_word_decides() {
        assert_eq!(clocksource("tsc\n", "tsc hpet acpi_pm \n"), Ok(()));
        assert_eq!(clocksource("kvm-clock\n", "kvm-clock tsc \n"), Ok(()));
        assert_eq!(
            clocksource("kvm-clock\n", "kvm-clock \n"),
            Err(WhyNotTsc::Unstable)
        );
        assert_eq!(
            clocksource("hpet\n", "hpet acpi_pm \n"),
            Err(WhyNotTsc::OtherClocksource)
        );
        let nothing = tempfile::tempdir().unwrap();
        assert_eq!(
            clocksource_is_counter(&Sysfs::at(nothing.path())),
            Err(WhyNotTsc::Unknown)
        );
    }
}

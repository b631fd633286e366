//! Self-checks: does a step's result agree with itself? What fails becomes a warning, never silence.

use crate::record::{Latency, MixCheck, Warning};

/// What the checks look at.
#[derive(Debug, Clone, Default)]
pub struct CheckInput {
    /// Successes and failures in the window, over all directions.
    pub ios_count: u64,
    /// Mean latency over all directions; absent without samples.
    pub mean_ns: Option<f64>,
    /// Longest latency in the window.
    pub max_ns: u64,
    /// Length of the window.
    pub window_ns: u64,
    /// Time average of the I/Os in flight, counted apart from the latencies.
    pub in_flight_mean: f64,
    /// The most that may be in flight.
    pub depth_count: u64,
    /// Every direction that has samples.
    pub latencies: Vec<Latency>,
    /// What is told of a rate: its name, the rate a second, and the count that it is of.
    pub rates: Vec<(String, f64, u64)>,
    /// Shares asked and achieved.
    pub mix: Vec<MixCheck>,
    /// I/Os that the shares were taken over; of the share with the fewest.
    pub mix_ios_count: u64,
    /// Streams of the step: each is off by what is left of its own deck.
    pub streams_count: u64,
    /// Streams that touched a block outside their region.
    pub outside_count: u64,
    /// Longest latency among I/Os that completed after the window.
    pub drain_max_ns: u64,
    /// Longest time in flight among I/Os that failed or were abandoned.
    pub lost_max_ns: u64,
    /// What the engine itself costs per I/O; absent where not measured.
    pub tool_cost_ns: Option<f64>,
    /// Drift of the clock against the kernel's, in parts per million.
    pub clock_drift_ppm: f64,
}

/// Runs every check.
#[must_use]
pub fn self_checks(input: &CheckInput) -> Vec<Warning> {
    let checks: [fn(&CheckInput) -> Option<Warning>; 8] = [
        littles_law,
        rates,
        order,
        mix,
        regions,
        slow_drain,
        tool_cost,
        clock_drift,
    ];
    checks.iter().filter_map(|check| check(input)).collect()
}

fn warning(kind: &str, text: String, next_step: &str) -> Option<Warning> {
    Some(Warning {
        kind: kind.to_owned(),
        text,
        next_step: next_step.to_owned(),
    })
}

/// Mean latency × rate must be the average in flight. I/Os that straddle the window's edges blur it by up
/// to depth × longest latency on each side, those that completed after its end, failed or were abandoned
/// included: they are counted in flight and are in no mean. This is why short windows are judged gently.
#[allow(clippy::cast_precision_loss)]
fn littles_law(input: &CheckInput) -> Option<Warning> {
    let mean_ns = input.mean_ns?;
    let window_ns = input.window_ns as f64;
    if window_ns == 0.0 || input.in_flight_mean == 0.0 {
        return None;
    }
    let implied = mean_ns * input.ios_count as f64 / window_ns;
    let longest_ns = input.max_ns.max(input.drain_max_ns).max(input.lost_max_ns) as f64;
    let edges = input.depth_count as f64 * 2.0 * mean_ns.max(longest_ns) / window_ns;
    let allowed = 0.03 * input.in_flight_mean + edges.min(input.in_flight_mean) + 0.02;
    if (implied - input.in_flight_mean).abs() <= allowed {
        return None;
    }
    warning(
        "littles-law",
        format!(
            "mean latency × IOPS is {implied:.2} in flight, but {:.2} were counted",
            input.in_flight_mean
        ),
        "do not trust this latency; report it as a bug with the record attached",
    )
}

/// A rate is its count over the window. What is told may be rounded.
#[allow(clippy::cast_precision_loss)]
fn rates(input: &CheckInput) -> Option<Warning> {
    let window_s = input.window_ns as f64 / 1e9;
    let is_wrong = |(_, told, count): &&(String, f64, u64)| {
        let wanted = *count as f64 / window_s;
        window_s > 0.0 && (told - wanted).abs() > 0.005 * wanted + 1.0
    };
    let (name, told, count) = input.rates.iter().find(is_wrong)?;
    let told = if told.abs() < 1e15 {
        format!("{told:.0}")
    } else {
        format!("{told:e}")
    };
    warning(
        "rate-and-count",
        format!("{name} is {told} a second, but {count} were counted in {window_s:.3} s"),
        "do not trust this rate; report it as a bug with the record attached",
    )
}

fn order(input: &CheckInput) -> Option<Warning> {
    #[allow(clippy::cast_precision_loss)]
    let wrong = input.latencies.iter().any(|l| {
        let ranks = [l.min, l.p50, l.p90, l.p99, l.p99_9, l.p99_99, l.max];
        !ranks.is_sorted() || l.mean < l.min as f64 || l.mean > l.max as f64
    });
    if !wrong {
        return None;
    }
    warning(
        "percentiles-out-of-order",
        "percentiles, mean and maximum contradict each other".to_owned(),
        "do not trust this latency; report it as a bug with the record attached",
    )
}

/// Every stream's generator keeps a share within 25 requests and one for each kind of what was asked. Streams
/// are off independently of each other: as many times as much as the root of their number is far outside that.
#[allow(clippy::cast_precision_loss)]
fn mix(input: &CheckInput) -> Option<Warning> {
    if input.mix_ios_count == 0 {
        return None;
    }
    let allowed_count = 30.0 * (input.streams_count.max(1) as f64).sqrt();
    let allowed_pct = 0.2 + allowed_count * 100.0 / input.mix_ios_count as f64;
    let off = input
        .mix
        .iter()
        .find(|m| (m.asked_pct - m.achieved_pct).abs() > allowed_pct)?;
    warning(
        "mix-missed",
        format!(
            "{}: {:.2} % asked, {:.2} % achieved",
            off.share, off.asked_pct, off.achieved_pct
        ),
        "run longer, or report it as a bug with the record attached",
    )
}

fn regions(input: &CheckInput) -> Option<Warning> {
    if input.outside_count == 0 {
        return None;
    }
    warning(
        "outside-region",
        format!(
            "{} streams touched blocks outside their region",
            input.outside_count
        ),
        "do not trust this result; report it as a bug with the record attached",
    )
}

/// An I/O that was in flight at the end and took longer than all others is no part of the figures.
fn slow_drain(input: &CheckInput) -> Option<Warning> {
    if input.drain_max_ns <= input.max_ns.saturating_mul(2) || input.drain_max_ns < 1_000_000 {
        return None;
    }
    #[allow(clippy::cast_precision_loss)]
    let (drain_ms, max_ms) = (input.drain_max_ns as f64 / 1e6, input.max_ns as f64 / 1e6);
    warning(
        "slow-io-after-window",
        format!(
            "an I/O in flight at the end of the window took {drain_ms:.1} ms (longest inside: {max_ms:.1} ms); it is not in the figures"
        ),
        "run longer than the device's longest stall",
    )
}

fn tool_cost(input: &CheckInput) -> Option<Warning> {
    #[allow(clippy::cast_precision_loss)]
    let p50_ns = input.latencies.iter().map(|l| l.p50).min()? as f64;
    let cost_ns = input.tool_cost_ns?;
    if cost_ns <= 0.05 * p50_ns {
        return None;
    }
    warning(
        "tool-cost",
        format!(
            "the engine itself costs {cost_ns:.0} ns per I/O, over 5 % of the p50 of {p50_ns:.0} ns"
        ),
        "read the latency as an upper bound; `stamp: batch` and larger batches lower the cost",
    )
}

fn clock_drift(input: &CheckInput) -> Option<Warning> {
    if input.clock_drift_ppm.abs() <= 500.0 {
        return None;
    }
    warning(
        "clock-drift",
        format!(
            "the clock ran {:.0} ppm off the kernel's CLOCK_MONOTONIC_RAW during the run",
            input.clock_drift_ppm
        ),
        "times are off by that much; look for a suspended or migrated virtual machine",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn latency(p50: u64) -> Latency {
        Latency {
            min: p50,
            mean: p50 as f64,
            stddev: 0.0,
            p50,
            p90: p50,
            p99: p50,
            p99_9: p50,
            p99_99: p50,
            max: p50,
            censored_count: 0,
            lower_bounds: vec![],
        }
    }

    /// 80,000 I/Os of 100 µs in a second: 8 in flight.
    fn sound() -> CheckInput {
        CheckInput {
            ios_count: 80_000,
            mean_ns: Some(100_000.0),
            max_ns: 100_000,
            window_ns: 1_000_000_000,
            in_flight_mean: 8.0,
            depth_count: 8,
            latencies: vec![latency(100_000)],
            ..CheckInput::default()
        }
    }

    fn kinds(input: &CheckInput) -> Vec<String> {
        self_checks(input)
            .into_iter()
            .map(|warning| warning.kind)
            .collect()
    }

    #[test]
    fn a_sound_result_raises_nothing() {
        assert_eq!(kinds(&sound()), Vec::<String>::new());
    }

    /// Half of the window passes with one I/O in flight that completes after it: in no mean, but in flight.
    #[test]
    fn a_stall_over_the_end_of_the_window_closes() {
        let input = CheckInput {
            ios_count: 50_000,
            mean_ns: Some(100.0),
            max_ns: 200,
            window_ns: 10_000_000,
            in_flight_mean: 1.0,
            depth_count: 1,
            latencies: vec![latency(100)],
            drain_max_ns: 5_000_000,
            ..CheckInput::default()
        };
        assert_eq!(kinds(&input), ["slow-io-after-window"]);
    }

    /// Four in flight that never complete, for two thirds of the window.
    #[test]
    fn what_is_lost_in_flight_closes() {
        let input = CheckInput {
            ios_count: 28_000,
            mean_ns: Some(100_000.0),
            max_ns: 100_000,
            window_ns: 2_000_000_000,
            in_flight_mean: 4.0,
            depth_count: 4,
            latencies: vec![latency(100_000)],
            lost_max_ns: 2_300_000_000,
            ..CheckInput::default()
        };
        assert_eq!(kinds(&input), Vec::<String>::new());
        let lost_max_ns = 0;
        assert_eq!(
            kinds(&CheckInput {
                lost_max_ns,
                ..input
            }),
            ["littles-law"]
        );
    }

    /// 64 streams of 50 I/Os are off by 30 of 3,200 together, one stream of so many is not.
    #[test]
    fn each_stream_may_be_off_by_its_own_deck() {
        let mut input = sound();
        (input.mix_ios_count, input.streams_count) = (3_200, 64);
        input.mix = vec![MixCheck {
            share: "read".into(),
            asked_pct: 50.0,
            achieved_pct: 51.5,
        }];
        assert_eq!(kinds(&input), Vec::<String>::new());
        input.streams_count = 1;
        assert_eq!(kinds(&input), ["mix-missed"]);
    }

    #[test]
    fn published_latencies_that_do_not_close_are_found() {
        // 4 × 32 in flight at 21,241 IOPS cannot take 2 ms on average: it must be 6.
        let input = CheckInput {
            ios_count: 21_241 * 60,
            mean_ns: Some(2_000_000.0),
            max_ns: 2_000_000,
            window_ns: 60_000_000_000,
            in_flight_mean: 128.0,
            depth_count: 128,
            latencies: vec![latency(2_000_000)],
            ..CheckInput::default()
        };
        assert_eq!(kinds(&input), ["littles-law"]);
    }

    #[test]
    fn a_rate_is_its_count_over_the_window() {
        for (told, is_right) in [
            (80_000.0, true),
            (80_100.0, true),
            (160_000.0, false),
            (-5.0, false),
            (1e308, false),
            (0.0, false),
        ] {
            let rates = vec![("read IOPS".to_owned(), told, 80_000)];
            let found = kinds(&CheckInput { rates, ..sound() });
            assert_eq!(found.is_empty(), is_right, "{told}: {found:?}");
        }
    }

    #[test]
    fn each_doubt_is_raised_by_name() {
        let mut input = sound();
        input.latencies[0].p99 = input.latencies[0].max + 1;
        assert_eq!(kinds(&input), ["percentiles-out-of-order"]);
        let mut input = sound();
        input.mix_ios_count = 1_000_000;
        input.mix = vec![MixCheck {
            share: "read".into(),
            asked_pct: 70.0,
            achieved_pct: 69.0,
        }];
        assert_eq!(kinds(&input), ["mix-missed"]);
        assert_eq!(
            kinds(&CheckInput {
                outside_count: 1,
                ..sound()
            }),
            ["outside-region"]
        );
        let slow = CheckInput {
            drain_max_ns: 94_000_000_000,
            ..sound()
        };
        assert_eq!(kinds(&slow), ["slow-io-after-window"]);
        assert_eq!(
            kinds(&CheckInput {
                tool_cost_ns: Some(5_001.0),
                ..sound()
            }),
            ["tool-cost"]
        );
        assert_eq!(
            kinds(&CheckInput {
                clock_drift_ppm: -501.0,
                ..sound()
            }),
            ["clock-drift"]
        );
    }
}

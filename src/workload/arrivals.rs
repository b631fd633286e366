//! When the next I/O of an open loop is due.

use super::random::{Purpose, Random};
use super::spec::Arrival;

/// Nanoseconds in 10^6 seconds: rates are held in millionths of an arrival a second.
const NS_PER_MILLION_S: u128 = 1_000_000_000_000_000;

/// Successive arrival times of one stream, in nanoseconds since its start, never falling.
#[derive(Debug, Clone)]
pub struct Arrivals(Kind);

#[derive(Debug, Clone)]
enum Kind {
    /// The k-th arrival, from 0, is at floor((k + phase) / rate), in whole numbers: quotient and
    /// remainder are carried along, so that there is neither drift nor a division.
    Fixed {
        at_ns: u64,
        /// Behind `at_ns`, in units of 1 / `unit` ns.
        rest: u128,
        gap_ns: u64,
        gap_rest: u128,
        unit: u128,
    },
    Poisson {
        at_ns: u64,
        /// Behind `at_ns`, below 1: kept, so that long runs lose nothing to rounding.
        rest_ns: f64,
        mean_gap_ns: f64,
        random: Random,
    },
}

impl Arrivals {
    /// Arrivals of a stream that is alone in its step; `None` for a closed loop. With a fixed rate the
    /// k-th arrival, counted from 0, is at k / rate, to the nanosecond below; the rate counts in
    /// millionths of an arrival a second.
    #[must_use]
    pub fn new(arrival: Arrival, seed: u64) -> Option<Self> {
        Self::staggered(arrival, seed, 0, 1)
    }

    /// Arrivals of stream number `index` (from 0) of `count` streams with the same rate. Fixed arrivals
    /// are shifted by index / count of their gap: otherwise all streams of a step would send at the same
    /// moments, and the step's rate would come in bursts of `count`.
    ///
    /// # Panics
    /// When `index` is not below `count`.
    #[must_use]
    pub fn staggered(arrival: Arrival, seed: u64, index: u32, count: u32) -> Option<Self> {
        assert!(index < count, "stream {index} of {count}");
        match arrival {
            Arrival::Closed => None,
            Arrival::Fixed { iops } => Some(Self::fixed(iops, index, count)),
            Arrival::Poisson { iops } => Some(Self(Kind::Poisson {
                at_ns: 0,
                rest_ns: 0.0,
                mean_gap_ns: 1e9 / iops,
                random: Random::new(seed, Purpose::Arrivals),
            })),
        }
    }

    fn fixed(iops: f64, index: u32, count: u32) -> Self {
        let millionths = ((iops * 1e6).round() as u64).max(1);
        let unit = u128::from(millionths) * u128::from(count);
        let gap = NS_PER_MILLION_S * u128::from(count);
        let phase = NS_PER_MILLION_S * u128::from(index);
        Self(Kind::Fixed {
            at_ns: (phase / unit) as u64,
            rest: phase % unit,
            gap_ns: (gap / unit) as u64,
            gap_rest: gap % unit,
            unit,
        })
    }

    /// The next arrival, in nanoseconds since the start.
    #[inline]
    pub fn next_ns(&mut self) -> u64 {
        match &mut self.0 {
            Kind::Fixed {
                at_ns,
                rest,
                gap_ns,
                gap_rest,
                unit,
            } => {
                let now = *at_ns;
                *at_ns = at_ns.saturating_add(*gap_ns);
                *rest += *gap_rest;
                if *rest >= *unit {
                    *rest -= *unit;
                    *at_ns = at_ns.saturating_add(1);
                }
                now
            }
            Kind::Poisson {
                at_ns,
                rest_ns,
                mean_gap_ns,
                random,
            } => {
                *rest_ns -= random.unit_above_zero().ln() * *mean_gap_ns;
                let whole_ns = *rest_ns as u64;
                *rest_ns -= whole_ns as f64;
                *at_ns = at_ns.saturating_add(whole_ns);
                *at_ns
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_closed_loop_has_no_arrivals() {
        assert!(Arrivals::new(Arrival::Closed, 1).is_none());
    }

    #[test]
    fn thirds_of_a_second_do_not_drift() {
        let mut arrivals = Arrivals::new(Arrival::Fixed { iops: 3.0 }, 1).unwrap();
        for k in 0..3_000_000_u64 {
            assert_eq!(arrivals.next_ns(), k * 1_000_000_000 / 3);
        }
    }

    #[test]
    fn streams_of_a_step_fill_each_others_gaps() {
        let mut all = Vec::new();
        for index in 0..8 {
            let fixed = Arrival::Fixed { iops: 1000.0 };
            let mut arrivals = Arrivals::staggered(fixed, 1, index, 8).unwrap();
            all.extend((0..100).map(|_| arrivals.next_ns()));
        }
        all.sort_unstable();
        assert!(all.iter().copied().eq((0..800).map(|k| k * 125_000)));
    }

    #[test]
    fn poisson_gaps_are_exponential() {
        let mean_ns = 50_000.0;
        let mut arrivals = Arrivals::new(Arrival::Poisson { iops: 20_000.0 }, 3).unwrap();
        let draws = 400_000;
        let times: Vec<u64> = (0..draws).map(|_| arrivals.next_ns()).collect();
        let gaps: Vec<f64> = times.windows(2).map(|t| (t[1] - t[0]) as f64).collect();
        let mean = times[draws - 1] as f64 / draws as f64;
        assert!((mean / mean_ns - 1.0).abs() < 0.008, "{mean}");
        for k in [0.1, 1.0, 3.0] {
            let above = gaps.iter().filter(|&&gap| gap > k * mean_ns).count() as f64;
            let share = above / gaps.len() as f64;
            assert!((share - f64::exp(-k)).abs() < 0.004, "{k}: {share}");
        }
        let correlation: f64 = gaps
            .windows(2)
            .map(|g| (g[0] / mean_ns - 1.0) * (g[1] / mean_ns - 1.0))
            .sum::<f64>()
            / gaps.len() as f64;
        assert!(correlation.abs() < 0.01, "{correlation}");
    }

    #[test]
    fn poisson_keeps_its_rate_when_gaps_are_shorter_than_a_nanosecond() {
        let mut arrivals = Arrivals::new(Arrival::Poisson { iops: 1e10 }, 5).unwrap();
        let last = (0..1_000_000).map(|_| arrivals.next_ns()).last().unwrap();
        assert!((99_500..100_500).contains(&last), "{last}");
    }

    #[test]
    fn poisson_repeats_and_differs_by_seed() {
        let times = |seed| -> Vec<u64> {
            let poisson = Arrival::Poisson { iops: 1000.0 };
            let mut arrivals = Arrivals::new(poisson, seed).unwrap();
            (0..100).map(|_| arrivals.next_ns()).collect()
        };
        assert_eq!(times(1), times(1));
        assert_ne!(times(1), times(2));
    }

    proptest! {
        #[test]
        fn fixed_arrivals_are_exact(millionths in 1_u64..10_u64.pow(13), skip in 0_usize..2000) {
            let iops = millionths as f64 / 1e6;
            let mut arrivals = Arrivals::new(Arrival::Fixed { iops }, 0).unwrap();
            for _ in 0..skip {
                arrivals.next_ns();
            }
            let exact = skip as u128 * NS_PER_MILLION_S / u128::from((iops * 1e6).round() as u64);
            prop_assert_eq!(u128::from(arrivals.next_ns()), exact);
        }
    }
}

//! A latency distribution: an HDR histogram, and beside it the figures that must be exact.

use crate::record::Latency;
use hdrhistogram::Histogram;

/// Largest latency the buckets tell apart: one hour. Longer ones count in the last bucket, and the exact
/// maximum still tells the truth.
const HIGHEST_NS: u64 = 3_600_000_000_000;

/// Latencies in nanoseconds; 3 significant digits, exact count, sum, minimum and maximum.
#[derive(Debug, Clone)]
pub struct LatencyHistogram {
    buckets: Histogram<u64>,
    sum_ns: u128,
    min_ns: u64,
    max_ns: u64,
    /// I/Os that were still in flight at the end: they count with the age they had reached.
    censored_count: u64,
    censored_min_age_ns: u64,
}

impl Default for LatencyHistogram {
    fn default() -> Self {
        Self::new()
    }
}

impl LatencyHistogram {
    /// An empty distribution. All the memory it will ever need is allocated here.
    #[must_use]
    pub fn new() -> Self {
        let buckets = Histogram::new_with_bounds(1, HIGHEST_NS, 3)
            .expect("constant bounds that the crate documents as valid");
        Self {
            buckets,
            sum_ns: 0,
            min_ns: u64::MAX,
            max_ns: 0,
            censored_count: 0,
            censored_min_age_ns: u64::MAX,
        }
    }

    /// Counts one I/O.
    #[inline]
    pub fn record(&mut self, latency_ns: u64) {
        self.buckets.saturating_record(latency_ns);
        self.sum_ns += u128::from(latency_ns);
        self.min_ns = self.min_ns.min(latency_ns);
        self.max_ns = self.max_ns.max(latency_ns);
    }

    /// Counts an I/O that had not completed when the run gave up on it: its latency is at least `age_ns`.
    pub fn record_censored(&mut self, age_ns: u64) {
        self.record(age_ns);
        self.censored_count += 1;
        self.censored_min_age_ns = self.censored_min_age_ns.min(age_ns);
    }

    /// Adds another distribution; nothing is lost in merging.
    pub fn merge(&mut self, other: &Self) {
        if other.count() == 0 {
            return;
        }
        self.buckets
            .add(&other.buckets)
            .expect("both have the same bounds");
        self.sum_ns += other.sum_ns;
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        self.censored_count += other.censored_count;
        self.censored_min_age_ns = self.censored_min_age_ns.min(other.censored_min_age_ns);
    }

    /// Forgets everything, keeps the memory.
    pub fn reset(&mut self) {
        if self.count() != 0 {
            self.buckets.reset();
        }
        self.sum_ns = 0;
        self.min_ns = u64::MAX;
        self.max_ns = 0;
        self.censored_count = 0;
        self.censored_min_age_ns = u64::MAX;
    }

    /// How many I/Os were counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.len()
    }

    /// The exact mean in nanoseconds; `None` without samples.
    #[must_use]
    #[allow(clippy::cast_precision_loss)]
    pub fn mean_ns(&self) -> Option<f64> {
        (self.count() > 0).then(|| self.sum_ns as f64 / self.count() as f64)
    }

    /// The exact maximum in nanoseconds; `None` without samples.
    #[must_use]
    pub fn max_ns(&self) -> Option<u64> {
        (self.count() > 0).then_some(self.max_ns)
    }

    /// The latency that `pct_hundredths` hundredths of a percent of the I/Os did not exceed: 9,990 is
    /// p99.9. The rank is a whole number; in floating point 99.9 % of 1,000 is a little more than 999, and
    /// p99.9 would be the maximum. A bucket's upper edge can lie above the largest value in it, hence the
    /// clamp to what was really seen. `None` without samples.
    #[must_use]
    pub fn percentile_ns(&self, pct_hundredths: u32) -> Option<u64> {
        let rank = (u128::from(self.count()) * u128::from(pct_hundredths))
            .div_ceil(10_000)
            .max(1);
        let mut seen = 0;
        let bucket = self.buckets.iter_recorded().find(|bucket| {
            seen += u128::from(bucket.count_at_value());
            seen >= rank
        })?;
        Some(bucket.value_iterated_to().clamp(self.min_ns, self.max_ns))
    }

    /// All the figures of a record; `None` without samples.
    #[must_use]
    pub fn summary(&self) -> Option<Latency> {
        let at = |pct_hundredths| self.percentile_ns(pct_hundredths);
        let mut latency = Latency {
            min: self.min_ns,
            mean: self.mean_ns()?,
            stddev: self.stddev_ns(),
            p50: at(5_000)?,
            p90: at(9_000)?,
            p99: at(9_900)?,
            p99_9: at(9_990)?,
            p99_99: at(9_999)?,
            max: self.max_ns,
            censored_count: self.censored_count,
            lower_bounds: Vec::new(),
        };
        if self.censored_count > 0 {
            latency.lower_bounds = self.lower_bounds(&latency);
        }
        Some(latency)
    }

    /// The buckets that hold something: `(largest value the bucket stands for, count)`, ascending.
    #[must_use]
    pub fn buckets(&self) -> Vec<(u64, u64)> {
        self.buckets
            .iter_recorded()
            .map(|step| {
                (
                    step.value_iterated_to().min(self.max_ns),
                    step.count_at_value(),
                )
            })
            .collect()
    }

    /// The standard deviation of all but the censored error of one bucket's width; never more than the
    /// range allows, 0 where all samples are equal.
    fn stddev_ns(&self) -> f64 {
        if self.min_ns == self.max_ns {
            0.0
        } else {
            self.buckets.stdev()
        }
    }

    /// A censored I/O took at least its age. Every figure at or above the youngest such age can only be
    /// larger in truth; so can mean and deviation.
    fn lower_bounds(&self, latency: &Latency) -> Vec<String> {
        let mut names = vec!["mean".to_owned()];
        let ranked = [
            ("p50", latency.p50),
            ("p90", latency.p90),
            ("p99", latency.p99),
            ("p99_9", latency.p99_9),
            ("p99_99", latency.p99_99),
            ("max", latency.max),
        ];
        names.extend(
            ranked
                .into_iter()
                .filter(|(_, value)| *value >= self.censored_min_age_ns)
                .map(|(name, _)| name.to_owned()),
        );
        if !names.iter().any(|name| name == "max") {
            names.push("max".to_owned());
        }
        names
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn percentiles_are_never_clipped_at_a_bucket_edge() {
        let mut latencies = LatencyHistogram::new();
        for _ in 0..1000 {
            latencies.record(100_001);
        }
        let latency = latencies.summary().unwrap();
        assert_eq!(
            (latency.p50, latency.p99_9, latency.max),
            (100_001, 100_001, 100_001)
        );
        assert!((latency.mean - 100_001.0).abs() < 1e-9);
        assert_eq!(latency.stddev, 0.0);
    }

    #[test]
    fn a_rank_that_is_whole_is_not_rounded_up() {
        for count in [1_000_u64, 2_000, 3_000, 5_000, 10_000, 70_000] {
            let mut latencies = LatencyHistogram::new();
            // The slowest thousandth, and nothing else, takes a second.
            for number in 0..count {
                latencies.record(if number < count / 1000 {
                    1_000_000_000
                } else {
                    1_000
                });
            }
            assert_eq!(latencies.percentile_ns(9_990), Some(1_000), "{count}");
            assert_eq!(
                latencies.percentile_ns(9_991).unwrap(),
                1_000_000_000,
                "{count}"
            );
        }
    }

    #[test]
    fn a_94_second_io_is_shown_as_94_seconds() {
        let mut latencies = LatencyHistogram::new();
        latencies.record(94_000_000_000);
        let latency = latencies.summary().unwrap();
        assert_eq!(latency.max, 94_000_000_000);
        assert_eq!(latency.p50, 94_000_000_000);
    }

    #[test]
    fn longer_than_an_hour_keeps_its_exact_maximum() {
        let mut latencies = LatencyHistogram::new();
        latencies.record(2 * HIGHEST_NS);
        assert_eq!(latencies.summary().unwrap().max, 2 * HIGHEST_NS);
    }

    #[test]
    fn nothing_seen_is_no_figure() {
        assert_eq!(LatencyHistogram::new().summary(), None);
        assert_eq!(LatencyHistogram::new().percentile_ns(5_000), None);
    }

    #[test]
    fn abandoned_ios_mark_the_figures_they_touch() {
        let mut latencies = LatencyHistogram::new();
        for _ in 0..997 {
            latencies.record(1_000);
        }
        for _ in 0..3 {
            latencies.record_censored(5_000_000_000);
        }
        let latency = latencies.summary().unwrap();
        assert_eq!(latency.max, 5_000_000_000);
        assert_eq!(latency.censored_count, 3);
        assert_eq!(latency.lower_bounds, ["mean", "p99_9", "p99_99", "max"]);
    }

    proptest! {
        #[test]
        fn figures_keep_their_order(values in proptest::collection::vec(0_u64..HIGHEST_NS * 2, 1..200)) {
            let mut latencies = LatencyHistogram::new();
            values.iter().for_each(|value| latencies.record(*value));
            let l = latencies.summary().unwrap();
            prop_assert!(l.min <= l.p50 && l.p50 <= l.p90 && l.p90 <= l.p99);
            prop_assert!(l.p99 <= l.p99_9 && l.p99_9 <= l.p99_99 && l.p99_99 <= l.max);
            prop_assert!(l.min as f64 <= l.mean && l.mean <= l.max as f64);
            prop_assert_eq!(l.max, *values.iter().max().unwrap());
        }

        #[test]
        fn merging_loses_nothing(a in proptest::collection::vec(0_u64..1_000_000_000, 0..50),
                                 b in proptest::collection::vec(0_u64..1_000_000_000, 0..50)) {
            let (mut left, mut right, mut both) =
                (LatencyHistogram::new(), LatencyHistogram::new(), LatencyHistogram::new());
            a.iter().for_each(|value| { left.record(*value); both.record(*value); });
            b.iter().for_each(|value| { right.record(*value); both.record(*value); });
            left.merge(&right);
            prop_assert_eq!(left.summary(), both.summary());
            prop_assert_eq!(left.buckets(), both.buckets());
        }
    }
}

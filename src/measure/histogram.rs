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
    /// Ages of I/Os that were still in flight or waiting at the end. Apart, since an age says only that the
    /// latency is no less: it may raise a figure, and none that completed is known by it.
    censored: Option<Box<Self>>,
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
            censored: None,
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

    /// Counts an I/O that had not completed when the run gave up on it: its latency is at least `age_ns`. It
    /// is in [`Self::summary`] and [`Self::buckets`] only.
    pub fn record_censored(&mut self, age_ns: u64) {
        self.censored.get_or_insert_default().record(age_ns);
    }

    /// Forgets the ages where none is above this.
    pub fn forget_ages_within(&mut self, limit_ns: u64) {
        let is_within = |ages: &mut Box<Self>| ages.max_ns <= limit_ns;
        self.censored.take_if(is_within);
    }

    /// Adds another distribution; nothing is lost in merging.
    pub fn merge(&mut self, other: &Self) {
        if let Some(ages) = &other.censored {
            self.censored.get_or_insert_default().merge(ages);
        }
        if other.count() == 0 {
            return;
        }
        self.buckets
            .add(&other.buckets)
            .expect("both have the same bounds");
        self.sum_ns += other.sum_ns;
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// Forgets everything, keeps the memory.
    pub fn reset(&mut self) {
        if self.count() != 0 {
            self.buckets.reset();
        }
        self.sum_ns = 0;
        self.min_ns = u64::MAX;
        self.max_ns = 0;
        self.censored = None;
    }

    /// How many I/Os completed.
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
        self.at_rank_ns(rank(self.count(), pct_hundredths))
    }

    /// The latency of the I/O at this place among those that completed, counted from 1.
    fn at_rank_ns(&self, rank: u128) -> Option<u64> {
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
        let Some(ages) = &self.censored else {
            return self.figures();
        };
        let all = self.with_ages();
        let mut latency = all.figures()?;
        if let Some(completed) = self.figures() {
            latency.min = completed.min;
            latency.stddev = completed.stddev;
            latency.mean = latency.mean.max(completed.mean);
            latency.p50 = latency.p50.max(completed.p50);
            latency.p90 = latency.p90.max(completed.p90);
            latency.p99 = latency.p99.max(completed.p99);
            latency.p99_9 = latency.p99_9.max(completed.p99_9);
            latency.p99_99 = latency.p99_99.max(completed.p99_99);
        }
        latency.censored_count = ages.count();
        latency.lower_bounds = self.lower_bounds(&latency, all.count());
        Some(latency)
    }

    /// The figures of what completed.
    fn figures(&self) -> Option<Latency> {
        let at = |pct_hundredths| self.percentile_ns(pct_hundredths);
        Some(Latency {
            min: self.min_ns,
            mean: self.mean_ns()?,
            stddev: self.stddev_ns(),
            p50: at(5_000)?,
            p90: at(9_000)?,
            p99: at(9_900)?,
            p99_9: at(9_990)?,
            p99_99: at(9_999)?,
            max: self.max_ns,
            censored_count: 0,
            lower_bounds: Vec::new(),
        })
    }

    /// Ages counted as if they were latencies.
    fn with_ages(&self) -> Self {
        let mut all = self.clone();
        if let Some(ages) = all.censored.take() {
            all.merge(&ages);
        }
        all
    }

    /// The buckets that hold something: `(largest value the bucket stands for, count)`, ascending; ages of
    /// I/Os that did not complete are in them.
    #[must_use]
    pub fn buckets(&self) -> Vec<(u64, u64)> {
        if self.censored.is_some() {
            return self.with_ages().buckets();
        }
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

    /// The figures that would be larger had the I/Os that did not complete, of `all_count`, taken forever.
    fn lower_bounds(&self, latency: &Latency, all_count: u64) -> Vec<String> {
        let ranked = [
            ("p50", 5_000, latency.p50),
            ("p90", 9_000, latency.p90),
            ("p99", 9_900, latency.p99),
            ("p99_9", 9_990, latency.p99_9),
            ("p99_99", 9_999, latency.p99_99),
        ];
        let grows = |(_, pct_hundredths, value): &(&str, u32, u64)| {
            let most = self.at_rank_ns(rank(all_count, *pct_hundredths));
            most.is_none_or(|most| most > *value)
        };
        let first = if self.count() == 0 { "min" } else { "mean" };
        let mut names = vec![first, "mean", "stddev"];
        names.dedup();
        names.extend(ranked.into_iter().filter(grows).map(|(name, ..)| name));
        names.push("max");
        names.into_iter().map(str::to_owned).collect()
    }
}

/// The start of the bucket that a latency lies in: 2,048 in the first power of two that needs them, 1,024 in each
/// after it.
#[must_use]
pub const fn bucket_start_ns(latency_ns: u64) -> u64 {
    match latency_ns {
        0..2048 => latency_ns,
        _ => latency_ns & (u64::MAX << (latency_ns.ilog2() - 10)),
    }
}

/// The place of a percentile among so many, counted from 1.
fn rank(count: u64, pct_hundredths: u32) -> u128 {
    (u128::from(count) * u128::from(pct_hundredths))
        .div_ceil(10_000)
        .max(1)
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
        assert_eq!(
            latency.lower_bounds,
            ["mean", "stddev", "p99_9", "p99_99", "max"]
        );
    }

    #[test]
    fn the_age_of_an_abandoned_io_lowers_no_figure() {
        let mut latencies = LatencyHistogram::new();
        for _ in 0..4 {
            latencies.record(1_000);
        }
        let completed = latencies.summary().unwrap();
        for _ in 0..4 {
            latencies.record_censored(0);
        }
        let latency = latencies.summary().unwrap();
        assert_eq!((latency.min, latency.stddev), (1_000, 0.0));
        assert_eq!((latency.p50, latency.max), (completed.p50, completed.max));
        assert_eq!(latency.mean, completed.mean);
        assert_eq!((latencies.count(), latency.censored_count), (4, 4));
        assert!(!latency.lower_bounds.contains(&"p50".to_owned()));
        assert!(latency.lower_bounds.contains(&"p90".to_owned()));
        let mut none_completed = LatencyHistogram::new();
        none_completed.record_censored(5);
        let latency = none_completed.summary().unwrap();
        assert_eq!((latency.min, latency.max), (5, 5));
        assert_eq!(latency.lower_bounds[0], "min");
    }

    proptest! {
        #[test]
        fn a_percentile_and_the_start_of_its_bucket_hold_the_truth(value in 1_u64..HIGHEST_NS) {
            let mut latencies = LatencyHistogram::new();
            [value, HIGHEST_NS].iter().for_each(|value| latencies.record(*value));
            let told = latencies.percentile_ns(5_000).unwrap();
            prop_assert!(bucket_start_ns(told) <= value && value <= told);
            prop_assert_eq!(bucket_start_ns(told), bucket_start_ns(value));
        }

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

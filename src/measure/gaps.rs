//! Gaps between polls, in powers of two: what steal, SMIs and preemption leave behind.

use crate::record::PollGap;

/// Counts of gaps; bucket `k` holds those of 2^(k-1) up to 2^k ns.
#[derive(Debug, Clone)]
pub struct Gaps([u64; 65]);

impl Default for Gaps {
    fn default() -> Self {
        Self([0; 65])
    }
}

impl Gaps {
    /// Counts one gap.
    #[inline]
    pub fn record(&mut self, gap_ns: u64) {
        self.0[(u64::BITS - gap_ns.leading_zeros()) as usize] += 1;
    }

    /// Adds another count.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine += theirs;
        }
    }

    /// Nanoseconds in gaps of at least this long, by the lower bounds of their buckets.
    #[must_use]
    pub fn at_least_ns(&self, long_ns: u64) -> u64 {
        let bounds = (0_u32..).map(|power| match power {
            0 => 0,
            _ => 1_u64.checked_shl(power - 1).unwrap_or(u64::MAX),
        });
        let long = bounds
            .zip(self.0)
            .filter(|(least_ns, _)| *least_ns >= long_ns);
        long.map(|(least_ns, count)| least_ns.saturating_mul(count))
            .fold(0, u64::saturating_add)
    }

    /// The buckets that hold something, ascending.
    #[must_use]
    pub fn buckets(&self) -> Vec<PollGap> {
        (0_u32..)
            .zip(self.0)
            .filter(|(_, count)| *count > 0)
            .map(|(power, count)| PollGap {
                up_to_ns: 1_u64.checked_shl(power).unwrap_or(u64::MAX),
                count,
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_fall_into_the_bucket_that_bounds_them() {
        let mut gaps = Gaps::default();
        for gap_ns in [0, 1, 3, 4, u64::MAX] {
            gaps.record(gap_ns);
        }
        let bounds: Vec<_> = gaps
            .buckets()
            .iter()
            .map(|gap| (gap.up_to_ns, gap.count))
            .collect();
        assert_eq!(bounds, [(1, 1), (2, 1), (4, 1), (8, 1), (u64::MAX, 1)]);
    }

    #[test]
    fn long_gaps_are_summed_by_what_they_last_at_least() {
        let mut gaps = Gaps::default();
        for gap_ns in [0, 1023, 1024, 1500, 4100] {
            gaps.record(gap_ns);
        }
        assert_eq!(gaps.at_least_ns(1024), 1024 + 1024 + 4096);
        assert_eq!(gaps.at_least_ns(1025), 4096);
        assert_eq!(gaps.at_least_ns(1 << 40), 0);
        gaps.record(u64::MAX);
        gaps.record(u64::MAX);
        assert_eq!(gaps.at_least_ns(1 << 40), u64::MAX);
    }
}

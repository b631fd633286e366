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
}

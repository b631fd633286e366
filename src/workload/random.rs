//! Seeds and random numbers: every purpose of every stream has a generator of its own, so that a change
//! in one (another mix of sizes) does not shift the others (the positions).

use rand_core::{Rng as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;

/// What a generator is for. The numbers are part of the repeatable sequence: never renumber them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub(super) enum Purpose {
    Position = 1,
    Ops = 2,
    Sizes = 3,
    Order = 4,
    Permutation = 5,
    Arrivals = 6,
    Data = 7,
    Zones = 8,
}

/// The finaliser of splitmix64 (Steele, Lea, Flood 2014, variant 13): a bijection on 64 bits.
#[must_use]
#[inline]
pub(super) const fn mix64(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

/// splitmix64's increment, 2^64 divided by the golden ratio.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// A new seed from a seed and a number; different numbers always give different seeds.
#[must_use]
const fn derive(seed: u64, number: u64) -> u64 {
    mix64(mix64(seed).wrapping_add(GOLDEN.wrapping_mul(number.wrapping_add(1))))
}

/// The seed of one stream: from the job's seed, the place of its step and its place in the step.
/// Streams of one step never share a seed; the same three numbers always give the same one.
#[must_use]
pub const fn stream_seed(seed: u64, step: u32, stream: u32) -> u64 {
    derive(derive(seed, step as u64), stream as u64)
}

/// The seed for one purpose within a stream.
#[must_use]
pub(super) const fn purpose_seed(seed: u64, purpose: Purpose) -> u64 {
    derive(seed, purpose as u64)
}

/// A generator of random numbers: xoshiro256++, seeded through splitmix64.
#[derive(Debug, Clone)]
pub(super) struct Random(Xoshiro256PlusPlus);

impl Random {
    pub(super) fn new(seed: u64, purpose: Purpose) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(purpose_seed(
            seed, purpose,
        )))
    }

    /// 64 random bits.
    #[inline]
    pub(super) fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number in `0..count`, every one exactly as likely as the others; `count` is at least 1.
    ///
    /// Lemire, "Fast Random Integer Generation in an Interval" (2019): multiply, and reject the few
    /// products that would favour some results. The division is reached once in 2^64 / count draws.
    #[inline]
    pub(super) fn below(&mut self, count: u64) -> u64 {
        debug_assert!(count > 0, "a draw from nothing");
        let product = u128::from(self.bits()) * u128::from(count);
        if (product as u64) < count {
            return self.below_checked(count, product);
        }
        (product >> 64) as u64
    }

    #[cold]
    fn below_checked(&mut self, count: u64, mut product: u128) -> u64 {
        let reject_below = count.wrapping_neg() % count;
        while (product as u64) < reject_below {
            product = u128::from(self.bits()) * u128::from(count);
        }
        (product >> 64) as u64
    }

    /// A number in `[0, 1)`, a multiple of 2^-53.
    #[inline]
    pub(super) fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// A number in `(0, 1]`, for logarithms.
    #[inline]
    pub(super) fn unit_above_zero(&mut self) -> f64 {
        1.0 - self.unit()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    #[test]
    fn seeds_of_streams_differ_and_repeat() {
        let mut seen = HashSet::new();
        for seed in 0..10 {
            for step in 0..30 {
                for stream in 0..30 {
                    assert!(seen.insert(stream_seed(seed, step, stream)));
                }
            }
        }
        // Known answers: a change here changes every job of every user.
        assert_eq!(stream_seed(1, 0, 0), stream_seed(1, 0, 0));
        assert_eq!(
            [
                stream_seed(1, 0, 0),
                stream_seed(1, 0, 1),
                stream_seed(1, 1, 0)
            ],
            [
                17_357_127_767_917_823_981,
                14_591_131_311_750_266_162,
                5_565_196_493_627_280_205
            ]
        );
    }

    /// The first two outputs of the reference splitmix64.c from state 0.
    #[test]
    fn the_mixer_is_that_of_splitmix() {
        assert_eq!(mix64(GOLDEN), 0xE220_A839_7B1D_CDAF);
        assert_eq!(mix64(GOLDEN.wrapping_mul(2)), 0x6E78_9E6A_A1B9_65F4);
    }

    #[test]
    fn purposes_of_a_stream_do_not_share_a_sequence() {
        let mut positions = Random::new(7, Purpose::Position);
        let mut sizes = Random::new(7, Purpose::Sizes);
        assert!((0..100).all(|_| positions.bits() != sizes.bits()));
    }

    /// With 3/4 of 2^64 a draw by modulo would give the first third twice as often as the rest.
    #[test]
    fn no_bias_where_modulo_has_the_worst() {
        let count = 3 << 62;
        let mut random = Random::new(1, Purpose::Position);
        let draws = 300_000;
        let low = (0..draws).filter(|_| random.below(count) < 1 << 62).count();
        // Binomial with p = 1/3: five standard deviations are 1,291.
        assert!((low as f64 - 100_000.0).abs() < 1_300.0, "{low}");
    }

    /// Without rejection the product maps four numbers onto three: half of the draws would be
    /// divisible by 3.
    #[test]
    fn no_bias_where_rejection_is_needed_most() {
        let count = 3 << 62;
        let mut random = Random::new(2, Purpose::Position);
        let threes = (0..300_000).filter(|_| random.below(count).is_multiple_of(3));
        let threes = threes.count();
        assert!((threes as f64 - 100_000.0).abs() < 1_300.0, "{threes}");
    }

    #[test]
    fn small_counts_are_uniform() {
        let mut random = Random::new(3, Purpose::Position);
        let mut seen = [0_u32; 7];
        for _ in 0..70_000 {
            seen[random.below(7) as usize] += 1;
        }
        let chi: f64 = seen
            .iter()
            .map(|&n| (f64::from(n) - 10_000.0).powi(2) / 10_000.0)
            .sum();
        assert!(chi < 22.5, "chi-square {chi}, 6 degrees, 0.1 %: 22.46");
    }

    #[test]
    fn units_stay_in_their_interval() {
        let mut random = Random::new(5, Purpose::Position);
        for _ in 0..10_000 {
            assert!((0.0..1.0).contains(&random.unit()));
            let above = random.unit_above_zero();
            assert!(above > 0.0 && above <= 1.0);
        }
    }

    proptest! {
        #[test]
        fn below_is_below(seed: u64, count in 1..=u64::MAX) {
            let mut random = Random::new(seed, Purpose::Position);
            for _ in 0..20 {
                prop_assert!(random.below(count) < count);
            }
            prop_assert_eq!(random.below(1), 0);
        }
    }
}

//! A seeded permutation of `0..count` that needs no table: popular blocks are spread over the region.
//!
//! A Feistel network permutes the next power of two whatever its round function is; a result beyond
//! `count` is permuted again until it falls inside (cycle walking, Black and Rogaway 2002), which keeps
//! it a permutation and takes fewer than two passes on average.

use super::random::{Purpose, Random};

/// Rounds; each changes one half by the other.
const ROUNDS: usize = 6;

/// A bijection on `0..count`.
#[derive(Debug, Clone)]
pub(super) struct Permutation {
    count: u64,
    low_bits: u32,
    low_mask: u64,
    high_mask: u64,
    keys: [u64; ROUNDS],
}

impl Permutation {
    /// A permutation of `0..count`; `count` is at least 1.
    pub(super) fn new(count: u64, seed: u64) -> Self {
        let mut random = Random::new(seed, Purpose::Permutation);
        // Two bits at least, so that both halves exist.
        let bits = (64 - (count - 1).leading_zeros()).max(2);
        let low_bits = bits / 2;
        Self {
            count,
            low_bits,
            low_mask: (1 << low_bits) - 1,
            high_mask: (1 << (bits - low_bits)) - 1,
            keys: std::array::from_fn(|_| random.bits()),
        }
    }

    /// Where `rank`, below `count`, lies.
    #[inline]
    pub(super) fn place(&self, rank: u64) -> u64 {
        let mut place = rank;
        loop {
            place = self.pass(place);
            if place < self.count {
                return place;
            }
        }
    }

    #[inline]
    fn pass(&self, value: u64) -> u64 {
        let mut low = value & self.low_mask;
        let mut high = value >> self.low_bits;
        for keys in self.keys.chunks_exact(2) {
            high ^= scramble(low, keys[0]) & self.high_mask;
            low ^= scramble(high, keys[1]) & self.low_mask;
        }
        (high << self.low_bits) | low
    }
}

/// At most 32 good bits of a half and a key: the upper half of a product depends on every bit.
#[inline]
fn scramble(half: u64, key: u64) -> u64 {
    let mixed = (half ^ key).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    impl Permutation {
        /// The rank that lies at `place`: the rounds in reverse.
        fn rank(&self, place: u64) -> u64 {
            let mut rank = place;
            loop {
                let mut low = rank & self.low_mask;
                let mut high = rank >> self.low_bits;
                for keys in self.keys.chunks_exact(2).rev() {
                    low ^= scramble(high, keys[1]) & self.low_mask;
                    high ^= scramble(low, keys[0]) & self.high_mask;
                }
                rank = (high << self.low_bits) | low;
                if rank < self.count {
                    return rank;
                }
            }
        }
    }

    #[test]
    fn neighbours_are_spread() {
        let count = 1 << 34;
        let permutation = Permutation::new(count, 11);
        let near = (0..10_000)
            .filter(|&rank| {
                permutation
                    .place(rank)
                    .abs_diff(permutation.place(rank + 1))
                    < count / 1000
            })
            .count();
        // Two random points are that near with a probability of 0.2 %.
        assert!(near < 45, "{near}");
    }

    /// Each of the first ranks falls into each sixteenth of the region for as many seeds as any other.
    #[test]
    fn seeds_move_the_popular_blocks_everywhere() {
        let mut seen = [0_u32; 16];
        for seed in 0..16_000 {
            seen[(Permutation::new(1 << 30, seed).place(0) >> 26) as usize] += 1;
        }
        let chi: f64 = seen
            .iter()
            .map(|&n| (f64::from(n) - 1000.0).powi(2) / 1000.0)
            .sum();
        assert!(chi < 37.7, "chi-square {chi}, 15 degrees, 0.1 %: 37.70");
    }

    proptest! {
        #[test]
        fn small_ones_hit_every_place_once(count in 1_u64..3000, seed: u64) {
            let permutation = Permutation::new(count, seed);
            let mut seen = vec![false; count as usize];
            for rank in 0..count {
                let place = permutation.place(rank) as usize;
                prop_assert!(!std::mem::replace(&mut seen[place], true));
            }
        }

        #[test]
        fn large_ones_can_be_undone(count in 1_u64..1 << 55, seed: u64, rank: u64) {
            let permutation = Permutation::new(count, seed);
            let rank = rank % count;
            let place = permutation.place(rank);
            prop_assert!(place < count);
            prop_assert_eq!(permutation.rank(place), rank);
        }
    }
}

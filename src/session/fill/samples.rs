//! Which blocks of a device are looked at for never-written data, and what their number says of the whole.

use super::written::{Evidence, Share};
use crate::errno::Errno;
use crate::session::guard::content::ReadAt;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::ops::Range;

/// Blocks of a device that are looked at. With none of them blank, the share that was never written is
/// below 1.2 % with 95 % confidence.
pub const SAMPLES_COUNT: u32 = 256;
/// Size of a sample: the largest logical block in common use.
const SAMPLE_BYTES: u64 = 4096;
/// Buffers for direct I/O start on a multiple of this.
const ALIGN_BYTES: usize = 4096;

/// What never-written blocks read as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blank {
    /// Zeros.
    Zeros,
    /// Zeros, or ones where the device says that deallocated blocks read so.
    ZerosOrOnes,
}

impl Blank {
    /// Whether a block reads as if it had never been written.
    #[must_use]
    pub fn is(self, block: &[u8]) -> bool {
        let all = |value: u8| block.iter().all(|byte| *byte == value);
        all(0) || (self == Self::ZerosOrOnes && all(0xff))
    }

    /// In words: `all zero`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Zeros => "all zero",
            Self::ZerosOrOnes => "all zeros or all ones",
        }
    }
}

/// The blocks to look at: one at a random place in each of `samples_count` equal pieces, so that the whole
/// range is seen. The same seed looks at the same blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    /// Their first bytes, in order.
    pub offsets_bytes: Vec<u64>,
    /// Size of each: whole logical blocks, 4 KiB at least.
    pub sample_bytes: u64,
}

impl Places {
    /// Places in a range of a device of `size_bytes`.
    #[must_use]
    pub fn of(
        size_bytes: u64,
        range_bytes: Range<u64>,
        logical_block_bytes: u32,
        seed: u64,
        samples_count: u32,
    ) -> Self {
        let unit = SAMPLE_BYTES.next_multiple_of(u64::from(logical_block_bytes.max(1)));
        let first = range_bytes.start.div_ceil(unit);
        let end = range_bytes.end.min(size_bytes) / unit;
        let units = end.saturating_sub(first);
        let wanted = u64::from(samples_count).min(units);
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut place = |piece| {
            let start = scaled(units, piece, wanted);
            let width = scaled(units, piece + 1, wanted) - start;
            (first + start + scaled(width, random.next_u64() >> 1, 1 << 63)) * unit
        };
        Self {
            offsets_bytes: (0..wanted).map(&mut place).collect(),
            sample_bytes: unit,
        }
    }

    /// What it means that so many of them were blank.
    #[must_use]
    pub fn share(&self, blank_count: u32, blank: Blank) -> Share {
        let samples_count = u32::try_from(self.offsets_bytes.len()).unwrap_or(u32::MAX);
        let (low_ratio, high_ratio) = wilson(blank_count, samples_count);
        Share {
            ratio: if samples_count == 0 {
                0.0
            } else {
                f64::from(blank_count) / f64::from(samples_count)
            },
            evidence: Evidence::Samples {
                blank_count,
                samples_count,
                blank,
                low_ratio,
                high_ratio,
            },
        }
    }
}

/// Samples a device's range through `content`, one read per sample.
///
/// # Errors
/// The errno of the first read that failed: an unreadable block is no zero.
pub fn of_samples(
    content: &dyn ReadAt,
    range_bytes: Range<u64>,
    logical_block_bytes: u32,
    seed: u64,
    samples_count: u32,
) -> Result<Share, Errno> {
    let size_bytes = content.size_bytes();
    let places = Places::of(
        size_bytes,
        range_bytes,
        logical_block_bytes,
        seed,
        samples_count,
    );
    let len = usize::try_from(places.sample_bytes).map_err(|_| Errno(libc::EOVERFLOW))?;
    // Aligned, so that a node opened with O_DIRECT takes it.
    let mut room = vec![0; len + ALIGN_BYTES];
    let skip = room.as_ptr().align_offset(ALIGN_BYTES);
    let block = &mut room[skip..skip + len];
    let mut blank_count = 0;
    for at_bytes in &places.offsets_bytes {
        content.read_at(*at_bytes, block)?;
        blank_count += u32::from(Blank::Zeros.is(block));
    }
    Ok(places.share(blank_count, Blank::Zeros))
}

/// `value × part / whole` without overflow; `part` is at most `whole`.
fn scaled(value: u64, part: u64, whole: u64) -> u64 {
    let product = u128::from(value) * u128::from(part) / u128::from(whole.max(1));
    u64::try_from(product).unwrap_or(u64::MAX)
}

/// Wilson's 95 % interval of a share (E. B. Wilson, 1927): sound for shares near 0 and 1 too.
fn wilson(hits: u32, count: u32) -> (f64, f64) {
    const Z: f64 = 1.959_964;
    if count == 0 {
        return (0.0, 1.0);
    }
    let n = f64::from(count);
    let share = f64::from(hits) / n;
    let middle = share + Z * Z / (2.0 * n);
    let spread = Z * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt();
    let scale = 1.0 + Z * Z / n;
    let end = |value: f64| (value / scale).clamp(0.0, 1.0);
    // At the very ends rounding leaves a crumb where the interval is closed.
    let low = if hits == 0 { 0.0 } else { end(middle - spread) };
    let high = if hits == count {
        1.0
    } else {
        end(middle + spread)
    };
    (low, high)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::cast_possible_truncation)]
    use super::*;

    const MIB: u64 = 1 << 20;

    fn sampled(zero_from: usize, len: usize, seed: u64) -> Share {
        let mut bytes = vec![7; len];
        bytes[zero_from..].fill(0);
        of_samples(&bytes, 0..len as u64, 512, seed, SAMPLES_COUNT).unwrap()
    }

    #[test]
    fn half_a_device_of_zeros_is_found_as_half() {
        for seed in 0..20 {
            let share = sampled(4 << 20, 8 << 20, seed);
            assert!((share.ratio - 0.5).abs() < 0.005, "{share}");
            let warning = share.warning("sdb").unwrap();
            assert_eq!(warning.kind, "never-written");
            assert!(
                warning.text.contains("of 256 sampled blocks are all zero"),
                "{}",
                warning.text
            );
        }
    }

    #[test]
    fn a_written_device_gives_no_warning_and_says_how_sure() {
        let share = sampled(8 << 20, 8 << 20, 1);
        assert_eq!(share.warning("sdb"), None);
        let Evidence::Samples {
            high_ratio,
            low_ratio,
            ..
        } = share.evidence
        else {
            panic!()
        };
        assert!(
            low_ratio == 0.0 && high_ratio > 0.01 && high_ratio < 0.016,
            "{high_ratio}"
        );
    }

    #[test]
    fn an_empty_device_is_all_of_it() {
        let share = sampled(0, 8 << 20, 1);
        assert_eq!(share.ratio, 1.0);
        assert!(
            share.to_string().starts_with("100.0 % of the range"),
            "{share}"
        );
    }

    #[test]
    fn the_same_seed_looks_at_the_same_blocks_and_another_at_others() {
        struct Log(std::cell::RefCell<Vec<u64>>);
        impl ReadAt for Log {
            fn size_bytes(&self) -> u64 {
                1 << 43
            }
            fn read_at(&self, offset_bytes: u64, buffer: &mut [u8]) -> Result<(), Errno> {
                assert!(
                    offset_bytes.is_multiple_of(4096)
                        && offset_bytes + buffer.len() as u64 <= 1 << 43
                );
                self.0.borrow_mut().push(offset_bytes);
                Ok(())
            }
        }
        let places = |seed| {
            let log = Log(std::cell::RefCell::default());
            of_samples(&log, 0..u64::MAX, 512, seed, SAMPLES_COUNT).unwrap();
            log.0.into_inner()
        };
        assert_eq!(places(5), places(5));
        assert_ne!(places(5), places(6));
        assert!(
            places(5).iter().any(|at| *at > (1 << 32) * 512),
            "beyond 32 bits of blocks"
        );
    }

    #[test]
    fn a_range_smaller_than_the_samples_is_seen_once_each_and_a_failed_read_is_no_zero() {
        let bytes = vec![0; 5 * 4096];
        let share = of_samples(&bytes, 4096..5 * 4096, 512, 1, SAMPLES_COUNT).unwrap();
        assert!(matches!(
            share.evidence,
            Evidence::Samples {
                samples_count: 4,
                ..
            }
        ));
        struct Broken;
        impl ReadAt for Broken {
            fn size_bytes(&self) -> u64 {
                MIB
            }
            fn read_at(&self, _: u64, _: &mut [u8]) -> Result<(), Errno> {
                Err(Errno(libc::EIO))
            }
        }
        assert_eq!(
            of_samples(&Broken, 0..MIB, 512, 1, 8),
            Err(Errno(libc::EIO))
        );
    }

    #[test]
    fn the_interval_holds_the_truth_as_often_as_it_says() {
        // Of 200 devices with 10 % zeros at random places, about 95 % must have it in their interval.
        let mut inside = 0;
        for seed in 0..200 {
            let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
            let mut bytes = vec![7; 4096 * 2048];
            for block in bytes.chunks_mut(4096) {
                if random.next_u64() % 10 == 0 {
                    block.fill(0);
                }
            }
            let share = of_samples(&bytes, 0..bytes.len() as u64, 512, seed, 256).unwrap();
            let Evidence::Samples {
                low_ratio,
                high_ratio,
                ..
            } = share.evidence
            else {
                panic!()
            };
            inside += u32::from(low_ratio <= 0.1 && 0.1 <= high_ratio);
        }
        assert!(inside >= 180, "{inside} of 200");
    }
}

//! Never-written data: reads of it are answered without asking the medium, and look like its speed.

use super::guard::content::{FileContent, ReadAt};
use crate::errno::Errno;
use crate::record::Warning;
use crate::sys::ioctl;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::fs::File;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// Blocks of a device that are looked at. With none of them zero, the share that was never written is
/// below 1.2 % with 95 % confidence.
pub const SAMPLES_COUNT: u32 = 256;
/// Size of a sample: the largest logical block in common use.
const SAMPLE_BYTES: u64 = 4096;
/// Buffers for direct I/O start on a multiple of this.
const ALIGN_BYTES: usize = 4096;
/// Samples that are zero by chance of what is stored are no reason to warn.
const NOTABLE_SAMPLED_RATIO: f64 = 0.01;

/// The share of a range that holds nothing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Share {
    /// From 0 (all written) to 1.
    pub ratio: f64,
    /// How it is known.
    pub evidence: Evidence,
}

/// How a [`Share`] is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Evidence {
    /// From the file system's map of the file: exact.
    Extents,
    /// From sampled blocks.
    Samples {
        /// Samples that were all zero.
        zero_count: u32,
        /// Samples in all.
        samples_count: u32,
        /// Lower end of the 95 % confidence interval.
        low_ratio: f64,
        /// Its upper end.
        high_ratio: f64,
    },
}

impl Share {
    /// Whether figures of reads over the range would mislead.
    #[must_use]
    pub fn is_notable(&self) -> bool {
        match self.evidence {
            Evidence::Extents => self.ratio > 0.0,
            Evidence::Samples { .. } => self.ratio >= NOTABLE_SAMPLED_RATIO,
        }
    }

    /// The warning for a record; `None` where there is nothing to warn about. With `--strict` its text is
    /// the reason to refuse.
    #[must_use]
    pub fn warning(&self, device: &str) -> Option<Warning> {
        self.is_notable().then(|| Warning {
            kind: "never-written".to_owned(),
            text: format!(
                "{device}: {self}: reads of it do not reach the medium and look like its speed"
            ),
            next_step: "fill the range first: --prepare".to_owned(),
        })
    }
}

impl std::fmt::Display for Share {
    /// `49.6 % of the range was never written (127 of 256 sampled blocks are all zero; 95 % confidence: 43.5 to 55.7 %)`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of the range was never written", percent(self.ratio))?;
        match self.evidence {
            Evidence::Extents => write!(f, " (holes and unwritten extents of the file)"),
            Evidence::Samples {
                zero_count,
                samples_count,
                low_ratio,
                high_ratio,
            } => write!(
                f,
                " ({zero_count} of {samples_count} sampled blocks are all zero; 95 % confidence: {:.1} to {:.1} %)",
                low_ratio * 100.0,
                high_ratio * 100.0
            ),
        }
    }
}

/// One decimal, and never 0.0 for something nor 100.0 for not quite all.
fn percent(ratio: f64) -> String {
    let pct = ratio * 100.0;
    if pct > 0.0 && pct < 0.1 {
        "under 0.1 %".to_owned()
    } else if pct < 100.0 && pct > 99.9 {
        "over 99.9 %".to_owned()
    } else {
        format!("{pct:.1} %")
    }
}

/// The share of a file's range that is a hole, past its end, or allocated and never written.
///
/// # Errors
/// The kernel's, where the file system can neither list extents nor seek for holes.
pub fn of_file(file: &File, range_bytes: Range<u64>) -> Result<Share, Errno> {
    let length = range_bytes.end.saturating_sub(range_bytes.start);
    let written = match ioctl::extents(file, range_bytes.start, length) {
        Ok(extents) => extents
            .iter()
            .filter(|extent| !extent.is_unwritten())
            .map(|extent| {
                let end = extent.logical_bytes.saturating_add(extent.length_bytes);
                overlap_bytes(extent.logical_bytes..end, &range_bytes)
            })
            .sum(),
        // tmpfs and others list no extents but know their holes.
        Err(_) => data_bytes(file, &range_bytes)?,
    };
    Ok(Share {
        ratio: ratio(length.saturating_sub(written), length),
        evidence: Evidence::Extents,
    })
}

fn data_bytes(file: &File, range_bytes: &Range<u64>) -> Result<u64, Errno> {
    let (mut at, mut found) = (range_bytes.start, 0);
    while at < range_bytes.end {
        let Some(data) = ioctl::next_data(file, at)? else {
            break;
        };
        let hole = ioctl::next_hole(file, data)?.unwrap_or(data);
        found += overlap_bytes(data..hole, range_bytes);
        if hole <= at {
            break;
        }
        at = hole;
    }
    Ok(found)
}

fn overlap_bytes(one: Range<u64>, other: &Range<u64>) -> u64 {
    one.end
        .min(other.end)
        .saturating_sub(one.start.max(other.start))
}

#[allow(clippy::cast_precision_loss)] // A share needs no 53 bits.
fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}

/// Looks at an opened file or block node: a file by its map, and where the file system has none, as a
/// device: by samples, until `given_up` is set.
///
/// # Errors
/// The errno of the first read that failed; `ECANCELED` when given up.
pub fn of_opened(
    file: File,
    range_bytes: Range<u64>,
    logical_block_bytes: u32,
    seed: u64,
    given_up: &AtomicBool,
) -> Result<Share, Errno> {
    let is_file = file.metadata().is_ok_and(|meta| meta.is_file());
    if is_file && let Ok(share) = of_file(&file, range_bytes.clone()) {
        return Ok(share);
    }
    let content = Stoppable {
        content: FileContent::new(file)?,
        given_up,
    };
    of_samples(
        &content,
        range_bytes,
        logical_block_bytes,
        seed,
        SAMPLES_COUNT,
    )
}

/// Content that nobody waits for any more once `given_up` is set.
struct Stoppable<'a> {
    content: FileContent,
    given_up: &'a AtomicBool,
}

impl ReadAt for Stoppable<'_> {
    fn size_bytes(&self) -> u64 {
        self.content.size_bytes()
    }

    fn read_at(&self, offset_bytes: u64, buffer: &mut [u8]) -> Result<(), Errno> {
        if self.given_up.load(Ordering::Relaxed) {
            return Err(Errno(libc::ECANCELED));
        }
        self.content.read_at(offset_bytes, buffer)
    }
}

/// Samples a device's range: one block at a random place in each of `samples_count` equal pieces, so that
/// the whole range is seen. The same seed looks at the same blocks. Costs one read per sample.
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
    let unit = sample_bytes(logical_block_bytes);
    let first = range_bytes.start.div_ceil(unit);
    let end = range_bytes.end.min(content.size_bytes()) / unit;
    let units = end.saturating_sub(first);
    let wanted = u64::from(samples_count).min(units);
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let len = usize::try_from(unit).map_err(|_| Errno(libc::EOVERFLOW))?;
    // Aligned, so that a node opened with O_DIRECT takes it.
    let mut room = vec![0; len + ALIGN_BYTES];
    let skip = room.as_ptr().align_offset(ALIGN_BYTES);
    let block = &mut room[skip..skip + len];
    let (mut zero_count, mut count) = (0, 0);
    for piece in 0..wanted {
        let start = scaled(units, piece, wanted);
        let width = scaled(units, piece + 1, wanted) - start;
        let at = first + start + scaled(width, random.next_u64() >> 1, 1 << 63);
        content.read_at(at * unit, block)?;
        zero_count += u32::from(block.iter().all(|byte| *byte == 0));
        count += 1;
    }
    let (low_ratio, high_ratio) = wilson(zero_count, count);
    let evidence = Evidence::Samples {
        zero_count,
        samples_count: count,
        low_ratio,
        high_ratio,
    };
    Ok(Share {
        ratio: ratio(u64::from(zero_count), u64::from(count)),
        evidence,
    })
}

/// Whole logical blocks, 4 KiB at least.
fn sample_bytes(logical_block_bytes: u32) -> u64 {
    SAMPLE_BYTES.next_multiple_of(u64::from(logical_block_bytes.max(1)))
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
    use std::os::unix::fs::FileExt;

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

    #[test]
    fn holes_of_a_file_are_its_share() {
        for folder in [std::env::temp_dir(), std::path::PathBuf::from(".")] {
            let file = tempfile::tempfile_in(folder).unwrap();
            file.set_len(4 * MIB).unwrap();
            if ioctl::next_data(&file, 0) != Ok(None) {
                continue; // A file system without holes.
            }
            assert_eq!(of_file(&file, 0..4 * MIB).unwrap().ratio, 1.0);
            file.write_all_at(&vec![1; MIB as usize], MIB).unwrap();
            assert_eq!(of_file(&file, 0..4 * MIB).unwrap().ratio, 0.75);
            assert_eq!(of_file(&file, MIB..3 * MIB).unwrap().ratio, 0.5);
            assert_eq!(of_file(&file, MIB..2 * MIB).unwrap().warning("f"), None);
            let past = of_file(&file, 3 * MIB..5 * MIB).unwrap();
            assert_eq!(past.ratio, 1.0, "past the end there is nothing");
        }
    }

    #[test]
    fn a_small_share_is_neither_none_nor_all() {
        assert_eq!(percent(0.000_01), "under 0.1 %");
        assert_eq!(percent(0.999_99), "over 99.9 %");
        assert_eq!(percent(0.25), "25.0 %");
    }
}

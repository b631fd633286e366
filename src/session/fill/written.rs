//! Never-written data: reads of it are answered without asking the medium, and look like its speed.

use super::samples::{Blank, SAMPLES_COUNT, of_samples};
use crate::errno::Errno;
use crate::record::Warning;
use crate::session::guard::content::{FileContent, ReadAt};
use crate::sys::ioctl;
use std::fs::File;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

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
        /// Samples that read as never written.
        blank_count: u32,
        /// Samples in all.
        samples_count: u32,
        /// How such blocks read.
        blank: Blank,
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
                blank_count,
                samples_count,
                blank,
                low_ratio,
                high_ratio,
            } => write!(
                f,
                " ({blank_count} of {samples_count} sampled blocks are {}; 95 % confidence: {:.1} to {:.1} %)",
                blank.name(),
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::cast_possible_truncation)]
    use super::*;
    use std::os::unix::fs::FileExt;

    const MIB: u64 = 1 << 20;

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

//! What the kernel has counted on a block device (`stat`; kernel, "Block layer statistics in /sys/block").

use super::{SysfsError, optional, read_bool, read_text};
use std::path::Path;

/// Figures of a file of the oldest kernels; newer ones add discards (4.18) and flushes (5.5).
const FIGURES_LEAST_COUNT: usize = 11;
/// The kernel counts in sectors of this size whatever the logical block is.
const SECTOR_BYTES: u64 = 512;

/// Reads and writes since the device appeared, of everybody.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BlockStat {
    /// Reads as they came to the block layer: those that completed, and those merged into others.
    pub reads_count: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Writes, likewise; a flush may count as one.
    pub writes_count: u64,
    /// Bytes written.
    pub written_bytes: u64,
}

impl BlockStat {
    /// Reads the counters of the block device with this folder.
    ///
    /// # Errors
    /// [`SysfsError`]; garbled where there are fewer figures than any kernel writes, or others than numbers.
    pub fn read(dir: &Path) -> Result<Self, SysfsError> {
        let path = dir.join("stat");
        let text = read_text(&path)?;
        let figures: Result<Vec<u64>, _> = text.split_whitespace().map(str::parse).collect();
        let figures = figures.ok().filter(|all| all.len() >= FIGURES_LEAST_COUNT);
        let [
            reads,
            read_merges,
            read_sectors,
            _,
            writes,
            write_merges,
            written_sectors,
            ..,
        ] = figures.as_deref().unwrap_or_default()
        else {
            return Err(SysfsError::garbled(
                &path,
                &text,
                "a line of 11 or more counters",
            ));
        };
        Ok(Self {
            reads_count: reads.wrapping_add(*read_merges),
            read_bytes: read_sectors.wrapping_mul(SECTOR_BYTES),
            writes_count: writes.wrapping_add(*write_merges),
            written_bytes: written_sectors.wrapping_mul(SECTOR_BYTES),
        })
    }

    /// What was added since `before`; `None` where a counter went backwards: another device has taken the name, or
    /// the counters have wrapped.
    #[must_use]
    pub fn since(&self, before: &Self) -> Option<Self> {
        Some(Self {
            reads_count: self.reads_count.checked_sub(before.reads_count)?,
            read_bytes: self.read_bytes.checked_sub(before.read_bytes)?,
            writes_count: self.writes_count.checked_sub(before.writes_count)?,
            written_bytes: self.written_bytes.checked_sub(before.written_bytes)?,
        })
    }
}

/// Whether the kernel counts on this disk at all (`queue/iostats`); `disk_dir` is that of a whole disk.
///
/// # Errors
/// [`SysfsError`] where it is garbled.
pub fn is_counted(disk_dir: &Path) -> Result<bool, SysfsError> {
    Ok(optional(read_bool(&disk_dir.join("queue/iostats")))?.unwrap_or(true))
}

/// Whether commands that pass the block layer by are counted too (`queue/iostats_passthrough`, Linux 6.13).
///
/// # Errors
/// [`SysfsError`] where it is garbled.
pub fn counts_passthrough(disk_dir: &Path) -> Result<bool, SysfsError> {
    let path = disk_dir.join("queue/iostats_passthrough");
    Ok(optional(read_bool(&path))?.unwrap_or(false))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Result<BlockStat, SysfsError> {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("stat"), text).unwrap();
        BlockStat::read(dir.path())
    }

    #[test]
    fn figures_stand_where_the_kernel_writes_them() {
        let new = "     100        7     2048       33      20        5      512       44        0       50       77        1        2        3        4        5        6\n";
        let old = new
            .split_whitespace()
            .take(11)
            .collect::<Vec<_>>()
            .join(" ");
        let wanted = BlockStat {
            reads_count: 107,
            read_bytes: 2048 * 512,
            writes_count: 25,
            written_bytes: 512 * 512,
        };
        assert_eq!((read(new), read(&old)), (Ok(wanted), Ok(wanted)));
    }

    #[test]
    fn missing_and_garbled_counters_are_errors() {
        let dir = tempfile::tempdir().unwrap();
        assert!(BlockStat::read(dir.path()).unwrap_err().is_absent());
        for text in [
            "",
            "1 2 3",
            "1 2 3 4 5 6 7 8 9 10",
            "1 2 3 4 5 6 7 8 9 10 x",
            "-1 2 3 4 5 6 7 8 9 10 11",
        ] {
            assert!(
                matches!(read(text), Err(SysfsError::Garbled { .. })),
                "{text}"
            );
        }
    }

    #[test]
    fn counters_that_went_back_tell_nothing() {
        let one = read("1 2 3 4 5 6 7 8 9 10 11").unwrap();
        let other = read("2 2 3 4 5 6 6 8 9 10 11").unwrap();
        assert_eq!(other.since(&one), None);
        assert_eq!(one.since(&one), Some(BlockStat::default()));
    }

    #[test]
    fn counting_may_be_switched_off() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(
            (is_counted(dir.path()), counts_passthrough(dir.path())),
            (Ok(true), Ok(false))
        );
        std::fs::create_dir(dir.path().join("queue")).unwrap();
        std::fs::write(dir.path().join("queue/iostats"), "0\n").unwrap();
        std::fs::write(dir.path().join("queue/iostats_passthrough"), "1\n").unwrap();
        assert_eq!(
            (is_counted(dir.path()), counts_passthrough(dir.path())),
            (Ok(false), Ok(true))
        );
        std::fs::write(dir.path().join("queue/iostats"), "on\n").unwrap();
        assert!(is_counted(dir.path()).is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_panic(text in "[0-9 -]{0,200}") {
            let _ = read(&text);
        }
    }
}

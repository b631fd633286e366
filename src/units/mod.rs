//! Quantities with their unit in the type. Conversions are checked; nothing here reads the system.

pub mod cpulist;
mod decimal;
pub mod duration;
pub mod size;

pub use cpulist::{CpuList, CpuListError, CpuListFault};
pub use duration::{DurationError, parse_duration};
pub use size::{SizeError, SizeSpec, parse_block_size, parse_size};

use std::fmt;

/// Bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(pub u64);

/// A number of logical blocks of one device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Blocks(pub u64);

/// Sectors of 512 bytes: the unit of sysfs `size`, whatever the device's logical block is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Sectors512(pub u64);

/// Nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Nanos(pub u64);

/// The size of one logical block in bytes. Never zero; not always a power of two (520, 528, 4160 exist).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockSize(u32);

impl BlockSize {
    /// A block size of `bytes`; `None` for zero.
    #[must_use]
    pub const fn new(bytes: u32) -> Option<Self> {
        if bytes == 0 { None } else { Some(Self(bytes)) }
    }

    /// The size in bytes.
    #[must_use]
    pub const fn bytes(self) -> u32 {
        self.0
    }

    /// How many whole blocks `bytes` is, or `None` where it is not a multiple of the block.
    #[must_use]
    pub const fn blocks_exact(self, bytes: Bytes) -> Option<Blocks> {
        let size = self.0 as u64;
        if bytes.0.is_multiple_of(size) {
            Some(Blocks(bytes.0 / size))
        } else {
            None
        }
    }

    /// How many whole blocks fit into `bytes`.
    #[must_use]
    pub const fn blocks_floor(self, bytes: Bytes) -> Blocks {
        Blocks(bytes.0 / self.0 as u64)
    }

    /// The bytes of `blocks` blocks, or `None` past 64 bits.
    #[must_use]
    pub const fn bytes_of(self, blocks: Blocks) -> Option<Bytes> {
        match blocks.0.checked_mul(self.0 as u64) {
            Some(bytes) => Some(Bytes(bytes)),
            None => None,
        }
    }
}

impl Sectors512 {
    /// The bytes of these sectors, or `None` past 64 bits.
    #[must_use]
    pub const fn bytes(self) -> Option<Bytes> {
        match self.0.checked_mul(512) {
            Some(bytes) => Some(Bytes(bytes)),
            None => None,
        }
    }
}

impl Nanos {
    /// Whole seconds as nanoseconds; saturates past 584 years.
    #[must_use]
    pub const fn from_s(seconds: u64) -> Self {
        Self(seconds.saturating_mul(1_000_000_000))
    }

    /// These nanoseconds in seconds.
    #[must_use]
    #[allow(clippy::cast_precision_loss)]
    pub fn as_s(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl fmt::Display for Bytes {
    /// The largest binary unit that divides the figure exactly: `4 KiB`, `1 MiB`, `4097 B`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(&str, u32); 5] =
            [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10), ("B", 0)];
        for (name, shift) in UNITS {
            if self.0 >> shift != 0 && self.0.trailing_zeros() >= shift {
                return write!(f, "{} {name}", self.0 >> shift);
            }
        }
        write!(f, "{} B", self.0)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn capacity_of_4kn_drives_is_not_off_by_eight() {
        let sectors = Sectors512(8 * 1000);
        let block = BlockSize::new(4096).unwrap();
        assert_eq!(
            block.blocks_exact(sectors.bytes().unwrap()),
            Some(Blocks(1000))
        );
    }

    #[test]
    fn block_sizes_that_are_no_power_of_two_divide_exactly() {
        let block = BlockSize::new(520).unwrap();
        assert_eq!(block.blocks_exact(Bytes(1040)), Some(Blocks(2)));
        assert_eq!(block.blocks_exact(Bytes(1024)), None);
        assert_eq!(block.bytes_of(Blocks(u64::MAX)), None);
    }

    #[test]
    fn bytes_are_shown_in_the_largest_exact_unit() {
        assert_eq!(Bytes(4096).to_string(), "4 KiB");
        assert_eq!(Bytes(4097).to_string(), "4097 B");
        assert_eq!(Bytes(0).to_string(), "0 B");
        assert_eq!(Bytes(3 << 40).to_string(), "3 TiB");
    }
}

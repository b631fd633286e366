//! What links can carry, and what bound a result. Pure arithmetic: no device, no file, no clock.
//!
//! - [`pcie`]: payload of a PCI Express link either way, from speed, width, encoding, payload sizes, headers.
//! - [`nvme`]: what an NVMe command puts on the wire beside its data, hence I/Os a second by block size.
//! - [`sas`], [`sata`]: the same for disks.
//! - [`shared`]: several devices behind common links; [`mix`]: reads and writes at once.
//! - [`verdict`]: the rules. They are documented in README.md of this folder, and nowhere else.
//!
//! A ceiling is an upper bound of payload. What is left out can only lower it: DLLPs (acknowledgements and flow
//! control, 8 bytes each), SKP ordered sets (at least [`pcie::SKP_LEAST_RATIO`] of the line), retries, credits.
//! Where a size is not known but assumed, the ceiling is a band from the least to the most favourable case.

pub mod datasheet;
pub mod evidence;
pub mod host;
pub mod mix;
pub mod nvme;
pub mod pcie;
pub mod plateau;
pub mod sas;
pub mod sata;
pub mod share;
pub mod shared;
pub mod verdict;

#[cfg(test)]
mod reference_tests;

use crate::record::{IopsBand, RateBand};

/// A rate that is known exactly.
#[must_use]
pub const fn exact(bytes_per_s: f64) -> RateBand {
    RateBand {
        low_bytes_per_s: bytes_per_s,
        high_bytes_per_s: bytes_per_s,
    }
}

/// The lower of two limits, end by end.
#[must_use]
pub const fn lesser(one: RateBand, other: RateBand) -> RateBand {
    RateBand {
        low_bytes_per_s: one.low_bytes_per_s.min(other.low_bytes_per_s),
        high_bytes_per_s: one.high_bytes_per_s.min(other.high_bytes_per_s),
    }
}

/// Both together.
#[must_use]
pub const fn sum(one: RateBand, other: RateBand) -> RateBand {
    RateBand {
        low_bytes_per_s: one.low_bytes_per_s + other.low_bytes_per_s,
        high_bytes_per_s: one.high_bytes_per_s + other.high_bytes_per_s,
    }
}

/// A band scaled.
#[must_use]
pub const fn times(band: RateBand, factor: f64) -> RateBand {
    RateBand {
        low_bytes_per_s: band.low_bytes_per_s * factor,
        high_bytes_per_s: band.high_bytes_per_s * factor,
    }
}

/// The rate of I/Os of one size at this data rate.
#[must_use]
#[allow(clippy::cast_precision_loss)] // I/Os are far below 2^53 bytes.
pub const fn iops_of(band: RateBand, block_bytes: u64) -> IopsBand {
    IopsBand {
        low_iops: band.low_bytes_per_s / block_bytes as f64,
        high_iops: band.high_bytes_per_s / block_bytes as f64,
    }
}

//! Payload of a SATA link: one direction at a time.
//!
//! Source: Serial ATA Revision 3: a Data FIS carries at most 2,048 double words behind a header of one (10.5);
//! SOF, CRC and EOF a double word each; two ALIGNs at least in every 256 double words (9.6); 8b/10b. The
//! handshake of each frame and the command's own FISes are left out: they can only lower the figure.

use super::exact;
use crate::record::RateBand;

const FIS_DATA_BYTES: f64 = 8192.0;
/// SOF, header, CRC, EOF.
const FIS_OVERHEAD_BYTES: f64 = 16.0;
/// Payload in a Data FIS of full size on the wire.
pub(super) const FRAME_RATIO: f64 = FIS_DATA_BYTES / (FIS_DATA_BYTES + FIS_OVERHEAD_BYTES);
const ALIGN_RATIO: f64 = 254.0 / 256.0;

/// A SATA link.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SataLink {
    /// Line rate: 1.5, 3 or 6.
    pub gbit_per_s: f64,
}

impl SataLink {
    /// Payload of reads and writes together.
    #[must_use]
    pub fn ceiling(&self) -> RateBand {
        let encoded = self.gbit_per_s * 1e9 / 8.0 * 0.8;
        exact(encoded * ALIGN_RATIO * FRAME_RATIO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computed apart: 150, 300 and 600 MB/s x 254/256 x 8192/8208.
    #[test]
    fn every_rate_has_its_payload() {
        for (gbit_per_s, wanted) in [
            (1.5, 148_538_011.70),
            (3.0, 297_076_023.39),
            (6.0, 594_152_046.78),
        ] {
            let got = SataLink { gbit_per_s }.ceiling().high_bytes_per_s;
            assert!((got - wanted).abs() < 1.0, "{gbit_per_s}: {got}");
        }
    }

    /// methods.md, 7: about 145,000 of 4 KiB; measured usable 270-280 MB/s at 3 Gbit/s and 514 at 6.
    #[test]
    fn the_articles_figures_lie_below() {
        let ceiling = |gbit_per_s| SataLink { gbit_per_s }.ceiling().high_bytes_per_s;
        let iops = ceiling(6.0) / 4096.0;
        assert!((iops - 145_000.0).abs() / 145_000.0 < 0.001, "{iops}");
        assert!(ceiling(3.0) > 280e6 && ceiling(6.0) > 514e6);
    }
}

//! Payload of SAS phys and wide ports.
//!
//! Sources: T10 SAS Protocol Layer SPL-3 and SPL-4 (SSP frames; rate tolerance: ALIGNs), SAS-4 (22.5 Gbit/s,
//! 128b/150b packets with forward error correction). Connections, credits and COMMAND, XFER_RDY and RESPONSE
//! frames are left out: they can only lower the figure.

use super::{exact, sata, times};
use crate::record::RateBand;

/// Data of the largest SSP DATA frame.
const FRAME_DATA_BYTES: f64 = 1024.0;
/// The frame on the wire: SOF 4, header 24, data, CRC 4, EOF 4.
const FRAME_BYTES: f64 = FRAME_DATA_BYTES + 36.0;
/// One ALIGN (or NOTIFY) double word in 2,048 keeps two clocks apart.
const ALIGN_RATIO: f64 = 2047.0 / 2048.0;

/// A phy, or several that make a wide port.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SasLink {
    /// Line rate of a phy: 1.5, 3, 6, 12 or 22.5.
    pub gbit_per_s: f64,
    /// Phys.
    pub phys_count: u32,
}

impl SasLink {
    /// What all phys carry one way after encoding.
    #[must_use]
    pub fn encoded_bytes_per_s(&self) -> f64 {
        let encoding = if self.gbit_per_s > 12.0 {
            128.0 / 150.0
        } else {
            8.0 / 10.0
        };
        self.gbit_per_s * 1e9 / 8.0 * encoding * f64::from(self.phys_count)
    }

    /// Payload of SSP, either way at once.
    #[must_use]
    pub fn ssp_ceiling(&self) -> RateBand {
        // The packets of 22.5 Gbit/s have no ALIGNs in them.
        let align = if self.gbit_per_s > 12.0 {
            1.0
        } else {
            ALIGN_RATIO
        };
        exact(self.encoded_bytes_per_s() * align * FRAME_DATA_BYTES / FRAME_BYTES)
    }

    /// Payload of SATA disks behind this link (STP): SATA's frames and half duplex for each connection, so one
    /// way at a time for each disk.
    #[must_use]
    pub fn stp_ceiling(&self) -> RateBand {
        let phy = sata::SataLink {
            gbit_per_s: self.gbit_per_s,
        };
        times(phy.ceiling(), f64::from(self.phys_count))
    }

    /// Payload where the devices behind the link are slower than it: a connection runs at the slowest rate on
    /// its way and holds a phy all the while, unless the expander buffers frames. So a band.
    #[must_use]
    pub fn behind(&self, slowest_gbit_per_s: f64, is_stp: bool) -> RateBand {
        let slow = Self {
            gbit_per_s: slowest_gbit_per_s.min(self.gbit_per_s),
            ..*self
        };
        let of = |link: &Self| {
            if is_stp {
                link.stp_ceiling()
            } else {
                link.ssp_ceiling()
            }
        };
        RateBand {
            low_bytes_per_s: of(&slow).low_bytes_per_s,
            high_bytes_per_s: of(self).high_bytes_per_s,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computed apart, with exact fractions: rate x 0.8 / 8 x 1024/1060 x 2047/2048, and for 22.5 Gbit/s
    /// 22.5e9 x 128/150 / 8 x 1024/1060.
    #[test]
    fn every_rate_has_its_payload() {
        for (gbit_per_s, wanted) in [
            (1.5, 144_834_905.66),
            (3.0, 289_669_811.32),
            (6.0, 579_339_622.64),
            (12.0, 1_158_679_245.28),
            (22.5, 2_318_490_566.04),
        ] {
            let link = SasLink {
                gbit_per_s,
                phys_count: 1,
            };
            let got = link.ssp_ceiling().high_bytes_per_s;
            assert!((got - wanted).abs() < 1.0, "{gbit_per_s}: {got}");
            let wide = SasLink {
                gbit_per_s,
                phys_count: 4,
            };
            assert!((wide.ssp_ceiling().high_bytes_per_s - 4.0 * wanted).abs() < 4.0);
        }
    }

    /// methods.md, 7: about 141,400 and 282,900 of 4 KiB each way.
    #[test]
    fn random_4_kib_is_what_the_articles_round() {
        for (gbit_per_s, wanted) in [(6.0, 141_400.0), (12.0, 282_900.0)] {
            let link = SasLink {
                gbit_per_s,
                phys_count: 1,
            };
            let iops = link.ssp_ceiling().high_bytes_per_s / 4096.0;
            assert!((iops - wanted).abs() / wanted < 0.001, "{iops}");
        }
    }

    #[test]
    fn slow_disks_behind_a_fast_port_make_a_band() {
        let port = SasLink {
            gbit_per_s: 12.0,
            phys_count: 4,
        };
        let band = port.behind(6.0, false);
        assert!((band.high_bytes_per_s / band.low_bytes_per_s - 2.0).abs() < 1e-9);
        let same = port.behind(12.0, false);
        assert_eq!(
            same.low_bytes_per_s.to_bits(),
            same.high_bytes_per_s.to_bits()
        );
        // A disk cannot be faster than its port.
        assert_eq!(port.behind(22.5, false), same);
        let stp = port.behind(3.0, true);
        let disk = sata::SataLink { gbit_per_s: 3.0 }.ceiling();
        assert!((stp.low_bytes_per_s - 4.0 * disk.low_bytes_per_s).abs() < 1e-3);
    }
}

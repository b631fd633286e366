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

/// From here on packets of 128b/150b, which have no ALIGNs in them; 8b/10b below.
const PACKETS_ABOVE_GBIT_PER_S: f64 = 12.0;
/// Line rates of a phy, Gbit/s.
const RATES_GBIT_PER_S: [f64; 5] = [1.5, 3.0, 6.0, 12.0, 22.5];

/// A phy, or several of one rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SasLink {
    /// Line rate of a phy: 1.5, 3, 6, 12 or 22.5.
    pub gbit_per_s: f64,
    /// Phys.
    pub phys_count: u32,
}

impl SasLink {
    fn has_packets(&self) -> bool {
        self.gbit_per_s > PACKETS_ABOVE_GBIT_PER_S
    }

    /// What all phys carry one way after encoding.
    #[must_use]
    pub fn encoded_bytes_per_s(&self) -> f64 {
        let encoding = if self.has_packets() {
            128.0 / 150.0
        } else {
            8.0 / 10.0
        };
        self.gbit_per_s * 1e9 / 8.0 * encoding * f64::from(self.phys_count)
    }

    /// Payload of SSP, either way at once.
    #[must_use]
    pub fn ssp_ceiling(&self) -> RateBand {
        let align = if self.has_packets() { 1.0 } else { ALIGN_RATIO };
        exact(self.encoded_bytes_per_s() * align * FRAME_DATA_BYTES / FRAME_BYTES)
    }

    /// Payload of SATA disks behind this link (STP): SATA's frames and half duplex for each connection, so one
    /// way at a time for each disk.
    #[must_use]
    pub fn stp_ceiling(&self) -> RateBand {
        if self.has_packets() {
            return exact(self.encoded_bytes_per_s() * sata::FRAME_RATIO);
        }
        let phy = sata::SataLink {
            gbit_per_s: self.gbit_per_s,
        };
        times(phy.ceiling(), f64::from(self.phys_count))
    }
}

/// A port: one phy or several, each at a rate of its own.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SasPort {
    /// How many run at each of the rates.
    phys_counts: [u32; RATES_GBIT_PER_S.len()],
}

impl SasPort {
    /// Of phys that run at these rates, Gbit/s.
    #[must_use]
    pub fn of(rates_gbit_per_s: &[f64]) -> Self {
        let count = |known: f64| {
            rates_gbit_per_s
                .iter()
                .filter(|rate| **rate == known)
                .count()
        };
        Self {
            phys_counts: RATES_GBIT_PER_S
                .map(|known| u32::try_from(count(known)).unwrap_or(u32::MAX)),
        }
    }

    /// Payload where the devices behind the port may be slower than it: a connection runs at the slowest rate on
    /// its way and holds a phy all the while, unless the expander buffers frames. So a band.
    #[must_use]
    pub fn behind(&self, slowest_gbit_per_s: f64, is_stp: bool) -> RateBand {
        let sum = |most_gbit_per_s: f64| -> f64 {
            let phys = RATES_GBIT_PER_S.iter().zip(self.phys_counts);
            phys.map(|(rate, phys_count)| {
                let link = SasLink {
                    gbit_per_s: rate.min(most_gbit_per_s),
                    phys_count,
                };
                let band = if is_stp {
                    link.stp_ceiling()
                } else {
                    link.ssp_ceiling()
                };
                band.high_bytes_per_s
            })
            .sum()
        };
        RateBand {
            low_bytes_per_s: sum(slowest_gbit_per_s),
            high_bytes_per_s: sum(f64::INFINITY),
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
        let port = SasPort::of(&[12.0; 4]);
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

    /// Computed apart: 22.5e9 x 128/150 / 8 x 8192/8208 for STP, and SSP's figures above for unlike phys.
    #[test]
    fn packets_carry_sata_too_and_unlike_phys_are_summed() {
        let is_near = |got: f64, wanted: f64| assert!((got - wanted).abs() < 1.0, "{got}");
        let fast = SasLink {
            gbit_per_s: 22.5,
            phys_count: 2,
        };
        is_near(fast.stp_ceiling().high_bytes_per_s, 2.0 * 2_395_321_637.43);
        let unlike = SasPort::of(&[22.5, 12.0]);
        let ssp = unlike.behind(12.0, false);
        is_near(ssp.high_bytes_per_s, 2_318_490_566.04 + 1_158_679_245.28);
        is_near(ssp.low_bytes_per_s, 2.0 * 1_158_679_245.28);
        let below = SasPort::of(&[12.0, 6.0, 1.5]).behind(6.0, false);
        is_near(
            below.high_bytes_per_s,
            1_158_679_245.28 + 579_339_622.64 + 144_834_905.66,
        );
        is_near(below.low_bytes_per_s, 2.0 * 579_339_622.64 + 144_834_905.66);
    }
}

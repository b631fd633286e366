//! Payload of a PCI Express link.
//!
//! Sources: PCI Express Base Specification 5.0 and 6.0: encodings (physical layer, chapter 4), TLP headers
//! (2.2), sequence number and LCRC (chapter 3), framing symbols and tokens (4.2.1, 4.2.2), Flit Mode (4.2.3).

use super::exact;
use crate::record::RateBand;

/// Share of the line that SKP ordered sets take at least. 8b/10b: four symbols no more often than every 1,538
/// (4.2.7.4); 128b/130b: a block in at most 375. The lesser of the two; no ceiling here contains it.
pub const SKP_LEAST_RATIO: f64 = 4.0 / 1542.0;

/// Bytes around a TLP: start and end symbols (or the 4-byte STP token), sequence number, LCRC.
/// 8b/10b: 1 + 2 + 4 + 1; 128b/130b: 4 + 4. In Flit Mode the flit carries all of that.
const FRAMING_BYTES: u32 = 8;
/// Header of a memory request with a 64-bit address: four double words.
const REQUEST_HEADER_BYTES: u32 = 16;
/// A header for a 32-bit address is shorter by a double word.
const SHORTER_BY_BYTES: u32 = 4;
/// Header of a completion: three double words, in Flit Mode too (base header, without OHC).
const COMPLETION_HEADER_BYTES: u32 = 12;
/// A flit: 236 of its 256 bytes carry TLPs; 6 are for DLLPs, 8 CRC, 6 ECC.
const FLIT_RATIO: f64 = 236.0 / 256.0;

/// Max_Payload_Size where configuration space is closed: what firmware and kernel set in the field.
pub const ASSUMED_MPS_BYTES: (u32, u32) = (128, 512);
/// Max_Read_Request_Size likewise; 512 is the default of the register, 4,096 its largest.
pub const ASSUMED_MRRS_BYTES: (u32, u32) = (128, 4096);
/// The smallest Read Completion Boundary: a root complex may cut completions down to it.
pub const LEAST_COMPLETION_BYTES: u32 = 64;

/// A link as it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PcieLink {
    /// Transfers per second of a lane, in millions: 8000 for 8 GT/s.
    pub mega_transfers_per_s: u32,
    /// Lanes in use.
    pub lanes_count: u32,
    /// Runs in Flit Mode; always so at 64 GT/s.
    pub is_flit: bool,
}

/// The sizes that packets are cut to; two numbers where they are assumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacketSizes {
    /// Payload of the device's writes to memory: least, most.
    pub payload_bytes: (u32, u32),
    /// Payload of completions that bring data to the device: least, most.
    pub completion_bytes: (u32, u32),
    /// Size of the device's read requests: least, most.
    pub request_bytes: (u32, u32),
}

impl PacketSizes {
    /// From what configuration space says, where it can be read. Completions are cut by the root complex: from
    /// its read completion boundary up to the payload size.
    #[must_use]
    pub fn new(
        mps_bytes: Option<u32>,
        mrrs_bytes: Option<u32>,
        completion_boundary_bytes: Option<u32>,
    ) -> Self {
        let payload = mps_bytes.map_or(ASSUMED_MPS_BYTES, |bytes| (bytes, bytes));
        let request = mrrs_bytes.map_or(ASSUMED_MRRS_BYTES, |bytes| (bytes, bytes));
        let boundary = completion_boundary_bytes.unwrap_or(LEAST_COMPLETION_BYTES);
        let most = payload.1.min(request.1);
        Self {
            payload_bytes: payload,
            completion_bytes: (boundary.min(most), most),
            request_bytes: request,
        }
    }
}

impl PcieLink {
    /// What is left of the line rate for packets, one way.
    #[must_use]
    pub fn packet_bytes_per_s(&self) -> f64 {
        let raw_bits = f64::from(self.mega_transfers_per_s) * 1e6 * f64::from(self.lanes_count);
        let encoding = match self.mega_transfers_per_s {
            0..=5_000 => 8.0 / 10.0,
            5_001..=32_000 => 128.0 / 130.0,
            // 1b/1b with PAM4.
            _ => 1.0,
        };
        let flit = if self.flit() { FLIT_RATIO } else { 1.0 };
        raw_bits / 8.0 * encoding * flit
    }

    /// Bytes that a memory request needs beside its payload: a write of the device, or a read request.
    #[must_use]
    pub fn request_overhead_bytes(&self) -> u32 {
        REQUEST_HEADER_BYTES + self.framing_bytes()
    }

    /// Bytes that a completion needs beside its payload.
    #[must_use]
    pub fn completion_overhead_bytes(&self) -> u32 {
        COMPLETION_HEADER_BYTES + self.framing_bytes()
    }

    /// Payload toward the host: MPS / (MPS + 24), without per-packet framing in Flit Mode.
    #[must_use]
    pub fn read_ceiling(&self, sizes: &PacketSizes) -> RateBand {
        self.band(sizes.payload_bytes, self.request_overhead_bytes())
    }

    /// Payload toward the device: C / (C + 20) for completions of C bytes.
    #[must_use]
    pub fn write_ceiling(&self, sizes: &PacketSizes) -> RateBand {
        self.band(sizes.completion_bytes, self.completion_overhead_bytes())
    }

    /// How much more the device's writes carry at most with addresses below 4 GiB, which take a header of three double
    /// words (2.2.4.1): kernels hand such addresses to devices first where an IOMMU translates them.
    #[must_use]
    pub fn short_header_ratio(&self, sizes: &PacketSizes) -> f64 {
        let long = sizes.payload_bytes.1 + self.request_overhead_bytes();
        f64::from(long) / f64::from(long - SHORTER_BY_BYTES)
    }

    fn band(&self, (least, most): (u32, u32), overhead_bytes: u32) -> RateBand {
        let rate = |payload: u32| {
            let wire = payload + overhead_bytes;
            self.packet_bytes_per_s() * f64::from(payload) / f64::from(wire)
        };
        RateBand {
            low_bytes_per_s: rate(least),
            high_bytes_per_s: rate(most),
        }
    }

    /// What the line carries after its encoding, as the articles round it.
    #[must_use]
    pub fn encoded(&self) -> RateBand {
        exact(self.packet_bytes_per_s())
    }

    const fn flit(&self) -> bool {
        self.is_flit || self.mega_transfers_per_s > 32_000
    }

    const fn framing_bytes(&self) -> u32 {
        if self.flit() { 0 } else { FRAMING_BYTES }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_sizes_make_a_band_and_known_ones_do_not() {
        let link = PcieLink {
            mega_transfers_per_s: 8_000,
            lanes_count: 4,
            is_flit: false,
        };
        let known = PacketSizes::new(Some(256), Some(512), Some(64));
        let read = link.read_ceiling(&known);
        assert_eq!(
            read.low_bytes_per_s.to_bits(),
            read.high_bytes_per_s.to_bits()
        );
        let open = link.read_ceiling(&PacketSizes::new(None, None, None));
        assert!(open.low_bytes_per_s < read.low_bytes_per_s);
        assert!(open.high_bytes_per_s > read.high_bytes_per_s);
        // A completion is never larger than the request that asked for it.
        assert_eq!(
            PacketSizes::new(Some(512), Some(128), None).completion_bytes,
            (64, 128)
        );
        // Nor is the boundary larger than the completion.
        assert_eq!(
            PacketSizes::new(Some(128), Some(128), Some(128)).completion_bytes,
            (128, 128)
        );
    }

    #[test]
    fn flit_mode_below_64_gt_is_taken_when_told() {
        let link = |is_flit| PcieLink {
            mega_transfers_per_s: 32_000,
            lanes_count: 1,
            is_flit,
        };
        let ratio = link(true).packet_bytes_per_s() / link(false).packet_bytes_per_s();
        assert!((ratio - 0.921_875).abs() < 1e-9);
        assert_eq!(link(true).request_overhead_bytes(), 16);
    }
}

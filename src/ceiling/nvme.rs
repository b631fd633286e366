//! What NVMe puts on the wire beside the data.
//!
//! Sources: NVM Express Base Specification 2.0: a submission queue entry has 64 bytes, a completion queue entry
//! 16 (4.1, 4.2), PRP entries 8 bytes for a page each, a list from the third page on (4.1.1), doorbells 4
//! (3.1); an MSI-X message is a write of 4 bytes (PCI 3.0, 6.8.2). Headers as in [`super::pcie`].

use super::pcie::{PacketSizes, PcieLink};
use crate::record::IopsBand;

const SQE_BYTES: u32 = 64;
const CQE_BYTES: u32 = 16;
const DOORBELL_BYTES: u32 = 4;
const MESSAGE_BYTES: u32 = 4;
const PRP_ENTRY_BYTES: u32 = 8;
/// The page of PRPs as all drivers set it up (CC.MPS 0).
const PAGE_BYTES: u64 = 4096;
/// Pages that the command itself points at.
const OWN_POINTERS_COUNT: u64 = 2;

/// What one command, or a weighted mean of several kinds, moves either way.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct WireCost {
    /// Toward the host.
    pub up_bytes: f64,
    /// Toward the device.
    pub down_bytes: f64,
}

impl WireCost {
    /// A share of this and the rest of another.
    #[must_use]
    pub fn mixed(self, share_ratio: f64, other: Self) -> Self {
        let mix = |one: f64, two: f64| one * share_ratio + two * (1.0 - share_ratio);
        Self {
            up_bytes: mix(self.up_bytes, other.up_bytes),
            down_bytes: mix(self.down_bytes, other.down_bytes),
        }
    }
}

/// The least and the most that a command can cost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CostBand {
    /// Entries fetched many at a time, doorbells and interrupts for many, no PRP list (scatter-gather list).
    pub least: WireCost,
    /// Every entry, doorbell, PRP list and interrupt by itself, packets of the smallest size.
    pub most: WireCost,
}

/// The cost of a read of `block_bytes`. Polled completions need no MSI-X message.
#[must_use]
pub fn read_cost(
    link: &PcieLink,
    sizes: &PacketSizes,
    block_bytes: u64,
    is_polled: bool,
) -> CostBand {
    let mut band = command_cost(link, sizes, block_bytes, is_polled);
    let overhead = link.request_overhead_bytes();
    band.least.up_bytes += packets(block_bytes, sizes.payload_bytes.1, overhead);
    band.most.up_bytes += packets(block_bytes, sizes.payload_bytes.0, overhead);
    band
}

/// The cost of a write of `block_bytes`: the device asks for the data, and completions bring it.
#[must_use]
pub fn write_cost(
    link: &PcieLink,
    sizes: &PacketSizes,
    block_bytes: u64,
    is_polled: bool,
) -> CostBand {
    let mut band = command_cost(link, sizes, block_bytes, is_polled);
    let (request, completion) = (
        link.request_overhead_bytes(),
        link.completion_overhead_bytes(),
    );
    band.least.up_bytes += requests(block_bytes, sizes.request_bytes.1, request);
    band.most.up_bytes += requests(block_bytes, sizes.request_bytes.0, request);
    band.least.down_bytes += packets(block_bytes, sizes.completion_bytes.1, completion);
    band.most.down_bytes += packets(block_bytes, sizes.completion_bytes.0, completion);
    band
}

/// I/Os a second that the link allows at this cost: the way that is full first decides.
#[must_use]
pub fn iops(link: &PcieLink, cost: &CostBand) -> IopsBand {
    let rate = |cost: WireCost| {
        let busiest = cost.up_bytes.max(cost.down_bytes);
        link.packet_bytes_per_s() / busiest
    };
    IopsBand {
        low_iops: rate(cost.most),
        high_iops: rate(cost.least),
    }
}

/// Everything but the data.
fn command_cost(
    link: &PcieLink,
    sizes: &PacketSizes,
    block_bytes: u64,
    is_polled: bool,
) -> CostBand {
    let request = f64::from(link.request_overhead_bytes());
    let completion = f64::from(link.completion_overhead_bytes());
    let write = |bytes: u32| f64::from(bytes) + request;
    let (sqe, cqe) = (f64::from(SQE_BYTES), f64::from(CQE_BYTES));
    // Fetched as many at once as a request asks for and a completion carries; entries written as a packet's worth.
    let per_request = f64::from(sizes.request_bytes.1.max(SQE_BYTES)) / sqe;
    let per_completion = f64::from(sizes.completion_bytes.1.max(SQE_BYTES)) / sqe;
    let per_write = f64::from(sizes.payload_bytes.1) / cqe;
    let least = WireCost {
        up_bytes: request / per_request + cqe + request / per_write,
        down_bytes: sqe + completion / per_completion,
    };
    let mut most = WireCost {
        up_bytes: request + write(CQE_BYTES),
        // A doorbell of the submission queue, one of the completion queue: writes of the host.
        down_bytes: sqe + completion + 2.0 * write(DOORBELL_BYTES),
    };
    if !is_polled {
        most.up_bytes += write(MESSAGE_BYTES);
    }
    let pages = block_bytes.div_ceil(PAGE_BYTES);
    if pages > OWN_POINTERS_COUNT {
        let list_bytes = (pages - 1) * u64::from(PRP_ENTRY_BYTES);
        most.up_bytes += requests(
            list_bytes,
            sizes.request_bytes.0,
            link.request_overhead_bytes(),
        );
        let overhead = link.completion_overhead_bytes();
        most.down_bytes += packets(list_bytes, sizes.completion_bytes.0, overhead);
    }
    CostBand { least, most }
}

/// Payload and headers of so many bytes, cut to packets.
#[allow(clippy::cast_precision_loss)] // Blocks are far below 2^53 bytes.
fn packets(bytes: u64, packet_bytes: u32, overhead_bytes: u32) -> f64 {
    bytes as f64 + requests(bytes, packet_bytes, overhead_bytes)
}

/// Headers of the requests for so many bytes.
#[allow(clippy::cast_precision_loss)]
fn requests(bytes: u64, request_bytes: u32, overhead_bytes: u32) -> f64 {
    bytes.div_ceil(u64::from(request_bytes)) as f64 * f64::from(overhead_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GEN3_X4: PcieLink = PcieLink {
        mega_transfers_per_s: 8_000,
        lanes_count: 4,
        is_flit: false,
    };

    fn sizes() -> PacketSizes {
        PacketSizes::new(Some(256), Some(512), Some(64))
    }

    /// By hand, 4 KiB, MPS 256, MRRS 512, RCB 64, with interrupts:
    /// worst up = data 4096 + 16 packets x 24 = 4480; SQE request 24; CQE 16 + 24; MSI-X 4 + 24: 4572.
    /// best up = 4480; request shared by 8: 3; CQE 16 + 24 / 16 = 17.5: 4500.5.
    /// worst down = SQE 64 + 20, two doorbells of 28: 140.
    #[test]
    fn a_read_of_4_kib_costs_what_is_counted_by_hand() {
        let cost = read_cost(&GEN3_X4, &sizes(), 4096, false);
        assert!((cost.most.up_bytes - 4572.0).abs() < 1e-9, "{cost:?}");
        assert!((cost.least.up_bytes - 4500.5).abs() < 1e-9, "{cost:?}");
        assert!((cost.most.down_bytes - 140.0).abs() < 1e-9, "{cost:?}");
        let polled = read_cost(&GEN3_X4, &sizes(), 4096, true);
        assert!((polled.most.up_bytes - 4544.0).abs() < 1e-9, "{polled:?}");
        let iops = iops(&GEN3_X4, &cost);
        // 4 x 8e9 x 128/130 / 8 = 3,938,461,538 B/s.
        assert!((iops.low_iops - 3_938_461_538.46 / 4572.0).abs() < 0.1);
        assert!((iops.high_iops - 3_938_461_538.46 / 4500.5).abs() < 0.1);
    }

    /// worst down = 4096 + 64 packets x 20 = 5376, SQE 84, doorbells 56: 5516; best: 4096 + 16 x 20 = 4416,
    /// SQE 64 + 20 / 4 = 69: 4485.
    #[test]
    fn a_write_of_4_kib_costs_what_is_counted_by_hand() {
        let cost = write_cost(&GEN3_X4, &sizes(), 4096, false);
        assert!((cost.most.down_bytes - 5516.0).abs() < 1e-9, "{cost:?}");
        assert!((cost.least.down_bytes - 4485.0).abs() < 1e-9, "{cost:?}");
        // 8 requests of 512 bytes, the SQE request, the CQE, the message.
        let wanted = 8.0 * 24.0 + 24.0 + 40.0 + 28.0;
        assert!((cost.most.up_bytes - wanted).abs() < 1e-9, "{cost:?}");
    }

    /// 128 KiB are 32 pages: a list of 31 entries, 248 bytes in four completions of 64 at worst.
    #[test]
    fn a_prp_list_is_fetched_from_the_third_page_on() {
        let at = |block_bytes| read_cost(&GEN3_X4, &sizes(), block_bytes, true).most;
        let list = 248.0 + 4.0 * 20.0;
        assert!((at(131_072).down_bytes - (140.0 + list)).abs() < 1e-9);
        assert!((at(8_192).down_bytes - 140.0).abs() < 1e-9);
        assert!((at(12_288).down_bytes - (140.0 + 16.0 + 20.0)).abs() < 1e-9);
    }

    #[test]
    fn small_blocks_are_dear_and_large_ones_near_the_payload_ceiling() {
        let at = |block_bytes| {
            #[allow(clippy::cast_precision_loss)]
            let bytes = block_bytes as f64;
            iops(&GEN3_X4, &read_cost(&GEN3_X4, &sizes(), block_bytes, false)).low_iops * bytes
        };
        let ceiling = GEN3_X4.read_ceiling(&sizes()).low_bytes_per_s;
        assert!(at(512) < 0.9 * ceiling && at(1 << 20) > 0.999 * ceiling);
        assert!(at(1 << 20) < ceiling);
    }
}

//! Reference values of PCIe payload, Gen1 to Gen6, x1 to x16, MPS 128, 256, 512.
//!
//! How they came about: with exact fractions in another language, apart from this code, from the definitions
//! alone, in MB/s (10^6), rounded to a tenth:
//!
//! ```text
//! from fractions import Fraction as F
//! for gt, e in ((F(5,2),F(4,5)),(5,F(4,5)),(8,F(64,65)),(16,F(64,65)),(32,F(64,65)),(64,F(59,64))):
//!     for x in (1, 2, 4, 8, 16):
//!         line = gt * 1000 * e * x / 8                           # MB/s after encoding, or in flits
//!         h, c = (16, 12) if gt == 64 else (24, 20)
//!         print([round(float(line * p / (p + h)), 1) for p in (128, 256, 512)],
//!               [round(float(line * p / (p + c)), 1) for p in (128, 256, 512)])
//! ```

use super::pcie::{PacketSizes, PcieLink, SKP_LEAST_RATIO};

/// Generation, lanes; writes of the device at MPS 128, 256, 512; completions of the same sizes. MB/s.
type Row = (u32, u32, [f64; 3], [f64; 3]);

#[rustfmt::skip]
const TABLE: [Row; 30] = [
    (2_500, 1, [210.5, 228.6, 238.8], [216.2, 231.9, 240.6]),
    (2_500, 2, [421.1, 457.1, 477.6], [432.4, 463.8, 481.2]),
    (2_500, 4, [842.1, 914.3, 955.2], [864.9, 927.5, 962.4]),
    (2_500, 8, [1_684.2, 1_828.6, 1_910.4], [1_729.7, 1_855.1, 1_924.8]),
    (2_500, 16, [3_368.4, 3_657.1, 3_820.9], [3_459.5, 3_710.1, 3_849.6]),
    (5_000, 1, [421.1, 457.1, 477.6], [432.4, 463.8, 481.2]),
    (5_000, 2, [842.1, 914.3, 955.2], [864.9, 927.5, 962.4]),
    (5_000, 4, [1_684.2, 1_828.6, 1_910.4], [1_729.7, 1_855.1, 1_924.8]),
    (5_000, 8, [3_368.4, 3_657.1, 3_820.9], [3_459.5, 3_710.1, 3_849.6]),
    (5_000, 16, [6_736.8, 7_314.3, 7_641.8], [6_918.9, 7_420.3, 7_699.2]),
    (8_000, 1, [829.1, 900.2, 940.5], [851.6, 913.3, 947.6]),
    (8_000, 2, [1_658.3, 1_800.4, 1_881.1], [1_703.1, 1_826.5, 1_895.2]),
    (8_000, 4, [3_316.6, 3_600.9, 3_762.1], [3_406.2, 3_653.1, 3_790.4]),
    (8_000, 8, [6_633.2, 7_201.8, 7_524.2], [6_812.5, 7_306.1, 7_580.8]),
    (8_000, 16, [13_266.4, 14_403.5, 15_048.5], [13_624.9, 14_612.3, 15_161.6]),
    (16_000, 1, [1_658.3, 1_800.4, 1_881.1], [1_703.1, 1_826.5, 1_895.2]),
    (16_000, 2, [3_316.6, 3_600.9, 3_762.1], [3_406.2, 3_653.1, 3_790.4]),
    (16_000, 4, [6_633.2, 7_201.8, 7_524.2], [6_812.5, 7_306.1, 7_580.8]),
    (16_000, 8, [13_266.4, 14_403.5, 15_048.5], [13_624.9, 14_612.3, 15_161.6]),
    (16_000, 16, [26_532.8, 28_807.0, 30_096.9], [27_249.9, 29_224.5, 30_323.2]),
    (32_000, 1, [3_316.6, 3_600.9, 3_762.1], [3_406.2, 3_653.1, 3_790.4]),
    (32_000, 2, [6_633.2, 7_201.8, 7_524.2], [6_812.5, 7_306.1, 7_580.8]),
    (32_000, 4, [13_266.4, 14_403.5, 15_048.5], [13_624.9, 14_612.3, 15_161.6]),
    (32_000, 8, [26_532.8, 28_807.0, 30_096.9], [27_249.9, 29_224.5, 30_323.2]),
    (32_000, 16, [53_065.6, 57_614.1, 60_193.8], [54_499.8, 58_449.1, 60_646.4]),
    (64_000, 1, [6_555.6, 6_941.2, 7_151.5], [6_742.9, 7_044.8, 7_206.1]),
    (64_000, 2, [13_111.1, 13_882.4, 14_303.0], [13_485.7, 14_089.6, 14_412.2]),
    (64_000, 4, [26_222.2, 27_764.7, 28_606.1], [26_971.4, 28_179.1, 28_824.4]),
    (64_000, 8, [52_444.4, 55_529.4, 57_212.1], [53_942.9, 56_358.2, 57_648.9]),
    (64_000, 16, [104_888.9, 111_058.8, 114_424.2], [107_885.7, 112_716.4, 115_297.7]),
];

fn link(mega_transfers_per_s: u32, lanes_count: u32) -> PcieLink {
    PcieLink {
        mega_transfers_per_s,
        lanes_count,
        is_flit: false,
    }
}

#[test]
fn every_generation_width_and_payload_has_its_ceiling() {
    assert_eq!(TABLE.len(), 6 * 5);
    for &(mega_transfers_per_s, lanes_count, reads, writes) in &TABLE {
        let link = link(mega_transfers_per_s, lanes_count);
        for (index, mps_bytes) in [128, 256, 512].into_iter().enumerate() {
            let sizes = PacketSizes::new(Some(mps_bytes), Some(512), None);
            for (name, got, wanted) in [
                ("read", link.read_ceiling(&sizes), reads[index]),
                ("write", link.write_ceiling(&sizes), writes[index]),
            ] {
                let got = got.high_bytes_per_s / 1e6;
                assert!(
                    (got - wanted).abs() <= 0.0501,
                    "{mega_transfers_per_s} x{lanes_count} MPS {mps_bytes} {name}: {got}, {wanted} wanted"
                );
            }
        }
    }
}

/// methods.md, 7: after line encoding, x4 / x8 / x16, as the articles round.
#[test]
fn the_articles_figures_agree_after_rounding() {
    for (mega_transfers_per_s, gb_per_s) in [
        (2_500, [1.0, 2.0, 4.0]),
        (5_000, [2.0, 4.0, 8.0]),
        (8_000, [3.94, 7.88, 15.8]),
        (16_000, [7.88, 15.75, 31.5]),
        (32_000, [15.75, 31.5, 63.0]),
    ] {
        for (lanes_count, wanted) in [4, 8, 16].into_iter().zip(gb_per_s) {
            let got = link(mega_transfers_per_s, lanes_count)
                .encoded()
                .high_bytes_per_s
                / 1e9;
            assert!((got - wanted).abs() / wanted < 0.005, "{got}, {wanted}");
        }
    }
    let lane = link(8_000, 1).encoded().high_bytes_per_s / 1e6;
    assert!((lane - 985.0).abs() < 0.5, "{lane}");
}

/// methods.md, 7: an Intel P3700 in a PCIe 2.0 x4 slot.
#[test]
fn the_p3700_case_is_1684_and_1829_mb_per_s() {
    let at = |mps_bytes| {
        let sizes = PacketSizes::new(Some(mps_bytes), Some(512), None);
        link(5_000, 4).read_ceiling(&sizes).high_bytes_per_s / 1e9
    };
    assert!((at(128) - 1.684).abs() < 0.0005, "{}", at(128));
    assert!((at(256) - 1.829).abs() < 0.0005, "{}", at(256));
    let share = |mps_bytes| (1.469 / at(mps_bytes) * 100.0).round();
    assert_eq!((share(128), share(256)), (87.0, 80.0));
}

/// The stated least cost of SKP ordered sets is below both encodings' own.
#[test]
fn the_least_share_of_skp_is_a_lower_bound() {
    let old = 4.0 / (1538.0 + 4.0);
    let new = 1.0 / 376.0;
    for other in [old, new] {
        assert!(other - SKP_LEAST_RATIO >= 0.0, "{other}");
    }
}

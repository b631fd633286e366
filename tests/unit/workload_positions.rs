//! Where random I/Os go: every place that fits, in the frequencies of the distribution.

use crate::statistics::{chi_square, chi_square_limit};
use crate::workload_common::{random, random_reads};
use lanemark::workload::{Distribution, Generator, Region, SizeShare, StreamSpec, Zone};
use std::collections::HashMap;

/// Blocks of 512 bytes in 8 TiB: above 2^32.
const EIGHT_TIB: u64 = 8 << 40 >> 9;

fn cells_of(spec: &StreamSpec, ios: usize, cells: usize) -> Vec<u64> {
    let mut counts = vec![0; cells];
    for io in Generator::new(spec).take(ios) {
        let offset = u128::from(io.lba - spec.region.first_lba);
        counts[(offset * cells as u128 / u128::from(spec.region.blocks)) as usize] += 1;
    }
    counts
}

/// How often each start came.
fn tally(spec: &StreamSpec, ios: usize) -> HashMap<u64, u64> {
    let mut counts = HashMap::new();
    for io in Generator::new(spec).take(ios) {
        *counts.entry(io.lba).or_default() += 1;
    }
    counts
}

#[test]
fn uniform_over_small_and_huge_regions() {
    // The last three: 3/4 of a power of two (modulo's worst), 8 TiB, 2^64 bytes.
    for blocks in [1000, 3 << 40, EIGHT_TIB, 1 << 55] {
        let counts = cells_of(&random_reads(blocks, 1), 1_000_000, 1000);
        let chi = chi_square(&counts);
        assert!(chi < chi_square_limit(1000), "{blocks} blocks: {chi}");
        // And not suspiciously even: a mere cycle through the cells would have 0.
        assert!(chi > 800.0, "{blocks} blocks: {chi}");
    }
}

#[test]
fn blocks_above_32_bits_are_reached() {
    let spec = random_reads(EIGHT_TIB, 8);
    let above = Generator::new(&spec)
        .take(100_000)
        .filter(|io| io.lba > 1 << 32);
    let share = above.count() as f64 / 100_000.0;
    assert!((share - 0.75).abs() < 0.007, "{share}");
}

/// The low bits of an offset are as random as the high ones.
#[test]
fn neighbouring_places_are_alike() {
    let spec = random_reads(EIGHT_TIB, 8);
    let mut counts = vec![0; 64];
    for io in Generator::new(&spec).take(100_000) {
        counts[(io.lba / 8 % 64) as usize] += 1;
    }
    assert!(chi_square(&counts) < chi_square_limit(64));
}

/// Region 103, alignment 4, requests of 8: starts 0, 4, … 92; 96 would end at 104. All 24 come alike.
#[test]
fn an_unaligned_tail_is_used_as_far_as_it_fits() {
    let spec = StreamSpec {
        align_blocks: 4,
        region: Region {
            first_lba: 5,
            blocks: 103,
        },
        ..random_reads(0, 8)
    };
    let counts = tally(&spec, 240_000);
    assert_eq!(counts.len(), 24);
    assert_eq!(counts.keys().max(), Some(&97));
    assert!(counts.keys().all(|lba| (lba - 5) % 4 == 0));
    let counts: Vec<u64> = counts.into_values().collect();
    assert!(chi_square(&counts) < chi_square_limit(24));
}

/// The popular places of a Zipf stream, sorted, have the frequencies of the theory.
#[test]
fn zipf_ranks_lie_somewhere_in_the_region() {
    let spec = StreamSpec {
        access: random(Distribution::Zipf(1.1), 100.0),
        ..random_reads(8000, 8)
    };
    let ios = 500_000;
    let counts = tally(&spec, ios);
    let mut popular: Vec<(u64, u64)> = counts.into_iter().collect();
    popular.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
    let weight = |rank: f64| rank.powf(-1.1);
    let sum: f64 = (1..=1000).map(|rank| weight(f64::from(rank))).sum();
    for (rank, &(_, count)) in popular.iter().take(8).enumerate() {
        let expected = weight(rank as f64 + 1.0) / sum * ios as f64;
        let error = (count as f64 - expected).abs();
        assert!(
            error < 4.5 * expected.sqrt(),
            "rank {rank}: {count}, {expected}"
        );
    }
    let tenths = popular.iter().take(50).map(|(lba, _)| lba / 800);
    let distinct: std::collections::HashSet<u64> = tenths.collect();
    assert!(distinct.len() >= 8, "hot spots are spread: {distinct:?}");
}

#[test]
fn hot_spots_depend_on_the_seed_and_are_shared_by_sizes() {
    let hottest = |seed, blocks| {
        let spec = StreamSpec {
            access: random(Distribution::Pareto(0.1), 100.0),
            sizes: [1_u32, 8]
                .into_iter()
                .map(|blocks| SizeShare {
                    blocks,
                    share_pct: 50.0,
                })
                .collect(),
            seed,
            align_blocks: 8,
            ..random_reads(1 << 20, 8)
        };
        let mut counts: HashMap<u64, u64> = HashMap::new();
        for io in Generator::new(&spec).take(100_000) {
            if io.blocks == blocks {
                *counts.entry(io.lba).or_default() += 1;
            }
        }
        counts
            .into_iter()
            .max_by_key(|&(_, count)| count)
            .unwrap()
            .0
    };
    assert_eq!(hottest(1, 1), hottest(1, 8));
    assert_ne!(hottest(1, 8), hottest(2, 8));
}

#[test]
fn normal_is_centred_and_as_wide_as_asked() {
    let spec = StreamSpec {
        access: random(Distribution::Normal(10.0), 100.0),
        region: Region {
            first_lba: 1 << 20,
            blocks: 1 << 40,
        },
        ..random_reads(0, 8)
    };
    let places: Vec<f64> = Generator::new(&spec)
        .take(200_000)
        .map(|io| (io.lba - (1 << 20)) as f64 / (1_u64 << 40) as f64)
        .collect();
    let mean = places.iter().sum::<f64>() / places.len() as f64;
    let square = places.iter().map(|x| (x - 0.5).powi(2)).sum::<f64>() / places.len() as f64;
    assert!((mean - 0.5).abs() < 0.0012, "{mean}");
    assert!((square.sqrt() - 0.1).abs() < 0.001, "{}", square.sqrt());
}

#[test]
fn zones_get_their_shares_and_are_uniform_inside() {
    let zone = |access_pct, size_pct| Zone {
        access_pct,
        size_pct,
    };
    let zones = vec![
        zone(60.0, 10.0),
        zone(30.0, 20.0),
        zone(10.0, 30.0),
        zone(0.0, 40.0),
    ];
    let spec = StreamSpec {
        access: random(Distribution::Zoned(zones), 100.0),
        ..random_reads(EIGHT_TIB, 8)
    };
    let counts = cells_of(&spec, 1_000_000, 100);
    for (from, to, share) in [(0, 10, 0.6), (10, 30, 0.3), (30, 60, 0.1)] {
        let inside: u64 = counts[from..to].iter().sum();
        assert!((inside as f64 / 1e6 - share).abs() < 0.0001, "{inside}");
        assert!(chi_square(&counts[from..to]) < chi_square_limit(to - from));
    }
    assert_eq!(counts[60..].iter().sum::<u64>(), 0);
}

//! The sequence of a stream: it repeats, keeps its shares, its region and its quotas.

use crate::workload_common::{file_server, random, random_reads};
use lanemark::request::{Io, Op};
use lanemark::workload::{
    Access, Distribution, Generator, OpMix, Quota, Region, SizeShare, StreamSpec, Zone,
    share_error_bound_count, stream_seed, stripes,
};
use proptest::prelude::*;

fn sequential(region_blocks: u64, blocks: u32) -> StreamSpec {
    StreamSpec {
        access: Access::Sequential,
        ..random_reads(region_blocks, blocks)
    }
}

fn mixed(seed: u64) -> StreamSpec {
    StreamSpec {
        ops: OpMix::ReadWrite { read_pct: 80.0 },
        access: random(Distribution::Uniform, 80.0),
        sizes: file_server(),
        align_blocks: 8,
        region: Region {
            first_lba: 2048,
            blocks: 1 << 30,
        },
        seed,
        ..random_reads(1 << 30, 8)
    }
}

fn starts(spec: &StreamSpec, count: usize) -> Vec<u64> {
    Generator::new(spec).take(count).map(|io| io.lba).collect()
}

/// Jobs must repeat over versions of lanemark: if this fails, the change breaks every stored seed.
#[test]
fn first_ios_are_known() {
    // These agree with an implementation of splitmix64, xoshiro256++ and Lemire's method apart from ours.
    let uniform = [
        4_630_949_024,
        17_098_851_016,
        5_562_170_496,
        5_654_655_848,
        2_300_923_832,
        12_788_937_272,
        2_784_398_840,
        9_013_241_264,
    ];
    assert_eq!(starts(&random_reads(1 << 34, 8), 8), uniform);
    let known: Vec<(Op, u64, u32)> = Generator::new(&mixed(1))
        .take(8)
        .map(|io| (io.op, io.lba, io.blocks))
        .collect();
    let expected = [
        (Op::Read, 289_436_360, 8),
        (Op::Write, 1_068_680_176, 64),
        (Op::Read, 347_637_704, 8),
        (Op::Read, 353_418_032, 8),
        (Op::Write, 143_809_784, 8),
        (Op::Write, 799_310_624, 8),
        (Op::Read, 174_026_968, 32),
        (Op::Read, 563_329_624, 8),
    ];
    assert_eq!(known, expected);
    let zipf = StreamSpec {
        access: random(Distribution::Zipf(1.2), 100.0),
        ..random_reads(1 << 34, 8)
    };
    let skewed = [
        14_718_525_848,
        16_151_405_400,
        3_326_052_704,
        12_855_843_232,
        15_925_409_080,
        14_688_696_128,
        12_769_316_624,
        16_775_082_552,
    ];
    assert_eq!(starts(&zipf, 8), skewed);
}

#[test]
fn same_seed_repeats_and_streams_differ() {
    let spec = |stream| mixed(stream_seed(1, 0, stream));
    let ios = |stream| -> Vec<Io> { Generator::new(&spec(stream)).take(10_000).collect() };
    assert_eq!(ios(0), ios(0));
    let (first, second) = (ios(0), ios(1));
    let same = first.iter().zip(&second).filter(|(a, b)| a.lba == b.lba);
    assert!(same.count() < 10);
}

#[test]
fn achieved_share_comes_nearer_as_promised() {
    for read_pct in [1.0, 33.0, 70.0, 99.0, 100.0 / 3.0, 0.4] {
        let spec = StreamSpec {
            ops: OpMix::ReadWrite { read_pct },
            ..random_reads(1 << 34, 8)
        };
        let mut generator = Generator::new(&spec);
        let mut issued = 0_u32;
        for goal in [100, 137, 10_000, 12_345, 1_000_000] {
            generator
                .by_ref()
                .take((goal - issued) as usize)
                .for_each(drop);
            issued = goal;
            let reads = generator.op_counts()[Op::Read as usize];
            assert_eq!(
                reads + generator.op_counts()[Op::Write as usize],
                u64::from(goal)
            );
            let error_pct = (reads as f64 / f64::from(goal) * 100.0 - read_pct).abs();
            let bound_pct = share_error_bound_count(2) / f64::from(goal) * 100.0;
            assert!(
                error_pct < bound_pct,
                "{read_pct} % at {goal}: off by {error_pct}"
            );
        }
    }
}

#[test]
fn file_server_keeps_all_its_shares_at_once() {
    let mut generator = Generator::new(&mixed(7));
    let mut bytes_of_reads = 0.0;
    let mut bytes = 0.0;
    for io in generator.by_ref().take(1_000_000) {
        bytes += f64::from(io.blocks);
        bytes_of_reads += f64::from(u8::from(io.op == Op::Read)) * f64::from(io.blocks);
    }
    let near = |count: u64, asked_pct: f64| (count as f64 / 1e4 - asked_pct).abs() < 0.004;
    for (count, size) in generator.size_counts().zip(file_server()) {
        assert!(near(count, size.share_pct), "{count} of {size:?}");
    }
    assert!(near(generator.op_counts()[Op::Read as usize], 80.0));
    assert!(near(generator.random_count(), 80.0));
    assert_eq!(
        generator.random_count() + generator.sequential_count(),
        1_000_000
    );
    // Operation and size are independent: 80 % of the bytes are read, too.
    assert!((bytes_of_reads / bytes - 0.8_f64).abs() < 0.004);
}

#[test]
fn counts_agree_with_what_was_given_out() {
    for spec in [mixed(3), random_reads(1 << 20, 8), sequential(1 << 20, 8)] {
        let mut generator = Generator::new(&spec);
        let ios: Vec<Io> = generator.by_ref().take(5000).collect();
        for op in Op::ALL {
            let count = ios.iter().filter(|io| io.op == op).count() as u64;
            assert_eq!(generator.op_counts()[op as usize], count);
        }
        for (size, issued) in spec.sizes.iter().zip(generator.size_counts()) {
            let count = ios.iter().filter(|io| io.blocks == size.blocks).count() as u64;
            assert_eq!(issued, count);
        }
        let follows = |pair: &[Io]| pair[1].lba == pair[0].lba + u64::from(pair[0].blocks);
        let following = ios.windows(2).filter(|pair| follows(pair)).count() as u64;
        assert!(generator.sequential_count().abs_diff(following) <= 1);
    }
}

#[test]
fn sequential_wraps_and_skips_what_cannot_hold_the_request() {
    assert_eq!(starts(&sequential(10, 4), 5), [0, 4, 0, 4, 0]);
    assert_eq!(starts(&sequential(8, 4), 4), [0, 4, 0, 4]);
    assert_eq!(starts(&sequential(4, 4), 3), [0, 0, 0]);
}

#[test]
fn sequential_mixes_share_one_cursor() {
    let spec = StreamSpec {
        ops: OpMix::ReadWrite { read_pct: 50.0 },
        sizes: file_server(),
        ..sequential(1 << 40, 1)
    };
    let mut next = 0;
    for io in Generator::new(&spec).take(10_000) {
        assert_eq!(io.lba, next);
        next += u64::from(io.blocks);
    }
}

#[test]
fn sequential_streams_on_stripes_never_meet() {
    let device = Region {
        first_lba: 0,
        blocks: 4003,
    };
    let mut seen = vec![false; 4003];
    for (index, region) in stripes(device, 4, 8).unwrap().into_iter().enumerate() {
        let spec = StreamSpec {
            region,
            quota: Quota {
                ios: Some(region.blocks / 8),
                blocks: None,
            },
            seed: stream_seed(1, 0, index as u32),
            ..sequential(0, 8)
        };
        for io in Generator::new(&spec) {
            for block in io.lba..io.lba + u64::from(io.blocks) {
                assert!(
                    !std::mem::replace(&mut seen[block as usize], true),
                    "block {block}"
                );
            }
        }
    }
    assert_eq!(seen.iter().filter(|&&seen| seen).count(), 4000);
}

#[test]
fn a_part_of_random_access_follows_on() {
    for random_pct in [0.0, 1.0, 50.0, 99.0] {
        let spec = StreamSpec {
            access: random(Distribution::Uniform, random_pct),
            ..random_reads(1 << 40, 8)
        };
        let ios: Vec<Io> = Generator::new(&spec).take(10_001).collect();
        let follows = |pair: &&[Io]| pair[1].lba == pair[0].lba + 8;
        let follow_pct = ios.windows(2).filter(follows).count() as f64 / 100.0;
        assert!(
            (follow_pct - (100.0 - random_pct)).abs() < 0.3,
            "{follow_pct}"
        );
    }
}

#[test]
fn flushes_come_after_every_so_many_writes_and_do_not_count() {
    let spec = StreamSpec {
        ops: OpMix::ReadWrite { read_pct: 50.0 },
        flush_every: Some(10),
        quota: Quota {
            ios: Some(1000),
            blocks: None,
        },
        ..random_reads(1 << 20, 8)
    };
    let mut generator = Generator::new(&spec);
    let ios: Vec<Io> = generator.by_ref().collect();
    assert_eq!(ios.iter().filter(|io| **io != Io::FLUSH).count(), 1000);
    let mut writes = 0;
    for io in &ios {
        match io.op {
            Op::Write => writes += 1,
            Op::Flush => assert_eq!(std::mem::take(&mut writes), 10),
            _ => assert!(writes < 10, "the flush comes at once"),
        }
    }
    // The last write of the quota is the 500th: its flush still comes.
    assert_eq!(writes, 0);
    assert_eq!(generator.op_counts(), [500, 500, 0, 0, 50, 0]);
    assert_eq!(generator.next(), None);
}

#[test]
fn quotas_are_exact() {
    let count = |ios, blocks, spec: StreamSpec| {
        let quota = Quota { ios, blocks };
        let mut generator = Generator::new(&StreamSpec { quota, ..spec });
        let issued: Vec<Io> = generator.by_ref().collect();
        assert!(
            (0..5).all(|_| generator.next().is_none()),
            "the end is the end"
        );
        let blocks: u64 = issued.iter().map(|io| u64::from(io.blocks)).sum();
        (issued.len(), blocks)
    };
    let plain = || random_reads(1 << 20, 8);
    assert_eq!(count(Some(7), None, plain()), (7, 56));
    assert_eq!(count(None, Some(63), plain()), (7, 56));
    assert_eq!(count(Some(3), Some(63), plain()), (3, 24));
    assert_eq!(count(Some(0), None, plain()), (0, 0));
    assert_eq!(count(None, Some(7), plain()), (0, 0));
    let (_, blocks) = count(None, Some(100_000), mixed(1));
    assert!(blocks <= 100_000 && blocks > 100_000 - 128, "{blocks}");
}

#[test]
fn trims_and_single_sided_mixes() {
    let only = |ops| {
        let spec = StreamSpec {
            ops,
            ..random_reads(1 << 20, 8)
        };
        let first = Generator::new(&spec).next().unwrap().op;
        assert!(Generator::new(&spec).take(1000).all(|io| io.op == first));
        first
    };
    assert_eq!(only(OpMix::Trim), Op::Trim);
    assert_eq!(only(OpMix::WriteZeroes), Op::WriteZeroes);
    assert_eq!(only(OpMix::Write), Op::Write);
    assert_eq!(only(OpMix::ReadWrite { read_pct: 100.0 }), Op::Read);
    assert_eq!(only(OpMix::ReadWrite { read_pct: 0.0 }), Op::Write);
}

fn distributions() -> impl Strategy<Value = Distribution> {
    prop_oneof![
        Just(Distribution::Uniform),
        (0.01_f64..4.0).prop_map(Distribution::Zipf),
        (0.01_f64..0.99).prop_map(Distribution::Pareto),
        (0.01_f64..200.0).prop_map(Distribution::Normal),
        prop::collection::vec((0.1_f64..50.0, 0.1_f64..50.0), 1..6).prop_map(|zones| {
            let zone = |&(access_pct, size_pct): &(f64, f64)| Zone {
                access_pct,
                size_pct,
            };
            Distribution::Zoned(zones.iter().map(zone).collect())
        }),
    ]
}

prop_compose! {
    fn streams()(
        distribution in distributions(),
        random_pct in prop_oneof![Just(100.0), Just(0.0), 0.0_f64..100.0],
        sizes in prop::collection::vec((1_u32..300, 0.1_f64..10.0), 1..6),
        align_blocks in 1_u32..70,
        first_lba in prop_oneof![0_u64..1000, Just(u64::MAX >> 1)],
        spare in prop_oneof![0_u64..50, 0_u64..100_000, Just(1_u64 << 55)],
        flush_every in prop::option::of(1_u32..20),
        seed: u64,
    ) -> StreamSpec {
        let sizes: Vec<SizeShare> = sizes
            .into_iter()
            .map(|(blocks, share_pct)| SizeShare { blocks, share_pct })
            .collect();
        let largest = sizes.iter().map(|size| size.blocks).max().unwrap();
        StreamSpec {
            ops: OpMix::ReadWrite { read_pct: 40.0 },
            access: random(distribution, random_pct),
            sizes,
            align_blocks,
            region: Region { first_lba, blocks: u64::from(largest) + spare },
            flush_every,
            seed,
            ..random_reads(1, 1)
        }
    }
}

proptest! {
    /// Unaligned tails, requests as large as the region, regions of 2^64 bytes: nothing gets out.
    #[test]
    fn no_io_leaves_its_region(spec in streams()) {
        let region = spec.region;
        let mut previous_end = region.first_lba;
        for io in Generator::new(&spec).take(300).filter(|io| *io != Io::FLUSH) {
            prop_assert!(io.lba >= region.first_lba);
            let end = io.lba + u64::from(io.blocks);
            prop_assert!(end <= region.first_lba + region.blocks);
            let offset = io.lba - region.first_lba;
            let aligned = offset % u64::from(spec.align_blocks) == 0;
            prop_assert!(aligned || io.lba == previous_end || offset == 0);
            prop_assert!(spec.sizes.iter().any(|size| size.blocks == io.blocks));
            previous_end = end;
        }
    }
}

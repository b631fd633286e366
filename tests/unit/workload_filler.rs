//! What writes carry: never the same block twice, as compressible as asked, exactly the asked constant.

use crate::workload_common::random_reads;
use lanemark::request::{Io, Op};
use lanemark::workload::{DataPattern, Filler, OpMix, StreamSpec};
use std::collections::HashSet;

fn stream(data: DataPattern, ops: OpMix, seed: u64) -> StreamSpec {
    StreamSpec {
        data,
        ops,
        seed,
        ..random_reads(1 << 20, 8)
    }
}

const fn write(blocks: u32) -> Io {
    Io {
        lba: 64,
        blocks,
        op: Op::Write,
    }
}

/// Every run of 32 bytes, at every multiple of 8, of many writes through one buffer.
fn windows_repeat(data: DataPattern, logical_block_bytes: u32) -> usize {
    let mut filler = Filler::new(&stream(data, OpMix::Write, 1), logical_block_bytes);
    let mut buffer = vec![0; 16 << 10];
    filler.initial(&mut buffer);
    let mut seen: HashSet<Vec<u8>> = HashSet::new();
    let mut repeats = 0;
    for _ in 0..20 {
        filler.stamp(&mut buffer, &write((16 << 10) / logical_block_bytes));
        for window in buffer.windows(32).step_by(8) {
            repeats += usize::from(!seen.insert(window.to_vec()));
        }
    }
    repeats
}

#[test]
fn random_data_never_repeats_not_even_in_parts() {
    for logical_block_bytes in [512, 4096, 16384] {
        assert_eq!(windows_repeat(DataPattern::Random, logical_block_bytes), 0);
    }
    assert!(
        windows_repeat(DataPattern::Zero, 512) > 0,
        "the test can fail"
    );
}

/// Blocks are more than one pattern under different keys: that would be one difference all along.
#[test]
fn blocks_do_not_differ_by_a_constant() {
    let mut filler = Filler::new(&stream(DataPattern::Random, OpMix::Write, 1), 512);
    let mut buffer = vec![0; 512 * 200];
    filler.initial(&mut buffer);
    let word = |block: &[u8], at: usize| u64::from_le_bytes(block[at..at + 8].try_into().unwrap());
    let blocks: Vec<&[u8]> = buffer.chunks(512).collect();
    let constant = |pair: &&[&[u8]]| {
        word(pair[0], 8) ^ word(pair[1], 8) == word(pair[0], 64) ^ word(pair[1], 64)
    };
    assert!(blocks.windows(2).filter(constant).count() < 5);
}

#[test]
fn random_bytes_are_uniform() {
    let mut filler = Filler::new(&stream(DataPattern::Random, OpMix::Write, 3), 512);
    let mut counts = vec![0_u64; 256];
    let mut buffer = vec![0; 1 << 20];
    filler.initial(&mut buffer);
    for &byte in &buffer {
        counts[usize::from(byte)] += 1;
    }
    // Words come from a pool of 1024 (see the type): far from every byte is independent, so the limit
    // is that of the pool's 8192 bytes, seen 128 times each.
    let most = counts.iter().max().unwrap();
    let least = counts.iter().min().unwrap();
    assert!(*least > 3600 && *most < 4600, "{least} to {most} of 4096");
}

#[test]
fn streams_write_different_data() {
    let block = |seed| {
        let mut filler = Filler::new(&stream(DataPattern::Random, OpMix::Write, seed), 512);
        let mut buffer = vec![0; 512];
        filler.initial(&mut buffer);
        buffer
    };
    assert_eq!(block(1), block(1));
    assert!(
        block(1)
            .chunks(8)
            .zip(block(2).chunks(8))
            .all(|(a, b)| a != b)
    );
}

#[test]
fn compressible_blocks_have_their_zeros_and_stay_unique() {
    for (zero_pct, logical_block_bytes, zeros) in [
        (50.0, 4096, 2048),
        (37.5, 512, 192),
        (100.0, 4096, 4088),
        (0.0, 512, 0),
    ] {
        let spec = stream(DataPattern::Compressible(zero_pct), OpMix::Write, 1);
        let mut filler = Filler::new(&spec, logical_block_bytes);
        let mut buffer = vec![0xFF; 64 << 10];
        filler.initial(&mut buffer);
        let mut seen = HashSet::new();
        for block in buffer.chunks(logical_block_bytes as usize) {
            let (random, zero) = block.split_at(block.len() - zeros);
            assert!(zero.iter().all(|&byte| byte == 0));
            assert!(random.chunks(8).all(|word| word != [0; 8]));
            assert!(seen.insert(block.to_vec()));
        }
    }
}

/// Shares that are no whole words of a block come out over several.
#[test]
fn the_share_of_zeros_is_what_was_asked() {
    for logical_block_bytes in [512, 520, 4096] {
        for zero_pct in [0.1, 1.0, 30.0, 33.3, 50.0, 97.3, 98.0] {
            let spec = stream(DataPattern::Compressible(zero_pct), OpMix::Write, 1);
            let mut filler = Filler::new(&spec, logical_block_bytes);
            let mut buffer = vec![0xFF; 1000 * logical_block_bytes as usize];
            filler.initial(&mut buffer);
            let zeros = buffer.chunks(8).filter(|word| **word == [0; 8]).count();
            let share_pct = zeros as f64 * 800.0 / buffer.len() as f64;
            let most_off = 0.01;
            assert!(
                (share_pct - zero_pct).abs() < most_off,
                "{share_pct} of {zero_pct}"
            );
        }
    }
}

#[test]
fn a_write_changes_its_own_blocks_only() {
    let mut filler = Filler::new(&stream(DataPattern::Random, OpMix::Write, 1), 512);
    let mut buffer = vec![7; 4096];
    filler.stamp(&mut buffer, &write(3));
    assert!(buffer[1536..].iter().all(|&byte| byte == 7));
    assert!(buffer[..1536].chunks(8).all(|word| word != [7; 8]));
    let before = buffer.clone();
    for op in [Op::Read, Op::Trim, Op::WriteZeroes, Op::Flush] {
        filler.stamp(&mut buffer, &Io { op, ..write(8) });
    }
    assert_eq!(buffer, before);
}

#[test]
fn constants_are_written_once_or_again_after_reads() {
    let reads_too = OpMix::ReadWrite { read_pct: 50.0 };
    for (data, expected) in [
        (DataPattern::Zero, [0, 0, 0, 0]),
        (
            DataPattern::Fixed([0xDE, 0xAD, 0xBE, 0xEF]),
            [0xDE, 0xAD, 0xBE, 0xEF],
        ),
    ] {
        let is_filled = |buffer: &[u8]| buffer.chunks(4).all(|word| word == expected);
        let mut buffer = vec![1; 4096];
        let mut filler = Filler::new(&stream(data, OpMix::Write, 1), 512);
        filler.initial(&mut buffer);
        assert!(is_filled(&buffer));
        // What a read would leave: a stream that only writes never finds it, and does not look.
        buffer.fill(1);
        filler.stamp(&mut buffer, &write(8));
        assert_eq!(buffer, [1; 4096]);
        let mut filler = Filler::new(&stream(data, reads_too, 1), 512);
        filler.stamp(&mut buffer, &write(8));
        assert!(is_filled(&buffer));
    }
}

/// Logical blocks with metadata in line are no power of two.
#[test]
fn odd_logical_blocks_are_filled_to_the_last_byte() {
    for logical_block_bytes in [520_u32, 4160, 4104, 524] {
        let spec = stream(DataPattern::Random, OpMix::Write, 1);
        let mut filler = Filler::new(&spec, logical_block_bytes);
        let mut buffer = vec![0; logical_block_bytes as usize * 8];
        filler.stamp(&mut buffer, &write(8));
        let zero_words = buffer.chunks(4).filter(|word| **word == [0; 4]).count();
        assert_eq!(zero_words, 0, "{logical_block_bytes}");
    }
}

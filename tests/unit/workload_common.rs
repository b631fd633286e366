//! A stream to start from, and statistics, for the tests of the workload.

use lanemark::workload::{
    Access, Arrival, DataPattern, Distribution, OpMix, Quota, Region, SizeShare, StreamSpec,
};

/// Uniform random reads of `blocks` blocks, aligned to their size, over `region_blocks` blocks.
pub fn random_reads(region_blocks: u64, blocks: u32) -> StreamSpec {
    StreamSpec {
        device_index: 0,
        ops: OpMix::Read,
        access: random(Distribution::Uniform, 100.0),
        sizes: vec![SizeShare {
            blocks,
            share_pct: 100.0,
        }],
        align_blocks: blocks,
        region: Region {
            first_lba: 0,
            blocks: region_blocks,
        },
        depth: 1,
        arrival: Arrival::Closed,
        flush_every: None,
        quota: Quota::default(),
        data: DataPattern::Random,
        seed: 1,
    }
}

/// Random access of which `random_pct` is random.
pub fn random(distribution: Distribution, random_pct: f64) -> Access {
    Access::Random {
        distribution,
        random_pct,
    }
}

/// Sizes in 512-byte blocks with their shares: the file-server pattern.
pub fn file_server() -> Vec<SizeShare> {
    [1, 2, 4, 8, 16, 32, 64, 128]
        .into_iter()
        .zip([10.0, 5.0, 5.0, 60.0, 2.0, 4.0, 4.0, 10.0])
        .map(|(blocks, share_pct)| SizeShare { blocks, share_pct })
        .collect()
}

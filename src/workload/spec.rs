//! The description of one stream, resolved: units are blocks of its device, no default is left open.

/// Which operations, in which shares.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum OpMix {
    /// Reads only.
    Read,
    /// Writes only.
    Write,
    /// Trims only.
    Trim,
    /// Commands that write zeros, only.
    WriteZeroes,
    /// Reads in this share (percent), writes otherwise.
    ReadWrite {
        /// Share of reads, 0 to 100.
        read_pct: f64,
    },
    /// Commands that touch no media. Region and sizes mean nothing.
    Probe,
    /// Reads of the region's one block, over and over: after the first, its cache answers.
    ProbeRead,
}

impl OpMix {
    /// Whether it prices the path instead of the media.
    #[must_use]
    pub const fn is_probe(self) -> bool {
        matches!(self, Self::Probe | Self::ProbeRead)
    }

    /// Whether its commands carry data; a trim or a writezeroes only names blocks.
    #[must_use]
    pub const fn carries_data(self) -> bool {
        matches!(
            self,
            Self::Read | Self::Write | Self::ReadWrite { .. } | Self::ProbeRead
        )
    }

    /// Whether it leaves the device as it was.
    #[must_use]
    pub const fn only_reads(self) -> bool {
        matches!(self, Self::Read | Self::Probe | Self::ProbeRead)
    }
}

/// In which order blocks are visited.
#[derive(Debug, Clone, PartialEq)]
pub enum Access {
    /// One after another, from the start of the region again after its end.
    Sequential,
    /// At random.
    Random {
        /// How positions are drawn.
        distribution: Distribution,
        /// Share of I/Os (percent) that are random; the rest follow on the one before.
        random_pct: f64,
    },
}

/// How a random position is drawn. All but `Uniform` and `Zoned` rank positions by popularity and
/// spread the ranks over the region by a seeded permutation.
#[derive(Debug, Clone, PartialEq)]
pub enum Distribution {
    /// Every position alike.
    Uniform,
    /// Zipf with exponent θ > 0, θ ≠ 1.
    Zipf(f64),
    /// Pareto with 0 < h < 1.
    Pareto(f64),
    /// Normal around the middle of the region, σ in percent of the region; not permuted.
    Normal(f64),
    /// Shares of accesses to shares of the region, in order.
    Zoned(Vec<Zone>),
}

/// One zone of [`Distribution::Zoned`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Zone {
    /// Share of accesses, percent; all zones sum to 100.
    pub access_pct: f64,
    /// Share of the region, percent; all zones sum to 100.
    pub size_pct: f64,
}

/// One block size of a mix of sizes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SizeShare {
    /// Size in logical blocks, at least 1.
    pub blocks: u32,
    /// Share of requests in percent; all sum to 100.
    pub share_pct: f64,
}

/// The part of the device that a stream may touch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Region {
    /// First logical block.
    pub first_lba: u64,
    /// Number of logical blocks.
    pub blocks: u64,
}

/// When the next I/O is issued.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Arrival {
    /// Closed loop: as soon as one completes.
    Closed,
    /// Open loop, evenly spaced.
    Fixed {
        /// Arrivals a second of this stream.
        iops: f64,
    },
    /// Open loop, exponential gaps.
    Poisson {
        /// Mean arrivals a second of this stream.
        iops: f64,
    },
}

/// How much a stream does at most; it stops at whichever comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Quota {
    /// I/Os of any kind; flushes are extra.
    pub ios: Option<u64>,
    /// Logical blocks.
    pub blocks: Option<u64>,
}

/// What writes carry.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum DataPattern {
    /// Random bytes; every logical block of every I/O differs from all others (no dedup, no compression).
    Random,
    /// All zero.
    Zero,
    /// Four bytes over and over, in this order.
    Fixed([u8; 4]),
    /// Random bytes of which this share (percent) of each 4 KiB is zero, blocks still unique.
    Compressible(f64),
}

/// One stream on one device.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamSpec {
    /// Place in the step's list of devices.
    pub device_index: u32,
    /// Operations.
    pub ops: OpMix,
    /// Order.
    pub access: Access,
    /// Sizes; never empty.
    pub sizes: Vec<SizeShare>,
    /// Starts of random I/Os are multiples of this, counted from the region's first block; at least 1.
    pub align_blocks: u32,
    /// Where.
    pub region: Region,
    /// I/Os in flight.
    pub depth: u32,
    /// When.
    pub arrival: Arrival,
    /// A flush after this many writes.
    pub flush_every: Option<u32>,
    /// How much.
    pub quota: Quota,
    /// What writes carry.
    pub data: DataPattern,
    /// Seed of this stream alone; streams of a step have different ones.
    pub seed: u64,
}

impl StreamSpec {
    /// Largest request in blocks.
    #[must_use]
    pub fn max_blocks(&self) -> u32 {
        self.sizes.iter().map(|size| size.blocks).max().unwrap_or(1)
    }

    /// Blocks of data that a buffer has to hold.
    #[must_use]
    pub fn buffer_blocks(&self) -> u32 {
        if self.ops.carries_data() {
            self.max_blocks()
        } else {
            1
        }
    }
}

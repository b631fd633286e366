//! The sequence of one stream's I/Os.

use super::deck::Choice;
use super::positions::Positions;
use super::random::Purpose;
use super::spec::{Access, OpMix, StreamSpec};
use crate::request::{Io, Op};

/// Turns a [`StreamSpec`] into its I/Os, one after another. The same spec (its seed included) always
/// gives the same sequence. Nothing is allocated after [`Generator::new`].
///
/// - Operation, size, order (random or not) and place are chosen independently of each other.
/// - Shares are exact, not just on average: see [`share_error_bound_count`](super::share_error_bound_count).
/// - Random starts are multiples of the alignment from the region's first block; all from which the
///   request fits are drawn.
/// - A sequential I/O starts where the one before ended, be that a random one. One that would cross the
///   region's end starts at the region's first block instead: a remainder at the end that cannot hold
///   it is skipped. Reads and writes of a mix follow on one another.
/// - After every `flush_every` writes comes one [`Io::FLUSH`], outside the quota. It is issued while
///   earlier writes may still be in flight, as fio does.
/// - The stream ends when its I/Os are used up, or before the first I/O that would exceed its blocks.
#[derive(Debug, Clone)]
pub struct Generator {
    first_lba: u64,
    region_blocks: u64,
    /// Where the next sequential I/O starts, in blocks from `first_lba`.
    cursor_blocks: u64,
    ios_left: u64,
    blocks_left: u64,
    ops: [Op; 2],
    op: Choice,
    sizes: Vec<Size>,
    size: Choice,
    order: Order,
    flush: Flush,
    op_counts: [u64; Op::COUNT],
    random_count: u64,
    sequential_count: u64,
}

#[derive(Debug, Clone, Copy)]
struct Size {
    blocks: u32,
    issued_count: u64,
}

#[derive(Debug, Clone)]
enum Order {
    Sequential,
    Random(Positions),
    /// Kind 0 is random, kind 1 follows on.
    Mixed(Positions, Choice),
}

#[derive(Debug, Clone, Copy)]
struct Flush {
    /// Writes between two flushes.
    every: Option<u32>,
    writes: u32,
}

impl Generator {
    /// Prepares everything the stream needs.
    ///
    /// # Panics
    /// On a spec that no plan may hold: no sizes, a size or an alignment of 0, a size larger than the
    /// region, or a region beyond 2^64 blocks.
    #[must_use]
    pub fn new(spec: &StreamSpec) -> Self {
        check(spec);
        let (ops, op) = ops(spec);
        let shares: Vec<f64> = spec.sizes.iter().map(|size| size.share_pct).collect();
        Self {
            first_lba: spec.region.first_lba,
            region_blocks: spec.region.blocks,
            cursor_blocks: 0,
            ios_left: spec.quota.ios.unwrap_or(u64::MAX),
            blocks_left: spec.quota.blocks.unwrap_or(u64::MAX),
            ops,
            op,
            sizes: (spec.sizes.iter())
                .map(|size| Size {
                    blocks: size.blocks,
                    issued_count: 0,
                })
                .collect(),
            size: Choice::new(&shares, spec.seed, Purpose::Sizes),
            order: order(spec),
            flush: Flush {
                every: spec.flush_every.filter(|&every| every > 0),
                writes: 0,
            },
            op_counts: [0; Op::COUNT],
            random_count: 0,
            sequential_count: 0,
        }
    }

    /// I/Os given out so far of each operation, by `Op as usize`; flushes included.
    #[must_use]
    pub const fn op_counts(&self) -> [u64; Op::COUNT] {
        self.op_counts
    }

    /// I/Os given out so far of each size, in the order of [`StreamSpec::sizes`].
    pub fn size_counts(&self) -> impl ExactSizeIterator<Item = u64> + '_ {
        self.sizes.iter().map(|size| size.issued_count)
    }

    /// I/Os given out so far at a random place.
    #[must_use]
    pub const fn random_count(&self) -> u64 {
        self.random_count
    }

    /// I/Os given out so far that followed on the one before.
    #[must_use]
    pub const fn sequential_count(&self) -> u64 {
        self.sequential_count
    }

    #[inline]
    fn start(&mut self, size_index: usize, blocks: u64) -> u64 {
        let random = match &mut self.order {
            Order::Sequential => None,
            Order::Random(positions) => Some(positions),
            Order::Mixed(positions, choice) => (choice.draw() == 0).then_some(positions),
        };
        if let Some(positions) = random {
            self.random_count += 1;
            return positions.draw(size_index);
        }
        self.sequential_count += 1;
        if blocks > self.region_blocks - self.cursor_blocks {
            return 0;
        }
        self.cursor_blocks
    }

    #[inline]
    fn flush_is_due(&mut self) -> bool {
        let due = self
            .flush
            .every
            .is_some_and(|every| self.flush.writes >= every);
        if due {
            self.flush.writes = 0;
            self.op_counts[Op::Flush as usize] += 1;
        }
        due
    }
}

/// `next` is the hot part: a few nanoseconds, no allocation. `None` once the quota is met, for good.
impl Iterator for Generator {
    type Item = Io;

    #[inline]
    fn next(&mut self) -> Option<Io> {
        if self.flush_is_due() {
            return Some(Io::FLUSH);
        }
        if self.ios_left == 0 {
            return None;
        }
        let size_index = self.size.draw();
        let size = &mut self.sizes[size_index];
        let blocks = u64::from(size.blocks);
        if blocks > self.blocks_left {
            self.ios_left = 0;
            return None;
        }
        size.issued_count += 1;
        self.ios_left -= 1;
        self.blocks_left -= blocks;
        let op = self.ops[self.op.draw()];
        self.op_counts[op as usize] += 1;
        self.flush.writes += u32::from(op == Op::Write);
        let start = self.start(size_index, blocks);
        debug_assert!(start + blocks <= self.region_blocks, "left the region");
        self.cursor_blocks = start + blocks;
        Some(Io {
            lba: self.first_lba + start,
            blocks: blocks as u32,
            op,
        })
    }
}

fn check(spec: &StreamSpec) {
    assert!(!spec.sizes.is_empty(), "a stream has at least one size");
    assert!(
        spec.sizes.iter().all(|size| size.blocks > 0) && spec.align_blocks > 0,
        "sizes and alignment are at least one block"
    );
    let region = spec.region;
    assert!(
        u64::from(spec.max_blocks()) <= region.blocks
            && region.first_lba.checked_add(region.blocks).is_some(),
        "the largest request fits into the region, and the region below block 2^64"
    );
}

fn ops(spec: &StreamSpec) -> ([Op; 2], Choice) {
    match spec.ops {
        OpMix::Read => ([Op::Read; 2], Choice::Only(0)),
        OpMix::Write => ([Op::Write; 2], Choice::Only(0)),
        OpMix::Trim => ([Op::Trim; 2], Choice::Only(0)),
        OpMix::ReadWrite { read_pct } => (
            [Op::Read, Op::Write],
            Choice::new(&[read_pct, 100.0 - read_pct], spec.seed, Purpose::Ops),
        ),
    }
}

fn order(spec: &StreamSpec) -> Order {
    let Access::Random {
        distribution,
        random_pct,
    } = &spec.access
    else {
        return Order::Sequential;
    };
    let sizes: Vec<u32> = spec.sizes.iter().map(|size| size.blocks).collect();
    let positions = Positions::new(
        distribution,
        spec.region,
        spec.align_blocks,
        &sizes,
        spec.seed,
    );
    let shares = [*random_pct, 100.0 - random_pct];
    match Choice::new(&shares, spec.seed, Purpose::Order) {
        Choice::Only(0) => Order::Random(positions),
        Choice::Only(_) => Order::Sequential,
        mixed @ Choice::Mixed(_) => Order::Mixed(positions, mixed),
    }
}

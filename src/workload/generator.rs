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
/// - Probes are [`Io::PROBE`], as many as the quota of I/Os allows.
/// - After every `flush_every` writes comes one [`Io::FLUSH`], outside the quota. It is issued while
///   earlier writes may still be in flight, as fio does.
/// - The stream ends when its I/Os are used up, or before the first I/O that would exceed its blocks.
#[derive(Debug, Clone)]
pub struct Generator {
    /// Set where only the place varies: then nothing else is looked at on the way.
    plain: Option<Plain>,
    first_lba: u64,
    region_blocks: u64,
    /// Where the next sequential I/O starts, in blocks from `first_lba`.
    cursor_blocks: u64,
    issued_count: u64,
    /// The stream ends when `issued_count` has come to this.
    ios_max: u64,
    blocks_left: u64,
    ops: [Op; 2],
    op: Choice,
    /// Of the issued, those of the second of `ops`.
    second_op_count: u64,
    sizes: Vec<Size>,
    size: Choice,
    order: Order,
    /// Of the issued, those that `Order::Mixed` put at random.
    mixed_random_count: u64,
    flush_every: Option<u32>,
    writes_since_flush: u32,
    flushes_count: u64,
}

/// The one size and operation of a stream without mixes and flushes.
#[derive(Debug, Clone, Copy)]
struct Plain {
    blocks: u32,
    size_index: u32,
    op: Op,
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
        let mut generator = Self {
            plain: None,
            first_lba: spec.region.first_lba,
            region_blocks: spec.region.blocks,
            cursor_blocks: 0,
            issued_count: 0,
            ios_max: spec.quota.ios.unwrap_or(u64::MAX),
            blocks_left: spec.quota.blocks.unwrap_or(u64::MAX),
            ops,
            op,
            second_op_count: 0,
            sizes: (spec.sizes.iter())
                .map(|size| Size {
                    blocks: size.blocks,
                    issued_count: 0,
                })
                .collect(),
            size: Choice::new(&shares, spec.seed, Purpose::Sizes),
            order: order(spec),
            mixed_random_count: 0,
            flush_every: spec.flush_every.filter(|&every| every > 0),
            writes_since_flush: 0,
            flushes_count: 0,
        };
        generator.find_plain();
        generator
    }

    fn find_plain(&mut self) {
        let (Choice::Only(op), Choice::Only(size_index)) = (&self.op, &self.size) else {
            return;
        };
        let op = self.ops[*op];
        if self.flush_every.is_some() || op == Op::Probe || matches!(self.order, Order::Mixed(..)) {
            return;
        }
        let blocks = self.sizes[*size_index].blocks;
        self.ios_max = self.ios_max.min(self.blocks_left / u64::from(blocks));
        self.plain = Some(Plain {
            blocks,
            size_index: *size_index as u32,
            op,
        });
    }

    /// I/Os given out so far of each operation, by `Op as usize`; flushes included.
    #[must_use]
    pub const fn op_counts(&self) -> [u64; Op::COUNT] {
        let mut counts = [0; Op::COUNT];
        if let Some(plain) = self.plain {
            counts[plain.op as usize] = self.issued_count;
            return counts;
        }
        counts[self.ops[0] as usize] = self.issued_count - self.second_op_count;
        counts[self.ops[1] as usize] += self.second_op_count;
        counts[Op::Flush as usize] = self.flushes_count;
        counts
    }

    /// I/Os given out so far of each size, in the order of [`StreamSpec::sizes`].
    pub fn size_counts(&self) -> impl ExactSizeIterator<Item = u64> + '_ {
        self.sizes
            .iter()
            .enumerate()
            .map(|(index, size)| match self.plain {
                Some(plain) if plain.size_index as usize == index => self.issued_count,
                _ => size.issued_count,
            })
    }

    /// I/Os given out so far at a random place.
    #[must_use]
    pub const fn random_count(&self) -> u64 {
        match self.order {
            Order::Sequential => 0,
            Order::Random(_) => self.issued_count,
            Order::Mixed(..) => self.mixed_random_count,
        }
    }

    /// I/Os given out so far that followed on the one before.
    #[must_use]
    pub const fn sequential_count(&self) -> u64 {
        self.issued_count - self.random_count()
    }

    /// Whether the next is a flush.
    #[must_use]
    #[inline]
    pub fn flush_is_due(&self) -> bool {
        (self.flush_every).is_some_and(|every| self.writes_since_flush >= every)
    }

    /// The next I/O of a stream with mixes, flushes or probes. Out of line, so that the short way stays short.
    #[inline(never)]
    fn next_mixed(&mut self) -> Option<Io> {
        if self.flush_is_due() {
            self.writes_since_flush = 0;
            self.flushes_count += 1;
            return Some(Io::FLUSH);
        }
        if self.issued_count >= self.ios_max {
            return None;
        }
        if self.ops[0] == Op::Probe {
            self.issued_count += 1;
            return Some(Io::PROBE);
        }
        let size_index = self.size.draw();
        let size = &mut self.sizes[size_index];
        let blocks = size.blocks;
        let Some(blocks_left) = self.blocks_left.checked_sub(u64::from(blocks)) else {
            self.ios_max = self.issued_count;
            return None;
        };
        self.blocks_left = blocks_left;
        size.issued_count += 1;
        self.issued_count += 1;
        let kind = self.op.draw();
        self.second_op_count += kind as u64;
        let op = self.ops[kind];
        self.writes_since_flush = self
            .writes_since_flush
            .wrapping_add(u32::from(op == Op::Write));
        let start = match &mut self.order {
            Order::Sequential => self.follow(blocks),
            Order::Random(positions) => positions.draw(size_index),
            Order::Mixed(positions, choice) => {
                if choice.draw() == 0 {
                    self.mixed_random_count += 1;
                    positions.draw(size_index)
                } else {
                    self.follow(blocks)
                }
            }
        };
        Some(self.io(start, blocks, op))
    }

    /// Where a sequential I/O starts, in blocks of the region.
    #[inline]
    const fn follow(&self, blocks: u32) -> u64 {
        if blocks as u64 > self.region_blocks - self.cursor_blocks {
            return 0;
        }
        self.cursor_blocks
    }

    #[inline]
    fn io(&mut self, start: u64, blocks: u32, op: Op) -> Io {
        self.cursor_blocks = start + u64::from(blocks);
        debug_assert!(self.cursor_blocks <= self.region_blocks, "left the region");
        Io {
            lba: self.first_lba + start,
            blocks,
            op,
        }
    }
}

/// `next` is the hot part: a few nanoseconds, no allocation. `None` once the quota is met, for good.
impl Iterator for Generator {
    type Item = Io;

    #[inline]
    fn next(&mut self) -> Option<Io> {
        let Some(plain) = self.plain else {
            return self.next_mixed();
        };
        if self.issued_count >= self.ios_max {
            return None;
        }
        self.issued_count += 1;
        let start = match &mut self.order {
            Order::Random(positions) | Order::Mixed(positions, _) => {
                positions.draw(plain.size_index as usize)
            }
            Order::Sequential => self.follow(plain.blocks),
        };
        Some(self.io(start, plain.blocks, plain.op))
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
        OpMix::Read | OpMix::ProbeRead => ([Op::Read; 2], Choice::Only(0)),
        OpMix::Probe => ([Op::Probe; 2], Choice::Only(0)),
        OpMix::Write => ([Op::Write; 2], Choice::Only(0)),
        OpMix::Trim => ([Op::Trim; 2], Choice::Only(0)),
        OpMix::WriteZeroes => ([Op::WriteZeroes; 2], Choice::Only(0)),
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

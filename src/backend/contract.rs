//! The contract that every [`Queue`] keeps, as a suite that runs over any [`Device`].
//!
//! It is compiled always, so that tests of other crates and folders can call it; nothing else does. It
//! panics with what was broken.

use super::{Batch, Device, Full, Queue, QueueSpec, Sink, Wait};
use crate::request::{Io, Op, Slot, Status};
use std::time::{Duration, Instant};

/// No device under test takes longer for anything.
const PATIENCE: Duration = Duration::from_secs(30);
const DEPTH: u32 = 32;

/// What the device under test can do.
#[derive(Debug, Clone, Copy)]
pub struct Contract {
    /// First block of the region that may be used.
    pub first_lba: u64,
    /// Its length in blocks, at least 64.
    pub blocks: u64,
    /// Whether the region may be overwritten.
    pub writes: bool,
    /// Whether what was written is read back.
    pub keeps_data: bool,
    /// I/Os of the long part.
    pub ios_count: u64,
}

/// Runs the suite. `idle` is called after a poll that found nothing: a simulated device's time is moved
/// there, a real device needs nothing.
///
/// # Panics
/// At the first broken rule.
pub fn contract<D: Device>(device: &D, contract: &Contract, idle: &mut impl FnMut(&D::Queue)) {
    assert!(contract.blocks >= 64, "a region of at least 64 blocks");
    let suite = Suite { device, contract };
    suite.an_idle_queue_finds_nothing();
    suite.buffers_do_not_overlap();
    suite.every_slot_completes_once(idle);
    suite.a_bell_is_enough(idle);
    suite.resubmission_loses_nothing(idle);
    suite.changes_are_refused_without_consent(idle);
    suite.probes_complete_or_fail_by_name(idle);
    suite.close_waits(idle);
    if contract.writes {
        suite.what_is_written_is_read(idle);
        suite.zeros_are_exactly_where_they_were_written(idle);
    }
}

struct Suite<'a, D> {
    device: &'a D,
    contract: &'a Contract,
}

impl<D: Device> Suite<'_, D> {
    fn open(&self, depth: u32, batch: Batch, writes: bool) -> D::Queue {
        let spec = QueueSpec {
            reactor_index: 0,
            reactors_count: 1,
            slots_count: depth,
            slot_bytes: 4 * self.block_bytes(),
            batch,
            writes,
        };
        match self.device.open_queue(spec) {
            Ok(queue) => queue,
            Err(error) => panic!("open_queue: {error}"),
        }
    }

    fn block_bytes(&self) -> u32 {
        self.device.facts().logical_block.bytes()
    }

    fn io(&self, op: Op, number: u64) -> Io {
        // Odd multiplier: spread over the region, without a generator of its own.
        let spread = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 16;
        Io {
            lba: self.contract.first_lba + spread % (self.contract.blocks - 3),
            blocks: 1 + (number % 4) as u32,
            op,
        }
    }

    fn an_idle_queue_finds_nothing(&self) {
        let mut queue = self.open(DEPTH, batch(1, 1, 1), false);
        let mut sink = Seen::new(DEPTH);
        for wait in [Wait::Never, Wait::AtMostNs(1_000_000)] {
            let found = queue.poll(&mut sink, wait);
            assert_eq!(found, Ok(0), "an idle queue finds nothing ({wait:?})");
        }
        assert_eq!(queue.flush(), Ok(()), "nothing to ring is no error");
        assert_eq!(queue.close(PATIENCE).abandoned_count, 0);
    }

    fn buffers_do_not_overlap(&self) {
        let mut queue = self.open(DEPTH, batch(1, 1, 1), false);
        for slot in 0..DEPTH {
            let buffer = queue.buffer(Slot(slot));
            assert_eq!(buffer.len(), 4 * self.block_bytes() as usize, "slot {slot}");
            buffer.fill(slot as u8 + 1);
        }
        for slot in 0..DEPTH {
            let whole = queue.buffer(Slot(slot)).iter();
            assert!(
                whole.copied().all(|byte| byte == slot as u8 + 1),
                "the buffer of slot {slot} is its own"
            );
        }
        queue.close(PATIENCE);
    }

    fn every_slot_completes_once(&self, idle: &mut impl FnMut(&D::Queue)) {
        let mut queue = self.open(DEPTH, batch(5, 2, 3), false);
        for slot in 0..DEPTH {
            let done = queue.submit(Slot(slot), self.io(Op::Read, u64::from(slot)));
            assert_eq!(done, Ok(()), "slot {slot} is free");
        }
        let more = queue.submit(Slot(0), self.io(Op::Read, 0));
        assert_eq!(more, Err(Full), "every place is taken");
        let mut sink = Seen::new(DEPTH);
        wait_for(&mut queue, &mut sink, u64::from(DEPTH), 3, idle);
        assert!(sink.counts.iter().all(|&count| count == 1), "{sink:?}");
        assert!(sink.bad.is_none(), "a read failed: {:?}", sink.bad);
        let found = queue.poll(&mut sink, Wait::Never);
        assert_eq!(found, Ok(0), "all have completed");
        assert_eq!(queue.close(PATIENCE).abandoned_count, 0);
    }

    fn a_bell_is_enough(&self, idle: &mut impl FnMut(&D::Queue)) {
        let mut queue = self.open(4, batch(2, 1, 4), false);
        for slot in 0..4 {
            let done = queue.submit(Slot(slot), self.io(Op::Read, u64::from(slot)));
            assert_eq!(done, Ok(()));
        }
        assert_eq!(queue.flush(), Ok(()));
        let mut sink = Seen::new(4);
        let start = Instant::now();
        while sink.total < 4 {
            if queue.poll(&mut sink, Wait::Never) == Ok(0) {
                idle(&queue);
            }
            assert!(start.elapsed() < PATIENCE, "what was rung never completed");
        }
        queue.close(PATIENCE);
    }

    fn resubmission_loses_nothing(&self, idle: &mut impl FnMut(&D::Queue)) {
        let mut queue = self.open(DEPTH, batch(8, 4, 16), false);
        let wanted = self.contract.ios_count.max(u64::from(DEPTH));
        let mut sink = Seen::new(DEPTH);
        let next = |number| self.io(Op::Read, number);
        sink.next = Some(&next);
        sink.left = wanted - u64::from(DEPTH);
        for slot in 0..DEPTH {
            sink.in_flight[slot as usize] = true;
            assert_eq!(queue.submit(Slot(slot), next(u64::from(slot))), Ok(()));
        }
        wait_for(&mut queue, &mut sink, wanted, 16, idle);
        assert_eq!(sink.total, wanted, "every I/O completes, and once");
        assert!(sink.bad.is_none(), "a read failed: {:?}", sink.bad);
        assert!(sink.in_flight.iter().all(|&busy| !busy));
        assert_eq!(queue.close(PATIENCE).abandoned_count, 0);
    }

    fn changes_are_refused_without_consent(&self, idle: &mut impl FnMut(&D::Queue)) {
        if !self.contract.keeps_data {
            return;
        }
        let mut queue = self.open(1, batch(1, 1, 1), false);
        let io = Io {
            lba: self.contract.first_lba,
            blocks: 1,
            op: Op::Read,
        };
        let before = self.read(&mut queue, io, idle);
        let buffer = queue.buffer(Slot(0));
        buffer.iter_mut().for_each(|byte| *byte = !*byte);
        for op in [Op::Write, Op::Trim, Op::WriteZeroes] {
            let mut sink = Seen::new(1);
            if queue.submit(Slot(0), Io { op, ..io }).is_ok() {
                wait_for(&mut queue, &mut sink, 1, 1, idle);
                assert!(sink.bad.is_some(), "{op:?} was let through");
            }
        }
        let after = self.read(&mut queue, io, idle);
        assert!(before == after, "a queue opened without writes has written");
        queue.close(PATIENCE);
    }

    /// Without consent to write: a probe changes nothing.
    fn probes_complete_or_fail_by_name(&self, idle: &mut impl FnMut(&D::Queue)) {
        let mut queue = self.open(4, batch(4, 1, 4), false);
        let can = self.device.facts().probe.is_ok();
        let mut sink = Seen::new(4);
        for slot in 0..4 {
            assert_eq!(queue.submit(Slot(slot), Io::PROBE), Ok(()), "slot {slot}");
        }
        wait_for(&mut queue, &mut sink, 4, 4, idle);
        assert_eq!(sink.bad.is_none(), can, "{:?}", sink.bad);
        assert_eq!(queue.close(PATIENCE).abandoned_count, 0);
    }

    fn close_waits(&self, idle: &mut impl FnMut(&D::Queue)) {
        let mut queue = self.open(4, batch(4, 1, 4), false);
        for slot in 0..4 {
            let done = queue.submit(Slot(slot), self.io(Op::Read, u64::from(slot)));
            assert_eq!(done, Ok(()));
        }
        assert_eq!(queue.flush(), Ok(()));
        idle(&queue);
        let closed = queue.close(PATIENCE);
        assert_eq!(closed.abandoned_count, 0, "close waits for what completes");
    }

    fn what_is_written_is_read(&self, idle: &mut impl FnMut(&D::Queue)) {
        let mut queue = self.open(2, batch(1, 1, 1), true);
        let block = self.block_bytes() as usize;
        for at in 0..16 {
            let lba = self.contract.first_lba + at * 2;
            let io = |op| Io { lba, blocks: 2, op };
            let stamp = |index: usize| (lba as usize * 31 + index * 7 + index / block) as u8;
            let buffer = queue.buffer(Slot(0));
            let bytes = buffer.iter_mut().take(2 * block).enumerate();
            bytes.for_each(|(index, byte)| *byte = stamp(index));
            self.run(&mut queue, Slot(0), io(Op::Write), idle);
            if self.device.facts().flush.is_ok() {
                self.run(&mut queue, Slot(0), Io::FLUSH, idle);
            }
            queue.buffer(Slot(1)).fill(0);
            self.run(&mut queue, Slot(1), io(Op::Read), idle);
            let read = queue.buffer(Slot(1)).iter().take(2 * block).enumerate();
            let wrong = read
                .into_iter()
                .find(|&(index, &byte)| byte != stamp(index));
            assert!(
                !self.contract.keeps_data || wrong.is_none(),
                "block {lba} reads back otherwise at byte {:?}",
                wrong.map(|(index, _)| index)
            );
        }
        queue.close(PATIENCE);
    }

    /// Where the device has the command; elsewhere it fails by name and changes nothing.
    fn zeros_are_exactly_where_they_were_written(&self, idle: &mut impl FnMut(&D::Queue)) {
        let mut queue = self.open(2, batch(1, 1, 1), true);
        let (block, lba) = (self.block_bytes() as usize, self.contract.first_lba + 3);
        let io = |op, lba, blocks| Io { lba, blocks, op };
        let stamp = |index: usize| (index * 5 + index / block) as u8 | 1;
        let bytes = queue.buffer(Slot(0)).iter_mut().enumerate();
        bytes.for_each(|(index, byte)| *byte = stamp(index));
        self.run(&mut queue, Slot(0), io(Op::Write, lba, 4), idle);
        let mut sink = Seen::new(2);
        let zeros = io(Op::WriteZeroes, lba + 1, 2);
        assert_eq!(queue.submit(Slot(0), zeros), Ok(()));
        wait_for(&mut queue, &mut sink, 1, 1, idle);
        let can = self.device.facts().write_zeroes.is_ok();
        assert_eq!(sink.bad.is_none(), can, "zeros: {:?}", sink.bad);
        self.run(&mut queue, Slot(1), io(Op::Read, lba, 4), idle);
        let wanted = |index: usize| match index / block {
            1 | 2 if can => 0,
            _ => stamp(index),
        };
        let read = queue.buffer(Slot(1)).iter().enumerate();
        let wrong = read
            .into_iter()
            .find(|&(index, &byte)| byte != wanted(index));
        assert!(
            !self.contract.keeps_data || wrong.is_none(),
            "zeros in 2 blocks from {}: byte {:?} of {lba} is wrong",
            lba + 1,
            wrong.map(|(index, _)| index)
        );
        queue.close(PATIENCE);
    }

    fn run(&self, queue: &mut D::Queue, slot: Slot, io: Io, idle: &mut impl FnMut(&D::Queue)) {
        let mut sink = Seen::new(2);
        assert_eq!(queue.submit(slot, io), Ok(()), "{io:?}");
        wait_for(queue, &mut sink, 1, 1, idle);
        assert!(sink.bad.is_none(), "{io:?} failed: {:?}", sink.bad);
    }

    fn read(&self, queue: &mut D::Queue, io: Io, idle: &mut impl FnMut(&D::Queue)) -> Vec<u8> {
        self.run(queue, Slot(0), io, idle);
        queue.buffer(Slot(0))[..self.block_bytes() as usize].to_vec()
    }
}

const fn batch(submit: u32, complete_min: u32, complete_max: u32) -> Batch {
    Batch {
        submit,
        complete_min,
        complete_max,
    }
}

/// Polls until so many have completed; no poll may hand over more than `complete_max`.
fn wait_for<Q: Queue>(
    queue: &mut Q,
    sink: &mut Seen<'_>,
    wanted: u64,
    complete_max: usize,
    idle: &mut impl FnMut(&Q),
) {
    let start = Instant::now();
    while sink.total < wanted {
        let before = sink.total;
        match queue.poll(sink, Wait::AtMostNs(10_000_000)) {
            Ok(0) => idle(queue),
            Ok(found) => {
                assert!(found <= complete_max, "{found} in one poll");
                assert_eq!(
                    sink.total - before,
                    found as u64,
                    "poll counts its completions"
                );
            }
            Err(gone) => panic!("the device is gone: {gone:?}"),
        }
        assert!(start.elapsed() < PATIENCE, "{} of {wanted}", sink.total);
    }
}

/// Counts what completes, and sends more while there is some left.
struct Seen<'a> {
    counts: Vec<u64>,
    in_flight: Vec<bool>,
    total: u64,
    bad: Option<Status>,
    left: u64,
    next: Option<&'a dyn Fn(u64) -> Io>,
}

impl Seen<'_> {
    fn new(depth: u32) -> Self {
        Self {
            counts: vec![0; depth as usize],
            in_flight: vec![false; depth as usize],
            total: 0,
            bad: None,
            left: 0,
            next: None,
        }
    }
}

impl std::fmt::Debug for Seen<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "completions per slot: {:?}", self.counts)
    }
}

impl Sink for Seen<'_> {
    fn complete(&mut self, slot: Slot, status: Status, _buffer: &mut [u8]) -> Option<Io> {
        let index = slot.index();
        assert!(
            self.next.is_none() || self.in_flight[index],
            "slot {} completed with nothing in flight",
            slot.0
        );
        self.counts[index] += 1;
        self.total += 1;
        if !status.is_ok() {
            self.bad = Some(status);
        }
        let more = self.left > 0;
        self.in_flight[index] = more;
        if !more {
            return None;
        }
        self.left -= 1;
        self.next.map(|next| next(self.total))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::NullDevice;
    use crate::units::Bytes;

    const NULL: Contract = Contract {
        first_lba: 8,
        blocks: 1000,
        writes: true,
        keeps_data: false,
        ios_count: 100_000,
    };

    #[test]
    fn null_keeps_the_contract() {
        contract(&NullDevice::new("null", Bytes(1 << 20)), &NULL, &mut |_| ());
    }

    /// A queue that hands over more than `complete_max` is caught: the suite can fail.
    #[test]
    #[should_panic(expected = "in one poll")]
    fn the_suite_can_fail() {
        let mut greedy = NullDevice::new("null", Bytes(1 << 20)).open_queue(QueueSpec {
            reactor_index: 0,
            reactors_count: 1,
            slots_count: 4,
            slot_bytes: 512,
            batch: batch(4, 1, 4),
            writes: false,
        });
        let queue = greedy.as_mut().expect("null always opens");
        for slot in 0..4 {
            assert_eq!(queue.submit(Slot(slot), Io::FLUSH), Ok(()));
        }
        wait_for(queue, &mut Seen::new(4), 4, 3, &mut |_| ());
    }
}

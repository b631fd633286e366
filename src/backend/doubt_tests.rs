//! Failures that may mean that the device is gone: kept back until that is known, and never for long.
#![allow(clippy::unwrap_used)]

use super::ring_queue::{Fate, Notes, RingQueue, Rules};
use super::{Batch, Gone, Queue, QueueSpec, Sink, Wait};
use crate::errno::Errno;
use crate::request::{Io, Op, Slot, Status};
use crate::sys::slots::{Files, Request, SlotRing, SlotRingSpec};
use crate::sysfs::Sysfs;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

const FAILED: Status = Status::Short { got_bytes: 0 };
const GONE: Gone = Gone(Status::Errno(Errno(libc::ENODEV)));

/// A file of one block: reads of others fail. What they mean is the test's to say.
struct Unsure(Rc<Cell<Fate>>);

impl Rules for Unsure {
    type Kind = Files;

    fn request(&self, io: Io) -> Result<Request, Errno> {
        Ok(Request::Read {
            offset_bytes: io.lba * 512,
            length_bytes: 512,
        })
    }
    fn fate(&self, _status: Status) -> Fate {
        self.0.get()
    }
}

fn queue(fate: &Rc<Cell<Fate>>) -> RingQueue<Unsure> {
    let file = tempfile::tempfile().unwrap();
    file.set_len(512).unwrap();
    let spec = SlotRingSpec {
        slots_count: 4,
        slot_bytes: 512,
        discard_by_worker: false,
        polled: false,
    };
    let ring = SlotRing::new(&Sysfs::host(), Arc::new(file), spec).unwrap();
    let spec = QueueSpec {
        reactor_index: 0,
        reactors_count: 1,
        slots_count: 4,
        slot_bytes: 512,
        batch: Batch {
            submit: 4,
            complete_min: 1,
            complete_max: 4,
        },
        writes: false,
    };
    let at_close = (Sysfs::host(), Notes::default());
    RingQueue::new(ring, spec, Unsure(Rc::clone(fate)), at_close)
}

const fn read(lba: u64) -> Io {
    Io {
        lba,
        blocks: 1,
        op: Op::Read,
    }
}

/// Sends a read that fails in the place of each of the first few that end.
struct Refill {
    told: Vec<Status>,
    refills_count: usize,
}

impl Sink for Refill {
    fn complete(&mut self, _slot: Slot, status: Status, _buffer: &mut [u8]) -> Option<Io> {
        self.told.push(status);
        self.refills_count = self.refills_count.checked_sub(1)?;
        Some(read(9))
    }
}

/// One read that ends well and two that fail: only the first is told.
fn kept_back(queue: &mut RingQueue<Unsure>, sink: &mut Refill) {
    for (slot, lba) in [(0, 0), (1, 5), (2, 6)] {
        queue.submit(Slot(slot), read(lba)).unwrap();
    }
    let start = Instant::now();
    let mut found = 0;
    while start.elapsed() < Duration::from_millis(20) {
        found += queue.poll(sink, Wait::AtMostNs(1_000_000)).unwrap();
    }
    assert_eq!((found, sink.told.as_slice()), (1, &[Status::Ok][..]));
    assert_eq!(queue.kept_back_count(), 2);
}

#[test]
fn what_is_known_to_be_gone_is_told_without_a_refill() {
    let fate = Rc::new(Cell::new(Fate::MayBeGone));
    let mut queue = queue(&fate);
    let mut sink = Refill {
        told: Vec::new(),
        refills_count: 0,
    };
    kept_back(&mut queue, &mut sink);
    sink.refills_count = 9;
    fate.set(Fate::Gone(GONE));
    std::thread::sleep(Duration::from_millis(2));
    assert_eq!(queue.poll(&mut sink, Wait::Never), Err(GONE));
    assert_eq!(sink.told, [Status::Ok, FAILED, FAILED]);
    assert_eq!(queue.close(Duration::from_secs(1)).abandoned_count, 0);
}

#[test]
fn a_doubt_that_comes_to_nothing_ends_soon_and_is_the_last() {
    let fate = Rc::new(Cell::new(Fate::MayBeGone));
    let mut queue = queue(&fate);
    let mut sink = Refill {
        told: Vec::new(),
        refills_count: 0,
    };
    kept_back(&mut queue, &mut sink);
    sink.refills_count = 2;
    let start = Instant::now();
    while sink.told.len() < 3 {
        queue.poll(&mut sink, Wait::AtMostNs(100_000_000)).unwrap();
        assert!(start.elapsed() < Duration::from_secs(5), "{:?}", sink.told);
    }
    assert!(queue.is_trusted);
    // The second pair fails in the same way, and is told as soon as it is found.
    while sink.told.len() < 5 {
        let told_count = sink.told.len();
        let found = queue.poll(&mut sink, Wait::AtMostNs(100_000_000)).unwrap();
        assert_eq!(sink.told.len() - told_count, found);
        assert!(start.elapsed() < Duration::from_secs(5), "{:?}", sink.told);
    }
    assert_eq!(sink.told[1..], [FAILED; 4]);
    assert_eq!(queue.kept_back_count(), 0);
    assert_eq!(queue.close(Duration::from_secs(1)).abandoned_count, 0);
}

#[test]
fn what_is_kept_back_at_the_end_is_abandoned() {
    let fate = Rc::new(Cell::new(Fate::MayBeGone));
    let mut queue = queue(&fate);
    let mut sink = Refill {
        told: Vec::new(),
        refills_count: 0,
    };
    kept_back(&mut queue, &mut sink);
    assert_eq!(queue.close(Duration::from_secs(1)).abandoned_count, 2);
}

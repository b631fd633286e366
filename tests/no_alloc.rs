//! Between start and stop a reactor allocates nothing. A counting allocator proves it: each poll of a
//! queue notes how many allocations its thread has made since the first.
#![allow(clippy::unwrap_used)]
#![allow(unsafe_code)]

#[path = "shared/skipped.rs"]
mod skipped;

use lanemark::backend::uring::{UringDevice, UringOptions};
use lanemark::backend::{
    BackendError, Batch, Closed, Device, DeviceFacts, Full, Gone, NullDevice, Queue, QueueSpec,
    Sink, Wait,
};
use lanemark::measure::StampChoice;
use lanemark::reactor::{Control, ReactorSetup, StreamSetup, run_team};
use lanemark::request::{Io, Slot};
use lanemark::sys::clock::MachineClock;
use lanemark::sysfs::Sysfs;
use lanemark::units::Bytes;
use lanemark::workload::{
    Access, Arrival, DataPattern, Distribution, OpMix, Quota, Region, SizeShare, StreamSpec,
};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call is handed to the system's allocator unchanged, which upholds the contract.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // A thread that is being torn down has no counter any more.
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`; the pointer came from `System`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A device whose queues note their thread's allocations.
struct Watched<D> {
    device: D,
    seen: Arc<AtomicU64>,
    polls: Arc<AtomicU64>,
    /// Allocates in every poll, to show that it would be seen.
    guilty: bool,
}

struct WatchedQueue<Q> {
    queue: Q,
    first: Option<u64>,
    seen: Arc<AtomicU64>,
    polls: Arc<AtomicU64>,
    guilty: bool,
}

impl<D: Device> Device for Watched<D> {
    type Queue = WatchedQueue<D::Queue>;

    fn facts(&self) -> &DeviceFacts {
        self.device.facts()
    }
    fn features(&self) -> Vec<String> {
        Vec::new()
    }
    fn open_queue(&self, spec: QueueSpec) -> Result<Self::Queue, BackendError> {
        Ok(WatchedQueue {
            queue: self.device.open_queue(spec)?,
            first: None,
            seen: Arc::clone(&self.seen),
            polls: Arc::clone(&self.polls),
            guilty: self.guilty,
        })
    }
}

impl<Q: Queue> Queue for WatchedQueue<Q> {
    const SLEEPS: bool = Q::SLEEPS;
    const FOUND_TOGETHER: bool = Q::FOUND_TOGETHER;

    fn submit(&mut self, slot: Slot, io: Io) -> Result<(), Full> {
        self.queue.submit(slot, io)
    }
    fn flush(&mut self) -> Result<(), Gone> {
        self.queue.flush()
    }
    fn poll<S: Sink>(&mut self, sink: &mut S, wait: Wait) -> Result<usize, Gone> {
        let now = ALLOCATIONS.with(Cell::get);
        let first = *self.first.get_or_insert(now);
        self.seen.store(now - first, Ordering::Relaxed);
        self.polls.fetch_add(1, Ordering::Relaxed);
        if self.guilty {
            drop(std::hint::black_box(Box::new(1_u8)));
        }
        self.queue.poll(sink, wait)
    }
    fn buffer(&mut self, slot: Slot) -> &mut [u8] {
        self.queue.buffer(slot)
    }
    fn close(self, limit: Duration) -> Closed {
        self.queue.close(limit)
    }
}

fn spec(blocks: u64) -> StreamSpec {
    StreamSpec {
        device_index: 0,
        ops: OpMix::ReadWrite { read_pct: 70.0 },
        access: Access::Random {
            distribution: Distribution::Uniform,
            random_pct: 80.0,
        },
        sizes: vec![
            SizeShare {
                blocks: 8,
                share_pct: 60.0,
            },
            SizeShare {
                blocks: 32,
                share_pct: 40.0,
            },
        ],
        align_blocks: 8,
        region: Region {
            first_lba: 0,
            blocks,
        },
        depth: 16,
        arrival: Arrival::Closed,
        flush_every: None,
        quota: Quota::default(),
        data: DataPattern::Random,
        seed: 1,
    }
}

/// Allocations and polls of one run that crosses the ramp's end and two seconds.
fn allocations<D: Device + Sync>(device: D, spec: StreamSpec, guilty: bool) -> (u64, u64) {
    let (seen, polls) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let block_bytes = device.facts().logical_block.bytes();
    let watched = Watched {
        device,
        seen: Arc::clone(&seen),
        polls: Arc::clone(&polls),
        guilty,
    };
    let depth = spec.depth;
    let setup = ReactorSetup {
        index: 0,
        cpu: None,
        streams: vec![StreamSetup {
            spec,
            index: 0,
            step_streams_count: 1,
            block_bytes,
        }],
        batch: Batch {
            submit: depth,
            complete_min: 1,
            complete_max: depth,
        },
        ramp_ns: 200_000_000,
        runtime_ns: Some(2_200_000_000),
        grace_ns: 5_000_000_000,
        max_errors: None,
        stamp: StampChoice::Auto,
    };
    let clock = MachineClock::new(&Sysfs::host());
    let control = Arc::new(Control::default());
    run_team(&[watched], &[setup], &clock, &control, &mut |_| {}).unwrap();
    (seen.load(Ordering::Relaxed), polls.load(Ordering::Relaxed))
}

#[test]
fn a_reactor_allocates_nothing_between_start_and_stop() {
    let null = || NullDevice::new("null", Bytes(1 << 40));
    for (name, spec) in [
        ("mix", spec(1 << 31)),
        (
            "zipf",
            StreamSpec {
                access: Access::Random {
                    distribution: Distribution::Zipf(1.2),
                    random_pct: 100.0,
                },
                ..spec(1 << 31)
            },
        ),
        (
            "open loop",
            StreamSpec {
                arrival: Arrival::Poisson { iops: 50_000.0 },
                ..spec(1 << 31)
            },
        ),
        (
            "flushes",
            StreamSpec {
                ops: OpMix::Write,
                flush_every: Some(10),
                ..spec(1 << 31)
            },
        ),
    ] {
        let (count, polls) = allocations(null(), spec, false);
        assert!(polls > 1000, "{name}: {polls} polls");
        assert_eq!(count, 0, "{name}");
    }
    let (count, polls) = allocations(null(), spec(1 << 31), true);
    assert!(
        count >= polls - 1,
        "a guilty queue must be seen: {count} of {polls}"
    );
}

#[test]
fn io_uring_allocates_nothing_between_start_and_stop() {
    let mut file = tempfile::NamedTempFile::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    std::io::Write::write_all(&mut file, &vec![1; 8 << 20]).unwrap();
    let options = UringOptions {
        writes: true,
        ..UringOptions::default()
    };
    let device = match UringDevice::open(file.path(), options) {
        Ok(device) => device,
        Err(error) => {
            skipped::skipped(&error.to_string());
            return;
        }
    };
    let blocks = device.facts().blocks().0;
    let spec = StreamSpec {
        sizes: vec![SizeShare {
            blocks: 8,
            share_pct: 100.0,
        }],
        ..spec(blocks)
    };
    let (count, polls) = allocations(device, spec, false);
    assert!(polls > 100, "{polls} polls");
    assert_eq!(count, 0);
}

//! The uring backend on loop and zram devices.

use crate::skipped::skipped;
use crate::support::{Loop, Stuck, Zram, lab};
use lanemark::backend::contract::{Contract, contract};
use lanemark::backend::uring::{UringDevice, UringOptions, UringQueue};
use lanemark::backend::{BackendError, Batch, Device, DeviceKind, Queue, QueueSpec, Sink, Wait};
use lanemark::errno::Errno;
use lanemark::request::{Io, Op, Slot, Status};
use std::path::Path;
use std::time::{Duration, Instant};

const WRITES: UringOptions = UringOptions {
    writes: true,
    poll: true,
};

#[derive(Default)]
struct Last(Option<(Status, Vec<u8>)>);

impl Sink for Last {
    fn complete(&mut self, _slot: Slot, status: Status, buffer: &mut [u8]) -> Option<Io> {
        self.0 = Some((status, buffer.to_vec()));
        None
    }
}

fn open_queue(device: &UringDevice, depth: u32) -> UringQueue {
    let spec = QueueSpec {
        reactor_index: 0,
        reactors_count: 1,
        slots_count: depth,
        slot_bytes: 4096,
        batch: Batch {
            submit: depth,
            complete_min: 1,
            complete_max: depth,
        },
        writes: true,
    };
    device.open_queue(spec).unwrap()
}

fn one(queue: &mut UringQueue, op: Op, lba: u64, blocks: u32) -> (Status, Vec<u8>) {
    queue.submit(Slot(0), Io { lba, blocks, op }).unwrap();
    let mut last = Last::default();
    while last.0.is_none() {
        queue.poll(&mut last, Wait::AtMostNs(100_000_000)).unwrap();
    }
    last.0.unwrap()
}

fn open(path: &Path, options: UringOptions) -> UringDevice {
    UringDevice::open(path, options).unwrap()
}

#[test]
fn loop_and_zram_keep_the_contract() {
    let Some(_lab) = lab() else { return };
    let rules = |ios_count| Contract {
        first_lba: 5,
        blocks: 2000,
        writes: true,
        keeps_data: true,
        ios_count,
    };
    let dir = tempfile::tempdir().unwrap();
    for sector in ["512", "4096"] {
        let device = Loop::sparse(dir.path(), 64 << 20, &["--sector-size", sector]);
        contract(&open(&device.path, WRITES), &rules(20_000), &mut |_| ());
    }
    if let Some(zram) = Zram::new(64 << 20) {
        let device = open(&zram.path, WRITES);
        contract(&device, &rules(100_000), &mut |_| ());
        // zram takes no NOWAIT: the record must say who did the work.
        let features = device.features();
        let workers = |line: &String| line.contains("worker threads");
        assert!(features.iter().any(workers), "{features:?}");
    }
}

#[test]
fn facts_of_a_4kn_device_past_32_bits() {
    let Some(_lab) = lab() else { return };
    let dir = tempfile::tempdir().unwrap();
    let huge = Loop::sparse(dir.path(), 8 << 40, &["--sector-size", "512"]);
    let device = open(&huge.path, UringOptions::default());
    let facts = device.facts();
    assert_eq!((facts.kind, facts.capacity.0), (DeviceKind::Block, 8 << 40));
    assert_eq!(facts.logical_block.bytes(), 512);
    assert_eq!(facts.device_depth, Some(128));
    assert!(facts.max_io.is_some() && facts.rotational.is_some());
    let far = facts.blocks().0 - 1;
    assert!(far > 1 << 32);
    let mut queue = open_queue(&device, 1);
    assert_eq!(one(&mut queue, Op::Read, far, 1).0, Status::Ok);
    let past = one(&mut queue, Op::Read, far + 1, 1).0;
    assert!(
        matches!(past, Status::Short { got_bytes: 0 } | Status::Errno(_)),
        "{past:?}"
    );
    queue.close(Duration::ZERO);
    let four = Loop::sparse(dir.path(), 16 << 20, &["--sector-size", "4096"]);
    let device = open(&four.path, UringOptions::default());
    assert_eq!(device.facts().logical_block.bytes(), 4096);
    assert_eq!(device.facts().blocks().0, 4096);
}

#[test]
fn trim_takes_its_range_and_nothing_beside_it() {
    let Some(_lab) = lab() else { return };
    let dir = tempfile::tempdir().unwrap();
    let made = Loop::sparse(dir.path(), 16 << 20, &["--sector-size", "4096"]);
    let device = open(&made.path, WRITES);
    if let Err(why) = &device.facts().trim {
        assert!(why.contains("6.12") || why.contains("discard"), "{why}");
        skipped(why);
        return;
    }
    let mut queue = open_queue(&device, 1);
    for lba in 0..8 {
        queue.buffer(Slot(0)).fill(lba as u8 + 1);
        assert_eq!(one(&mut queue, Op::Write, lba, 1).0, Status::Ok);
    }
    assert_eq!(one(&mut queue, Op::Flush, 0, 0).0, Status::Ok);
    assert_eq!(one(&mut queue, Op::Trim, 2, 3).0, Status::Ok);
    for lba in 0..8 {
        let (status, bytes) = one(&mut queue, Op::Read, lba, 1);
        let wanted = if (2..5).contains(&lba) {
            0
        } else {
            lba as u8 + 1
        };
        assert_eq!((status, bytes[0]), (Status::Ok, wanted), "block {lba}");
    }
    queue.close(Duration::ZERO);
    // A trim needs the device open for writing: opened for reading it never reaches the kernel.
    drop(device);
    let device = open(&made.path, UringOptions::default());
    let mut queue = open_queue(&device, 1);
    let refused = one(&mut queue, Op::Trim, 5, 1).0;
    assert_eq!(refused, Status::Errno(Errno(libc::EPERM)));
    queue.close(Duration::ZERO);
}

#[test]
fn writes_want_the_device_for_themselves() {
    let Some(_lab) = lab() else { return };
    let dir = tempfile::tempdir().unwrap();
    let made = Loop::sparse(dir.path(), 16 << 20, &[]);
    let held = open(&made.path, WRITES);
    let second = UringDevice::open(&made.path, WRITES);
    assert!(
        matches!(&second, Err(BackendError::Open { errno: Errno(libc::EBUSY), hint, .. })
            if hint.contains("mounted or held")),
        "{second:?}"
    );
    // Reading is allowed all the same.
    open(&made.path, UringOptions::default());
    drop(held);
    open(&made.path, WRITES);
}

#[test]
fn a_device_that_never_answers_is_abandoned_in_time() {
    let Some(_lab) = lab() else { return };
    let Some(stuck) = Stuck::new() else {
        return;
    };
    let device = open(&stuck.outer.path, UringOptions::default());
    // As many as fit into the device's tags: none waits in a worker, so this thread can end.
    let depth = device.facts().device_depth.unwrap().min(16);
    let mut queue = open_queue(&device, depth);
    for slot in 0..depth {
        let io = Io {
            lba: 1000 + u64::from(slot) * 64,
            blocks: 1,
            op: Op::Read,
        };
        queue.submit(Slot(slot), io).unwrap();
    }
    let start = Instant::now();
    let mut last = Last::default();
    assert_eq!(queue.poll(&mut last, Wait::AtMostNs(50_000_000)), Ok(0));
    assert!(
        start.elapsed() < Duration::from_secs(2),
        "a poll ends in time"
    );
    let closed = queue.close(Duration::from_millis(100));
    assert_eq!(closed.abandoned_count, depth);
    assert!(
        start.elapsed() < Duration::from_secs(2),
        "close ends in time"
    );
    drop(stuck);
}

/// More in flight than the device has tags: the threads and the process that measured cannot end.
#[test]
fn a_run_on_a_device_that_never_answers_ends_in_time() {
    let Some(_lab) = lab() else { return };
    let Some(stuck) = Stuck::new() else {
        return;
    };
    let start = Instant::now();
    let done = std::process::Command::new(env!("CARGO_BIN_EXE_lanemark"))
        .args(["run", "--rw", "randread", "--bs", "4k", "--iodepth", "192"])
        .args(["--runtime", "1s", "--grace", "1s", "--format", "json"])
        .arg("--device")
        .arg(&stuck.outer.path)
        .output()
        .unwrap();
    let took = start.elapsed();
    let record: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    let step = &record["steps"][0];
    assert_eq!(done.status.code(), Some(1), "{record}");
    assert_eq!(step["abandoned_count"], 192, "{step}");
    // Runtime, grace and ramp, and the look for never-written blocks, which gives up after 5 s.
    assert!(took < Duration::from_secs(12), "{took:?}");
    // The device answers at last, and the process left behind can end.
    drop(stuck.throttle);
    std::thread::sleep(Duration::from_secs(1));
}

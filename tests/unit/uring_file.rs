//! The uring backend on regular files: no root, no devices. Skipped, with the reason printed, where the
//! temporary folder's file system refuses direct I/O.

use crate::skipped::skipped;
use lanemark::backend::contract::{Contract, contract};
use lanemark::backend::uring::{UringDevice, UringOptions};
use lanemark::backend::{BackendError, Batch, Device, DeviceKind, Queue, QueueSpec, Sink, Wait};
use lanemark::errno::Errno;
use lanemark::request::{Io, Op, Slot, Status};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

const WRITES: UringOptions = UringOptions {
    writes: true,
    poll: true,
};

fn open(path: &Path, options: UringOptions) -> Option<UringDevice> {
    match UringDevice::open(path, options) {
        Ok(device) => Some(device),
        Err(BackendError::Open {
            errno: Errno(libc::EINVAL),
            hint,
            ..
        }) => {
            skipped(&hint);
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn filled(dir: &Path, bytes: usize) -> std::path::PathBuf {
    let path = dir.join("data");
    let file = File::create(&path).unwrap();
    let data: Vec<u8> = (0..bytes).map(|at| (at / 512) as u8).collect();
    file.write_all_at(&data, 0).unwrap();
    file.sync_all().unwrap();
    path
}

fn spec(slots_count: u32, slot_bytes: u32, batch: Batch) -> QueueSpec {
    QueueSpec {
        reactor_index: 0,
        reactors_count: 1,
        slots_count,
        slot_bytes,
        batch,
        writes: false,
    }
}

const ONE: Batch = Batch {
    submit: 1,
    complete_min: 1,
    complete_max: 1,
};

#[derive(Default)]
struct Got(Vec<(Slot, Status, Vec<u8>)>);

impl Sink for Got {
    fn complete(&mut self, slot: Slot, status: Status, buffer: &mut [u8]) -> Option<Io> {
        self.0.push((slot, status, buffer.to_vec()));
        None
    }
}

#[test]
fn a_file_keeps_the_contract() {
    let dir = tempfile::tempdir().unwrap();
    let path = filled(dir.path(), 8 << 20);
    let Some(device) = open(&path, WRITES) else {
        return;
    };
    let rules = Contract {
        first_lba: 16,
        blocks: 1024,
        writes: true,
        keeps_data: true,
        ios_count: 20_000,
    };
    contract(&device, &rules, &mut |_| ());
}

#[test]
fn facts_of_a_file_are_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let path = filled(dir.path(), 1 << 20);
    let Some(device) = open(&path, UringOptions::default()) else {
        return;
    };
    let facts = device.facts();
    assert_eq!((facts.kind, facts.capacity.0), (DeviceKind::File, 1 << 20));
    assert!(facts.logical_block.bytes() >= 512);
    assert!(facts.trim.as_ref().is_err_and(|why| why.contains("holes")));
    assert!(!facts.own_scratch);
    let device = device.with_facts(|facts| facts.own_scratch = true);
    assert!(device.facts().own_scratch);
}

#[test]
fn features_are_named_once_a_queue_is_open() {
    let dir = tempfile::tempdir().unwrap();
    let path = filled(dir.path(), 1 << 20);
    let Some(device) = open(&path, UringOptions::default()) else {
        return;
    };
    let queue = device.open_queue(spec(8, 4096, ONE)).unwrap();
    let features = device.features();
    let has = |start: &str| features.iter().any(|line| line.starts_with(start));
    assert!(has("polled: no, not a block device"), "{features:?}");
    assert!(
        has("registered buffers") && has("buffers on"),
        "{features:?}"
    );
    queue.close(Duration::ZERO);
}

#[test]
fn each_block_reads_its_own_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let path = filled(dir.path(), 1 << 20);
    let Some(device) = open(&path, UringOptions::default()) else {
        return;
    };
    let block = device.facts().logical_block.bytes();
    let mut queue = device.open_queue(spec(1, block, ONE)).unwrap();
    for lba in [0, 1, 7, 100] {
        let io = Io {
            lba,
            blocks: 1,
            op: Op::Read,
        };
        queue.submit(Slot(0), io).unwrap();
        let mut got = Got::default();
        while queue.poll(&mut got, Wait::AtMostNs(100_000_000)) == Ok(0) {}
        let (_, status, bytes) = &got.0[0];
        assert_eq!(*status, Status::Ok);
        assert_eq!(
            bytes[0],
            (lba * u64::from(block) / 512) as u8,
            "block {lba}"
        );
    }
    queue.close(Duration::ZERO);
}

#[test]
fn a_short_read_is_an_error_and_never_retried() {
    let dir = tempfile::tempdir().unwrap();
    let path = filled(dir.path(), 1 << 20);
    let Some(device) = open(&path, UringOptions::default()) else {
        return;
    };
    let block = device.facts().logical_block.bytes();
    // The file shrinks under us: two of four blocks are left.
    let last = device.facts().blocks().0 - 4;
    let left = (last + 2) * u64::from(block);
    File::options()
        .write(true)
        .open(&path)
        .unwrap()
        .set_len(left)
        .unwrap();
    let mut queue = device.open_queue(spec(2, 4 * block, ONE)).unwrap();
    let read = |lba, blocks| Io {
        lba,
        blocks,
        op: Op::Read,
    };
    queue.submit(Slot(1), read(last, 4)).unwrap();
    let mut got = Got::default();
    while queue.poll(&mut got, Wait::AtMostNs(100_000_000)) == Ok(0) {}
    let short = Status::Short {
        got_bytes: 2 * block,
    };
    assert_eq!((got.0.len(), got.0[0].1), (1, short));
    assert_eq!(queue.poll(&mut got, Wait::Never), Ok(0));
    queue.close(Duration::ZERO);
}

#[test]
fn what_the_queue_refuses_is_reported_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let path = filled(dir.path(), 1 << 20);
    let Some(device) = open(&path, WRITES) else {
        return;
    };
    let block = device.facts().logical_block.bytes();
    let mut queue = device
        .open_queue(QueueSpec {
            writes: true,
            ..spec(2, block, ONE)
        })
        .unwrap();
    for (op, blocks, errno) in [(Op::Trim, 1, libc::EOPNOTSUPP), (Op::Read, 2, libc::EINVAL)] {
        queue.submit(Slot(0), Io { lba: 0, blocks, op }).unwrap();
        let mut got = Got::default();
        assert_eq!(queue.poll(&mut got, Wait::Never), Ok(1));
        assert_eq!(got.0[0].1, Status::Errno(Errno(errno)), "{op:?}");
    }
    queue.close(Duration::ZERO);
}

#[test]
fn unsuitable_files_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f");
    for (bytes, why) in [(0, "is empty"), (100, "less than one block")] {
        File::create(&path).unwrap().set_len(bytes).unwrap();
        match UringDevice::open(&path, UringOptions::default()) {
            Err(BackendError::Unsuitable { why: text, .. }) => {
                assert!(text.contains(why), "{text}");
            }
            Err(BackendError::Open { hint, .. }) => skipped(&hint),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn the_deepest_ring_works_and_a_deeper_one_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = filled(dir.path(), 1 << 20);
    let Some(device) = open(&path, UringOptions::default()) else {
        return;
    };
    let deeper = device.open_queue(spec(32_769, 512, ONE));
    assert!(matches!(deeper, Err(BackendError::Unsuitable { .. })));
    // A quarter of the limit: 32 MiB of buffers.
    let deep = Batch {
        submit: 8192,
        complete_min: 8192,
        complete_max: 8192,
    };
    let block = device.facts().logical_block.bytes();
    let mut queue = match device.open_queue(spec(8192, block, deep)) {
        Ok(queue) => queue,
        // Rings count against RLIMIT_MEMLOCK, which is 64 KiB for users of older distributions.
        Err(BackendError::Setup {
            errno: Errno(libc::ENOMEM),
            hint,
            ..
        }) => {
            assert!(hint.contains("ulimit -l"), "{hint}");
            skipped(&format!("a low RLIMIT_MEMLOCK{hint}"));
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let blocks = device.facts().blocks().0;
    for slot in 0..8192 {
        let io = Io {
            lba: u64::from(slot) % blocks,
            blocks: 1,
            op: Op::Read,
        };
        queue.submit(Slot(slot), io).unwrap();
    }
    let mut got = Got::default();
    while got.0.len() < 8192 {
        queue.poll(&mut got, Wait::AtMostNs(100_000_000)).unwrap();
    }
    assert!(got.0.iter().all(|(_, status, _)| status.is_ok()));
    queue.close(Duration::ZERO);
}

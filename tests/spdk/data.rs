//! What is written through SPDK is what others read, and the other way round; queues and formats that cannot be
//! had are refused by name.

use crate::spdk_target::target;
use lanemark::backend::spdk::SpdkDevice;
use lanemark::backend::uring::{UringDevice, UringOptions};
use lanemark::backend::{BackendError, Batch, Device, Queue, QueueSpec, Sink, Wait};
use lanemark::request::{Io, Op, Slot, Status};
use lanemark::spdk::SpdkError;
use lanemark::sysfs::Sysfs;
use serde_json::json;
use std::time::{Duration, Instant};

const NQN: &str = "nqn.2026-01.io.lanemark:data";
const BLOCK: usize = 4096;

fn open(id: &str) -> Vec<SpdkDevice> {
    SpdkDevice::open_all(&Sysfs::host(), &[id]).unwrap()
}

fn spec(reactor_index: u32) -> QueueSpec {
    QueueSpec {
        reactor_index,
        reactors_count: 8,
        slots_count: 4,
        slot_bytes: 256 * BLOCK as u32,
        batch: Batch {
            submit: 4,
            complete_min: 1,
            complete_max: 4,
        },
        writes: true,
    }
}

/// Keeps the last status and the buffer that came with it.
#[derive(Default)]
struct Last(Option<(Status, Vec<u8>)>);

impl Sink for Last {
    fn complete(&mut self, _slot: Slot, status: Status, buffer: &mut [u8]) -> Option<Io> {
        self.0 = Some((status, buffer.to_vec()));
        None
    }
}

/// One I/O to its end; the buffer.
#[track_caller]
fn run<Q: Queue>(queue: &mut Q, io: Io) -> Vec<u8> {
    queue.submit(Slot(1), io).unwrap();
    let (mut sink, start) = (Last::default(), Instant::now());
    while sink.0.is_none() {
        queue.poll(&mut sink, Wait::Never).unwrap();
        assert!(
            start.elapsed() < Duration::from_secs(10),
            "{io:?} did not complete"
        );
    }
    let (status, buffer) = sink.0.unwrap();
    assert_eq!(status, Status::Ok, "{io:?}");
    buffer
}

fn pattern(seed: usize, bytes: usize) -> Vec<u8> {
    (0..bytes)
        .map(|at| (at / 512 * 7 + at + seed * 131) as u8)
        .collect()
}

#[test]
fn a_file_behind_the_target_holds_what_spdk_wrote_and_spdk_reads_what_the_file_holds() {
    let Some(target) = target() else { return };
    let path = target.dir().join("disk");
    let file = std::fs::File::options()
        .create(true)
        .write(true)
        .truncate(true)
        .open(&path)
        .unwrap();
    file.set_len(64 << 20).unwrap();
    target.rpc(
        "bdev_aio_create",
        json!({ "name": "a0", "filename": path.to_str().unwrap(), "block_size": 4096 }),
    );
    target.subsystem(NQN, &[(1, "a0")]);
    let options = UringOptions {
        writes: true,
        ..UringOptions::default()
    };
    let by_kernel = UringDevice::open_at(&Sysfs::host(), &path, options).unwrap();
    let mut ring = by_kernel.open_queue(spec(0)).unwrap();
    // Blocks of a file may be smaller than those of the bdev on it.
    let per_block = BLOCK as u32 / by_kernel.facts().logical_block.bytes();
    let io_of_512 = |op, lba: u64, blocks: u32| Io {
        lba: lba * u64::from(per_block),
        blocks: blocks * per_block,
        op,
    };
    for id in [target.tcp(NQN), target.vfio_user(NQN)] {
        let devices = open(&id);
        let mut queue = devices[0].open_queue(spec(0)).unwrap();
        // 1 block, and 1 MiB: one command, and several made by the driver.
        for (lba, blocks) in [(3_u64, 1_u32), (300, 256)] {
            let bytes = blocks as usize * BLOCK;
            let io = |op| Io { lba, blocks, op };
            queue.buffer(Slot(1))[..bytes].copy_from_slice(&pattern(1, bytes));
            run(&mut queue, io(Op::Write));
            run(&mut queue, Io::FLUSH);
            let there = run(&mut ring, io_of_512(Op::Read, lba, blocks));
            assert!(
                there[..bytes] == pattern(1, bytes),
                "{id}: io_uring reads {blocks} blocks as SPDK wrote them"
            );
            ring.buffer(Slot(1))[..bytes].copy_from_slice(&pattern(2, bytes));
            run(&mut ring, io_of_512(Op::Write, lba, blocks));
            queue.buffer(Slot(1)).fill(0);
            let read = run(&mut queue, io(Op::Read));
            assert!(
                read[..bytes] == pattern(2, bytes),
                "{id}: SPDK reads {blocks} blocks as io_uring wrote them"
            );
        }
        assert_eq!(queue.close(Duration::from_secs(5)).abandoned_count, 0);
    }
}

#[test]
fn trimmed_blocks_read_as_zeros_and_their_neighbours_stay() {
    let Some(target) = target() else { return };
    target.malloc("m0", 4096, 4096);
    target.subsystem(NQN, &[(1, "m0")]);
    let devices = open(&target.tcp(NQN));
    assert_eq!(devices[0].facts().trim, Ok(()));
    let mut queue = devices[0].open_queue(spec(0)).unwrap();
    let io = |op, lba, blocks| Io { lba, blocks, op };
    queue.buffer(Slot(1))[..4 * BLOCK].copy_from_slice(&pattern(3, 4 * BLOCK));
    run(&mut queue, io(Op::Write, 8, 4));
    run(&mut queue, io(Op::Trim, 9, 2));
    let read = run(&mut queue, io(Op::Read, 8, 4));
    let mut expected = pattern(3, 4 * BLOCK);
    expected[BLOCK..3 * BLOCK].fill(0);
    assert!(
        read[..4 * BLOCK] == expected,
        "exactly the trimmed blocks are zero"
    );
    queue.close(Duration::from_secs(5));
}

/// The contract looks at the bytes; here what the record says of them, and what is refused.
#[test]
fn zeros_are_written_by_command_and_counted_apart() {
    let Some(target) = target() else { return };
    target.malloc("m0", 4096, 4096);
    target.subsystem(NQN, &[(1, "m0")]);
    let id = target.tcp(NQN);
    let devices = open(&id);
    let most = devices[0].facts().write_zeroes.clone().unwrap().unwrap();
    let mut queue = devices[0].open_queue(spec(0)).unwrap();
    let io = |op, lba, blocks| Io { lba, blocks, op };
    for lba in [0, 4, 8, 12] {
        queue.buffer(Slot(1))[..4 * BLOCK].copy_from_slice(&pattern(3, 4 * BLOCK));
        run(&mut queue, io(Op::Write, lba, 4));
    }
    queue.close(Duration::from_secs(5));
    drop(devices);
    let zeroes = |more: &str| {
        let words = format!("--rw writezeroes --bs 8k --size 32k --number_ios 4 {more}");
        let words: Vec<&str> = words.split_whitespace().collect();
        crate::spdk_target::run(&id, &words)
    };
    assert_eq!(zeroes("").code, Some(3), "no consent");
    let done = zeroes("--allow-write LANEMARK01 --ramp_time 0s");
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let step = &done.json()["steps"][0];
    assert_eq!(step["writezeroes"]["ios_count"], 4, "{step}");
    assert_eq!(step["writezeroes"]["bytes_count"], 32 << 10);
    assert!(step["write"].is_null());
    let large = format!("--bs {}", most.0 + 4096);
    let refused = zeroes(&format!("{large} --size 100% --allow-write LANEMARK01"));
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    let devices = open(&id);
    let mut queue = devices[0].open_queue(spec(0)).unwrap();
    for (lba, zeros) in [(0, true), (4, true), (8, false), (12, false)] {
        let read = run(&mut queue, io(Op::Read, lba, 4));
        let zeroed = read[..4 * BLOCK].iter().all(|byte| *byte == 0);
        assert_eq!(zeroed, zeros, "block {lba}");
    }
    queue.close(Duration::from_secs(5));
}

#[test]
fn fewer_queues_than_reactors_are_refused_by_name() {
    let Some(target) = target() else { return };
    target.null("n0", 4096);
    target.subsystem(NQN, &[(1, "n0")]);
    // One of them is the admin queue's.
    let devices = open(&target.tcp_with(NQN, json!({ "max_io_qpairs_per_ctrlr": 3 })));
    let granted = devices[0].controller().io_queues_count();
    let mut queues = Vec::new();
    let error = loop {
        match devices[0].open_queue(spec(queues.len() as u32)) {
            Ok(queue) => queues.push(queue),
            Err(error) => break error,
        }
        assert!(queues.len() < 16, "a grant of {granted} does not bind");
    };
    assert_eq!(queues.len() as u32, granted);
    let BackendError::Spdk(SpdkError::NoQueue {
        granted_count,
        asked_count,
        ..
    }) = &error
    else {
        panic!("{error}")
    };
    assert_eq!((*granted_count, *asked_count), (granted, 8));
    assert!(
        error
            .to_string()
            .contains(&format!("granted {granted}, 8 are needed")),
        "{error}"
    );
    for queue in queues {
        queue.close(Duration::from_secs(5));
    }
}

#[test]
fn interleaved_metadata_is_refused_by_name() {
    let Some(target) = target() else { return };
    target.rpc(
        "bdev_malloc_create",
        json!({ "name": "m0", "num_blocks": 4096, "block_size": 4096, "md_size": 16, "md_interleave": true }),
    );
    target.subsystem(NQN, &[(1, "m0")]);
    let error = SpdkDevice::open_all(&Sysfs::host(), &[&target.tcp(NQN)])
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("16 bytes of interleaved metadata per 4096-byte block"),
        "{error}"
    );
}

/// The controller inserts, checks and strips the tags, or the format is refused by name.
#[test]
fn protection_information_travels_without_us_or_is_refused_by_name() {
    let Some(target) = target() else { return };
    target.rpc(
        "bdev_malloc_create",
        json!({ "name": "m0", "num_blocks": 4096, "block_size": 512, "md_size": 8, "md_interleave": true, "dif_type": 1 }),
    );
    target.subsystem(NQN, &[(1, "m0")]);
    let devices = match SpdkDevice::open_all(&Sysfs::host(), &[&target.tcp(NQN)]) {
        Ok(devices) => devices,
        Err(error) => {
            let text = error.to_string();
            assert!(text.contains("protection information"), "{text}");
            return;
        }
    };
    let features = devices[0].features().join("; ");
    assert!(features.contains("PRACT"), "{features}");
    let mut queue = devices[0].open_queue(spec(0)).unwrap();
    let io = |op| Io {
        lba: 70,
        blocks: 8,
        op,
    };
    queue.buffer(Slot(1))[..BLOCK].copy_from_slice(&pattern(5, BLOCK));
    run(&mut queue, io(Op::Write));
    queue.buffer(Slot(1)).fill(0);
    let read = run(&mut queue, io(Op::Read));
    assert!(read[..BLOCK] == pattern(5, BLOCK));
    queue.close(Duration::from_secs(5));
}

#[test]
fn writes_need_consent_and_an_empty_device_and_what_was_refused_is_untouched() {
    let Some(target) = target() else { return };
    target.malloc("m0", 16384, 4096);
    target.subsystem(NQN, &[(1, "m0")]);
    let id = target.tcp(NQN);
    let write = |more: &[&str]| {
        crate::spdk_target::run(
            &id,
            &[
                &["--rw", "randwrite", "--iodepth", "4", "--number_ios", "100"],
                more,
            ]
            .concat(),
        )
    };
    let refused = write(&[]);
    assert_eq!(refused.code, Some(3), "{refused:?}");
    assert!(
        refused.stderr.contains("--allow-write"),
        "{}",
        refused.stderr
    );
    assert_eq!(write(&["--allow-write", "OTHER"]).code, Some(3));
    assert_eq!(
        write(&["--allow-write", "LANEMARK01"]).code,
        Some(0),
        "an empty device may be written"
    );
    // A signature is found through SPDK, and only naming it overrides it.
    let devices = open(&id);
    let mut queue = devices[0].open_queue(spec(0)).unwrap();
    queue.buffer(Slot(1))[..BLOCK].fill(0);
    queue.buffer(Slot(1))[510..512].copy_from_slice(&[0x55, 0xaa]);
    queue.buffer(Slot(1))[450] = 0x83; // a partition of type Linux
    queue.buffer(Slot(1))[454..462].copy_from_slice(&[0, 8, 0, 0, 0, 8, 0, 0]);
    run(
        &mut queue,
        Io {
            lba: 0,
            blocks: 1,
            op: Op::Write,
        },
    );
    queue.close(Duration::from_secs(5));
    drop(devices);
    let refused = write(&["--allow-write", &id]);
    assert_eq!(refused.code, Some(3), "{refused:?}");
    assert!(
        refused.stderr.contains("partition table"),
        "{}",
        refused.stderr
    );
}

#[test]
fn health_and_identity_come_through_admin_commands() {
    let Some(target) = target() else { return };
    target.null("n0", 4096);
    target.subsystem(NQN, &[(1, "n0")]);
    let devices = open(&target.vfio_user(NQN));
    let controller = devices[0].controller();
    let identify = controller.identify();
    assert_eq!(
        (identify.serial.as_str(), identify.model.as_str()),
        ("LANEMARK01", "lanemark test")
    );
    assert!(devices[0].namespace().ids.uuid.is_some());
    match controller.smart() {
        Ok(log) => assert!(log.used_pct <= 100, "{log:?}"),
        Err(error) => assert!(
            error.to_string().contains("Get Log Page (SMART) failed"),
            "{error}"
        ),
    }
}

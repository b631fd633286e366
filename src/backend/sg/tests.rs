//! The backend over a disk in memory: the contract, formats, limits, failures and order.
#![allow(clippy::unwrap_used)]

use super::fake::{FakeFile, FakeNode, Fault};
use super::{Kernel, SgDevice, SgQueue};
use crate::backend::contract::{Contract, contract};
use crate::backend::{BackendError, Batch, Device, Full, Gone, Queue, QueueSpec, Sink, Wait};
use crate::errno::Errno;
use crate::request::{Io, Op, Slot, Status};
use crate::sysfs::Sysfs;
use crate::sysfs::scsi::ScsiQueue;
use crate::units::Bytes;
use std::path::PathBuf;
use std::time::Duration;

pub(super) fn kernel(depth: Option<u32>) -> Kernel {
    Kernel {
        queue: ScsiQueue {
            depth_count: depth,
            ..ScsiQueue::default()
        },
        ..Kernel::default()
    }
}

fn device(node: &FakeNode, kernel: Kernel) -> SgDevice<FakeNode> {
    SgDevice::over(&Sysfs::host(), "fake", node.clone(), kernel).unwrap()
}

pub(super) fn writable(node: &FakeNode, depth: Option<u32>) -> SgDevice<FakeNode> {
    device(node, kernel(depth)).with_writes(Vec::new()).unwrap()
}

pub(super) fn spec(slots_count: u32, slot_bytes: u32, writes: bool) -> QueueSpec {
    QueueSpec {
        reactor_index: 0,
        reactors_count: 1,
        slots_count,
        slot_bytes,
        batch: Batch {
            submit: slots_count,
            complete_min: 1,
            complete_max: 64,
        },
        writes,
    }
}

/// Keeps what ended, in order, with the first bytes that came.
#[derive(Default)]
struct Seen(Vec<(u32, Status, Vec<u8>)>);

impl Sink for Seen {
    fn complete(&mut self, slot: Slot, status: Status, buffer: &mut [u8]) -> Option<Io> {
        self.0.push((slot.0, status, buffer.to_vec()));
        None
    }
}

pub(super) fn io(op: Op, lba: u64, blocks: u32) -> Io {
    Io { lba, blocks, op }
}

fn drain(queue: &mut SgQueue<FakeFile>, count: usize) -> Vec<(u32, Status, Vec<u8>)> {
    let mut seen = Seen::default();
    for _ in 0..10_000 {
        if seen.0.len() >= count {
            return seen.0;
        }
        queue.poll(&mut seen, Wait::Never).unwrap();
    }
    panic!("{} of {count} ended", seen.0.len());
}

pub(super) fn one(queue: &mut SgQueue<FakeFile>, io: Io) -> (Status, Vec<u8>) {
    queue.submit(Slot(0), io).unwrap();
    let (_, status, bytes) = drain(queue, 1).remove(0);
    (status, bytes)
}

const CONTRACT: Contract = Contract {
    first_lba: 3,
    blocks: 400,
    writes: true,
    keeps_data: true,
    ios_count: 5_000,
};

#[test]
fn the_contract_holds_for_blocks_of_any_size() {
    for block_bytes in [512, 520, 528, 4096, 4104, 4160, 4224] {
        let node = FakeNode::new(block_bytes, 512);
        contract(&writable(&node, None), &CONTRACT, &mut |_| ());
        assert_eq!(node.disk().in_flight, 0);
    }
}

#[test]
fn the_contract_holds_where_nothing_ends_at_once_and_order_is_the_devices() {
    for (looks, last_first, depth) in [(3, false, Some(20)), (1, true, None), (2, true, Some(4))] {
        let node = FakeNode::new(528, 512);
        node.slow(looks, last_first);
        contract(&writable(&node, depth), &CONTRACT, &mut |_| ());
        let most = depth.unwrap_or(32);
        assert!(node.disk().most_in_flight <= most);
    }
}

#[test]
fn facts_are_the_devices_own() {
    let node = FakeNode::new(4160, 100);
    let device = device(&node, kernel(Some(32)));
    let facts = device.facts();
    assert_eq!(facts.capacity, Bytes(416_000));
    assert_eq!(facts.logical_block.bytes(), 4160);
    assert_eq!(facts.physical_block.unwrap().bytes(), 8 * 4160);
    assert_eq!(facts.serial.as_deref(), Some("FAKE0001"));
    assert_eq!(facts.identity.as_deref(), Some("naa.5000c50000000009"));
    assert_eq!(facts.model.as_deref(), Some("FAKE DISK IN MEMORY"));
    assert_eq!(facts.firmware.as_deref(), Some("0007"));
    assert_eq!(
        (facts.rotational, facts.device_depth),
        (Some(true), Some(32))
    );
    // 252 blocks of 4160 bytes are what 1 MiB holds.
    assert_eq!(facts.max_io, Some(Bytes(252 * 4160)));
    let lines = device.features();
    for wanted in [
        "sg 3.5.36, queued at tail",
        "allow_dio is 0",
        "write cache on",
        "38 °C",
    ] {
        assert!(lines.iter().any(|line| line.contains(wanted)), "{lines:?}");
    }
}

#[test]
fn a_device_that_knows_no_pages_is_driven_all_the_same() {
    let node = FakeNode::new(512, 64);
    node.disk().is_modern = false;
    let device = device(&node, kernel(None));
    let facts = device.facts();
    assert_eq!((facts.capacity, &facts.serial), (Bytes(32_768), &None));
    assert!(facts.trim.is_err() && facts.rotational.is_none());
}

#[test]
fn a_unit_attention_at_start_is_asked_past_and_told() {
    let node = FakeNode::new(512, 64);
    node.disk().attentions = vec![0x29];
    let lines = device(&node, kernel(None)).features();
    let told: Vec<_> = lines
        .iter()
        .filter(|line| line.contains("unit attention"))
        .collect();
    assert_eq!(told.len(), 1, "{lines:?}");
    assert!(told[0].contains("retried once") && told[0].contains("6/29/00"));
    node.disk().attentions = vec![0x29; 9];
    let refused = SgDevice::over(&Sysfs::host(), "fake", node.clone(), kernel(None));
    assert!(
        matches!(refused, Err(BackendError::Unsuitable { why, .. }) if why.contains("6/29/00"))
    );
}

#[test]
fn the_long_commands_are_for_devices_that_need_them() {
    let node = FakeNode::new(512, 64);
    let opcode = |node: &FakeNode| {
        let device = device(node, kernel(None));
        let mut queue = device.open_queue(spec(1, 512, false)).unwrap();
        one(&mut queue, io(Op::Read, 5, 1));
        node.disk().sent.last().unwrap()[0]
    };
    assert_eq!(opcode(&node), 0x28);
    node.disk().told_blocks = Some((1 << 32) + 1);
    assert_eq!(opcode(&node), 0x88);
}

#[test]
fn a_large_io_is_split_at_whole_blocks_and_counted() {
    let node = FakeNode::new(520, 400);
    node.disk().max_sectors_bytes = 64 << 10;
    let device = writable(&node, Some(3));
    let mut queue = device.open_queue(spec(2, 300 * 520, true)).unwrap();
    node.disk().sent.clear();
    let (status, bytes) = one(&mut queue, io(Op::Read, 7, 300));
    assert_eq!(status, Status::Ok);
    assert_eq!(bytes, node.disk().data[7 * 520..307 * 520]);
    let parts: Vec<(u64, u64)> = (node.disk().sent.iter())
        .map(|cdb| super::fake::place_of(cdb))
        .collect();
    assert_eq!(parts, [(7, 126), (133, 126), (259, 48)]);
    queue.buffer(Slot(0)).fill(0x5a);
    assert_eq!(one(&mut queue, io(Op::Write, 7, 300)).0, Status::Ok);
    assert!(
        node.disk().data[7 * 520..307 * 520]
            .iter()
            .all(|byte| *byte == 0x5a)
    );
    assert_ne!(node.disk().data[307 * 520], 0x5a);
    assert!(node.disk().most_in_flight <= 3);
    queue.close(Duration::ZERO);
    assert!(
        device
            .features()
            .contains(&"6 commands for 2 I/Os".to_owned())
    );
}

#[test]
fn elements_limit_direct_transfers_and_copies_apart() {
    let node = FakeNode::new(512, 64);
    node.disk().max_sectors_bytes = 4 << 20;
    node.disk().elements_count = 64;
    assert_eq!(
        device(&node, kernel(None)).facts().max_io,
        Some(Bytes(2 << 20))
    );
    let direct = Kernel {
        allows_direct: true,
        ..kernel(None)
    };
    let device = device(&node, direct);
    assert_eq!(device.facts().max_io, Some(Bytes(256 << 10)));
    let mut queue = device.open_queue(spec(1, 512, false)).unwrap();
    one(&mut queue, io(Op::Read, 0, 1));
    assert_eq!(node.disk().direct_count, 1);
    assert_eq!(node.disk().reserve_bytes, 0);
}

#[test]
fn trims_are_split_and_only_where_the_device_unmaps() {
    let node = FakeNode::new(512, 64);
    let mut queue = writable(&node, None)
        .open_queue(spec(1, 512, true))
        .unwrap();
    node.disk().sent.clear();
    assert_eq!(one(&mut queue, io(Op::Trim, 3, 40)).0, Status::Ok);
    assert_eq!(node.disk().sent.len(), 3);
    assert!(
        node.disk().data[3 * 512..43 * 512]
            .iter()
            .all(|byte| *byte == 0)
    );
    assert!(node.disk().data[43 * 512..].iter().any(|byte| *byte != 0));
    assert_eq!(one(&mut queue, Io::FLUSH).0, Status::Ok);
    assert_eq!(node.disk().sent.last().unwrap()[0], 0x35);
    (node.disk().has_unmap, node.disk().trims_by_same) = (false, true);
    let device = writable(&node, None);
    assert!(
        device
            .facts()
            .trim
            .as_ref()
            .unwrap_err()
            .contains("WRITE SAME")
    );
    let mut queue = device.open_queue(spec(1, 512, true)).unwrap();
    let refused = Status::Errno(Errno(libc::EOPNOTSUPP));
    assert_eq!(one(&mut queue, io(Op::Trim, 3, 4)).0, refused);
}

#[test]
fn failures_are_their_own_and_leave_the_rest_alone() {
    let node = FakeNode::new(512, 512);
    let faults = [
        (10, Fault::Sense { key: 3, asc: 0x11 }),
        (
            20,
            Fault::Short {
                residual_bytes: 200,
            },
        ),
        (30, Fault::Host(3)),
        (40, Fault::Sense { key: 1, asc: 0x17 }),
    ];
    node.disk().faults.extend(faults);
    let device = device(&node, kernel(None));
    let mut queue = device.open_queue(spec(6, 512, false)).unwrap();
    for slot in 0..5 {
        queue
            .submit(Slot(slot), io(Op::Read, u64::from(slot) * 10, 1))
            .unwrap();
    }
    queue.submit(Slot(5), io(Op::Read, 9_999, 1)).unwrap();
    let mut seen = drain(&mut queue, 6);
    seen.sort_by_key(|(slot, ..)| *slot);
    let scsi = |key, asc| Status::Scsi {
        status: 2,
        key,
        asc,
        ascq: 0,
    };
    let wanted = [
        Status::Ok,
        scsi(3, 0x11),
        Status::Short { got_bytes: 312 },
        Status::Host { host: 3 },
        Status::Ok,
        scsi(5, 0x21),
    ];
    let found: Vec<Status> = seen.iter().map(|(_, status, _)| *status).collect();
    assert_eq!(found, wanted);
    queue.close(Duration::ZERO);
    let lines = device.features().join("\n");
    assert!(
        lines.contains("unrecovered read error (3/11/00) at LBA 10"),
        "{lines}"
    );
    assert!(
        lines.contains("out of range (5/21/00) at LBA 9999"),
        "{lines}"
    );
    assert_eq!(device.warnings()[0].kind, "recovered-errors");
    assert!(device.warnings()[0].text.contains("1 commands"));
}

/// A part that fails fails the I/O, and what was not sent yet is not sent any more.
#[test]
fn a_split_io_ends_once_with_its_first_failure() {
    let node = FakeNode::new(512, 64);
    node.disk().max_sectors_bytes = 4096;
    node.disk()
        .faults
        .insert(9, Fault::Sense { key: 3, asc: 0x11 });
    let device = device(&node, kernel(Some(1)));
    let mut queue = device.open_queue(spec(1, 64 * 512, false)).unwrap();
    node.disk().sent.clear();
    let (status, _) = one(&mut queue, io(Op::Read, 0, 64));
    assert!(matches!(status, Status::Scsi { key: 3, .. }));
    assert_eq!(node.disk().sent.len(), 2);
    assert_eq!(one(&mut queue, io(Op::Read, 16, 8)).0, Status::Ok);
}

/// Past the device's depth nothing overtakes: what comes first is sent first.
#[test]
fn what_waits_is_sent_in_order_and_never_more_than_the_device_holds() {
    let node = FakeNode::new(512, 512);
    let device = device(&node, kernel(Some(4)));
    let mut queue = device.open_queue(spec(64, 512, false)).unwrap();
    assert_eq!(
        node.disk().files_count,
        2,
        "one to ask, one for four commands"
    );
    node.disk().sent.clear();
    node.slow(2, false);
    for slot in 0..64 {
        queue
            .submit(Slot(slot), io(Op::Read, u64::from(slot), 1))
            .unwrap();
    }
    assert_eq!(queue.submit(Slot(7), Io::PROBE), Err(Full));
    assert_eq!(drain(&mut queue, 64).len(), 64);
    let order: Vec<u64> = (node.disk().sent.iter())
        .map(|cdb| super::fake::place_of(cdb).0)
        .collect();
    assert_eq!(order, (0..64).collect::<Vec<_>>());
    assert_eq!(node.disk().most_in_flight, 4);
}

#[test]
fn files_are_as_many_as_the_depth_wants() {
    let node = FakeNode::new(512, 512);
    let device = device(&node, kernel(None));
    let before = node.disk().files_count;
    let mut queue = device.open_queue(spec(100, 512, false)).unwrap();
    assert_eq!(node.disk().files_count - before, 7);
    node.slow(1, false);
    for slot in 0..100 {
        queue
            .submit(Slot(slot), io(Op::Read, u64::from(slot), 1))
            .unwrap();
    }
    assert_eq!(drain(&mut queue, 100).len(), 100);
    assert_eq!(node.disk().most_in_flight, 100);
}

#[test]
fn two_queues_share_the_devices_depth() {
    let node = FakeNode::new(512, 512);
    let device = device(&node, kernel(Some(6)));
    let mut queues = [0, 1].map(|_| device.open_queue(spec(32, 512, false)).unwrap());
    node.slow(3, false);
    for queue in &mut queues {
        for slot in 0..32 {
            queue
                .submit(Slot(slot), io(Op::Read, u64::from(slot), 1))
                .unwrap();
        }
    }
    assert_eq!(node.disk().in_flight, 6);
    for queue in &mut queues {
        assert_eq!(drain(queue, 32).len(), 32);
    }
    assert_eq!(node.disk().most_in_flight, 6);
}

#[test]
fn what_the_kernel_refuses_fails_that_io_and_a_vanished_device_ends_it_all() {
    let node = FakeNode::new(512, 64);
    let device = device(&node, kernel(None));
    let mut queue = device.open_queue(spec(2, 512, false)).unwrap();
    node.disk().refuse = Some(Errno(libc::EINVAL));
    let refused = Status::Errno(Errno(libc::EINVAL));
    assert_eq!(one(&mut queue, io(Op::Read, 0, 1)).0, refused);
    node.disk().refuse = Some(Errno(libc::ENODEV));
    queue.submit(Slot(0), io(Op::Read, 0, 1)).unwrap();
    let gone = Err(Gone(Status::Errno(Errno(libc::ENODEV))));
    assert_eq!(queue.flush(), gone);
    assert_eq!(
        queue.poll(&mut Seen::default(), Wait::Never),
        gone.map(|()| 0)
    );
    assert_eq!(queue.close(Duration::from_secs(5)).abandoned_count, 1);
}

/// No connection is a failure like others while the kernel calls the device running, and the end once it does
/// not.
#[test]
fn a_device_that_the_kernel_has_given_up_is_gone() {
    let node = FakeNode::new(512, 64);
    node.disk().faults.insert(1, Fault::Host(1));
    let dir = tempfile::tempdir().unwrap();
    let state = |text: &str| std::fs::write(dir.path().join("state"), text).unwrap();
    state("running\n");
    let kernel = Kernel {
        device_dir: Some(PathBuf::from(dir.path())),
        ..kernel(None)
    };
    let device = device(&node, kernel);
    let mut queue = device.open_queue(spec(2, 512, false)).unwrap();
    let lost = Status::Host { host: 1 };
    assert_eq!(one(&mut queue, io(Op::Read, 1, 1)).0, lost);
    assert_eq!(one(&mut queue, io(Op::Read, 2, 1)).0, Status::Ok);
    state("offline\n");
    queue.submit(Slot(0), io(Op::Read, 1, 1)).unwrap();
    let mut seen = Seen::default();
    assert_eq!(queue.poll(&mut seen, Wait::Never), Err(Gone(lost)));
    assert_eq!((seen.0.len(), seen.0[0].1), (1, lost));
}

#[test]
fn a_short_of_memory_kernel_is_asked_again_when_something_has_ended() {
    let node = FakeNode::new(512, 64);
    let device = device(&node, kernel(None));
    let mut queue = device.open_queue(spec(2, 512, false)).unwrap();
    queue.submit(Slot(0), io(Op::Read, 0, 1)).unwrap();
    node.disk().refuse = Some(Errno(libc::ENOMEM));
    queue.submit(Slot(1), io(Op::Read, 1, 1)).unwrap();
    node.disk().refuse = None;
    let seen = drain(&mut queue, 2);
    assert!(seen.iter().all(|(_, status, _)| status.is_ok()));
}

#[test]
fn a_write_protected_device_is_not_written() {
    let node = FakeNode::new(512, 64);
    node.disk().write_protected = true;
    let refused = device(&node, kernel(None)).with_writes(Vec::new());
    assert!(
        matches!(refused, Err(BackendError::Unsuitable { why, .. }) if why.contains("write protected"))
    );
}

#[test]
fn a_controller_without_test_unit_ready_is_driven_and_not_probed() {
    let node = FakeNode::new(512, 512);
    node.disk().not_ready = Some((4, 0x44));
    let device = writable(&node, None);
    let why = device.facts().probe.clone().unwrap_err();
    assert!(why.contains("4/44/00"), "{why}");
    contract(&device, &CONTRACT, &mut |_| ());
    node.disk().not_ready = Some((2, 0x04));
    let refused = SgDevice::over(&Sysfs::host(), "fake", node.clone(), kernel(None));
    assert!(
        matches!(refused, Err(BackendError::Unsuitable { why, .. }) if why.contains("not ready"))
    );
}

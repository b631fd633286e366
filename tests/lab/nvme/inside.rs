//! What runs inside the emulated machine, on its NVMe drives. Elsewhere these tests have nothing to do: the
//! test `the_tests_inside_the_machine_pass` runs them there.

use lanemark::backend::contract::{Contract, contract};
use lanemark::backend::uring::{UringDevice, UringOptions};
use lanemark::backend::uring_cmd::{UringCmdDevice, UringCmdOptions};
use lanemark::backend::{BackendError, Batch, Device, Queue, QueueSpec, Sink, Wait};
use lanemark::request::{Io, Op, Slot, Status};
use std::path::{Path, PathBuf};
use std::time::Duration;

pub(super) const WRITES: UringCmdOptions = UringCmdOptions {
    writes: true,
    poll: true,
};

pub(super) fn is_here() -> bool {
    std::env::var("LANEMARK_IN_LAB").as_deref() == Ok("nvme-io")
}

/// The block node of a namespace, and its generic node.
pub(super) fn nodes(serial: &str, nsid: u32) -> (PathBuf, PathBuf) {
    let word = |path: PathBuf| std::fs::read_to_string(path).unwrap_or_default();
    for entry in std::fs::read_dir("/sys/block").unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let is_it = word(entry.path().join("device/serial")).trim() == serial
            && word(entry.path().join("nsid")).trim() == nsid.to_string();
        if is_it && Path::new("/dev").join(&name).exists() {
            let generic = name.replacen("nvme", "ng", 1);
            return (
                Path::new("/dev").join(name),
                Path::new("/dev").join(generic),
            );
        }
    }
    panic!("no namespace {nsid} of {serial}")
}

struct Last(Option<(Status, Vec<u8>)>);

impl Sink for Last {
    fn complete(&mut self, _slot: Slot, status: Status, buffer: &mut [u8]) -> Option<Io> {
        self.0 = Some((status, buffer.to_vec()));
        None
    }
}

/// One I/O on a queue of its own; `bytes` is what a write carries.
pub(super) fn one<D: Device>(device: &D, io: Io, bytes: Option<&[u8]>) -> (Status, Vec<u8>) {
    let spec = QueueSpec {
        reactor_index: 0,
        reactors_count: 1,
        slots_count: 1,
        slot_bytes: io.blocks.max(1) * device.facts().logical_block.bytes(),
        batch: Batch {
            submit: 1,
            complete_min: 1,
            complete_max: 1,
        },
        writes: io.op != Op::Read,
    };
    let mut queue = device.open_queue(spec).unwrap();
    if let Some(bytes) = bytes {
        queue.buffer(Slot(0)).copy_from_slice(bytes);
    }
    queue.submit(Slot(0), io).unwrap();
    let mut last = Last(None);
    while last.0.is_none() {
        queue.poll(&mut last, Wait::AtMostNs(100_000_000)).unwrap();
    }
    queue.close(Duration::from_secs(5));
    last.0.unwrap()
}

pub(super) const fn io(op: Op, lba: u64, blocks: u32) -> Io {
    Io { lba, blocks, op }
}

#[test]
fn namespaces_of_every_format_keep_the_contract() {
    if !is_here() {
        return;
    }
    for (serial, nsid) in [
        ("LABIO0001", 1),
        ("LABIO0001", 2),
        ("LABIO0002", 1),
        ("LABIO0004", 1),
        ("LABIO0005", 2),
    ] {
        let (_, generic) = nodes(serial, nsid);
        let device = UringCmdDevice::open(&generic, WRITES).unwrap();
        assert!(device.facts().probe.is_ok(), "{:?}", device.facts().probe);
        let rules = Contract {
            // Whole pages: the emulator takes a block of protected data that was never written, beside one that was,
            // for one whose tags are wrong.
            first_lba: 8,
            blocks: 1000,
            writes: true,
            keeps_data: true,
            ios_count: 2000,
        };
        contract(&device, &rules, &mut |_| ());
        // The page of the last data holds tags of other blocks as well.
        let end = device.facts().blocks().0;
        let first = (end - 16) / 8 * 8;
        let blocks = (end - first) as u32;
        let bytes = vec![0; (blocks * device.facts().logical_block.bytes()) as usize];
        let last = io(Op::Write, first, blocks);
        assert_eq!(one(&device, last, Some(&bytes)).0, Status::Ok);
    }
}

/// Each reads the bytes that the other wrote.
#[test]
fn passthrough_and_the_block_layer_read_each_others_bytes() {
    if !is_here() {
        return;
    }
    for (nsid, blocks) in [(1, 8), (2, 1)] {
        let (block, generic) = nodes("LABIO0001", nsid);
        let pattern = |seed: u8| -> Vec<u8> {
            (0..4096_u32)
                .map(|at| (at * 7 + at / 512) as u8 ^ seed)
                .collect()
        };
        let options = UringOptions {
            writes: true,
            ..UringOptions::default()
        };
        {
            let uring = UringDevice::open(&block, options).unwrap();
            let done = one(&uring, io(Op::Write, 80, blocks), Some(&pattern(1)));
            assert_eq!(done.0, Status::Ok);
            assert_eq!(one(&uring, Io::FLUSH, None).0, Status::Ok);
        }
        let passthrough = UringCmdDevice::open(&generic, WRITES).unwrap();
        let read = one(&passthrough, io(Op::Read, 80, blocks), None);
        assert!(
            read == (Status::Ok, pattern(1)),
            "written by the block layer"
        );
        let done = one(&passthrough, io(Op::Write, 160, blocks), Some(&pattern(2)));
        assert_eq!(done.0, Status::Ok);
        assert_eq!(one(&passthrough, Io::FLUSH, None).0, Status::Ok);
        drop(passthrough);
        let uring = UringDevice::open(&block, UringOptions::default()).unwrap();
        let read = one(&uring, io(Op::Read, 160, blocks), None);
        assert!(read == (Status::Ok, pattern(2)), "written by passthrough");
    }
}

#[test]
fn statuses_of_the_controller_are_told_as_they_are() {
    if !is_here() {
        return;
    }
    let (_, generic) = nodes("LABIO0001", 1);
    let device = UringCmdDevice::open(&generic, UringCmdOptions::default()).unwrap();
    let end = device.facts().blocks().0;
    assert_eq!(one(&device, io(Op::Read, end - 1, 1), None).0, Status::Ok);
    let past = one(&device, io(Op::Read, end, 1), None).0;
    assert_eq!(past, Status::Nvme { sct: 0, sc: 0x80 }, "LBA out of range");
    let across = one(&device, io(Op::Read, end - 1, 2), None).0;
    assert_eq!(across, Status::Nvme { sct: 0, sc: 0x80 });
    let far = one(&device, io(Op::Read, u64::MAX, 1), None).0;
    assert_eq!(far, Status::Nvme { sct: 0, sc: 0x80 });
    let (_, generic) = nodes("LABIO0003", 1);
    let device = UringCmdDevice::open(&generic, UringCmdOptions::default()).unwrap();
    let bad = one(&device, io(Op::Read, 2048, 1), None).0;
    assert_eq!(
        bad,
        Status::Nvme { sct: 2, sc: 0x81 },
        "unrecovered read error"
    );
    for lba in [2047, 2049] {
        assert_eq!(one(&device, io(Op::Read, lba, 1), None).0, Status::Ok);
    }
}

#[test]
fn a_trim_deallocates_its_blocks_and_no_others() {
    if !is_here() {
        return;
    }
    let (_, generic) = nodes("LABIO0001", 2);
    let device = UringCmdDevice::open(&generic, WRITES).unwrap();
    let data = vec![0xa5; 8 * 4096];
    assert_eq!(
        one(&device, io(Op::Write, 512, 8), Some(&data)).0,
        Status::Ok
    );
    assert_eq!(one(&device, io(Op::Trim, 514, 3), None).0, Status::Ok);
    let (status, read) = one(&device, io(Op::Read, 512, 8), None);
    assert_eq!(status, Status::Ok);
    let kept: Vec<bool> = read
        .chunks(4096)
        .map(|block| block == &data[..4096])
        .collect();
    let trimmed = [false, false, true, true, true, false, false, false];
    for (index, (kept, trimmed)) in kept.iter().zip(trimmed).enumerate() {
        // Deallocated blocks may read as they were; all others must.
        assert!(*kept || trimmed, "block {index}");
    }
    assert!(kept[2..5].iter().any(|kept| !kept), "nothing was trimmed");
}

#[test]
fn what_is_no_whole_namespace_is_refused() {
    if !is_here() {
        return;
    }
    let refused = |path: &str| match UringCmdDevice::open(Path::new(path), WRITES) {
        Err(BackendError::Unsuitable { why, .. }) => why,
        other => panic!("{path}: {other:?}"),
    };
    assert!(refused("/dev/nvme0").contains("no NVMe namespace"));
    assert!(refused("/dev/null").contains("no NVMe namespace"));
    let (_, plain) = nodes("LABIO0001", 1);
    let device = UringCmdDevice::open(&plain, UringCmdOptions::default()).unwrap();
    assert_eq!(device.facts().max_command.unwrap().0, 128 << 10, "MDTS");
}

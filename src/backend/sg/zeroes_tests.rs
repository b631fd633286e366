//! Zeros by WRITE SAME over a disk in memory: split, refused, and never with what a slot held before.
#![allow(clippy::unwrap_used)]

use super::SgDevice;
use super::fake::{FakeFile, FakeNode};
use super::tests::{io, kernel, one, spec, writable};
use super::{Device, SgQueue};
use crate::backend::Queue;
use crate::errno::Errno;
use crate::proto::scsi::opcode;
use crate::request::{Op, Slot, Status};
use crate::sysfs::Sysfs;

fn opened(node: &FakeNode, depth: Option<u32>) -> SgQueue<FakeFile> {
    let device = writable(node, depth);
    let queue = device.open_queue(spec(1, 520, true)).unwrap();
    node.disk().sent.clear();
    queue
}

#[test]
fn zeros_are_one_block_sent_in_as_many_commands_as_the_limit_wants() {
    let node = FakeNode::new(520, 64);
    node.disk().max_same_blocks = 16;
    // Whatever the disk holds at once: the parts of one I/O share one block.
    for depth in [None, Some(1), Some(2)] {
        node.disk().data.fill(0x77);
        let mut queue = opened(&node, depth);
        queue.buffer(Slot(0)).fill(0xa5);
        assert_eq!(one(&mut queue, io(Op::WriteZeroes, 3, 40)).0, Status::Ok);
        let disk = node.disk();
        let sent: Vec<(u8, (u64, u64))> = (disk.sent.iter())
            .map(|cdb| (cdb[0], super::fake::place_of(cdb)))
            .collect();
        let same = opcode::WRITE_SAME_16;
        assert_eq!(sent, [(same, (3, 16)), (same, (19, 16)), (same, (35, 8))]);
        // Neither UNMAP nor NDOB.
        assert!(disk.sent.iter().all(|cdb| cdb[1] == 0));
        let zero = |block: usize| {
            disk.data[block * 520..][..520]
                .iter()
                .all(|byte| *byte == 0)
        };
        let zeros: Vec<usize> = (0..64).filter(|block| zero(*block)).collect();
        assert_eq!(zeros, (3..43).collect::<Vec<_>>(), "{depth:?}");
    }
}

#[test]
fn without_the_command_or_leave_nothing_is_sent() {
    let node = FakeNode::new(520, 64);
    node.disk().max_same_blocks = 0;
    let device = writable(&node, None);
    let why = device.facts().write_zeroes.clone().unwrap_err();
    assert!(why.contains("MAXIMUM WRITE SAME LENGTH"), "{why}");
    let mut queue = opened(&node, None);
    let refused = Status::Errno(Errno(libc::EOPNOTSUPP));
    assert_eq!(one(&mut queue, io(Op::WriteZeroes, 3, 4)).0, refused);
    node.disk().max_same_blocks = 16;
    let mut queue = opened(&node, None);
    let nothing = one(&mut queue, io(Op::WriteZeroes, 3, 0)).0;
    assert_eq!(nothing, Status::Errno(Errno(libc::EINVAL)));
    let device = SgDevice::over(&Sysfs::host(), "fake", node.clone(), kernel(None)).unwrap();
    let mut queue = device.open_queue(spec(1, 520, false)).unwrap();
    node.disk().sent.clear();
    let no_leave = one(&mut queue, io(Op::WriteZeroes, 3, 4)).0;
    assert_eq!(no_leave, Status::Errno(Errno(libc::EPERM)));
    assert!(node.disk().sent.is_empty());
}

/// A device that deallocates by WRITE SAME has the command, though it tells no limit.
#[test]
fn a_device_that_trims_by_it_has_the_command() {
    let node = FakeNode::new(520, 64);
    (node.disk().max_same_blocks, node.disk().has_unmap) = (0, false);
    assert!(writable(&node, None).facts().write_zeroes.is_err());
    node.disk().trims_by_same = true;
    assert_eq!(writable(&node, None).facts().write_zeroes, Ok(None));
}

/// Behind a translation of SATA the command only trims, whatever the pages say.
#[test]
fn a_translated_drive_has_no_such_command() {
    let node = FakeNode::new(520, 64);
    node.disk().vendor = *b"ATA     ";
    let device = writable(&node, None);
    let why = device.facts().write_zeroes.clone().unwrap_err();
    assert!(why.contains("SATA"), "{why}");
    let mut queue = opened(&node, None);
    let refused = Status::Errno(Errno(libc::EOPNOTSUPP));
    assert_eq!(one(&mut queue, io(Op::WriteZeroes, 3, 4)).0, refused);
}

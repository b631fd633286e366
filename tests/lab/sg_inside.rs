//! What runs inside the emulated machine, on its SCSI disks. Elsewhere these tests have nothing to do: the test
//! `the_tests_inside_the_machine_pass` of `sg` runs them there.

use lanemark::backend::contract::{Contract, contract};
use lanemark::backend::sg::SgDevice;
use lanemark::backend::uring::{UringDevice, UringOptions};
use lanemark::backend::{Batch, Device, Queue, QueueSpec, Sink, Wait};
use lanemark::request::{Io, Op, Slot, Status};
use lanemark::sysfs::Sysfs;
use std::path::{Path, PathBuf};
use std::time::Duration;

const SERIALS: [&str; 3] = ["LABSAS0001", "LABRAID0001", "LABSATA0001"];

fn is_here() -> bool {
    std::env::var("LANEMARK_IN_LAB").as_deref() == Ok("default")
}

/// The block node of a disk, and its sg node.
fn nodes(serial: &str) -> (PathBuf, PathBuf) {
    nodes_saying("device/vpd_pg80", serial)
}

/// Those of the disk of which this file holds this word.
fn nodes_saying(file: &str, word: &str) -> (PathBuf, PathBuf) {
    for entry in std::fs::read_dir("/sys/block").unwrap() {
        let entry = entry.unwrap();
        let said = std::fs::read(entry.path().join(file)).unwrap_or_default();
        if String::from_utf8_lossy(&said).contains(word) {
            let mut nodes = std::fs::read_dir(entry.path().join("device/scsi_generic")).unwrap();
            let node = nodes.next().unwrap().unwrap().file_name();
            return (
                Path::new("/dev").join(entry.file_name()),
                Path::new("/dev").join(node),
            );
        }
    }
    panic!("no disk {word}")
}

fn sg(node: &Path) -> SgDevice {
    let device = SgDevice::open_at(&Sysfs::host(), node).unwrap();
    device.with_writes(Vec::new()).unwrap()
}

fn uring(block: &Path) -> UringDevice {
    let options = UringOptions {
        writes: true,
        ..UringOptions::default()
    };
    UringDevice::open(block, options).unwrap()
}

#[derive(Default)]
struct Seen(Vec<(u32, Status, Vec<u8>)>);

impl Sink for Seen {
    fn complete(&mut self, slot: Slot, status: Status, buffer: &mut [u8]) -> Option<Io> {
        self.0.push((slot.0, status, buffer.to_vec()));
        None
    }
}

/// All at once on a queue of their own, in the order of their slots; a write carries `bytes`.
fn all<D: Device>(device: &D, ios: &[Io], bytes: Option<&[u8]>) -> Vec<(u32, Status, Vec<u8>)> {
    let count = ios.len() as u32;
    let blocks = ios.iter().map(|io| io.blocks).max().unwrap();
    let spec = QueueSpec {
        reactor_index: 0,
        reactors_count: 1,
        slots_count: count,
        slot_bytes: blocks * device.facts().logical_block.bytes(),
        batch: Batch {
            submit: count,
            complete_min: 1,
            complete_max: count,
        },
        writes: bytes.is_some(),
    };
    let mut queue = device.open_queue(spec).unwrap();
    let mut seen = Seen::default();
    for (slot, io) in (0..).map(Slot).zip(ios) {
        if let Some(bytes) = bytes {
            queue.buffer(slot).copy_from_slice(bytes);
        }
        queue.submit(slot, *io).unwrap();
    }
    while seen.0.len() < ios.len() {
        queue.poll(&mut seen, Wait::AtMostNs(100_000_000)).unwrap();
    }
    queue.close(Duration::from_secs(5));
    seen.0.sort_by_key(|(slot, ..)| *slot);
    seen.0
}

const fn io(op: Op, lba: u64, blocks: u32) -> Io {
    Io { lba, blocks, op }
}

#[test]
fn disks_behind_every_controller_keep_the_contract() {
    if !is_here() {
        return;
    }
    let rules = Contract {
        first_lba: 2050,
        blocks: 1000,
        writes: true,
        keeps_data: true,
        ios_count: 1000,
    };
    let debug = sg(&nodes_saying("device/model", "scsi_debug").1);
    assert_eq!(debug.facts().logical_block.bytes(), 4096);
    contract(&debug, &rules, &mut |_| ());
    for serial in SERIALS {
        let device = sg(&nodes(serial).1);
        let facts = device.facts();
        assert_eq!(facts.serial.as_deref(), Some(serial));
        assert!(
            facts.identity.as_deref().unwrap().starts_with("naa.5000c5"),
            "{facts:?}"
        );
        contract(&device, &rules, &mut |_| ());
    }
}

/// Each reads the bytes that the other wrote: small ones, and ones that are split on the way.
#[test]
fn commands_and_the_block_layer_read_each_others_bytes() {
    if !is_here() {
        return;
    }
    for serial in SERIALS {
        let (block, node) = nodes(serial);
        for (turn, blocks) in [8, 3 * 2048 + 8].into_iter().enumerate() {
            let pattern = |seed: usize| -> Vec<u8> {
                let bytes = 0..blocks as usize * 512;
                bytes
                    .map(|at| (at * 7 + at / 512 + seed + turn) as u8)
                    .collect()
            };
            let (write, read) = (io(Op::Write, 4104, blocks), io(Op::Read, 4104, blocks));
            let done = all(&uring(&block), &[write], Some(&pattern(1)));
            assert_eq!(done[0].1, Status::Ok, "{serial}: uring writes {blocks}");
            let done = all(&sg(&node), &[read], None);
            assert!(
                done[0].1.is_ok() && done[0].2 == pattern(1),
                "{serial}: sg reads {blocks}: {:?}",
                done[0].1
            );
            let done = all(&sg(&node), &[write], Some(&pattern(2)));
            assert_eq!(done[0].1, Status::Ok, "{serial}: sg writes {blocks}");
            let done = all(&uring(&block), &[read], None);
            assert!(
                done[0].1.is_ok() && done[0].2 == pattern(2),
                "{serial}: uring reads {blocks}"
            );
        }
    }
}

#[test]
fn a_read_past_the_end_fails_by_name_and_the_others_do_not() {
    if !is_here() {
        return;
    }
    for serial in SERIALS {
        let device = sg(&nodes(serial).1);
        let end = device.facts().capacity.0 / 512;
        let ios = [0, 1, 2, 3].map(|index| match index {
            2 => io(Op::Read, end, 8),
            _ => io(Op::Read, index * 8, 8),
        });
        let seen = all(&device, &ios, None);
        // The drive behind the translation only aborts what it does not have.
        let (key, words) = match serial {
            "LABSATA0001" => (0xb, "aborted command"),
            _ => (
                5,
                "illegal request, logical block address out of range (5/21/00)",
            ),
        };
        // An error among queued commands of SATA ends all that are in the drive (ATA8-ACS, NCQ); the kernel
        // sends its own again, but not those of others.
        let spares_others = serial != "LABSATA0001";
        for (slot, status, _) in &seen {
            let failed =
                matches!(status, Status::Scsi { status: 2, key: found, .. } if *found == key);
            if *slot == 2 || spares_others {
                assert_eq!(failed, *slot == 2, "{serial}, slot {slot}: {status:?}");
            }
            assert!(
                failed || status.is_ok(),
                "{serial}, slot {slot}: {status:?}"
            );
        }
        let lines = device.features().join("\n");
        let wanted = format!("of 8 blocks at LBA {end}: {words}");
        assert!(
            lines.contains(&wanted) || (!spares_others && lines.contains(words)),
            "{serial}: {lines}"
        );
    }
}

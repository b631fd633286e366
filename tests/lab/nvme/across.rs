//! One NVMe controller by three paths: the kernel's block layer, its passthrough, and SPDK. What one wrote, the
//! others read. Three stages inside the emulated machine, between which `nvme.sh` claims and releases the controller;
//! elsewhere they have nothing to do.

use super::inside::{WRITES, io, is_here, nodes, one};
use lanemark::backend::Device;
use lanemark::backend::spdk::SpdkDevice;
use lanemark::backend::uring::{UringDevice, UringOptions};
use lanemark::backend::uring_cmd::UringCmdDevice;
use lanemark::request::{Io, Op, Status};
use lanemark::sysfs::Sysfs;

/// Blocks of one write, 128 KiB (MDTS) of the larger ones; and where each path writes.
const BLOCKS: u32 = 32;
const PLACES: [(&str, u64); 3] = [("uring", 8192), ("uring-cmd", 16_384), ("spdk", 24_576)];
const SERIAL: &str = "LABIO0001";
const NAMESPACES: [u32; 2] = [1, 2];

/// Bytes that say by whom and where they were written.
fn pattern(path: &str, nsid: u32, block_bytes: u32) -> Vec<u8> {
    let seed = path.len() as u32 * 17 + nsid;
    (0..BLOCKS * block_bytes)
        .map(|at| (at * 7 + at / 512 + seed) as u8 | 1)
        .collect()
}

fn place(path: &str) -> u64 {
    PLACES.iter().find(|(name, _)| *name == path).unwrap().1
}

fn write<D: Device>(device: &D, path: &str, nsid: u32) {
    let bytes = pattern(path, nsid, device.facts().logical_block.bytes());
    let done = one(device, io(Op::Write, place(path), BLOCKS), Some(&bytes));
    assert_eq!(done.0, Status::Ok, "{path} writes namespace {nsid}");
    assert_eq!(one(device, Io::FLUSH, None).0, Status::Ok, "{path} flushes");
}

#[track_caller]
fn read<D: Device>(device: &D, reader: &str, writers: &[&str], nsid: u32) {
    let block_bytes = device.facts().logical_block.bytes();
    for writer in writers {
        let (status, bytes) = one(device, io(Op::Read, place(writer), BLOCKS), None);
        assert_eq!(status, Status::Ok);
        assert!(
            bytes == pattern(writer, nsid, block_bytes),
            "namespace {nsid}: {reader} reads what {writer} wrote"
        );
    }
}

fn uring(nsid: u32, writes: bool) -> UringDevice {
    let options = UringOptions {
        writes,
        ..UringOptions::default()
    };
    UringDevice::open(&nodes(SERIAL, nsid).0, options).unwrap()
}

#[test]
fn stage_1_the_kernels_paths_write() {
    if !is_here() {
        return;
    }
    for nsid in NAMESPACES {
        write(&uring(nsid, true), "uring", nsid);
        let passthrough = UringCmdDevice::open(&nodes(SERIAL, nsid).1, WRITES).unwrap();
        write(&passthrough, "uring-cmd", nsid);
    }
}

/// The controller is claimed; the third stage waits for what is written here.
#[test]
fn stage_2_spdk_reads_and_writes() {
    let Ok(bdf) = std::env::var("LANEMARK_BDF") else {
        return;
    };
    let name = format!("{bdf} ns:all");
    let devices = SpdkDevice::open_all(&Sysfs::host(), &[&name]).unwrap();
    assert_eq!(devices.len(), NAMESPACES.len());
    for (device, nsid) in devices.iter().zip(NAMESPACES) {
        assert_eq!(device.namespace().nsid, nsid);
        read(device, "spdk", &["uring", "uring-cmd"], nsid);
        write(device, "spdk", nsid);
    }
}

#[test]
fn stage_3_the_kernels_paths_read() {
    if !is_here() {
        return;
    }
    for nsid in NAMESPACES {
        read(&uring(nsid, false), "uring", &["uring-cmd", "spdk"], nsid);
        let passthrough = UringCmdDevice::open(&nodes(SERIAL, nsid).1, WRITES).unwrap();
        read(&passthrough, "uring-cmd", &["uring", "spdk"], nsid);
    }
}

//! Invocations that must not be refused.

use super::{B, NONE};
use crate::guard_tree::{Tree, with};

/// Name, how the machine differs, target, `--allow-write`, `--overwrite`.
pub type Harmless = (
    &'static str,
    fn(&mut Tree),
    &'static str,
    &'static [&'static str],
    &'static [&'static str],
);

pub const HARMLESS: &[Harmless] = &[
    ("by path", |_| {}, "/dev/sdb", B, NONE),
    ("by serial", |_| {}, "/dev/sdb", &["SER-B"], NONE),
    (
        "by one of several words",
        |_| {},
        "/dev/sdb",
        &["SER-C", "SER-B"],
        NONE,
    ),
    (
        "by a link",
        |t| t.link("dev/disk/by-id/mine", "../../sdb"),
        "/dev/disk/by-id/mine",
        B,
        NONE,
    ),
    (
        "consent by a link",
        |t| t.link("dev/disk/by-id/mine", "../../sdb"),
        "/dev/sdb",
        &["/dev/disk/by-id/mine"],
        NONE,
    ),
    ("sg, consent by its block node", |_| {}, "/dev/sg1", B, NONE),
    (
        "block node, consent by sg",
        |_| {},
        "/dev/sdb",
        &["/dev/sg1"],
        NONE,
    ),
    (
        "ng, consent by its block node",
        |_| {},
        "/dev/ng0n1",
        &["/dev/nvme0n1"],
        NONE,
    ),
    (
        "second path, consent by the first",
        |t| {
            t.scsi_disk("sdd", "8:48", 3, "SER-B", "naa.500000000000000b");
        },
        "/dev/sdd",
        B,
        NONE,
    ),
    (
        "one disk on two paths, by serial",
        |t| {
            t.scsi_disk("sdd", "8:48", 3, "SER-B", "naa.500000000000000b");
        },
        "/dev/sdd",
        &["SER-B"],
        NONE,
    ),
    (
        "a serial that two disks have, by path",
        |t| {
            t.scsi_disk("sdd", "8:48", 3, "DUP", "naa.500000000000000d");
            t.scsi_disk("sde", "8:64", 4, "DUP", "naa.500000000000000e");
            t.mount("8:64", "/data", "ext4", "/dev/sde");
        },
        "/dev/sdd",
        &["/dev/sdd"],
        NONE,
    ),
    (
        "an empty serial, by path",
        |t| t.scsi_disk("sdd", "8:48", 3, "", ""),
        "/dev/sdd",
        &["/dev/sdd"],
        NONE,
    ),
    (
        "the other namespace is mounted",
        |t| {
            t.mount("259:1", "/data", "ext4", "/dev/nvme0n2");
        },
        "/dev/nvme0n1",
        &["/dev/nvme0n1"],
        NONE,
    ),
    (
        "a disk with an idle part",
        |t| t.part("sdb", "sdb1", "8:17", 1),
        "/dev/sdb",
        B,
        NONE,
    ),
    (
        "an idle part, consent for the disk",
        |t| t.part("sdb", "sdb1", "8:17", 1),
        "/dev/sdb1",
        B,
        NONE,
    ),
    (
        "an idle logical volume beside the root",
        |t| {
            t.part("sda", "sda3", "8:3", 5);
            t.dm("dm-0", "252:0", "vg-spare", "LVM-abc", &["sda3"]);
        },
        "/dev/dm-0",
        &["/dev/dm-0"],
        NONE,
    ),
    (
        "a multipath map",
        |t| {
            t.scsi_disk("sdd", "8:48", 3, "SER-B", "naa.500000000000000b");
            t.dm(
                "dm-0",
                "252:0",
                "mpatha",
                "mpath-3500000000000000b",
                &["sdb", "sdd"],
            );
        },
        "/dev/dm-0",
        &["/dev/dm-0"],
        NONE,
    ),
    (
        "a loop device on a file of the root disk",
        |t| t.attach("loop6", "7:6", "/images/a"),
        "/dev/loop6",
        &["/dev/loop6"],
        NONE,
    ),
    (
        "the upper of two loop devices",
        |t| {
            t.attach("loop6", "7:6", "/images/a");
            t.attach("loop7", "7:7", "/dev/loop6");
        },
        "/dev/loop7",
        &["/dev/loop7"],
        NONE,
    ),
    (
        "a namesake is mounted",
        |t| {
            t.scsi_disk("sdba", "65:32", 5, "SER-X", "naa.5000000000000aaa");
            t.mount("65:32", "/data", "ext4", "/dev/sdba");
        },
        "/dev/sdb",
        B,
        NONE,
    ),
    (
        "a GPT, overridden",
        |t| t.content("sdb", with(&[(512, b"EFI PART")])),
        "/dev/sdb",
        B,
        &["gpt"],
    ),
    (
        "a disk and a part with signatures, all overridden",
        |t| {
            t.part("sdb", "sdb2", "8:18", 2);
            t.content("sdb", with(&[(512, b"EFI PART"), (2 << 20, b"XFSB")]));
        },
        "/dev/sdb",
        B,
        &["gpt", "xfs"],
    ),
    (
        "labels of a pool, none imported",
        |t| {
            t.content("sdb", with(&[(128 * 1024, &0x00ba_b10c_u64.to_le_bytes())]));
        },
        "/dev/sdb",
        B,
        &["zfs"],
    ),
    (
        "btrfs elsewhere",
        |t| t.mount("0:44", "/pool", "btrfs", "/dev/sdc"),
        "/dev/sdb",
        B,
        NONE,
    ),
    (
        "another disk is half broken",
        |t| {
            t.file(&format!("{}/size", t.dir("sdc")), "?\n");
            t.file(&format!("{}/dev", t.dir("nvme0n2")), "garbage\n");
        },
        "/dev/sdb",
        B,
        NONE,
    ),
    (
        "a kernel without swap",
        |t| t.remove("proc/swaps"),
        "/dev/sdb",
        B,
        NONE,
    ),
    (
        "a plain file by its path",
        |t| t.file("images/a", "some text, longer than a node"),
        "/images/a",
        &["/images/a"],
        NONE,
    ),
    (
        "a plain file by a link",
        |t| {
            t.file("images/a", "some text, longer than a node");
            t.link("images/b", "a");
        },
        "/images/b",
        &["/images/a"],
        NONE,
    ),
];

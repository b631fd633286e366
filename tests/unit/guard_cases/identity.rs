//! Devices by another name, and what the root file system stands on.

use super::{B, Case, NONE, case};

pub const CASES: &[Case] = &[
    case!(
        "the root disk",
        "/dev/sda",
        &["/dev/sda", "SER-A"],
        NONE,
        "root",
        &["holds the root file system (sda)"],
        |_| {}
    ),
    case!(
        "an idle part of the root disk",
        "/dev/sda3",
        &["/dev/sda3"],
        NONE,
        "root",
        &["sda, on the same disk"],
        |t| {
            t.part("sda", "sda3", "8:3", 5);
        }
    ),
    case!(
        "root through LVM on md",
        "/dev/sdb",
        B,
        NONE,
        "root",
        &["root file system (sdb)"],
        |t| {
            t.part("sdb", "sdb1", "8:17", 1);
            t.virtual_disk("md0", "9:0");
            t.hold("sdb1", "md0");
            t.dm("dm-0", "252:0", "vg-root", "LVM-abc", &["md0"]);
            t.mount("252:0", "/", "ext4", "/dev/mapper/vg-root");
        }
    ),
    case!(
        "root as an overlay",
        "/dev/sdb",
        B,
        NONE,
        "root",
        &["root file system (sdb)"],
        |t| {
            t.mount("8:16", "/layers", "ext4", "/dev/sdb");
            t.mount_with(
                "0:50",
                "/",
                "overlay",
                "overlay",
                "rw,lowerdir=/layers/low,upperdir=/layers/up",
            );
        }
    ),
    case!(
        "root on a loop device on its file",
        "/dev/sdb",
        B,
        NONE,
        "root",
        &["root file system (sdb)"],
        |t| {
            t.mount("8:16", "/live", "iso9660", "/dev/sdb");
            t.attach("loop6", "7:6", "/live/root.squashfs");
            t.mount("7:6", "/", "squashfs", "/dev/loop6");
        }
    ),
    case!(
        "sg node of a mounted disk",
        "/dev/sg1",
        &["/dev/sg1"],
        NONE,
        "mounted",
        &["mounted at /data"],
        |t| {
            t.mount("8:16", "/data", "ext4", "/dev/sdb");
        }
    ),
    case!(
        "ng node of a mounted namespace",
        "/dev/ng0n1",
        &["/dev/ng0n1"],
        NONE,
        "mounted",
        &["mounted at /data"],
        |t| {
            t.mount("259:0", "/data", "ext4", "/dev/nvme0n1");
        }
    ),
    case!(
        "second path of a mounted disk",
        "/dev/sdd",
        &["/dev/sdd"],
        NONE,
        "mounted",
        &["sdb1, the same device by another name"],
        |t| {
            t.scsi_disk("sdd", "8:48", 3, "SER-B", "naa.500000000000000b");
            t.part("sdb", "sdb1", "8:17", 1);
            t.mount("8:17", "/data", "ext4", "/dev/sdb1");
        }
    ),
    case!(
        "shared namespace of another controller",
        "/dev/nvme1n1",
        &["/dev/nvme1n1"],
        NONE,
        "mounted",
        &["nvme0n1, the same device"],
        |t| {
            t.nvme(
                1,
                1,
                "259:5",
                "NV-1",
                "00000000-0000-0001-0000-000000000001",
            );
            t.mount("259:0", "/data", "ext4", "/dev/nvme0n1");
        }
    ),
    case!(
        "same serial, no world-wide name to tell",
        "/dev/sdd",
        &["/dev/sdd"],
        NONE,
        "mounted",
        &["sde, the same device"],
        |t| {
            t.scsi_disk("sdd", "8:48", 3, "DUP", "");
            t.scsi_disk("sde", "8:64", 4, "DUP", "");
            t.mount("8:64", "/data", "ext4", "/dev/sde");
        }
    ),
    case!(
        "path of an idle multipath map",
        "/dev/sdb",
        B,
        NONE,
        "holder",
        &["multipath mpatha"],
        |t| {
            t.scsi_disk("sdd", "8:48", 3, "SER-B", "naa.500000000000000b");
            t.dm(
                "dm-0",
                "252:0",
                "mpatha",
                "mpath-3500000000000000b",
                &["sdb", "sdd"],
            );
        }
    ),
    case!(
        "multipath map over a path that is mounted",
        "/dev/dm-0",
        &["/dev/dm-0"],
        NONE,
        "mounted",
        &["mounted at /data"],
        |t| {
            t.part("sdb", "sdb1", "8:17", 1);
            t.dm(
                "dm-0",
                "252:0",
                "mpatha",
                "mpath-3500000000000000b",
                &["sdb"],
            );
            t.mount("8:17", "/data", "ext4", "/dev/sdb1");
        }
    ),
    case!(
        "part of a multipath map",
        "/dev/dm-0",
        &["/dev/dm-0"],
        NONE,
        "holder",
        &["held by dm-1"],
        |t| {
            t.dm(
                "dm-0",
                "252:0",
                "mpatha",
                "mpath-3500000000000000b",
                &["sdb"],
            );
            t.dm(
                "dm-1",
                "252:1",
                "mpatha-part1",
                "part1-mpath-3500000000000000b",
                &["dm-0"],
            );
        }
    ),
];

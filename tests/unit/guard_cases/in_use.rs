//! Devices that something uses.

use super::{B, Case, NONE, case};

pub const CASES: &[Case] = &[
    case!(
        "whole disk mounted",
        "/dev/sdb",
        B,
        NONE,
        "mounted",
        &["mounted at /data", "sdb", "xfs"],
        |t| {
            t.mount("8:16", "/data", "xfs", "/dev/sdb");
        }
    ),
    case!(
        "part mounted",
        "/dev/sdb",
        B,
        NONE,
        "mounted",
        &["mounted at /data", "partition sdb2"],
        |t| {
            t.part("sdb", "sdb2", "8:18", 2);
            t.mount("8:18", "/data", "ext4", "/dev/sdb2");
        }
    ),
    case!(
        "mount under another name",
        "/dev/sdb",
        B,
        NONE,
        "mounted",
        &["mounted at /mnt"],
        |t| {
            t.mount("8:16", "/mnt", "ext4", "/dev/root");
        }
    ),
    case!(
        "mount point with a blank",
        "/dev/sdb",
        B,
        NONE,
        "mounted",
        &["mounted at /my disk"],
        |t| {
            t.mount("8:16", r"/my\040disk", "ext4", "/dev/sdb");
        }
    ),
    case!(
        "mounted read-only",
        "/dev/sdb",
        B,
        NONE,
        "mounted",
        &["mounted at /ro (ro)"],
        |t| {
            t.mount_with("8:16", "/ro", "ext4", "/dev/sdb", "ro");
        }
    ),
    case!(
        "another part mounted",
        "/dev/sdb1",
        &["/dev/sdb1"],
        NONE,
        "mounted",
        &["sdb2, on the same disk"],
        |t| {
            t.part("sdb", "sdb1", "8:17", 1);
            t.part("sdb", "sdb2", "8:18", 3);
            t.mount("8:18", "/data", "ext4", "/dev/sdb2");
        }
    ),
    case!(
        "mounted in another namespace",
        "/dev/sdb",
        B,
        NONE,
        "mounted",
        &["/inside", "process 77"],
        |t| {
            t.mount_of(77, "8:16", "/inside", "ext4", "/dev/sdb");
        }
    ),
    case!(
        "mounted where nobody can look",
        "/dev/sdb",
        B,
        NONE,
        "mounted",
        &["mounted out of sight", "sdb1", "ext4"],
        |t| {
            t.part("sdb", "sdb1", "8:17", 1);
            t.folder("sys/fs/ext4/sdb1");
        }
    ),
    case!(
        "btrfs, by what was mounted",
        "/dev/sdb",
        B,
        NONE,
        "mounted",
        &["mounted at /pool", "btrfs"],
        |t| {
            t.mount("0:44", "/pool", "btrfs", "/dev/sdb");
        }
    ),
    case!(
        "btrfs, second device",
        "/dev/sdc",
        &["/dev/sdc"],
        NONE,
        "mounted",
        &["btrfs"],
        |t| {
            t.mount("0:44", "/pool", "btrfs", "/dev/sdb");
            t.link(
                "sys/fs/btrfs/1234-5678/devices/sdb",
                "../../../../class/block/sdb",
            );
            t.link(
                "sys/fs/btrfs/1234-5678/devices/sdc",
                "../../../../class/block/sdc",
            );
        }
    ),
    case!(
        "a link to a mounted disk",
        "/dev/disk/by-id/mine",
        &["/dev/disk/by-id/mine"],
        NONE,
        "mounted",
        &["mounted at /data"],
        |t| {
            t.link("dev/disk/by-id/mine", "../../sdb");
            t.mount("8:16", "/data", "ext4", "/dev/sdb");
        }
    ),
    case!(
        "swap on the disk",
        "/dev/sdb",
        B,
        NONE,
        "swap",
        &["swap in use (sdb)"],
        |t| t.swap("/dev/sdb", "partition")
    ),
    case!(
        "swap on a part",
        "/dev/sdb",
        B,
        NONE,
        "swap",
        &["partition sdb1"],
        |t| {
            t.part("sdb", "sdb1", "8:17", 1);
            t.swap("/dev/sdb1", "partition");
        }
    ),
    case!(
        "swap by a name that is not here",
        "/dev/dm-3",
        &["/dev/dm-3"],
        NONE,
        "swap",
        &["dm-3"],
        |t| {
            t.dm("dm-3", "252:3", "vg-swap", "LVM-x", &["sdb"]);
            t.swap("/dev/mapper/vg-swap", "partition");
        }
    ),
    case!(
        "LVM on it",
        "/dev/sdb",
        B,
        NONE,
        "holder",
        &["held by dm-0", "LVM vg/lv", "mounted at /srv"],
        |t| {
            t.dm("dm-0", "252:0", "vg-lv", "LVM-abc", &["sdb"]);
            t.mount("252:0", "/srv", "ext4", "/dev/mapper/vg-lv");
        }
    ),
    case!(
        "idle LVM on a part",
        "/dev/sdb",
        B,
        NONE,
        "holder",
        &["LVM vg-a/lv", "partition sdb1"],
        |t| {
            t.part("sdb", "sdb1", "8:17", 1);
            t.dm("dm-0", "252:0", "vg--a-lv", "LVM-abc", &["sdb1"]);
        }
    ),
    case!(
        "md on it",
        "/dev/sdb",
        B,
        NONE,
        "holder",
        &["held by md127", "md raid1"],
        |t| {
            t.virtual_disk("md127", "9:127");
            t.file("sys/devices/virtual/block/md127/md/level", "raid1\n");
            t.hold("sdb", "md127");
        }
    ),
    case!(
        "encryption on it",
        "/dev/sdb",
        B,
        NONE,
        "holder",
        &["dm-crypt home"],
        |t| {
            t.dm("dm-1", "252:1", "home", "CRYPT-LUKS2-abc-home", &["sdb"]);
        }
    ),
    case!(
        "bcache on it",
        "/dev/sdb",
        B,
        NONE,
        "holder",
        &["held by bcache0 (bcache"],
        |t| {
            t.virtual_disk("bcache0", "251:0");
            t.hold("sdb", "bcache0");
        }
    ),
    case!(
        "loop on it",
        "/dev/sdb",
        B,
        NONE,
        "loop-backing",
        &["backs loop6"],
        |t| {
            t.attach("loop6", "7:6", "/dev/sdb");
        }
    ),
    case!(
        "loop on a part, swap on that",
        "/dev/sdb",
        B,
        NONE,
        "loop-backing",
        &["backs loop6", "sdb1", "swap in use"],
        |t| {
            t.part("sdb", "sdb1", "8:17", 1);
            t.attach("loop6", "7:6", "/dev/sdb1");
            t.swap("/dev/loop6", "partition");
        }
    ),
    case!(
        "loop on loop, from below",
        "/dev/loop6",
        &["/dev/loop6"],
        NONE,
        "loop-backing",
        &["backs loop7", "mounted at /deep"],
        |t| {
            t.attach("loop6", "7:6", "/images/a");
            t.attach("loop7", "7:7", "/dev/loop6");
            t.mount("7:7", "/deep", "ext4", "/dev/loop7");
        }
    ),
    case!(
        "loop on a mounted disk, from above",
        "/dev/loop6",
        &["/dev/loop6"],
        NONE,
        "mounted",
        &["mounted at /data", "sdb, the same device"],
        |t| {
            t.attach("loop6", "7:6", "/dev/sdb");
            t.mount("8:16", "/data", "ext4", "/dev/sdb");
        }
    ),
    case!(
        "two loops on one file",
        "/dev/loop7",
        &["/dev/loop7"],
        NONE,
        "mounted",
        &["mounted at /one", "loop6"],
        |t| {
            t.attach("loop6", "7:6", "/images/a");
            t.attach("loop7", "7:7", "/images/a");
            t.mount("7:6", "/one", "ext4", "/dev/loop6");
        }
    ),
    case!(
        "log of a mounted XFS",
        "/dev/sdb",
        B,
        NONE,
        "mounted",
        &["mounted at /data", "xfs"],
        |t| t.mount_with("8:32", "/data", "xfs", "/dev/sdc", "rw,logdev=/dev/sdb")
    ),
    case!(
        "one of several devices that were mounted",
        "/dev/sdc",
        &["/dev/sdc"],
        NONE,
        "mounted",
        &["mounted at /many"],
        |t| t.mount("0:44", "/many", "bcachefs", "/dev/sdb:/dev/sdc")
    ),
];

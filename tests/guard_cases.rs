//! What the guard refuses and what it lets through, on hand-made machines: no device is touched.
#![allow(clippy::unwrap_used)]

mod guard_tree;

use guard_tree::{Tree, with};
use lanemark::session::guard::{Consent, Guard, Intent, Permit, Refusal, in_use, parse_overwrite};
use std::path::Path;

/// A machine with a root disk `sda`, two spare SCSI disks, an NVMe drive of two namespaces and free loop
/// devices. Every case starts here and changes what it is about.
fn machine() -> Tree {
    let mut tree = Tree::new();
    tree.scsi_disk("sda", "8:0", 0, "SER-A", "naa.500000000000000a");
    tree.part("sda", "sda1", "8:1", 1);
    tree.part("sda", "sda2", "8:2", 3);
    tree.scsi_disk("sdb", "8:16", 1, "SER-B", "naa.500000000000000b");
    tree.scsi_disk("sdc", "8:32", 2, "SER-C", "naa.500000000000000c");
    tree.nvme(
        0,
        1,
        "259:0",
        "NV-0",
        "00000000-0000-0001-0000-000000000001",
    );
    tree.nvme(
        0,
        2,
        "259:1",
        "NV-0",
        "00000000-0000-0001-0000-000000000002",
    );
    tree.virtual_disk("loop4", "7:4");
    tree.virtual_disk("loop5", "7:5");
    tree.mount("8:1", "/", "ext4", "/dev/sda1");
    tree.swap("/dev/sda2", "partition");
    tree
}

fn consent(words: &[&str], overwrite: &[&str]) -> Consent {
    Consent {
        allow_write: words.iter().map(|word| (*word).to_owned()).collect(),
        overwrite: overwrite
            .iter()
            .flat_map(|word| parse_overwrite(word).unwrap())
            .collect(),
    }
}

fn check(tree: &Tree, target: &str, consent: &Consent) -> Result<Permit, Refusal> {
    let sysfs = tree.sysfs();
    Guard::with_contents(&sysfs, tree).check(Path::new(target), consent, Intent::Write)
}

/// One invocation: how the machine differs, what is named, what is allowed, and the finding that must be
/// among the reasons: its kind and words of its text.
struct Case {
    name: &'static str,
    change: fn(&mut Tree),
    target: &'static str,
    allow: &'static [&'static str],
    overwrite: &'static [&'static str],
    finding: &'static str,
    words: &'static [&'static str],
}

const B: &[&str] = &["/dev/sdb"];
const NONE: &[&str] = &[];

macro_rules! case {
    ($name:literal, $target:literal, $allow:expr, $overwrite:expr, $finding:literal, $words:expr, $change:expr) => {
        Case {
            name: $name,
            change: $change,
            target: $target,
            allow: $allow,
            overwrite: $overwrite,
            finding: $finding,
            words: $words,
        }
    };
}

fn in_use_cases() -> Vec<Case> {
    vec![
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
    ]
}

fn identity_cases() -> Vec<Case> {
    vec![
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
    ]
}

fn consent_cases() -> Vec<Case> {
    vec![
        case!(
            "no consent",
            "/dev/sdb",
            NONE,
            NONE,
            "no-consent",
            &["no consent"],
            |_| {}
        ),
        case!(
            "consent for another path",
            "/dev/sdb",
            &["/dev/sdc"],
            NONE,
            "other-consent",
            &["another device: /dev/sdc"],
            |_| {}
        ),
        case!(
            "consent for another serial",
            "/dev/sdb",
            &["SER-C"],
            NONE,
            "other-consent",
            &["SER-C"],
            |_| {}
        ),
        case!(
            "a serial cut short",
            "/dev/sdb",
            &["SER-"],
            NONE,
            "other-consent",
            &["SER-"],
            |_| {}
        ),
        case!(
            "consent for a part",
            "/dev/sdb",
            &["/dev/sdb1"],
            NONE,
            "other-consent",
            &["a part of it only: /dev/sdb1"],
            |t| {
                t.part("sdb", "sdb1", "8:17", 1);
            }
        ),
        case!(
            "an empty serial",
            "/dev/sdd",
            &["SER-D"],
            NONE,
            "no-serial",
            &["serial number of the device is empty"],
            |t| {
                t.scsi_disk("sdd", "8:48", 3, "", "naa.500000000000000d");
            }
        ),
        case!(
            "an empty word",
            "/dev/loop4",
            &[""],
            NONE,
            "no-serial",
            &["empty"],
            |_| {}
        ),
        case!(
            "a serial that two disks have",
            "/dev/sdd",
            &["DUP"],
            NONE,
            "serial-not-unique",
            &["sdd and sde"],
            |t| {
                t.scsi_disk("sdd", "8:48", 3, "DUP", "naa.500000000000000d");
                t.scsi_disk("sde", "8:64", 4, "DUP", "naa.500000000000000e");
            }
        ),
        case!(
            "the serial of two namespaces",
            "/dev/nvme0n1",
            &["NV-0"],
            NONE,
            "serial-not-unique",
            &["nvme0n1 and nvme0n2"],
            |_| {}
        ),
        case!(
            "path of another disk with that serial",
            "/dev/sdd",
            &["/dev/sde"],
            NONE,
            "other-consent",
            &["/dev/sde"],
            |t| {
                t.scsi_disk("sdd", "8:48", 3, "DUP", "");
                t.scsi_disk("sde", "8:64", 4, "DUP", "");
            }
        ),
    ]
}

fn content_cases() -> Vec<Case> {
    vec![
        case!(
            "a GPT",
            "/dev/sdb",
            B,
            NONE,
            "signature",
            &["gpt", "GPT partition table"],
            |t| {
                t.content("sdb", with(&[(512, b"EFI PART")]));
            }
        ),
        case!(
            "only the backup of a GPT",
            "/dev/sdb",
            B,
            NONE,
            "signature",
            &["gpt", "at byte 8388096"],
            |t| {
                t.content("sdb", with(&[(guard_tree::DISK_BYTES - 512, b"EFI PART")]));
            }
        ),
        case!(
            "another signature overridden",
            "/dev/sdb",
            B,
            &["gpt", "xfs"],
            "signature",
            &["ext2"],
            |t| {
                t.content("sdb", with(&[(1024 + 0x38, &[0x53, 0xef])]));
            }
        ),
        case!(
            "a file system in a part",
            "/dev/sdb",
            B,
            NONE,
            "signature",
            &["xfs", "partition sdb2"],
            |t| {
                t.part("sdb", "sdb2", "8:18", 2);
                t.content("sdb", with(&[(2 << 20, b"XFSB")]));
            }
        ),
        case!(
            "an imported pool, overridden",
            "/dev/sdb",
            B,
            &["zfs"],
            "zfs-pool",
            &["imported ZFS pool tank"],
            |t| {
                t.folder("proc/spl/kstat/zfs/tank");
                t.content("sdb", with(&[(128 * 1024, &0x00ba_b10c_u64.to_le_bytes())]));
            }
        ),
        case!(
            "a write-protected disk",
            "/dev/sdb",
            B,
            NONE,
            "read-only",
            &["read-only (sdb)"],
            |t| {
                t.file(&format!("{}/ro", t.dir("sdb")), "1\n");
            }
        ),
        case!(
            "a mount table that is garbled",
            "/dev/sdb",
            B,
            NONE,
            "unreadable",
            &["mountinfo", "what is this"],
            |t| {
                t.file("proc/self/mountinfo", "what is this\n");
            }
        ),
        case!(
            "a mount table of another process that is garbled",
            "/dev/sdb",
            B,
            NONE,
            "unreadable",
            &["mountinfo"],
            |t| {
                t.link("proc/9/ns/mnt", "mnt:[9]");
                t.file("proc/9/mountinfo", "1 2 3\n");
            }
        ),
        case!(
            "no mount table",
            "/dev/sdb",
            B,
            NONE,
            "unreadable",
            &["mountinfo"],
            |t| t.remove("proc/self/mountinfo")
        ),
        case!(
            "a swap list that is garbled",
            "/dev/sdb",
            B,
            NONE,
            "unreadable",
            &["swaps"],
            |t| t.file("proc/swaps", "oops\n")
        ),
        case!(
            "no holders folder",
            "/dev/sdb",
            B,
            NONE,
            "unreadable",
            &["holders"],
            |t| {
                t.remove(&format!("{}/holders", t.dir("sdb")));
            }
        ),
        case!(
            "a garbled size",
            "/dev/sdb",
            B,
            NONE,
            "unreadable",
            &["size", "12z"],
            |t| {
                t.file(&format!("{}/size", t.dir("sdb")), "12z\n");
            }
        ),
        case!(
            "a garbled device number",
            "/dev/sdb",
            B,
            NONE,
            "unreadable",
            &["8/16"],
            |t| {
                t.file(&format!("{}/dev", t.dir("sdb")), "8/16\n");
            }
        ),
        case!(
            "a number that sysfs does not know",
            "/dev/sdz",
            &["/dev/sdz"],
            NONE,
            "unreadable",
            &["65:1"],
            |t| {
                t.file("dev/sdz", "b 65:1\n");
            }
        ),
        case!(
            "nothing there",
            "/dev/nothing",
            &["/dev/nothing"],
            NONE,
            "unreadable",
            &["ENOENT"],
            |_| {}
        ),
        case!(
            "a folder",
            "/dev",
            &["/dev"],
            NONE,
            "unsuitable",
            &["a folder"],
            |_| {}
        ),
        case!(
            "a character device",
            "/dev/null",
            &["/dev/null"],
            NONE,
            "unsuitable",
            &["no sg or ng node"],
            |t| {
                t.file("dev/null", "c 1:3\n");
            }
        ),
    ]
}

fn file_cases() -> Vec<Case> {
    const F: &[&str] = &["/images/a"];
    vec![
        case!(
            "a file without consent",
            "/images/a",
            NONE,
            NONE,
            "no-consent",
            &["no consent"],
            |t| t.file("images/a", "some text, longer than a node")
        ),
        case!(
            "a file that backs a loop device",
            "/images/a",
            F,
            NONE,
            "loop-backing",
            &["backs loop6", "mounted at /one"],
            |t| {
                t.file("images/a", "some text, longer than a node");
                t.attach("loop6", "7:6", "/images/a");
                t.mount("7:6", "/one", "ext4", "/dev/loop6");
            }
        ),
        case!(
            "the same file by a link",
            "/images/b",
            &["/images/b"],
            NONE,
            "loop-backing",
            &["backs loop6"],
            |t| {
                t.file("images/a", "some text, longer than a node");
                std::fs::hard_link(t.root().join("images/a"), t.root().join("images/b")).unwrap();
                t.attach("loop6", "7:6", "/images/a");
            }
        ),
        case!(
            "a swap file",
            "/images/a",
            F,
            NONE,
            "swap",
            &["swap in use (/images/a)"],
            |t| {
                t.file("images/a", "some text, longer than a node");
                t.swap("/images/a", "file");
            }
        ),
        case!(
            "an image with a file system",
            "/images/a",
            F,
            NONE,
            "signature",
            &["xfs"],
            |t| t.file("images/a", "XFSB and more than a node")
        ),
        case!(
            "consent for another file",
            "/images/a",
            &["/images/b"],
            NONE,
            "other-consent",
            &["/images/b"],
            |t| {
                t.file("images/a", "some text, longer than a node");
                t.file("images/b", "some text, longer than a node");
            }
        ),
    ]
}

#[test]
fn dangerous_invocations_are_refused_and_the_finding_is_named() {
    let tables = [
        in_use_cases(),
        identity_cases(),
        consent_cases(),
        content_cases(),
        file_cases(),
    ];
    let cases: Vec<Case> = tables.into_iter().flatten().collect();
    assert!(cases.len() >= 30);
    let mut failures = Vec::new();
    for case in &cases {
        let mut tree = machine();
        (case.change)(&mut tree);
        let answer = check(&tree, case.target, &consent(case.allow, case.overwrite));
        let Err(refusal) = answer else {
            failures.push(format!("{}: let through", case.name));
            continue;
        };
        let texts: Vec<String> = refusal
            .findings
            .iter()
            .filter(|finding| finding.kind() == case.finding)
            .map(ToString::to_string)
            .collect();
        let is_named = texts
            .iter()
            .any(|text| case.words.iter().all(|word| text.contains(word)));
        let failure = refusal.failure();
        let is_told =
            failure.exit_code == 3 && failure.kind == "refused" && !failure.next_step.is_empty();
        if !is_named || !is_told {
            failures.push(format!("{}: {failure:?}", case.name));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Each dangerous case must be refused for its own reason only: without the change, and with consent, the
/// same target runs. This keeps a guard that refuses everything from passing.
#[test]
fn without_the_danger_the_same_targets_run() {
    for target in [
        "/dev/sdb",
        "/dev/sdc",
        "/dev/loop4",
        "/dev/nvme0n1",
        "/dev/nvme0n2",
        "/dev/sg1",
        "/dev/ng0n1",
    ] {
        let answer = check(&machine(), target, &consent(&[target], NONE));
        assert!(answer.is_ok(), "{target}: {}", answer.unwrap_err());
    }
}

type Harmless = (
    &'static str,
    fn(&mut Tree),
    &'static str,
    &'static [&'static str],
    &'static [&'static str],
);

const HARMLESS: &[Harmless] = &[
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

#[test]
fn harmless_invocations_run() {
    assert!(HARMLESS.len() >= 20);
    let mut failures = Vec::new();
    for (name, change, target, allow, overwrite) in HARMLESS {
        let mut tree = machine();
        change(&mut tree);
        if let Err(refusal) = check(&tree, target, &consent(allow, overwrite)) {
            failures.push(format!("{name}: {refusal}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn several_reasons_are_all_named_and_the_advice_is_about_those_that_no_flag_lifts() {
    let mut tree = machine();
    tree.mount("8:16", "/data", "ext4", "/dev/sdb");
    tree.content("sdb", with(&[(0, b"XFSB")]));
    let refusal = check(&tree, "/dev/sdb", &Consent::default()).unwrap_err();
    let kinds: Vec<&str> = refusal
        .findings
        .iter()
        .map(|finding| finding.kind())
        .collect();
    assert_eq!(kinds, ["mounted", "no-consent", "signature"]);
    assert_eq!(refusal.next_step(), "unmount /data, or name another device");
}

#[test]
fn advice_names_the_serial_only_where_it_is_unique() {
    let unique = check(&machine(), "/dev/sdb", &Consent::default()).unwrap_err();
    assert!(
        unique
            .next_step()
            .contains("--allow-write SER-B or --allow-write /dev/sdb")
    );
    let shared = check(&machine(), "/dev/nvme0n1", &Consent::default()).unwrap_err();
    assert!(
        shared.next_step().ends_with("--allow-write /dev/nvme0n1"),
        "{}",
        shared.next_step()
    );
}

#[test]
fn a_permit_for_a_generic_node_holds_the_block_nodes_of_every_path() {
    let tree = machine();
    tree.scsi_disk("sdd", "8:48", 3, "SER-B", "naa.500000000000000b");
    let permit = check(&tree, "/dev/sg1", &consent(&["SER-B"], NONE)).unwrap();
    assert_eq!(
        permit.hold_exclusive(),
        [Path::new("/dev/sdb"), Path::new("/dev/sdd")]
    );
    let permit = check(&tree, "/dev/sdb", &consent(&["SER-B"], NONE)).unwrap();
    assert!(
        permit.hold_exclusive().is_empty(),
        "the block node itself is opened exclusively"
    );
}

#[test]
fn the_second_look_finds_what_has_changed_since() {
    let mut tree = machine();
    let sysfs = tree.sysfs();
    let file = format!("{}/diskseq", tree.dir("sdb"));
    tree.file(&file, "7\n");
    let permit = check(&tree, "/dev/sdb", &consent(B, NONE)).unwrap();
    Guard::with_contents(&sysfs, &tree).again(&permit).unwrap();
    tree.file(&file, "8\n");
    let changed = Guard::with_contents(&sysfs, &tree)
        .again(&permit)
        .unwrap_err();
    assert!(changed.to_string().contains("another device or medium"));
    tree.file(&file, "7\n");
    tree.mount("8:16", "/late", "ext4", "/dev/sdb");
    let mounted = Guard::with_contents(&sysfs, &tree)
        .again(&permit)
        .unwrap_err();
    assert!(mounted.to_string().contains("mounted at /late"));
}

#[test]
fn reading_tells_what_uses_the_device() {
    let mut tree = machine();
    tree.mount_with("8:16", "/data", "ext4", "/dev/sdb", "ro");
    assert_eq!(
        in_use(&tree.sysfs(), Path::new("/dev/sdb")),
        ["mounted at /data (ro) (sdb, ext4)"]
    );
    let root = in_use(&tree.sysfs(), Path::new("/dev/sda"));
    assert_eq!(
        root,
        [
            "mounted at / (partition sda1, ext4)",
            "swap in use (partition sda2)",
            "holds the root file system (sda)"
        ]
    );
    assert!(in_use(&tree.sysfs(), Path::new("/dev/sdc")).is_empty());
    tree.file("proc/self/mountinfo", "garbled\n");
    assert!(in_use(&tree.sysfs(), Path::new("/dev/sdc"))[0].starts_with("unknown: "));
}

#[test]
fn what_has_no_node_is_judged_by_its_name_and_its_content() {
    let judge = |content: Vec<u8>, allow: &[&str], serial| {
        let consent = consent(allow, NONE);
        Guard::check_unlisted("0000:01:00.0", serial, &content, &consent, Intent::Write)
    };
    assert!(judge(with(&[]), &["0000:01:00.0"], None).is_ok());
    assert!(judge(with(&[]), &["S1"], Some("S1  ")).is_ok());
    let kinds = |refusal: Refusal| {
        refusal
            .findings
            .iter()
            .map(|f| f.kind())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        kinds(judge(with(&[]), &[], Some("S1")).unwrap_err()),
        ["no-consent"]
    );
    assert_eq!(
        kinds(judge(with(&[]), &[""], Some(" ")).unwrap_err()),
        ["other-consent"]
    );
    let gpt = with(&[(4096, b"EFI PART")]);
    assert_eq!(
        kinds(judge(gpt, &["S1"], Some("S1")).unwrap_err()),
        ["signature"]
    );
}

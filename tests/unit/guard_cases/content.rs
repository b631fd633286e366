//! Content that a write would destroy, and facts that cannot be judged.

use super::{B, Case, NONE, case};
use crate::guard_tree::{self, with};

pub const CASES: &[Case] = &[
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
    case!(
        "an imported pool on a part, overridden",
        "/dev/sdb",
        B,
        &["gpt", "zfs"],
        "zfs-pool",
        &["imported ZFS pool tank", "partition sdb2"],
        |t| {
            t.folder("proc/spl/kstat/zfs/tank");
            t.part("sdb", "sdb2", "8:18", 2);
            let label = (2 << 20) + 128 * 1024;
            t.content(
                "sdb",
                with(&[(512, b"EFI PART"), (label, &0x00ba_b10c_u64.to_le_bytes())]),
            );
        }
    ),
];

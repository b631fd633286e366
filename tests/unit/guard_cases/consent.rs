//! Consent that is missing or names something else.

use super::{Case, NONE, case};

pub const CASES: &[Case] = &[
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
        &["/dev/sdd and /dev/sde"],
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
        &["/dev/nvme0n1 and /dev/nvme0n2"],
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
];

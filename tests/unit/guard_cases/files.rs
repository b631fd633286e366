//! Regular files.

use super::{Case, NONE, case};

const F: &[&str] = &["/images/a"];

pub const CASES: &[Case] = &[
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
];

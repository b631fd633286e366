//! Whether two names lead to the same bytes: through partitions, and through loop devices to what they stand on.

use super::identity::Target;
use crate::session::machine::{Machine, Seen};
use crate::sysfs::{BlockDev, FileId, Node, NodeKind};
use std::ops::Range;
use std::path::Path;

/// Loop devices stand on each other at most so deep.
const MAX_DEPTH_COUNT: usize = 16;

/// Where bytes are in the end.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Home {
    File(FileId),
    Disk(String),
}

/// Bytes of a disk or file.
#[derive(Debug, Clone)]
struct Extent {
    home: Home,
    bytes: Range<u64>,
}

/// Whether some bytes are in both.
pub(in crate::session) fn share_bytes(seen: &Seen<'_>, one: &str, other: &str) -> bool {
    let extent = |path: &str| {
        let target = seen.target(Path::new(path)).ok()?;
        extent_of(seen.machine().ok()?, &target)
    };
    let (Some(one), Some(other)) = (extent(one), extent(other)) else {
        return false;
    };
    one.home == other.home && one.bytes.start < other.bytes.end && other.bytes.start < one.bytes.end
}

fn extent_of(machine: &Machine<'_>, target: &Target) -> Option<Extent> {
    let whole = |home| Extent {
        home,
        bytes: 0..u64::MAX,
    };
    match target {
        Target::File(node) => file_id(node).map(|id| whole(Home::File(id))),
        Target::Device(device) => {
            let named = device.part.as_ref().or(device.disks.first())?;
            Some(followed(machine, named))
        }
    }
}

fn file_id(node: &Node) -> Option<FileId> {
    match node.kind {
        NodeKind::File { id, .. } => Some(id),
        _ => None,
    }
}

/// Down from a node to what holds its bytes. Where that cannot be told, the node itself does.
fn followed(machine: &Machine<'_>, named: &BlockDev) -> Extent {
    let mut extent = Extent {
        home: Home::Disk(named.name.clone()),
        bytes: 0..u64::MAX,
    };
    for _ in 0..MAX_DEPTH_COUNT {
        let Home::Disk(name) = &extent.home else {
            break;
        };
        let Some(node) = machine.named(name) else {
            break;
        };
        let size_bytes = node.size().map_or(u64::MAX, |size| size.0);
        let (below, first_byte) = if let Some(disk) = &node.disk {
            (Home::Disk(disk.clone()), node.start().map_or(0, |at| at.0))
        } else if let Some(below) = below_loop(machine, name) {
            (
                below,
                node.loop_offset().ok().flatten().map_or(0, |at| at.0),
            )
        } else {
            break;
        };
        let end = extent.bytes.end.min(size_bytes);
        extent = Extent {
            home: below,
            bytes: first_byte.saturating_add(extent.bytes.start)..first_byte.saturating_add(end),
        };
    }
    extent
}

fn below_loop(machine: &Machine<'_>, name: &str) -> Option<Home> {
    let own = machine.loops.iter().find(|device| device.name == name)?;
    let node = own.node.as_ref()?;
    match node.kind {
        NodeKind::Block(dev) => Some(Home::Disk(machine.numbered(dev)?.name.clone())),
        _ => file_id(node).map(Home::File),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::sysfs::Sysfs;

    /// Folder, number and files of a node.
    type Made<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)]);

    /// A machine of these nodes.
    fn tree(nodes: &[Made<'_>]) -> (tempfile::TempDir, Sysfs) {
        let root = tempfile::tempdir().unwrap();
        let real = std::fs::canonicalize(root.path()).unwrap();
        let file = |path: &Path, text: &str| {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        file(
            &real.join("img"),
            "bytes of a file that are no node's number",
        );
        for (dir, dev, files) in nodes {
            let name = dir.rsplit('/').next().unwrap();
            let own = real.join("sys/devices").join(dir);
            file(&own.join("dev"), dev);
            for (path, text) in *files {
                file(&own.join(path), text);
            }
            file(&real.join("dev").join(name), &format!("b {dev}"));
            for list in ["sys/class/block".to_owned(), "sys/dev/block".to_owned()] {
                let entry = if list.ends_with("class/block") {
                    name
                } else {
                    dev
                };
                std::fs::create_dir_all(real.join(&list)).unwrap();
                std::os::unix::fs::symlink(&own, real.join(list).join(entry)).unwrap();
            }
        }
        let sysfs = Sysfs::at(real);
        (root, sysfs)
    }

    #[test]
    fn a_loop_device_is_its_file_and_a_partition_a_part_of_its_disk() {
        // Sizes in sectors: 4 MiB each but the disk, which has 16.
        let on = |offset| {
            [
                ("size", "8192"),
                ("loop/backing_file", "/img"),
                ("loop/offset", offset),
            ]
        };
        let above = [("size", "8192"), ("loop/backing_file", "/dev/sda2")];
        let part = |number, start| [("partition", number), ("size", "8192"), ("start", start)];
        let (_root, sysfs) = tree(&[
            ("loop0", "7:0", &on("0")),
            ("loop1", "7:1", &on("2097152")),
            ("loop2", "7:2", &on("4194304")),
            ("loop3", "7:3", &above),
            ("sda", "8:0", &[("size", "32768")]),
            ("sda/sda1", "8:1", &part("1", "2048")),
            ("sda/sda2", "8:2", &part("2", "10240")),
        ]);
        let seen = Seen::new(&sysfs);
        let share = |one, other| {
            let both = share_bytes(&seen, one, other);
            assert_eq!(both, share_bytes(&seen, other, one), "{one} {other}");
            both
        };
        for (one, other) in [
            ("/dev/loop0", "/img"),
            ("/dev/loop2", "/img"),
            ("/dev/loop0", "/dev/loop1"),
            ("/dev/loop1", "/dev/loop2"),
            ("/dev/sda", "/dev/sda1"),
            ("/dev/loop3", "/dev/sda2"),
            ("/dev/loop3", "/dev/sda"),
        ] {
            assert!(share(one, other), "{one} {other}");
        }
        for (one, other) in [
            ("/dev/loop0", "/dev/loop2"),
            ("/dev/sda1", "/dev/sda2"),
            ("/dev/loop3", "/dev/sda1"),
            ("/dev/sda", "/img"),
            ("/dev/sda", "/dev/loop0"),
            ("/dev/sda", "/nowhere"),
        ] {
            assert!(!share(one, other), "{one} {other}");
        }
    }
}

//! What a path names: a block or character device by its number, or a file by its inode.

use super::{Sysfs, SysfsError, real_path};
use std::fmt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// A device number. Names of nodes can be anything; this is what the kernel goes by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DevNum {
    /// Major number.
    pub major: u32,
    /// Minor number.
    pub minor: u32,
}

impl DevNum {
    /// From a `dev_t` of stat(2).
    #[must_use]
    pub fn of(dev: u64) -> Self {
        Self {
            major: libc::major(dev),
            minor: libc::minor(dev),
        }
    }

    /// Reads `8:17`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (major, minor) = text.split_once(':')?;
        Some(Self {
            major: digits(major, 10)?,
            minor: digits(minor, 10)?,
        })
    }

    /// Reads `fe:00`, the hexadecimal form of `/proc/locks`.
    #[must_use]
    pub fn parse_hex(text: &str) -> Option<Self> {
        let (major, minor) = text.split_once(':')?;
        Some(Self {
            major: digits(major, 16)?,
            minor: digits(minor, 16)?,
        })
    }

    /// Whether this is the number of a file system without a block device of its own (major 0: btrfs,
    /// tmpfs, overlay, network).
    #[must_use]
    pub const fn is_anonymous(self) -> bool {
        self.major == 0
    }
}

/// Digits only: `from_str_radix` alone would take a sign.
fn digits(text: &str, radix: u32) -> Option<u32> {
    let plain = !text.is_empty() && text.chars().all(|c| c.is_digit(radix));
    if plain {
        u32::from_str_radix(text, radix).ok()
    } else {
        None
    }
}

impl fmt::Display for DevNum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

/// A file, whatever it is called: file system and inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileId {
    /// Device of its file system.
    pub dev: DevNum,
    /// Inode.
    pub inode: u64,
}

/// What a path turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeKind {
    /// A block device node.
    Block(DevNum),
    /// A character device node.
    Char(DevNum),
    /// A regular file.
    File {
        /// Its file system and inode.
        id: FileId,
        /// Its length.
        len_bytes: u64,
    },
    /// A folder.
    Folder,
    /// A socket, a pipe.
    Other,
}

/// A path, followed to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// The path without symbolic links, as the machine writes it.
    pub path: PathBuf,
    /// What is there.
    pub kind: NodeKind,
}

impl Node {
    /// Follows `path` (symbolic links included) and looks at what is there. In a captured tree a node is
    /// a file that says `b 8:16` or `c 21:0`.
    ///
    /// # Errors
    /// [`SysfsError::Read`] where nothing is there or it may not be looked at.
    pub fn inspect(sysfs: &Sysfs, path: &Path) -> Result<Self, SysfsError> {
        let real = real_path(&sysfs.locate(path))?;
        let meta = std::fs::metadata(&real).map_err(|error| SysfsError::read(&real, &error))?;
        let shown = sysfs.shown(&real);
        let kind = match captured_node(sysfs, &real, meta.len()) {
            Some(kind) => kind,
            None => kind_of(&meta),
        };
        Ok(Self { path: shown, kind })
    }

    /// What a path leads to, without asking for its real name: a file without one (only a descriptor leads
    /// to it) has a kind all the same.
    ///
    /// # Errors
    /// [`SysfsError::Read`] where nothing is there or it may not be looked at.
    pub fn kind_at(sysfs: &Sysfs, path: &Path) -> Result<NodeKind, SysfsError> {
        let path = sysfs.locate(path);
        let meta = std::fs::metadata(&path).map_err(|error| SysfsError::read(&path, &error))?;
        Ok(captured_node(sysfs, &path, meta.len()).unwrap_or_else(|| kind_of(&meta)))
    }
}

fn kind_of(meta: &std::fs::Metadata) -> NodeKind {
    let kind = meta.file_type();
    if kind.is_block_device() {
        NodeKind::Block(DevNum::of(meta.rdev()))
    } else if kind.is_char_device() {
        NodeKind::Char(DevNum::of(meta.rdev()))
    } else if kind.is_file() {
        NodeKind::File {
            id: FileId {
                dev: DevNum::of(meta.dev()),
                inode: meta.ino(),
            },
            len_bytes: meta.len(),
        }
    } else if kind.is_dir() {
        NodeKind::Folder
    } else {
        NodeKind::Other
    }
}

/// Nodes need root to be made, so captured trees write them as small files. Never on the running machine.
fn captured_node(sysfs: &Sysfs, real: &Path, len_bytes: u64) -> Option<NodeKind> {
    if sysfs.is_host() || len_bytes > 32 {
        return None;
    }
    let text = std::fs::read_to_string(real).ok()?;
    let (letter, number) = text.trim().split_once(' ')?;
    let number = DevNum::parse(number)?;
    match letter {
        "b" => Some(NodeKind::Block(number)),
        "c" => Some(NodeKind::Char(number)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn numbers_are_read_and_shown() {
        let number = DevNum::parse("259:12").unwrap();
        assert_eq!((number.major, number.minor), (259, 12));
        assert_eq!(number.to_string(), "259:12");
        assert_eq!(DevNum::parse_hex("fe:1f"), DevNum::parse("254:31"));
        for bad in [
            "",
            "8",
            "8:",
            ":1",
            "8:-1",
            "+8:1",
            "8:1:2",
            "a:b",
            "4294967296:0",
        ] {
            assert_eq!(DevNum::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn the_running_machine_knows_no_captured_nodes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sda");
        std::fs::write(&path, "b 8:0\n").unwrap();
        let here = Node::inspect(&Sysfs::host(), &path).unwrap();
        assert!(matches!(here.kind, NodeKind::File { len_bytes: 6, .. }));
        let tree = Node::inspect(&Sysfs::at(folder.path()), Path::new("/sda")).unwrap();
        assert_eq!(tree.kind, NodeKind::Block(DevNum { major: 8, minor: 0 }));
        assert_eq!(tree.path, Path::new("/sda"));
    }
}

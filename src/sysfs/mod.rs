//! Readers of the kernel's text files. Every reader takes its roots, so that tests hand it captured trees.
//!
//! A fact that is not there and a fact that is garbled are different things: the first is `None` (or
//! [`SysfsError::Read`] where it must exist), the second is [`SysfsError::Garbled`]. Never a silent zero.

pub mod absent;
pub mod ata;
pub mod attach;
pub mod bind;
pub mod block;
pub mod cgroup;
pub mod cpufreq;
pub mod diskstats;
pub mod filesystems;
pub mod format;
pub mod host;
pub mod hwmon;
pub mod mounts;
pub mod node;
pub mod nvme;
pub mod nvme_controller;
pub mod pci;
pub mod sas;
pub mod scsi;
pub mod scsi_host;
pub mod swaps;

pub use block::BlockDev;
pub use mounts::Mount;
pub use node::{DevNum, FileId, Node, NodeKind};
pub use swaps::Swap;

pub mod queue;

use std::path::{Path, PathBuf};

/// The roots of one machine's `/sys`, `/proc` and `/dev`: the real ones, or a captured tree's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sysfs {
    root: PathBuf,
}

/// Why a fact could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SysfsError {
    /// The file is not there or cannot be read.
    #[error("cannot read {path}: {errno}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        errno: crate::errno::Errno,
    },
    /// The file says something that is not what it should be.
    #[error("{path} says `{text}`, which is not {wanted}")]
    Garbled {
        /// The file.
        path: PathBuf,
        /// What it says.
        text: String,
        /// What it should be.
        wanted: &'static str,
    },
}

impl SysfsError {
    /// Whether the file is simply not there (as opposed to unreadable or garbled).
    #[must_use]
    pub const fn is_absent(&self) -> bool {
        matches!(
            self,
            Self::Read {
                errno: crate::errno::Errno(
                    libc::ENOENT | libc::ENODEV | libc::ENXIO | libc::ENOTDIR
                ),
                ..
            }
        )
    }

    fn read(path: &Path, error: &std::io::Error) -> Self {
        Self::Read {
            path: path.to_owned(),
            errno: crate::errno::Errno::of(error),
        }
    }

    fn garbled(path: &Path, text: &str, wanted: &'static str) -> Self {
        Self::Garbled {
            path: path.to_owned(),
            text: text.chars().take(120).collect(),
            wanted,
        }
    }
}

impl Sysfs {
    /// The running machine.
    #[must_use]
    pub fn host() -> Self {
        Self::at("/")
    }

    /// A captured machine below `root`, which holds `sys`, `proc` and `dev`.
    #[must_use]
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Whether this is the running machine.
    #[must_use]
    pub fn is_host(&self) -> bool {
        self.root == Path::new("/")
    }

    /// A path below `/sys`.
    #[must_use]
    pub fn sys(&self, path: impl AsRef<Path>) -> PathBuf {
        self.root.join("sys").join(path)
    }

    /// A path below `/proc`.
    #[must_use]
    pub fn proc(&self, path: impl AsRef<Path>) -> PathBuf {
        self.root.join("proc").join(path)
    }

    /// A path below `/dev`.
    #[must_use]
    pub fn dev(&self, path: impl AsRef<Path>) -> PathBuf {
        self.root.join("dev").join(path)
    }

    /// Where a path that the user or the kernel wrote is found: itself on the running machine, below
    /// the root on a captured one.
    #[must_use]
    pub fn locate(&self, path: &Path) -> PathBuf {
        if self.is_host() {
            return path.to_owned();
        }
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// The other way round: a path as the machine itself would write it.
    #[must_use]
    pub fn shown(&self, path: &Path) -> PathBuf {
        match path.strip_prefix(&self.root) {
            Ok(below) => Path::new("/").join(below),
            Err(_) => path.to_owned(),
        }
    }
}

/// The bytes of a file.
///
/// # Errors
/// [`SysfsError::Read`].
pub fn read_bytes(path: &Path) -> Result<Vec<u8>, SysfsError> {
    std::fs::read(path).map_err(|error| SysfsError::read(path, &error))
}

/// The text of a file without its white space at both ends.
///
/// # Errors
/// [`SysfsError::Read`].
pub fn read_text(path: &Path) -> Result<String, SysfsError> {
    let bytes = read_bytes(path)?;
    Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
}

/// A whole number from a file.
///
/// # Errors
/// [`SysfsError::Read`], or [`SysfsError::Garbled`] where the text is not a number; never a silent zero.
pub fn read_u64(path: &Path) -> Result<u64, SysfsError> {
    let text = read_text(path)?;
    text.parse()
        .map_err(|_| SysfsError::garbled(path, &text, "a whole number"))
}

/// A `0` or `1` from a file.
///
/// # Errors
/// [`SysfsError`].
pub fn read_bool(path: &Path) -> Result<bool, SysfsError> {
    let text = read_text(path)?;
    match text.as_str() {
        "0" => Ok(false),
        "1" => Ok(true),
        _ => Err(SysfsError::garbled(path, &text, "0 or 1")),
    }
}

/// A fact that need not exist: its absence is `None`, anything else wrong stays an error.
///
/// # Errors
/// What `fact` failed with, unless the file is absent.
pub fn optional<T>(fact: Result<T, SysfsError>) -> Result<Option<T>, SysfsError> {
    match fact {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.is_absent() => Ok(None),
        Err(error) => Err(error),
    }
}

/// An optional text of which an empty one says nothing.
///
/// # Errors
/// [`SysfsError::Read`] where the file exists but cannot be read.
pub fn read_word(path: &Path) -> Result<Option<String>, SysfsError> {
    let text = optional(read_text(path))?;
    Ok(text
        .map(|text| text.trim_matches(['\0', ' ']).to_owned())
        .filter(|text| !text.is_empty()))
}

/// The names in a folder, sorted.
///
/// # Errors
/// [`SysfsError::Read`].
pub fn names_in(path: &Path) -> Result<Vec<String>, SysfsError> {
    let failed = |error: std::io::Error| SysfsError::read(path, &error);
    let mut names = Vec::new();
    for entry in std::fs::read_dir(path).map_err(failed)? {
        names.push(
            entry
                .map_err(failed)?
                .file_name()
                .to_string_lossy()
                .into_owned(),
        );
    }
    names.sort();
    Ok(names)
}

/// The last component of what a symbolic link points to: the name of a driver, a subsystem.
#[must_use]
pub fn link_name(path: &Path) -> Option<String> {
    let target = std::fs::read_link(path).ok()?;
    Some(target.file_name()?.to_string_lossy().into_owned())
}

/// A path with every symbolic link resolved.
///
/// # Errors
/// [`SysfsError::Read`].
pub fn real_path(path: &Path) -> Result<PathBuf, SysfsError> {
    std::fs::canonicalize(path).map_err(|error| SysfsError::read(path, &error))
}

/// Undoes the octal escapes (`\040` for a space) of `/proc/*/mountinfo` and `/proc/swaps`
/// (proc_pid_mountinfo(5), kernel `seq_escape`).
#[must_use]
pub fn unescape_octal(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        if let Some(byte) = octal_at(bytes, at) {
            out.push(byte);
            at += 4;
        } else {
            out.push(bytes[at]);
            at += 1;
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn octal_at(bytes: &[u8], at: usize) -> Option<u8> {
    let digits = bytes.get(at..at + 4)?.strip_prefix(b"\\")?;
    let text = std::str::from_utf8(digits).ok()?;
    if !text.bytes().all(|digit| (b'0'..=b'7').contains(&digit)) {
        return None;
    }
    u8::from_str_radix(text, 8).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn escapes_are_octal_and_a_lone_backslash_stays() {
        assert_eq!(unescape_octal(r"/mnt/my\040disk"), "/mnt/my disk");
        assert_eq!(unescape_octal(r"a\134b\011c"), "a\\b\tc");
        assert_eq!(unescape_octal(r"a\9b\04"), r"a\9b\04");
    }

    #[test]
    fn missing_and_garbled_are_different_errors() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("size");
        assert!(read_u64(&path).unwrap_err().is_absent());
        std::fs::write(&path, "12x\n").unwrap();
        assert!(matches!(read_u64(&path), Err(SysfsError::Garbled { .. })));
        assert!(matches!(
            optional(read_u64(&path)),
            Err(SysfsError::Garbled { .. })
        ));
        std::fs::write(&path, "\n").unwrap();
        assert!(matches!(read_u64(&path), Err(SysfsError::Garbled { .. })));
    }

    #[test]
    fn paths_go_below_the_root_of_a_captured_machine() {
        let tree = Sysfs::at("/captured");
        assert_eq!(
            tree.locate(Path::new("/dev/sda")),
            Path::new("/captured/dev/sda")
        );
        assert_eq!(
            tree.shown(Path::new("/captured/dev/sda")),
            Path::new("/dev/sda")
        );
        assert_eq!(Sysfs::host().locate(Path::new("a/b")), Path::new("a/b"));
    }

    proptest! {
        #[test]
        fn escaping_every_byte_comes_back(text in "\\PC{0,40}") {
            let escaped: String = text.bytes().map(|byte| format!("\\{byte:03o}")).collect();
            prop_assert_eq!(unescape_octal(&escaped), text);
        }

        #[test]
        fn any_text_is_unescaped_without_panic(text in ".{0,60}") {
            let _ = unescape_octal(&text);
        }
    }
}

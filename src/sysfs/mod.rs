//! Readers of the kernel's text files. Every reader takes its roots, so that tests hand it captured trees.

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
}

/// The text of a file without its white space at both ends.
///
/// # Errors
/// [`SysfsError::Read`].
pub fn read_text(path: &Path) -> Result<String, SysfsError> {
    let bytes = std::fs::read(path).map_err(|error| SysfsError::Read {
        path: path.to_owned(),
        errno: crate::errno::Errno::of(&error),
    })?;
    Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
}

/// A whole number from a file.
///
/// # Errors
/// [`SysfsError::Read`], or [`SysfsError::Garbled`] where the text is not a number; never a silent zero.
pub fn read_u64(path: &Path) -> Result<u64, SysfsError> {
    let text = read_text(path)?;
    text.parse().map_err(|_| SysfsError::Garbled {
        path: path.to_owned(),
        text,
        wanted: "a whole number",
    })
}

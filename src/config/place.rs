//! Where a value came from, so that every error can point at it.

use super::key::Key;
use std::fmt;

/// Where a text was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum At {
    /// In the job file; both count from 1.
    File {
        /// Line.
        line: u32,
        /// Column in characters.
        column: u32,
    },
    /// On the command line.
    Flag,
    /// Nowhere: it is a default.
    Default,
}

/// One scalar as the user wrote it, with its position. Job files and flags both become words, and words
/// are read by the same code, so that messages agree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// The text; empty where a key has no value.
    pub text: String,
    /// Where it stands.
    pub at: At,
}

impl Word {
    /// A value of the command line.
    #[must_use]
    pub fn flag(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            at: At::Flag,
        }
    }
}

/// A key and where its value was written: `job.yaml:12: iodepth`, `--iodepth`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The job file, where there is one.
    pub file: Option<String>,
    /// Where the value stands.
    pub at: At,
    /// The key.
    pub key: String,
}

impl Place {
    /// The place of a known key.
    pub(super) fn of(file: Option<&str>, at: At, key: Key) -> Self {
        Self::named(file, at, key.name())
    }

    /// The place of a key by name.
    pub(super) fn named(file: Option<&str>, at: At, key: &str) -> Self {
        Self {
            file: file.map(str::to_owned),
            at,
            key: key.to_owned(),
        }
    }

    /// The line in the job file, from 1.
    #[must_use]
    pub const fn line(&self) -> Option<u32> {
        match self.at {
            At::File { line, .. } => Some(line),
            At::Flag | At::Default => None,
        }
    }

    /// What errors end in: ` (column 7)`, or nothing where there is no column.
    pub(super) fn column_note(&self) -> String {
        match self.at {
            At::File { column, .. } => format!(" (column {column})"),
            At::Flag | At::Default => String::new(),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.at {
            At::File { line, .. } => {
                write!(f, "{}:{line}", self.file.as_deref().unwrap_or("job"))?;
                if self.key.is_empty() {
                    return Ok(());
                }
                write!(f, ": {}", self.key)
            }
            At::Flag => write!(f, "--{}", self.key),
            At::Default => f.write_str(&self.key),
        }
    }
}

/// A value that has been read, with its place: what a later check finds wrong can still be pointed at.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Given<T> {
    pub(super) value: T,
    pub(super) place: Place,
}

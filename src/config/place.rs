//! Where a value came from, so that every error can point at it.

use super::key::Key;
use std::fmt;

/// Where a text was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum At {
    /// In a job file; line and column count from 1.
    File {
        /// Which file: an index into [`super::Job::files`].
        file_index: u16,
        /// Line.
        line: u32,
        /// Column in characters.
        column: u32,
    },
    /// On the command line.
    Flag,
    /// On the command line, in a `--set`.
    Set,
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
    pub(super) fn of(files: &[String], at: At, key: Key) -> Self {
        Self::named(files, at, key.name())
    }

    /// The place of a key by name; `files` are those of the job.
    pub(super) fn named(files: &[String], at: At, key: &str) -> Self {
        let index = match at {
            At::File { file_index, .. } => usize::from(file_index),
            At::Flag | At::Set | At::Default => 0,
        };
        Self {
            file: files.get(index).cloned(),
            at,
            key: key.to_owned(),
        }
    }

    /// The line in the job file, from 1.
    #[must_use]
    pub const fn line(&self) -> Option<u32> {
        match self.at {
            At::File { line, .. } => Some(line),
            At::Flag | At::Set | At::Default => None,
        }
    }

    /// What errors end in: ` (column 7)`, or nothing where there is no column.
    pub(super) fn column_note(&self) -> String {
        match self.at {
            At::File { column, .. } => format!(" (column {column})"),
            At::Flag | At::Set | At::Default => String::new(),
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
            At::Set => write!(f, "--set {}", self.key),
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

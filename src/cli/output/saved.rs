//! Records read back from disk.

use crate::cli::exit::Exit;
use crate::method::run_folder::RECORD_FILE;
use crate::record::{COMPARISON_KIND, Comparison, Failure, Record, SCHEMA_VERSION};
use crate::sys::whole::{WholeError, read_whole};
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// A record of a day of many steps is shorter by far.
const MAX_BYTES: u64 = 2 << 30;

/// Why a file is no record.
#[derive(Debug, thiserror::Error)]
pub enum SavedError {
    /// It cannot be read.
    #[error("cannot read {path}: {error}")]
    Read {
        /// The file.
        path: String,
        /// Why.
        error: std::io::Error,
    },
    /// It is something else.
    #[error("{path} is no record of lanemark: {error}")]
    NoRecord {
        /// The file.
        path: String,
        /// Where it fails.
        error: serde_json::Error,
    },
    /// It is nothing that is read.
    #[error("{path} is no record of lanemark: {why}")]
    NoFile {
        /// The file.
        path: String,
        /// What it is.
        why: String,
    },
    /// Another version wrote it.
    #[error("{path} has layout {found} of records; this lanemark reads layout {SCHEMA_VERSION}")]
    Version {
        /// The file.
        path: String,
        /// Its version.
        found: u32,
    },
}

impl SavedError {
    /// As errors are told.
    #[must_use]
    pub fn failure(&self) -> Failure {
        let next_step = match self {
            Self::Read { .. } => {
                "name a file that `lanemark run --format json -o FILE` has written"
            }
            Self::NoRecord { .. } | Self::NoFile { .. } => {
                "records are what `lanemark run --format json -o FILE` writes; text and CSV cannot be read back"
            }
            Self::Version { .. } => "read it with the lanemark that wrote it, or measure again",
        };
        Failure {
            kind: "record".to_owned(),
            text: self.to_string(),
            next_step: next_step.to_owned(),
            exit_code: Exit::Usage.code(),
        }
    }
}

/// Only what tells the layout.
#[derive(Deserialize)]
struct Versioned {
    schema_version: u32,
    kind: Option<String>,
}

/// What a file can hold.
#[derive(Debug)]
pub enum Saved {
    /// The record of a run.
    Run(Box<Record>),
    /// A comparison.
    Comparison(Box<Comparison>),
}

/// Whether a file begins as JSON objects do.
pub fn is_json(first_bytes: &[u8]) -> bool {
    let mut bytes = first_bytes.iter();
    bytes.find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{')
}

/// Whether this is a folder that holds the record of a run.
pub fn is_folder_of_run(path: &Path) -> bool {
    path.is_dir() && path.join(RECORD_FILE).is_file()
}

/// Reads a record or a comparison, or the record of a run's folder.
///
/// # Errors
/// [`SavedError`] naming the file.
pub fn load(path: &Path) -> Result<Saved, SavedError> {
    let file: PathBuf = if path.is_dir() {
        path.join(RECORD_FILE)
    } else {
        path.to_owned()
    };
    let name = || file.to_string_lossy().into_owned();
    let text = read_whole(&file, MAX_BYTES, is_json).map_err(|error| match error {
        WholeError::Io(error) => SavedError::Read {
            path: name(),
            error,
        },
        other => SavedError::NoFile {
            path: name(),
            why: other.to_string(),
        },
    })?;
    // The version first: a later layout must be named as such, not by the first field that is missing.
    let no_record = |error| SavedError::NoRecord {
        path: name(),
        error,
    };
    let versioned: Versioned = serde_json::from_slice(&text).map_err(no_record)?;
    if versioned.schema_version != SCHEMA_VERSION {
        return Err(SavedError::Version {
            path: name(),
            found: versioned.schema_version,
        });
    }
    let saved = if versioned.kind.as_deref() == Some(COMPARISON_KIND) {
        serde_json::from_slice(&text).map(|found| Saved::Comparison(Box::new(found)))
    } else {
        serde_json::from_slice(&text).map(|found| Saved::Run(Box::new(found)))
    };
    saved.map_err(no_record)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn written(text: &str) -> Result<Saved, SavedError> {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join(RECORD_FILE);
        std::fs::write(&file, text).unwrap();
        let by_folder = load(dir.path());
        assert_eq!(by_folder.is_ok(), load(&file).is_ok());
        by_folder
    }

    #[test]
    fn what_is_no_record_is_named() {
        assert!(matches!(written("{}"), Err(SavedError::NoRecord { .. })));
        assert!(matches!(written("IOPS"), Err(SavedError::NoRecord { .. })));
        assert!(matches!(
            written("{\"schema_version\": 99}"),
            Err(SavedError::Version { found: 99, .. })
        ));
        let missing = load(Path::new("no-such-record.json"));
        assert!(matches!(missing, Err(SavedError::Read { .. })));
    }
}

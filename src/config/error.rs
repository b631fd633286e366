//! Why a job cannot be run as it stands. Every error names the place and what is allowed.

use super::place::Place;
use crate::errno::Errno;

/// Why a job was refused. All of them are the user's to mend: exit code 2.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The job file cannot be read.
    #[error("cannot read the job file {path}: {errno}")]
    Read {
        /// The file.
        path: String,
        /// Why.
        errno: Errno,
    },
    /// What was named as the job file is something else.
    #[error("{path} is no job file: {why}; did you mean --device {path}?")]
    NoJob {
        /// What was named.
        path: String,
        /// What it is.
        why: String,
    },
    /// The job file is not what YAML, or the shape of a job, allows.
    #[error("{place}: {why}{}", place.column_note())]
    Syntax {
        /// Where.
        place: Place,
        /// What is wrong.
        why: String,
    },
    /// A key that does not exist, or not at this level.
    #[error("{place}: unknown key; {hint}{}", place.column_note())]
    UnknownKey {
        /// Where.
        place: Place,
        /// What was perhaps meant, and what is allowed.
        hint: String,
    },
    /// A value that its key does not allow.
    #[error("{place}: {why}{}", place.column_note())]
    Value {
        /// Where.
        place: Place,
        /// What is wrong and what is allowed.
        why: String,
    },
    /// Two keys that exclude each other, or values that contradict each other.
    #[error("{place}: {why}{}", place.column_note())]
    Conflict {
        /// Where the second of them stands.
        place: Place,
        /// What contradicts what.
        why: String,
    },
    /// A key that would change nothing.
    #[error("{place}: it has no effect: {why}; remove it{}", place.column_note())]
    NoEffect {
        /// Where.
        place: Place,
        /// Why it changes nothing.
        why: String,
    },
    /// A value that this device cannot do.
    #[error("{place}: {why}{}", place.column_note())]
    Unfit {
        /// Where.
        place: Place,
        /// The device.
        device: String,
        /// What is wrong and what is allowed.
        why: String,
    },
    /// A device on which nothing can be measured.
    #[error("{device}: {why}")]
    Device {
        /// The device.
        device: String,
        /// What is wrong and what is needed.
        why: String,
    },
    /// Nothing is left to run, or a step that is asked for is not there.
    #[error("{what}")]
    NoStep {
        /// What, and why.
        what: String,
    },
    /// No device was named.
    #[error("no device is named; give --device or a `device:` key")]
    NoDevice,
}

/// Planning and reading refuse alike: the user mends both in the same place.
pub type PlanError = ConfigError;

impl ConfigError {
    /// Where it is, for errors that stand at a key.
    #[must_use]
    pub const fn place(&self) -> Option<&Place> {
        match self {
            Self::Syntax { place, .. }
            | Self::UnknownKey { place, .. }
            | Self::Value { place, .. }
            | Self::Conflict { place, .. }
            | Self::NoEffect { place, .. }
            | Self::Unfit { place, .. } => Some(place),
            Self::Read { .. }
            | Self::NoJob { .. }
            | Self::Device { .. }
            | Self::NoStep { .. }
            | Self::NoDevice => None,
        }
    }
}

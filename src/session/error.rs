//! Why a session did not measure.

use super::fill::prepare::PrepareError;
use super::guard::Refusal;
use crate::backend::BackendError;
use crate::backend::sim::SimError;
use crate::errno::Errno;
use crate::reactor::ReactorError;
use crate::spdk::SpdkError;
use crate::sys::cpu::CpuError;

/// What keeps a session from running a step.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// A device could not be opened.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// A simulated device is described wrongly.
    #[error("device sim: {0}")]
    Sim(#[from] SimError),
    /// A CPU may not be used.
    #[error(transparent)]
    Cpu(#[from] CpuError),
    /// More reactors than CPUs.
    #[error(
        "{wanted} reactors need {wanted} CPUs, but only {got} may be used: ask for fewer reactors or name more cpus"
    )]
    TooFewCpus {
        /// Reactors.
        wanted: usize,
        /// CPUs.
        got: usize,
    },
    /// A reactor could not start.
    #[error(transparent)]
    Reactor(#[from] ReactorError),
    /// The device string makes no sense for the backend.
    #[error("{device} cannot be driven by backend {backend}: {why}")]
    WrongBackend {
        /// The device.
        device: String,
        /// The backend.
        backend: &'static str,
        /// Why, and what to do.
        why: String,
    },
    /// Two names of one device.
    #[error("{device} is the same device as {other}; name it once")]
    SameDevice {
        /// The second name.
        device: String,
        /// The first.
        other: String,
    },
    /// The guard said no.
    #[error(transparent)]
    Guard(#[from] Refusal),
    /// With `--strict`, reads of never-written data are refused.
    #[error("refused by --strict: {0}")]
    NeverWritten(String),
    /// `--prepare` where nothing is read.
    #[error("--prepare fills what the job reads, and it reads nothing; leave it out")]
    NothingToPrepare,
    /// A device could not be filled.
    #[error(transparent)]
    Prepare(#[from] PrepareError),
    /// A signal came before anything was measured.
    #[error("interrupted before anything was measured")]
    Interrupted,
    /// A step needs a permission that it has not got.
    #[error("{device}: {why}")]
    Refused {
        /// The device.
        device: String,
        /// The finding, and what to do.
        why: String,
    },
    /// The job makes no plan for a window of a verb that makes its own.
    #[error("{step}: {why}")]
    Unplanned {
        /// The window.
        step: String,
        /// What is wrong with the job.
        why: String,
    },
    /// The name leads to no one device.
    #[error("{device}: {why}")]
    Unclear {
        /// The name.
        device: String,
        /// Where it leads, and what to name instead.
        why: String,
    },
    /// The scratch file could not be filled.
    #[error("cannot fill a scratch file in {dir}: {why}")]
    ScratchFill {
        /// The folder.
        dir: String,
        /// Why.
        why: String,
    },
    /// The scratch file could not be made.
    #[error("cannot make a scratch file in {dir}: {why}")]
    Scratch {
        /// The folder.
        dir: String,
        /// Why.
        why: String,
    },
}

/// Whether a queue could not be made because there is no device behind it any more.
#[must_use]
pub const fn is_gone(error: &BackendError) -> bool {
    match error {
        BackendError::Spdk(SpdkError::AdminLost { .. }) => true,
        BackendError::Setup { errno, .. } | BackendError::Open { errno, .. } => {
            matches!(*errno, Errno(libc::ENODEV | libc::ENXIO))
        }
        _ => false,
    }
}

impl SessionError {
    /// The exit code that goes with it (DESIGN: 1 run error, 2 usage, 3 refused by the guard).
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Refused { .. } | Self::Guard(_) | Self::NeverWritten(_) => 3,
            Self::Interrupted => 130,
            Self::Reactor(_) | Self::ScratchFill { .. } | Self::Prepare(_) => 1,
            _ => 2,
        }
    }

    /// The kind that records carry.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Backend(_) | Self::Unclear { .. } => "device",
            Self::Sim(_)
            | Self::WrongBackend { .. }
            | Self::SameDevice { .. }
            | Self::Unplanned { .. }
            | Self::NothingToPrepare => "usage",
            Self::Cpu(_) | Self::TooFewCpus { .. } => "cpu",
            Self::Reactor(ReactorError::Queue(error)) if is_gone(error) => "gone",
            Self::Reactor(_) => "reactor",
            Self::Refused { .. } | Self::Guard(_) => "guard",
            Self::NeverWritten(_) => "never-written",
            Self::Prepare(_) => "prepare",
            Self::Interrupted => "interrupted",
            Self::Scratch { .. } | Self::ScratchFill { .. } => "scratch",
        }
    }

    /// What the user can do next, where the text does not say it already.
    #[must_use]
    pub fn next_step(&self) -> String {
        match self {
            Self::Guard(refusal) => refusal.next_step(),
            Self::NeverWritten(_) => "fill the range first: --prepare".to_owned(),
            _ => String::new(),
        }
    }
}

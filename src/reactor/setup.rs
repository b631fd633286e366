//! What a reactor is made from.

use crate::backend::{BackendError, Batch};
use crate::measure::StampChoice;
use crate::request::Op;
use crate::workload::{Arrival, OpMix, StreamSpec};

/// One stream of a reactor.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamSetup {
    /// What it does.
    pub spec: StreamSpec,
    /// Its number in the step.
    pub index: u32,
    /// Streams in the step: their fixed arrivals are spread evenly.
    pub step_streams_count: u32,
    /// Logical block of its device in bytes.
    pub block_bytes: u32,
}

/// One reactor.
#[derive(Debug, Clone, PartialEq)]
pub struct ReactorSetup {
    /// Its number in the step.
    pub index: u32,
    /// The CPU to pin it to; `None` in virtual time.
    pub cpu: Option<u32>,
    /// Its streams.
    pub streams: Vec<StreamSetup>,
    /// Batching of its queues.
    pub batch: Batch,
    /// Length of the ramp.
    pub ramp_ns: u64,
    /// Length of the window; `None`: until every stream has met its quota.
    pub runtime_ns: Option<u64>,
    /// How long I/Os in flight are waited for after the window.
    pub grace_ns: u64,
    /// The step ends at so many failures over all reactors.
    pub max_errors: Option<u64>,
    /// How latency is stamped.
    pub stamp: StampChoice,
}

impl ReactorSetup {
    /// Which operations its streams use.
    #[must_use]
    pub fn ops(&self) -> [bool; Op::COUNT] {
        let mut used = [false; Op::COUNT];
        for stream in &self.streams {
            let ops: &[Op] = match stream.spec.ops {
                OpMix::Read | OpMix::ProbeRead => &[Op::Read],
                OpMix::Probe => &[Op::Probe],
                OpMix::Write => &[Op::Write],
                OpMix::Trim => &[Op::Trim],
                OpMix::WriteZeroes => &[Op::WriteZeroes],
                OpMix::ReadWrite { .. } => &[Op::Read, Op::Write],
            };
            ops.iter().for_each(|op| used[*op as usize] = true);
            used[Op::Flush as usize] |= stream.spec.flush_every.is_some();
        }
        used
    }

    /// Whether any stream's arrivals are open loop.
    #[must_use]
    pub fn open_loop(&self) -> bool {
        self.streams
            .iter()
            .any(|stream| stream.spec.arrival != Arrival::Closed)
    }
}

/// Why a reactor could not run.
#[derive(Debug, thiserror::Error)]
pub enum ReactorError {
    /// Its thread could not be pinned.
    #[error("cannot run on CPU {cpu}: {why}")]
    Pin {
        /// The CPU.
        cpu: u32,
        /// Why.
        why: String,
    },
    /// A queue could not be opened.
    #[error(transparent)]
    Queue(#[from] BackendError),
    /// Another reactor of the team failed first.
    #[error("another reactor could not start")]
    Team,
    /// The thread died.
    #[error("reactor {index} panicked; this is a bug, please report it")]
    Panicked {
        /// Its number.
        index: u32,
    },
}

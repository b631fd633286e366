//! A job with every text read and every default filled in, before any device is known.

use super::place::Given;
use super::plan::{Origin, StampChoice};
use super::rounds::{Derive, Rounds, SteadySeconds};
use super::value::{ByteShare, Rw};
use crate::units::{Bytes, Nanos, SizeSpec};
use crate::workload::{Access, DataPattern, OpMix};

/// The whole job.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct JobIntent {
    pub(super) name: String,
    /// `randseed` of the flags or the defaults.
    pub(super) seed: Option<u64>,
    pub(super) steps: Vec<StepIntent>,
    pub(super) rounds: Option<Rounds>,
    pub(super) derive: Vec<Derive>,
}

/// One step.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct StepIntent {
    pub(super) name: String,
    pub(super) origin: Origin,
    /// Run only where the step of this name was left out.
    pub(super) instead_of: Option<String>,
    pub(super) cool_down: Nanos,
    pub(super) steady: Option<SteadySeconds>,
    pub(super) streams: Vec<StreamIntent>,
    /// Streams given as a count: sequential ones share the region out among them.
    pub(super) striped: bool,
    /// Where errors about the number of streams point.
    pub(super) streams_place: Given<u32>,
    pub(super) reactors: Given<u32>,
    pub(super) cpus: Vec<u32>,
    pub(super) batch_submit: Option<Given<u32>>,
    pub(super) batch_complete_min: Option<Given<u32>>,
    pub(super) batch_complete_max: Option<Given<u32>>,
    pub(super) runtime: Option<Nanos>,
    pub(super) ramp: Nanos,
    pub(super) grace: Nanos,
    pub(super) max_errors: Option<u64>,
    pub(super) stamp: StampChoice,
    pub(super) expect: Vec<super::expect::Expectation>,
    /// The step's own `randseed`, used as it is.
    pub(super) seed: Option<u64>,
}

/// A total that one step, or one stream, shares out.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Total {
    /// Of the step: shared by all streams, on all devices, that have none of their own.
    Step(Given<u64>),
    /// Of this stream: shared by its devices.
    Stream(Given<u64>),
}

/// Sizes of requests.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Sizes {
    pub(super) shares: Given<Vec<ByteShare>>,
    /// From `bssplit`: what the device cannot do is dropped by name. `bs` is refused instead.
    pub(super) is_split: bool,
}

/// One stream.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct StreamIntent {
    pub(super) rw: Given<Rw>,
    pub(super) ops: OpMix,
    pub(super) access: Access,
    pub(super) sizes: Sizes,
    pub(super) blockalign: Option<Given<Bytes>>,
    pub(super) offset: Given<SizeSpec>,
    pub(super) size: Option<Given<SizeSpec>>,
    pub(super) depth: u32,
    pub(super) rate: Option<Total>,
    pub(super) is_poisson: bool,
    pub(super) number_ios: Option<Total>,
    pub(super) io_size: Option<Total>,
    pub(super) passes: Option<Given<u64>>,
    pub(super) flush_every: Option<Given<u32>>,
    pub(super) data: DataPattern,
}

impl StreamIntent {
    /// Whether the stream ends by itself.
    pub(super) const fn has_quota(&self) -> bool {
        self.number_ios.is_some() || self.io_size.is_some() || self.passes.is_some()
    }
}

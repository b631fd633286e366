//! What the engine itself costs, measured on the spot: the same loop over a device that answers at once.

pub(in crate::session) mod queue;

use crate::backend::{Batch, NullDevice};
use crate::measure::StampChoice;
use crate::reactor::{Control, ReactorSetup, StreamSetup, run_team};
use crate::sys::clock::MachineClock;
use crate::units::Bytes;
use crate::workload::{
    Access, Arrival, DataPattern, Distribution, OpMix, Quota, Region, SizeShare, StreamSpec,
};
use std::sync::Arc;

const RUNTIME_NS: u64 = 30_000_000;
const BLOCK_BYTES: u32 = 512;
const NULL_BLOCKS: u64 = 1 << 31;

/// How the engine is loaded while it is priced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EngineLoad {
    /// In flight.
    pub depth: u32,
    /// Most completions to a poll.
    pub complete_max: u32,
    /// How it stamps.
    pub stamp: StampChoice,
}

impl EngineLoad {
    /// The load whose cost is in every record: exact stamps at depth 128, 32 completions to a poll.
    pub const OF_RECORDS: Self = Self {
        depth: 128,
        complete_max: 32,
        stamp: StampChoice::Exact,
    };
}

/// What the engine cost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EngineCost {
    /// The whole loop, nanoseconds per I/O.
    pub ns_per_io: f64,
    /// I/Os in all, outside the window too.
    pub ios_count: u64,
}

/// Nanoseconds per I/O of the whole loop on this CPU: random 4 KiB reads at depth 128, 32 to a poll,
/// exact stamps, full statistics. `None` where it could not run.
#[must_use]
pub fn tool_cost_ns(clock: &MachineClock, cpu: u32) -> Option<f64> {
    engine_cost(clock, cpu, EngineLoad::OF_RECORDS).map(|cost| cost.ns_per_io)
}

/// The cost of the whole loop on this CPU, full statistics: random 4 KiB reads for 30 ms. `None` where it
/// could not run.
#[must_use]
#[allow(clippy::cast_precision_loss)]
pub fn engine_cost(clock: &MachineClock, cpu: u32, load: EngineLoad) -> Option<EngineCost> {
    let devices = [NullDevice::new("null", Bytes(NULL_BLOCKS * 512))];
    let setup = ReactorSetup {
        index: 0,
        cpu: Some(cpu),
        streams: vec![StreamSetup {
            spec: random_reads(8, NULL_BLOCKS, load.depth),
            index: 0,
            step_streams_count: 1,
            block_bytes: BLOCK_BYTES,
        }],
        batch: Batch {
            submit: load.depth,
            complete_min: 1,
            complete_max: load.complete_max,
        },
        ramp_ns: RUNTIME_NS / 10,
        runtime_ns: Some(RUNTIME_NS),
        grace_ns: RUNTIME_NS,
        max_errors: None,
        stamp: load.stamp,
    };
    let control = Arc::new(Control::default());
    let end = run_team(&devices, &[setup], clock, &control, &mut |_| {}).ok()?;
    let outcome = end.outcomes.first()?;
    let ios_count: u64 = end
        .collected
        .latency
        .iter()
        .map(|latency| latency.count())
        .sum();
    (ios_count > 0).then(|| EngineCost {
        ns_per_io: outcome.busy_ns as f64 / ios_count as f64,
        ios_count: outcome.submitted_count,
    })
}

/// Uniformly random reads of `blocks` over a device of `device_blocks`.
#[must_use]
pub fn random_reads(blocks: u32, device_blocks: u64, depth: u32) -> StreamSpec {
    StreamSpec {
        device_index: 0,
        ops: OpMix::Read,
        access: Access::Random {
            distribution: Distribution::Uniform,
            random_pct: 100.0,
        },
        sizes: vec![SizeShare {
            blocks,
            share_pct: 100.0,
        }],
        align_blocks: blocks,
        region: Region {
            first_lba: 0,
            blocks: device_blocks,
        },
        depth,
        arrival: Arrival::Closed,
        flush_every: None,
        quota: Quota::default(),
        data: DataPattern::Random,
        seed: 1,
    }
}

//! What the engine itself costs, measured on the spot: the same loop over a device that answers at once.

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
const DEPTH: u32 = 128;
const BATCH: u32 = 32;

/// Nanoseconds per I/O of the whole loop on this CPU: random 4 KiB reads at depth 128, 32 to a poll,
/// exact stamps, full statistics. `None` where it could not run.
#[must_use]
#[allow(clippy::cast_precision_loss)]
pub fn tool_cost_ns(clock: &MachineClock, cpu: u32) -> Option<f64> {
    let devices = [NullDevice::new("null", Bytes(1 << 40))];
    let stream = StreamSpec {
        device_index: 0,
        ops: OpMix::Read,
        access: Access::Random {
            distribution: Distribution::Uniform,
            random_pct: 100.0,
        },
        sizes: vec![SizeShare {
            blocks: 8,
            share_pct: 100.0,
        }],
        align_blocks: 8,
        region: Region {
            first_lba: 0,
            blocks: 1 << 31,
        },
        depth: DEPTH,
        arrival: Arrival::Closed,
        flush_every: None,
        quota: Quota::default(),
        data: DataPattern::Random,
        seed: 1,
    };
    let setup = ReactorSetup {
        index: 0,
        cpu: Some(cpu),
        streams: vec![StreamSetup {
            spec: stream,
            index: 0,
            step_streams_count: 1,
            block_bytes: 512,
        }],
        batch: Batch {
            submit: DEPTH,
            complete_min: 1,
            complete_max: BATCH,
        },
        ramp_ns: RUNTIME_NS / 10,
        runtime_ns: Some(RUNTIME_NS),
        grace_ns: RUNTIME_NS,
        max_errors: None,
        stamp: StampChoice::Exact,
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
    (ios_count > 0).then(|| outcome.busy_ns as f64 / ios_count as f64)
}

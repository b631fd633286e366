//! The plan as JSON, for records and `--dry-run --format json`.

use super::echo::{bytes_of, data_text, distribution_text, rw_name, stamp_name};
use super::estimate::Estimate;
use super::plan::{Plan, PlannedDevice, StepPlan};
use super::rounds::{Rounds, SteadySeconds};
use crate::units::BlockSize;
use crate::workload::{Access, Arrival, OpMix, StreamSpec};
use serde_json::{Value, json};

/// The whole plan, every value resolved, in bytes and in blocks.
#[must_use]
pub fn plan_json(plan: &Plan) -> Value {
    let steps: Vec<Value> = plan
        .steps
        .iter()
        .map(|step| step_json(step, &plan.devices))
        .collect();
    json!({
        "name": plan.name,
        "seed": plan.seed,
        "devices": plan.devices.iter().map(device_json).collect::<Vec<_>>(),
        "steps": steps,
        "left_out": plan.left_out.iter().map(|left| json!({ "step": left.step, "why": left.why })).collect::<Vec<_>>(),
        "rounds": plan.rounds.as_ref().map(rounds_json),
        "estimate": estimate_json(&plan.estimate),
    })
}

fn rounds_json(rounds: &Rounds) -> Value {
    json!({
        "of": rounds.of.name(),
        "track": rounds.track,
        "window_count": rounds.window_count,
        "range_pct": rounds.range_pct,
        "slope_pct": rounds.slope_pct,
        "most_count": rounds.most_count,
    })
}

fn estimate_json(estimate: &Estimate) -> Value {
    json!({
        "least_s": estimate.least_s,
        "most_s": estimate.most_s,
        "least_written_bytes": estimate.least_written_bytes,
        "most_written_bytes": estimate.most_written_bytes,
        "is_exact": estimate.is_exact,
        "assumed_bytes_per_s": estimate.pace.bytes_per_s,
        "assumed_random_iops": estimate.pace.random_iops,
    })
}

fn steady_json(steady: &SteadySeconds) -> Value {
    json!({
        "of": steady.limit.of.name(),
        "is_slope": steady.limit.is_slope,
        "limit": steady.limit.value,
        "is_pct": steady.limit.is_pct,
        "window_s": steady.window_count,
        "skip_s": steady.skip_count,
    })
}

fn device_json(device: &PlannedDevice) -> Value {
    json!({
        "path": device.path,
        "capacity_bytes": bytes_of(device.logical_block, device.blocks),
        "capacity_blocks": device.blocks,
        "logical_block_bytes": device.logical_block.bytes(),
    })
}

/// One step of a plan for these devices.
#[must_use]
pub fn step_json(step: &StepPlan, devices: &[PlannedDevice]) -> Value {
    let streams: Vec<Value> = step
        .streams
        .iter()
        .zip(&step.reactor_of)
        .map(|(stream, reactor)| {
            let device = &devices[stream.device_index as usize];
            stream_json(stream, *reactor, device)
        })
        .collect();
    json!({
        "name": step.name,
        "summary": step.summary,
        "in_flight_count": step.in_flight_count,
        "reactors_count": step.reactors_count,
        "cpus": step.cpus,
        "batch": {
            "submit_count": step.batch.submit,
            "complete_min_count": step.batch.complete_min,
            "complete_max_count": step.batch.complete_max,
        },
        "ramp_ns": step.limits.ramp.0,
        "runtime_ns": step.limits.runtime.map(|time| time.0),
        "grace_ns": step.limits.grace.0,
        "max_errors_count": step.limits.max_errors,
        "stamp": stamp_name(step.stamp),
        "cool_down_ns": step.cool_down.0,
        "steadystate": step.steady.as_ref().map(steady_json),
        "expect": step.expect.iter().map(|one| one.text.as_str()).collect::<Vec<_>>(),
        "streams": streams,
    })
}

fn stream_json(stream: &StreamSpec, reactor: u32, device: &PlannedDevice) -> Value {
    let block = device.logical_block;
    let (distribution, random_pct) = match &stream.access {
        Access::Sequential => (None, None),
        Access::Random {
            distribution,
            random_pct,
        } => (Some(distribution_text(distribution)), Some(*random_pct)),
    };
    let (rate_iops, rate_process) = match stream.arrival {
        Arrival::Closed => (None, None),
        Arrival::Fixed { iops } => (Some(iops), Some("fixed")),
        Arrival::Poisson { iops } => (Some(iops), Some("poisson")),
    };
    let read_pct = match stream.ops {
        OpMix::ReadWrite { read_pct } => Some(read_pct),
        _ => None,
    };
    // A command without media has neither size nor place.
    let placed = stream.ops != OpMix::Probe;
    let writes = matches!(stream.ops, OpMix::Write | OpMix::ReadWrite { .. });
    json!({
        "device": device.path,
        "reactor_index": reactor,
        "rw": rw_name(stream),
        "read_pct": read_pct,
        "random_pct": random_pct,
        "random_distribution": distribution,
        "sizes": if placed { sizes_json(stream, block) } else { Vec::new() },
        "align": placed.then(|| span_json(block, u64::from(stream.align_blocks))),
        "offset": placed.then(|| span_json(block, stream.region.first_lba)),
        "size": placed.then(|| span_json(block, stream.region.blocks)),
        "iodepth_count": stream.depth,
        "rate_iops": rate_iops,
        "rate_process": rate_process,
        "number_ios_count": stream.quota.ios,
        "io_size": stream.quota.blocks.map(|blocks| span_json(block, blocks)),
        "flush_every_count": stream.flush_every,
        "data": writes.then(|| data_text(stream.data)),
        "seed": stream.seed,
    })
}

fn sizes_json(stream: &StreamSpec, block: BlockSize) -> Vec<Value> {
    stream
        .sizes
        .iter()
        .map(|size| {
            json!({
                "bytes": bytes_of(block, u64::from(size.blocks)),
                "blocks": size.blocks,
                "share_pct": size.share_pct,
            })
        })
        .collect()
}

fn span_json(block: BlockSize, blocks: u64) -> Value {
    json!({ "bytes": bytes_of(block, blocks), "blocks": blocks })
}

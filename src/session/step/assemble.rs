//! From what the reactors left behind to a step of the record.

use super::doubts::{backlog_warning, failure, stalled_warning, uneven_end_warning};
use super::judge::has_rate;
use super::mix::mix_checks;
use crate::backend::{DeviceFacts, DeviceKind};
use crate::config::StepPlan;
use crate::measure::{CheckInput, ErrorTable, Gaps, LatencyHistogram, StampBound, self_checks};
use crate::reactor::{Abandoned, ReactorOutcome, StopCause, StreamOutcome, TeamEnd};
use crate::record::{
    BackendUse, Ceilings, Depth, DeviceUse, Direction, Failure, Outcome, ReactorUse, SlowIo, Stamp,
    StampMode, Step, StreamUse, Verdict,
};
use crate::request::Op;

/// What a step's record is made of besides the outcome.
#[derive(Debug)]
pub(in crate::session) struct StepFacts<'a> {
    pub plan: &'a StepPlan,
    pub plan_json: serde_json::Value,
    pub devices: Vec<DeviceFacts>,
    pub backend: BackendUse,
    pub tool_cost_ns: Option<f64>,
    pub clock_drift_ppm: f64,
}

/// Sums over all reactors, taken once.
pub(in crate::session) struct Totals {
    window_ns: u64,
    errors: ErrorTable,
    bound: StampBound,
    pub abandoned: Vec<Abandoned>,
    in_flight_mean: f64,
}

#[allow(clippy::cast_precision_loss)]
fn per_second(count: u64, window_ns: u64) -> f64 {
    if window_ns == 0 {
        0.0
    } else {
        count as f64 * 1e9 / window_ns as f64
    }
}

impl Totals {
    #[allow(clippy::cast_precision_loss)]
    fn of(outcomes: &[ReactorOutcome]) -> Self {
        let start_ns = outcomes
            .iter()
            .map(|o| o.window_start_ns)
            .min()
            .unwrap_or(0);
        let end_ns = outcomes.iter().map(|o| o.window_end_ns).max().unwrap_or(0);
        let window_ns = end_ns.saturating_sub(start_ns);
        let (mut errors, mut bound) = (ErrorTable::default(), StampBound::default());
        let mut abandoned = Vec::new();
        for outcome in outcomes {
            errors.merge(&outcome.errors);
            bound.merge(&outcome.stamp_bound);
            abandoned.extend_from_slice(&outcome.abandoned);
        }
        abandoned.sort_by_key(|io| std::cmp::Reverse(io.age_ns));
        let area: u128 = outcomes.iter().map(|o| o.in_flight_area_ns).sum();
        let in_flight_mean = if window_ns == 0 {
            0.0
        } else {
            area as f64 / window_ns as f64
        };
        Self {
            window_ns,
            errors,
            bound,
            abandoned,
            in_flight_mean,
        }
    }
}

/// Makes the record of a step.
pub(in crate::session) fn assemble(facts: StepFacts<'_>, end: TeamEnd) -> Step {
    let totals = Totals::of(&end.outcomes);
    let sum = |count: fn(&ReactorOutcome) -> u64| end.outcomes.iter().map(count).sum::<u64>();
    let (failed_count, submitted_count) = (sum(|o| o.failed_count), sum(|o| o.submitted_count));
    let directions = Op::ALL.map(|op| direction(op, &end, &totals));
    let streams = streams(facts.plan, &end.outcomes, &facts.devices, totals.window_ns);
    let (mix, mix_ios_count) = mix_checks(facts.plan, &end.outcomes, &facts.devices);
    let mut warnings = self_checks(&check_input(
        &facts,
        &end,
        &totals,
        &directions,
        (&mix, mix_ios_count),
    ));
    warnings.extend(uneven_end_warning(facts.plan, &end.outcomes));
    warnings.extend(backlog_warning(&end.outcomes, totals.window_ns));
    let is_simulated = facts.devices.iter().any(|d| d.kind == DeviceKind::Sim);
    warnings.extend(stalled_warning(&end, totals.window_ns, is_simulated));
    let error = failure(&end.outcomes, &totals, &facts, failed_count);
    let [read, write, trim, writezeroes, flush, probe] = directions;
    Step {
        name: facts.plan.name.clone(),
        // Where it comes from, and whether it was steady, is known above.
        origin: crate::record::Origin::default(),
        steady: None,
        // Read by whoever ran it.
        conditions: None,
        status: outcome(&end.outcomes, error.as_ref()),
        error,
        summary: facts.plan.summary.clone(),
        plan: facts.plan_json,
        depth: depth(facts.plan, &facts.devices, totals.in_flight_mean),
        devices: facts.devices.iter().map(device_use).collect(),
        backend: facts.backend,
        ramp_s: facts.plan.limits.ramp.as_s(),
        #[allow(clippy::cast_precision_loss)]
        window_s: totals.window_ns as f64 / 1e9,
        read,
        write,
        trim,
        writezeroes,
        flush,
        probe,
        submitted_count,
        completed_count: sum(|o| o.completed_count),
        failed_count,
        abandoned_count: totals.abandoned.len() as u64,
        errors: totals.errors.tallies(),
        stamp: Stamp {
            mode: stamp_mode(&end.outcomes),
            bound_ns: totals.bound.bound_ns(),
        },
        mix,
        reactors: end
            .outcomes
            .iter()
            .map(|o| reactor_use(o, totals.window_ns, has_rate(facts.plan)))
            .collect(),
        slowest: slowest(facts.plan, &end.outcomes, &facts.devices, totals.window_ns),
        streams,
        path: Vec::new(),
        ceilings: Ceilings::default(),
        verdict: Verdict::undecided("the links of the path were not read"),
        expect: Vec::new(),
        poll_gaps: poll_gaps(&end.outcomes),
        warnings,
        series: end.collected.series,
    }
}

fn direction(op: Op, end: &TeamEnd, totals: &Totals) -> Option<Direction> {
    if totals.window_ns == 0 {
        return None;
    }
    let mut latencies = end.collected.latency[op as usize].clone();
    let mut scheduled = end.collected.scheduled[op as usize].clone();
    let ios_count = latencies.count();
    for io in totals.abandoned.iter().filter(|io| io.io.op == op) {
        latencies.record_censored(io.age_ns);
        let scheduled_age_ns = io.scheduled_age_ns.into_iter();
        scheduled_age_ns.for_each(|age_ns| scheduled.record_censored(age_ns));
    }
    // Every window's end cuts off some that have hardly begun to wait, as it does what is in flight.
    scheduled.forget_ages_within(latencies.percentile_ns(5_000).unwrap_or(0));
    let bytes_count = end.collected.bytes_count[op as usize];
    Some(Direction {
        ios_count,
        bytes_count,
        iops: per_second(ios_count, totals.window_ns),
        bytes_per_s: per_second(bytes_count, totals.window_ns),
        latency_ns: latencies.summary()?,
        scheduled_latency_ns: scheduled.summary(),
        histogram: latencies.buckets(),
    })
}

/// Latency of everything that ended in the window, failures included: what Little's law needs.
#[allow(clippy::cast_precision_loss)]
fn check_input(
    facts: &StepFacts<'_>,
    end: &TeamEnd,
    totals: &Totals,
    directions: &[Option<Direction>],
    (mix, mix_ios_count): (&[crate::record::MixCheck], u64),
) -> CheckInput {
    let mut all = LatencyHistogram::new();
    end.collected
        .latency
        .iter()
        .for_each(|latency| all.merge(latency));
    let failed: u64 = end.outcomes.iter().map(|o| o.window_failed_count).sum();
    let failed_sum: f64 = end
        .outcomes
        .iter()
        .map(|o| o.window_failed_sum_ns as f64)
        .sum();
    let ios_count = all.count() + failed;
    let sum = all.mean_ns().unwrap_or(0.0) * all.count() as f64 + failed_sum;
    CheckInput {
        ios_count,
        mean_ns: (ios_count > 0).then(|| sum / ios_count as f64),
        max_ns: all.max_ns().unwrap_or(0),
        window_ns: totals.window_ns,
        in_flight_mean: totals.in_flight_mean,
        depth_count: facts.plan.streams.iter().map(|s| u64::from(s.depth)).sum(),
        latencies: directions
            .iter()
            .flatten()
            .map(|d| d.latency_ns.clone())
            .collect(),
        // These are divided here; records of elsewhere may tell others.
        rates: Vec::new(),
        mix: mix.to_vec(),
        mix_ios_count,
        streams_count: facts.plan.streams.len() as u64,
        outside_count: outside_count(facts.plan, &end.outcomes),
        drain_max_ns: end
            .outcomes
            .iter()
            .map(|o| o.drain_max_ns)
            .max()
            .unwrap_or(0),
        lost_max_ns: (end.outcomes.iter())
            .map(|o| o.failed_max_ns)
            .chain(totals.abandoned.iter().map(|io| io.age_ns))
            .max()
            .unwrap_or(0),
        tool_cost_ns: facts.tool_cost_ns,
        clock_drift_ppm: facts.clock_drift_ppm,
    }
}

fn outcome(outcomes: &[ReactorOutcome], error: Option<&Failure>) -> Outcome {
    let signalled = |o: &ReactorOutcome| matches!(o.cause, StopCause::Signal | StopCause::Abort);
    if outcomes.iter().any(signalled) {
        Outcome::Interrupted
    } else if error.is_some() {
        Outcome::Failed
    } else {
        Outcome::Finished
    }
}

fn stamp_mode(outcomes: &[ReactorOutcome]) -> StampMode {
    if outcomes.iter().any(|o| o.stamp_mode == StampMode::Batch) {
        StampMode::Batch
    } else {
        StampMode::Exact
    }
}

/// Depth in the devices and above them. I/Os beyond what a device holds wait in software.
fn depth(plan: &StepPlan, devices: &[DeviceFacts], in_flight_mean: f64) -> Depth {
    let asked_count = plan
        .streams
        .iter()
        .map(|stream| u64::from(stream.depth))
        .sum();
    let mut held_count = Some(0_u64);
    for (index, device) in (0_u32..).zip(devices) {
        let asked: u64 = plan
            .streams
            .iter()
            .filter(|stream| stream.device_index == index)
            .map(|stream| u64::from(stream.depth))
            .sum();
        held_count = match (held_count, device.device_depth) {
            (Some(sum), Some(holds)) => Some(sum + asked.min(u64::from(holds))),
            _ => None,
        };
    }
    Depth {
        asked_count,
        device_count: held_count,
        queued_count: held_count.map(|held| asked_count - held),
        in_flight_mean,
    }
}

/// Streams that touched a block outside their region.
fn outside_count(plan: &StepPlan, outcomes: &[ReactorOutcome]) -> u64 {
    let left = |stream: &&StreamOutcome| {
        let region = plan.streams[stream.index as usize].region;
        let (first, end) = (stream.tally.first_lba, stream.tally.end_lba);
        first < region.first_lba || end > region.first_lba + region.blocks
    };
    outcomes
        .iter()
        .flat_map(|o| &o.streams)
        .filter(left)
        .count() as u64
}

#[allow(clippy::cast_precision_loss)]
fn reactor_use(outcome: &ReactorOutcome, window_ns: u64, has_rate: bool) -> ReactorUse {
    let ios_count: u64 = outcome.streams.iter().map(ios_of).sum();
    let real = outcome.cpu.is_some();
    let busy_ns = (outcome.busy_ns + outcome.worker_ns.unwrap_or(0)) as f64;
    let source = match (real, outcome.busy_is_cpu_time, outcome.worker_ns) {
        (false, ..) => "none",
        (true, true, None) => "thread-cpu-time-alone",
        (true, true, Some(0)) => "thread-cpu-time",
        (true, true, Some(_)) => "thread-and-worker-cpu-time",
        (true, false, _) => "polls",
    };
    // Thread time is spent on waiting for arrivals too: no I/O costs it.
    let is_of_ios = !(outcome.busy_is_cpu_time && has_rate) && outcome.worker_ns.is_some();
    ReactorUse {
        cpu: outcome.cpu,
        busy_ratio: (real && window_ns > 0).then(|| busy_ns / window_ns as f64),
        busy_ns_per_io: (real && is_of_ios && ios_count > 0).then(|| busy_ns / ios_count as f64),
        busy_source: source.to_owned(),
        polls_count: outcome.polls_count,
        ios_count,
    }
}

/// What the pattern itself did: a flush is no I/O of it, a probe is.
fn pattern_ops(stream: &StreamOutcome) -> impl Iterator<Item = &crate::measure::OpTally> {
    let ops = Op::ALL.into_iter().filter(|op| *op != Op::Flush);
    ops.map(|op| &stream.tally.ops[op as usize])
}

pub(in crate::session) fn ios_of(stream: &StreamOutcome) -> u64 {
    pattern_ops(stream).map(|op| op.ios_count).sum()
}

#[allow(clippy::cast_precision_loss)]
fn streams(
    plan: &StepPlan,
    outcomes: &[ReactorOutcome],
    devices: &[DeviceFacts],
    window_ns: u64,
) -> Vec<StreamUse> {
    let start_ns = outcomes
        .iter()
        .map(|o| o.window_start_ns)
        .min()
        .unwrap_or(0);
    let mut list: Vec<StreamUse> = outcomes
        .iter()
        .flat_map(|outcome| {
            outcome
                .streams
                .iter()
                .map(move |stream| (outcome.index, stream))
        })
        .map(|(reactor_index, stream)| {
            let spec = &plan.streams[stream.index as usize];
            let block_bytes = u64::from(devices[spec.device_index as usize].logical_block.bytes());
            let ios_count = ios_of(stream);
            let bytes_count =
                pattern_ops(stream).map(|op| op.blocks_count).sum::<u64>() * block_bytes;
            let own_ns = stream.ended_ns.map_or(window_ns, |ended| {
                ended.saturating_sub(start_ns).min(window_ns)
            });
            let sum_ns: f64 = pattern_ops(stream).map(|op| op.sum_ns as f64).sum();
            let max_ns = pattern_ops(stream).map(|op| op.max_ns).max();
            StreamUse {
                index: stream.index,
                device_index: spec.device_index,
                reactor_index,
                first_lba: spec.region.first_lba,
                region_blocks: spec.region.blocks,
                ios_count,
                bytes_count,
                iops: per_second(ios_count, own_ns),
                bytes_per_s: per_second(bytes_count, own_ns),
                mean_ns: (ios_count > 0).then(|| sum_ns / ios_count as f64),
                max_ns: max_ns.filter(|_| ios_count > 0),
            }
        })
        .collect();
    list.sort_by_key(|stream| stream.index);
    list
}

#[allow(clippy::cast_precision_loss)]
fn slowest(
    plan: &StepPlan,
    outcomes: &[ReactorOutcome],
    devices: &[DeviceFacts],
    window_ns: u64,
) -> Vec<SlowIo> {
    let mut list: Vec<SlowIo> = Vec::new();
    for outcome in outcomes {
        let abandoned = outcome.abandoned.iter().map(|io| crate::measure::Slow {
            latency_ns: io.age_ns,
            at_ns: window_ns,
            io: io.io,
            stream: io.stream,
            abandoned: true,
        });
        for slow in outcome.slowest.list().iter().copied().chain(abandoned) {
            let spec = &plan.streams[slow.stream as usize];
            let block_bytes = devices[spec.device_index as usize].logical_block.bytes();
            list.push(SlowIo {
                at_s: slow.at_ns as f64 / 1e9,
                latency_ns: slow.latency_ns,
                op: slow.io.op.name().to_owned(),
                lba: slow.io.lba,
                bytes_count: u64::from(slow.io.blocks) * u64::from(block_bytes),
                cpu: outcome.cpu,
                stream: slow.stream,
                abandoned: slow.abandoned,
            });
        }
    }
    list.sort_by_key(|slow| (std::cmp::Reverse(slow.latency_ns), slow.stream, slow.lba));
    list.truncate(crate::measure::Slowest::KEPT_COUNT);
    list
}

fn poll_gaps(outcomes: &[ReactorOutcome]) -> Vec<crate::record::PollGap> {
    let mut gaps = Gaps::default();
    outcomes
        .iter()
        .for_each(|outcome| gaps.merge(&outcome.gaps));
    gaps.buckets()
}

fn device_use(facts: &DeviceFacts) -> DeviceUse {
    DeviceUse {
        path: facts.path.clone(),
        identity: facts.identity.clone(),
        model: facts.model.clone(),
        serial: facts.serial.clone(),
        firmware: facts.firmware.clone(),
        kind: facts.kind.name().to_owned(),
        capacity_bytes: facts.capacity.0,
        logical_block_bytes: facts.logical_block.bytes(),
        physical_block_bytes: facts.physical_block.map(crate::units::BlockSize::bytes),
        in_use: facts.in_use.clone(),
    }
}

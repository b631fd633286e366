//! From intents and the facts of devices to the plan.

use super::batch::batch_of;
use super::choose::{choose, tracked};
use super::echo::summary;
use super::error::ConfigError;
use super::estimate::{Pace, estimate};
use super::fit::{Fitted, add_note, fit};
use super::intent::{StepIntent, StreamIntent, Total};
use super::place::{At, Given, Place};
use super::plan::{Choices, Limits, Plan, PlannedDevice, StepPlan};
use super::resolve::resolve;
use super::schema::Job;
use super::share;
use super::target::Target;
use super::totals::{Totals, totals_of};
use crate::backend::DeviceFacts;
use crate::record::Warning;
use crate::workload::{Access, Arrival, Quota, Region, StreamSpec, stream_seed, stripes};
use std::collections::BTreeSet;

/// Turns a job into a plan for these devices, in the order of `facts`. `seed_if_none` is the seed where
/// the job names none.
///
/// # Errors
/// A [`ConfigError`] that names file, line and key, or the flag, or the device, and what is allowed.
pub fn plan(job: &Job, facts: &[DeviceFacts], seed_if_none: u64) -> Result<Plan, ConfigError> {
    plan_chosen(job, facts, seed_if_none, &Choices::default())
}

/// As [`plan`], with a word on which steps are left out.
///
/// # Errors
/// See [`plan`]; where no step is left, why the first one was left out.
pub fn plan_chosen(
    job: &Job,
    facts: &[DeviceFacts],
    seed_if_none: u64,
    choices: &Choices,
) -> Result<Plan, ConfigError> {
    let intent = resolve(job)?;
    if facts.is_empty() {
        return Err(ConfigError::NoDevice);
    }
    let targets = facts
        .iter()
        .map(Target::of)
        .collect::<Result<Vec<_>, _>>()?;
    let seed = intent.seed.unwrap_or(seed_if_none);
    let mut chosen = choose(&intent, &targets, seed, choices)?;
    let rounds = tracked(intent.rounds.as_ref(), &mut chosen);
    chosen.notes.extend(job.notes.iter().map(|word| Warning {
        kind: "method".to_owned(),
        text: word.text.clone(),
        next_step: String::new(),
    }));
    if job.quick.is_some() {
        chosen.notes.push(quick_note(job));
    }
    let devices: Vec<PlannedDevice> = targets.iter().map(planned_device).collect();
    let estimate = estimate(&chosen.steps, rounds.as_ref(), &devices, Pace::of(facts));
    Ok(Plan {
        name: intent.name,
        seed,
        devices,
        steps: chosen.steps,
        notes: chosen.notes,
        about: job.about.as_ref().map(|word| word.text.clone()),
        left_out: chosen.left_out,
        rounds,
        derive: intent.derive,
        estimate,
    })
}

/// A first look is no measurement.
fn quick_note(job: &Job) -> Warning {
    let window = job.quick.unwrap_or_default();
    let skipped = if job.precondition.is_some() {
        ", and nothing was preconditioned"
    } else {
        ""
    };
    Warning {
        kind: "quick".to_owned(),
        text: format!("a first look: no window is longer than {window}{skipped}"),
        next_step: "leave --quick out to measure".to_owned(),
    }
}

fn planned_device(target: &Target<'_>) -> PlannedDevice {
    PlannedDevice {
        path: target.facts.path.clone(),
        logical_block: target.block,
        blocks: target.blocks,
    }
}

pub(super) fn plan_step(
    step: &StepIntent,
    targets: &[Target<'_>],
    (seed, step_index): (u64, u32),
    notes: &mut Vec<Warning>,
) -> Result<StepPlan, ConfigError> {
    let devices_count = targets.len() as u64;
    let entries_count = step.streams.len() as u64 * devices_count;
    let reactors_count = u64::from(step.reactors.value);
    if entries_count < reactors_count {
        return Err(too_few_streams(step, devices_count));
    }
    let (streams, reactor_of) = expand(step, targets, (seed, step_index), notes)?;
    if !step.striped {
        note_overlaps(step, &streams, notes);
    }
    let in_flight_count = streams.iter().map(|stream| u64::from(stream.depth)).sum();
    let batch = batch_of(step, &streams, &reactor_of)?;
    let mut plan = StepPlan {
        name: step.name.clone(),
        origin: step.origin.clone(),
        summary: String::new(),
        streams,
        reactor_of,
        reactors_count: step.reactors.value,
        cpus: step.cpus.clone(),
        batch,
        limits: Limits {
            ramp: step.ramp,
            runtime: step.runtime,
            grace: step.grace,
            max_errors: step.max_errors,
        },
        stamp: step.stamp,
        cool_down: step.cool_down,
        steady: step.steady,
        expect: step.expect.clone(),
        in_flight_count,
    };
    plan.summary = summary(&plan, targets.iter().map(|target| target.block));
    Ok(plan)
}

/// Each stream on each device, with its reactor.
fn expand(
    step: &StepIntent,
    targets: &[Target<'_>],
    (seed, step_index): (u64, u32),
    notes: &mut Vec<Warning>,
) -> Result<(Vec<StreamSpec>, Vec<u32>), ConfigError> {
    let totals = totals_of(step, targets)?;
    let (devices_count, reactors_count) = (targets.len() as u64, u64::from(step.reactors.value));
    let mut streams = Vec::new();
    let mut reactor_of = Vec::new();
    let mut number = 0_u32;
    for (stream_index, stream) in step.streams.iter().enumerate() {
        for (device_index, target) in (0_u32..).zip(targets) {
            let index = u64::from(number);
            let mut fitted = fit(stream, target, notes)?;
            if step.striped && stream.access == Access::Sequential && !stream.ops.is_probe() {
                fitted.region = stripe(step, stream, &fitted, stream_index, target)?;
            }
            let reactor = share::reactor_of(index, devices_count, reactors_count);
            // Below the number of reactors, which has 32 bits.
            reactor_of.push(u32::try_from(reactor).unwrap_or(u32::MAX));
            streams.push(StreamSpec {
                device_index,
                seed: stream_seed(seed, step_index, number),
                ..spec(stream, fitted, &totals, index, target)?
            });
            number += 1;
        }
    }
    Ok((streams, reactor_of))
}

/// Listed sequential streams that begin at one place read the same blocks one after the other: all but
/// the first are answered by a cache.
fn note_overlaps(step: &StepIntent, streams: &[StreamSpec], notes: &mut Vec<Warning>) {
    let mut starts = BTreeSet::new();
    let is_sequential =
        |stream: &&StreamSpec| stream.access == Access::Sequential && !stream.ops.is_probe();
    for stream in streams.iter().filter(is_sequential) {
        if !starts.insert((stream.device_index, stream.region.first_lba)) {
            add_note(
                notes,
                Warning {
                    kind: "streams-overlap".to_owned(),
                    text: format!(
                        "step {}: several sequential streams start at block {}: a cache answers all but the first",
                        step.name, stream.region.first_lba
                    ),
                    next_step:
                        "give each stream its own offset and size, or use a count: `streams: 4`"
                            .to_owned(),
                },
            );
        }
    }
}

fn too_few_streams(step: &StepIntent, devices_count: u64) -> ConfigError {
    let streams = &step.streams_place;
    let place = match streams.place.at {
        At::Default => step.reactors.place.clone(),
        _ => streams.place.clone(),
    };
    ConfigError::Conflict {
        place,
        why: format!(
            "{} streams on {devices_count} devices cannot keep {} reactors busy; allowed: at least {} streams, or fewer reactors",
            streams.value,
            step.reactors.value,
            u64::from(step.reactors.value).div_ceil(devices_count),
        ),
    }
}

/// The stripe of one of several sequential streams that are alike: they must not read the same blocks.
fn stripe(
    step: &StepIntent,
    stream: &StreamIntent,
    fitted: &Fitted,
    index: usize,
    target: &Target<'_>,
) -> Result<Region, ConfigError> {
    let largest = fitted
        .sizes
        .iter()
        .map(|size| size.blocks)
        .max()
        .unwrap_or(1);
    let count = step.streams_place.value;
    stripes(fitted.region, count, largest)
        .and_then(|list| list.get(index).copied())
        .ok_or_else(|| {
            let place = match &stream.size {
                Some(given) => &given.place,
                None => &step.streams_place.place,
            };
            target.unfit(
                place,
                format!(
                    "{count} sequential streams need a region of at least {} blocks, one request of {largest} blocks each; this one has {}",
                    u64::from(count) * u64::from(largest),
                    fitted.region.blocks
                ),
            )
        })
}

fn spec(
    stream: &StreamIntent,
    fitted: Fitted,
    totals: &Totals,
    index: u64,
    target: &Target<'_>,
) -> Result<StreamSpec, ConfigError> {
    // A share is at most 1e9, which a double holds exactly.
    #[allow(clippy::cast_precision_loss)]
    let arrival = match totals.rate_iops(index) {
        None => Arrival::Closed,
        Some(iops) if stream.is_poisson => Arrival::Poisson { iops: iops as f64 },
        Some(iops) => Arrival::Fixed { iops: iops as f64 },
    };
    Ok(StreamSpec {
        device_index: 0,
        ops: stream.ops,
        access: stream.access.clone(),
        quota: quota(stream, &fitted, totals, index, target)?,
        sizes: fitted.sizes,
        align_blocks: fitted.align_blocks,
        region: fitted.region,
        depth: stream.depth,
        arrival,
        flush_every: stream.flush_every.as_ref().map(|given| given.value),
        data: stream.data,
        seed: 0,
    })
}

/// The tightest of `number_ios`, `io_size` and `passes`.
fn quota(
    stream: &StreamIntent,
    fitted: &Fitted,
    totals: &Totals,
    index: u64,
    target: &Target<'_>,
) -> Result<Quota, ConfigError> {
    let by_size = totals
        .io_bytes(index)
        .map(|bytes| bytes / u64::from(target.block.bytes()));
    let largest = fitted
        .sizes
        .iter()
        .map(|size| size.blocks)
        .max()
        .unwrap_or(1);
    if let (Some(blocks), Some(total)) = (by_size, &stream.io_size)
        && blocks < u64::from(largest)
    {
        return Err(target.unfit(
            place_of(total),
            format!("the share of one stream is {blocks} blocks, less than one request of {largest} blocks; use more"),
        ));
    }
    let by_passes = match &stream.passes {
        None => None,
        Some(given) => Some(passes_blocks(given, stream, fitted, target)?),
    };
    let blocks = match (by_size, by_passes) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    };
    Ok(Quota {
        ios: totals.number_ios(index),
        blocks,
    })
}

/// Blocks of `passes` over the region. A sequential stream skips what is left at the end and holds no
/// whole request: counting that would begin another pass.
fn passes_blocks(
    passes: &Given<u64>,
    stream: &StreamIntent,
    fitted: &Fitted,
    target: &Target<'_>,
) -> Result<u64, ConfigError> {
    let pass = match (&stream.access, fitted.sizes.as_slice()) {
        (Access::Sequential, [one]) => {
            let request = u64::from(one.blocks);
            fitted.region.blocks / request * request
        }
        _ => fitted.region.blocks,
    };
    pass.checked_mul(passes.value).ok_or_else(|| {
        target.unfit(
            &passes.place,
            format!(
                "{} passes over {pass} blocks are more than 64 bits can count; use fewer",
                passes.value
            ),
        )
    })
}

const fn place_of(total: &Total) -> &Place {
    match total {
        Total::Step(given) | Total::Stream(given) => &given.place,
    }
}

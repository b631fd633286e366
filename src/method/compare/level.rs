//! Which steps both sides run.

use super::side::Side;
use crate::config::{Plan, StepPlan};
use crate::record::Warning;

/// Leaves on both sides the steps that both can run, once each: rounds take the place of repetitions. Says which
/// were left out.
pub(super) fn level(sides: &mut [Side]) -> Vec<Warning> {
    // A mix that has lost shares on one side is another workload there.
    let all: Vec<Vec<(String, Vec<u64>)>> = sides.iter().map(steps_with_sizes).collect();
    let is_common = |own: &(String, Vec<u64>)| all.iter().all(|steps| steps.contains(own));
    let mut warnings = Vec::new();
    for side in sides.iter_mut() {
        let label = side.spec.label;
        let blocks = blocks_of(&side.plan);
        let mut kept = Vec::new();
        side.doubts.resize(side.plan.steps.len(), Vec::new());
        let steps = side.plan.steps.drain(..).zip(side.doubts.drain(..));
        for ((step, doubts), step_s) in steps.zip(side.steps_s.drain(..)) {
            if step.origin.pass_index == 0 && is_common(&with_sizes(&step, &blocks)) {
                kept.push((step, doubts, step_s));
            } else if step.origin.pass_index == 0 {
                warnings.push(left_out(
                    &step.name,
                    "the other side cannot run it as it is",
                ));
            }
        }
        for (step, doubts, step_s) in kept {
            side.plan.steps.push(step);
            side.doubts.push(doubts);
            side.steps_s.push(step_s);
        }
        for left in &side.plan.left_out {
            warnings.push(left_out(&left.step, &format!("{label}: {}", left.why)));
        }
    }
    warnings
}

/// The steps of a side that are compared, each with the sizes of its I/Os in bytes.
fn steps_with_sizes(side: &Side) -> Vec<(String, Vec<u64>)> {
    let blocks = blocks_of(&side.plan);
    let steps = side.plan.steps.iter();
    let first = steps.filter(|step| step.origin.pass_index == 0);
    first.map(|step| with_sizes(step, &blocks)).collect()
}

/// The logical block of each device, in bytes.
fn blocks_of(plan: &Plan) -> Vec<u64> {
    let devices = plan.devices.iter();
    devices
        .map(|device| u64::from(device.logical_block.bytes()))
        .collect()
}

fn with_sizes(step: &StepPlan, blocks: &[u64]) -> (String, Vec<u64>) {
    let mut sizes: Vec<u64> = Vec::new();
    for stream in &step.streams {
        let block_bytes = blocks[stream.device_index as usize];
        sizes.extend(
            stream
                .sizes
                .iter()
                .map(|size| u64::from(size.blocks) * block_bytes),
        );
    }
    sizes.sort_unstable();
    sizes.dedup();
    (step.name.clone(), sizes)
}

fn left_out(step: &str, why: &str) -> Warning {
    Warning {
        kind: "step-left-out".to_owned(),
        text: format!("step `{step}` was left out: {why}"),
        next_step: String::new(),
    }
}

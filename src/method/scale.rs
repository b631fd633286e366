//! From one device to all at once: each alone, then more and more of them, then the proofs of what binds all.
//!
//! The devices are added in the order in which they were named. A device that is slow by itself would look like a
//! full hop, so each is also measured alone, and every sum is held against the sum of the same devices alone.

use super::burns::{BURNS_COUNT, burns, judge as judge_burns, rate};
use super::curve;
use super::outcome::outcome;
use crate::ceiling::evidence::Members;
use crate::ceiling::plateau::{self, CurvePoint};
use crate::record::{
    DEVICES_KEY, LaneBurn, Outcome, PointValue, RateBand, Scale, ScaleDepth, ScaleDrive,
    ScaleNodes, ScaleRow, SharedHop, Step,
};
use crate::session::{Proofs, SessionError};

/// The saturation point has this share of the most.
pub const SATURATION_RATIO: f64 = 0.97;
/// Up to so many devices every count is measured; beyond, each doubling.
const EVERY_COUNT: u32 = 16;
/// Parts of the depth, by which it is divided, that are measured with all devices: a factor of four shows a plateau.
const DEPTH_DIVISORS: [u32; 2] = [4, 2];

/// One window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// Its name in the record.
    pub name: String,
    /// The devices, by their place.
    pub devices: Vec<usize>,
    /// The depth of every stream is divided by this.
    pub depth_divisor: u32,
    /// Burnt at each I/O.
    pub burn_ns: Option<u64>,
    /// On reactors far from the devices.
    pub is_remote: bool,
}

/// What can be scaled: devices, or a model of them in tests.
pub trait Scaled {
    /// What is needed to judge a step later.
    type Kept;

    /// Runs one window, without a verdict.
    ///
    /// # Errors
    /// [`SessionError`] where it could not start.
    fn run(&mut self, ask: &Ask) -> Result<(Step, Self::Kept), SessionError>;

    /// Adds the verdict.
    fn judge(&mut self, step: &mut Step, kept: &Self::Kept, proofs: &Proofs);

    /// The narrowest hop that the devices of a step share, and what it lets through of the step's workload.
    fn shared(&self, step: &Step, kept: &Self::Kept) -> Result<(String, RateBand), String>;

    /// The one controller that all devices of a step hang on.
    fn controller(&self, kept: &Self::Kept) -> Option<String>;
}

/// What to measure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScalePlan {
    /// How the devices are called.
    pub devices: Vec<String>,
    /// How many at once, ascending; 1 is always measured, with each alone.
    pub counts: Vec<u32>,
    /// In flight on each device.
    pub depth_count: u64,
    /// The least depth that the job's batch allows.
    pub depth_least_count: u64,
    /// Reactors that run at once.
    pub reactors_count: u32,
    /// The devices' node, and another whose CPUs are tried; or why none is.
    pub nodes: Result<(u32, u32), String>,
}

impl ScalePlan {
    /// Every count up to 16, then each doubling, and all.
    #[must_use]
    pub fn usual_counts(devices_count: u32) -> Vec<u32> {
        let every = 2..=devices_count.min(EVERY_COUNT);
        let doubled = std::iter::successors(Some(EVERY_COUNT * 2), |count| count.checked_mul(2));
        let mut counts: Vec<u32> = every.collect();
        counts.extend(doubled.take_while(|count| *count < devices_count));
        if devices_count > EVERY_COUNT {
            counts.push(devices_count);
        }
        counts
    }

    /// Windows in all.
    #[must_use]
    pub fn windows_count(&self) -> usize {
        let remote = usize::from(self.nodes.is_ok());
        self.devices.len() + self.counts.len() + self.divisors().count() + BURNS_COUNT + remote
    }

    fn divisors(&self) -> impl Iterator<Item = u32> {
        let least = self.depth_least_count.max(1);
        let is_whole =
            self.depth_count >= u64::from(DEPTH_DIVISORS[0]) * least && self.depth_count >= 4;
        DEPTH_DIVISORS.into_iter().filter(move |_| is_whole)
    }
}

/// What was found.
#[derive(Debug)]
pub struct ScaleResult {
    /// Every window that is a row, in order: each alone, then two and more.
    pub steps: Vec<Step>,
    /// What they come to.
    pub scale: Scale,
    /// Why it ended before its end.
    pub error: Option<SessionError>,
}

impl ScaleResult {
    /// How the whole ended.
    #[must_use]
    pub fn status(&self) -> Outcome {
        outcome(&self.steps, self.error.as_ref())
    }
}

/// A measurement under way.
struct Bench<'a, S: Scaled> {
    plan: &'a ScalePlan,
    device: &'a mut S,
    result: ScaleResult,
}

/// Measures all of it. What was measured before a failure or a signal is kept.
pub fn measure<S: Scaled>(plan: &ScalePlan, device: &mut S) -> ScaleResult {
    let (local_node_index, remote_node_index, why_not) = match &plan.nodes {
        Ok((local, remote)) => (Some(*local), Some(*remote), String::new()),
        Err(why) => (None, None, why.clone()),
    };
    let scale = Scale {
        shared: None,
        why_not_shared: String::new(),
        rows: Vec::new(),
        drives: Vec::new(),
        saturation_count: None,
        is_held_back: None,
        depths: Vec::new(),
        burns: Vec::new(),
        nodes: ScaleNodes {
            local_node_index,
            remote_node_index,
            remote: None,
            remote_ratio: None,
            why_not,
        },
    };
    let result = ScaleResult {
        steps: Vec::new(),
        scale,
        error: None,
    };
    let mut bench = Bench {
        plan,
        device,
        result,
    };
    if bench.all().is_none() && bench.result.scale.why_not_shared.is_empty() {
        "not all devices were run together".clone_into(&mut bench.result.scale.why_not_shared);
    }
    settle(&mut bench.result.scale);
    bench.result
}

impl<S: Scaled> Bench<'_, S> {
    /// `None` where a window was not whole: nothing may follow.
    fn all(&mut self) -> Option<()> {
        for place in 0..self.plan.devices.len() {
            let name = if place == 0 {
                "1 device".to_owned()
            } else {
                format!("alone: {}", self.plan.devices[place])
            };
            let (mut step, kept) = self.window(&ask(name, vec![place]))?;
            self.device.judge(&mut step, &kept, &Proofs::default());
            self.add_alone(place, &step);
            if place == 0 {
                mark(&mut step, 1);
            }
            self.result.steps.push(step);
        }
        let counts = self.plan.counts.clone();
        for (index, count) in counts.iter().enumerate() {
            let is_last = index + 1 == counts.len();
            let places = (0..*count as usize).collect();
            let (mut step, kept) = self.window(&ask(format!("{count} devices"), places))?;
            mark(&mut step, *count);
            let row = row(&step, &self.result.scale.drives);
            self.result.scale.rows.push(row);
            if is_last {
                self.close(step, &kept)?;
            } else {
                self.device.judge(&mut step, &kept, &Proofs::default());
                self.result.steps.push(step);
            }
        }
        Some(())
    }

    /// The windows that show what binds all devices together, and the verdict over them.
    fn close(&mut self, mut step: Step, kept: &S::Kept) -> Option<()> {
        match self.device.shared(&step, kept) {
            Ok((at, ceiling)) => self.result.scale.shared = Some(SharedHop { at, ceiling }),
            Err(why) => self.result.scale.why_not_shared = why,
        }
        add_together(&mut self.result.scale.drives, &step);
        let proven = self.proofs(&step, kept);
        let proofs = proven.clone().unwrap_or_default();
        self.device.judge(&mut step, kept, &proofs);
        let local = rate(&step).1;
        self.result.steps.push(step);
        proven?;
        self.remote(local)
    }

    fn proofs(&mut self, top: &Step, kept: &S::Kept) -> Option<Proofs> {
        let all: Vec<usize> = (0..self.plan.devices.len()).collect();
        let mut points: Vec<CurvePoint> = Vec::new();
        for depth_divisor in self.plan.divisors() {
            let name = format!("{} devices, depth / {depth_divisor}", all.len());
            let (step, _) = self.window(&Ask {
                depth_divisor,
                ..ask(name, all.clone())
            })?;
            self.result.scale.depths.push(depth(&step));
            points.push(curve::point(&step));
        }
        self.result.scale.depths.push(depth(top));
        points.push(curve::point(top));
        let burns = self.burns(top, &all)?;
        let reactors_count = self.plan.reactors_count;
        let (host, host_iops) =
            judge_burns(rate(top).0, &burns, reactors_count, top.depth.asked_count);
        self.result.scale.burns = burns;
        let drives = &self.result.scale.drives;
        let alone = drives.iter().map(|drive| drive.alone_bytes_per_s).collect();
        Some(Proofs {
            plateau: Some(plateau::judge(&points)),
            host,
            host_iops,
            members: Some(Members {
                controller: self.device.controller(kept),
                alone_bytes_per_s: alone,
                together_bytes_per_s: rate(top).1,
            }),
            peers: Vec::new(),
        })
    }

    fn burns(&mut self, top: &Step, all: &[usize]) -> Option<Vec<LaneBurn>> {
        let reactors_count = self.plan.reactors_count;
        let run = |burn_ns| {
            let name = format!("{} devices, {burn_ns} ns burnt", all.len());
            let burnt = Ask {
                burn_ns: Some(burn_ns),
                ..ask(name, all.to_vec())
            };
            self.window(&burnt).map(|(step, _)| step).ok_or(())
        };
        burns(rate(top).0, reactors_count, run).ok()
    }

    /// All devices from another node.
    fn remote(&mut self, local_bytes_per_s: f64) -> Option<()> {
        let Some(node) = self.result.scale.nodes.remote_node_index else {
            return Some(());
        };
        let all: Vec<usize> = (0..self.plan.devices.len()).collect();
        let name = format!("{} devices from node {node}", all.len());
        let (mut step, kept) = self.window(&Ask {
            is_remote: true,
            ..ask(name, all)
        })?;
        self.device.judge(&mut step, &kept, &Proofs::default());
        let nodes = &mut self.result.scale.nodes;
        nodes.remote_ratio = ratio(rate(&step).1, local_bytes_per_s);
        nodes.remote = Some(row(&step, &self.result.scale.drives));
        self.result.steps.push(step);
        Some(())
    }

    /// Runs a window; one that is not whole is kept, and nothing follows it.
    fn window(&mut self, ask: &Ask) -> Option<(Step, S::Kept)> {
        match self.device.run(ask) {
            Ok((step, kept)) if step.status == Outcome::Finished => Some((step, kept)),
            Ok((mut step, kept)) => {
                self.device.judge(&mut step, &kept, &Proofs::default());
                self.result.steps.push(step);
                None
            }
            Err(error) => {
                self.result.error = Some(error);
                None
            }
        }
    }

    fn add_alone(&mut self, place: usize, step: &Step) {
        let (alone_iops, alone_bytes_per_s) = rate(step);
        self.result.scale.drives.push(ScaleDrive {
            path: self.plan.devices[place].clone(),
            alone_iops,
            alone_bytes_per_s,
            together_iops: None,
            together_bytes_per_s: None,
            kept_ratio: None,
        });
        if place == 0 {
            let row = row(step, &self.result.scale.drives);
            self.result.scale.rows.push(row);
        }
    }
}

fn ask(name: String, devices: Vec<usize>) -> Ask {
    Ask {
        name,
        devices,
        depth_divisor: 1,
        burn_ns: None,
        is_remote: false,
    }
}

/// Makes a step a point of the curve over devices.
fn mark(step: &mut Step, devices_count: u32) {
    "scale".clone_into(&mut step.origin.step);
    step.origin.point = vec![PointValue {
        key: DEVICES_KEY.to_owned(),
        value: devices_count.to_string(),
    }];
}

fn depth(step: &Step) -> ScaleDepth {
    ScaleDepth {
        depth_count: step.depth.asked_count,
        bytes_per_s: rate(step).1,
    }
}

/// I/Os and bytes a second of each device of a step.
fn each(step: &Step) -> Vec<(f64, f64)> {
    let mut all = vec![(0.0, 0.0); step.devices.len()];
    for stream in &step.streams {
        if let Some(own) = all.get_mut(stream.device_index as usize) {
            own.0 += stream.iops;
            own.1 += stream.bytes_per_s;
        }
    }
    all
}

fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

/// The row of a step on the first devices.
#[allow(clippy::cast_precision_loss)] // A handful of devices.
fn row(step: &Step, drives: &[ScaleDrive]) -> ScaleRow {
    let rates: Vec<f64> = each(step).iter().map(|own| own.1).collect();
    let (sum_iops, sum_bytes_per_s) = rate(step);
    let count = rates.len() as f64;
    let sum: f64 = rates.iter().sum();
    let squares: f64 = rates.iter().map(|rate| rate * rate).sum();
    let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
    let most = rates.iter().copied().fold(0.0, f64::max);
    let alone: f64 = drives
        .iter()
        .take(rates.len())
        .map(|drive| drive.alone_bytes_per_s)
        .sum();
    ScaleRow {
        devices_count: u32::try_from(rates.len()).unwrap_or(u32::MAX),
        step: step.name.clone(),
        sum_iops,
        sum_bytes_per_s,
        least_bytes_per_s: if least.is_finite() { least } else { 0.0 },
        mean_bytes_per_s: ratio(sum, count).unwrap_or(0.0),
        most_bytes_per_s: most,
        jain_ratio: ratio(sum * sum, count * squares),
        least_to_most_ratio: ratio(least, most),
        of_alone_ratio: ratio(sum_bytes_per_s, alone),
        of_shared_low_pct: None,
        of_shared_high_pct: None,
    }
}

fn add_together(drives: &mut [ScaleDrive], step: &Step) {
    for (drive, (iops, bytes_per_s)) in drives.iter_mut().zip(each(step)) {
        drive.together_iops = Some(iops);
        drive.together_bytes_per_s = Some(bytes_per_s);
        drive.kept_ratio = ratio(bytes_per_s, drive.alone_bytes_per_s);
    }
}

/// The figures that follow from all rows.
fn settle(scale: &mut Scale) {
    if let Some(shared) = &scale.shared {
        let band = shared.ceiling;
        let remote = scale.nodes.remote.iter_mut();
        for row in scale.rows.iter_mut().chain(remote) {
            let pct = |of: f64| ratio(row.sum_bytes_per_s, of).map(|part| part * 100.0);
            (row.of_shared_low_pct, row.of_shared_high_pct) =
                (pct(band.high_bytes_per_s), pct(band.low_bytes_per_s));
        }
    }
    let of_alone = scale.rows.last().and_then(|row| row.of_alone_ratio);
    let is_complete = (scale.drives.iter()).all(|drive| drive.together_bytes_per_s.is_some());
    // Of a curve that was cut off while it rose, the last row would be the most.
    let is_top_known = is_complete || of_alone.is_some_and(|ratio| ratio < SATURATION_RATIO);
    let sums = || scale.rows.iter().map(|row| row.sum_bytes_per_s);
    let most = sums().fold(0.0, f64::max);
    if most > 0.0 && is_top_known {
        let enough = |row: &&ScaleRow| row.sum_bytes_per_s >= SATURATION_RATIO * most;
        let first = scale.rows.iter().find(enough);
        scale.saturation_count = first.map(|row| row.devices_count);
    }
    let is_whole = scale.drives.iter().all(|drive| drive.kept_ratio.is_some());
    scale.is_held_back = of_alone
        .filter(|_| is_whole)
        .map(|of_alone| of_alone < SATURATION_RATIO);
}

#[cfg(test)]
#[path = "scale_tests.rs"]
mod tests;

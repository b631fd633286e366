//! The peak, and the knee: few short probes over depth, reactors and batch, then fresh rounds of the best.
//!
//! The best of many probes is too good by chance (the winner's curse), so the figure that is told comes from
//! rounds that took no part in the choice. Before them a known time is burnt at each I/O of the best setting, so that
//! each round can say whether the host binds.

use super::burns::{BURNS_COUNT, burns, judge as judge_burns};
use super::curve::{self, burn_place};
use super::outcome::outcome;
use crate::ceiling::plateau::{self, CurvePoint};
use crate::record::{LaneBurn, Outcome, Step};
use crate::session::{Proofs, SessionError};

/// Probes and rounds in all, at most.
pub const PROBES_MOST_COUNT: usize = 25;
/// Windows in all, at most: those that burn time are neither.
pub const WINDOWS_MOST_COUNT: usize = PROBES_MOST_COUNT + BURNS_COUNT;
/// Rounds of the best setting, at least.
const ROUNDS_LEAST_COUNT: usize = 3;
/// What another setting must bring to be taken: less is noise, and costs depth or a core.
const GAIN_RATIO: f64 = 1.01;
/// The knee has this share of the peak.
pub const KNEE_RATIO: f64 = 0.97;
/// Batches that are tried.
const BATCHES: [u32; 2] = [8, 32];
/// Doublings of depth without a gain that end the search: one may be bad luck.
const FLAT_COUNT: usize = 2;
/// Probes kept for the knee: that of a curve up to 1024 takes no more.
const KNEE_COUNT: usize = 4;
/// Multiples of the best depth that are tried before it is taken: four times of it without a gain is a plateau.
const BEYOND: [u64; 2] = [2, 4];

/// How a probe is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setting {
    /// I/Os in flight on each device, over all reactors.
    pub depth_count: u64,
    /// Reactors, each with an equal part of the depth.
    pub reactors_count: u32,
    /// Completions that a waiting poll sleeps for.
    pub complete_min_count: u32,
}

/// What can be probed: devices, or a model of them in tests.
pub trait Probed {
    /// Runs one probe.
    ///
    /// # Errors
    /// [`SessionError`] where it could not start.
    fn probe(&mut self, setting: Setting, name: &str) -> Result<Step, SessionError>;

    /// Runs a window in which so long is burnt at each I/O.
    ///
    /// # Errors
    /// As [`Probed::probe`].
    fn burn(&mut self, setting: Setting, name: &str, burn_ns: u64) -> Result<Step, SessionError>;

    /// Runs a round that the result is taken from; `proofs` is what the windows before it show.
    ///
    /// # Errors
    /// As [`Probed::probe`].
    fn confirm(
        &mut self,
        setting: Setting,
        name: &str,
        proofs: &Proofs,
    ) -> Result<Step, SessionError>;
}

/// How far to search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PeakPlan {
    /// Depth at most, a power of two.
    pub depth_most_count: u64,
    /// Devices, each of which is given the depth.
    pub devices_count: u32,
    /// Reactors at most.
    pub reactors_most_count: u32,
    /// Reactors that run at the same time, at most: simulated ones share one line of time.
    pub reactors_at_once_count: u32,
    /// Half of the interval of the mean, as a share of it, at which the rounds end.
    pub precision_ratio: f64,
}

impl PeakPlan {
    /// The ends of the search: least and greatest depth, reactors and batch, as far as they go together.
    #[must_use]
    pub fn ends(&self) -> Vec<Setting> {
        let most_count = 1 << self.reactors_most_count.max(1).ilog2();
        let mut found = Vec::new();
        for reactors_count in [1, most_count] {
            let least = u64::from(reactors_count);
            let most = self.depth_most_count.max(least);
            let fits = |batch: &u32| batched_depth(*batch, reactors_count) <= most;
            let batch = BATCHES.into_iter().rev().find(fits).unwrap_or(1);
            for (depth_count, complete_min_count) in [(least, 1), (most, 1), (most, batch)] {
                let setting = Setting {
                    depth_count,
                    reactors_count,
                    complete_min_count,
                };
                if !found.contains(&setting) {
                    found.push(setting);
                }
            }
        }
        found
    }
}

/// The depth that a batch needs at least, over all reactors.
fn batched_depth(complete_min_count: u32, reactors_count: u32) -> u64 {
    let needed_count = u64::from(2 * complete_min_count) * u64::from(reactors_count);
    needed_count.next_power_of_two()
}

/// One probe and what it gave.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// How it was run.
    pub setting: Setting,
    /// I/Os a second over all devices and directions.
    pub iops: f64,
    /// What it is on a curve over what the devices take.
    pub on_curve: CurvePoint,
}

/// What was found.
#[derive(Debug, Default)]
pub struct PeakResult {
    /// Every step: the probes, then the rounds.
    pub steps: Vec<Step>,
    /// The probes, in order.
    pub probes: Vec<Point>,
    /// The best reactors and batch with a known time burnt at each I/O.
    pub burns: Vec<LaneBurn>,
    /// I/Os a second of each round.
    pub rounds: Vec<f64>,
    /// The best setting; absent where nothing was measured.
    pub best: Option<Setting>,
    /// Mean of the rounds.
    pub peak_iops: Option<f64>,
    /// Half of the 95 % interval of that mean; absent with fewer than two rounds.
    pub half_width_iops: Option<f64>,
    /// Least depth that gives [`KNEE_RATIO`] of the peak, on the grid of powers of two.
    pub knee_depth_count: Option<u64>,
    /// Whether less depth was looked at wherever it could give as much; the probes may be spent before.
    pub is_knee_exact: bool,
    /// Which limit ended it.
    pub ended_by: &'static str,
    /// Why it ended before its end.
    pub error: Option<SessionError>,
}

impl PeakResult {
    /// How the whole ended.
    #[must_use]
    pub fn status(&self) -> Outcome {
        outcome(&self.steps, self.error.as_ref())
    }

    /// What broke it off.
    fn broken_by(&self) -> &'static str {
        match self.status() {
            Outcome::Interrupted => "interrupt",
            _ => "error",
        }
    }

    /// Whether so few probes are left that the rounds need them, and `reserved_count` others.
    fn is_spent(&self, reserved_count: usize) -> bool {
        self.steps.len() + ROUNDS_LEAST_COUNT + reserved_count >= PROBES_MOST_COUNT
    }

    /// Keeps a step; its rate and place on the curve, or `None` where nothing may follow.
    fn keep(&mut self, step: Result<Step, SessionError>) -> Option<(f64, CurvePoint)> {
        match step {
            Ok(step) => {
                let is_whole = step.status == Outcome::Finished;
                let found = (total_iops(&step), curve::point(&step));
                self.steps.push(step);
                is_whole.then_some(found)
            }
            Err(error) => {
                self.error = Some(error);
                None
            }
        }
    }

    /// The rate at a setting: known, or probed now. `None` where nothing may follow.
    fn rate(&mut self, device: &mut dyn Probed, setting: Setting) -> Option<f64> {
        if let Some(known) = self.probes.iter().find(|point| point.setting == setting) {
            return Some(known.iops);
        }
        let name = format!(
            "probe depth {} reactors {} batch {}",
            setting.depth_count, setting.reactors_count, setting.complete_min_count
        );
        let step = device.probe(setting, &name);
        let (iops, on_curve) = self.keep(step)?;
        self.probes.push(Point {
            setting,
            iops,
            on_curve,
        });
        Some(iops)
    }

    /// The best probe so far; of equals the one that costs least.
    fn best_point(&self) -> Option<Point> {
        let mut best: Option<Point> = None;
        for point in &self.probes {
            if best.is_none_or(|known| point.iops > known.iops * GAIN_RATIO) {
                best = Some(*point);
            }
        }
        best
    }

    /// The probes of a setting's reactors and batch, by depth.
    fn curve(&self, setting: Setting) -> Vec<Point> {
        let alike = self.probes.iter().filter(|point| {
            (
                point.setting.reactors_count,
                point.setting.complete_min_count,
            ) == (setting.reactors_count, setting.complete_min_count)
        });
        let mut curve: Vec<Point> = alike.copied().collect();
        curve.sort_by_key(|point| point.setting.depth_count);
        curve
    }
}

/// Searches, confirms, and finds the knee.
pub fn search(plan: &PeakPlan, device: &mut dyn Probed) -> PeakResult {
    let mut result = PeakResult::default();
    let found = over_depth(plan, &mut result, device)
        .and_then(|()| over_reactors(plan, &mut result, device))
        .and_then(|()| over_batches(plan, &mut result, device))
        .and_then(|()| beyond_the_best(plan, &mut result, device))
        .and_then(|()| around_the_knee(&mut result, device));
    let best = result.best_point();
    result.best = best.map(|point| point.setting);
    if let (Some(()), Some(best)) = (found, best) {
        confirm(plan, &mut result, device, best);
    }
    settle(&mut result);
    result
}

/// Doubles the depth of one reactor until that brings nothing any more.
fn over_depth(plan: &PeakPlan, result: &mut PeakResult, device: &mut dyn Probed) -> Option<()> {
    let (mut best, mut flat_count) = (0.0, 0);
    let mut depth_count = 1;
    while depth_count <= plan.depth_most_count && !result.is_spent(KNEE_COUNT) {
        let setting = Setting {
            depth_count,
            reactors_count: 1,
            complete_min_count: 1,
        };
        let iops = result.rate(device, setting)?;
        if iops > best * GAIN_RATIO {
            (best, flat_count) = (iops, 0);
        } else {
            flat_count += 1;
            if flat_count == FLAT_COUNT {
                break;
            }
        }
        depth_count *= 2;
    }
    Some(())
}

/// Doubles the reactors and the depth as long as that brings something: each reactor keeps the depth that it needs.
fn over_reactors(plan: &PeakPlan, result: &mut PeakResult, device: &mut dyn Probed) -> Option<()> {
    let mut reactors_count = 2;
    while reactors_count <= plan.reactors_most_count && !result.is_spent(KNEE_COUNT) {
        let before = result.best_point()?;
        let depth_count = before.setting.depth_count * 2;
        let least_count = u64::from(reactors_count);
        let setting = Setting {
            depth_count: depth_count.min(plan.depth_most_count).max(least_count),
            reactors_count,
            ..before.setting
        };
        result.rate(device, setting)?;
        if result.best_point()?.iops <= before.iops * GAIN_RATIO {
            break;
        }
        reactors_count *= 2;
    }
    Some(())
}

/// Tries larger batches, with the depth that they need: fewer wakings and bells for each I/O, at the cost of
/// latency. What completes at once has a flat curve over depth until it is reaped in batches.
fn over_batches(plan: &PeakPlan, result: &mut PeakResult, device: &mut dyn Probed) -> Option<()> {
    let best = result.best_point()?.setting;
    for complete_min_count in BATCHES {
        let needed_count = batched_depth(complete_min_count, best.reactors_count);
        let depth_count = best.depth_count.max(needed_count);
        let is_allowed = depth_count == best.depth_count || depth_count <= plan.depth_most_count;
        if is_allowed && !result.is_spent(KNEE_COUNT) {
            let setting = Setting {
                depth_count,
                complete_min_count,
                ..best
            };
            result.rate(device, setting)?;
        }
    }
    Some(())
}

/// Gives the best setting more depth: what batches and reactors brought may need it, and only a curve that more depth
/// does not lift shows what binds.
fn beyond_the_best(
    plan: &PeakPlan,
    result: &mut PeakResult,
    device: &mut dyn Probed,
) -> Option<()> {
    loop {
        let best = result.best_point()?.setting;
        for factor in BEYOND {
            let depth_count = best.depth_count * factor;
            if depth_count <= plan.depth_most_count && !result.is_spent(KNEE_COUNT) {
                let setting = Setting {
                    depth_count,
                    ..best
                };
                result.rate(device, setting)?;
            }
        }
        if result.best_point()?.setting == best {
            return Some(());
        }
    }
}

/// Measures the depths of the best setting that the knee depends on: by halving, since more depth never gives
/// fewer I/Os before the peak.
fn around_the_knee(result: &mut PeakResult, device: &mut dyn Probed) -> Option<()> {
    let best = result.best_point()?;
    // A reactor cannot wait for more completions than it has in flight.
    let floor = u64::from(best.setting.reactors_count)
        .saturating_mul(u64::from(best.setting.complete_min_count))
        .next_power_of_two();
    let (mut low, mut high) = (
        floor.trailing_zeros(),
        best.setting
            .depth_count
            .next_power_of_two()
            .trailing_zeros(),
    );
    while low < high && !result.is_spent(0) {
        let middle = low.midpoint(high);
        let setting = Setting {
            depth_count: 1 << middle,
            ..best.setting
        };
        if result.rate(device, setting)? >= KNEE_RATIO * best.iops {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    result.is_knee_exact = low >= high;
    Some(())
}

/// Burns a known time at each I/O, at the best setting but as deep as gives as much; what that and the curve show.
/// `None` where nothing may follow.
fn burn(
    plan: &PeakPlan,
    result: &mut PeakResult,
    device: &mut dyn Probed,
    best: Point,
) -> Option<Proofs> {
    let curve = result.curve(best.setting);
    let points: Vec<CurvePoint> = curve.iter().map(|point| point.on_curve).collect();
    let setting = Setting {
        depth_count: burn_place(&points).map_or(best.setting.depth_count, |place| {
            curve[place].setting.depth_count
        }),
        ..best.setting
    };
    let at_once_count = setting.reactors_count.min(plan.reactors_at_once_count);
    let burnt = burns(best.iops, at_once_count, |burn_ns| {
        device.burn(setting, &format!("{burn_ns} ns burnt"), burn_ns)
    });
    match burnt {
        Ok(burnt) => result.burns = burnt,
        Err(error) => {
            result.error = Some(error);
            return None;
        }
    }
    let in_flight_count = setting.depth_count * u64::from(plan.devices_count);
    let (host, host_iops) = judge_burns(best.iops, &result.burns, at_once_count, in_flight_count);
    Some(Proofs {
        plateau: Some(plateau::judge(&points)),
        host,
        host_iops,
        ..Proofs::default()
    })
}

/// Fresh rounds of the best until their mean is known well enough.
fn confirm(plan: &PeakPlan, result: &mut PeakResult, device: &mut dyn Probed, best: Point) {
    let Some(proofs) = burn(plan, result, device, best) else {
        result.ended_by = result.broken_by();
        return;
    };
    result.ended_by = "rounds";
    while result.steps.len() < PROBES_MOST_COUNT {
        let name = format!("round {}", result.rounds.len() + 1);
        let step = device.confirm(best.setting, &name, &proofs);
        let Some((iops, _)) = result.keep(step) else {
            result.ended_by = result.broken_by();
            return;
        };
        result.rounds.push(iops);
        let Some((mean, half_width)) = interval(&result.rounds) else {
            continue;
        };
        if result.rounds.len() >= ROUNDS_LEAST_COUNT && half_width <= plan.precision_ratio * mean {
            result.ended_by = "precision";
            return;
        }
    }
}

/// The figures that follow from what was measured.
#[allow(clippy::cast_precision_loss)]
fn settle(result: &mut PeakResult) {
    if result.rounds.is_empty() {
        return;
    }
    let peak_iops = result.rounds.iter().sum::<f64>() / result.rounds.len() as f64;
    result.peak_iops = Some(peak_iops);
    result.half_width_iops = interval(&result.rounds).map(|(_, half)| half);
    if let Some(best) = result.best {
        let curve = result.curve(best);
        let enough = curve
            .iter()
            .filter(|point| point.iops >= KNEE_RATIO * peak_iops);
        result.knee_depth_count = enough.map(|point| point.setting.depth_count).min();
    }
}

/// Two-sided 95 % quantiles of Student's t for 1 to 24 degrees of freedom.
const T_95: [f64; 24] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064,
];

/// The mean and half of its 95 % interval; `None` with fewer than two values.
#[allow(clippy::cast_precision_loss)]
fn interval(values: &[f64]) -> Option<(f64, f64)> {
    if values.len() < 2 {
        return None;
    }
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let error = (squares / (count - 1.0) / count).sqrt();
    let t = T_95[(values.len() - 2).min(T_95.len() - 1)];
    Some((mean, t * error))
}

fn total_iops(step: &Step) -> f64 {
    step.on_media().map(|direction| direction.iops).sum()
}

#[cfg(test)]
#[path = "peak_tests.rs"]
mod tests;

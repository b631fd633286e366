//! Curves over depth: what a step is on them, and where on them time is burnt.

use super::burns::rate;
use crate::ceiling::plateau::CurvePoint;
use crate::record::Step;

/// A depth with this share of the best rate is deep enough to burn at.
const NEARLY_RATIO: f64 = 0.9;
/// What a SATA drive takes at once at most (ATA ACS, native command queuing). A device that takes less was set so, or
/// runs without queuing.
const USUAL_DEPTH_COUNT: u64 = 32;

/// The point of a step: its data rate at its depth. What a device does not take waits above it, and shows nothing of what
/// more depth would do: where it takes fewer than is usual, its own depth counts.
#[must_use]
pub fn point(step: &Step) -> CurvePoint {
    let asked_count = step.depth.asked_count;
    let devices_count = step.devices.len().max(1) as u64;
    // A simulated device's parallelism is the device itself.
    let held = step
        .depth
        .device_count
        .filter(|_| step.backend.name != "sim");
    let is_few = |held: &u64| *held < asked_count && *held < USUAL_DEPTH_COUNT * devices_count;
    CurvePoint {
        depth_count: held.filter(is_few).unwrap_or(asked_count),
        rate: rate(step).1,
    }
}

/// The place of the point to burn at: the deepest that gives nearly as much as the best. There the device has work
/// queued, and does not wait for the reactor that burns. `points` ascend in depth.
#[must_use]
pub fn burn_place(points: &[CurvePoint]) -> Option<usize> {
    let best = points.iter().map(|point| point.rate).fold(0.0, f64::max);
    points
        .iter()
        .rposition(|point| point.rate >= NEARLY_RATIO * best)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::ceiling::plateau::{Plateau, judge};

    fn place(points: &[(u64, f64)]) -> Option<usize> {
        let curve: Vec<CurvePoint> = points
            .iter()
            .map(|&(depth_count, rate)| CurvePoint { depth_count, rate })
            .collect();
        burn_place(&curve)
    }

    #[test]
    fn burns_are_made_where_the_device_has_work_queued() {
        assert_eq!(place(&[(1, 100.0), (2, 100.0), (4, 99.0)]), Some(2));
        let falls = [(1, 50.0), (2, 100.0), (4, 91.0), (8, 89.0)];
        assert_eq!(place(&falls), Some(2));
        assert_eq!(place(&[]), None);
    }

    /// Without queuing every depth is one in the device: a flat curve over what waits above it is no plateau.
    #[test]
    fn what_waits_above_a_device_is_no_depth_of_it() {
        let text = include_str!("../../tests/fixtures/records/normal_read.json");
        let record: crate::record::Record = serde_json::from_str(text).unwrap();
        let mut step = record.steps[0].clone();
        let mut curve = |backend: &str, takes: Option<u64>| {
            let points = [2, 8, 16, 32].map(|asked_count| {
                backend.clone_into(&mut step.backend.name);
                step.depth.asked_count = asked_count;
                step.depth.device_count = takes.map(|takes| takes.min(asked_count));
                point(&step)
            });
            judge(&points)
        };
        assert_eq!(curve("uring", Some(1)), Plateau::NotMeasured);
        assert_eq!(curve("uring", Some(16)), Plateau::NotMeasured);
        assert_eq!(curve("uring", Some(32)), Plateau::Flat);
        assert_eq!(curve("uring", None), Plateau::Flat);
        assert_eq!(curve("sim", Some(1)), Plateau::Flat);
    }
}

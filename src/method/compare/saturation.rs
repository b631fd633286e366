//! Where a side stops to gain from more depth.

use super::runs::SideRuns;
use super::stats::mean;
use crate::record::{Saturation, SideSaturation};
use serde_json::Value;

/// A depth with this share of the most IOPS is as good as the best.
const PLATEAU_RATIO: f64 = 0.97;
/// Fewer depths make no curve.
const LEAST_DEPTHS_COUNT: usize = 3;

/// The curves among the steps: those that differ in nothing but their depth.
#[must_use]
pub fn saturations(steps: &[(String, Vec<SideRuns>)]) -> Vec<Saturation> {
    let mut groups: Vec<(Value, Vec<usize>)> = Vec::new();
    for (index, (_, sides)) in steps.iter().enumerate() {
        let Some(first) = sides.first().and_then(|side| side.first.as_ref()) else {
            continue;
        };
        let workload = without_depth(&first.plan);
        match groups.iter_mut().find(|group| group.0 == workload) {
            Some(group) => group.1.push(index),
            None => groups.push((workload, vec![index])),
        }
    }
    groups
        .iter()
        .filter_map(|(_, members)| curve(steps, members))
        .collect()
}

/// The plan of a step with everything taken out that follows from its depth or is a mere name.
fn without_depth(plan: &Value) -> Value {
    let mut plan = plan.clone();
    let drop = |object: &mut Value, keys: &[&str]| {
        if let Some(object) = object.as_object_mut() {
            keys.iter().for_each(|key| drop(object.remove(*key)));
        }
    };
    drop(
        &mut plan,
        &["name", "summary", "in_flight_count", "batch", "cpus"],
    );
    if let Some(streams) = plan.get_mut("streams").and_then(Value::as_array_mut) {
        for stream in streams {
            drop(stream, &["iodepth_count", "seed"]);
        }
    }
    plan
}

fn curve(steps: &[(String, Vec<SideRuns>)], members: &[usize]) -> Option<Saturation> {
    let depth = |index: usize| {
        steps[index].1[0]
            .first
            .as_ref()
            .map_or(0, |step| step.depth.asked_count)
    };
    let mut members = members.to_vec();
    members.sort_by_key(|index| depth(*index));
    members.dedup_by_key(|index| depth(*index));
    if members.len() < LEAST_DEPTHS_COUNT {
        return None;
    }
    let depths_count: Vec<u64> = members.iter().map(|index| depth(*index)).collect();
    let sides_count = steps[members[0]].1.len();
    let sides = (0..sides_count)
        .map(|side| {
            let iops = members
                .iter()
                .map(|index| mean(steps[*index].1[side].total_iops()));
            let at_depth_iops: Vec<f64> = iops.map(Option::unwrap_or_default).collect();
            SideSaturation {
                side_index: u32::try_from(side).unwrap_or(u32::MAX),
                saturation_depth_count: knee(&depths_count, &at_depth_iops),
                falls_beyond: falls(&at_depth_iops),
                at_depth_iops,
            }
        })
        .collect();
    let first = steps[members[0]].1[0].first.as_ref()?;
    Some(Saturation {
        workload: workload(&first.summary),
        depths_count,
        sides,
    })
}

/// `randread 4 KiB` of `randread 4 KiB, depth 1; …`.
fn workload(summary: &str) -> String {
    summary
        .split([',', ';'])
        .next()
        .unwrap_or(summary)
        .trim()
        .to_owned()
}

/// Least depth that is as good as the best; `None` where that is the last one: there was still something
/// to gain.
fn knee(depths_count: &[u64], iops: &[f64]) -> Option<u64> {
    let most = iops.iter().copied().fold(0.0, f64::max);
    let at = iops.iter().position(|iops| *iops >= PLATEAU_RATIO * most)?;
    (at + 1 < iops.len()).then(|| depths_count[at])
}

fn falls(iops: &[f64]) -> bool {
    let most = iops.iter().copied().fold(0.0, f64::max);
    iops.last().is_some_and(|last| *last < PLATEAU_RATIO * most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_knee_is_the_least_depth_as_good_as_the_best() {
        let depths = [1, 4, 16, 64];
        assert_eq!(knee(&depths, &[10.0, 40.0, 98.0, 100.0]), Some(16));
        assert_eq!(
            knee(&depths, &[10.0, 40.0, 90.0, 100.0]),
            None,
            "still gains"
        );
        // Falls beyond a depth of 4, as a drive behind a controller did.
        let falling = [10.0, 40.0, 30.0, 20.0];
        assert_eq!(knee(&depths, &falling), Some(4));
        assert!(falls(&falling) && !falls(&[1.0, 2.0]));
        // No gain from depth at all.
        assert_eq!(knee(&depths, &[10.0; 4]), Some(1));
    }

    #[test]
    fn only_the_depth_is_taken_out_of_a_plan() {
        let plan = |depth, bs| {
            json!({"name": format!("d{depth}"), "in_flight_count": depth, "runtime_ns": 5,
                   "streams": [{"iodepth_count": depth, "rw": "read", "bs": bs, "seed": depth}]})
        };
        assert_eq!(without_depth(&plan(1, 4)), without_depth(&plan(64, 4)));
        assert_ne!(without_depth(&plan(1, 4)), without_depth(&plan(1, 8)));
    }

    #[test]
    fn a_workload_is_named_without_its_depth() {
        assert_eq!(
            workload("randread 4 KiB, depth 1; 1 in flight"),
            "randread 4 KiB"
        );
    }
}

//! Sides of several devices: who got how much, and what a volume makes of its members.

use super::judge::{Rules, Scale, judge};
use super::runs::SideRuns;
use super::stats::mean;
use crate::record::{Aggregate, Efficiency};

/// One entry for each step and side of several devices. Where the other side is one device (a volume of
/// these, or one of them alone), its share of their sum.
#[must_use]
pub fn aggregates(steps: &[(String, Vec<SideRuns>)], rules: Rules) -> Vec<Aggregate> {
    let mut all = Vec::new();
    for (step, sides) in steps {
        for (index, side) in sides.iter().enumerate() {
            let others = || {
                sides
                    .iter()
                    .enumerate()
                    .filter(move |(other, _)| *other != index)
            };
            let alone = others().find(|(_, other)| devices_count(other) == 1);
            all.extend(aggregate(step, index, side, alone, rules));
        }
    }
    all
}

fn devices_count(side: &SideRuns) -> usize {
    side.first.as_ref().map_or(0, |step| step.devices.len())
}

fn aggregate(
    step: &str,
    index: usize,
    side: &SideRuns,
    alone: Option<(usize, &SideRuns)>,
    rules: Rules,
) -> Option<Aggregate> {
    let members = &side.first.as_ref()?.devices;
    if members.len() < 2 {
        return None;
    }
    let of = |member: usize| {
        let rounds: Vec<f64> = side
            .member_iops()
            .iter()
            .map(|round| round[member])
            .collect();
        mean(&rounds).unwrap_or_default()
    };
    let member_iops: Vec<f64> = (0..members.len()).map(of).collect();
    let average = mean(&member_iops).filter(|average| *average > 0.0)?;
    let least = member_iops.iter().copied().fold(f64::INFINITY, f64::min);
    let efficiency = alone.map(|(volume, other)| {
        let some = |values: &[f64]| values.iter().copied().map(Some).collect::<Vec<_>>();
        let scale = Scale {
            more_is_better: true,
            resolution_ratio: 0.0,
        };
        let judged = judge(
            &some(side.total_iops()),
            &some(other.total_iops()),
            scale,
            rules,
        );
        Efficiency {
            volume_index: u32::try_from(volume).unwrap_or(u32::MAX),
            ratio: judged.ratio,
        }
    });
    Some(Aggregate {
        step: step.to_owned(),
        side_index: u32::try_from(index).unwrap_or(u32::MAX),
        members: members.iter().map(|device| device.path.clone()).collect(),
        sum_iops: member_iops.iter().sum(),
        fairness_ratio: least / average,
        member_iops,
        efficiency,
    })
}

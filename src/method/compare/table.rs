//! From the runs of all sides to the compared steps and their indices.

use super::judge::{NOTHING, Rules, index, judge, relative_half_width};
use super::metric::Metric;
use super::runs::SideRuns;
use super::stats::mean;
use crate::record::{Against, ComparedIndex, ComparedMetric, ComparedStep, IndexAgainst, StepSide};
use std::collections::BTreeSet;

/// Metrics that an index is made of.
const INDEXED: [&str; 3] = ["iops", "mean", "p99"];

/// One step as a record shows it; `None` where a side has not finished a round.
#[must_use]
pub fn compared_step(name: &str, sides: &[SideRuns], rules: Rules) -> Option<ComparedStep> {
    let first = sides.first()?.first.as_ref()?;
    let step_sides: Option<Vec<StepSide>> = (0_u32..)
        .zip(sides)
        .map(|(side_index, side)| {
            Some(StepSide {
                side_index,
                first: side.first.clone()?,
                histograms: side.histograms(),
                warnings: side.warnings(),
            })
        })
        .collect();
    Some(ComparedStep {
        name: name.to_owned(),
        summary: first.summary.clone(),
        depth_count: first.depth.asked_count,
        metrics: metrics(sides)
            .into_iter()
            .map(|metric| compared(metric, sides, rules))
            .collect(),
        sides: step_sides?,
    })
}

fn metrics(sides: &[SideRuns]) -> BTreeSet<Metric> {
    sides.iter().flat_map(SideRuns::metrics).collect()
}

fn compared(metric: Metric, sides: &[SideRuns], rules: Rules) -> ComparedMetric {
    let rounds: Vec<Vec<Option<f64>>> = sides.iter().map(|side| side.rounds(metric)).collect();
    let against = (1_u32..)
        .zip(&rounds[1..])
        .map(|(side_index, other)| {
            let judged = judge(&rounds[0], other, metric.scale(), rules);
            Against {
                side_index,
                difference: judged.difference,
                ratio: judged.ratio,
                verdict: judged.verdict,
                why: judged.why,
            }
        })
        .collect();
    ComparedMetric {
        direction: metric.direction().to_owned(),
        metric: metric.name().to_owned(),
        unit: metric.unit().to_owned(),
        more_is_better: metric.scale().more_is_better,
        means: rounds.iter().map(|values| present_mean(values)).collect(),
        rounds,
        against,
    }
}

fn present_mean(values: &[Option<f64>]) -> Option<f64> {
    mean(&values.iter().flatten().copied().collect::<Vec<f64>>())
}

/// The largest half-width, relative to the baseline, of everything that is waited for; `None` as long as
/// something has no interval.
#[must_use]
pub fn widest_ratio(steps: &[(String, Vec<SideRuns>)], rules: Rules) -> Option<f64> {
    let mut widest: f64 = 0.0;
    for (_, sides) in steps {
        for metric in metrics(sides)
            .into_iter()
            .filter(|metric| metric.is_waited_for())
        {
            let base = sides[0].rounds(metric);
            for side in &sides[1..] {
                let other = side.rounds(metric);
                let half = relative_half_width(&base, &other, metric.scale(), rules)?;
                widest = widest.max(half);
            }
        }
    }
    Some(widest)
}

/// Geometric means over everything that the steps measured; none where there is but one such figure.
#[must_use]
pub fn indices(steps: &[(String, Vec<SideRuns>)], rules: Rules) -> Vec<ComparedIndex> {
    INDEXED
        .iter()
        .filter_map(|name| index_of(name, steps, rules))
        .collect()
}

fn index_of(name: &str, steps: &[(String, Vec<SideRuns>)], rules: Rules) -> Option<ComparedIndex> {
    let rows: Vec<(&[SideRuns], Metric)> = steps
        .iter()
        .flat_map(|(_, sides)| {
            let own = metrics(sides)
                .into_iter()
                .filter(|metric| metric.name() == name);
            own.filter(|metric| metric.direction() != "flush")
                .map(move |metric| (sides.as_slice(), metric))
        })
        .collect();
    if rows.len() < 2 {
        return None;
    }
    let more_is_better = rows[0].1.scale().more_is_better;
    let sides_count = rows[0].0.len();
    let against = (1..sides_count).map(|side| {
        let logs: Vec<Vec<Option<f64>>> = rows
            .iter()
            .map(|(sides, metric)| {
                logs(
                    &sides[0].rounds(*metric),
                    &sides[side].rounds(*metric),
                    rules,
                )
            })
            .collect();
        let (ratio, verdict) = if logs.iter().all(|step| step.iter().any(Option::is_some)) {
            index(&logs, more_is_better, rules)
        } else {
            (NOTHING, crate::record::ComparisonVerdict::NotJudged)
        };
        IndexAgainst {
            side_index: u32::try_from(side).unwrap_or(u32::MAX),
            ratio,
            verdict,
        }
    });
    Some(ComparedIndex {
        metric: name.to_owned(),
        steps_count: u32::try_from(rows.len()).unwrap_or(u32::MAX),
        more_is_better,
        against: against.collect(),
    })
}

/// Logarithms of the ratios: of each round where rounds are paired, otherwise one, of the means.
fn logs(a: &[Option<f64>], b: &[Option<f64>], rules: Rules) -> Vec<Option<f64>> {
    let log = |a: Option<f64>, b: Option<f64>| {
        let (a, b) = (a?, b?);
        (a > 0.0 && b > 0.0).then(|| (b / a).ln())
    };
    if rules.is_paired {
        a.iter().zip(b).map(|(a, b)| log(*a, *b)).collect()
    } else {
        vec![log(present_mean(a), present_mean(b))]
    }
}

//! One sentence for each side.

use super::confound::is_same_drive;
use crate::record::{
    Against, Aggregate, ComparedMetric, ComparedSide, ComparedStep, Comparison, ComparisonVerdict,
    Saturation,
};

/// Figures named in a sentence at most.
const NAMED_COUNT: usize = 3;

/// One sentence for each side, the baseline first.
#[must_use]
pub fn conclusions(comparison: &Comparison) -> Vec<String> {
    (0_u32..)
        .zip(&comparison.sides)
        .map(|(index, side)| sentence(comparison, index, side))
        .collect()
}

fn sentence(comparison: &Comparison, index: u32, side: &ComparedSide) -> String {
    let mut parts = vec![standing(comparison, index)];
    parts.extend(added_latency(comparison, index));
    parts.extend(
        comparison
            .saturations
            .iter()
            .filter_map(|curve| saturation(curve, index)),
    );
    let own = comparison
        .aggregates
        .iter()
        .filter(|aggregate| aggregate.side_index == index);
    parts.extend(own.filter_map(efficiency));
    let label = if side.label == side.name {
        side.label.clone()
    } else {
        format!("{} ({})", side.label, side.name)
    };
    format!("{label} {}.", parts.join("; "))
}

/// In how many figures the side is better, and in which first.
fn standing(comparison: &Comparison, index: u32) -> String {
    let (mut better, mut equal, mut open, mut judged_count) = (Vec::new(), 0, 0, 0);
    let mut why = "there are no rounds to judge by";
    for step in &comparison.steps {
        for metric in &step.metrics {
            for against in metric
                .against
                .iter()
                .filter(|against| index == 0 || against.side_index == index)
            {
                match (against.verdict, index) {
                    (ComparisonVerdict::NotJudged, _) => {
                        why = &against.why;
                        continue;
                    }
                    (ComparisonVerdict::ABetter, 0) => better.push(figure(step, metric)),
                    (ComparisonVerdict::BBetter, 1..) => better.push(figure(step, metric)),
                    (ComparisonVerdict::Equal, _) => equal += 1,
                    (ComparisonVerdict::NoDifferenceShown, _) => open += 1,
                    _ => {}
                }
                judged_count += 1;
            }
        }
    }
    if judged_count == 0 {
        return format!("was not judged: {why}");
    }
    let mut text = if better.is_empty() {
        format!("is better in none of {judged_count} figures")
    } else {
        let named = better
            .iter()
            .take(NAMED_COUNT)
            .cloned()
            .collect::<Vec<_>>()
            .join(", ");
        let more = if better.len() > NAMED_COUNT {
            ", …"
        } else {
            ""
        };
        format!(
            "is better in {} of {judged_count} figures ({named}{more})",
            better.len()
        )
    };
    if equal + open > 0 {
        text += &format!(", equal in {equal}, and {open} show no difference");
    }
    text
}

fn figure(step: &ComparedStep, metric: &ComparedMetric) -> String {
    let name = metric
        .metric
        .replace('_', ".")
        .replace("scheduled.", "scheduled ");
    match metric.direction.as_str() {
        "" => format!("{name} of {}", step.name),
        direction => format!("{direction} {name} of {}", step.name),
    }
}

/// The same drive by another way: the difference of p50 at depth 1 is what that way adds.
fn added_latency(comparison: &Comparison, index: u32) -> Option<String> {
    if index == 0 {
        return None;
    }
    let of_step = |step: &ComparedStep| -> Option<String> {
        let (a, b) = (step.sides.first()?, step.sides.get(index as usize)?);
        if step.depth_count != 1 || !is_same_drive(&a.first, &b.first) {
            return None;
        }
        let metric = step.metrics.iter().find(|metric| metric.metric == "p50")?;
        let against = metric
            .against
            .iter()
            .find(|against| against.side_index == index)?;
        let what = if step.summary.starts_with("probe") {
            "without the media, "
        } else {
            ""
        };
        Some(format!(
            "for the same drive, {what}its way {} at depth 1 ({})",
            adds(against)?,
            step.name
        ))
    };
    let found: Vec<String> = comparison.steps.iter().filter_map(of_step).collect();
    (!found.is_empty()).then(|| found.join("; "))
}

fn adds(against: &Against) -> Option<String> {
    let ns = against.difference.value?;
    let us = |ns: f64| format!("{:.2} µs", ns / 1e3);
    let word = if ns < 0.0 { "takes off" } else { "adds" };
    let mut text = format!("{word} {}", us(ns.abs()));
    if let (Some(low), Some(high)) = (against.difference.low, against.difference.high) {
        text += &format!(" (difference of p50: {} to {})", us(low), us(high));
    }
    if against.verdict == ComparisonVerdict::NoDifferenceShown {
        text += ", which is not shown to differ from nothing";
    }
    Some(text)
}

fn saturation(curve: &Saturation, index: u32) -> Option<String> {
    let side = curve.sides.iter().find(|side| side.side_index == index)?;
    let most = side.at_depth_iops.iter().copied().fold(0.0, f64::max);
    let mut text = match side.saturation_depth_count {
        Some(depth) => format!(
            "saturates at depth {depth} with {most:.0} IOPS in {}",
            curve.workload
        ),
        None => format!(
            "still gains at depth {} with {most:.0} IOPS in {}",
            curve.depths_count.last()?,
            curve.workload
        ),
    };
    if side.saturation_depth_count == curve.depths_count.first().copied() {
        text += ", so it gains nothing from depth";
    }
    if side.falls_beyond {
        text += ", and falls beyond its best depth";
    }
    Some(text)
}

fn efficiency(aggregate: &Aggregate) -> Option<String> {
    let ratio = aggregate.efficiency?.ratio;
    let pct = |ratio: f64| format!("{:.1} %", ratio * 100.0);
    let interval = match (ratio.low, ratio.high) {
        (Some(low), Some(high)) => format!(" ({} to {})", pct(low), pct(high)),
        _ => String::new(),
    };
    Some(format!(
        "the other side makes {}{interval} of the sum of its {} members in {}",
        pct(ratio.value?),
        aggregate.members.len(),
        aggregate.step
    ))
}

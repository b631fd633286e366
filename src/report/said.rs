//! The verdicts of comparisons in words: one set for every form.

use super::figures as show;
use crate::record::{Against, Comparison, ComparisonVerdict};

/// What may be said of `side` against the baseline.
pub fn said(verdict: ComparisonVerdict, comparison: &Comparison, side: usize) -> String {
    let better = |side: usize| {
        let label = comparison.sides.get(side).map_or("?", |side| &side.label);
        format!("{label} better")
    };
    match verdict {
        ComparisonVerdict::ABetter => better(0),
        ComparisonVerdict::BBetter => better(side),
        ComparisonVerdict::NoDifferenceShown => "none shown".to_owned(),
        ComparisonVerdict::Equal => {
            let bound = show::percent(comparison.design.equal_within_pct, 3);
            format!("equal ± {bound}")
        }
        ComparisonVerdict::NotJudged => "not judged".to_owned(),
    }
}

/// What the words mean that do not explain themselves, as far as they were used.
pub fn legend(comparison: &Comparison) -> Vec<String> {
    let mut lines = Vec::new();
    let metrics = comparison.steps.iter().flat_map(|step| &step.metrics);
    let all: Vec<&Against> = metrics.flat_map(|metric| &metric.against).collect();
    let is_open = |against: &&Against| against.verdict == ComparisonVerdict::NoDifferenceShown;
    if all.iter().any(is_open) {
        lines.push(
            "none shown: the interval of the difference holds 0, and is too wide to call the sides equal"
                .to_owned(),
        );
    }
    for against in all {
        let line = format!("not judged: {}", against.why);
        let is_told = against.why.is_empty() || lines.contains(&line);
        if against.verdict == ComparisonVerdict::NotJudged && !is_told {
            lines.push(line);
        }
    }
    lines
}

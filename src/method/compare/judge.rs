//! From the rounds of two sides to a difference, a ratio, their intervals, and what may be said.

use super::stats::{Interval, Spread, mean};
use super::stopping::WIDENED;
use crate::record::{ComparisonVerdict, Estimate};

/// Confidence of every interval that is shown.
pub const CONFIDENCE_PCT: f64 = 95.0;
/// Equivalence is shown where this interval lies within the bounds: two one-sided tests at 5 % each
/// (Schuirmann 1987).
const EQUIVALENCE_PCT: f64 = 90.0;

/// How two sides are judged.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rules {
    /// Sides within this of each other count as equal.
    pub equal_within_pct: f64,
    /// Whether the rounds ended early: intervals are then wider.
    pub ended_early: bool,
    /// Whether a round of one side belongs to the same round of the other.
    pub is_paired: bool,
    /// Seed of the resampling.
    pub seed: u64,
}

/// What is known of a metric beyond its values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    /// Whether more is better.
    pub more_is_better: bool,
    /// Percentiles are known to a bucket of the histogram: this share of their value. 0 for exact figures.
    pub resolution_ratio: f64,
}

/// What two sides came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// B less A.
    pub difference: Estimate,
    /// B divided by A.
    pub ratio: Estimate,
    /// What may be said.
    pub verdict: ComparisonVerdict,
    /// Why no more may be said.
    pub why: String,
}

/// No figure at all.
pub const NOTHING: Estimate = Estimate {
    value: None,
    low: None,
    high: None,
};

/// Holds B against A. Rounds in which a side had no sample are left out.
#[must_use]
pub fn judge(a: &[Option<f64>], b: &[Option<f64>], scale: Scale, rules: Rules) -> Judgement {
    let (a, b) = usable(a, b, rules.is_paired);
    let (Some(mean_a), Some(mean_b)) = (mean(&a), mean(&b)) else {
        return unjudged(NOTHING, NOTHING, "a side has no sample");
    };
    let point = |value| Estimate {
        value: Some(value),
        low: None,
        high: None,
    };
    let difference = point(mean_b - mean_a);
    if a.len() == 1 || b.len() == 1 {
        let ratio = (mean_a > 0.0).then(|| mean_b / mean_a);
        let ratio = Estimate {
            value: ratio,
            ..NOTHING
        };
        return unjudged(
            difference,
            ratio,
            "one run a side: nothing tells how far it varies",
        );
    }
    let slack = scale.resolution_ratio * mean_a.abs().max(mean_b.abs());
    let shift = spread(&a, &b, rules);
    let interval = |spread: &Spread, confidence_pct, slack| {
        widened(spread.interval(confidence_pct), rules.ended_early, slack)
    };
    let logs = |values: &[f64]| -> Option<Vec<f64>> {
        let positive = values.iter().all(|value| *value > 0.0);
        positive.then(|| values.iter().map(|value| value.ln()).collect())
    };
    let log_ratio = logs(&a).zip(logs(&b));
    let ratio_value = log_ratio
        .as_ref()
        .and_then(|(a, b)| Some((mean(b)? - mean(a)?).exp()));
    let Some(shift) = shift else {
        let ratio = Estimate {
            value: ratio_value,
            ..NOTHING
        };
        return unjudged(difference, ratio, "too few rounds for an interval");
    };
    let ratio_spread = log_ratio.and_then(|(a, b)| spread(&a, &b, rules));
    let ratio_at = |confidence_pct| {
        let spread = ratio_spread.as_ref()?;
        Some(interval(spread, confidence_pct, scale.resolution_ratio))
    };
    let wide = interval(&shift, CONFIDENCE_PCT, slack);
    let equal = ratio_at(EQUIVALENCE_PCT).is_some_and(|logs| is_equal(logs, rules));
    Judgement {
        difference: estimate(Some(mean_b - mean_a), Some(wide)),
        ratio: estimate(
            ratio_value,
            ratio_at(CONFIDENCE_PCT).map(|logs| Interval {
                low: logs.low.exp(),
                high: logs.high.exp(),
            }),
        ),
        verdict: verdict(wide, equal, scale.more_is_better),
        why: String::new(),
    }
}

/// The geometric mean over the steps of B divided by A, from the logarithms of the ratios: one list of rounds
/// for each step. A round in which a step has none is left out.
#[must_use]
pub fn index(
    logs_by_step: &[Vec<Option<f64>>],
    more_is_better: bool,
    rules: Rules,
) -> (Estimate, ComparisonVerdict) {
    let rounds_count = logs_by_step.iter().map(Vec::len).min().unwrap_or(0);
    let means: Vec<f64> = (0..rounds_count)
        .filter_map(|round| {
            let logs: Option<Vec<f64>> = logs_by_step.iter().map(|step| step[round]).collect();
            mean(&logs?)
        })
        .collect();
    let value = mean(&means).map(f64::exp);
    let Some(spread) = Spread::of(&means, rules.seed) else {
        let value = Estimate { value, ..NOTHING };
        return (value, ComparisonVerdict::NotJudged);
    };
    let at = |confidence_pct| widened(spread.interval(confidence_pct), rules.ended_early, 0.0);
    let wide = at(CONFIDENCE_PCT);
    let verdict = verdict(wide, is_equal(at(EQUIVALENCE_PCT), rules), more_is_better);
    let ends = Interval {
        low: wide.low.exp(),
        high: wide.high.exp(),
    };
    (estimate(value, Some(ends)), verdict)
}

/// Half-width of the interval of the difference, relative to A's mean; `None` where there is none.
#[must_use]
pub fn relative_half_width(
    a: &[Option<f64>],
    b: &[Option<f64>],
    scale: Scale,
    rules: Rules,
) -> Option<f64> {
    let (a, b) = usable(a, b, rules.is_paired);
    let base = mean(&a).filter(|mean| *mean > 0.0)?;
    let half = spread(&a, &b, rules)?.interval(CONFIDENCE_PCT).half_width();
    Some(half / base + scale.resolution_ratio)
}

fn unjudged(difference: Estimate, ratio: Estimate, why: &str) -> Judgement {
    Judgement {
        difference,
        ratio,
        verdict: ComparisonVerdict::NotJudged,
        why: why.to_owned(),
    }
}

/// The rounds that both sides have, or each side's own where they are not paired.
fn usable(a: &[Option<f64>], b: &[Option<f64>], is_paired: bool) -> (Vec<f64>, Vec<f64>) {
    if is_paired {
        a.iter()
            .zip(b)
            .filter_map(|(a, b)| Some(((*a)?, (*b)?)))
            .unzip()
    } else {
        (
            a.iter().flatten().copied().collect(),
            b.iter().flatten().copied().collect(),
        )
    }
}

fn spread(a: &[f64], b: &[f64], rules: Rules) -> Option<Spread> {
    if !rules.is_paired {
        return Spread::of_two(a, b, rules.seed);
    }
    let differences: Vec<f64> = a.iter().zip(b).map(|(a, b)| b - a).collect();
    Spread::of(&differences, rules.seed)
}

fn widened(interval: Interval, ended_early: bool, slack: f64) -> Interval {
    let center = f64::midpoint(interval.low, interval.high);
    let factor = if ended_early { WIDENED } else { 1.0 };
    let half = interval.half_width() * factor + slack;
    Interval {
        low: center - half,
        high: center + half,
    }
}

/// Whether the logarithm of the ratio shows the sides within the bounds of equality.
fn is_equal(logs: Interval, rules: Rules) -> bool {
    let bound = rules.equal_within_pct / 100.0;
    logs.is_within((1.0 - bound).ln(), (1.0 + bound).ln())
}

fn verdict(difference: Interval, is_equal: bool, more_is_better: bool) -> ComparisonVerdict {
    if difference.low > 0.0 || difference.high < 0.0 {
        if (difference.low > 0.0) == more_is_better {
            ComparisonVerdict::BBetter
        } else {
            ComparisonVerdict::ABetter
        }
    } else if is_equal {
        ComparisonVerdict::Equal
    } else {
        ComparisonVerdict::NoDifferenceShown
    }
}

fn estimate(value: Option<f64>, interval: Option<Interval>) -> Estimate {
    Estimate {
        value,
        low: interval.map(|interval| interval.low),
        high: interval.map(|interval| interval.high),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LESS_IS_BETTER: Scale = Scale {
        more_is_better: false,
        resolution_ratio: 0.0,
    };
    const RULES: Rules = Rules {
        equal_within_pct: 1.0,
        ended_early: false,
        is_paired: true,
        seed: 1,
    };

    fn some(values: &[f64]) -> Vec<Option<f64>> {
        values.iter().copied().map(Some).collect()
    }

    fn said(a: &[f64], b: &[f64]) -> ComparisonVerdict {
        judge(&some(a), &some(b), LESS_IS_BETTER, RULES).verdict
    }

    #[test]
    fn each_verdict_has_its_case() {
        let a = [100.0, 101.0, 99.0, 100.5, 99.5, 100.0];
        let slower = a.map(|value| value + 5.0);
        assert_eq!(said(&a, &slower), ComparisonVerdict::ABetter);
        assert_eq!(said(&slower, &a), ComparisonVerdict::BBetter);
        let same = [100.01, 100.99, 99.01, 100.49, 99.51, 99.99];
        assert_eq!(said(&a, &same), ComparisonVerdict::Equal);
        let noisy = [110.0, 91.0, 104.0, 95.0, 108.0, 93.0];
        assert_eq!(said(&a, &noisy), ComparisonVerdict::NoDifferenceShown);
        assert_eq!(said(&a[..2], &slower[..2]), ComparisonVerdict::NotJudged);
        assert_eq!(said(&a[..1], &slower[..1]), ComparisonVerdict::NotJudged);
        assert_eq!(said(&[], &[]), ComparisonVerdict::NotJudged);
        let more_is_better = Scale {
            more_is_better: true,
            ..LESS_IS_BETTER
        };
        let judged = judge(&some(&a), &some(&slower), more_is_better, RULES);
        assert_eq!(judged.verdict, ComparisonVerdict::BBetter);
    }

    #[test]
    fn a_difference_within_a_bucket_is_not_called() {
        let (a, b) = ([100_000.0; 6], [100_050.0; 6]);
        assert_eq!(said(&a, &b), ComparisonVerdict::ABetter);
        let bucketed = Scale {
            resolution_ratio: 0.001,
            ..LESS_IS_BETTER
        };
        let judged = judge(&some(&a), &some(&b), bucketed, RULES);
        assert_eq!(judged.verdict, ComparisonVerdict::Equal);
        assert!(judged.difference.low < Some(0.0) && judged.difference.high > Some(0.0));
    }

    #[test]
    fn ratio_and_difference_agree() {
        let (a, b) = ([100.0, 110.0, 90.0, 100.0], [200.0, 221.0, 180.0, 199.0]);
        let judged = judge(&some(&a), &some(&b), LESS_IS_BETTER, RULES);
        assert!((judged.difference.value.unwrap_or(0.0) - 100.0).abs() < 1e-9);
        assert!((judged.ratio.value.unwrap_or(0.0) - 2.0).abs() < 0.01);
        assert!(judged.ratio.low < Some(2.0) && judged.ratio.high > Some(2.0));
        let zero = judge(&some(&[0.0; 4]), &some(&b), LESS_IS_BETTER, RULES);
        assert_eq!(zero.ratio.value, None, "nothing is a multiple of nothing");
    }

    #[test]
    fn rounds_without_a_sample_are_left_out_in_pairs() {
        let a = [Some(1.0), None, Some(1.0), Some(1.0)];
        let b = [Some(2.0), Some(9.0), Some(2.0), Some(2.0)];
        let judged = judge(&a, &b, LESS_IS_BETTER, RULES);
        assert_eq!(judged.difference.value, Some(1.0));
    }

    #[test]
    fn the_index_is_the_geometric_mean_of_the_steps() {
        // One step twice as fast, one half as fast: the index is 1.
        let up = vec![Some(2.0_f64.ln()); 6];
        let down = vec![Some(0.5_f64.ln()); 6];
        let (ratio, verdict) = index(&[up.clone(), down], true, RULES);
        assert!((ratio.value.unwrap_or(0.0) - 1.0).abs() < 1e-12);
        assert_eq!(verdict, ComparisonVerdict::Equal);
        let (ratio, verdict) = index(&[up.clone(), up], true, RULES);
        assert!((ratio.value.unwrap_or(0.0) - 2.0).abs() < 1e-12);
        assert_eq!(verdict, ComparisonVerdict::BBetter);
        assert_eq!(index(&[], true, RULES).1, ComparisonVerdict::NotJudged);
    }
}

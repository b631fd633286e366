//! Steady state, as SNIA's PTS and as fio define it. Pure arithmetic over series.

use crate::config::{Rounds, SteadySeconds};
use crate::record::{Second, Steady, SteadyCell};

/// A straight line through equally spaced samples.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Line {
    /// Rise from one sample to the next.
    slope: f64,
    /// At the first sample.
    first: f64,
    /// At the last sample.
    last: f64,
}

/// The least-squares line through samples at 0, 1, 2 …; at least two of them.
#[allow(clippy::cast_precision_loss)]
fn fit(values: &[f64]) -> Line {
    let count = values.len() as f64;
    let middle = (count - 1.0) / 2.0;
    let mean = values.iter().sum::<f64>() / count;
    let (mut above, mut below) = (0.0, 0.0);
    for (index, value) in values.iter().enumerate() {
        let x = index as f64 - middle;
        above += x * (value - mean);
        below += x * x;
    }
    let slope = above / below;
    Line {
        slope,
        first: mean - slope * middle,
        last: mean + slope * middle,
    }
}

/// The last `count` samples, where there are as many and each was measured.
fn window(values: &[Option<f64>], count: usize) -> Option<Vec<f64>> {
    let first = values.len().checked_sub(count)?;
    values[first..].iter().copied().collect()
}

/// One tracked series under the PTS definition (SNIA SSS PTS 2.0.2): over the window max − min is at most
/// `range_pct` of the mean, and the fitted line rises or falls by at most `slope_pct` of it.
#[allow(clippy::cast_precision_loss)]
fn pts_cell(step: &str, values: &[Option<f64>], rounds: &Rounds) -> SteadyCell {
    let mut cell = SteadyCell::without_window(step, values.to_vec());
    let Some(last) = window(values, rounds.window_count) else {
        return cell;
    };
    let mean = last.iter().sum::<f64>() / last.len() as f64;
    let line = fit(&last);
    let most = last.iter().copied().fold(f64::MIN, f64::max);
    let least = last.iter().copied().fold(f64::MAX, f64::min);
    let range_pct = (most - least) * 100.0 / mean;
    let slope_pct = (line.last - line.first) * 100.0 / mean;
    cell.window_index = Some(values.len() - rounds.window_count);
    cell.mean = Some(mean);
    cell.line_first = Some(line.first);
    cell.line_last = Some(line.last);
    // Without a mean there is no percentage of it, and nothing is steady.
    if mean > 0.0 {
        cell.range_pct = Some(range_pct);
        cell.slope_pct = Some(slope_pct);
        cell.is_steady =
            within(range_pct, rounds.range_pct) && within(slope_pct.abs(), rounds.slope_pct);
    }
    cell
}

/// At most, but for what binary fractions lose.
fn within(value: f64, limit: f64) -> bool {
    value <= limit * (1.0 + 1e-9)
}

/// Judges the rounds so far: `cells` hold, for each tracked step, its figure in every round.
#[must_use]
pub fn pts(cells: &[(String, Vec<Option<f64>>)], rounds: &Rounds) -> Steady {
    let cells: Vec<SteadyCell> = cells
        .iter()
        .map(|(step, values)| pts_cell(step, values, rounds))
        .collect();
    Steady {
        definition: "snia-pts".to_owned(),
        of: rounds.of.name().to_owned(),
        unit: rounds.of.unit().to_owned(),
        is_attained: !cells.is_empty() && cells.iter().all(|cell| cell.is_steady),
        samples_count: cells
            .iter()
            .map(|cell| cell.values.len())
            .max()
            .unwrap_or(0),
        window_count: rounds.window_count,
        limit: format!(
            "over {} rounds: max - min at most {} % of the mean, rise of the fitted line at most {} %; at most {} rounds",
            rounds.window_count, rounds.range_pct, rounds.slope_pct, rounds.most_count
        ),
        cells,
    }
}

/// fio's `steadystate` over samples, one a second: whether the last window meets it. Without `_slope` no
/// sample may be as far as the limit from the mean; with it the slope per second must be below it.
#[must_use]
#[allow(clippy::cast_precision_loss)]
pub fn fio_met(samples: &[f64], steady: &SteadySeconds) -> bool {
    let Some(first) = samples.len().checked_sub(steady.window_count) else {
        return false;
    };
    let last = &samples[first..];
    let mean = last.iter().sum::<f64>() / last.len() as f64;
    let criterion = if steady.limit.is_slope {
        fit(last).slope.abs()
    } else {
        last.iter()
            .map(|value| (value - mean).abs())
            .fold(0.0, f64::max)
    };
    let criterion = if steady.limit.is_pct {
        criterion * 100.0 / mean
    } else {
        criterion
    };
    // A mean of nothing gives no number, which is below nothing.
    criterion < steady.limit.value
}

/// The sample of one second that `steady` looks at.
#[must_use]
pub fn sample(second: &Second, steady: &SteadySeconds) -> f64 {
    let of = |d: &crate::record::SecondDirection| match steady.limit.of {
        crate::config::StepFigure::BytesPerS => d.bytes_per_s,
        _ => d.iops,
    };
    second
        .on_media()
        .map(of)
        .fold(0.0, |sum, value| sum + value)
}

/// Judges a step by fio's definition from its whole seconds, as they are in its record: steady where the
/// window was met at the end, or had been met before.
#[must_use]
#[allow(clippy::cast_precision_loss)]
pub fn fio(step: &str, series: &[Second], steady: &SteadySeconds) -> Steady {
    // A second cut short by the end is no sample of a whole one.
    let whole = series.iter().filter(|second| second.length_s > 0.99);
    let samples: Vec<f64> = whole
        .skip(steady.skip_count)
        .map(|second| sample(second, steady))
        .collect();
    let met_at =
        (steady.window_count..=samples.len()).find(|end| fio_met(&samples[..*end], steady));
    let end = met_at.unwrap_or(samples.len());
    let first = end.checked_sub(steady.window_count);
    let last = first.map(|first| &samples[first..end]);
    let mean = last.map(|last| last.iter().sum::<f64>() / last.len() as f64);
    let line = last.map(fit);
    let share = |part: f64| {
        mean.filter(|mean| *mean > 0.0)
            .map(|mean| part * 100.0 / mean)
    };
    let range = last.map(|last| {
        let most = last.iter().copied().fold(f64::MIN, f64::max);
        most - last.iter().copied().fold(f64::MAX, f64::min)
    });
    let limit = &steady.limit;
    Steady {
        definition: "fio".to_owned(),
        of: limit.of.name().to_owned(),
        unit: limit.of.unit().to_owned(),
        is_attained: met_at.is_some(),
        samples_count: samples.len(),
        window_count: steady.window_count,
        limit: format!(
            "over {} s: {} below {}{}",
            steady.window_count,
            if limit.is_slope {
                "slope per second"
            } else {
                "deviation from the mean"
            },
            limit.value,
            if limit.is_pct { " % of the mean" } else { "" }
        ),
        cells: vec![SteadyCell {
            step: step.to_owned(),
            values: samples.iter().copied().map(Some).collect(),
            window_index: first,
            mean,
            range_pct: range.and_then(share),
            slope_pct: line.and_then(|line| share(line.last - line.first)),
            line_first: line.map(|line| line.first),
            line_last: line.map(|line| line.last),
            is_steady: met_at.is_some(),
        }],
    }
}

#[cfg(test)]
#[path = "steady_tests.rs"]
mod tests;

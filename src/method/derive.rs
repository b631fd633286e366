//! Figures of several steps: indices, bests, spans of curves, constancy, fairness. Computed from records.

use crate::config::{Derive, Deriving, Grouping, StepFigure};
use crate::record::{Derived, DerivedValue, Direction, LeftOut, Origin, Outcome, Second, Step};

/// One figure of a step over all its directions; absent where nothing was measured.
#[must_use]
#[allow(clippy::cast_precision_loss)]
pub fn figure_of(step: &Step, figure: StepFigure) -> Option<f64> {
    let directions: Vec<&Direction> = step
        .on_media()
        .filter(|direction| direction.ios_count > 0)
        .collect();
    let busiest = directions
        .iter()
        .max_by_key(|direction| direction.ios_count)?;
    let sum = |of: fn(&Direction) -> f64| directions.iter().map(|d| of(d)).sum::<f64>();
    Some(match figure {
        StepFigure::Iops => sum(|d| d.iops),
        StepFigure::BytesPerS => sum(|d| d.bytes_per_s),
        StepFigure::MeanNs => {
            let ios = sum(|d| d.ios_count as f64);
            sum(|d| d.latency_ns.mean * d.ios_count as f64) / ios
        }
        StepFigure::P99Ns => busiest.latency_ns.p99 as f64,
        StepFigure::MaxNs => {
            let all = directions.iter().map(|d| d.latency_ns.max);
            all.max().unwrap_or(0) as f64
        }
        StepFigure::ReadMeanNs => step.read.as_ref()?.latency_ns.mean,
        StepFigure::ReadP99Ns => step.read.as_ref()?.latency_ns.p99 as f64,
    })
}

/// Everything a job asks for, from the steps that were measured. With rounds, pass those of the window.
#[must_use]
pub fn derive(wanted: &[Derive], steps: &[&Step], left_out: &[LeftOut]) -> Vec<Derived> {
    let steps: Vec<&Step> = steps
        .iter()
        .copied()
        .filter(|step| !step.origin.is_precondition)
        .collect();
    let mut all = Vec::new();
    for derive in wanted {
        let names = &derive.from;
        let is_of = |step: &&&Step| names.is_empty() || names.contains(&step.origin.step);
        let mut members: Vec<&Step> = steps.iter().filter(is_of).copied().collect();
        // In the order asked for, which a ratio needs.
        members.sort_by_key(|step| names.iter().position(|name| *name == step.origin.step));
        for (group, members) in groups(&members, derive.by) {
            let mut derived = of_group(derive, &members);
            derived.group = group;
            derived.why_not = doubts(derive, &members, left_out);
            derived.is_comparable = derived.why_not.is_empty();
            all.push(derived);
        }
    }
    all
}

/// A group of steps, with its name where there are several.
type Group<'a> = (Option<String>, Vec<&'a Step>);

fn groups<'a>(steps: &[&'a Step], by: Grouping) -> Vec<Group<'a>> {
    if by == Grouping::All {
        return if steps.is_empty() {
            Vec::new()
        } else {
            vec![(None, steps.to_vec())]
        };
    }
    let mut groups: Vec<Group<'a>> = Vec::new();
    for step in steps {
        let name = match by {
            Grouping::Point => point_name(&step.origin),
            _ => step.origin.step.clone(),
        };
        match groups
            .iter_mut()
            .find(|(known, _)| known.as_ref() == Some(&name))
        {
            Some((_, members)) => members.push(step),
            None => groups.push((Some(name), vec![step])),
        }
    }
    groups
}

/// A point's name without its repetitions: `read bs=4k`; a value that the step's own name takes (`R{rwmixread}`)
/// stands there.
fn point_name(origin: &Origin) -> String {
    let mut name = origin.step.clone();
    for at in &origin.point {
        let place = format!("{{{}}}", at.key);
        if name.contains(&place) {
            name = name.replace(&place, &at.value);
        } else {
            name += &format!(" {}={}", at.key, at.value);
        }
    }
    name
}

/// Why a figure compares with nothing else.
fn doubts(derive: &Derive, members: &[&Step], left_out: &[LeftOut]) -> Vec<String> {
    let mut doubts = Vec::new();
    for step in members {
        if !step.origin.dropped.is_empty() {
            doubts.push(format!("{}: shares of its mix were dropped", step.name));
        }
        if step.status != Outcome::Finished {
            doubts.push(format!("{}: it did not finish", step.name));
        }
    }
    let is_of = |left: &&LeftOut| {
        let of_step =
            |name: &String| left.step == *name || left.step.starts_with(&format!("{name} "));
        derive.from.is_empty() || derive.from.iter().any(of_step)
    };
    // A curve or a single stream's share is what it is without the points a device cannot do.
    if matches!(
        derive.deriving,
        Deriving::Geomean | Deriving::Mean | Deriving::Ratio
    ) && derive.by == Grouping::All
    {
        let left = left_out.iter().filter(is_of);
        doubts.extend(left.map(|left| format!("{}: left out", left.step)));
    }
    doubts
}

fn of_group(derive: &Derive, members: &[&Step]) -> Derived {
    let figure = |step: &&Step| figure_of(step, derive.of);
    let figures: Vec<Option<f64>> = members.iter().map(figure).collect();
    let unit = match derive.deriving {
        Deriving::Slices => "ns",
        Deriving::Fairness => "bytes_per_s",
        Deriving::Ratio => "ratio",
        _ => derive.of.unit(),
    };
    let values = match derive.deriving {
        Deriving::Span => span(&figures),
        Deriving::Mean => vec![value("mean", mean(&figures))],
        Deriving::Best => vec![best(members, derive.of)],
        Deriving::Peak => vec![peak(members, derive.of)],
        Deriving::Geomean => vec![value("geomean", geomean(members, derive.of))],
        Deriving::Ratio => vec![value("ratio", ratio(derive, members))],
        Deriving::Slices => slices(members),
        Deriving::Fairness => fairness(members),
    };
    Derived {
        name: derive.name.clone(),
        group: None,
        kind: derive.deriving.name().to_owned(),
        of: derive.of.name().to_owned(),
        unit: unit.to_owned(),
        values,
        is_comparable: true,
        why_not: Vec::new(),
        steps: members.iter().map(|step| step.name.clone()).collect(),
    }
}

fn value(name: &str, value: Option<f64>) -> DerivedValue {
    DerivedValue {
        name: name.to_owned(),
        value,
        unit: None,
        at: None,
    }
}

fn of_unit(name: &str, number: Option<f64>, unit: &str) -> DerivedValue {
    DerivedValue {
        unit: Some(unit.to_owned()),
        ..value(name, number)
    }
}

/// The mean; absent where a figure is, or there is none.
#[allow(clippy::cast_precision_loss)]
fn mean(figures: &[Option<f64>]) -> Option<f64> {
    let all: Option<Vec<f64>> = figures.iter().copied().collect();
    let all = all.filter(|all| !all.is_empty())?;
    Some(all.iter().sum::<f64>() / all.len() as f64)
}

fn span(figures: &[Option<f64>]) -> Vec<DerivedValue> {
    let known = || figures.iter().copied().flatten();
    vec![
        value("min", known().reduce(f64::min)),
        value("mean", mean(&known().map(Some).collect::<Vec<_>>())),
        value("max", known().reduce(f64::max)),
    ]
}

const fn lower_is_better(figure: StepFigure) -> bool {
    !matches!(figure, StepFigure::Iops | StepFigure::BytesPerS)
}

fn best(members: &[&Step], figure: StepFigure) -> DerivedValue {
    extreme("best", members, figure, lower_is_better(figure))
}

fn peak(members: &[&Step], figure: StepFigure) -> DerivedValue {
    extreme("peak", members, figure, false)
}

/// The largest or smallest figure, and the first step that reached it.
fn extreme(name: &str, members: &[&Step], figure: StepFigure, smallest: bool) -> DerivedValue {
    let mut found: Option<(f64, &str)> = None;
    for step in members {
        if let Some(figure) = figure_of(step, figure) {
            let beats = |known: f64| {
                if smallest {
                    figure < known
                } else {
                    figure > known
                }
            };
            if found.is_none_or(|(known, _)| beats(known)) {
                found = Some((figure, &step.name));
            }
        }
    }
    DerivedValue {
        at: found.map(|(_, step)| step.to_owned()),
        ..value(name, found.map(|(figure, _)| figure))
    }
}

/// Repetitions of a point are averaged; then the points count alike.
#[allow(clippy::cast_precision_loss)]
fn geomean(members: &[&Step], figure: StepFigure) -> Option<f64> {
    let points = groups(members, Grouping::Point);
    let mut sum = 0.0;
    for (_, passes) in &points {
        let figures: Vec<_> = passes.iter().map(|step| figure_of(step, figure)).collect();
        sum += mean(&figures).filter(|mean| *mean > 0.0)?.ln();
    }
    (!points.is_empty()).then(|| (sum / points.len() as f64).exp())
}

fn ratio(derive: &Derive, members: &[&Step]) -> Option<f64> {
    let of = |name: &String| {
        let figures: Vec<_> = members
            .iter()
            .filter(|step| step.origin.step == *name)
            .map(|step| figure_of(step, derive.of))
            .collect();
        mean(&figures)
    };
    let [above, below] = derive.from.as_slice() else {
        return None;
    };
    Some(of(above)? / of(below).filter(|below| *below > 0.0)?)
}

/// Constancy of response over one-second slices: the mean of their means, the mean of their maxima, and
/// the standard deviation of their means.
#[allow(clippy::cast_precision_loss)]
fn slices(members: &[&Step]) -> Vec<DerivedValue> {
    let all: Vec<&Second> = members.iter().flat_map(|step| &step.series).collect();
    // A slice that the end cut short is left out where there are whole ones.
    let whole: Vec<&Second> = all.iter().copied().filter(|s| s.length_s > 0.99).collect();
    let used = if whole.is_empty() { all } else { whole };
    let (mut means, mut maxima) = (Vec::new(), Vec::new());
    for second in used {
        let parts: Vec<_> = second.on_media().collect();
        let ios: u64 = parts.iter().map(|part| part.ios_count).sum();
        if ios > 0 {
            let sum: f64 = parts
                .iter()
                .map(|part| part.mean_ns * part.ios_count as f64)
                .sum();
            means.push(Some(sum / ios as f64));
            maxima.push(parts.iter().map(|part| part.max_ns as f64).reduce(f64::max));
        }
    }
    let mean_of_means = mean(&means);
    let spread = mean_of_means.filter(|_| means.len() > 1).map(|mean| {
        let squares: f64 = means
            .iter()
            .flatten()
            .map(|m| (m - mean) * (m - mean))
            .sum();
        (squares / (means.len() - 1) as f64).sqrt()
    });
    vec![
        value("mean of slice means", mean_of_means),
        value("mean of slice maxima", mean(&maxima)),
        value("standard deviation of slice means", spread),
        of_unit("slices", Some(means.len() as f64), "count"),
    ]
}

/// The sum, each stream, the smallest stream as a share of the largest, and Jain's index: 1 where all get
/// the same, 1/n where one gets everything.
#[allow(clippy::cast_precision_loss)]
fn fairness(members: &[&Step]) -> Vec<DerivedValue> {
    let Some(count) = members.iter().map(|step| step.streams.len()).min() else {
        return Vec::new();
    };
    // Repetitions are averaged stream by stream.
    let stream = |index: usize| {
        let rates = members
            .iter()
            .map(|step| Some(step.streams[index].bytes_per_s));
        mean(&rates.collect::<Vec<_>>()).unwrap_or(0.0)
    };
    let rates: Vec<f64> = (0..count).map(stream).collect();
    let sum: f64 = rates.iter().sum();
    let squares: f64 = rates.iter().map(|rate| rate * rate).sum();
    let most = rates.iter().copied().fold(0.0, f64::max);
    let least = rates.iter().copied().fold(f64::MAX, f64::min);
    let mut values = vec![value("sum", (count > 0).then_some(sum))];
    for (index, rate) in rates.iter().enumerate() {
        values.push(value(&format!("stream {index}"), Some(*rate)));
    }
    values.push(of_unit(
        "slowest / fastest",
        (most > 0.0).then(|| least / most),
        "ratio",
    ));
    let jain = (squares > 0.0).then(|| sum * sum / (count as f64 * squares));
    values.push(of_unit("Jain's index", jain, "ratio"));
    values
}

#[cfg(test)]
#[path = "derive_tests.rs"]
mod tests;

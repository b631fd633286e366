//! Sweeps found in the steps of records: steps that differ in one trait only make a curve over it.

use super::super::printable;
use super::chart::{Axis, Chart, Level, Quantity, SERIES_MOST, Series};
use super::table::has_rate;
use super::traits::{self, Found, Trait};
use crate::record::{Ceilings, Direction, DirectionCeilings, Latency, Record, Step};
use std::collections::BTreeMap;

/// The traits that curves are drawn over, and how.
const AXES: [(Trait, &str, Quantity, Option<f64>); 8] = [
    (
        Trait::Depth,
        "depth of each stream",
        Quantity::Count,
        Some(2.0),
    ),
    (Trait::BlockSize, "block size", Quantity::Size, Some(2.0)),
    (Trait::ReadShare, "share of reads", Quantity::Percent, None),
    (
        Trait::Position,
        "place on the device",
        Quantity::Place,
        None,
    ),
    (
        Trait::Region,
        "size of the region",
        Quantity::Place,
        Some(2.0),
    ),
    (Trait::Rate, "rate asked for", Quantity::Iops, None),
    (Trait::Reactors, "reactors", Quantity::Count, None),
    (Trait::Devices, "devices at once", Quantity::Count, None),
];

/// One measured step.
struct Point<'a> {
    run: usize,
    step: &'a Step,
    traits: BTreeMap<Trait, Found>,
}

/// Steps that differ in nothing but the trait of the axis.
struct Group<'a> {
    traits: BTreeMap<Trait, Found>,
    run: usize,
    /// The step of the job that swept; empty for steps that were written one by one.
    swept: &'a str,
    points: Vec<(f64, &'a Step)>,
}

/// Every chart over every trait that was swept, as HTML.
pub fn charts(records: &[Record]) -> Vec<String> {
    let points: Vec<Point<'_>> = records
        .iter()
        .enumerate()
        .flat_map(|(run, record)| settled(record).map(move |step| (run, step)))
        .map(|(run, step)| Point {
            run,
            step,
            traits: traits::of(step),
        })
        .collect();
    let mut out = Vec::new();
    for (axis, name, quantity, log_base) in AXES {
        let groups = groups(&points, axis);
        if groups.is_empty() {
            continue;
        }
        let x = Axis {
            name: name.to_owned(),
            quantity,
            log_base: log_base.filter(|_| starts_above_zero(&groups)),
        };
        let is_many = records.len() > 1;
        if lines_count(&groups) <= SERIES_MOST {
            out.extend(charts_over(&x, &groups, is_many, ""));
            continue;
        }
        // Too many lines for one chart: one for each sweep.
        let sweeps = by_sweep(groups);
        let is_only = sweeps.len() == 1;
        for (swept, own) in sweeps {
            let swept = if is_only { "" } else { swept };
            out.extend(charts_over(&x, &own, is_many, swept));
        }
    }
    out
}

/// What curves are made of: of rounds those of the last window, and nothing that only prepared the device.
fn settled(record: &Record) -> impl Iterator<Item = &Step> {
    let first = record.steady.as_ref().map_or(0, |steady| {
        steady.samples_count.saturating_sub(steady.window_count)
    });
    record.steps.iter().filter(move |step| {
        let round = step.origin.round_index.map(|round| round as usize);
        !step.origin.is_precondition && round.is_none_or(|round| round >= first)
    })
}

/// Lines of the chart that draws most of them: one for each direction and figure of a group.
fn lines_count(groups: &[Group<'_>]) -> usize {
    let directions = |group: &Group<'_>| {
        let has = |of: &OfStep| group.points.iter().any(|(_, step)| of(step).is_some());
        DIRECTIONS.iter().filter(|(_, of)| has(of)).count()
    };
    groups.iter().map(|group| 2 * directions(group)).sum()
}

/// Groups of each sweep together, in the order of the job.
fn by_sweep(groups: Vec<Group<'_>>) -> Vec<(&str, Vec<Group<'_>>)> {
    let mut sweeps: Vec<(&str, Vec<Group<'_>>)> = Vec::new();
    for group in groups {
        match sweeps.iter_mut().find(|(swept, _)| *swept == group.swept) {
            Some((_, own)) => own.push(group),
            None => sweeps.push((group.swept, vec![group])),
        }
    }
    sweeps
}

fn starts_above_zero(groups: &[Group<'_>]) -> bool {
    groups
        .iter()
        .flat_map(|group| &group.points)
        .all(|(x, _)| *x > 0.0)
}

/// Groups of at least two different values on this axis.
fn groups<'a>(points: &[Point<'a>], axis: Trait) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'a>> = Vec::new();
    for point in points {
        let Some(x) = point.traits.get(&axis).and_then(|found| found.number) else {
            continue;
        };
        let mut rest = point.traits.clone();
        rest.remove(&axis);
        if axis == Trait::Position {
            // Regions at the end of a device may be cut short by less than a block size.
            rest.remove(&Trait::Region);
        }
        // Two sweeps make two curves, whatever else they have in common.
        let swept = match point.step.origin.point.is_empty() {
            true => "",
            false => point.step.origin.step.as_str(),
        };
        if axis == Trait::Devices {
            // Each device has streams and a size of its own.
            for own in [
                Trait::Device,
                Trait::Streams,
                Trait::Position,
                Trait::Region,
            ] {
                rest.remove(&own);
            }
        }
        let known = groups
            .iter_mut()
            .find(|group| group.run == point.run && group.swept == swept && group.traits == rest);
        match known {
            Some(group) => group.points.push((x, point.step)),
            None => groups.push(Group {
                traits: rest,
                run: point.run,
                swept,
                points: vec![(x, point.step)],
            }),
        }
    }
    for group in &mut groups {
        group.points.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    groups.retain(|group| {
        let first = group.points.first().map(|point| point.0);
        let last = group.points.last().map(|point| point.0);
        first < last
    });
    groups
}

/// What groups differ in, in words: the legend need not repeat what they share.
fn names(groups: &[Group<'_>], several_runs: bool) -> Vec<String> {
    let is_shared = |which: &Trait, found: &Found| {
        groups
            .iter()
            .all(|group| group.traits.get(which) == Some(found))
    };
    let name = |group: &Group<'_>| {
        let mut words: Vec<String> = group
            .traits
            .iter()
            .filter(|(which, found)| !is_shared(which, found))
            .map(|(_, found)| found.text.clone())
            .collect();
        let is_shared = groups.iter().all(|other| other.swept == group.swept);
        if !is_shared && !group.swept.is_empty() {
            words.insert(0, group.swept.to_owned());
        }
        if several_runs {
            words.insert(0, format!("record {}", group.run + 1));
        }
        words.join(", ")
    };
    groups.iter().map(name).collect()
}

type OfStep = fn(&Step) -> Option<&Direction>;

const DIRECTIONS: [(&str, OfStep); 6] = [
    ("read", |step| step.read.as_ref()),
    ("write", |step| step.write.as_ref()),
    ("trim", |step| step.trim.as_ref()),
    ("writezeroes", |step| step.writezeroes.as_ref()),
    ("flush", |step| step.flush.as_ref()),
    ("probe", |step| step.probe.as_ref()),
];

type Figure = fn(&Direction) -> f64;

/// The same with a name of its own.
type Titled = (String, Quantity, Option<f64>, Vec<(&'static str, Figure)>);

/// A chart: its name, unit and base of logarithms, and the figures it draws by name.
type Drawn = (
    &'static str,
    Quantity,
    Option<f64>,
    Vec<(&'static str, Figure)>,
);

/// A chart of several figures, or one for each where their lines would be too many.
fn apart(drawn: Drawn, groups: &[Group<'_>]) -> Vec<Titled> {
    let (title, quantity, log_base, figures) = drawn;
    let is_many = figures.len() > 1 && lines_count(groups) > SERIES_MOST;
    if !is_many {
        return vec![(title.to_owned(), quantity, log_base, figures)];
    }
    let one = |(label, figure)| {
        let title = format!("{title} ({label})");
        (title, quantity, log_base, vec![("", figure)])
    };
    figures.into_iter().map(one).collect()
}

/// Percentiles from the arrival that a rate asked for; of what had no rate there is none.
#[allow(clippy::cast_precision_loss)]
fn scheduled() -> Drawn {
    const fn of(direction: &Direction) -> Option<&Latency> {
        direction.scheduled_latency_ns.as_ref()
    }
    (
        "Scheduled latency",
        Quantity::Time,
        Some(10.0),
        vec![
            ("p50", |d| of(d).map_or(f64::NAN, |l| l.p50 as f64)),
            ("p99", |d| of(d).map_or(f64::NAN, |l| l.p99 as f64)),
        ],
    )
}

#[allow(clippy::cast_precision_loss)]
fn charts_over(x: &Axis, groups: &[Group<'_>], several_runs: bool, of: &str) -> Vec<String> {
    let mut figures: Vec<Drawn> = vec![
        ("IOPS", Quantity::Iops, None, vec![("", |d| d.iops)]),
        (
            "Bandwidth",
            Quantity::Rate,
            None,
            vec![("", |d| d.bytes_per_s)],
        ),
        (
            "Service latency",
            Quantity::Time,
            Some(10.0),
            vec![
                ("p50", |d| d.latency_ns.p50 as f64),
                ("p99", |d| d.latency_ns.p99 as f64),
            ],
        ),
    ];
    let mut steps = groups.iter().flat_map(|group| &group.points);
    if steps.any(|(_, step)| has_rate(step)) {
        // The promise of a rate is about the wait as well: that comes first.
        figures.insert(0, scheduled());
    } else {
        figures[2].0 = "Latency";
    }
    let names = names(groups, several_runs);
    let mut out = Vec::new();
    for (title, quantity, log_base, figures) in
        figures.into_iter().flat_map(|drawn| apart(drawn, groups))
    {
        let mut series = Vec::new();
        for (group, name) in groups.iter().zip(&names) {
            for (direction, of) in DIRECTIONS {
                for (label, figure) in &figures {
                    let points: Vec<(f64, f64)> = group
                        .points
                        .iter()
                        .filter_map(|(x, step)| of(step).map(|found| (*x, figure(found))))
                        .collect();
                    let points = averaged(&points);
                    let words = [direction, label, name];
                    let words: Vec<&str> =
                        words.into_iter().filter(|word| !word.is_empty()).collect();
                    series.push(Series {
                        name: words.join(" "),
                        points,
                        marked: true,
                    });
                }
            }
        }
        let chart = Chart {
            title: match of {
                "" => format!("{title} against {}", x.name),
                of => printable(&format!("{of}: {title} against {}", x.name)),
            },
            x: x.clone(),
            y: Axis {
                name: title.clone(),
                quantity,
                log_base,
            },
            series,
            levels: levels(quantity, groups),
            window: None,
        };
        out.extend(chart.render());
    }
    out
}

/// One point for each `x`: repetitions and rounds are averaged.
fn averaged(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let alike = |a: &(f64, f64), b: &(f64, f64)| a.0.total_cmp(&b.0).is_eq();
    #[allow(clippy::cast_precision_loss)]
    let mean = |group: &[(f64, f64)]| {
        let sum: f64 = group.iter().map(|(_, y)| y).sum();
        (group[0].0, sum / group.len() as f64)
    };
    points.chunk_by(alike).map(mean).collect()
}

/// The links' ceilings where all steps have the same one: bandwidth only, since a ceiling in IOPS depends on the
/// block size.
fn levels(quantity: Quantity, groups: &[Group<'_>]) -> Vec<Level> {
    if quantity != Quantity::Rate {
        return Vec::new();
    }
    let steps = || {
        groups
            .iter()
            .flat_map(|group| &group.points)
            .map(|point| point.1)
    };
    let mut out = Vec::new();
    for (name, of) in CEILINGS {
        let mut found = steps().filter_map(|step| of(&step.ceilings)?.link.as_ref()?.rate);
        let Some(first) = found.next() else { continue };
        if found.all(|other| other == first) {
            out.push(Level {
                y: first.high_bytes_per_s,
                name: format!("the links let through ({name})"),
            });
        }
    }
    out
}

type OfCeilings = fn(&Ceilings) -> Option<&DirectionCeilings>;

const CEILINGS: [(&str, OfCeilings); 2] = [
    ("read", |ceilings| ceilings.read.as_ref()),
    ("write", |ceilings| ceilings.write.as_ref()),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetitions_are_one_point() {
        let points = [(1.0, 10.0), (1.0, 20.0), (2.0, 5.0)];
        assert_eq!(averaged(&points), [(1.0, 15.0), (2.0, 5.0)]);
        assert!(averaged(&[]).is_empty());
    }
}

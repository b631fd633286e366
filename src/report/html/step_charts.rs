//! The charts of one step: percentiles, and every second of the window.

use super::chart::{Axis, Bar, Chart, Group, Quantity, Series, bars};
use super::table::has_rate;
use crate::record::{Direction, Latency, Second, SecondDirection, Step, StreamUse};

/// Points of a percentile curve that a screen can tell apart.
const POINTS_MOST: usize = 120;

/// Streams that have colours of their own.
const STREAMS_MOST: usize = 8;

/// All of them, as HTML.
pub fn charts(step: &Step) -> Vec<String> {
    let lines = [percentiles(step), rates(step), latencies(step)];
    let drawn = lines.into_iter().filter_map(|chart| chart.render());
    drawn.chain(streams(step)).collect()
}

/// Streams beside each other, where they are few enough to be told apart.
fn streams(step: &Step) -> Option<String> {
    let count = step.streams.len();
    if !(2..=STREAMS_MOST).contains(&count) {
        return None;
    }
    let sides: Vec<String> = step
        .streams
        .iter()
        .map(|stream| format!("stream {}", stream.index))
        .collect();
    let bars_of = |(side, stream): (usize, &StreamUse)| Bar {
        side,
        value: Some(stream.bytes_per_s),
        interval: None,
        rounds: Vec::new(),
    };
    let group = Group {
        name: String::new(),
        bars: step.streams.iter().enumerate().map(bars_of).collect(),
    };
    bars("Bandwidth of each stream", Quantity::Rate, &sides, &[group])
}

fn directions(step: &Step) -> [(&'static str, Option<&Direction>); 6] {
    [
        ("read", step.read.as_ref()),
        ("write", step.write.as_ref()),
        ("trim", step.trim.as_ref()),
        ("writezeroes", step.writezeroes.as_ref()),
        ("flush", step.flush.as_ref()),
        ("probe", step.probe.as_ref()),
    ]
}

fn percentiles(step: &Step) -> Chart {
    let mut series = Vec::new();
    for (name, direction) in directions(step) {
        let Some(direction) = direction else {
            continue;
        };
        let mut label = name.to_owned();
        if let Some(scheduled) = &direction.scheduled_latency_ns {
            series.push(Series {
                name: format!("{name} scheduled"),
                points: known_points(scheduled, direction.ios_count),
                marked: true,
            });
            label += " service";
        }
        series.push(Series {
            name: label,
            points: percentile_points(&direction.histogram, direction.latency_ns.max),
            marked: false,
        });
    }
    Chart {
        title: "Latency by percentile".to_owned(),
        x: Axis::log(
            "share of I/Os that were at most so slow",
            Quantity::Nines,
            10.0,
        ),
        y: Axis::log("latency", Quantity::Time, 10.0),
        series,
        levels: Vec::new(),
        window: None,
    }
}

/// The percentiles that a record keeps of a distribution, as far as so many I/Os have them, and its maximum where half
/// an I/O is left.
#[allow(clippy::cast_precision_loss)]
fn known_points(latency: &Latency, ios_count: u64) -> Vec<(f64, f64)> {
    let last = (ios_count as f64 / 0.5).max(1.0);
    let known = [
        (1.0, latency.min),
        (2.0, latency.p50),
        (10.0, latency.p90),
        (100.0, latency.p99),
        (1e3, latency.p99_9),
        (1e4, latency.p99_99),
    ];
    let inside = known.into_iter().filter(|(x, _)| *x < last);
    let points = inside.chain([(last, latency.max)]);
    points.map(|(x, ns)| (x, ns as f64)).collect()
}

/// `(1 / (1 - p), latency)` at the upper end of every bucket. The last bucket has p = 1, which is nowhere on
/// such an axis: it stands where half an I/O is left.
#[allow(clippy::cast_precision_loss)]
pub fn percentile_points(histogram: &[(u64, u64)], max_ns: u64) -> Vec<(f64, f64)> {
    let total: u64 = histogram.iter().map(|(_, count)| count).sum();
    if total == 0 {
        return Vec::new();
    }
    let mut below = 0;
    let mut points = Vec::new();
    for (upper_ns, count) in histogram {
        below += count;
        let left = ((total - below) as f64).max(0.5);
        points.push((total as f64 / left, (*upper_ns).min(max_ns) as f64));
    }
    let first = (1.0, points[0].1);
    points.insert(0, first);
    spread(points)
}

/// Points that stand evenly over the axis, the ends kept: thousands of buckets lie under one percent of it.
fn spread(points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    let (Some(first), Some(last)) = (points.first().copied(), points.last().copied()) else {
        return points;
    };
    let span = (last.0 / first.0).ln();
    #[allow(clippy::cast_precision_loss)]
    let gap = span / POINTS_MOST as f64;
    let mut kept = vec![first];
    for point in points.iter().skip(1) {
        let before = kept.last().copied().unwrap_or(first);
        if (point.0 / before.0).ln() >= gap {
            kept.push(*point);
        }
    }
    if kept.last() != Some(&last) {
        kept.push(last);
    }
    kept
}

type Figure = fn(&SecondDirection) -> f64;

type OfSecond = fn(&Second) -> Option<&SecondDirection>;

const OF_SECOND: [(&str, OfSecond); 6] = [
    ("read", |second| second.read.as_ref()),
    ("write", |second| second.write.as_ref()),
    ("trim", |second| second.trim.as_ref()),
    ("writezeroes", |second| second.writezeroes.as_ref()),
    ("flush", |second| second.flush.as_ref()),
    ("probe", |second| second.probe.as_ref()),
];

fn timeline(step: &Step, label: &str, of: OfSecond, figure: Figure) -> Series {
    let points = step
        .series
        .iter()
        .filter_map(|second| of(second).map(|found| (second.start_s, figure(found))))
        .collect();
    Series {
        name: label.to_owned(),
        points,
        marked: false,
    }
}

fn rates(step: &Step) -> Chart {
    Chart {
        title: "IOPS second by second".to_owned(),
        x: Axis::linear("seconds into the window", Quantity::Seconds),
        y: Axis::linear("IOPS", Quantity::Iops),
        series: OF_SECOND
            .iter()
            .map(|(name, of)| timeline(step, name, *of, |second| second.iops))
            .collect(),
        levels: Vec::new(),
        window: None,
    }
}

#[allow(clippy::cast_precision_loss)]
fn latencies(step: &Step) -> Chart {
    let figures: [(&str, Figure); 3] = [
        ("p50", |second| second.p50_ns as f64),
        ("p99", |second| second.p99_ns as f64),
        ("max", |second| second.max_ns as f64),
    ];
    let mut series = Vec::new();
    for (name, of) in OF_SECOND {
        for (label, figure) in figures {
            series.push(timeline(step, &format!("{name} {label}"), of, figure));
        }
    }
    let title = if has_rate(step) {
        "Service latency second by second"
    } else {
        "Latency second by second"
    };
    Chart {
        title: title.to_owned(),
        x: Axis::linear("seconds into the window", Quantity::Seconds),
        y: Axis::log("latency", Quantity::Time, 10.0),
        series,
        levels: Vec::new(),
        window: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::float_cmp)]
    fn percentile_points_stand_where_their_share_is() {
        let points = percentile_points(&[(100, 90), (200, 9), (300, 1)], 250);
        assert_eq!(points[0], (1.0, 100.0));
        assert!(points.contains(&(10.0, 100.0)), "90 % within 100 ns");
        assert!(points.contains(&(100.0, 200.0)), "99 % within 200 ns");
        assert_eq!(
            points.last(),
            Some(&(200.0, 250.0)),
            "never above the exact maximum"
        );
        assert!(percentile_points(&[], 0).is_empty());
    }

    #[test]
    #[allow(clippy::float_cmp)]
    fn percentiles_that_no_io_reaches_are_not_drawn() {
        let latency = Latency {
            min: 1,
            mean: 4.0,
            stddev: 1.0,
            p50: 2,
            p90: 3,
            p99: 4,
            p99_9: 5,
            p99_99: 6,
            max: 7,
            censored_count: 0,
            lower_bounds: Vec::new(),
        };
        let points = known_points(&latency, 100);
        assert_eq!(
            points,
            [
                (1.0, 1.0),
                (2.0, 2.0),
                (10.0, 3.0),
                (100.0, 4.0),
                (200.0, 7.0)
            ]
        );
    }

    #[test]
    fn many_buckets_become_few_points_and_the_ends_stay() {
        let histogram: Vec<(u64, u64)> = (1..5_000).map(|ns| (ns, 1)).collect();
        let points = percentile_points(&histogram, 4_999);
        assert!(points.len() <= POINTS_MOST + 2);
        assert!((points.last().expect("points").1 - 4_999.0).abs() < 1e-9);
    }
}

//! Derived figures of steps whose figures are known.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::record::{PointValue, Record, StreamUse};

fn model() -> Step {
    let text = include_str!("../../tests/fixtures/records/normal_read.json");
    serde_json::from_str::<Record>(text).unwrap().steps[0].clone()
}

/// A step whose reads came to so many IOPS.
fn step(name: &str, point: &[(&str, &str)], pass_index: u32, iops: f64) -> Step {
    let mut step = model();
    step.name = format!("{name} {point:?} #{pass_index}");
    step.origin = Origin {
        step: name.to_owned(),
        point: point
            .iter()
            .map(|(key, value)| PointValue {
                key: (*key).to_owned(),
                value: (*value).to_owned(),
            })
            .collect(),
        pass_index,
        ..Origin::default()
    };
    (step.write, step.trim) = (None, None);
    let read = step.read.as_mut().unwrap();
    (read.iops, read.bytes_per_s) = (iops, iops * 4096.0);
    step
}

fn wanted(deriving: Deriving, from: &[&str], by: Grouping) -> Vec<Derive> {
    vec![Derive {
        name: "figure".to_owned(),
        deriving,
        of: StepFigure::Iops,
        from: from.iter().map(|name| (*name).to_owned()).collect(),
        by,
    }]
}

fn derived(wanted: &[Derive], steps: &[Step], left_out: &[LeftOut]) -> Vec<Derived> {
    derive(wanted, &steps.iter().collect::<Vec<_>>(), left_out)
}

fn values(derived: &Derived) -> Vec<(&str, Option<f64>)> {
    derived
        .values
        .iter()
        .map(|v| (v.name.as_str(), v.value))
        .collect()
}

#[test]
fn an_index_averages_repetitions_and_then_weighs_points_alike() {
    let steps = [
        step("a", &[("iodepth", "1")], 0, 90.0),
        step("a", &[("iodepth", "1")], 1, 110.0),
        step("a", &[("iodepth", "4")], 0, 400.0),
        step("b", &[("iodepth", "1")], 0, 1600.0),
        step("other", &[], 0, 1.0),
    ];
    let index = derived(
        &wanted(Deriving::Geomean, &["a", "b"], Grouping::All),
        &steps,
        &[],
    );
    // The cube root of 100 × 400 × 1600.
    let value = index[0].values[0].value.unwrap();
    assert!((value - 400.0).abs() < 1e-9, "{value}");
    assert!(index[0].is_comparable);
    assert_eq!(index[0].steps.len(), 4);
}

#[test]
fn an_index_with_dropped_shares_or_missing_steps_is_not_comparable() {
    let mut steps = [step("a", &[], 0, 100.0), step("b", &[], 0, 100.0)];
    let wanted = wanted(Deriving::Geomean, &["a", "b"], Grouping::All);
    let left = |name: &str| {
        [LeftOut {
            step: name.to_owned(),
            why: "x".to_owned(),
        }]
    };
    assert!(derived(&wanted, &steps, &left("c"))[0].is_comparable);
    let short = derived(&wanted, &steps, &left("a iodepth=4"));
    assert_eq!(short[0].why_not, ["a iodepth=4: left out"]);
    steps[1].origin.dropped.push("512 B (10 %)".to_owned());
    let dropped = derived(&wanted, &steps, &[]);
    assert!(!dropped[0].is_comparable);
    assert!(dropped[0].why_not[0].contains("shares of its mix were dropped"));
    // A step that measured nothing leaves no index, not a smaller one.
    steps[0].read = None;
    assert_eq!(derived(&wanted, &steps, &[])[0].values[0].value, None);
}

#[test]
fn spans_peaks_and_bests() {
    let steps = [
        step("a", &[("iodepth", "1")], 0, 10.0),
        step("a", &[("iodepth", "2")], 0, 40.0),
        step("a", &[("iodepth", "4")], 0, 40.0),
        step("a", &[("iodepth", "8")], 0, 30.0),
    ];
    let span = derived(&wanted(Deriving::Span, &[], Grouping::All), &steps, &[]);
    assert_eq!(
        values(&span[0]),
        [
            ("min", Some(10.0)),
            ("mean", Some(30.0)),
            ("max", Some(40.0))
        ]
    );
    let peak = derived(&wanted(Deriving::Peak, &[], Grouping::Step), &steps, &[]);
    assert_eq!(peak[0].group.as_deref(), Some("a"));
    assert_eq!(peak[0].values[0].value, Some(40.0));
    assert!(
        peak[0].values[0].at.as_ref().unwrap().contains("\"2\""),
        "the first of equals"
    );
    let passes = [3.0, 5.0, 4.0].map(|iops| step("p", &[], iops as u32, iops));
    let best = derived(&wanted(Deriving::Best, &[], Grouping::Point), &passes, &[]);
    assert_eq!(best.len(), 1);
    assert_eq!(values(&best[0]), [("best", Some(5.0))]);
    let latency = vec![Derive {
        of: StepFigure::MeanNs,
        ..wanted(Deriving::Best, &[], Grouping::All).remove(0)
    }];
    let mut slow = passes.to_vec();
    slow[1].read.as_mut().unwrap().latency_ns.mean = 1.0;
    assert_eq!(
        derived(&latency, &slow, &[])[0].values[0].value,
        Some(1.0),
        "the lowest"
    );
}

#[test]
fn a_ratio_divides_in_the_order_asked_for() {
    let steps = [step("write", &[], 0, 50.0), step("read", &[], 0, 200.0)];
    let ratio = derived(
        &wanted(Deriving::Ratio, &["read", "write"], Grouping::All),
        &steps,
        &[],
    );
    assert_eq!(values(&ratio[0]), [("ratio", Some(4.0))]);
    assert_eq!(ratio[0].unit, "ratio");
}

#[test]
fn constancy_is_of_whole_slices() {
    let mut one = step("a", &[], 0, 1.0);
    let model = one
        .series
        .iter()
        .find(|second| second.read.is_some())
        .unwrap()
        .clone();
    one.series = [(100.0, 500), (200.0, 700), (300.0, 900), (9e9, 9)]
        .iter()
        .enumerate()
        .map(|(index, (mean_ns, max_ns))| {
            let mut second = model.clone();
            (second.write, second.trim) = (None, None);
            second.length_s = if index == 3 { 0.2 } else { 1.0 };
            let read = second.read.as_mut().unwrap();
            (read.mean_ns, read.max_ns) = (*mean_ns, *max_ns);
            second
        })
        .collect();
    let slices = derived(&wanted(Deriving::Slices, &[], Grouping::Point), &[one], &[]);
    assert_eq!(
        values(&slices[0]),
        [
            ("mean of slice means", Some(200.0)),
            ("mean of slice maxima", Some(700.0)),
            ("standard deviation of slice means", Some(100.0)),
            ("slices", Some(3.0)),
        ]
    );
}

#[test]
fn fairness_shows_every_stream_and_sums_up() {
    let mut one = step("a", &[], 0, 1.0);
    let model = one.streams[0].clone();
    one.streams = [300.0, 300.0, 300.0, 100.0]
        .iter()
        .map(|rate| StreamUse {
            bytes_per_s: *rate,
            ..model.clone()
        })
        .collect();
    let fairness = derived(
        &wanted(Deriving::Fairness, &[], Grouping::Point),
        &[one],
        &[],
    );
    let found = values(&fairness[0]);
    assert_eq!(found[0], ("sum", Some(1000.0)));
    assert_eq!(found[4], ("stream 3", Some(100.0)));
    assert!((found[5].1.unwrap() - 1.0 / 3.0).abs() < 1e-12);
    // 1000² / (4 × 280000)
    assert!((found[6].1.unwrap() - 1e6 / (4.0 * 280_000.0)).abs() < 1e-12);
}

#[test]
fn a_point_is_named_as_its_step_names_it() {
    let one = step(
        "R{rwmixread} {bs}",
        &[("rwmixread", "65"), ("bs", "64k")],
        0,
        1.0,
    );
    assert_eq!(point_name(&one.origin), "R65 64k");
    let other = step("read", &[("bs", "4k"), ("iodepth", "2")], 0, 1.0);
    assert_eq!(point_name(&other.origin), "read bs=4k iodepth=2");
}

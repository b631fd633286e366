//! Series whose verdict is known by hand: rounds and window as the definitions give.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::config::{SteadyLimit, StepFigure};
use proptest::prelude::*;

fn rounds() -> Rounds {
    Rounds {
        of: StepFigure::Iops,
        track: Vec::new(),
        window_count: 5,
        range_pct: 20.0,
        slope_pct: 10.0,
        most_count: 25,
    }
}

/// The round, from 1, at which a run that judges after every round would stop; `None`: not attained.
fn stops_at(series: &[&dyn Fn(usize) -> f64]) -> (Option<usize>, Steady) {
    let rounds = rounds();
    let mut last = None;
    for count in 1..=rounds.most_count {
        let cells: Vec<_> = series
            .iter()
            .enumerate()
            .map(|(cell, value)| {
                let values = (0..count).map(|round| Some(value(round))).collect();
                (format!("cell {cell}"), values)
            })
            .collect();
        let steady = pts(&cells, &rounds);
        if steady.is_attained {
            return (Some(count), steady);
        }
        last = Some(steady);
    }
    (None, last.unwrap())
}

#[test]
fn a_flat_series_is_steady_at_the_fifth_round() {
    let (round, steady) = stops_at(&[&|_| 1000.0]);
    assert_eq!(round, Some(5));
    let cell = &steady.cells[0];
    assert_eq!((cell.window_index, cell.mean), (Some(0), Some(1000.0)));
    assert_eq!((cell.range_pct, cell.slope_pct), (Some(0.0), Some(0.0)));
}

/// From 2000 down to 1000 in eight rounds, flat from round 8 on (index 7): the window 7..=11 holds no more
/// of the fall, but windows that hold a little of it may pass already.
#[test]
fn a_fresh_drive_that_settles_is_steady_once_the_fall_has_left_the_window() {
    let fall = |round: usize| 1000.0 + 1000.0 * (7 - round.min(7)) as f64 / 7.0;
    let (round, steady) = stops_at(&[&fall]);
    // By hand: window 5..=9 is 1286 1143 1000 1000 1000: range 26.3 %, no. Window 6..=10 is 1143 1000 1000
    // 1000 1000: mean 1028.6, range 13.9 %, line -28.57 a round, rise -11.1 %: no. Window 7..=11: flat.
    assert_eq!(round, Some(12));
    assert_eq!(steady.cells[0].window_index, Some(7));
    let before: Vec<Option<f64>> = (0..11).map(|round| Some(fall(round))).collect();
    let before = pts(&[("a".to_owned(), before)], &rounds());
    let cell = &before.cells[0];
    assert!(!before.is_attained);
    assert!(
        (cell.range_pct.unwrap() - 13.888_888).abs() < 1e-4,
        "{cell:?}"
    );
    assert!(
        (cell.slope_pct.unwrap() + 11.111_111).abs() < 1e-4,
        "{cell:?}"
    );
}

/// 3 % a round: the line rises by 12 % of about its middle over a window, the range stays below 20 %.
#[test]
fn a_slow_drift_is_held_by_the_slope_alone() {
    let (round, steady) = stops_at(&[&|round| 1000.0 * 1.03_f64.powi(round as i32)]);
    assert_eq!(round, None);
    assert_eq!(steady.samples_count, 25);
    let cell = &steady.cells[0];
    assert!(
        cell.range_pct.unwrap() < 20.0 && cell.slope_pct.unwrap() > 10.0,
        "{cell:?}"
    );
    // 2 % a round passes both.
    assert_eq!(
        stops_at(&[&|round| 1000.0 * 1.02_f64.powi(round as i32)]).0,
        Some(5)
    );
}

#[test]
fn a_sawtooth_is_held_by_the_range_alone() {
    let saw = |low: f64| move |round: usize| if round.is_multiple_of(2) { 1000.0 } else { low };
    let (round, steady) = stops_at(&[&saw(780.0)]);
    assert_eq!(round, None);
    let cell = &steady.cells[0];
    assert!(cell.slope_pct.unwrap().abs() < 1e-9 && cell.range_pct.unwrap() > 20.0);
    assert_eq!(stops_at(&[&saw(840.0)]).0, Some(5));
}

#[test]
fn limits_are_met_by_equality() {
    // 900 1000 1000 1000 1100: mean 1000, range exactly 20 %; slope 40 a round, rise 16 %.
    let values = [900.0, 1000.0, 1000.0, 1000.0, 1100.0].map(Some).to_vec();
    let cell = |limit: f64| {
        let rounds = Rounds {
            slope_pct: limit,
            ..rounds()
        };
        pts(&[("a".to_owned(), values.clone())], &rounds)
            .cells
            .remove(0)
    };
    assert!(cell(16.0).is_steady, "{:?}", cell(16.0));
    assert!(!cell(15.99).is_steady);
    let line = cell(16.0);
    assert!((line.line_first.unwrap() - 920.0).abs() < 1e-9);
    assert!((line.line_last.unwrap() - 1080.0).abs() < 1e-9);
}

#[test]
fn all_tracked_steps_have_to_be_steady_in_the_same_window() {
    // One flat from the start, one from round 10 (index 9) on.
    let late = |round: usize| if round < 9 { 5000.0 } else { 1000.0 };
    let (round, steady) = stops_at(&[&|_| 7.0, &late]);
    assert_eq!(round, Some(5), "both are flat at first");
    assert!(steady.cells.iter().all(|cell| cell.is_steady));
    let restless = |round: usize| {
        if round < 9 {
            (round * round) as f64 + 1.0
        } else {
            1000.0
        }
    };
    let (round, steady) = stops_at(&[&|_| 7.0, &restless]);
    assert_eq!(round, Some(14));
    assert_eq!(steady.cells[1].window_index, Some(9));
    assert!(
        !stops_at(&[&|_| 7.0, &|round| (round * round) as f64 + 1.0])
            .1
            .is_attained
    );
}

#[test]
fn a_round_without_a_figure_is_never_steady() {
    let values = vec![Some(1.0), Some(1.0), None, Some(1.0), Some(1.0)];
    let steady = pts(&[("a".to_owned(), values)], &rounds());
    assert!(!steady.is_attained);
    assert_eq!(steady.cells[0].mean, None, "and has no mean, not 0");
    let zeros = vec![Some(0.0); 5];
    assert!(!pts(&[("a".to_owned(), zeros)], &rounds()).is_attained);
    assert!(
        !pts(&[], &rounds()).is_attained,
        "nothing tracked is not steady"
    );
}

fn seconds(is_slope: bool, value: f64, is_pct: bool) -> SteadySeconds {
    SteadySeconds {
        limit: SteadyLimit {
            of: StepFigure::Iops,
            is_slope,
            value,
            is_pct,
        },
        window_count: 4,
        skip_count: 0,
    }
}

#[test]
fn fio_wants_every_sample_nearer_to_the_mean_than_the_limit() {
    let samples = [100.0, 104.0, 96.0, 100.0];
    assert!(fio_met(&samples, &seconds(false, 4.01, true)));
    assert!(
        !fio_met(&samples, &seconds(false, 4.0, true)),
        "strictly below"
    );
    assert!(fio_met(&samples, &seconds(false, 4.5, false)));
    assert!(
        !fio_met(&samples[1..], &seconds(false, 50.0, true)),
        "too few"
    );
    assert!(!fio_met(&[0.0; 4], &seconds(false, 50.0, true)));
}

#[test]
fn fio_takes_the_slope_per_second_without_its_sign() {
    let falling = [106.0, 102.0, 98.0, 94.0];
    assert!(fio_met(&falling, &seconds(true, 4.01, false)));
    assert!(!fio_met(&falling, &seconds(true, 4.0, false)));
    assert!(fio_met(&falling, &seconds(true, 4.01, true)));
    let saw = [100.0, 200.0, 200.0, 100.0];
    assert!(
        fio_met(&saw, &seconds(true, 0.1, true)),
        "a slope sees no sawtooth"
    );
}

proptest! {
    #[test]
    fn a_fitted_line_goes_through_points_on_a_line(first in 1.0..1e6_f64, slope in -1e3..1e3_f64, count in 2_usize..40) {
        let values: Vec<f64> = (0..count).map(|n| first + slope * n as f64).collect();
        let line = fit(&values);
        prop_assert!((line.slope - slope).abs() < 1e-6 * (1.0 + slope.abs()));
        prop_assert!((line.first - first).abs() < 1e-6 * (1.0 + first.abs()));
    }

    #[test]
    fn scale_changes_nothing(values in prop::collection::vec(1.0..1000.0_f64, 5), factor in 1.0..1e6_f64) {
        let judge = |factor: f64| {
            let values = values.iter().map(|value| Some(value * factor)).collect();
            pts(&[("a".to_owned(), values)], &rounds()).is_attained
        };
        let near = |pct: f64, limit: f64| (pct - limit).abs() < 1e-6;
        let cell = pts(&[("a".to_owned(), values.iter().copied().map(Some).collect())], &rounds()).cells.remove(0);
        prop_assume!(!near(cell.range_pct.unwrap(), 20.0) && !near(cell.slope_pct.unwrap().abs(), 10.0));
        prop_assert_eq!(judge(1.0), judge(factor));
    }
}

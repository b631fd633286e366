//! Figures that a hostile reader found wrong, each pinned against its truth.

use crate::common::run_json;
use lanemark::record::{Direction, Step};

fn read(step: &Step) -> &Direction {
    step.read.as_ref().unwrap()
}

/// Completions come every half second, at the window's edges too.
#[test]
fn a_step_that_is_steady_ends_its_window_without_one_period_too_many() {
    let (_, record) = run_json(
        "run --device sim:latency=500ms,parallelism=1000 --iodepth 1000 --runtime 100s --ramp_time 1s --steadystate iops:2% --steadystate_duration 2s",
    );
    assert!((read(&record.steps[0]).iops - 2_000.0).abs() < 0.01);
}

#[test]
fn the_age_of_an_abandoned_io_is_no_minimum() {
    let (_, record) = run_json(
        "run --device sim:latency=5s,parallelism=4,gone_after=9 --iodepth 4 --runtime 60s --ramp_time 0s",
    );
    let latency = &read(&record.steps[0]).latency_ns;
    assert!(latency.censored_count > 0);
    assert_eq!((latency.min, latency.p50), (5_000_000_000, 5_000_000_000));
    assert_eq!(latency.stddev, 0.0);
}

//! Figures that a hostile reader found wrong, each pinned against its truth.

use crate::common::run_json;
use lanemark::record::{Criterion, Direction, Step};

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

fn criteria(words: &str) -> (i32, Vec<Criterion>) {
    let (ran, mut record) = run_json(words);
    (ran.code, record.steps.remove(0).expect)
}

/// One second of a stall: every I/O takes 100 µs from its submission on, and hundreds waited for that.
#[test]
fn a_stall_is_not_hidden_from_a_criterion() {
    let stalled = "run --device sim:latency=100us,parallelism=4,stall=1s+1s --rate_iops 1000 --iodepth 4 --runtime 4s --ramp_time 0s --expect";
    let (code, found) = criteria(&format!("{stalled} p99<=200us"));
    assert_eq!((code, found[0].figure.as_str()), (5, "scheduled_p99"));
    assert!(found[0].measured.unwrap() > 9e8, "{found:?}");
    let (code, found) = criteria(&format!("{stalled} read_service_p99<=200us,iops>=900"));
    assert_eq!((code, found[0].figure.as_str()), (0, "read_service_p99"));
    let (code, _) = criteria(&format!(
        "{stalled} scheduled_p50<=200us,scheduled_max<=1001ms"
    ));
    assert_eq!(code, 0);
    // Without a rate nothing is scheduled: asked for by name it is missed, and a bare figure is the one there is.
    let closed = "run --device sim:latency=100us --iodepth 4 --runtime 1s --expect";
    assert_eq!(criteria(&format!("{closed} p99<=200us")).0, 0);
    assert_eq!(criteria(&format!("{closed} scheduled_p99<=200us")).0, 5);
}

#[test]
fn a_stall_is_not_hidden_from_a_comparison() {
    let words = "compare sim:latency=100us,seed=1 sim:latency=100us,stall=1s+1s,seed=2 --rate_iops 1000 --iodepth 4 --runtime 4s --ramp_time 0s --rounds 3 --progress none --fail-if";
    for (criterion, code) in [
        ("p99>+5%", 5),
        ("scheduled_p99>+5%", 5),
        ("service_p99>+5%", 0),
    ] {
        let ran = crate::common::run(&format!("{words} {criterion}"));
        assert_eq!(ran.code, code, "{criterion}: {}", ran.stderr);
    }
}

/// All I/Os but four take 100,000 ns to the nanosecond: the end of that bucket is above it.
#[test]
fn a_criterion_is_missed_where_the_whole_bucket_misses() {
    let words = "run --device sim:latency=100us,parallelism=4,stall=1s+1ms --iodepth 4 --runtime 4s --ramp_time 0s --expect";
    assert_eq!(criteria(&format!("{words} p50<=100us")).0, 0);
    assert_eq!(criteria(&format!("{words} p50<=99us")).0, 5);
    assert_eq!(criteria(&format!("{words} p50>=100us")).0, 0);
    assert_eq!(criteria(&format!("{words} max<=1000us")).0, 5);
}

#[test]
fn a_change_of_just_the_limit_is_within_it() {
    for (slower, limit) in [("101us", "+1%"), ("110us", "+10%")] {
        let ran = crate::common::run(&format!(
            "compare sim:latency=100us,seed=1 sim:latency={slower},seed=2 --runtime 1s --rounds 3 --progress none --fail-if mean>{limit}"
        ));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    }
}

/// What a rate lets through is no ceiling of the host.
#[test]
fn a_rate_is_no_ceiling_of_the_host() {
    let words = "run --device null --iodepth 4 --runtime 200ms --rate_iops";
    let (_, record) = run_json(&format!("{words} 1000"));
    let ceilings = record.steps[0].ceilings.read.clone();
    assert!(ceilings.is_none_or(|read| read.host.is_none()));
    let (_, record) = run_json("run --device null --iodepth 4 --runtime 200ms");
    assert!(
        record.steps[0]
            .ceilings
            .read
            .as_ref()
            .unwrap()
            .host
            .is_some()
    );
}

#[test]
fn the_verdict_knows_of_a_rate_that_was_not_kept() {
    let why = |rate: u32| {
        let (_, record) = run_json(&format!(
            "run --device sim:latency=100us --iodepth 1 --runtime 1s --rate_iops {rate}"
        ));
        record.steps[0].verdict.why.clone()
    };
    assert!(why(1_000).contains("was not tried"));
    assert!(why(20_000).contains("not kept up with"), "{}", why(20_000));
}

#[test]
fn what_is_wrong_with_one_device_is_not_told_of_the_other() {
    for (fault, kind) in [
        ("gone_after=5000", "gone"),
        ("stuck_after=5000", "stuck"),
        ("errors=1%", "io-errors"),
    ] {
        let (_, record) = run_json(&format!(
            "run --device sim:seed=1 --device sim:seed=2,{fault} --iodepth 4 --runtime 2s --grace 1s"
        ));
        let error = record.steps[0].error.as_ref().unwrap();
        assert_eq!(error.kind, kind);
        assert!(error.text.starts_with("sim:seed=2,"), "{}", error.text);
    }
}

#[test]
fn a_device_that_fails_or_sticks_is_no_bug_of_the_latencies() {
    for words in [
        "sim:latency=100us,parallelism=4,stuck_after=30001 --iodepth 4 --runtime 2s --grace 1s",
        "sim:latency=20ms,errors=100%,stall=300ms+1s --iodepth 2 --runtime 1s --ramp_time 0s",
    ] {
        let (ran, record) = run_json(&format!("run --device {words}"));
        assert_eq!(ran.code, 1);
        let kinds: Vec<_> = record.steps[0]
            .warnings
            .iter()
            .map(|one| &one.kind)
            .collect();
        assert!(
            !kinds.iter().any(|kind| *kind == "littles-law"),
            "{kinds:?}"
        );
    }
}

#[test]
fn many_streams_may_each_be_off_by_a_part_of_a_deck() {
    let (_, record) = run_json(
        "run --device sim --rw randrw --rwmixread 50 --streams 64 --iodepth 1 --number_ios 3200 --randseed 1",
    );
    let warnings = &record.steps[0].warnings;
    assert!(
        warnings.iter().all(|one| one.kind != "mix-missed"),
        "{warnings:?}"
    );
}

#[test]
fn flushes_are_no_arrivals() {
    let (_, record) = run_json(
        "run --device sim:latency=100us --rw write --rate_iops 1000 --fsync 1 --iodepth 4 --runtime 2s --ramp_time 0s",
    );
    let step = &record.steps[0];
    let count = |direction: &Option<Direction>| direction.as_ref().unwrap().ios_count;
    assert_eq!((count(&step.write), count(&step.flush)), (2_000, 2_000));
    // At once after its write, not with the next arrival.
    let flush = step.flush.as_ref().unwrap();
    let scheduled = flush.scheduled_latency_ns.as_ref().unwrap();
    assert!(scheduled.p50.abs_diff(100_000) < 200, "{scheduled:?}");
}

/// The device stands still from 3.5 s on: 500 arrivals wait when the window ends, up to half a second.
#[test]
fn arrivals_that_still_wait_count_with_their_age() {
    let (ran, record) = run_json(
        "run --device sim:latency=100us,parallelism=4,stall=3500ms+1s --rate_iops 1000 --iodepth 4 --runtime 4s --ramp_time 0s --expect p99<=200us",
    );
    assert_eq!(ran.code, 5, "{}", ran.stderr);
    let scheduled = read(&record.steps[0]).scheduled_latency_ns.clone().unwrap();
    assert!(
        (490..=500).contains(&scheduled.censored_count),
        "{scheduled:?}"
    );
    assert!(scheduled.max > 490_000_000 && scheduled.p50 < 101_000);
    for name in ["p99", "max"] {
        assert!(scheduled.lower_bounds.contains(&name.to_owned()));
    }
    assert!(!scheduled.lower_bounds.contains(&"p50".to_owned()));
    // What a healthy window cuts off is no lower bound of anything.
    let (_, record) = run_json(
        "run --device sim:latency=100us --rate_iops 5000 --rate_process poisson --iodepth 4 --runtime 2s",
    );
    let scheduled = read(&record.steps[0]).scheduled_latency_ns.clone().unwrap();
    assert_eq!(scheduled.censored_count, 0);
}

/// A record whose rate was edited, and was not its count over the window any more.
#[test]
fn edited_rates_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let (_, record) = run_json("run --device sim:latency=100us --runtime 1s");
    let true_iops = read(&record.steps[0]).iops;
    for (iops, is_told) in [
        (true_iops, false),
        (2.0 * true_iops, true),
        (-5.0, true),
        (1e308, true),
        (0.0, true),
    ] {
        let mut edited = record.clone();
        edited.steps[0].read.as_mut().unwrap().iops = iops;
        std::fs::write(path("a"), serde_json::to_vec(&record).unwrap()).unwrap();
        std::fs::write(path("b"), serde_json::to_vec(&edited).unwrap()).unwrap();
        let page = crate::common::run(&format!("report {}", path("b"))).stdout;
        assert_eq!(page.contains("were counted in"), is_told, "{iops}");
        let compared = crate::common::run(&format!("compare {} {}", path("a"), path("b")));
        assert_eq!(
            compared.stdout.contains("were counted in"),
            is_told,
            "{iops}: {}",
            compared.stdout
        );
    }
}

/// A cap of bytes holds up what carries bytes: trims do not.
#[test]
fn commands_without_data_pass_a_cap_of_bytes() {
    for (rw, part) in [("randtrim", "trim"), ("randwritezeroes", "writezeroes")] {
        let (_, record) = run_json(&format!(
            "run --device sim:latency=100us,cap_bytes_per_s=1M --rw {rw} --bs 64k --iodepth 4 --runtime 1s"
        ));
        let step = &record.steps[0];
        let all = [("trim", &step.trim), ("writezeroes", &step.writezeroes)];
        let (_, found) = all.into_iter().find(|(name, _)| *name == part).unwrap();
        assert!(
            (found.as_ref().unwrap().iops - 40_000.0).abs() < 40.0,
            "{rw}"
        );
    }
}

//! Simulated devices: the truth is known, so every figure can be held against it.

use crate::common::{run, run_json};
use lanemark::record::{Outcome, Step};

fn read_iops(step: &Step) -> f64 {
    step.read.as_ref().unwrap().iops
}

#[test]
fn fixed_latency_is_measured_exactly() {
    let (ran, record) = run_json("run --device sim:latency=100us --iodepth 8 --runtime 2s");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let step = &record.steps[0];
    assert!(
        (read_iops(step) - 80_000.0).abs() <= 80.0,
        "{}",
        read_iops(step)
    );
    let latency = &step.read.as_ref().unwrap().latency_ns;
    assert_eq!(
        (latency.p50, latency.p99_9, latency.max),
        (100_000, 100_000, 100_000)
    );
    assert!((step.depth.in_flight_mean - 8.0).abs() < 0.01);
    assert!(step.warnings.is_empty(), "{:?}", step.warnings);
    assert_eq!(step.write, None);
    assert_eq!(step.series.len(), 2);
}

#[test]
fn injected_errors_are_no_iops() {
    let (ran, record) =
        run_json("run --device sim:latency=100us,errors=1% --iodepth 8 --runtime 5s");
    assert_eq!(ran.code, 1);
    let step = &record.steps[0];
    assert_eq!(step.status, Outcome::Failed);
    let (ok, failed) = (
        step.read.as_ref().unwrap().ios_count as f64,
        step.failed_count as f64,
    );
    // 5.2 s with the ramp, 1 % of 80,000 a second, ± 5 σ.
    assert!((failed - 4160.0).abs() < 320.0, "{failed}");
    assert!(
        (ok + failed * 5.0 / 5.2 - 400_000.0).abs() < 500.0,
        "{ok} {failed}"
    );
    assert_eq!(step.errors[0].status, "EIO (Input/output error)");
    assert_eq!(
        step.submitted_count,
        step.completed_count + step.failed_count
    );
    assert!(step.warnings.is_empty(), "{:?}", step.warnings);
}

#[test]
fn knee_parallelism_and_cap_come_out_exactly() {
    for (device, depth, iops) in [
        ("sim:latency=100us,parallelism=4", 4, 40_000.0),
        ("sim:latency=100us,parallelism=4", 16, 40_000.0),
        ("sim:latency=100us,parallelism=64", 16, 160_000.0),
        ("sim:latency=100us,cap_iops=25000", 64, 25_000.0),
        ("sim:latency=10us,cap_bytes_per_s=409600000", 64, 100_000.0),
    ] {
        let (_, record) = run_json(&format!(
            "run --device {device} --iodepth {depth} --runtime 1s"
        ));
        let got = read_iops(&record.steps[0]);
        assert!(
            (got / iops - 1.0).abs() <= 0.001,
            "{device} depth {depth}: {got}"
        );
    }
}

#[test]
fn reactors_repeat_bit_for_bit_with_the_same_seed() {
    let run = |seed: u32| {
        let words = format!(
            "run --device sim:latency=50us..150us,parallelism=6,errors=1% --iodepth 4 --reactors 3 \
             --rw randrw --rwmixread 70 --runtime 1s --randseed {seed}"
        );
        let (_, record) = run_json(&words);
        serde_json::to_string(&record.steps).unwrap()
    };
    assert_eq!(run(7), run(7));
    assert_ne!(run(7), run(8));
}

#[test]
fn a_94_second_io_is_shown_as_94_seconds() {
    let (_, record) =
        run_json("run --device sim:latency=94s --iodepth 1 --runtime 400s --ramp_time 0s");
    let latency = &record.steps[0].read.as_ref().unwrap().latency_ns;
    assert_eq!(latency.max, 94_000_000_000);
    assert_eq!(latency.p50, 94_000_000_000);
}

#[test]
fn a_device_that_never_completes_ends_within_runtime_and_grace() {
    let (ran, record) = run_json(
        "run --device sim:latency=100us,stuck_after=1000 --iodepth 8 --runtime 1s --grace 3s",
    );
    assert_eq!(ran.code, 1);
    let step = &record.steps[0];
    let error = step.error.as_ref().unwrap();
    assert_eq!(error.kind, "stuck");
    assert!(
        error.text.contains("LBA") && error.text.contains("read"),
        "{}",
        error.text
    );
    assert_eq!(step.abandoned_count, 8);
    assert_eq!(
        step.submitted_count,
        step.completed_count + step.failed_count + 8
    );
    let latency = &step.read.as_ref().unwrap().latency_ns;
    assert_eq!(latency.censored_count, 8);
    assert!(latency.lower_bounds.contains(&"max".to_owned()));
    assert!(latency.max > 3_900_000_000);
    assert!(step.slowest[0].abandoned);
}

#[test]
fn a_device_that_is_gone_ends_the_run_at_once() {
    let (ran, record) =
        run_json("run --device sim:latency=100us,gone_after=5000 --iodepth 8 --runtime 100s");
    assert_eq!(ran.code, 1);
    assert_eq!(record.steps[0].error.as_ref().unwrap().kind, "gone");
    assert!(record.steps[0].window_s < 1.0);
}

#[test]
fn exact_and_batch_stamps_agree_within_the_bound() {
    for depth in [1, 128] {
        let p50 = |stamp: &str| {
            let (_, record) = run_json(&format!(
                "run --device sim:latency=90us..110us --iodepth {depth} --runtime 1s --stamp {stamp} --randseed 1"
            ));
            let step = &record.steps[0];
            (
                step.read.as_ref().unwrap().latency_ns.p50,
                step.stamp.bound_ns,
            )
        };
        let ((exact, bound), (batch, _)) = (p50("exact"), p50("batch"));
        // One bucket of the histogram is the resolution of both.
        assert!(
            exact.abs_diff(batch) <= bound + exact / 1000,
            "{exact} {batch} {bound}"
        );
    }
}

#[test]
fn a_stall_is_not_hidden_from_scheduled_latency() {
    let (_, record) = run_json(
        "run --device sim:latency=100us,stall=2s+100ms --iodepth 1 --rate_iops 1000 --runtime 5s --ramp_time 0s",
    );
    let read = record.steps[0].read.as_ref().unwrap();
    assert_eq!(read.ios_count, 5000);
    let scheduled = read.scheduled_latency_ns.as_ref().unwrap();
    assert!(
        (scheduled.p99 as f64 / 56e6 - 1.0).abs() < 0.04,
        "{}",
        scheduled.p99
    );
    assert!(
        (scheduled.p99_9 as f64 / 96e6 - 1.0).abs() < 0.04,
        "{}",
        scheduled.p99_9
    );
    assert!((read.latency_ns.p99_9 as f64 / 1e5 - 1.0).abs() < 0.001);
}

#[test]
fn an_overload_is_named() {
    let (_, record) = run_json(
        "run --device sim:latency=100us --iodepth 1 --rate_iops 20000 --rate_process poisson --runtime 2s",
    );
    let kinds: Vec<_> = record.steps[0]
        .warnings
        .iter()
        .map(|w| w.kind.as_str())
        .collect();
    assert_eq!(kinds, ["overload"]);
}

#[test]
fn a_count_is_met_to_the_io() {
    let (_, record) = run_json(
        "run --device sim:latency=100us --iodepth 8 --reactors 3 --number_ios 10000 --ramp_time 0s",
    );
    let step = &record.steps[0];
    assert_eq!(step.read.as_ref().unwrap().ios_count, 10_000);
    assert_eq!(step.submitted_count, 10_000);
}

#[test]
fn four_sequential_streams_never_read_the_same_block_in_the_first_pass() {
    let (_, record) = run_json(
        "run --device sim:latency=10us,capacity=64M --rw read --bs 64k --streams 4 --passes 1 --ramp_time 0s",
    );
    let step = &record.steps[0];
    assert_eq!(step.read.as_ref().unwrap().bytes_count, 64 << 20);
    let mut regions: Vec<_> = step
        .streams
        .iter()
        .map(|s| (s.first_lba, s.first_lba + s.region_blocks))
        .collect();
    regions.sort_unstable();
    assert_eq!(regions.len(), 4);
    assert!(
        regions.windows(2).all(|pair| pair[0].1 <= pair[1].0),
        "{regions:?}"
    );
    assert!(step.streams.iter().all(|s| s.bytes_count == 16 << 20));
}

#[test]
fn writes_trims_and_flushes_run_on_simulated_devices() {
    let (ran, record) = run_json(
        "run --device sim:latency=100us,write_latency=20us --rw randrw --rwmixread 50 --fsync 10 --iodepth 4 --runtime 1s",
    );
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let step = &record.steps[0];
    let (read, write) = (step.read.as_ref().unwrap(), step.write.as_ref().unwrap());
    assert_eq!(
        (read.latency_ns.p50, write.latency_ns.p50),
        (100_000, 20_000)
    );
    let flush = step.flush.as_ref().unwrap();
    assert!((write.ios_count as f64 / flush.ios_count as f64 - 10.0).abs() < 0.1);
    assert_eq!(flush.bytes_count, 0);
    let (ran, record) = run_json("run --device sim --rw randtrim --bs 64k --runtime 1s");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(record.steps[0].trim.is_some() && record.steps[0].write.is_none());
}

/// A direction of its own, in every form of the result.
#[test]
fn zeros_are_a_direction_of_their_own() {
    let job = "run --device sim:latency=100us --rw randwritezeroes --bs 64k --iodepth 4 --runtime 2s --ramp_time 0s --expect writezeroes_iops>1k";
    let (ran, record) = run_json(job);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let step = &record.steps[0];
    let zeroes = step.writezeroes.as_ref().unwrap();
    assert!(step.write.is_none() && step.trim.is_none() && step.read.is_none());
    assert_eq!(zeroes.latency_ns.p50, 100_000);
    assert_eq!(zeroes.bytes_count, zeroes.ios_count * (64 << 10));
    assert!(
        step.series
            .iter()
            .all(|second| second.writezeroes.is_some())
    );
    assert!(step.expect[0].is_met);
    assert_eq!(step.plan["streams"][0]["rw"], "randwritezeroes");
    let text = run(job).stdout;
    assert!(text.contains("writezeroes"), "{text}");
    let csv = run(&format!("{job} --format csv")).stdout;
    assert!(
        csv.lines().nth(1).unwrap().contains(",writezeroes,"),
        "{csv}"
    );
    let (ran, record) =
        run_json("run --device null --rw writezeroes --bs 1G --size 4G --number_ios 100");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(record.steps[0].writezeroes.as_ref().unwrap().ios_count, 100);
}

#[test]
fn mixes_are_held_against_what_was_asked() {
    let (_, record) = run_json(
        "run --device sim --rw randrw --rwmixread 33 --bssplit 4k/60:64k/40 --percentage_random 80 --iodepth 16 --runtime 1s",
    );
    let mix = &record.steps[0].mix;
    assert_eq!(mix.len(), 4, "{mix:?}");
    assert!(
        mix.iter()
            .all(|m| (m.asked_pct - m.achieved_pct).abs() < 0.1),
        "{mix:?}"
    );
}

#[test]
fn a_rated_run_agrees_with_itself() {
    for stamp in ["exact", "batch"] {
        let (_, record) = run_json(&format!(
            "run --device sim:latency=100us --iodepth 4 --rate_iops 1000 --runtime 2s --stamp {stamp}"
        ));
        let step = &record.steps[0];
        assert!(
            (step.depth.in_flight_mean - 0.1).abs() < 0.001,
            "{}",
            step.depth.in_flight_mean
        );
        let read = step.read.as_ref().unwrap();
        assert_eq!((read.ios_count, read.latency_ns.p50), (2000, 100_000));
        assert!(step.warnings.is_empty(), "{:?}", step.warnings);
    }
}

#[test]
fn a_run_that_counted_nothing_is_a_failure() {
    let (ran, record) = run_json("run --device sim:latency=100us --runtime 50us --ramp_time 0s");
    assert_eq!(ran.code, 1);
    assert_eq!(record.steps[0].error.as_ref().unwrap().kind, "no-samples");
}

#[test]
fn a_ramp_before_an_amount_is_refused() {
    for amount in ["--number_ios 100", "--io_size 1M", "--passes 1 --size 1M"] {
        let (ran, _) = run_json(&format!("run --device sim {amount} --ramp_time 1s"));
        assert_eq!(ran.code, 2, "{amount}");
        assert!(ran.stderr.contains("ramp_time"), "{}", ran.stderr);
    }
}

#[test]
fn flushes_are_no_ios_of_a_stream_or_a_reactor() {
    let (_, record) =
        run_json("run --device null --rw randwrite --fsync 3 --number_ios 999 --ramp_time 0s");
    let step = &record.steps[0];
    assert_eq!(step.flush.as_ref().unwrap().ios_count, 333);
    assert_eq!(
        (step.streams[0].ios_count, step.reactors[0].ios_count),
        (999, 999)
    );
}

#[test]
fn streams_that_end_apart_are_named_and_have_their_own_rate() {
    let dir = tempfile::tempdir().unwrap();
    let job = dir.path().join("job.yaml");
    let streams = "[{ iodepth: 1, number_ios: 300 }, { iodepth: 4, number_ios: 300 }]";
    std::fs::write(
        &job,
        format!("device: sim\nsteps:\n  - streams: {streams}\n"),
    )
    .unwrap();
    let (_, record) = run_json(&format!("run {}", job.display()));
    let step = &record.steps[0];
    assert!(
        step.warnings
            .iter()
            .any(|warning| warning.kind == "uneven-end"),
        "{:?}",
        step.warnings
    );
    assert!(
        (step.streams[0].iops - 10_000.0).abs() < 1.0,
        "{}",
        step.streams[0].iops
    );
    assert!(
        (step.streams[1].iops - 40_000.0).abs() < 1.0,
        "{}",
        step.streams[1].iops
    );
}

#[test]
fn a_closed_loop_is_in_no_scheduled_latency() {
    let dir = tempfile::tempdir().unwrap();
    let job = dir.path().join("job.yaml");
    let streams = "[{ iodepth: 1, rate_iops: 100 }, { iodepth: 4 }]";
    std::fs::write(
        &job,
        format!(
            "device: sim\nsteps:\n  - runtime: 1s\n    ramp_time: 0s\n    streams: {streams}\n"
        ),
    )
    .unwrap();
    let (_, record) = run_json(&format!("run {}", job.display()));
    let read = record.steps[0].read.as_ref().unwrap();
    // A window holds its end: four of the closed loop complete at the very end of it.
    assert_eq!(read.ios_count, 40_000 + 100);
    assert!((read.scheduled_latency_ns.as_ref().unwrap().mean - 100_000.0).abs() < 1.0);
}

#[test]
fn every_ready_job_runs() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("configs");
    let mut jobs_count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let is_yaml = path
            .extension()
            .is_some_and(|extension| extension == "yaml");
        // The datasheets are no job.
        if !is_yaml || path.ends_with("drives.yaml") {
            continue;
        }
        jobs_count += 1;
        // A terabyte, and slow enough that a long job has few I/Os to simulate.
        let words = format!(
            "run {} --device sim:latency=10ms,capacity=1T",
            path.display()
        );
        let (ran, record) = run_json(&words);
        assert_eq!(ran.code, 0, "{}: {}", path.display(), ran.stderr);
        assert!(!record.steps.is_empty());
    }
    assert!(jobs_count >= 5, "{jobs_count} jobs");
}

#[test]
fn the_error_of_a_mix_shrinks_with_its_length() {
    for read_pct in [1.0_f64, 33.0, 70.0, 99.0] {
        for ios_count in [100_u32, 10_000, 1_000_000] {
            let (_, record) = run_json(&format!(
                "run --device null --rw randrw --rwmixread {read_pct} --number_ios {ios_count} --iodepth 16"
            ));
            let mix = &record.steps[0].mix[0];
            assert_eq!((mix.share.as_str(), mix.asked_pct), ("read", read_pct));
            // 27 I/Os at most, whatever the length (see the workload's own bound).
            let error_ios = (mix.achieved_pct - read_pct).abs() / 100.0 * f64::from(ios_count);
            assert!(
                error_ios <= 27.0,
                "{read_pct} % of {ios_count}: {error_ios}"
            );
        }
    }
}

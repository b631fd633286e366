//! Traps seen in tools of this field, each pinned the other way round.

use crate::common::{run, run_json};

#[test]
fn failed_ios_are_not_iops() {
    let (_, record) = run_json("run --device sim:errors=50% --iodepth 8 --runtime 1s");
    let step = &record.steps[0];
    let read = step.read.as_ref().unwrap();
    assert!((read.iops - 40_000.0).abs() < 1_500.0, "{}", read.iops);
    assert!(step.failed_count > 35_000);
}

#[test]
fn completions_of_the_drain_do_not_count() {
    // 1 s each, 4 at once, a window of 1.5 s: those of the second round complete in the drain.
    let (_, record) = run_json(
        "run --device sim:latency=1s --iodepth 4 --runtime 1500ms --ramp_time 0s --grace 10s",
    );
    let step = &record.steps[0];
    assert_eq!(step.read.as_ref().unwrap().ios_count, 4);
    assert_eq!(step.completed_count, 8);
}

#[test]
fn cores_do_not_read_the_same_sequential_blocks() {
    let (_, record) = run_json(
        "run --device sim --rw read --bs 64k --reactors 4 --number_ios 4000 --ramp_time 0s",
    );
    let mut starts: Vec<_> = record.steps[0]
        .streams
        .iter()
        .map(|s| s.first_lba)
        .collect();
    starts.dedup();
    assert_eq!(starts.len(), 4);
}

#[test]
fn no_device_is_no_success() {
    assert_eq!(run("run --progress none --device /nowhere").code, 2);
}

#[test]
fn sizes_are_not_cast_to_32_bits() {
    let (_, record) = run_json(
        "run --device sim:capacity=8T --rw read --bs 1M --offset 6T --size 1T --number_ios 5000 --ramp_time 0s",
    );
    let stream = &record.steps[0].streams[0];
    assert_eq!(stream.first_lba, 6 << 31);
    assert_eq!(stream.region_blocks, 1 << 31);
    assert_eq!(stream.bytes_count, 5000 << 20);
    assert!(
        record.steps[0]
            .slowest
            .iter()
            .all(|slow| slow.lba >= 6 << 31)
    );
}

#[test]
fn small_batches_overwrite_no_latency() {
    let (_, record) = run_json(
        "run --device sim:latency=100us --iodepth 64 --batch submit=1,complete_min=1,complete_max=1 --runtime 1s",
    );
    let read = record.steps[0].read.as_ref().unwrap();
    let counted: u64 = read.histogram.iter().map(|(_, count)| count).sum();
    assert_eq!(counted, read.ios_count);
    assert!((read.iops - 640_000.0).abs() < 640.0, "{}", read.iops);
}

#[test]
fn percentiles_are_not_clipped_at_a_bucket_edge() {
    let (_, record) = run_json("run --device sim:latency=100001ns --runtime 1s");
    let latency = &record.steps[0].read.as_ref().unwrap().latency_ns;
    assert_eq!(
        (latency.p50, latency.p99_99, latency.max),
        (100_001, 100_001, 100_001)
    );
}

#[test]
fn capacity_of_4kn_is_not_off_by_eight() {
    let (_, record) =
        run_json("run --device sim:block=4k,capacity=1T --number_ios 10 --ramp_time 0s");
    let device = &record.steps[0].devices[0];
    assert_eq!(
        (device.capacity_bytes, device.logical_block_bytes),
        (1 << 40, 4096)
    );
    let refused = run("run --device sim:block=4k --bs 512 --progress none");
    assert_eq!(refused.code, 2);
    assert!(
        refused.stderr.contains("4096") || refused.stderr.contains("4 KiB"),
        "{}",
        refused.stderr
    );
}

#[test]
fn an_error_is_no_text_inside_json() {
    let (ran, _) = run_json("run --device /nowhere");
    assert!(ran.stdout.trim_start().starts_with('{') && ran.stdout.trim_end().ends_with('}'));
}

#[test]
fn the_mean_is_the_mean_and_not_the_best_second() {
    // A stall of half a second: one second of the series is far below the others.
    let (_, record) = run_json(
        "run --device sim:latency=100us,stall=1s+500ms --iodepth 1 --runtime 4s --ramp_time 0s",
    );
    let step = &record.steps[0];
    let best = step
        .series
        .iter()
        .map(|s| s.read.as_ref().unwrap().iops)
        .fold(0.0, f64::max);
    let read = step.read.as_ref().unwrap();
    assert!((best - 10_000.0).abs() < 20.0);
    assert!((read.iops - 8_750.0).abs() < 20.0, "{}", read.iops);
}

#[test]
fn a_mix_on_4kn_drops_what_it_cannot_do_by_name() {
    let (ran, record) =
        run_json("run --device sim:block=4k --bssplit 512/10:1k/5:2k/5:4k/60:8k/20 --runtime 1s");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let dropped: Vec<_> = record
        .warnings
        .iter()
        .filter(|w| w.kind == "bssplit-share-dropped")
        .collect();
    assert!(!dropped.is_empty());
    let text: String = dropped.iter().map(|w| w.text.clone()).collect();
    assert!(text.contains("512") && text.contains("2"), "{text}");
    assert_eq!(record.steps[0].mix.len(), 2);
}

#[test]
fn a_silent_retry_is_not_one_slow_success() {
    // Nothing is tried twice: every failure is counted once, and no success takes two service times.
    let (_, record) =
        run_json("run --device sim:latency=100us,errors=20% --iodepth 4 --runtime 1s");
    let step = &record.steps[0];
    assert_eq!(
        step.submitted_count,
        step.completed_count + step.failed_count
    );
    assert!(step.failed_count > 7_000, "{}", step.failed_count);
    assert_eq!(step.read.as_ref().unwrap().latency_ns.max, 100_000);
}

#[test]
fn reads_of_never_written_blocks_are_not_shown_as_the_drives_speed() {
    let file = tempfile::NamedTempFile::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    file.as_file().set_len(8 << 20).unwrap();
    let words = format!("run --device {} --number_ios 16", file.path().display());
    let (ran, record) = run_json(&words);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let kinds: Vec<_> = record.steps[0]
        .warnings
        .iter()
        .map(|w| w.kind.as_str())
        .collect();
    assert!(kinds.contains(&"never-written"), "{kinds:?}");
    assert_eq!(run(&format!("{words} --strict --progress none")).code, 3);
}

/// Every verb whose text is a table of its own says it too, once.
#[test]
fn reads_of_never_written_blocks_are_named_beside_every_table() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let two = ["one", "two"].map(|name| {
        let path = dir.path().join(name);
        let file = std::fs::File::create(&path).unwrap();
        file.set_len(8 << 20).unwrap();
        path.display().to_string()
    });
    let both = format!("--device {} --device {}", two[0], two[1]);
    for verb in ["peak --most_depth 2", "load --load 50", "scale"] {
        let ran = run(&format!(
            "{verb} {both} --runtime 20ms --ramp_time 0s --progress none"
        ));
        assert_eq!(ran.code, 0, "{verb}: {}", ran.stderr);
        let said = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        for path in &two {
            let doubt = format!("{path}: 100.0 % of the range was never written");
            assert_eq!(said.matches(&doubt).count(), 1, "{verb}: {}", ran.stdout);
        }
        assert!(
            said.contains("-> fill the range first"),
            "{verb}: {}",
            ran.stdout
        );
    }
}

//! Steps that price the path instead of the media: `rw: probe` and `rw: probe-read`.

use super::common::{run, run_json};

#[test]
fn a_probe_is_a_direction_of_its_own_without_bytes() {
    let (ran, record) = run_json(
        "run --device sim:latency=100us --rw probe --iodepth 4 --runtime 1s --ramp_time 0s",
    );
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let step = &record.steps[0];
    let probe = step.probe.as_ref().unwrap();
    assert!(step.read.is_none() && step.write.is_none());
    assert_eq!((probe.latency_ns.p50, probe.bytes_count), (100_000, 0));
    assert_eq!(step.streams[0].ios_count, probe.ios_count);
    assert_eq!(step.reactors[0].ios_count, probe.ios_count);
    assert_eq!(step.plan["streams"][0]["rw"], "probe");
    assert!(step.plan["streams"][0]["size"].is_null());
    assert!(step.warnings.is_empty(), "{:?}", step.warnings);
    let seconds = step.series.iter().filter_map(|s| s.probe.as_ref());
    assert_eq!(seconds.map(|s| s.ios_count).sum::<u64>(), probe.ios_count);
}

#[test]
fn an_amount_of_probes_ends_the_step_and_shows_in_every_report() {
    let job = "run --device null --rw probe --number_ios 500 --ramp_time 0s";
    let (_, record) = run_json(job);
    assert_eq!(record.steps[0].probe.as_ref().unwrap().ios_count, 500);
    let text = run(job);
    assert!(text.stdout.contains("probe"), "{}", text.stdout);
    let csv = run(&format!("{job} --format csv"));
    let row = csv.stdout.lines().nth(1).unwrap();
    assert!(row.contains(",probe,") && row.contains(",500,0,"), "{row}");
}

#[test]
fn a_probing_read_stays_at_its_one_block() {
    let (ran, record) = run_json(
        "run --device sim --rw probe-read --offset 1M --streams 2 --number_ios 100 --ramp_time 0s",
    );
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let step = &record.steps[0];
    let read = step.read.as_ref().unwrap();
    assert_eq!((read.ios_count, read.bytes_count), (100, 100 * 512));
    assert_eq!(step.plan["streams"][0]["rw"], "probe-read");
    for stream in &step.streams {
        assert_eq!((stream.first_lba, stream.region_blocks), (2048, 1));
    }
    assert!(step.slowest.iter().all(|slow| slow.lba == 2048));
}

#[test]
fn what_a_probe_cannot_use_is_refused_by_name() {
    for (keys, word) in [
        ("probe --bs 4k", "bs"),
        ("probe --offset 1M", "offset"),
        ("probe --size 1M", "size"),
        ("probe --io_size 1M", "io_size"),
        ("probe --passes 1", "passes"),
        ("probe --rwmixread 50", "rwmixread"),
        ("probe --fsync 8", "fsync"),
        ("probe --data zero", "data"),
        ("probe --percentage_random 50", "percentage_random"),
        ("probe-read --bs 4k", "bs"),
        ("probe-read --size 1M", "size"),
    ] {
        let ran = run(&format!("run --device sim --rw {keys} --runtime 1s"));
        assert_eq!(ran.code, 2, "{keys}: {}", ran.stderr);
        let named = ran.stderr.contains(&format!("{word}:"));
        assert!(named && ran.stderr.contains("probe"), "{}", ran.stderr);
    }
}

#[test]
fn the_block_layer_has_no_probe_and_says_what_has() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let file = folder.path().join("data");
    std::fs::write(&file, vec![7; 1 << 20]).unwrap();
    let ran = run(&format!(
        "run --device {} --rw probe --runtime 1s",
        file.display()
    ));
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(ran.stderr.contains("cannot probe"), "{}", ran.stderr);
    assert!(ran.stderr.contains("probe-read"), "{}", ran.stderr);
}

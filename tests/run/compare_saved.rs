//! `lanemark compare` on saved records: what may be held against each other, and what may not.

use crate::common::run;
use crate::compare::{compare, metric, refused, scratch_dir};
use lanemark::record::{ComparisonVerdict as Verdict, Latency, Record};
use std::path::{Path, PathBuf};

/// Runs a job and keeps its record.
fn record_of(dir: &Path, name: &str, words: &str) -> PathBuf {
    let path = dir.join(name);
    let ran = run(&format!(
        "run {words} --progress none --format json -o {}",
        path.display()
    ));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    path
}

#[test]
fn saved_records_get_the_same_table_and_criteria() {
    let dir = scratch_dir();
    let base = "--device sim:latency=100us --runtime 100ms --seed 5";
    let a = record_of(dir.path(), "a.json", base);
    let slower = record_of(
        dir.path(),
        "b.json",
        "--device sim:latency=107us --runtime 100ms --seed 5",
    );
    let (a, b) = (a.display(), slower.display());
    let (ran, comparison) = compare(&format!("{a} {b}"));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let p99 = metric(&comparison, 0, "p99");
    assert_eq!(
        p99.against[0].verdict,
        Verdict::NotJudged,
        "one run a side tells nothing of its noise"
    );
    assert!((p99.against[0].difference.value.unwrap() - 7_000.0).abs() < 120.0);
    for (criterion, code) in [
        ("p99>+5%", 5),
        ("p99>+8%", 0),
        ("read.iops<-5%", 5),
        ("iops<-8%", 0),
        ("write.p99>+5%", 5),
    ] {
        let (ran, comparison) = compare(&format!("--baseline {a} {b} --fail-if {criterion}"));
        assert_eq!(ran.code, code, "{criterion}: {}", ran.stderr);
        assert_eq!(comparison.misses.is_empty(), code == 0, "{criterion}");
    }
    let (ran, _) = compare(&format!("{a} {b} --fail-if p99>+8% --fail-if p50>+1%"));
    assert_eq!(ran.code, 5);
    let (code, text) = refused(&format!("{a} sim"));
    assert!(code == 2 && text.contains("mixed"), "{text}");
    let dir = dir.path().display();
    std::fs::write(format!("{dir}/notes.txt"), "IOPS").unwrap();
    for (words, why) in [
        (format!("{a} {dir}/nosuch.json"), "cannot read"),
        (format!("{dir}/nosuch.json {a}"), "cannot read"),
        (format!("{dir}/nosuch.json {dir}/none.json"), "cannot read"),
        (format!("{a} {dir}/nosuch"), "cannot read"),
        (format!("{a} {dir}/notes.txt"), "notes.txt is no record"),
    ] {
        let (code, text) = refused(&words);
        assert!(code == 2 && text.contains(why), "{words}: {text}");
    }
    let (code, text) = refused(&format!("{a} {b} --bs 8k"));
    assert!(code == 2 && text.contains("live"), "{text}");
    let (code, text) = refused(&format!("{a} {b} -o {a}"));
    assert!(code == 2 && text.contains("cannot go into"), "{text}");
}

#[test]
fn several_records_a_side_give_intervals() {
    let dir = scratch_dir();
    let runs = |label: &str, latency: &str, seed: u32| {
        let record = |number: u32| {
            // Simulated noise repeats with the device's seed: every run has a device of its own.
            let words = format!("--device sim:latency={latency},seed={number} --runtime 50ms");
            record_of(dir.path(), &format!("{label}{number}.json"), &words)
                .display()
                .to_string()
        };
        (seed..seed + 4).map(record).collect::<Vec<_>>().join(",")
    };
    let (a, b) = (runs("a", "90us..110us", 1), runs("b", "100us..120us", 11));
    let (ran, comparison) = compare(&format!("{a} {b} --accept device"));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let mean = &metric(&comparison, 0, "mean").against[0];
    assert_eq!(mean.verdict, Verdict::ABetter, "{mean:?}");
    assert!(mean.difference.low.unwrap() < 10_000.0 && 10_000.0 < mean.difference.high.unwrap());
}

#[test]
fn one_run_under_several_names_is_refused() {
    let dir = scratch_dir();
    let words = "--device sim:latency=90us..110us --runtime 50ms --seed 5";
    let one = record_of(dir.path(), "a.json", words);
    let other = record_of(dir.path(), "b.json", "--device sim --runtime 50ms --seed 5");
    let (copy, folder) = (dir.path().join("copy.json"), dir.path().join("run"));
    std::fs::copy(&one, &copy).unwrap();
    std::fs::create_dir(&folder).unwrap();
    std::fs::hard_link(&one, folder.join("record.json")).unwrap();
    let (a, b) = (one.display(), other.display());
    for again in [&one, &copy, &folder] {
        for words in [
            format!("{a},{} {b} --accept all", again.display()),
            format!("{b} {a},{} --accept all", again.display()),
        ] {
            let (code, text) = refused(&words);
            assert!(
                code == 2 && text.contains("one and the same run"),
                "{words}: {text}"
            );
        }
    }
}

#[test]
fn records_of_different_things_are_refused_with_what_differs() {
    let dir = scratch_dir();
    let record = |name: &str, words: &str| {
        record_of(
            dir.path(),
            name,
            &format!("{words} --runtime 50ms --seed 5"),
        )
        .display()
        .to_string()
    };
    let a = record("a.json", "--device sim:seed=1");
    let larger = record("b.json", "--device sim:seed=1 --bs 8k");
    let (code, text) = refused(&format!("{a} {larger}"));
    assert_eq!(code, 2);
    assert!(text.contains("block size (4096 against 8192)"), "{text}");
    let deeper = record("c.json", "--device sim:seed=2 --iodepth 4");
    let (code, text) = refused(&format!("{a} {deeper}"));
    assert_eq!(code, 2);
    assert!(
        text.contains("device (simulated device SIM1 against simulated device SIM2)"),
        "{text}"
    );
    assert!(text.contains("depth (1 against 4)"), "{text}");
    // What is refused by name is accepted by name.
    let (code, text) = refused(&format!("{a} {deeper} --accept depth"));
    assert!(
        code == 2 && !text.contains("depth") && text.contains("device"),
        "{text}"
    );
    let (ran, comparison) = compare(&format!("{a} {deeper} --accept depth --accept device"));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let named: Vec<&str> = comparison
        .confounders
        .iter()
        .map(|it| it.name.as_str())
        .collect();
    assert!(
        named.contains(&"depth") && named.contains(&"device"),
        "{named:?}"
    );
    let (code, text) = refused(&format!("{a} {deeper} --accept depht"));
    assert!(code == 2 && text.contains("depht"), "{text}");
    assert_eq!(compare(&format!("{a} {deeper} --accept all")).0.code, 0);
}

#[test]
fn other_differences_are_told_and_forbid_nothing() {
    let dir = scratch_dir();
    let a = record_of(dir.path(), "a.json", "--device sim --runtime 50ms --seed 5");
    let mut record: Record = serde_json::from_slice(&std::fs::read(&a).unwrap()).unwrap();
    record.environment.kernel = "0.1".to_owned();
    record.tool.version = "9.9.9".to_owned();
    record.seed = 6;
    record.steps[0].backend.name = "uring".to_owned();
    let b = dir.path().join("b.json");
    std::fs::write(&b, serde_json::to_vec(&record).unwrap()).unwrap();
    let (ran, comparison) = compare(&format!("{} {}", a.display(), b.display()));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    for name in ["kernel", "version", "seed", "backend"] {
        let found = comparison.confounders.iter().find(|it| it.name == name);
        assert!(
            found.is_some_and(|it| !it.forbids),
            "{name}: {:?}",
            comparison.confounders
        );
    }
}

#[test]
fn what_is_no_record_is_named() {
    let dir = scratch_dir();
    let a = record_of(dir.path(), "a.json", "--device sim --runtime 50ms")
        .display()
        .to_string();
    let odd = dir.path().join("odd.json");
    for (content, word) in [
        ("{", "EOF"),
        ("{}", "missing field `schema_version`"),
        ("{\"schema_version\": 99}", "99"),
        (
            "{\"schema_version\": 1, \"kind\": \"comparison\"}",
            "no record of lanemark",
        ),
        ("{\"schema_version\": 1}", "missing field"),
    ] {
        std::fs::write(&odd, content).unwrap();
        let (code, text) = refused(&format!("{a} {}", odd.display()));
        assert_eq!(code, 2, "{content}");
        assert!(
            text.contains("odd.json") && text.contains(word),
            "{content}: {text}"
        );
    }
    let other = record_of(
        dir.path(),
        "b.json",
        "--device sim --runtime 50ms --rw read",
    );
    let (code, text) = refused(&format!("{a} {}", other.display()));
    assert!(code == 2 && text.contains("no step in common"), "{text}");
}

/// A record with the figures that a review published for an Intel S3710 (methods of the field: 4 streams of
/// 32 in flight).
fn published(dir: &Path, name: &str, iops: f64, mean_ns: u64) -> String {
    let path = format!(
        "{}/tests/fixtures/records/normal_read.json",
        env!("CARGO_MANIFEST_DIR")
    );
    let mut record: Record = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let step = &mut record.steps[0];
    step.name = "RandRead".to_owned();
    step.summary = "randread 4 KiB, 4 streams of depth 32".to_owned();
    step.plan = serde_json::Value::Null;
    (step.window_s, step.series) = (60.0, Vec::new());
    (step.depth.asked_count, step.depth.in_flight_mean) = (128, 128.0);
    let read = step.read.as_mut().unwrap();
    (read.ios_count, read.iops) = ((iops * 60.0) as u64, iops);
    (read.bytes_count, read.bytes_per_s) = (read.ios_count * 4096, iops * 4096.0);
    read.histogram = vec![(mean_ns, read.ios_count)];
    read.latency_ns = Latency {
        min: mean_ns,
        mean: mean_ns as f64,
        stddev: 0.0,
        p50: mean_ns,
        p90: mean_ns,
        p99: mean_ns,
        p99_9: mean_ns,
        p99_99: mean_ns,
        max: mean_ns,
        censored_count: 0,
        lower_bounds: Vec::new(),
    };
    let path = dir.join(name);
    std::fs::write(&path, serde_json::to_vec(&record).unwrap()).unwrap();
    path.display().to_string()
}

#[test]
fn published_latencies_that_do_not_close_raise_the_self_check() {
    let dir = scratch_dir();
    let sata2 = published(dir.path(), "sata2.json", 21_241.0, 2_000_000);
    let sata3 = published(dir.path(), "sata3.json", 68_073.0, 468_000);
    let (ran, comparison) = compare(&format!("{sata2} {sata3}"));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let doubts: Vec<&str> = (comparison.warnings.iter())
        .filter(|warning| warning.kind == "littles-law")
        .map(|warning| warning.text.as_str())
        .collect();
    assert_eq!(doubts.len(), 2, "{:?}", comparison.warnings);
    assert!(
        doubts[0].contains("42.48 in flight, but 128.00"),
        "{doubts:?}"
    );
    assert!(
        doubts[1].contains("31.86 in flight, but 128.00"),
        "{doubts:?}"
    );
    // The latencies that Little's law gives raise nothing.
    let closed2 = published(dir.path(), "closed2.json", 21_241.0, 6_026_081);
    let closed3 = published(dir.path(), "closed3.json", 68_073.0, 1_880_334);
    let (_, comparison) = compare(&format!("{closed2} {closed3}"));
    assert!(comparison.warnings.is_empty(), "{:?}", comparison.warnings);
}

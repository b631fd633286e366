//! `lanemark compare` on simulated devices, whose truth is known.

use crate::common::{Ran, run, start};
use crate::invariants::schema::findings;
use lanemark::record::{ComparedMetric, Comparison, ComparisonVerdict as Verdict, Outcome};

/// A comparison with JSON on stdout that reads back as it was written.
pub fn compare(words: &str) -> (Ran, Comparison) {
    let ran = run(&format!("compare {words} --format json --progress none"));
    let comparison = of(&ran);
    (ran, comparison)
}

#[track_caller]
fn of(ran: &Ran) -> Comparison {
    let value: serde_json::Value = serde_json::from_str(&ran.stdout)
        .unwrap_or_else(|error| panic!("{error} in:\n{}\n{}", ran.stdout, ran.stderr));
    let comparison: Comparison = serde_json::from_value(value.clone()).unwrap();
    assert_eq!(serde_json::to_value(&comparison).unwrap(), value);
    assert_eq!(comparison.kind, "comparison");
    comparison
}

/// A comparison that was refused: exit code and error, which is a record in JSON.
pub fn refused(words: &str) -> (i32, String) {
    let ran = run(&format!("compare {words} --format json --progress none"));
    (ran.code, ran.record().error.unwrap().text)
}

pub fn metric<'c>(comparison: &'c Comparison, step: usize, name: &str) -> &'c ComparedMetric {
    let metrics = &comparison.steps[step].metrics;
    metrics
        .iter()
        .find(|metric| metric.direction == "read" && metric.metric == name)
        .unwrap()
}

pub fn scratch_dir() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

#[test]
fn a_known_difference_of_5_us_is_found_with_its_interval() {
    let (ran, comparison) = compare(
        "sim:latency=95us..105us,seed=1 sim:latency=100us..110us,seed=2 --runtime 200ms --rounds 6 --precision none",
    );
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(comparison.design.rounds_done_count, 6);
    for name in ["mean", "p50", "p99"] {
        let against = &metric(&comparison, 0, name).against[0];
        let interval = (
            against.difference.low.unwrap(),
            against.difference.high.unwrap(),
        );
        assert!(
            interval.0 < 5_000.0 && 5_000.0 < interval.1,
            "{name}: {interval:?}"
        );
        assert!(interval.1 - interval.0 < 1_000.0, "{name}: {interval:?}");
        assert_eq!(against.verdict, Verdict::ABetter, "{name}");
    }
    let iops = &metric(&comparison, 0, "iops");
    assert_eq!(iops.against[0].verdict, Verdict::ABetter);
    assert!((iops.against[0].ratio.value.unwrap() - 100.0 / 105.0).abs() < 0.001);
    // Four windows a round: two a side, and each value is the mean of two.
    assert_eq!(comparison.sides[0].runs_count, 12);
    assert_eq!(iops.rounds[0].len(), 6);
    let names: Vec<&str> = comparison
        .confounders
        .iter()
        .map(|it| it.name.as_str())
        .collect();
    assert!(
        names.contains(&"device") && names.contains(&"serial"),
        "{names:?}"
    );
    assert!(!names.contains(&"backend"), "{names:?}");
    // Exact latency in virtual time has no busy time: absent, not 0.
    assert!(
        comparison.steps[0]
            .metrics
            .iter()
            .all(|metric| metric.metric != "busy")
    );
    let merged = &comparison.steps[0].sides[0].histograms[0];
    let count: u64 = merged.histogram.iter().map(|bucket| bucket.1).sum();
    let first = comparison.steps[0].sides[0]
        .first
        .read
        .as_ref()
        .unwrap()
        .ios_count;
    assert!(count > first * 11, "all windows are in it: {count} {first}");
}

#[test]
fn equal_devices_are_equal_and_narrow_intervals_end_the_rounds() {
    let words =
        "sim:latency=95us..105us,seed=1 sim:latency=95us..105us,seed=2 --runtime 200ms --rounds 20";
    let (ran, comparison) = compare(words);
    assert_eq!(ran.code, 0);
    assert_eq!(comparison.design.ended_by, "precision");
    assert_eq!(comparison.design.rounds_done_count, 8);
    for name in ["iops", "mean", "p50"] {
        let against = &metric(&comparison, 0, name).against[0];
        assert_eq!(against.verdict, Verdict::Equal, "{name}: {against:?}");
    }
    let text = run(&format!("compare {words} --progress none"));
    assert!(text.stdout.contains("equal ± 1 %"), "{}", text.stdout);
    assert!(
        text.stdout.lines().all(|line| line.chars().count() <= 80),
        "{}",
        text.stdout
    );
    let csv = run(&format!("compare {words} --progress none --format csv"));
    assert_eq!(csv.stdout.lines().count(), 7, "{}", csv.stdout);
}

#[test]
fn few_rounds_are_not_judged() {
    let noisy = "sim:latency=10us..190us";
    let sides = format!("{noisy},seed=1 {noisy},seed=2 --runtime 5ms --rounds 2");
    let (_, comparison) = compare(&sides);
    for metric in &comparison.steps[0].metrics {
        assert_eq!(metric.against[0].verdict, Verdict::NotJudged, "{metric:?}");
        assert!(metric.against[0].why.contains("too few rounds"));
        assert_eq!(metric.against[0].difference.low, None);
    }
    // One set of words, and none that nothing bears out.
    for format in ["text", "html"] {
        let ran = run(&format!(
            "compare {sides} --progress none --format {format}"
        ));
        for said in [
            "not judged: too few rounds for an interval",
            "was not judged: too few",
        ] {
            assert!(
                ran.stdout.contains(said),
                "{format}, {said}: {}",
                ran.stdout
            );
        }
        for not_said in ["none shown", "no difference", "is better in none"] {
            assert!(
                !ran.stdout.contains(not_said),
                "{format}, {not_said}: {}",
                ran.stdout
            );
        }
    }
}

#[test]
fn a_side_that_saturates_at_depth_16_is_found() {
    let dir = scratch_dir();
    let job = dir.path().join("depths.yaml");
    let depths = [1_u32, 4, 8, 16, 32, 64];
    let steps: Vec<String> = depths
        .iter()
        .map(|depth| format!("  - {{ name: depth {depth}, iodepth: {depth} }}"))
        .collect();
    std::fs::write(
        &job,
        format!(
            "defaults: {{ rw: randread, bs: 4k, runtime: 50ms }}\nsteps:\n{}\n",
            steps.join("\n")
        ),
    )
    .unwrap();
    let (ran, comparison) = compare(&format!(
        "sim:latency=100us,parallelism=16 sim:latency=100us,parallelism=64 --job {} --rounds 3",
        job.display()
    ));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let curve = &comparison.saturations[0];
    assert_eq!(curve.depths_count, depths.map(u64::from));
    assert_eq!(curve.sides[0].saturation_depth_count, Some(16));
    assert_eq!(
        curve.sides[1].saturation_depth_count, None,
        "still gains at 64"
    );
    assert!(
        comparison.conclusions[0].contains("saturates at depth 16"),
        "{:?}",
        comparison.conclusions
    );
    assert!(
        comparison.conclusions[1].contains("still gains at depth 64"),
        "{:?}",
        comparison.conclusions
    );
    // Equal up to 16, then twice and four times as fast: the geometric mean over six depths.
    let index = comparison
        .indices
        .iter()
        .find(|index| index.metric == "iops")
        .unwrap();
    let expected = (2.0_f64 * 4.0).powf(1.0 / 6.0);
    assert!(
        (index.against[0].ratio.value.unwrap() / expected - 1.0).abs() < 0.01,
        "{index:?}"
    );
    assert_eq!(index.against[0].verdict, Verdict::BBetter);
    // One drive, one serial: the latency at depth 1 is that of the way.
    assert!(
        comparison.conclusions[1].contains("for the same drive"),
        "{:?}",
        comparison.conclusions
    );
}

#[test]
fn a_side_that_fails_in_the_middle_leaves_the_finished_rounds() {
    // 10,000 I/Os a second, 220 ms a window, two windows a round.
    let (ran, comparison) = compare(
        "sim:latency=100us,seed=1 sim:latency=105us,seed=2,gone_after=14000 --runtime 200ms --rounds 6 --precision none",
    );
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert_eq!(comparison.status, Outcome::Failed);
    assert_eq!(comparison.design.ended_by, "failed");
    assert_eq!(comparison.design.rounds_done_count, 3);
    assert_eq!(metric(&comparison, 0, "mean").rounds[1].len(), 3);
    assert_eq!(
        metric(&comparison, 0, "mean").against[0].verdict,
        Verdict::ABetter
    );
    let error = comparison.error.unwrap();
    assert!(
        error.kind == "gone" && error.text.starts_with("B: "),
        "{error:?}"
    );
    // Before any round is whole there is nothing to show, and it is said.
    let (ran, comparison) =
        compare("sim:seed=1 sim:seed=2,gone_after=10 --runtime 200ms --rounds 6");
    assert_eq!((ran.code, comparison.steps.len()), (1, 0));
    assert!(comparison.conclusions[0].contains("was not judged"));
}

#[test]
fn a_signal_keeps_the_finished_rounds() {
    // Simulated windows are whole however busy the machine is; a thousand rounds take minutes.
    let child = start(
        "compare sim:latency=10us,seed=1 sim:latency=10us,seed=2 --runtime 1s --rounds 1000 --precision none",
    );
    std::thread::sleep(std::time::Duration::from_secs(4));
    crate::common::send(&child, "INT");
    let ran = Ran::of(&child.wait_with_output().unwrap());
    assert_eq!(ran.code, 130, "{}", ran.stderr);
    let comparison = of(&ran);
    assert_eq!(comparison.status, Outcome::Interrupted);
    assert!(comparison.design.rounds_done_count < 1000);
    assert!(
        comparison.design.rounds_done_count as usize
            <= comparison
                .steps
                .first()
                .map_or(0, |step| step.metrics[0].rounds[0].len())
    );
}

#[test]
fn members_and_a_volume_of_them() {
    let (ran, comparison) = compare(
        "--a sim:latency=100us,seed=1 --a sim:latency=400us,seed=2 --b sim:latency=100us,parallelism=1,seed=3 --runtime 100ms --rounds 3",
    );
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let aggregate = &comparison.aggregates[0];
    assert_eq!(aggregate.members.len(), 2);
    assert!(
        (aggregate.sum_iops - 12_500.0).abs() < 30.0,
        "{aggregate:?}"
    );
    // 2,500 of an average of 6,250.
    assert!(
        (aggregate.fairness_ratio - 0.4).abs() < 0.01,
        "{aggregate:?}"
    );
    let efficiency = aggregate.efficiency.unwrap();
    assert_eq!(efficiency.volume_index, 1);
    assert!(
        (efficiency.ratio.value.unwrap() - 0.8).abs() < 0.01,
        "{efficiency:?}"
    );
}

#[test]
fn what_cannot_be_compared_is_refused_at_once() {
    for (words, word) in [
        ("sim", "name two sides"),
        ("", "name two sides"),
        ("sim sim", "A and B are both sim"),
        ("sim null --device sim", "not by --device"),
        ("sim null --rounds 0", "--rounds"),
        ("sim null --precision 0%", "--precision"),
        ("sim null --cool-down 5", "--cool-down"),
        ("sim null --fail-if p99", "--fail-if"),
        ("sim null --accept device", "--accept"),
        ("sim@uring null", "uring"),
        ("sim null --backend-a nonsense", "no backend"),
        ("sim@sim null --backend-a sim", "two backends"),
        ("sim --a null --b null", "name two sides"),
        ("sim null --bs 1", "bs"),
        ("no-such-file sim", "no-such-file"),
        ("sim:errors=nonsense null", "nonsense"),
        ("--baseline no-such-file x", "no-such-file"),
    ] {
        let (code, text) = refused(words);
        assert_eq!(code, 2, "{words}: {text}");
        assert!(text.contains(word), "{words}: {text}");
    }
}

#[test]
fn writes_need_consent_on_each_side() {
    let dir = scratch_dir();
    let files = ["a", "b"].map(|name| {
        let path = dir.path().join(name);
        std::fs::write(&path, vec![7; 1 << 20]).unwrap();
        path.display().to_string()
    });
    let words = format!(
        "{} {} --rw randwrite --runtime 50ms --rounds 1",
        files[0], files[1]
    );
    assert_eq!(refused(&words).0, 3);
    let (code, text) = refused(&format!("{words} --allow-write {}", files[0]));
    assert_eq!(code, 3, "{text}");
    assert!(text.starts_with("B: "), "{text}");
    let both = format!(
        "{words} --cool-down 0s --allow-write {} --allow-write {}",
        files[0], files[1]
    );
    let (ran, comparison) = compare(&both);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(
        comparison.steps[0]
            .sides
            .iter()
            .all(|side| side.first.write.is_some())
    );
}

/// Forty windows of two sides: which one it is, of how many, and how long it still takes.
#[test]
fn progress_tells_the_window_the_side_and_the_time_left() {
    let dir = scratch_dir();
    let two = ["one", "two"].map(|name| {
        let path = dir.path().join(name);
        std::fs::File::create(&path)
            .unwrap()
            .set_len(1 << 20)
            .unwrap();
        path.display().to_string()
    });
    let ran = run(&format!(
        "compare {} --runtime 200ms --ramp_time 0s --rounds 2 --precision none --cool_down 0s --progress line",
        two.join(" ")
    ));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    for said in [
        "1/8 A, round 1: randread: done",
        "2/8 B, round 1: ",
        "5/8 B, round 2: ",
        "8/8 ",
    ] {
        assert!(ran.stderr.contains(said), "{said}: {}", ran.stderr);
    }
    assert!(ran.stderr.contains(" ETA "), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("note: 1 step on two sides"),
        "{}",
        ran.stderr
    );
}

/// Device by device nothing would match: sides of different size are told apart as wholes.
#[test]
fn sides_of_different_size_are_held_against_each_other_as_wholes() {
    let (_, comparison) = compare(
        "--a sim:seed=1 --a sim:seed=2 --b sim:seed=3 --runtime 10ms --ramp_time 0s --rounds 1",
    );
    let names: Vec<&str> = comparison
        .confounders
        .iter()
        .map(|it| it.name.as_str())
        .collect();
    assert!(names.contains(&"devices"), "{names:?}");
    assert!(names.len() < 8, "{names:?}");
    for confounder in &comparison.confounders {
        assert!(!confounder.name.contains("of device"), "{confounder:?}");
        assert!(
            confounder.values.iter().all(Option::is_some),
            "{confounder:?}"
        );
    }
    let device = comparison
        .confounders
        .iter()
        .find(|it| it.name == "device")
        .unwrap();
    assert_eq!(device.values[0].as_deref(), Some("sim:seed=1 + sim:seed=2"));
}

/// Every document that is written has a schema, and keeps to it.
#[test]
fn comparisons_lanes_and_devices_keep_to_their_schemas() {
    let dir = scratch_dir();
    let read = |words: &str| -> serde_json::Value {
        let ran = run(words);
        serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{words}: {error}"))
    };
    let saved = dir.path().join("a.json");
    run(&format!(
        "run --device sim --runtime 10ms -o {} --format json",
        saved.display()
    ));
    for (document, words) in [
        (
            "record",
            "run --device sim --runtime 10ms --progress none".to_owned(),
        ),
        (
            "comparison",
            "compare sim sim:seed=2 --runtime 10ms --rounds 1 --progress none".to_owned(),
        ),
        (
            "comparison",
            format!("compare {0} {0} --accept all", saved.display()),
        ),
        (
            "lanes",
            "lanes sim --measure --runtime 10ms --progress none".to_owned(),
        ),
        ("devices", "devices".to_owned()),
    ] {
        let schema = read(&format!("schema {document}"));
        let written = read(&format!("{words} --format json"));
        assert_eq!(findings(&schema, &written), Vec::<String>::new(), "{words}");
    }
    assert_eq!(read("schema"), read("schema record"));
}

//! `lanemark compare` over suites and jobs with sweeps: every step of the expanded plan on both sides.

use crate::common::run;
use crate::compare::{compare, metric, refused, scratch_dir};
use lanemark::record::ComparisonVerdict as Verdict;

const A: &str = "sim:latency=1ms,parallelism=16,seed=1";
/// Twice as slow at every depth.
const B: &str = "sim:latency=2ms,parallelism=16,seed=2";

#[test]
fn a_suite_is_compared_step_by_step_with_an_index_over_all() {
    let words = format!("{A} {B} --suite qdsweep --quick --rounds 3 --precision none");
    let (ran, comparison) = compare(&words);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    // Depths 1, 2, 4 … 256.
    assert_eq!(comparison.steps.len(), 9);
    for step in 0..9 {
        let iops = metric(&comparison, step, "iops");
        assert_eq!(iops.rounds[0].len(), 3);
        assert_eq!(iops.against[0].verdict, Verdict::ABetter, "{step}");
    }
    let index = comparison.indices.iter().find(|it| it.metric == "iops");
    let (index, ratio) = (index.unwrap(), index.unwrap().against[0].ratio);
    assert_eq!(index.steps_count, 9);
    assert!((ratio.value.unwrap() - 0.5).abs() < 0.01, "{ratio:?}");
    assert!(ratio.low.unwrap() <= 0.5 && 0.5 <= ratio.high.unwrap());
    // The saturation depth of both: the servers, on the grid of the suite.
    let sides = &comparison.saturations[0].sides;
    assert!(
        sides
            .iter()
            .all(|side| side.saturation_depth_count == Some(16))
    );
}

#[test]
fn how_long_it_takes_is_said_before_it_starts() {
    let ran = run(&format!(
        "compare {A} {B} --sweep iodepth=1,4 --runtime 100ms --ramp_time 0s --rounds 10"
    ));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let first = ran.stderr.lines().next().unwrap();
    assert!(
        first.contains("2 steps on two sides, 8 to 10 rounds of 8 windows: about 7 s to 8 s"),
        "{first}"
    );
}

#[test]
fn what_one_side_cannot_do_both_leave_out_by_name() {
    let slow = "sim:latency=1ms,parallelism=1";
    let words = format!("{slow} {slow},block=4k --suite bsweep --quick --read-only --rounds 2");
    let (ran, comparison) = compare(&words);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let names: Vec<&str> = comparison
        .steps
        .iter()
        .map(|step| step.name.as_str())
        .collect();
    let is_small = |name: &&str| {
        ["512", "1k", "2k"]
            .iter()
            .any(|size| name.ends_with(&format!("bs={size}")))
    };
    assert!(!names.iter().any(is_small), "{names:?}");
    assert!(names.iter().all(|name| name.contains("read")), "{names:?}");
    assert!(names.len() >= 10, "{names:?}");
    let said: Vec<&str> = comparison
        .warnings
        .iter()
        .filter(|warning| warning.kind == "step-left-out")
        .map(|warning| warning.text.as_str())
        .collect();
    assert!(said.iter().any(|text| text.contains("bs=512`")), "{said:?}");
    assert!(
        said.iter().any(|text| text.contains("--read-only")),
        "{said:?}"
    );
}

#[test]
fn repetitions_give_way_to_rounds() {
    let (_, comparison) = compare(&format!("{A} {B} --repeat 3 --runtime 50ms --rounds 2"));
    assert_eq!(comparison.steps.len(), 1);
}

#[test]
fn what_has_no_place_between_rounds_is_refused_by_name() {
    let dir = scratch_dir();
    for (key, yaml) in [
        (
            "steady",
            "steady: { of: iops, track: [a] }\nsteps: [{ name: a }]\n",
        ),
        ("precondition", "precondition: 1\nsteps: [{ name: a }]\n"),
        ("expect", "steps: [{ name: a, expect: 'p99<1ms' }]\n"),
        (
            "steadystate",
            "defaults: { steadystate: 'iops:2%', steadystate_duration: 2s, runtime: 4s }\nsteps: [{ name: a }]\n",
        ),
    ] {
        let file = dir.path().join(format!("{key}.yaml"));
        std::fs::write(&file, yaml).unwrap();
        let (code, text) = refused(&format!("{A} {B} --job {}", file.display()));
        assert_eq!(code, 2, "{key}: {text}");
        assert!(
            text.contains(&format!("cannot take {key}:")),
            "{key}: {text}"
        );
    }
    let (code, text) = refused(&format!("{A} {B} --suite no-such-suite"));
    assert_eq!(code, 2);
    assert!(text.contains("there is no suite `no-such-suite`"), "{text}");
    let (code, text) = refused(&format!("{A} {B} --claim"));
    assert_eq!(code, 2);
    assert!(text.contains("DEVICE@spdk"), "{text}");
    let (code, text) = refused("--claim sim@spdk /dev/null@uring");
    assert_eq!(code, 2, "{text}");
    assert!(text.starts_with("A: "), "{text}");
    let (code, text) = refused(&format!("{A} {B} --suite qdsweep --only no-such-step"));
    assert_eq!(code, 2);
    assert!(text.contains("no-such-step"), "{text}");
}

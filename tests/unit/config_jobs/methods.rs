//! Preconditioning, estimates, rounds, and what is left out by name.

use super::support::{device, disk, disk_4kn, plan_on};
use lanemark::config::{Choices, ConfigError, Job, Plan, plan_chosen};
use lanemark::units::Nanos;
use lanemark::workload::OpMix;

fn names(plan: &Plan) -> Vec<&str> {
    plan.steps.iter().map(|step| step.name.as_str()).collect()
}

fn says(yaml: &str) -> String {
    plan_on(yaml, &[disk()]).unwrap_err().to_string()
}

#[test]
fn preconditioning_is_a_step_that_only_its_own_keys_shape() {
    let yaml = "
precondition: 2
defaults: { runtime: 1s, iodepth: 4 }
steps: [{ name: read, rw: randread }]
";
    let plan = plan_on(yaml, &[disk()]).unwrap();
    assert_eq!(names(&plan), ["precondition", "read"]);
    let stream = &plan.steps[0].streams[0];
    assert_eq!(stream.ops, OpMix::Write);
    assert_eq!(stream.sizes[0].blocks * 512, 128 << 10);
    assert_eq!(
        stream.quota.blocks,
        Some(2 * (1 << 40) / 512),
        "twice the capacity"
    );
    assert_eq!(plan.steps[0].limits.runtime, None);
    assert!(plan.steps[0].writes(), "so that it needs consent");
    let estimate = plan.estimate.clone();
    assert!((estimate.most_written_bytes - 2.0 * (1_u64 << 40) as f64).abs() < 1.0);
    // A first look does without.
    let mut job = Job::from_yaml(yaml, "job.yaml").unwrap();
    job.quick = Some(Nanos(200_000_000));
    let quick = lanemark::config::plan(&job, &[disk()], 1).unwrap();
    assert_eq!(names(&quick), ["read"]);
    assert_eq!(quick.steps[0].limits.runtime, Some(Nanos(200_000_000)));
    assert_eq!(quick.notes[0].kind, "quick");
}

#[test]
fn an_estimate_counts_time_and_writes() {
    let yaml = "
defaults: { runtime: 10s, ramp_time: 2s, cool_down: 3s }
steps:
  - { name: a, rw: randread }
  - { name: b, rw: randrw, rwmixread: 75, bs: 4k, rate_iops: 1000, iodepth: 8 }
";
    let plan = plan_on(yaml, &[disk()]).unwrap();
    let estimate = plan.estimate.clone();
    assert_eq!(estimate.steps_s, [15.0, 15.0]);
    assert!(estimate.is_exact);
    let wanted = 1000.0 * 4096.0 * 12.0 * 0.25;
    assert!(
        (estimate.most_written_bytes - wanted).abs() < 1.0,
        "{estimate:?}"
    );
    assert_eq!(estimate.to_string(), "30 s; writes 12 MB");
    // Zeros are written, though they are not sent; a trim writes nothing.
    let written = |rw: &str| {
        let step = format!("{{ name: a, rw: {rw}, bs: 4k, number_ios: 10 }}");
        let plan = plan_on(&format!("steps: [{step}]"), &[disk()]).unwrap();
        plan.estimate.most_written_bytes
    };
    assert_eq!(
        (written("randwritezeroes"), written("trim")),
        (40_960.0, 0.0)
    );
    let rounds = "steady: { rounds: 25 }\nsteps: [{ name: a, rw: randwrite, runtime: 60s, ramp_time: 0s }]\n";
    let plan = plan_on(rounds, &[disk()]).unwrap();
    let estimate = plan.estimate.clone();
    assert_eq!((estimate.least_s, estimate.most_s), (300.0, 1500.0));
    assert!(
        !estimate.is_exact,
        "what a closed loop writes is not known before"
    );
    assert!(
        estimate
            .to_string()
            .starts_with("about 5 min to 25 min; writes about "),
        "{estimate}"
    );
}

#[test]
fn a_4kn_device_leaves_small_blocks_out_by_name() {
    let yaml =
        "steps: [{ name: random read, rw: randread, sweep: { bs: [512, 1k, 2k, 4k, 8k] } }]\n";
    let plan = plan_on(yaml, &[disk_4kn()]).unwrap();
    assert_eq!(names(&plan), ["random read bs=4k", "random read bs=8k"]);
    let left: Vec<&str> = plan
        .left_out
        .iter()
        .map(|left| left.step.as_str())
        .collect();
    assert_eq!(
        left,
        [
            "random read bs=512",
            "random read bs=1k",
            "random read bs=2k"
        ]
    );
    for left in &plan.left_out {
        assert!(left.why.contains("multiples of 4096 bytes"), "{}", left.why);
    }
    // All of them gone is a refusal, and so is a plain step.
    let none = "steps: [{ sweep: { bs: [512, 1k] } }]\n";
    assert!(matches!(
        plan_on(none, &[disk_4kn()]),
        Err(ConfigError::Unfit { .. })
    ));
    let plain = "steps: [{ bs: 512 }, { name: b, bs: 4k }]\n";
    assert!(matches!(
        plan_on(plain, &[disk_4kn()]),
        Err(ConfigError::Unfit { .. })
    ));
    let job = Job::from_yaml(plain, "job.yaml").unwrap();
    let lenient = Choices {
        lenient: true,
        ..Choices::default()
    };
    let plan = plan_chosen(&job, &[disk_4kn()], 1, &lenient).unwrap();
    assert_eq!(names(&plan), ["b"]);
}

#[test]
fn a_mix_that_lost_shares_says_which() {
    let yaml = "steps: [{ bssplit: 512/10:1k/5:4k/85 }]\n";
    let plan = plan_on(yaml, &[disk_4kn()]).unwrap();
    let dropped = plan.steps[0].origin.dropped.concat();
    assert!(
        dropped.contains("512 B") && dropped.contains("1 KiB"),
        "{dropped}"
    );
    assert!(
        plan_on(yaml, &[disk()]).unwrap().steps[0]
            .origin
            .dropped
            .is_empty()
    );
}

#[test]
fn choices_leave_out_by_name() {
    let yaml = "
steps:
  - { name: whole, rw: read, size: 100G }
  - { name: part, rw: read, size: 25%, instead_of: whole }
  - { name: writes, rw: write }
  - { name: scale, sweep: { reactors: [1, 2, 4] } }
";
    let job = Job::from_yaml(yaml, "job.yaml").unwrap();
    let choices = Choices {
        read_only: true,
        lenient: true,
        cpus_count: Some(2),
        ..Choices::default()
    };
    let large = plan_chosen(&job, &[disk()], 1, &choices).unwrap();
    assert_eq!(
        names(&large),
        ["whole", "scale reactors=1", "scale reactors=2"]
    );
    let left: Vec<&str> = large
        .left_out
        .iter()
        .map(|left| left.step.as_str())
        .collect();
    assert_eq!(left, ["writes", "scale reactors=4"]);
    let small = [device("small", 512, 1 << 30)];
    let small = plan_chosen(&job, &small, 1, &choices).unwrap();
    assert_eq!(small.steps[0].name, "part");
    let scaled = small
        .notes
        .iter()
        .find(|note| note.kind == "scaled")
        .unwrap();
    assert!(
        scaled.text.contains("part is run instead of whole"),
        "{}",
        scaled.text
    );
    let only = |name: &str| {
        let choices = Choices {
            only: vec![name.to_owned()],
            ..Choices::default()
        };
        plan_chosen(&job, &[disk()], 1, &choices)
    };
    assert_eq!(names(&only("scale").unwrap()).len(), 3);
    assert_eq!(
        names(&only("scale reactors=2").unwrap()),
        ["scale reactors=2"]
    );
    let error = only("bogus").unwrap_err().to_string();
    assert!(
        error.contains("no step `bogus`") && error.contains("whole, part"),
        "{error}"
    );
}

#[test]
fn rounds_differ_in_name_and_in_random_numbers() {
    let plan = plan_on("steady: {}\nsteps: [{ name: a }]\n", &[disk()]).unwrap();
    let rounds = plan.rounds.as_ref().unwrap();
    assert_eq!((rounds.window_count, rounds.most_count), (5, 25));
    assert_eq!((rounds.range_pct, rounds.slope_pct), (20.0, 10.0));
    assert_eq!(rounds.track, ["a"]);
    let (one, two) = (plan.steps[0].in_round(0), plan.steps[0].in_round(1));
    assert_eq!(
        (one.name.as_str(), two.name.as_str()),
        ("a, round 1", "a, round 2")
    );
    assert_ne!(one.streams[0].seed, two.streams[0].seed);
}

#[test]
fn what_is_judged_names_steps_that_exist() {
    let cases = [
        (
            "steady: { track: [b] }",
            "job.yaml:1: steady.track: there is no step `b`",
        ),
        (
            "steady: { window: 2 }",
            "job.yaml:1: steady.window: `2` is too few",
        ),
        (
            "steady: { rounds: 4 }",
            "job.yaml:1: steady.rounds: `4` rounds never fill",
        ),
        (
            "steady: { windows: 4 }",
            "job.yaml:1: windows: unknown key; did you mean `window`?",
        ),
        (
            "derive: [{ name: x, as: men }]",
            "job.yaml:1: derive.as: `men` is not known",
        ),
        (
            "derive: [{ as: mean }]",
            "job.yaml:1: derive: a derived figure needs `name`",
        ),
        (
            "derive: [{ name: x, as: mean, from: [z] }]",
            "job.yaml:1: derive.from: there is no step `z`",
        ),
        (
            "derive: [{ name: x, as: ratio, from: [a] }]",
            "job.yaml:1: derive: a derived figure needs `from",
        ),
        (
            "defaults: { steadystate: 'iops:2%' }",
            "job.yaml:1: steadystate: it needs `steadystate_duration`",
        ),
        (
            "defaults: { steadystate: 'lat:2%' }",
            "job.yaml:1: steadystate: `lat:2%` is not a criterion",
        ),
        (
            "defaults: { steadystate_duration: 5s }",
            "job.yaml:1: steadystate_duration: it has no effect",
        ),
    ];
    for (line, wanted) in cases {
        let said = says(&format!("{line}\nsteps: [{{ name: a }}]\n"));
        assert!(said.starts_with(wanted), "{line}\n{said}");
    }
}

//! Sweeps, repetitions, includes, variables and settings.

use super::support::{disk, plan_on};
use lanemark::config::{ConfigError, Job, Loader, Plan, plan};
use lanemark::units::Nanos;

fn names(plan: &Plan) -> Vec<&str> {
    plan.steps.iter().map(|step| step.name.as_str()).collect()
}

fn says(yaml: &str) -> String {
    plan_on(yaml, &[disk()]).unwrap_err().to_string()
}

/// A job with variables and settings instead of the environment.
fn loaded(yaml: &str, variables: &[(&str, &str)], sets: &[&str]) -> Result<Job, ConfigError> {
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    let variable = |name: &str| {
        let found = variables.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    let loader = Loader {
        variable: &variable,
        sets: &sets,
        ..Loader::default()
    };
    loader.from_text(yaml, "job.yaml")
}

#[test]
fn a_sweep_is_a_cross_product_in_the_order_written() {
    let yaml = "
steps:
  - name: read
    rw: randread
    sweep: { bs: [4k, 8k], iodepth: [1, 2, 4] }
  - { rw: randwrite, bs: 4k }
";
    let plan = plan_on(yaml, &[disk()]).unwrap();
    assert_eq!(
        names(&plan),
        [
            "read bs=4k iodepth=1",
            "read bs=4k iodepth=2",
            "read bs=4k iodepth=4",
            "read bs=8k iodepth=1",
            "read bs=8k iodepth=2",
            "read bs=8k iodepth=4",
            "randwrite",
        ]
    );
    let shape: Vec<_> = plan.steps[..6]
        .iter()
        .map(|step| (step.streams[0].sizes[0].blocks, step.streams[0].depth))
        .collect();
    assert_eq!(shape, [(8, 1), (8, 2), (8, 4), (16, 1), (16, 2), (16, 4)]);
    let origin = &plan.steps[4].origin;
    assert_eq!(origin.step, "read");
    let point = [("bs", "8k"), ("iodepth", "2")];
    assert_eq!(
        origin.point,
        point.map(|(k, v)| (k.to_owned(), v.to_owned()))
    );
    // Each point has random numbers of its own.
    assert_ne!(plan.steps[0].streams[0].seed, plan.steps[1].streams[0].seed);
}

#[test]
fn any_key_can_be_swept_streams_too_and_names_take_values() {
    let yaml = "
defaults: { sweep: { streams: [1, 2] } }
steps:
  - { name: 'all {rw} x{streams}', sweep: { rw: [read, randrw], streams: [2, 4] } }
  - { name: plain, rw: read }
  - { name: batch, iodepth: 8, sweep: { batch.submit: [1, 8], percentage_random: [50] } }
";
    let plan = plan_on(yaml, &[disk()]).unwrap();
    assert_eq!(
        names(&plan),
        [
            "all read x2",
            "all read x4",
            "all randrw x2",
            "all randrw x4",
            "plain streams=1",
            "plain streams=2",
            "batch batch.submit=1 percentage_random=50",
            "batch batch.submit=8 percentage_random=50",
        ]
    );
    assert_eq!(plan.steps[3].streams.len(), 4);
    assert_eq!(plan.steps[6].batch.submit, 1);
}

#[test]
fn repetitions_go_through_the_whole_sweep_each_time() {
    let yaml = "
steps:
  - { name: a, repeat: 2, sweep: { iodepth: [1, 2] } }
";
    let plan = plan_on(yaml, &[disk()]).unwrap();
    assert_eq!(
        names(&plan),
        [
            "a iodepth=1 #1",
            "a iodepth=2 #1",
            "a iodepth=1 #2",
            "a iodepth=2 #2"
        ]
    );
    let passes: Vec<u32> = plan
        .steps
        .iter()
        .map(|step| step.origin.pass_index)
        .collect();
    assert_eq!(passes, [0, 0, 1, 1]);
}

#[test]
fn what_is_wrong_with_a_sweep_is_said_at_its_place() {
    let cases = [
        (
            "steps:\n  - rw: read\n    sweep:\n      iodpth: [1]\n",
            "job.yaml:4: sweep.iodpth: unknown key; did you mean `iodepth`?",
        ),
        (
            "steps:\n  - rw: read\n    sweep:\n      iodepth:\n        - 1\n        - 0\n",
            "job.yaml:6: iodepth: `0` is less than 1",
        ),
        (
            "steps:\n  - iodepth: 4\n    sweep: { iodepth: [1] }\n",
            "job.yaml:3: sweep.iodepth: the step also fixes `iodepth`",
        ),
        (
            "steps:\n  - bssplit: 4k/50:8k/50\n    sweep: { bs: [4k] }\n",
            "job.yaml:3: sweep.bs: the step also fixes `bssplit`",
        ),
        (
            "steps:\n  - sweep: { iodepth: [1, 2, 1] }\n",
            "job.yaml:2: sweep.iodepth: `1` stands twice",
        ),
        (
            "steps:\n  - repeat: 0\n",
            "job.yaml:2: repeat: `0` is less than 1",
        ),
        (
            "steps:\n  - sweep: { iodepth: [] }\n",
            "job.yaml:2: iodepth: the list is empty",
        ),
        (
            "steps:\n  - { name: 'a iodepth=1' }\n  - { name: a, sweep: { iodepth: [1] } }\n",
            "job.yaml:3: name: `a iodepth=1` names two steps",
        ),
        (
            "precondition: { rw: read }\nsteps: [{}]\n",
            "job.yaml:1: rw: preconditioning writes",
        ),
        (
            "steps: [{ instead_of: b }]\n",
            "job.yaml:1: instead_of: there is no other step `b`",
        ),
    ];
    for (yaml, wanted) in cases {
        let said = says(yaml);
        assert!(said.starts_with(wanted), "{yaml}\n{said}");
    }
}

#[test]
fn a_product_of_millions_is_refused_before_it_is_built() {
    let values: Vec<String> = (1..=1000).map(|n| n.to_string()).collect();
    let list = values.join(",");
    let yaml = format!(
        "steps:\n  - repeat: 1000\n    sweep: {{ iodepth: [{list}], number_ios: [{list}], randseed: [{list}] }}\n"
    );
    let said = says(&yaml);
    assert!(said.contains("1000000000000 steps"), "{said}");
    assert!(said.contains("at most 10000"), "{said}");
}

#[test]
fn flags_sweep_too_and_never_silently_undo_a_sweep() {
    use lanemark::cli::{JobFlags, RunArgs, job_from_flags};
    let args = |keys: JobFlags| RunArgs {
        keys,
        ..RunArgs::default()
    };
    let swept = job_from_flags(
        &args(JobFlags {
            sweep: vec!["iodepth=1,4".to_owned(), "bs=4k,8k".to_owned()],
            repeat: Some("2".to_owned()),
            ..JobFlags::default()
        }),
        None,
    )
    .unwrap();
    assert_eq!(plan(&swept, &[disk()], 1).unwrap().steps.len(), 8);
    let file = Job::from_yaml("steps: [{ sweep: { iodepth: [1, 2] } }]", "job.yaml").unwrap();
    let keys = JobFlags {
        iodepth: Some("4".to_owned()),
        ..JobFlags::default()
    };
    let error = job_from_flags(&args(keys), Some(file)).unwrap_err();
    assert!(
        error.to_string().contains("--iodepth overrides it"),
        "{error}"
    );
}

#[test]
fn variables_come_from_the_environment_and_from_set() {
    let yaml = "
device: ${DEV}
defaults: { runtime: '${TIME:-3s}' }
steps:
  - { name: 'at ${DEPTH}', iodepth: '${DEPTH}' }
";
    let job = loaded(yaml, &[("DEV", "/dev/a"), ("DEPTH", "4")], &["DEPTH=8"]).unwrap();
    assert_eq!(job.device_names().unwrap(), ["/dev/a"]);
    let plan = plan(&job, &[disk()], 1).unwrap();
    assert_eq!(plan.steps[0].name, "at 8");
    assert_eq!(plan.steps[0].streams[0].depth, 8);
    assert_eq!(plan.steps[0].limits.runtime, Some(Nanos::from_s(3)));
    let error = loaded(yaml, &[("DEV", "/dev/a")], &[])
        .unwrap_err()
        .to_string();
    assert!(error.starts_with("job.yaml:5: "), "{error}");
    assert!(error.contains("the variable DEPTH is not set"), "{error}");
}

#[test]
fn set_reaches_defaults_and_one_step() {
    let yaml = "
steps:
  - { name: one, iodepth: 2 }
  - { name: two.b }
";
    let sets = [
        "iodepth=4",
        "two.b.batch.submit=2",
        "two.b.bs=8k",
        "runtime=1s",
        "device=x",
    ];
    let job = loaded(yaml, &[], &sets).unwrap();
    assert_eq!(job.device_names().unwrap(), ["x"]);
    let plan = plan(&job, &[disk()], 1).unwrap();
    let depths: Vec<u32> = plan
        .steps
        .iter()
        .map(|step| step.streams[0].depth)
        .collect();
    assert_eq!(depths, [2, 4], "a default gives way to the step");
    assert_eq!(plan.steps[1].batch.submit, 2);
    assert_eq!(plan.steps[1].streams[0].sizes[0].blocks, 16);
    for (set, wanted) in [
        ("bogus=1", "--set bogus: unknown key; no ${bogus}"),
        ("one.iodpth=1", "did you mean `iodepth`?"),
        ("iodepth=0", "--set iodepth: `0` is less than 1"),
        ("iodepth", "write --set NAME=VALUE"),
    ] {
        let error = loaded(yaml, &[], &[set]).unwrap_err().to_string();
        assert!(error.contains(wanted), "{set}: {error}");
    }
}

/// A default that gives way in every step would change nothing, and nobody would know.
#[test]
fn a_set_that_no_step_takes_is_refused() {
    let yaml = "
device: x
steps:
  - { name: one, iodepth: 2, bs: 8k }
  - { name: two, rw: randread, sweep: { iodepth: [1, 2] } }
";
    let error = loaded(yaml, &[], &["iodepth=4"]).unwrap_err().to_string();
    assert!(
        error.contains("--set iodepth: every step gives it itself"),
        "{error}"
    );
    assert!(error.contains("--set STEP.iodepth=4"), "{error}");
    for taken in ["bs=4k", "rw=read", "one.iodepth=4", "runtime=1s"] {
        assert!(loaded(yaml, &[], &[taken]).is_ok(), "{taken}");
    }
}

/// A folder of job files.
fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    dir
}

#[test]
fn includes_are_relative_and_give_way() {
    let dir = folder(&[
        (
            "sub/job.yaml",
            "include: ../base.yaml\ndefaults: { bs: 8k }\nsteps: [{ name: own }]\n",
        ),
        (
            "base.yaml",
            "include: [deep/more.yaml]\nname: base\ndefaults: { bs: 4k, iodepth: 7 }\nsteps: [{ name: base }]\n",
        ),
        ("deep/more.yaml", "steps: [{ name: deepest, rw: read }]\n"),
    ]);
    let job = Job::load(&dir.path().join("sub/job.yaml")).unwrap();
    let plan = plan(&job, &[disk()], 1).unwrap();
    assert_eq!(plan.name, "base");
    assert_eq!(names(&plan), ["deepest", "base", "own"]);
    for step in &plan.steps {
        assert_eq!(
            (step.streams[0].depth, step.streams[0].sizes[0].blocks),
            (7, 16)
        );
    }
}

#[test]
fn an_error_in_an_included_file_names_that_file_and_line() {
    let dir = folder(&[
        ("job.yaml", "include: base.yaml\nsteps: [{}]\n"),
        (
            "base.yaml",
            "# a comment\nsteps:\n  - name: a\n    iodepth: 0\n",
        ),
    ]);
    let error = Job::load(&dir.path().join("job.yaml")).unwrap_err();
    let said = error.to_string();
    assert!(said.contains("base.yaml:4: iodepth: `0`"), "{said}");
    // One that only shows when the job is planned.
    std::fs::write(
        dir.path().join("base.yaml"),
        "steps:\n  - name: a\n    bs: 1000\n",
    )
    .unwrap();
    let job = Job::load(&dir.path().join("job.yaml")).unwrap();
    let said = plan(&job, &[disk()], 1).unwrap_err().to_string();
    assert!(said.contains("base.yaml:3: bs: "), "{said}");
}

#[test]
fn circles_depth_and_missing_files_are_refused_at_the_include() {
    let dir = folder(&[
        ("a.yaml", "steps: [{}]\ninclude: b.yaml\n"),
        ("b.yaml", "include: ./a.yaml\n"),
        ("lost.yaml", "steps: [{}]\ninclude: nowhere.yaml\n"),
    ]);
    let load = |name: &str| Job::load(&dir.path().join(name)).unwrap_err().to_string();
    let circle = load("a.yaml");
    assert!(
        circle.contains("b.yaml:1: include: the files include each other"),
        "{circle}"
    );
    let lost = load("lost.yaml");
    assert!(lost.contains("lost.yaml:2: include: cannot read"), "{lost}");
    for n in 0..12 {
        let text = format!("include: {}.yaml\nsteps: [{{}}]\n", n + 1);
        std::fs::write(dir.path().join(format!("{n}.yaml")), text).unwrap();
    }
    let deep = load("0.yaml");
    assert!(
        deep.contains("7.yaml:1: include: files may include files 8 deep"),
        "{deep}"
    );
}

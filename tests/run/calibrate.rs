//! `lanemark calibrate`, and the warning that its figures feed.

use crate::common::{Ran, lanemark, run};
use lanemark::config::{BackendChoice, Job, plan, step_json};
use lanemark::reactor::Control;
use lanemark::session::{Opened, Session, Setup, Silent};
use lanemark::sys::clock::MachineClock;
use lanemark::sys::cpu::AllowedCpus;
use lanemark::sysfs::Sysfs;
use std::sync::Arc;

fn scratch_dir() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

#[test]
fn every_stage_has_a_price() {
    let dir = scratch_dir();
    let output = lanemark("calibrate --format json")
        .current_dir(dir.path())
        .output()
        .unwrap();
    let ran = Ran::of(&output);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let found: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(found["schema_version"], 1);
    let stages = found["stages"].as_array().unwrap();
    for stage in stages {
        let ns = |key: &str| stage[key].as_f64().unwrap();
        // Submit and reap are differences of two readings: on a busy machine one may come out as nothing.
        let is_difference = stage["stage"].as_str().unwrap().contains("at a time");
        assert!(ns("min_ns_per_io") > 0.0 || is_difference, "{stage}");
        assert!(ns("min_ns_per_io") <= ns("ns_per_io"), "{stage}");
        assert!(ns("ns_per_io") <= ns("max_ns_per_io"), "{stage}");
    }
    let counted = stages.iter().any(|s| !s["instructions_per_io"].is_null());
    assert_eq!(counted, found["instructions_missing"].is_null());
    let has = |backend: Option<&str>, word: &str| {
        stages.iter().any(|stage| {
            stage["backend"].as_str() == backend && stage["stage"].as_str().unwrap().contains(word)
        })
    };
    for word in [
        "clock",
        "histogram",
        "generator",
        "depth 1,",
        "depth 32,",
        "depth 128,",
    ] {
        assert!(has(None, word), "{word}");
    }
    for backend in ["null", "uring"] {
        for word in ["submit, 1 ", "submit, 32 ", "reap, 1 ", "reap, 32 "] {
            assert!(has(Some(backend), word), "{backend} {word}");
        }
    }
    assert!(found["latencies"][0]["p50_ns"].as_u64().unwrap() > 0);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn what_cannot_be_priced_is_refused() {
    for words in [
        "calibrate --device sim",
        "calibrate --cpus 0-1",
        "calibrate --cpus 4095",
        "calibrate --device no-such-file",
    ] {
        let ran = run(&format!("{words} --format json"));
        assert_eq!(ran.code, 2, "{words}: {}", ran.stderr);
        assert!(ran.record().error.is_some(), "{words}");
    }
}

/// Kinds of warnings of one short step on a device, with the engine's cost as given.
fn warnings(device: &str, tool_cost_ns: f64) -> Vec<String> {
    let sysfs = Sysfs::host();
    let control = Arc::new(Control::default());
    let mut setup = Setup {
        control: &control,
        observer: &mut Silent,
        dry_run: false,
    };
    let opened = Opened::open(&[device], BackendChoice::Auto, &sysfs, &mut setup).unwrap();
    let job = Job::from_yaml(
        &format!(
            "{{device: '{device}', steps: [{{rw: randread, bs: 4k, iodepth: 1, runtime: 100ms, ramp_time: 0s}}]}}"
        ),
        "test",
    )
    .unwrap();
    let plan = plan(&job, &opened.facts(), 1).unwrap();
    let session = Session {
        clock: MachineClock::new(&sysfs),
        sysfs,
        allowed: AllowedCpus::at_start().unwrap(),
        control,
        tool_cost_ns: Some(tool_cost_ns),
    };
    let json = step_json(&plan.steps[0], &plan.devices);
    let step = session
        .run_step(&opened, &plan.steps[0], json, (1, 1), &mut Silent)
        .unwrap();
    step.warnings
        .into_iter()
        .map(|warning| warning.kind)
        .collect()
}

#[test]
fn a_device_too_fast_for_the_tool_is_flagged_and_the_null_device_is_not() {
    let dir = scratch_dir();
    let file = format!("scratch:size=4M,dir={}", dir.path().display());
    // No device answers in 20 ns, and none takes a second for its median I/O.
    let is_flagged =
        |device: &str, cost_ns| warnings(device, cost_ns).contains(&"tool-cost".to_owned());
    assert!(is_flagged(&file, 1e9));
    assert!(!is_flagged(&file, 1.0));
    assert!(!is_flagged("null", 1e9));
}

//! Rounds until steady, steps that end early, and runs that go on where they stopped.

use crate::common::{lanemark, run, run_json};
use crate::suites::{DEVICE, figure};
use lanemark::record::{Outcome, Record};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Two steady cells and one that never is.
const ROUNDS: &str = "
name: rounds
defaults: { runtime: 20ms, ramp_time: 0s, iodepth: 4 }
steps:
  - { name: read, rw: randread }
  - { name: write, rw: randwrite }
steady: { of: iops }
derive:
  - { name: in the window, as: mean, by: step }
";

fn job(dir: &Path, text: &str) -> String {
    let path = dir.join("job.yaml");
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

#[test]
fn rounds_end_when_all_tracked_steps_are_steady_and_at_the_most_otherwise() {
    let dir = tempfile::tempdir().unwrap();
    let job = job(dir.path(), ROUNDS);
    let (ran, record) = run_json(&format!("run {job} --device sim:latency=100us"));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let steady = record.steady.as_ref().unwrap();
    assert!(steady.is_attained);
    assert_eq!((steady.samples_count, record.steps.len()), (5, 10));
    assert_eq!(record.steps[9].name, "write, round 5");
    assert_eq!(record.steps[9].origin.round_index, Some(4));
    let derived = figure(&record, "in the window", Some("read"));
    assert_eq!(derived.steps.len(), 5);
    // A device that never answers alike: 0.02 s hold about 40 I/Os of 0.1 to 4 ms.
    let wild = "sim:latency=1us..8ms,parallelism=1,seed=3";
    let (ran, record) = run_json(&format!("run {job} --device {wild} --set runtime=20ms"));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let steady = record.steady.as_ref().unwrap();
    assert!(!steady.is_attained, "{steady:?}");
    assert_eq!((steady.samples_count, record.steps.len()), (25, 50));
    let warning = record
        .warnings
        .iter()
        .find(|w| w.kind == "steady-state-not-attained");
    assert!(warning.is_some(), "{:?}", record.warnings);
    let text = run(&format!("run {job} --device {wild} --progress none"));
    let words: Vec<&str> = text.stdout.split_whitespace().collect();
    assert!(
        words.join(" ").contains("NOT attained after 25 samples"),
        "{}",
        text.stdout
    );
}

#[test]
fn fio_s_criterion_ends_a_step_early_or_lets_it_run() {
    let words = "--steadystate iops:1% --steadystate_duration 4s --ramp_time 0s --iodepth 4";
    let (ran, record) = run_json(&format!(
        "run {words} --runtime 60s --device sim:latency=1ms,parallelism=4"
    ));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let step = &record.steps[0];
    let steady = step.steady.as_ref().unwrap();
    assert!(
        steady.is_attained && steady.definition == "fio",
        "{steady:?}"
    );
    assert!((4.0..5.5).contains(&step.window_s), "{}", step.window_s);
    assert_eq!(step.status, Outcome::Finished);
    // A stall of half a second in the fourth second: the window has to be free of it.
    let stalled = "sim:latency=1ms,parallelism=4,stall=3s+500ms";
    let (_, record) = run_json(&format!("run {words} --runtime 60s --device {stalled}"));
    let steady = record.steps[0].steady.as_ref().unwrap();
    assert_eq!(steady.cells[0].window_index, Some(4), "{steady:?}");
    let wild = "sim:latency=1us..400ms,parallelism=1";
    let (_, record) = run_json(&format!("run {words} --runtime 12s --device {wild}"));
    assert!(!record.steps[0].steady.as_ref().unwrap().is_attained);
    assert!((record.steps[0].window_s - 12.0).abs() < 0.5);
    assert!(
        record
            .warnings
            .iter()
            .any(|w| w.kind == "steady-state-not-attained")
    );
}

/// Real time, so that there is a middle to be killed in.
const SLOW_JOB: &str = "
name: slow
defaults: { runtime: 300ms, ramp_time: 0s }
steps:
  - { name: first, sweep: { iodepth: [1, 2, 4] } }
  - { name: second, rw: read, sweep: { iodepth: [1, 2, 4] } }
";

fn step_files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = std::fs::read_dir(folder.join("steps"))
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "json")
        })
        .map(|path| {
            (
                path.file_name().unwrap().to_string_lossy().into_owned(),
                std::fs::read(&path).unwrap(),
            )
        })
        .collect();
    files.sort();
    files
}

/// Kills the process that measures and the one that waits for it: neither can say a word.
fn kill_both(child: &mut Child) {
    let pid = child.id();
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    for worker in children.split_whitespace() {
        let killed = Command::new("kill").args(["-s", "KILL", worker]).status();
        assert!(killed.unwrap().success());
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_run_that_was_killed_goes_on_where_it_stopped() {
    let dir = tempfile::tempdir().unwrap();
    let job = job(dir.path(), SLOW_JOB);
    let folder = dir.path().join("kept");
    let words = format!(
        "run {job} --device null --output-dir {} --progress none",
        folder.display()
    );
    let mut child = lanemark(&words)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut waited = 0;
    while step_files(&folder).len() < 2 && waited < 600 {
        std::thread::sleep(Duration::from_millis(20));
        waited += 1;
    }
    kill_both(&mut child);
    let before = step_files(&folder);
    assert!((2..6).contains(&before.len()), "{} steps", before.len());
    assert!(!folder.join("record.json").exists());
    // Another job, another device: refused by name, and nothing is touched.
    let path = folder.display();
    for (words, wanted) in [
        (
            format!("run {job} --device null --runtime 299ms --resume {path}"),
            "runtime_ns",
        ),
        (
            format!("run {job} --device null:capacity=2T --resume {path}"),
            "the path of null",
        ),
        (
            format!("run --device null --resume {path}"),
            "number of steps",
        ),
    ] {
        let ran = run(&words);
        assert_eq!(ran.code, 2, "{words}: {}", ran.stderr);
        assert!(ran.stderr.contains(wanted), "{words}: {}", ran.stderr);
    }
    let taken = run(&words);
    assert_eq!(taken.code, 2);
    assert!(
        taken.stderr.contains("holds a run already"),
        "{}",
        taken.stderr
    );
    assert_eq!(step_files(&folder), before);
    let (ran, record) = run_json(&format!("run --resume {path}"));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let names: Vec<&str> = record.steps.iter().map(|step| step.name.as_str()).collect();
    assert_eq!(names.len(), 6);
    assert_eq!(names[5], "second iodepth=4");
    let after = step_files(&folder);
    assert_eq!(after.len(), 6);
    assert_eq!(
        &after[..before.len()],
        &before[..],
        "finished steps are as they were"
    );
    assert!(
        record
            .warnings
            .iter()
            .any(|warning| warning.kind == "resumed")
    );
    whole_in_all_its_forms(&folder, &record);
}

fn whole_in_all_its_forms(folder: &Path, record: &Record) {
    let whole: Record =
        serde_json::from_slice(&std::fs::read(folder.join("record.json")).unwrap()).unwrap();
    assert_eq!(whole, *record);
    let table = std::fs::read_to_string(folder.join("steps.csv")).unwrap();
    assert_eq!(table.lines().count(), 7);
    let seconds = std::fs::read_to_string(folder.join("series.jsonl")).unwrap();
    let count: usize = record.steps.iter().map(|step| step.series.len()).sum();
    assert_eq!(seconds.lines().count(), count);
    for line in seconds.lines() {
        let second: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(second["read"]["ios_count"].is_u64() && second["step"].is_string());
    }
}

#[test]
fn a_suite_goes_on_by_its_folder_alone_and_leave_to_write_is_not_stored() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("kept");
    let words = format!(
        "suite run seq --quick --runtime 20ms --device {DEVICE} --allow-write NOBODY -o {}/",
        folder.display()
    );
    let (ran, record) = run_json(&words);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    std::fs::remove_file(folder.join("steps/00002-sequential-write.json")).unwrap();
    let (ran, again) = run_json(&format!("suite run --resume {}", folder.display()));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(again.suite, record.suite);
    assert_eq!(again.steps[0], record.steps[0]);
    assert_eq!(again.steps[1].name, "sequential write");
}

#[test]
fn a_suite_that_was_killed_in_its_middle_keeps_what_it_had_byte_for_byte() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("kept");
    let words = format!(
        "suite run qdsweep --runtime 200ms --ramp_time 0s --device null --output-dir {} --progress none",
        folder.display()
    );
    let mut child = lanemark(&words)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut waited = 0;
    while step_files(&folder).len() < 3 && waited < 600 {
        std::thread::sleep(Duration::from_millis(20));
        waited += 1;
    }
    kill_both(&mut child);
    let before = step_files(&folder);
    assert!((3..9).contains(&before.len()), "{} steps", before.len());
    let (ran, record) = run_json(&format!("suite run --resume {}", folder.display()));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(record.steps.len(), 9);
    assert_eq!(record.suite.unwrap().name, "qdsweep");
    let after = step_files(&folder);
    assert_eq!(after.len(), 9);
    assert_eq!(&after[..before.len()], &before[..]);
}

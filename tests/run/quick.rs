//! The quick job and its scratch file.

use crate::common::{Ran, lanemark, run};
use crate::skipped::skipped;
use lanemark::record::{Outcome, Record};
use lanemark::sys::space::space;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The steps hold what they should, and the record says where the file was and what it is not.
fn check(record: &Record, dir: &Path) {
    assert_eq!(record.status, Outcome::Finished);
    let steps = &record.steps;
    let moved: Vec<_> = (steps.iter())
        .map(|step| {
            let (op, direction) = match (&step.read, &step.write) {
                (Some(read), None) => ("read", read),
                (None, Some(write)) => ("write", write),
                other => panic!("{other:?}"),
            };
            let block_bytes = direction.bytes_count / direction.ios_count;
            (op, block_bytes, step.depth.asked_count)
        })
        .collect();
    assert_eq!(
        moved,
        [
            ("read", 4096, 1),
            ("read", 4096, 32),
            ("read", 131_072, 32),
            ("write", 4096, 1),
            ("write", 4096, 32),
            ("write", 131_072, 32),
        ]
    );
    let note = record
        .warnings
        .iter()
        .find(|warning| warning.kind.starts_with("scratch-"))
        .unwrap();
    assert!(
        note.text.contains(&dir.display().to_string()),
        "{}",
        note.text
    );
    assert_eq!(std::fs::read_dir(dir).unwrap().count(), 0, "a file is left");
}

#[test]
fn the_ready_job_measures_a_file_that_vanishes() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let dir = dir.path().canonicalize().unwrap();
    let device = format!("scratch:size=64M,within=10s,dir={}", dir.display());
    let job = concat!(env!("CARGO_MANIFEST_DIR"), "/configs/quick.yaml");
    let ran = run(&format!(
        "run {job} --device {device} --runtime 200ms --ramp_time 0s --format json --progress none"
    ));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let record = ran.record();
    check(&record, &dir);
    assert_eq!(record.steps[0].devices[0].capacity_bytes, 64 << 20);
}

#[test]
fn a_dry_run_shows_the_quick_job_and_fills_nothing() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let asked = Instant::now();
    let output = lanemark("run --dry-run --format json --progress none")
        .current_dir(dir.path())
        .output()
        .unwrap();
    let ran = Ran::of(&output);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(asked.elapsed() < Duration::from_secs(5));
    let plan: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(plan["steps"].as_array().unwrap().len(), 6, "{plan}");
}

#[test]
fn a_key_without_a_device_is_not_the_quick_job() {
    let ran = run("run --bs 4k");
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("no device is named"), "{}", ran.stderr);
}

#[test]
fn a_signal_during_the_fill_ends_it_within_a_second() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    // As large as may be, so that the fill is still going on when the signal comes.
    let room = space(&tempfile::tempfile_in(dir.path()).unwrap()).unwrap();
    let size_bytes = (room.available_bytes / 2) >> 20 << 20;
    if size_bytes < 4 << 30 {
        skipped("needs 8 GiB of room beside the build");
        return;
    }
    for (signal, format) in [("INT", "json"), ("TERM", "text")] {
        let words = format!(
            "run --device scratch:size={size_bytes},dir={} --format {format} --progress json",
            dir.path().display()
        );
        let child = lanemark(&words)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(700));
        let sent = Command::new("kill")
            .args(["-s", signal, &child.id().to_string()])
            .status()
            .unwrap();
        assert!(sent.success());
        let asked = Instant::now();
        let ran = Ran::of(&child.wait_with_output().unwrap());
        assert!(
            asked.elapsed() < Duration::from_secs(1),
            "{:?}",
            asked.elapsed()
        );
        assert_eq!(ran.code, 130, "{}", ran.stderr);
        assert!(ran.stderr.contains("\"setup\""), "{}", ran.stderr);
        if format == "json" {
            let record = ran.record();
            assert_eq!(record.status, Outcome::Interrupted);
            assert_eq!(record.error.unwrap().kind, "interrupted");
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}

/// The whole quick job: half a minute, hence only where asked for.
#[test]
fn no_argument_at_all_is_the_quick_job_in_under_a_minute() {
    if std::env::var_os("LANEMARK_LAB").is_none() {
        skipped("takes half a minute; set LANEMARK_LAB=1");
        return;
    }
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let dir = dir.path().canonicalize().unwrap();
    let (out, asked) = (tempfile::NamedTempFile::new().unwrap(), Instant::now());
    let output = lanemark("run --format json -o")
        .arg(out.path())
        .current_dir(&dir)
        .output()
        .unwrap();
    assert!(asked.elapsed() < Duration::from_secs(60));
    let ran = Ran::of(&output);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    check(
        &serde_json::from_slice(&std::fs::read(out.path()).unwrap()).unwrap(),
        &dir,
    );
    // And without any word: the same job, as text.
    let plain = lanemark("run").current_dir(&dir).output().unwrap();
    let plain = Ran::of(&plain);
    assert_eq!(plain.code, 0, "{}", plain.stderr);
    // However the lines are broken.
    let words: Vec<_> = plain.stdout.split_whitespace().collect();
    let words = words.join(" ");
    assert!(words.contains("a file is not a device"), "{words}");
    assert!(words.contains("lanemark devices"), "{words}");
}

//! Signals: the run ends, what was measured is kept and is true.

use crate::common::{Ran, lanemark, send, start};
use lanemark::record::Outcome;
use std::process::Stdio;
use std::time::{Duration, Instant};

#[test]
fn a_signal_ends_the_run_with_true_rates() {
    for signal in ["INT", "TERM", "HUP"] {
        let child = start("run --device null --iodepth 16 --runtime 60s --ramp_time 0s");
        std::thread::sleep(Duration::from_secs(2));
        send(&child, signal);
        let asked = Instant::now();
        let ran = Ran::of(&child.wait_with_output().unwrap());
        assert!(asked.elapsed() < Duration::from_secs(5));
        assert_eq!(ran.code, 130, "{signal}: {}", ran.stderr);
        let record = ran.record();
        assert_eq!(
            (record.status, record.steps[0].status),
            (Outcome::Interrupted, Outcome::Interrupted)
        );
        let step = &record.steps[0];
        assert!((1.0..3.5).contains(&step.window_s), "{}", step.window_s);
        let read = step.read.as_ref().unwrap();
        assert!((read.iops - read.ios_count as f64 / step.window_s).abs() < 1.0);
        assert_eq!(step.submitted_count, step.completed_count);
    }
}

/// The text of a verb is a table of figures: that they are of a part only comes first, and the part is marked.
#[test]
fn every_verb_says_first_that_it_was_cut_off() {
    let dir = tempfile::tempdir().unwrap();
    let two = ["one", "two"].map(|name| {
        let path = dir.path().join(name);
        std::fs::File::create(&path)
            .unwrap()
            .set_len(1 << 20)
            .unwrap();
        format!("--device {}", path.display())
    });
    let scale = format!("scale {}", two.join(" "));
    for (words, marked) in [
        ("peak --device null", "batch 1 (interrupted)"),
        (&scale, "cut off: 1 device (interrupted)"),
        ("load --device null", "closed loop (interrupted) read"),
        ("lanes --measure null", "128 KiB: INTERRUPTED"),
        ("run --device null", "randread: INTERRUPTED"),
    ] {
        let child = lanemark(&format!("{words} --runtime 60s --progress none"))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(1500));
        send(&child, "INT");
        let ran = Ran::of(&child.wait_with_output().unwrap());
        assert_eq!(ran.code, 130, "{words}: {}", ran.stderr);
        assert!(
            ran.stdout.starts_with("INTERRUPTED"),
            "{words}: {}",
            ran.stdout
        );
        assert!(ran.stdout.contains(marked), "{words}: {}", ran.stdout);
    }
}

#[test]
fn a_second_signal_stops_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let device = format!("scratch:size=8M,dir={}", dir.path().display());
    let child = start(&format!(
        "run --device {device} --rate_iops 1 --runtime 600s"
    ));
    std::thread::sleep(Duration::from_millis(1500));
    send(&child, "INT");
    send(&child, "INT");
    let asked = Instant::now();
    let ran = Ran::of(&child.wait_with_output().unwrap());
    assert!(asked.elapsed() < Duration::from_secs(4));
    assert_eq!(ran.code, 130, "{}", ran.stderr);
}

#[test]
fn a_signal_at_any_moment_leaves_strict_json() {
    for delay_ms in [0, 1, 3, 6, 10, 15, 20, 30, 50, 90, 140] {
        let child = start("run --device null --iodepth 8 --runtime 60s");
        std::thread::sleep(Duration::from_millis(delay_ms));
        send(&child, "HUP");
        let ran = Ran::of(&child.wait_with_output().unwrap());
        // Before the program has come to its first line, a signal ends it as it would any other.
        if ran.code == -1 && ran.stdout.is_empty() {
            continue;
        }
        assert_eq!(ran.code, 130, "after {delay_ms} ms: {}", ran.stderr);
        ran.record();
    }
}

#[test]
fn a_job_that_nobody_writes_ends_at_the_first_signal() {
    let dir = tempfile::tempdir().unwrap();
    let pipe = dir.path().join("job.yaml");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let pipe = pipe.display();
    for words in [
        format!("run {pipe} --device sim"),
        format!("run {pipe} --device sim --claim"),
        format!("peak {pipe} --device sim"),
        format!("compare sim:seed=1 sim:seed=2 --job {pipe}"),
    ] {
        for signal in ["INT", "TERM"] {
            let child = start(&words);
            std::thread::sleep(Duration::from_millis(700));
            send(&child, signal);
            let asked = Instant::now();
            let ran = Ran::of(&child.wait_with_output().unwrap());
            assert!(asked.elapsed() < Duration::from_secs(2), "{words}");
            assert_eq!(ran.code, 130, "{words} {signal}: {}", ran.stderr);
            assert!(!ran.stderr.contains("report it"), "{}", ran.stderr);
            if !words.contains("--claim") {
                assert_eq!(ran.record().status, Outcome::Interrupted);
            }
        }
    }
}

#[test]
fn a_job_is_read_from_a_pipe() {
    let exe = env!("CARGO_BIN_EXE_lanemark");
    let script = format!(
        "exec {exe} run <(echo 'steps: [{{ rw: randread, runtime: 20ms }}]') --device sim --progress none"
    );
    let mut command = std::process::Command::new("bash");
    let ran = Ran::of(&command.args(["-c", &script]).output().unwrap());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}

#[test]
fn a_calibration_that_is_interrupted_is_no_fault() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let mut command = lanemark("calibrate");
    let command = command.current_dir(dir.path()).stderr(Stdio::piped());
    let child = command.stdout(Stdio::null()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(700));
    send(&child, "INT");
    let ran = Ran::of(&child.wait_with_output().unwrap());
    assert_eq!(ran.code, 130, "{}", ran.stderr);
    assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
}

#[test]
fn a_process_that_dies_is_reported_in_its_place() {
    let child = start("run --device null --runtime 60s");
    std::thread::sleep(Duration::from_millis(1000));
    let killed = std::process::Command::new("pkill")
        .args(["-KILL", "-P", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(killed.success());
    let ran = Ran::of(&child.wait_with_output().unwrap());
    assert_eq!(ran.code, 1);
    assert!(ran.record().error.unwrap().text.contains("signal 9"));
}

/// A run whose measuring process stands still for 700 ms, from so long after its start.
fn stopped(words: &str, after: Duration) -> Ran {
    let child = start(words);
    std::thread::sleep(after);
    // The process that measures is a child of the one that was started.
    let measures = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", child.id()));
    let measures = measures.unwrap().trim().to_owned();
    let kill = |signal: &str| {
        let mut kill = std::process::Command::new("kill");
        kill.args([signal, &measures]).status().unwrap();
    };
    kill("-STOP");
    std::thread::sleep(Duration::from_millis(700));
    kill("-CONT");
    Ran::of(&child.wait_with_output().unwrap())
}

/// Whoever stops the process, or takes its CPUs away, changes the figures: they say so.
#[test]
fn a_run_that_was_stopped_for_a_while_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, vec![7; 1 << 20]).unwrap();
    // One polls, the other sleeps in the kernel.
    for device in ["null", file.to_str().unwrap()] {
        let words = format!("run --device {device} --runtime 2500ms --ramp_time 0s");
        let ran = stopped(&words, Duration::from_millis(1200));
        assert_eq!(ran.code, 0, "{device}: {}", ran.stderr);
        let warnings = &ran.record().steps[0].warnings;
        let found = warnings.iter().find(|warning| warning.kind == "stalled");
        let text = &found
            .unwrap_or_else(|| panic!("{device}: {warnings:?}"))
            .text;
        let told_ms: f64 = text
            .split_whitespace()
            .find_map(|word| word.parse().ok())
            .unwrap();
        // Gaps are told by the lower bounds of their buckets, a power of two each.
        assert!((300.0..1500.0).contains(&told_ms), "{device}: {text}");
    }
    // In the ramp it has changed nothing that was measured: less is told than the stop took, or nothing.
    let ran = stopped(
        "run --device null --runtime 500ms --ramp_time 3s",
        Duration::from_millis(1000),
    );
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let warnings = &ran.record().steps[0].warnings;
    let is_told = |warning: &lanemark::record::Warning| {
        warning.kind == "stalled" && warning.text.contains("at least 7")
    };
    assert!(!warnings.iter().any(is_told), "{warnings:?}");
}

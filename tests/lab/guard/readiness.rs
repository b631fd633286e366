//! Never-written data and filling, through the program, on loop devices and zram.

use super::bench::{Bench, Loop, run};
use crate::common::Ran;
use crate::support::lab;
use lanemark::record::{Record, Warning};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

fn lanemark(words: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lanemark"));
    command.args(words.split_whitespace());
    command
        .args(["--format", "json", "--progress", "none"])
        .stdin(Stdio::null());
    command
}

fn record(output: &Output) -> Record {
    Ran::of(output).record()
}

fn measured(words: &str) -> Record {
    let output = lanemark(words).output().unwrap();
    let record = record(&output);
    assert_eq!(output.status.code(), Some(0), "{words}: {:?}", record.error);
    record
}

fn never_written(record: &Record) -> Option<&Warning> {
    record.steps[0]
        .warnings
        .iter()
        .find(|warning| warning.kind == "never-written")
}

const QUICK: &str = "--number_ios 64 --ramp_time 0s";

#[test]
fn a_sparse_file_is_named_with_its_share_until_it_is_filled() {
    let Some(_lab) = lab() else { return };
    let bench = Bench::on_disk();
    let file = bench.path("sparse");
    // 64 MiB, of which the first 16 are written.
    std::fs::write(&file, vec![7; 16 << 20]).unwrap();
    std::fs::File::options()
        .write(true)
        .open(&file)
        .unwrap()
        .set_len(64 << 20)
        .unwrap();
    run("sync", &[&file]);
    let found = measured(&format!("run --device {file} {QUICK}"));
    let text = &never_written(&found).unwrap().text;
    assert!(text.contains("75.0 %"), "{text}");
    let strict = lanemark(&format!("run --device {file} {QUICK} --strict"))
        .output()
        .unwrap();
    assert_eq!(strict.status.code(), Some(3));
    let refused = lanemark(&format!("run --device {file} {QUICK} --prepare"))
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(3), "filling needs consent");
    let filled = measured(&format!(
        "run --device {file} {QUICK} --prepare --allow-write {file}"
    ));
    assert_eq!(never_written(&filled), None);
    let note = filled
        .warnings
        .iter()
        .find(|warning| warning.kind == "prepared")
        .unwrap();
    assert!(note.text.contains("64 MiB"), "{}", note.text);
    assert_eq!(
        never_written(&measured(&format!("run --device {file} {QUICK} --strict"))),
        None
    );
}

#[test]
fn a_fill_that_was_killed_goes_on_where_it_stopped() {
    let Some(_lab) = lab() else { return };
    let bench = Bench::on_disk();
    let file = bench.file("backing");
    std::fs::File::options()
        .write(true)
        .open(&file)
        .unwrap()
        .set_len(3 << 30)
        .unwrap();
    let device = Loop::on(&file);
    let words = format!(
        "run --device {0} {QUICK} --prepare --allow-write {0}",
        device.path
    );
    let state = bench.path("state");
    let mut child = lanemark(&words)
        .env("XDG_STATE_HOME", &state)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // The note of how far it is comes once a second.
    let deadline = Instant::now() + Duration::from_secs(60);
    let noted = || {
        let Ok(folder) = std::fs::read_dir(format!("{state}/lanemark")) else {
            return false;
        };
        folder
            .flatten()
            .any(|entry| entry.file_name().to_string_lossy().ends_with(".json"))
    };
    while !noted() {
        assert!(Instant::now() < deadline, "no note within a minute");
        std::thread::sleep(Duration::from_millis(20));
    }
    // The process that fills is the child of the one that waits for it: kill both.
    let family = Command::new("pkill")
        .args(["-KILL", "-P", &child.id().to_string()])
        .status();
    assert!(
        family.unwrap().success(),
        "it had finished already: use a larger device"
    );
    let _ = child.kill();
    child.wait().unwrap();
    let output = lanemark(&words)
        .env("XDG_STATE_HOME", &state)
        .output()
        .unwrap();
    let record = record(&output);
    assert_eq!(output.status.code(), Some(0), "{:?}", record.error);
    let note = record
        .warnings
        .iter()
        .find(|warning| warning.kind == "prepared")
        .unwrap();
    assert!(note.text.contains("of an earlier run"), "{}", note.text);
    assert_eq!(never_written(&record), None);
}

#[test]
fn a_zero_filled_device_is_named() {
    let Some(_lab) = lab() else { return };
    let bench = Bench::new();
    let device = Loop::on(&bench.file("zeros"));
    let found = measured(&format!("run --device {} {QUICK}", device.path));
    assert!(
        never_written(&found).unwrap().text.contains("100"),
        "{found:?}"
    );
}

#[test]
fn a_mounted_device_is_read_and_said_to_be_in_use() {
    let Some(_lab) = lab() else { return };
    let bench = Bench::new();
    let device = Loop::on(&bench.file("a"));
    run("mkfs.ext4", &["-q", "-F", &device.path]);
    let (at, _mounted) = bench.mount(&device.path, "here", &[]);
    let found = measured(&format!("run --device {} {QUICK}", device.path));
    let uses = &found.steps[0].devices[0].in_use;
    assert!(uses.iter().any(|used| used.contains(&at)), "{uses:?}");
}

#[test]
fn writes_mixes_trims_and_flushes_run_with_consent() {
    let Some(_lab) = lab() else { return };
    let bench = Bench::on_disk();
    let device = Loop::on(&bench.file("a"));
    let consent = format!("--device {0} --allow-write {0} {QUICK}", device.path);
    for rw in ["write", "randwrite", "rw", "randrw", "trim", "randtrim"] {
        let record = measured(&format!("run {consent} --rw {rw}"));
        let step = &record.steps[0];
        assert_eq!(step.submitted_count, step.completed_count, "{rw}");
        assert!(step.write.is_some() || step.trim.is_some(), "{rw}");
    }
    let record = measured(&format!("run {consent} --rw randwrite --fsync 8"));
    assert_eq!(record.steps[0].flush.as_ref().unwrap().ios_count, 8);
}

#[test]
fn the_result_does_not_replace_the_file_behind_the_device() {
    let Some(_lab) = lab() else { return };
    let bench = Bench::new();
    let image = bench.file("image");
    let device = Loop::on(&image);
    let kept = bench.path("kept.json");
    let words = format!("run --device sim {QUICK} -o {kept}");
    let output = lanemark(&words).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let path = &device.path;
    for words in [
        format!("run --device {path} {QUICK} -o {image}"),
        format!("lanes {path} -o {image}"),
        format!("report {kept} -o {image}"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lanemark"));
        let output = command.args(words.split_whitespace()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{words}");
        assert_eq!(
            std::fs::metadata(&image).unwrap().len(),
            64 << 20,
            "{words}"
        );
    }
}

#[test]
fn one_device_by_two_nodes_is_not_two_devices() {
    let Some(_lab) = lab() else { return };
    let bench = Bench::on_disk();
    let device = Loop::on(&bench.file("a"));
    let (node, number) = (
        bench.path("node"),
        device.name.trim_start_matches("loop").to_owned(),
    );
    run("mknod", &[&node, "b", "7", &number]);
    for other in [node, bench.path("a")] {
        let words = format!("run --device {} --device {other} {QUICK}", device.path);
        assert_eq!(
            lanemark(&words).output().unwrap().status.code(),
            Some(2),
            "{other}"
        );
    }
}

//! Every suite over SPDK and vfio-user, short as can be.

use crate::spdk_target::{Target, target};
use lanemark::method::suites;
use lanemark::record::{Outcome, Record};
use serde_json::json;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const NQN: &str = "nqn.2026-01.io.lanemark:suites";

#[test]
fn every_suite_runs_quick_over_vfio_user() {
    let Some(target) = target() else { return };
    target.null("n0", 1 << 30); // 4 TiB in blocks of 4 KiB
    target.subsystem(NQN, &[(1, "n0")]);
    let device = target.vfio_user(NQN);
    for name in suites::names() {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lanemark"));
        command.args([
            "suite",
            "run",
            name,
            "--quick",
            "--runtime",
            "20ms",
            "--format",
            "json",
        ]);
        command.args([
            "--progress",
            "none",
            "--allow-write",
            "LANEMARK01",
            "--device",
            &device,
        ]);
        if matches!(name, "bsweep" | "mixsweep") {
            // Depth 256 of 2 MiB is more than there are hugepages in the tests.
            command.args(["--iodepth", "16"]);
        }
        let done = command.output().unwrap();
        let stderr = String::from_utf8_lossy(&done.stderr);
        let record: Record = serde_json::from_slice(&done.stdout)
            .unwrap_or_else(|error| panic!("{name}: {error}: {stderr}"));
        assert!(
            matches!(done.status.code(), Some(0 | 1)),
            "{name}: {stderr}"
        );
        assert!(!record.steps.is_empty(), "{name}: {stderr}");
        for step in record
            .steps
            .iter()
            .filter(|step| step.status != Outcome::Finished)
        {
            let kind = step.error.as_ref().map(|error| error.kind.as_str());
            assert_eq!(
                kind,
                Some("no-samples"),
                "{name}: {}: {:?}",
                step.name,
                step.error
            );
        }
        // 512 B to 2 KiB are no blocks of this device.
        for left in &record.left_out {
            assert!(!left.why.is_empty(), "{name}: {left:?}");
        }
        if name == "bsweep" {
            assert!(record.left_out.len() >= 6, "{:?}", record.left_out);
        }
    }
}

fn lanemark(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lanemark"));
    command
        .args(words)
        .args(["--format", "json", "--progress", "none"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn record_of(done: &Output) -> Record {
    serde_json::from_slice(&done.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&done.stderr)))
}

/// The first step as it lies in the folder of the run.
fn first_step(folder: &Path) -> Option<Vec<u8>> {
    let mut files = std::fs::read_dir(folder.join("steps")).ok()?.flatten();
    let is_it = |name: &str| name.starts_with("00001-") && name.ends_with(".json");
    let file = files.find(|file| is_it(&file.file_name().to_string_lossy()))?;
    std::fs::read(file.path()).ok()
}

fn until_kept(folder: &Path, child: &mut Child) -> Vec<u8> {
    let begun = Instant::now();
    loop {
        if let Some(kept) = first_step(folder) {
            return kept;
        }
        assert!(begun.elapsed() < Duration::from_secs(40), "no step is kept");
        assert_eq!(child.try_wait().unwrap(), None, "it has ended");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn serve(target: &Target) -> String {
    target.null("n0", 1 << 24);
    target.subsystem(NQN, &[]);
    // Of its own making it would be another disk each time.
    let namespace =
        json!({ "nsid": 1, "bdev_name": "n0", "uuid": "5b0a71a4-0000-4000-8000-000000000008" });
    let asked = json!({ "nqn": NQN, "namespace": namespace });
    target.rpc("nvmf_subsystem_add_ns", asked);
    target.vfio_user(NQN)
}

/// Between two steps nothing is in flight that could show it: the next queue is asked for of a dead controller.
#[test]
fn a_target_that_dies_between_two_steps_stops_the_suite_which_goes_on_with_the_next() {
    let Some(mut target) = target() else { return };
    let device = serve(&target);
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("kept");
    let text = folder.display().to_string();
    let words = "suite run short-stroke --runtime 300ms --ramp_time 0s --cool_down 1s";
    let words: Vec<&str> = words.split(' ').collect();
    let mut child = lanemark(&words)
        .args(["--only", "access time", "--device", &device])
        .args(["--output-dir", &text])
        .spawn()
        .unwrap();
    let kept = until_kept(&folder, &mut child);
    let killed = Instant::now();
    target.signal("KILL");
    let done = child.wait_with_output().unwrap();
    let took = killed.elapsed();
    assert!(took < Duration::from_secs(25), "{took:?}");
    let record = record_of(&done);
    assert_eq!(done.status.code(), Some(1), "{:?}", record.error);
    assert_eq!(record.status, Outcome::Failed);
    let error = record.steps.last().unwrap().error.as_ref();
    let error = error.or(record.error.as_ref());
    let kind = error.map(|error| error.kind.as_str());
    assert_eq!(kind, Some("gone"), "{error:?}");
    assert!(record.left_out.is_empty(), "{:?}", record.left_out);
    assert_eq!(first_step(&folder), Some(kept.clone()));

    target.replace();
    assert_eq!(serve(&target), device);
    let words = ["suite", "run", "--resume", &text];
    let done = lanemark(&words).output().unwrap();
    let record = record_of(&done);
    assert_eq!(done.status.code(), Some(0), "{:?}", record.error);
    assert_eq!(record.steps.len(), 3);
    assert_eq!(first_step(&folder), Some(kept), "byte for byte");
}

/// The target serves a SMART page, and no temperature in it.
#[test]
fn the_health_of_a_controller_is_read_through_its_admin_queue() {
    let Some(target) = target() else { return };
    target.null("n0", 1 << 20);
    target.subsystem(NQN, &[(1, "n0")]);
    for device in [target.vfio_user(NQN), target.tcp(NQN)] {
        let done = lanemark(&["run", "--rw", "randread", "--runtime", "200ms"])
            .args(["--device", &device])
            .output()
            .unwrap();
        let record = record_of(&done);
        let found = &record.steps[0].conditions.as_ref().unwrap().devices[0];
        for health in [&found.before, &found.after] {
            let health = health.as_ref().unwrap_or_else(|| panic!("{found:?}"));
            assert_eq!(health.source, "SMART log by SPDK's admin queue");
            assert_eq!(health.temperature_celsius, None, "0 K is no temperature");
            assert_eq!(
                (health.used_pct, health.media_errors_count),
                (Some(0), Some(0))
            );
        }
        assert!(found.others.is_none() && found.why_not_others.is_some());
        let cache = found.write_cache.as_ref();
        let cache = cache.unwrap_or_else(|| panic!("{:?}", found.why_not_write_cache));
        assert_eq!(cache.source, "feature 06h by SPDK's admin queue");
    }
}

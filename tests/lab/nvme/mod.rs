//! NVMe by passthrough, in one boot of the emulated machine (topology `nvme-io`). What runs there is `nvme.sh`
//! and the tests of [`inside`].

mod inside;

use crate::invariants;
use crate::skipped::skipped;
use crate::support::lab;
use lanemark::record::{Outcome, Record, Step};
use std::collections::HashMap;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// Files that the guest left, by name.
struct Guest(HashMap<String, String>);

static GUEST: OnceLock<Result<Guest, String>> = OnceLock::new();

/// What came of the one boot; nothing, with the reason told, where there can be none.
fn guest() -> Option<&'static Guest> {
    let _lab = lab()?;
    match GUEST.get_or_init(boot) {
        Ok(guest) => Some(guest),
        Err(why) => {
            skipped(why);
            None
        }
    }
}

fn boot() -> Result<Guest, String> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/lab");
    let prepared = Command::new(script).arg("prepare").output().unwrap();
    if !prepared.status.success() {
        let said = String::from_utf8_lossy(&prepared.stderr);
        let last = said.lines().last().unwrap_or_default();
        return Err(format!("the emulated machine cannot be prepared: {last}"));
    }
    let folder = tempfile::tempdir().unwrap();
    let ran = Command::new(script)
        .args([
            "run",
            "--topology",
            "nvme-io",
            "--timeout",
            "600",
            "--share",
        ])
        .arg(folder.path())
        .args(["tests/lab/nvme.sh", env!("CARGO_BIN_EXE_lanemark")])
        .arg(folder.path())
        .arg(std::env::current_exe().unwrap())
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(ran.status.success(), "the lab: {ran:?}");
    let mut files = HashMap::new();
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let bytes = std::fs::read(entry.path()).unwrap();
        files.insert(name, String::from_utf8_lossy(&bytes).into_owned());
    }
    assert_eq!(files.get("setup.failed"), None);
    Ok(Guest(files))
}

impl Guest {
    #[track_caller]
    fn text(&self, name: &str) -> &str {
        self.0.get(name).unwrap_or_else(|| panic!("no {name} came"))
    }

    #[track_caller]
    fn code(&self, name: &str) -> i32 {
        self.text(&format!("{name}.code")).trim().parse().unwrap()
    }

    #[track_caller]
    fn record(&self, name: &str) -> Record {
        let text = self.text(&format!("{name}.out"));
        let record: Record = serde_json::from_str(text).unwrap_or_else(|error| {
            panic!(
                "{name}: {error}: {text} {}",
                self.text(&format!("{name}.err"))
            )
        });
        invariants::check(&record);
        record
    }

    /// The step of a run that must have ended well.
    #[track_caller]
    fn step(&self, name: &str) -> Step {
        let said = self.text(&format!("{name}.err"));
        assert_eq!(self.code(name), 0, "{name}: {said}");
        let mut record = self.record(name);
        assert_eq!(record.status, Outcome::Finished, "{name}");
        record.steps.remove(0)
    }

    #[track_caller]
    fn refused(&self, name: &str, code: i32, words: &[&str]) {
        let said = self.text(&format!("{name}.err"));
        assert_eq!(self.code(name), code, "{name}: {said}");
        for word in words {
            assert!(said.contains(word), "{name}: no `{word}` in {said}");
        }
    }
}

/// The contract and the bytes, which only a program inside can look at.
#[test]
fn the_tests_inside_the_machine_pass() {
    let Some(guest) = guest() else { return };
    let said = guest.text("tests.out");
    assert_eq!(guest.code("tests"), 0, "{said}");
    assert!(!said.contains("SKIPPED"), "{said}");
    assert!(said.contains("test nvme::inside::"), "{said}");
}

#[test]
fn a_namespace_is_driven_by_its_generic_node_and_the_record_says_how() {
    let Some(guest) = guest() else { return };
    let step = guest.step("read");
    assert_eq!(step.read.as_ref().unwrap().ios_count, 500);
    assert_eq!(step.backend.name, "uring-cmd");
    let features = step.backend.features.join("; ");
    for words in [
        "NVMe passthrough by ng",
        "polled: no, the queue has no poll support",
        "format 0: 512-byte blocks",
        "health: 50 °C",
        "registered buffers",
    ] {
        assert!(features.contains(words), "no `{words}` in {features}");
    }
    let device = &step.devices[0];
    assert_eq!(device.model.as_deref(), Some("QEMU NVMe Ctrl"));
    assert_eq!(device.serial.as_deref(), Some("LABIO0001"));
    assert_eq!(device.identity.as_deref(), Some("LABIO0001 ns:1"));
    assert_eq!(
        (device.kind.as_str(), device.capacity_bytes),
        ("nvme", 256 << 20)
    );
    assert_eq!(
        (step.depth.device_count, step.depth.queued_count),
        (Some(32), Some(0))
    );
    assert_eq!(guest.step("by-block").backend.name, "uring-cmd");
    let mix = guest.step("mix");
    assert!(mix.flush.unwrap().ios_count > 10 && mix.write.is_some());
    assert_eq!(guest.step("trim").trim.unwrap().ios_count, 50);
    // Each namespace is filled in its own right, though they have one serial number.
    for name in ["prepare-1", "prepare-2"] {
        let warnings = guest.record(name).warnings;
        let filled = warnings.iter().find(|warning| warning.kind == "prepared");
        let text = &filled
            .unwrap_or_else(|| panic!("{name}: {warnings:?}"))
            .text;
        assert!(text.contains("1048576 bytes"), "{name}: {text}");
    }
}

/// The emulated drive is at 323 K. Its log is read by whatever node there is, before and after.
#[test]
fn the_drives_health_is_in_the_record_whoever_drives_it() {
    let Some(guest) = guest() else { return };
    for (name, source) in [
        ("read", "SMART log by /dev/ng"),
        ("by-uring", "SMART log by /dev/nvme"),
    ] {
        let step = guest.step(name);
        let device = &step.conditions.as_ref().unwrap().devices[0];
        for health in [&device.before, &device.after] {
            let health = health
                .as_ref()
                .unwrap_or_else(|| panic!("{name}: {device:?}"));
            assert!(health.source.starts_with(source), "{}", health.source);
            assert_eq!(health.temperature_celsius, Some(50.0), "{name}");
            assert_eq!(
                (health.used_pct, health.media_errors_count),
                (Some(0), Some(0))
            );
            assert!(health.alarms.is_empty(), "{health:?}");
        }
        // The drive counts what was read of it.
        let read = |health: &Option<lanemark::record::Health>| health.as_ref()?.read_bytes;
        assert!(read(&device.after) >= read(&device.before), "{name}");
        let others = device.others.as_ref().unwrap();
        assert_eq!(others.ios_count, 0, "{name}: {others:?}");
    }
    let step = guest.step("others");
    let others = step.conditions.unwrap().devices.remove(0).others.unwrap();
    assert_eq!((others.ios_count, others.bytes_count), (40, 40 * 4096));
    assert!(
        step.warnings
            .iter()
            .any(|warning| warning.kind == "others-io")
    );
}

#[test]
fn probes_price_the_path_and_the_block_layer_has_none() {
    let Some(guest) = guest() else { return };
    for name in ["probe", "polled-probe"] {
        let step = guest.step(name);
        let probe = step.probe.unwrap();
        assert!(probe.ios_count >= 20 && probe.bytes_count == 0, "{name}");
        assert!(step.read.is_none(), "{name}");
    }
    let read = guest.step("probe-read").read.unwrap();
    assert_eq!((read.ios_count, read.bytes_count), (200, 200 * 512));
    guest.refused("probe-uring", 2, &["cannot probe", "probe-read"]);
}

#[test]
fn limits_and_formats_are_kept_or_refused_by_name() {
    let Some(guest) = guest() else { return };
    assert_eq!(guest.step("largest").read.unwrap().ios_count, 100);
    guest.refused("too-large", 2, &["260 KiB", "128 KiB"]);
    guest.refused("twice", 2, &["same device"]);
    let pi = guest.step("pi");
    let stripped = pi
        .backend
        .features
        .iter()
        .any(|line| line.contains("PRACT"));
    assert!(stripped, "{:?}", pi.backend.features);
    guest.refused(
        "separate",
        2,
        &["64 bytes of separate metadata", "nvme format"],
    );
    guest.refused("extended", 2, &["64 bytes of interleaved metadata"]);
}

#[test]
fn one_bad_sector_is_told_with_its_block_and_nothing_else_fails() {
    let Some(guest) = guest() else { return };
    assert_eq!(guest.code("error"), 1, "{}", guest.text("error.err"));
    let step = &guest.record("error").steps[0];
    let [error] = step.errors.as_slice() else {
        panic!("{:?}", step.errors)
    };
    assert_eq!(
        (error.op.as_str(), error.count, error.first_lba),
        ("read", 1, 2048)
    );
    assert!(error.status.contains("unrecovered read error"), "{error:?}");
    assert_eq!((step.completed_count, step.failed_count), (511, 1));
    assert_eq!(step.read.as_ref().unwrap().ios_count, 511);
}

#[test]
fn writing_past_the_block_node_is_guarded_like_the_block_node() {
    let Some(guest) = guest() else { return };
    guest.refused("mounted", 3, &["mounted at /mnt"]);
    assert!(!guest.step("mounted-read").devices[0].in_use.is_empty());
    let holding = guest.step("holding");
    assert!(holding.write.unwrap().ios_count > 0);
    assert!(
        holding
            .backend
            .features
            .iter()
            .any(|line| line.contains("held"))
    );
    assert_ne!(
        guest.code("held"),
        0,
        "mounted while it was written past the node"
    );
    guest.refused("serial", 3, &["not unique", "/dev/nvme"]);
    guest.step("by-path");
}

#[test]
fn a_removal_in_mid_run_ends_it_at_once_with_what_was_measured() {
    let Some(guest) = guest() else { return };
    for name in ["unbind", "head"] {
        assert_eq!(
            guest.code(name),
            1,
            "{name}: {}",
            guest.text(&format!("{name}.err"))
        );
        let record = guest.record(name);
        let step = &record.steps[0];
        let error = step.error.as_ref().unwrap();
        assert_eq!(
            (error.kind.as_str(), error.exit_code),
            ("gone", 1),
            "{name}: {error:?}"
        );
        assert!(
            (1.0..30.0).contains(&step.window_s),
            "{name}: {}",
            step.window_s
        );
        assert!(step.read.as_ref().unwrap().ios_count > 50, "{name}");
        // No flood. The kernel cancels what is in flight (16), and fails what it is given for a few polls before
        // it shows that the node goes.
        assert!(
            step.failed_count <= 160,
            "{name}: {} failed",
            step.failed_count
        );
        let took_ms: u64 = guest.text(&format!("{name}.ms")).trim().parse().unwrap();
        assert!(took_ms < 15_000, "{name}: {took_ms} ms after the removal");
    }
}

#[test]
fn poll_queues_are_polled() {
    let Some(guest) = guest() else { return };
    for name in ["polled", "polled-mix"] {
        let features = guest.step(name).backend.features;
        assert!(
            features.contains(&"polled: yes".to_owned()),
            "{name}: {features:?}"
        );
    }
    assert!(guest.step("polled-mix").flush.unwrap().ios_count > 5);
}

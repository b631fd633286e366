//! Never-written data is found through SPDK before a run, and `--prepare` fills it through SPDK.

use crate::spdk_target::{Run, Target, run, run_during, target};
use serde_json::{Value, json};
use std::os::unix::fs::FileExt;
use std::time::Duration;

const NQN: &str = "nqn.2026-01.io.lanemark:prepare";
const QUICK: &[&str] = &[
    "--rw",
    "randread",
    "--number_ios",
    "64",
    "--ramp_time",
    "0s",
];
const CONSENT: &[&str] = &["--prepare", "--allow-write", "LANEMARK01"];

/// A run that must end with this code.
#[track_caller]
fn quick(device: &str, code: i32, more: &[&str]) -> Run {
    let done = run(device, &[QUICK, more].concat());
    assert_eq!(done.code, Some(code), "{more:?}: {done:?}");
    done
}

fn of_kind(list: &Value, kind: &str) -> Option<String> {
    let list = list.as_array().unwrap();
    let found = list.iter().find(|warning| warning["kind"] == kind)?;
    found["text"].as_str().map(str::to_owned)
}

fn never_written(done: &Run) -> Option<String> {
    of_kind(&done.json()["steps"][0]["warnings"], "never-written")
}

fn prepared(done: &Run) -> String {
    of_kind(&done.json()["warnings"], "prepared").unwrap()
}

#[test]
fn an_empty_namespace_is_named_until_it_is_filled() {
    let Some(target) = target() else { return };
    target.malloc("m0", 16384, 4096); // 64 MiB
    target.subsystem(NQN, &[(1, "m0")]);
    let device = target.vfio_user(NQN);
    let half = ["--offset", "50%", "--size", "50%"];
    let found = never_written(&quick(&device, 0, &half)).unwrap();
    assert!(
        found.contains("100.0 % of the range") && found.contains("256 of 256 sampled"),
        "{found}"
    );
    quick(&device, 3, &[&half[..], &["--strict"]].concat());
    quick(&device, 3, &[&half[..], &["--prepare"]].concat());
    let filled = quick(&device, 0, &[&half[..], CONSENT].concat());
    let note = prepared(&filled);
    assert!(note.contains("32 MiB"), "{note}");
    assert_eq!(never_written(&filled), None);
    quick(&device, 0, &[&half[..], &["--strict"]].concat());
    let whole = never_written(&quick(&device, 0, &[])).unwrap();
    assert!(whole.contains("50.0 % of the range"), "{whole}");
}

#[test]
fn what_is_filled_is_on_the_medium_and_nothing_else_is_touched() {
    let Some(target) = target() else { return };
    let path = target.dir().join("disk");
    let file = std::fs::File::create_new(&path).unwrap();
    file.set_len(32 << 20).unwrap();
    target.rpc(
        "bdev_aio_create",
        json!({ "name": "a0", "filename": path.to_str().unwrap(), "block_size": 512 }),
    );
    target.subsystem(NQN, &[(1, "a0")]);
    // Not a multiple of what is written at once.
    let range = ["--bs", "512", "--offset", "1M", "--size", "3073k"];
    let filled = quick(&target.tcp(NQN), 0, &[CONSENT, &range].concat());
    assert!(prepared(&filled).contains("3073 KiB"));
    let file = std::fs::File::open(&path).unwrap();
    let mut there = vec![0; 32 << 20];
    file.read_exact_at(&mut there, 0).unwrap();
    let is_blank = |block: &[u8]| block.iter().all(|byte| *byte == 0);
    for (number, block) in there.chunks(512).enumerate() {
        let inside = (2048..2048 + 6146).contains(&number);
        assert_eq!(is_blank(block), !inside, "block {number}");
    }
}

fn slow_disk() -> Option<Target> {
    let target = target()?;
    target.malloc("m0", 16384, 4096);
    target.delay("d0", "m0", 100_000);
    target.subsystem(NQN, &[(1, "d0")]);
    Some(target)
}

#[test]
fn an_interrupted_fill_goes_on_where_it_stopped() {
    let Some(target) = slow_disk() else { return };
    let device = target.tcp(NQN);
    let arguments = [QUICK, CONSENT].concat();
    let done = run_during(&device, &arguments, Duration::from_millis(200), |run| {
        run.signal("INT");
    });
    assert_eq!(done.code, Some(130), "{done:?}");
    assert!(done.took < Duration::from_secs(12), "{done:?}");
    let note = prepared(&quick(&device, 0, CONSENT));
    assert!(note.contains("of an earlier run"), "{note}");
    assert_eq!(never_written(&quick(&device, 0, &["--strict"])), None);
}

#[test]
fn a_fill_of_a_stopped_target_ends_in_time() {
    let Some(target) = slow_disk() else { return };
    let device = target.vfio_user(NQN);
    let arguments = [QUICK, CONSENT].concat();
    let done = run_during(&device, &arguments, Duration::from_millis(100), |_| {
        target.signal("STOP");
    });
    target.signal("CONT");
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.took < Duration::from_secs(20), "{done:?}");
    assert_eq!(done.json()["error"]["kind"], "prepare", "{done:?}");
}

#[test]
fn a_write_that_fails_ends_the_fill_with_its_status() {
    let Some(target) = target() else { return };
    target.malloc("m0", 16384, 4096);
    target.rpc("bdev_error_create", json!({ "base_name": "m0" }));
    target.rpc(
        "bdev_error_inject_error",
        json!({ "name": "EE_m0", "io_type": "write", "error_type": "failure", "num": 1 }),
    );
    target.subsystem(NQN, &[(1, "EE_m0")]);
    let done = quick(&target.tcp(NQN), 1, CONSENT);
    let text = done.json()["error"]["text"].to_string();
    assert!(
        text.contains("filling") && text.contains("internal error (0x0/0x06)"),
        "{text}"
    );
}

//! Targets that die, stop, refuse or never answer: a run ends within its time, keeps what it measured, names what
//! happened, exits 1, and leaves nothing behind.

use crate::spdk_target::{Run, Target, free_hugepages, run_during, target};
use serde_json::json;
use std::time::Duration;

const NQN: &str = "nqn.2026-01.io.lanemark:faults";
/// Runs ask for 20 s; whatever happens at 1.5 s must end them well before.
const LONG: &[&str] = &[
    "--rw",
    "randread",
    "--iodepth",
    "32",
    "--runtime",
    "20s",
    "--ramp_time",
    "0s",
    "--grace",
    "1s",
];
const AT: Duration = Duration::from_millis(1500);
const SOON: Duration = Duration::from_secs(12);

fn with_null() -> Option<Target> {
    let target = target()?;
    target.null("n0", 1 << 20);
    target.subsystem(NQN, &[(1, "n0")]);
    Some(target)
}

/// The run failed in time, kept its record, and says why.
#[track_caller]
fn failed_well(done: &Run) {
    assert!(done.took < SOON, "took {:?}: {done:?}", done.took);
    assert_eq!(done.code, Some(1), "{done:?}");
    let record = done.json();
    assert_eq!(record["status"], "failed", "{record}");
    let step = &record["steps"][0];
    assert!(
        step["read"]["ios_count"].as_u64().unwrap() > 0,
        "what was measured is kept: {step}"
    );
    assert!(
        step["error"]["message"]
            .as_str()
            .or(step["error"]["text"].as_str())
            .is_some_and(|text| !text.is_empty()),
        "{}",
        step["error"]
    );
    let sum = ["completed_count", "failed_count", "abandoned_count"]
        .iter()
        .map(|key| step[key].as_u64().unwrap())
        .sum::<u64>();
    assert_eq!(step["submitted_count"], sum);
}

#[test]
fn a_killed_target_ends_the_run() {
    for vfio in [false, true] {
        let Some(target) = with_null() else { return };
        let device = if vfio {
            target.vfio_user(NQN)
        } else {
            target.tcp(NQN)
        };
        failed_well(&run_during(&device, LONG, AT, |_| target.signal("KILL")));
    }
}

#[test]
fn a_stopped_target_ends_the_run() {
    for vfio in [false, true] {
        let Some(target) = with_null() else { return };
        let device = if vfio {
            target.vfio_user(NQN)
        } else {
            target.tcp(NQN)
        };
        let done = run_during(&device, LONG, AT, |_| target.signal("STOP"));
        target.signal("CONT");
        failed_well(&done);
        assert!(
            done.json()["steps"][0]["abandoned_count"].as_u64().unwrap() > 0,
            "{done:?}"
        );
    }
}

#[test]
fn a_deleted_subsystem_or_listener_ends_the_run() {
    let Some(target) = with_null() else { return };
    let device = target.tcp(NQN);
    failed_well(&run_during(&device, LONG, AT, |_| {
        target.rpc("nvmf_delete_subsystem", json!({ "nqn": NQN }));
    }));
}

#[test]
fn a_removed_namespace_ends_the_run_and_is_named() {
    for vfio in [false, true] {
        let Some(target) = with_null() else { return };
        let device = if vfio {
            target.vfio_user(NQN)
        } else {
            target.tcp(NQN)
        };
        let done = run_during(&device, LONG, AT, |_| {
            target.rpc("nvmf_subsystem_remove_ns", json!({ "nqn": NQN, "nsid": 1 }));
        });
        failed_well(&done);
        assert!(
            done.stdout.contains("invalid namespace or format"),
            "{}",
            done.stdout
        );
    }
}

#[test]
fn io_that_never_completes_is_abandoned_in_time() {
    let Some(target) = target() else { return };
    target.null("n0", 1 << 20);
    target.delay("d0", "n0", 3_600_000_000);
    target.subsystem(NQN, &[(1, "d0")]);
    let device = target.tcp(NQN);
    let arguments = [
        "--rw",
        "randread",
        "--iodepth",
        "4",
        "--runtime",
        "1s",
        "--ramp_time",
        "0s",
        "--grace",
        "1s",
    ];
    let done = run_during(&device, &arguments, AT, |_| ());
    assert!(done.took < SOON, "{done:?}");
    assert_eq!(done.code, Some(1), "{done:?}");
    assert_eq!(done.json()["steps"][0]["abandoned_count"], 4, "{done:?}");
}

#[test]
fn an_interrupt_detaches_and_a_second_run_works() {
    let Some(target) = with_null() else { return };
    let device = target.vfio_user(NQN);
    for _ in 0..2 {
        let done = run_during(&device, LONG, AT, |run| run.signal("INT"));
        assert_eq!(done.code, Some(130), "{done:?}");
        assert!(done.took < SOON, "{done:?}");
        assert_eq!(done.json()["status"], "interrupted");
    }
}

#[test]
fn after_kill_9_no_hugepages_are_lost() {
    let Some(target) = with_null() else { return };
    let device = target.vfio_user(NQN);
    let before = free_hugepages();
    run_during(&device, LONG, AT, |run| run.signal("KILL"));
    // The target holds the dead process's memory until it notices.
    let back = (0..50).any(|_| {
        std::thread::sleep(Duration::from_millis(100));
        free_hugepages() == before
    });
    assert!(back, "{before} before, {} after", free_hugepages());
}

#[test]
fn a_stopped_target_cannot_hang_attaching() {
    for vfio in [false, true] {
        let Some(target) = with_null() else { return };
        let device = if vfio {
            target.vfio_user(NQN)
        } else {
            target.tcp(NQN)
        };
        target.signal("STOP");
        let done = run_during(&device, LONG, AT, |_| ());
        target.signal("CONT");
        assert!(matches!(done.code, Some(1 | 2)), "{done:?}");
        assert!(done.took < Duration::from_secs(20), "{done:?}");
    }
}

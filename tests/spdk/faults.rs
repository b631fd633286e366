//! Targets that die, stop, refuse or never answer: a run ends within its time, keeps what it measured, names what
//! happened, exits 1, and leaves nothing behind.

use crate::spdk_target::{Run, Target, free_hugepages, run_during, target};
use serde_json::{Value, json};
use std::time::Duration;

const NQN: &str = "nqn.2026-01.io.lanemark:faults";
/// Runs ask for 20 s; whatever happens soon after their start must end them well before.
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
const AT: Duration = Duration::from_millis(500);
const SOON: Duration = Duration::from_secs(12);

fn with_null() -> Option<Target> {
    let target = target()?;
    target.null("n0", 1 << 20);
    target.subsystem(NQN, &[(1, "n0")]);
    Some(target)
}

/// The same over both transports: what happens to the target must end a run well; how each ended.
fn on_both(fault: impl Fn(&Target, Value)) -> Vec<Run> {
    let mut ended = Vec::new();
    for vfio in [false, true] {
        let Some(target) = with_null() else { break };
        let (device, listener) = if vfio {
            (target.vfio_user(NQN), target.vfio_user_listener(NQN))
        } else {
            (target.tcp(NQN), target.tcp_listener(NQN))
        };
        let done = run_during(&device, LONG, AT, |_| fault(&target, listener));
        failed_well(&done);
        ended.push(done);
    }
    ended
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
    on_both(|target, _| target.signal("KILL"));
}

#[test]
fn a_stopped_target_ends_the_run() {
    let ended = on_both(|target, _| target.signal("STOP"));
    for done in ended {
        let step = &done.json()["steps"][0];
        assert!(step["abandoned_count"].as_u64().unwrap() > 0, "{done:?}");
    }
}

#[test]
fn a_deleted_subsystem_ends_the_run() {
    on_both(|target, _| {
        target.rpc("nvmf_delete_subsystem", json!({ "nqn": NQN }));
    });
}

#[test]
fn a_removed_listener_ends_the_run() {
    on_both(|target, listener| {
        target.rpc("nvmf_subsystem_remove_listener", listener);
    });
}

/// A controller that goes away and comes back has been reset: its queues are gone, and so is the run. It does not
/// go on in silence with a hole in its figures.
#[test]
fn a_controller_that_was_reset_ends_the_run() {
    on_both(|target, listener| {
        target.rpc("nvmf_subsystem_remove_listener", listener.clone());
        std::thread::sleep(Duration::from_millis(300));
        target.rpc("nvmf_subsystem_add_listener", listener);
    });
}

#[test]
fn a_removed_namespace_ends_the_run_and_is_named() {
    let ended = on_both(|target, _| {
        target.rpc("nvmf_subsystem_remove_ns", json!({ "nqn": NQN, "nsid": 1 }));
    });
    for done in ended {
        let words = "invalid namespace or format";
        assert!(done.stdout.contains(words), "{}", done.stdout);
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
    // The look for never-written data before it takes its 5 s.
    let limit = SOON + Duration::from_secs(8);
    assert!(done.took < limit, "took {:?}: {done:?}", done.took);
    assert_eq!(done.code, Some(1), "{done:?}");
    let step = &done.json()["steps"][0];
    assert_eq!(step["abandoned_count"], 4, "{done:?}");
    assert!(
        step["warnings"]
            .to_string()
            .contains("never-written-unknown"),
        "{step}"
    );
}

/// The device takes reads and never answers them: in the middle of a run, over shared memory.
#[test]
fn a_device_that_falls_silent_is_abandoned_in_time() {
    let Some(target) = target() else { return };
    target.null("n0", 1 << 20);
    target.rpc("bdev_error_create", json!({ "base_name": "n0" }));
    target.subsystem(NQN, &[(1, "EE_n0")]);
    let device = target.vfio_user(NQN);
    let arguments = [
        "--rw",
        "randread",
        "--iodepth",
        "32",
        "--runtime",
        "3s",
        "--ramp_time",
        "0s",
        "--grace",
        "1s",
    ];
    let done = run_during(&device, &arguments, AT, |_| {
        target.rpc(
            "bdev_error_inject_error",
            json!({ "name": "EE_n0", "io_type": "read", "error_type": "pending", "num": 1_000_000 }),
        );
    });
    failed_well(&done);
    assert_eq!(done.json()["steps"][0]["abandoned_count"], 32, "{done:?}");
}

#[test]
fn an_interrupt_ends_a_run_on_a_stopped_target() {
    let Some(target) = with_null() else { return };
    let device = target.vfio_user(NQN);
    let done = run_during(&device, LONG, AT, |run| {
        target.signal("STOP");
        std::thread::sleep(Duration::from_millis(300));
        run.signal("INT");
    });
    target.signal("CONT");
    assert_eq!(done.code, Some(130), "{done:?}");
    assert!(done.took < SOON, "{done:?}");
    assert_eq!(done.json()["status"], "interrupted");
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
    // Nothing of it lies on hugetlbfs, and the next run starts as if nothing had been.
    let mounted = std::fs::read_dir("/dev/hugepages");
    let names = mounted.into_iter().flatten().flatten();
    let left: Vec<_> = names
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name.contains("lanemark"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
    let short = ["--rw", "randread", "--runtime", "200ms"];
    let next = run_during(&device, &short, AT, |_| ());
    assert_eq!(next.code, Some(0), "{next:?}");
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

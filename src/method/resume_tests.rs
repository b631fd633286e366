//! Folders of runs: what is kept stays as it is, and another run is refused by name.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::record::Record;
use serde_json::json;

fn mark() -> RunMark {
    RunMark {
        schema_version: RUN_SCHEMA_VERSION,
        version: "1.2.3".to_owned(),
        git_commit: "abc".to_owned(),
        backend: "sim".to_owned(),
        words: vec!["lanemark".to_owned()],
        folder: None,
        seed: 7,
        devices: vec![DeviceMark {
            path: "disk".to_owned(),
            identity: Some("naa.1".to_owned()),
            model: None,
            serial: Some("S1".to_owned()),
            firmware: None,
            capacity_bytes: 4096,
            logical_block_bytes: 512,
        }],
        plan: json!({ "name": "a", "steps": [{ "name": "one", "runtime_ns": 5 }] }),
    }
}

fn step(name: &str) -> Step {
    let text = include_str!("../../tests/fixtures/records/normal_read.json");
    let mut step = serde_json::from_str::<Record>(text).unwrap().steps[0].clone();
    step.name = name.to_owned();
    step
}

#[test]
fn a_kept_step_comes_back_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("new/run");
    let mut folder = Folder::begin(&path, &mark()).unwrap();
    let kept = step("4 KiB / read\n#1");
    folder.keep(1, &kept).unwrap();
    let file = path.join("steps/00001-4-kib-read-1.json");
    let bytes = fs::read(&file).unwrap();
    let (mut again, found) = Folder::open(&path).unwrap();
    assert_eq!(found, mark());
    assert_eq!(again.kept(1, &kept.name).unwrap().unwrap(), kept);
    assert!(again.kept(2, "other").unwrap().is_none());
    assert_eq!(fs::read(&file).unwrap(), bytes);
    // Nothing half-written is left, and no step passes for another.
    assert_eq!(fs::read_dir(path.join("steps")).unwrap().count(), 1);
    assert!(matches!(
        again.kept(1, "x"),
        Err(ResumeError::Another { .. })
    ));
    // A name without letters is a name.
    folder.keep(2, &step("µ")).unwrap();
    assert_eq!(again.kept(2, "µ").unwrap().unwrap().name, "µ");
}

#[test]
fn a_step_that_failed_is_run_again() {
    let dir = tempfile::tempdir().unwrap();
    let mut folder = Folder::begin(dir.path(), &mark()).unwrap();
    let failed = Step {
        status: Outcome::Failed,
        ..step("a")
    };
    folder.keep(1, &failed).unwrap();
    assert!(folder.kept(1, "a").unwrap().is_none());
}

#[test]
fn folders_with_and_without_a_run_are_told_apart() {
    let dir = tempfile::tempdir().unwrap();
    assert!(matches!(
        Folder::open(dir.path()),
        Err(ResumeError::NoRun(_))
    ));
    Folder::begin(dir.path(), &mark()).unwrap();
    assert!(matches!(
        Folder::begin(dir.path(), &mark()),
        Err(ResumeError::Taken(_))
    ));
    fs::write(dir.path().join("run.json"), "{").unwrap();
    assert!(matches!(
        Folder::open(dir.path()),
        Err(ResumeError::Garbled { .. })
    ));
    let file = dir.path().join("steps/00001-a.json");
    fs::write(&file, "[]").unwrap();
    let mut folder = Folder {
        path: dir.path().to_owned(),
    };
    assert!(matches!(
        folder.kept(1, "a"),
        Err(ResumeError::Garbled { .. })
    ));
}

#[test]
fn another_job_device_or_version_is_refused_by_name() {
    let change = |change: &dyn Fn(&mut RunMark)| {
        let mut now = mark();
        change(&mut now);
        match mark().check(&now, Path::new("F")) {
            Err(ResumeError::Another { what, was, is, .. }) => format!("{what}: {was} / {is}"),
            other => format!("{other:?}"),
        }
    };
    assert_eq!(change(&|_| {}), "Ok(())");
    assert_eq!(change(&|m| m.words.clear()), "Ok(())", "words may differ");
    assert_eq!(
        change(&|m| m.version = "2".to_owned()),
        "the program's version: 1.2.3 / 2"
    );
    assert_eq!(
        change(&|m| m.git_commit = "d".to_owned()),
        "the program's source: abc / d"
    );
    assert_eq!(
        change(&|m| m.backend = "null".to_owned()),
        "the backend: sim / null"
    );
    assert_eq!(
        change(&|m| m.devices[0].serial = Some("S2".to_owned())),
        "the serial number of disk: S1 / S2"
    );
    assert_eq!(
        change(&|m| m.devices[0].identity = None),
        "the identity of disk: naa.1 / none"
    );
    assert_eq!(
        change(&|m| m.devices.clear()),
        "the number of devices: 1 / 0"
    );
    assert_eq!(
        change(&|m| m.plan["steps"][0]["runtime_ns"] = json!(6)),
        "the job's step one: runtime_ns: 5 / 6"
    );
    assert_eq!(
        change(&|m| m.plan["steps"] = json!([])),
        "the job's number of steps: 1 / 0"
    );
    assert_eq!(
        change(&|m| m.plan["name"] = json!("b")),
        "the job: name: a / b"
    );
}

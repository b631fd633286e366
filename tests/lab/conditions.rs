//! What runs beside a run on the same device is seen in its record, and nothing where nothing runs.

use crate::common::{Ran, lanemark};
use crate::support::{Loop, lab};
use lanemark::record::{DeviceConditions, Record, WriteCacheState};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Reads so many blocks of 4 KiB, past the page cache.
fn read_beside(device: &Path, count: u32) {
    let read = Command::new("dd")
        .arg(format!("if={}", device.display()))
        .args(["of=/dev/null", "bs=4k", "iflag=direct", "status=none"])
        .arg(format!("count={count}"))
        .status();
    assert!(read.unwrap().success());
}

/// A run of about two seconds on a device, and what others did meanwhile.
fn run_with(device: &Path, keys: &str, beside: impl FnOnce()) -> Record {
    let words = format!(
        "run --device {} --rw randread --ramp_time 100ms --runtime 2s {keys} --format json --progress none",
        device.display()
    );
    let child = lanemark(&words)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(1200));
    beside();
    let ran = Ran::of(&child.wait_with_output().unwrap());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    ran.record()
}

fn device(record: &Record) -> &DeviceConditions {
    &record.steps[0].conditions.as_ref().unwrap().devices[0]
}

fn warned(record: &Record) -> Option<&str> {
    let mut all = record.steps[0].warnings.iter();
    all.find(|warning| warning.kind == "others-io")
        .map(|warning| warning.text.as_str())
}

#[test]
fn a_reader_beside_a_run_is_counted_to_the_io_and_none_is_none() {
    let Some(_lab) = lab() else { return };
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("image");
    std::fs::write(&image, vec![7_u8; 64 << 20]).unwrap();
    let one = Loop::on(&image, &[]);
    // Whoever looks at new devices has done so.
    std::thread::sleep(Duration::from_millis(300));
    let alone = run_with(&one.path, "--bs 4k --iodepth 8", || ());
    let others = device(&alone).others.as_ref().unwrap();
    assert_eq!((others.ios_count, others.bytes_count), (0, 0), "{others:?}");
    assert_eq!(warned(&alone), None);
    let health = device(&alone);
    assert!(health.before.is_none() && health.after.is_none());
    let why = health.why_not_before.as_deref().unwrap();
    assert!(why.contains("no NVMe or SCSI device"), "{why}");
    let cache = health.write_cache.as_ref().unwrap();
    let name = one.path.file_name().unwrap().to_str().unwrap();
    assert_eq!(cache.source, format!("queue/write_cache of {name}"));
    let shown = format!("/sys/block/{name}/queue/write_cache");
    let is_on = std::fs::read_to_string(shown).unwrap() == "write back\n";
    assert_eq!(cache.state == WriteCacheState::On, is_on, "{cache:?}");

    let beside = run_with(&one.path, "--bs 4k --iodepth 8", || {
        read_beside(&one.path, 200);
    });
    let others = device(&beside).others.as_ref().unwrap();
    assert_eq!(others.ios_count, 200);
    assert_eq!(others.bytes_count, 200 * 4096);
    let text = warned(&beside).unwrap();
    assert!(
        text.contains("at least 200 I/Os, 800 KiB, were not ours"),
        "{text}"
    );

    // Requests that the kernel cuts in pieces are ours all the same.
    let large = run_with(&one.path, "--bs 1M --iodepth 2", || ());
    let others = device(&large).others.as_ref().unwrap();
    assert_eq!((others.ios_count, others.bytes_count), (0, 0), "{others:?}");
    let large = run_with(&one.path, "--bs 1M --iodepth 2", || {
        read_beside(&one.path, 50);
    });
    let others = device(&large).others.as_ref().unwrap();
    assert_eq!(others.bytes_count, 50 * 4096);
    assert!(warned(&large).is_some());
}

#[test]
fn a_second_loop_device_on_the_same_file_counts_as_the_same_device() {
    let Some(_lab) = lab() else { return };
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("image");
    std::fs::write(&image, vec![7_u8; 16 << 20]).unwrap();
    let (one, other) = (Loop::on(&image, &[]), Loop::on(&image, &[]));
    std::thread::sleep(Duration::from_millis(300));
    let record = run_with(&one.path, "--bs 4k --iodepth 4", || {
        read_beside(&other.path, 30);
    });
    let others = device(&record).others.as_ref().unwrap();
    assert_eq!(others.ios_count, 30, "{others:?}");
    assert_eq!(others.counted_on.len(), 2, "{others:?}");
}

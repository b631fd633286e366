//! Whole runs of the program on real devices.

use crate::common::{Ran, run_json, send, start};
use crate::support::{Loop, Stuck, Zram, lab};
use lanemark::record::{Outcome, Step};
use std::time::{Duration, Instant};

#[test]
fn a_4kn_device_refuses_512_byte_blocks_by_name() {
    let Some(_lab) = lab() else { return };
    let dir = tempfile::tempdir().unwrap();
    let made = Loop::sparse(dir.path(), 64 << 20, &["--sector-size", "4096"]);
    let path = made.path.display();
    let (ran, record) = run_json(&format!("run --device {path} --bs 512"));
    assert_eq!((ran.code, record.status), (2, Outcome::Refused));
    let text = record.error.unwrap().text;
    assert!(text.contains("512") && text.contains("4096"), "{text}");
    let mix = "512/10:1k/5:2k/5:4k/60:8k/20";
    let (ran, record) = run_json(&format!(
        "run --device {path} --bssplit {mix} --iodepth 8 --runtime 500ms --ramp_time 0s"
    ));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let dropped: Vec<&str> = (record.warnings.iter())
        .filter(|warning| warning.kind == "bssplit-share-dropped")
        .map(|warning| warning.text.as_str())
        .collect();
    for size in ["512", "1 KiB", "2 KiB"] {
        assert!(dropped.concat().contains(size), "{size}: {dropped:?}");
    }
    let step = &record.steps[0];
    assert_eq!(step.devices[0].logical_block_bytes, 4096);
    assert_eq!(step.devices[0].capacity_bytes, 64 << 20);
    // 60 and 20 of what was asked are 75 and 25 of what is left.
    let asked: Vec<f64> = step.mix.iter().map(|share| share.asked_pct).collect();
    assert_eq!(asked, [75.0, 25.0], "{:?}", step.mix);
}

#[test]
fn a_device_throttled_to_almost_nothing_ends_in_time_and_lists_the_oldest() {
    let Some(_lab) = lab() else { return };
    let Some(stuck) = Stuck::new() else { return };
    let began = Instant::now();
    let words = "run --rw randread --bs 4k --iodepth 16 --runtime 1s --grace 2s --device";
    let (ran, record) = run_json(&format!("{words} {}", stuck.outer.path.display()));
    let took = began.elapsed();
    drop(stuck.throttle);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    // Runtime, grace and ramp, and the look for never-written blocks, which gives up after 5 s.
    assert!(took < Duration::from_secs(12), "{took:?}");
    let step = &record.steps[0];
    assert_eq!(record.status, Outcome::Failed);
    assert_eq!((step.abandoned_count, step.completed_count), (16, 0));
    let error = step.error.as_ref().unwrap();
    assert_eq!(error.kind, "stuck");
    for word in ["16 I/Os", "oldest", "read at LBA", " s old"] {
        assert!(error.text.contains(word), "{word}: {}", error.text);
    }
    assert_eq!(step.slowest.len(), 16);
    for slow in &step.slowest {
        assert!(
            slow.abandoned && slow.latency_ns > 2_000_000_000,
            "{slow:?}"
        );
    }
    let kinds: Vec<&str> = step.warnings.iter().map(|w| w.kind.as_str()).collect();
    assert!(kinds.contains(&"never-written-unknown"), "{kinds:?}");
    // Time for the process that was left behind to end.
    std::thread::sleep(Duration::from_secs(1));
}

#[test]
fn a_signal_on_a_real_device_keeps_what_was_measured() {
    let Some(_lab) = lab() else { return };
    let dir = tempfile::tempdir().unwrap();
    let made = Loop::sparse(dir.path(), 64 << 20, &[]);
    let child = start(&format!(
        "run --rw randread --iodepth 16 --runtime 60s --ramp_time 0s --device {}",
        made.path.display()
    ));
    std::thread::sleep(Duration::from_secs(2));
    send(&child, "INT");
    let asked = Instant::now();
    let ran = Ran::of(&child.wait_with_output().unwrap());
    assert!(asked.elapsed() < Duration::from_secs(5));
    assert_eq!(ran.code, 130, "{}", ran.stderr);
    let record = ran.record();
    let step = &record.steps[0];
    assert_eq!(
        (record.status, step.status),
        (Outcome::Interrupted, Outcome::Interrupted)
    );
    assert!((0.5..3.0).contains(&step.window_s), "{}", step.window_s);
    assert_eq!(step.submitted_count, step.completed_count);
    assert!(step.read.as_ref().unwrap().ios_count > 100);
}

fn zram_step(path: &std::path::Path, stamp: &str, depth: u32) -> Step {
    let words = format!(
        "run --rw randread --bs 4k --iodepth {depth} --runtime 400ms --ramp_time 100ms --stamp {stamp} --device {}",
        path.display()
    );
    let (ran, mut record) = run_json(&words);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    record.steps.remove(0)
}

/// Medians of alternating runs. What the machine's own unrest explains is allowed: as much as runs of one
/// mode differ among themselves.
#[test]
fn exact_and_batch_stamps_agree_within_the_bound_on_zram() {
    let Some(_lab) = lab() else { return };
    let Some(zram) = Zram::new(256 << 20) else {
        return;
    };
    for depth in [1, 128] {
        let (mut p50s, mut bound_ns) = ([vec![], vec![]], 0);
        for round in 0..7 {
            // A B, B A, A B …: a drift of the machine meets both.
            for mode in [round % 2, 1 - round % 2] {
                let stamp = ["exact", "batch"][mode];
                let step = zram_step(&zram.path, stamp, depth);
                assert_eq!(format!("{:?}", step.stamp.mode).to_lowercase(), stamp);
                p50s[mode].push(step.read.as_ref().unwrap().latency_ns.p50);
                bound_ns = bound_ns.max(step.stamp.bound_ns);
            }
        }
        p50s.iter_mut().for_each(|runs| runs.sort_unstable());
        let [exact, batch] = [&p50s[0], &p50s[1]].map(|runs| runs[runs.len() / 2]);
        // The middle half of the runs, of the mode that wavers more.
        let spread = |runs: &Vec<u64>| runs[5] - runs[1];
        let unrest_ns = spread(&p50s[0]).max(spread(&p50s[1]));
        // Three significant digits.
        let bucket_ns = exact.max(batch) / 500 + 1;
        assert!(
            exact.abs_diff(batch) <= bound_ns + bucket_ns + unrest_ns,
            "depth {depth}: exact {exact} ns, batch {batch} ns, bound {bound_ns} ns, bucket {bucket_ns} ns, unrest {unrest_ns} ns: {p50s:?}"
        );
    }
}

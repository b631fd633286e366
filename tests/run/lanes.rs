//! `lanemark lanes`, `expect`, and the verdict that every record carries.

use crate::common::{run, run_json};
use lanemark::record::{CeilingKind, LanesReport, Outcome, VerdictKind};

fn lanes(words: &str) -> (i32, LanesReport) {
    let ran = run(&format!("lanes {words} --format json --progress none"));
    let report = serde_json::from_str(&ran.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}{}", ran.stdout, ran.stderr));
    (ran.code, report)
}

#[test]
fn every_record_says_why_there_is_no_verdict() {
    let dir = tempfile::tempdir().unwrap();
    let scratch = format!("scratch:size=4M,dir={}", dir.path().display());
    for (device, why) in [
        ("null", "null answers in this process"),
        ("sim:latency=100us", "sim lives in virtual time"),
        (scratch.as_str(), "a file"),
    ] {
        let (_, record) = run_json(&format!(
            "run --device {device} --runtime 100ms --ramp_time 0s --iodepth 4"
        ));
        let step = &record.steps[0];
        assert_eq!(step.path.len(), 1, "{device}");
        assert!(step.path[0].unseen[0].why.contains(why), "{:?}", step.path);
        assert_eq!(step.verdict.kind, VerdictKind::Undecided, "{device}");
        assert!(step.verdict.why.contains(why), "{}", step.verdict.why);
        let read = step.ceilings.read.as_ref().unwrap();
        assert!(read.of(CeilingKind::Link).is_none() && step.ceilings.write.is_none());
        // Virtual reactors cost nothing; the others have a price.
        let is_real = !device.starts_with("sim");
        assert_eq!(read.of(CeilingKind::Host).is_some(), is_real, "{device}");
    }
}

#[test]
fn without_measure_nothing_is_read_and_everything_listed() {
    let (code, report) = lanes("null sim");
    assert_eq!((code, report.status), (0, Outcome::Finished));
    let names: Vec<&str> = report.devices.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["null", "sim"]);
    assert!(report.measurements.is_empty());
    let (code, all) = lanes("");
    assert_eq!(code, 0);
    for device in &all.devices {
        let path = &device.path;
        assert!(!path.hops.is_empty() || !path.unseen.is_empty(), "{path:?}");
    }
    let missing = run("lanes /dev/does-not-exist");
    assert_eq!(missing.code, 2, "{}", missing.stdout);
    assert!(
        missing.stderr.contains("no such device"),
        "{}",
        missing.stderr
    );
    for name in ["nosuch", "ffff:ff:1f.7"] {
        assert_eq!(run(&format!("lanes null {name}")).code, 2, "{name}");
    }
    // What is there and has no links in sight is shown, with why.
    let file = run(&format!("lanes {}/Cargo.toml", env!("CARGO_MANIFEST_DIR")));
    assert_eq!(file.code, 0, "{}", file.stderr);
    assert!(file.stdout.contains("unseen"), "{}", file.stdout);
}

/// A simulated device that a cap holds: flat over depth, and burning a quarter of its time changes nothing.
#[test]
fn a_capped_device_is_flat_and_the_host_is_excluded() {
    let (code, report) = lanes("sim:latency=10us,cap_bytes_per_s=1G --measure --runtime 50ms");
    assert_eq!((code, report.status), (0, Outcome::Finished));
    let names: Vec<&str> = report
        .measurements
        .iter()
        .map(|one| one.name.as_str())
        .collect();
    assert_eq!(
        names,
        [
            "sequential read 128 KiB",
            "sequential read 1 MiB",
            "random read 4 KiB"
        ]
    );
    for measurement in &report.measurements {
        assert_eq!((measurement.curve.len(), measurement.burns.len()), (4, 4));
        let unburnt = &measurement.burns[0];
        assert_eq!(unburnt.burn_ns, 0);
        let burnt = &measurement.burns[1];
        assert!(
            burnt.host_bound_iops < 0.81 * unburnt.iops,
            "{measurement:?}"
        );
        assert!(burnt.iops > 0.97 * unburnt.iops, "{measurement:?}");
        assert_eq!(measurement.step.verdict.kind, VerdictKind::Undecided);
        assert!(measurement.step.write.is_none());
    }
}

#[test]
fn a_missed_criterion_is_named_and_exits_with_5() {
    let words = "run --device sim:latency=100us --iodepth 1 --runtime 100ms --ramp_time 0s";
    let (ran, record) = run_json(&format!(
        "{words} --expect read_iops>=9k,p99<=101us,errors<=0"
    ));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let expect = &record.steps[0].expect;
    assert_eq!(expect.len(), 3);
    assert!(
        expect.iter().all(|criterion| criterion.is_met),
        "{expect:?}"
    );
    assert_eq!(expect[1].measured, Some(100_000.0));
    let (ran, record) = run_json(&format!(
        "{words} --expect read_iops>=11k,p99<=99us,max<=1s,write_iops>0"
    ));
    assert_eq!((ran.code, record.status), (5, Outcome::Finished));
    let missed: Vec<&str> = record.steps[0]
        .expect
        .iter()
        .filter(|criterion| !criterion.is_met)
        .map(|criterion| criterion.text.as_str())
        .collect();
    assert_eq!(missed, ["read_iops>=11k", "p99<=99us", "write_iops>0"]);
    for text in missed {
        assert!(ran.stderr.contains(text), "{}", ran.stderr);
    }
    assert_eq!(
        record.steps[0].expect[3].measured, None,
        "nothing was written"
    );
}

#[test]
fn a_criterion_that_is_none_is_refused_with_its_place() {
    let (ran, record) = run_json("run --device null --expect speed>=5");
    assert_eq!((ran.code, record.status), (2, Outcome::Refused));
    let text = record.error.unwrap().text;
    assert!(
        text.contains("--expect") && text.contains("`speed` is no figure"),
        "{text}"
    );
    let dir = tempfile::tempdir().unwrap();
    let job = dir.path().join("job.yaml");
    std::fs::write(
        &job,
        "device: null\nsteps:\n  - rw: read\n    expect: p99<=5\n",
    )
    .unwrap();
    let (ran, record) = run_json(&format!("run {}", job.display()));
    assert_eq!(ran.code, 2);
    let text = record.error.unwrap().text;
    assert!(text.contains("job.yaml:4: expect"), "{text}");
}

/// An I/O that failed weighs more than a criterion that was missed.
#[test]
fn failures_win_over_criteria() {
    let (ran, _) = run_json(
        "run --device sim:latency=100us,errors=50 --iodepth 1 --runtime 50ms --ramp_time 0s --expect read_iops>=1G",
    );
    assert_eq!(ran.code, 1);
}

/// A sum over two ways hides that one of them is full.
#[test]
fn a_full_link_beside_one_that_is_not_is_no_device_bound() {
    let full = "sim:latency=10us,hop=a:100M";
    let slow = "sim:latency=10us,cap_bytes_per_s=200M,hop=b:1000M";
    let (code, report) = lanes(&format!("{full} {slow} --measure --runtime 50ms"));
    assert_eq!(code, 0);
    for lane in &report.measurements {
        let verdict = &lane.step.verdict;
        assert_eq!(verdict.kind, VerdictKind::LinkLimitedLikely, "{verdict:?}");
        assert_eq!(verdict.at.as_deref(), Some("a"));
        assert!(verdict.why.contains("other devices"), "{}", verdict.why);
    }
    // Both full: each at a link of its own.
    let other = "sim:latency=10us,hop=b:300M,seed=2";
    let (_, report) = lanes(&format!("{full} {other} --measure --runtime 50ms"));
    let verdict = &report.measurements[0].step.verdict;
    assert_eq!(verdict.kind, VerdictKind::LinkBound, "{verdict:?}");
    assert_eq!(verdict.at.as_deref(), Some("a + b"));
}

/// Virtual disks do not show what they are: the user says it.
#[test]
fn unlike_media_at_like_rates_are_capped_by_their_platform() {
    let two = "sim:latency=10us,cap_bytes_per_s=200M sim:latency=10us,cap_bytes_per_s=205M,seed=2";
    let kind = |media: &str| {
        let (_, report) = lanes(&format!("{two} --measure --runtime 50ms{media}"));
        report.measurements[2].step.verdict.kind
    };
    assert_eq!(kind(" --media hdd,ssd"), VerdictKind::PlatformCapped);
    assert_eq!(kind(" --media ssd,ssd"), VerdictKind::Undecided);
    assert_eq!(kind(""), VerdictKind::Undecided);
    let ran = run(&format!("lanes {two} --measure --media hdd"));
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(ran.stderr.contains("--media names 1"), "{}", ran.stderr);
}

/// What waited below a hop when the window began is no proof that the hop carries more than it says.
#[test]
fn a_short_window_does_not_make_a_full_hop_a_liar() {
    let devices: String = (1..=3)
        .map(|seed| format!(" sim:hop=hba:250M,cap_bytes_per_s=100M,seed={seed}"))
        .collect();
    let (code, report) = lanes(&format!("--measure{devices}"));
    assert_eq!(code, 0);
    for lane in &report.measurements {
        let verdict = &lane.step.verdict;
        assert_ne!(verdict.kind, VerdictKind::LinkDataDistrusted, "{verdict:?}");
    }
}

/// A device that goes is a failure; nobody has interrupted anything.
#[test]
fn a_device_that_goes_fails_the_measurement() {
    let (code, report) = lanes("sim:gone_after=3000 --measure --runtime 200ms");
    assert_eq!((code, report.status), (1, Outcome::Failed));
}

//! `lanemark peak` on simulated devices whose peak and knee are known.

use crate::common::{run, run_json};
use lanemark::record::VerdictKind;

#[test]
fn the_peak_and_the_knee_of_a_simulated_device_are_found() {
    for (parallelism, knee) in [(1_u64, 1_u64), (20, 32), (64, 64), (100, 128)] {
        let (ran, record) = run_json(&format!(
            "peak --device sim:latency=100us,parallelism={parallelism},capacity=1T --runtime 200ms --ramp_time 50ms"
        ));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let peak = &record.job["peak"];
        let wanted_iops = parallelism as f64 * 1e4;
        let off = peak["peak_iops"].as_f64().unwrap() / wanted_iops - 1.0;
        assert!(off.abs() < 0.01, "{parallelism}: off by {off}");
        assert_eq!(peak["knee_depth_count"], knee, "{parallelism}");
        assert!(record.steps.len() <= 25);
        assert_eq!(peak["ended_by"], "precision");
    }
}

#[test]
fn a_cap_is_the_peak_and_several_devices_are_told_apart() {
    let ran = run(
        "peak --device sim:latency=100us,parallelism=64,cap_iops=200000,capacity=1T --device sim:latency=100us,parallelism=8,capacity=1T --runtime 200ms --ramp_time 50ms",
    );
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    for said in [
        "peak: 280,000 IOPS",
        "cap_iops=200000,capacity=1T: 200,000 IOPS",
        "verdict: ",
    ] {
        assert!(ran.stdout.contains(said), "{said}: {}", ran.stdout);
    }
}

/// Where a device serves one at a time, a burn between two I/Os lowers the rate by just that: no proof that the host
/// binds. The burns are made with more in flight.
#[test]
fn the_peak_of_a_slow_device_is_not_the_hosts() {
    for parallelism in [1, 2, 3, 20] {
        let (ran, record) = run_json(&format!(
            "peak --device sim:latency=100us,parallelism={parallelism},capacity=1T,hop=hba:10G --runtime 100ms --ramp_time 20ms"
        ));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let last = record.steps.last().unwrap();
        assert_eq!(
            last.verdict.kind,
            VerdictKind::DeviceBound,
            "{parallelism}: {}",
            last.verdict.why
        );
        let burns = record.job["peak"]["burns"].as_array().unwrap();
        assert_eq!(burns.len(), 4);
        for burn in burns {
            let kept = burn["iops"].as_f64().unwrap() / (f64::from(parallelism) * 1e4);
            assert!((kept - 1.0).abs() < 0.02, "{parallelism}: {burn}");
        }
    }
}

#[test]
fn what_several_devices_share_is_shown_with_its_ceiling() {
    let ran = run(
        "peak --device sim:latency=10us,hop=a:100M --device sim:latency=10us,hop=a:100M,seed=2 --runtime 100ms --ramp_time 20ms",
    );
    let said = "they share a, which lets 0.105 GB/s through at most: 100 % of it\n";
    assert!(ran.stdout.contains(said), "{}", ran.stdout);
    assert!(
        ran.stdout.contains("verdict: link-bound at a"),
        "{}",
        ran.stdout
    );
}

#[test]
fn what_peak_sets_itself_is_refused_by_name() {
    for (flags, named) in [
        ("--iodepth 4", "iodepth"),
        ("--reactors 2", "reactors"),
        ("--rate_iops 5", "rate_iops"),
        ("--streams 2", "streams"),
        ("--cool_down 5s", "cool_down has no effect on peak"),
        ("--batch complete_min=4", "batch.complete_min"),
        ("--most_depth 100", "--most_depth"),
        ("--most_reactors 0", "--most_reactors"),
    ] {
        let ran = run(&format!("peak --device sim {flags}"));
        assert_eq!(ran.code, 2, "{flags}: {}", ran.stderr);
        assert!(ran.stderr.contains(named), "{flags}: {}", ran.stderr);
    }
}

/// Only the plan of a later probe shows it.
#[test]
fn a_setting_that_cannot_be_is_told_before_the_first_probe() {
    for (words, said) in [
        (
            "--rw read --bs 4k --size 4k --most_reactors 8",
            "8 sequential streams need a region",
        ),
        ("--most_reactors 4 --cpus 0", "`cpus` names 1"),
    ] {
        let (ran, record) = run_json(&format!(
            "peak --device sim {words} --most_depth 4 --runtime 50ms"
        ));
        assert_eq!(ran.code, 2, "{words}: {}", ran.stderr);
        assert!(record.steps.is_empty(), "{words}: something was measured");
        assert!(
            ran.stderr.contains(said) && ran.stderr.contains("--most_reactors"),
            "{}",
            ran.stderr
        );
    }
}

#[test]
fn every_form_has_the_peak_and_the_knee() {
    let words = "peak --device sim:latency=100us,parallelism=20,capacity=1T --runtime 100ms --ramp_time 20ms --randseed 1";
    let of = |format: &str| run(&format!("{words} --format {format} --progress none")).stdout;
    let (_, record) = run_json(words);
    let (text, page, csv) = (of("text"), of("html"), of("csv"));
    for (line, start) in record
        .answer
        .iter()
        .zip(["peak: ", "at depth ", "knee: depth 32"])
    {
        assert!(line.starts_with(start), "{line}");
        assert!(text.contains(line), "{line}: {text}");
        assert!(page.contains(&format!("<li>{line}</li>")), "{line}");
    }
    assert!(
        record
            .answer
            .iter()
            .any(|line| line.starts_with("burnt 0 ns"))
    );
    assert!(
        record.answer[1].contains("on 1 reactor,"),
        "{}",
        record.answer[1]
    );
    assert!(page.contains("<title>lanemark: peak</title>"));
    assert!(page.contains("IOPS against depth"));
    let iops = &record.job["peak"]["peak_iops"];
    let row = csv.lines().find(|line| line.starts_with("answer: peak,"));
    assert!(row.unwrap().contains(&format!(",{iops},")), "{csv}");
}

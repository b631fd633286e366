//! `lanemark scale` on simulated devices behind one hop, whose truth is known.

use crate::common::{run, run_json};
use crate::compare::scratch_dir;
use lanemark::record::{Record, Scale, VerdictKind};

const MIB: f64 = 1_048_576.0;
/// Windows are short: simulated time is exact.
const SHORT: &str = "--rw read --bs 128k --iodepth 8 --runtime 500ms --ramp_time 50ms";

/// Devices of these most bytes a second (in MiB) behind a hop.
fn devices(caps: &[u32], hop: &str) -> String {
    let device = |(seed, cap): (usize, &u32)| {
        format!("--device sim:latency=100us,cap_bytes_per_s={cap}M,seed={seed}{hop} ")
    };
    caps.iter().enumerate().map(device).collect()
}

fn scaled(caps: &[u32], hop: &str) -> (Record, Scale) {
    let (ran, record) = run_json(&format!("scale {}{SHORT}", devices(caps, hop)));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let scale = record.scale.clone().unwrap();
    (record, scale)
}

#[test]
fn the_sum_is_flat_at_the_hop_and_the_saturation_point_exact() {
    for (hop, saturation, sums) in [
        (250, 3, [100.0, 200.0, 250.0, 250.0]),
        (150, 2, [100.0, 150.0, 150.0, 150.0]),
        (90, 1, [90.0, 90.0, 90.0, 90.0]),
    ] {
        let (record, scale) = scaled(&[100; 4], &format!(",hop=hba:{hop}M"));
        for (row, wanted) in scale.rows.iter().zip(sums) {
            let off = row.sum_bytes_per_s / (wanted * MIB) - 1.0;
            assert!(off.abs() < 0.005, "{hop}: {row:?}");
            assert!(row.jain_ratio.unwrap() > 0.999, "{hop}: {row:?}");
        }
        assert_eq!(scale.rows.len(), 4);
        assert_eq!(scale.saturation_count, Some(saturation), "{hop}");
        assert_eq!(scale.is_held_back, Some(true), "{hop}");
        let shared = scale.shared.unwrap();
        assert_eq!(shared.at, "hba");
        assert!((shared.ceiling.high_bytes_per_s / (f64::from(hop) * MIB) - 1.0).abs() < 1e-9);
        let last = scale.rows[3].of_shared_low_pct.unwrap();
        assert!((last - 100.0).abs() < 0.5, "{hop}: {last}");
        // Each alone, then two to four; the verdict over all has every proof.
        assert_eq!(record.steps.len(), 7);
        let verdict = &record.steps[6].verdict;
        assert_eq!(verdict.kind, VerdictKind::LinkBound, "{hop}: {verdict:?}");
        assert_eq!(verdict.at.as_deref(), Some("hba"));
    }
}

#[test]
fn a_slow_device_shows_in_fairness_and_not_as_a_full_hop() {
    let (_, scale) = scaled(&[100, 100, 10], ",hop=hba:1G");
    assert_eq!(scale.is_held_back, Some(false));
    let last = &scale.rows[2];
    assert!((last.least_to_most_ratio.unwrap() - 0.1).abs() < 0.005);
    // Jain of 1, 1, 0.1: 2.1² / (3 × 2.01).
    let jain = 2.1 * 2.1 / (3.0 * 2.01);
    assert!((last.jain_ratio.unwrap() - jain).abs() < 0.005, "{last:?}");
    assert!(last.of_alone_ratio.unwrap() > 0.99);
    let shares = scale.drives.iter().map(|drive| drive.kept_ratio.unwrap());
    assert!(shares.into_iter().all(|kept| (kept - 1.0).abs() < 0.01));
}

#[test]
fn without_a_hop_that_can_be_seen_nothing_is_said_of_one() {
    let (record, scale) = scaled(&[100, 100], "");
    assert!(scale.shared.is_none());
    assert!(scale.why_not_shared.contains("virtual time"), "{scale:?}");
    assert!(scale.rows.iter().all(|row| row.of_shared_low_pct.is_none()));
    assert_eq!(record.steps[2].verdict.kind, VerdictKind::Undecided);
    assert!(scale.nodes.why_not.contains("no node"));
}

#[test]
fn text_csv_and_html_say_the_same() {
    let words = format!("scale {}{SHORT}", devices(&[100; 3], ",hop=hba:150M"));
    let text = run(&words).stdout;
    for said in [
        "OF hba",
        "saturation: 2 of 3 devices give 97 % of the most",
        "verdict: link-bound at hba",
        "shared hop: hba",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
    let csv = run(&format!("{words} --format csv")).stdout;
    let kinds: Vec<&str> = csv
        .lines()
        .filter_map(|line| line.split(',').next())
        .collect();
    assert_eq!(
        kinds,
        [
            "kind", "together", "together", "together", "device", "device", "device"
        ]
    );
    let columns: Vec<usize> = csv.lines().map(|line| line.split(',').count()).collect();
    // Names of simulated devices hold commas, in quotes.
    assert!(
        columns[..4].iter().all(|count| *count == columns[0]),
        "{csv}"
    );
    let html = run(&format!("{words} --format html")).stdout;
    assert!(
        html.contains("Bandwidth against devices at once"),
        "no curve"
    );
}

#[test]
fn counts_are_taken_and_what_cannot_be_done_is_refused_by_name() {
    let four = devices(&[100; 4], ",hop=hba:250M");
    let (_, record) = run_json(&format!("scale {four}{SHORT} --counts 4"));
    let rows = record.scale.unwrap().rows;
    let counts: Vec<u32> = rows.iter().map(|row| row.devices_count).collect();
    assert_eq!(counts, [1, 4]);
    for (words, named) in [
        ("--counts 2,3", "--counts"),
        ("--number_ios 100", "number_ios"),
        ("--io_size 1G", "io_size"),
        ("--rate_iops 100", "rate_iops"),
        (
            "--rw randtrim --allow-write SIM0",
            "scale is for reads and writes",
        ),
        (
            "--rw writezeroes --allow-write SIM0",
            "scale is for reads and writes: a trim, a writezeroes",
        ),
        ("--rw probe", "scale is for reads and writes"),
        ("--sweep iodepth=1,2", "sweep"),
        ("--expect p99<=1ms", "expect"),
        ("--cool_down 5s", "cool_down has no effect on scale"),
        ("--steadystate iops:2%", "steadystate"),
    ] {
        let ran = run(&format!("scale {four} {words}"));
        assert_eq!(ran.code, 2, "{words}: {}", ran.stderr);
        assert!(ran.stderr.contains(named), "{words}: {}", ran.stderr);
    }
    let one = run("scale --device sim");
    assert_eq!(one.code, 2);
    assert!(one.stderr.contains("two devices"), "{}", one.stderr);
    let apart = run("scale --device sim:hop=a:1G --device sim:hop=a:2G");
    assert_eq!(apart.code, 2);
    assert!(apart.stderr.contains("agree"), "{}", apart.stderr);
}

#[test]
fn an_amount_in_a_stream_is_refused() {
    let dir = scratch_dir();
    let job = dir.path().join("job.yaml");
    let text = "steps: [{ rw: read, streams: [{ iodepth: 2 }, { number_ios: 100 }] }]";
    std::fs::write(&job, text).unwrap();
    let two = devices(&[100; 2], "");
    let ran = run(&format!("scale {} {two}", job.display()));
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("scale sets number_ios itself"),
        "{}",
        ran.stderr
    );
}

/// Two streams keep two reactors busy, and one device alone has but one.
#[test]
fn a_count_that_makes_no_plan_is_a_mistake_in_the_job_and_found_first() {
    let two = devices(&[100; 2], "");
    let (ran, record) = run_json(&format!("scale {two} {SHORT} --streams 1 --reactors 2"));
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(record.steps.is_empty());
    let error = record.error.unwrap();
    assert_eq!(error.kind, "usage");
    assert!(error.text.contains("2 reactors"), "{}", error.text);
}

#[test]
fn mistakes_are_told_before_the_guard_is_asked() {
    let dir = scratch_dir();
    let mut words = "scale --rw write".to_owned();
    for name in ["one", "two"] {
        let path = dir.path().join(name);
        std::fs::write(&path, vec![0; 1 << 20]).unwrap();
        words += &format!(" --device {}", path.display());
    }
    // Without a mistake it is the guard that refuses.
    assert_eq!(run(&words).code, 3);
    let bad = [
        ("--counts 3", "--counts 3"),
        ("--rate_iops 10", "rate_iops"),
        ("--streams 1 --reactors 2", "2 reactors"),
    ];
    for (flags, named) in bad {
        let ran = run(&format!("{words} {flags}"));
        assert_eq!(ran.code, 2, "{flags}: {}", ran.stderr);
        assert!(ran.stderr.contains(named), "{flags}: {}", ran.stderr);
    }
}

//! Suites as users run them, on simulated devices.

use crate::common::{Ran, lanemark, run, run_json};
use lanemark::method::suites;
use lanemark::record::{Derived, Outcome, Record};

pub fn figure<'a>(record: &'a Record, name: &str, group: Option<&str>) -> &'a Derived {
    let found = record
        .derived
        .iter()
        .find(|d| d.name == name && d.group.as_deref() == group);
    found.unwrap_or_else(|| panic!("{name} {group:?} in {:?}", record.derived))
}

fn value(derived: &Derived, name: &str) -> f64 {
    let found = derived.values.iter().find(|value| value.name == name);
    found
        .and_then(|value| value.value)
        .unwrap_or_else(|| panic!("{name} in {derived:?}"))
}

fn rate(record: &Record, step: &str) -> f64 {
    let step = record.steps.iter().find(|each| each.name == step).unwrap();
    step.read.as_ref().unwrap().bytes_per_s
}

/// A device that is slow enough for virtual time to cost little real time.
pub const DEVICE: &str =
    "sim:latency=100us,parallelism=8,cap_iops=20000,cap_bytes_per_s=8G,capacity=1T";

#[test]
fn every_suite_runs_quick_and_leaves_nothing_out_unsaid() {
    for name in suites::names() {
        // Hundreds of MiB in flight only cost memory here.
        let depth = match name {
            "bsweep" | "mixsweep" => "--iodepth 16",
            _ => "",
        };
        let (ran, record) = run_json(&format!(
            "suite run {name} --quick --runtime 10ms {depth} --device {DEVICE}"
        ));
        assert_eq!(ran.code, 0, "{name}: {}", ran.stderr);
        assert_eq!(record.status, Outcome::Finished, "{name}");
        assert_eq!(record.suite.as_ref().unwrap().name, name);
        assert!(record.about.is_some() && !record.steps.is_empty(), "{name}");
        for step in &record.steps {
            assert_eq!(step.status, Outcome::Finished, "{name}: {}", step.name);
        }
        assert!(record.left_out.is_empty(), "{name}: {:?}", record.left_out);
        for derived in &record.derived {
            assert!(derived.is_comparable, "{name}: {derived:?}");
            assert!(
                !derived.steps.is_empty() && !derived.values.is_empty(),
                "{name}: {derived:?}"
            );
        }
        assert!(
            record
                .warnings
                .iter()
                .any(|warning| warning.kind == "quick")
        );
    }
}

#[test]
fn a_4kn_device_leaves_sizes_out_by_name_and_marks_the_index() {
    let device = format!("{DEVICE},block=4k");
    let (ran, record) = run_json(&format!(
        "suite run bsweep --quick --runtime 5ms --iodepth 8 --device {device}"
    ));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let left: Vec<&str> = record
        .left_out
        .iter()
        .map(|left| left.step.as_str())
        .collect();
    let wanted = ["random read", "random write"]
        .map(|step| ["512", "1k", "2k"].map(|bs| format!("{step} bs={bs}")));
    assert_eq!(left, wanted.concat());
    assert_eq!(record.steps.len(), 20);
    for step in &record.steps {
        let direction = step.read.as_ref().or(step.write.as_ref()).unwrap();
        assert!(direction.iops > 0.0, "{}: never zero", step.name);
    }
    // The report says so too.
    let text = run(&format!(
        "suite run bsweep --quick --runtime 5ms --iodepth 8 --progress none --device {device}"
    ));
    assert!(
        text.stdout.contains("random read bs=512"),
        "{}",
        text.stdout
    );
    let (_, record) = run_json(&format!(
        "suite run applications --quick --runtime 20ms --device {device}"
    ));
    let index = figure(&record, "index of four applications", None);
    assert!(!index.is_comparable, "{index:?}");
    assert_eq!(
        index.why_not.len(),
        2,
        "file-server and web-server: {index:?}"
    );
    // What is left of the shares is 100 %.
    let mix = &record
        .steps
        .iter()
        .find(|step| step.name == "file-server")
        .unwrap()
        .mix;
    let sizes = mix.iter().filter(|share| share.share.starts_with("bs "));
    let sum: f64 = sizes.map(|share| share.asked_pct).sum();
    assert!((sum - 100.0).abs() < 1e-6, "{mix:?}");
    // Access time at 512 B becomes that of 4 KiB, and says so.
    let (_, record) = run_json(&format!(
        "suite run response --quick --runtime 5ms --device {device}"
    ));
    assert_eq!(record.steps[0].name, "random read of 4 KiB");
    assert!(
        record
            .warnings
            .iter()
            .any(|warning| warning.kind == "scaled")
    );
}

#[test]
fn a_starved_stream_is_seen_and_the_sum_is_right() {
    // The last quarter serves ten times slower: 100 µs against 1 ms.
    let device = "sim:latency=100us,parallelism=8,capacity=400G,slow=75%..100%*10";
    let (ran, record) = run_json(&format!("suite run streams --quick --device {device}"));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(record.steps[0].name, "four readers", "400 GiB are enough");
    let fair = figure(&record, "fairness", Some("four readers"));
    let streams: Vec<f64> = (0..4)
        .map(|n| value(fair, &format!("stream {n}")))
        .collect();
    let wanted = 65536.0 / 100e-6;
    for rate in &streams[..3] {
        assert!((rate / wanted - 1.0).abs() < 0.01, "{rate} of {wanted}");
    }
    assert!(
        (streams[3] * 10.0 / wanted - 1.0).abs() < 0.01,
        "{streams:?}"
    );
    let sum = value(fair, "sum");
    assert!((sum - streams.iter().sum::<f64>()).abs() < 1.0);
    assert!(
        (sum / rate(&record, "four readers") - 1.0).abs() < 0.01,
        "{sum}"
    );
    assert!((value(fair, "slowest / fastest") - 0.1).abs() < 0.002);
    // 3.1² / (4 × 3.01)
    assert!(
        (value(fair, "Jain's index") - 0.798).abs() < 0.005,
        "{fair:?}"
    );
    // Under 400 GiB: quarters, and said so.
    let (_, record) =
        run_json("suite run streams --quick --runtime 20ms --device sim:capacity=100G");
    assert_eq!(record.steps[0].name, "four readers in quarters");
    assert_eq!(record.steps[0].streams[1].first_lba, (25 << 30) / 512);
}

#[test]
fn the_curve_over_the_position_comes_out_as_modelled() {
    let device = "sim:latency=1us,parallelism=8,capacity=1T,cap_bytes_per_s=200M..100M";
    let (ran, record) = run_json(&format!(
        "suite run linear-read --quick --runtime 200ms --device {device}"
    ));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(record.steps.len(), 50);
    let mib = 1_048_576.0;
    for step in &record.steps {
        let at = &step.origin.point[0].value;
        let share = at.trim_end_matches('%').parse::<f64>().unwrap() / 100.0;
        let modelled = (200.0 - 100.0 * share) * mib;
        let found = step.read.as_ref().unwrap().bytes_per_s;
        // Whole requests of 1 MiB in 200 ms.
        assert!(
            (found / modelled - 1.0).abs() < 0.06,
            "{at}: {found} of {modelled}"
        );
    }
    let (_, record) = run_json(&format!("suite run zones --quick --device {device}"));
    for (step, modelled) in [("primary", 200.0), ("middle", 150.5), ("final", 101.0)] {
        let found = rate(&record, &format!("{step} sequential"));
        assert!(
            (found / (modelled * mib) - 1.0).abs() < 0.02,
            "{step}: {found}"
        );
    }
    let zones = figure(&record, "sequential over the zones", None);
    assert!(value(zones, "max") / value(zones, "min") > 1.9, "{zones:?}");
}

#[test]
fn a_short_stroke_shortens_the_access_as_modelled() {
    let device =
        "sim:latency=10us,parallelism=1,capacity=100G,seek=1ms..10ms,cap_bytes_per_s=200M..100M";
    let mut command =
        lanemark("suite run short-stroke --read-only --format json --progress none --device");
    command.arg(device);
    for only in [
        "access time",
        "linear in the whole",
        "linear in 10 %",
        "linear in 4 %",
    ] {
        command.args(["--only", only]);
    }
    let record = Ran::of(&command.output().unwrap()).record();
    // Two uniform places in a part lie a third of it apart on average: 1 ms + 9 ms × part / 3, and 10 µs.
    // 15 s hold 3,700 of them or more: a standard error is 0.9 % of the mean or less, whatever the seed.
    for (size, part) in [("100%", 1.0), ("10%", 0.1), ("4%", 0.04)] {
        let group = format!("access time size={size}");
        let mean_ns = value(figure(&record, "access time", Some(&group)), "mean");
        let modelled_ns = 1.01e6 + 9e6 * part / 3.0;
        assert!(
            (mean_ns / modelled_ns - 1.0).abs() < 0.05,
            "{size}: {mean_ns} of {modelled_ns}"
        );
    }
    // In the first 4 % the slowest place is nearly as fast as the fastest.
    let span = |group: &str| {
        let throughput = figure(&record, "throughput", Some(group));
        value(throughput, "min") / value(throughput, "max")
    };
    assert!(
        span("linear in the whole") < 0.56,
        "{}",
        span("linear in the whole")
    );
    assert!(span("linear in 4 %") > 0.9, "{}", span("linear in 4 %"));
}

#[test]
fn suites_are_listed_shown_and_told_apart() {
    let list = run("suite list --format json");
    let list: serde_json::Value = serde_json::from_str(&list.stdout).unwrap();
    let listed = list["suites"].as_array().unwrap();
    assert_eq!(listed.len(), suites::names().count());
    for suite in listed {
        assert!(
            suite["about"].is_string() && suite["least_s"].as_f64().unwrap() > 0.0,
            "{suite}"
        );
    }
    let writing = |name: &str| {
        let suite = listed.iter().find(|suite| suite["name"] == name).unwrap();
        suite["is_writing"].as_bool().unwrap()
    };
    assert!(writing("bsweep") && !writing("linear-read"));
    let shown = run("suite show zones").stdout;
    assert_eq!(shown, suites::find("zones").unwrap().1);
    let unknown = run("suite run bogus --device null");
    assert_eq!(unknown.code, 2);
    assert!(
        unknown.stderr.contains("no suite `bogus`") && unknown.stderr.contains("bsweep"),
        "{}",
        unknown.stderr
    );
    // A suite of one's own, by its path.
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("mine.yaml");
    std::fs::write(&path, shown).unwrap();
    let (ran, record) = run_json(&format!(
        "suite run {} --quick --runtime 5ms --device {DEVICE} --set ZONE=2% --set MIDDLE=49% --set FINAL=98%",
        path.display()
    ));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(
        record.steps[2].streams[0].first_lba,
        (1 << 40) / 512 / 100 * 98 / 256 * 256
    );
}

#[test]
fn a_suite_that_writes_needs_leave_and_read_only_does_without() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("image");
    std::fs::write(&file, vec![1_u8; 8 << 20]).unwrap();
    // Reads past the page cache would wait for what is still to be written.
    std::fs::File::open(&file).unwrap().sync_all().unwrap();
    let words = format!(
        "suite run bsweep --quick --runtime 100ms --iodepth 8 --device {}",
        file.display()
    );
    let (ran, record) = run_json(&words);
    assert_eq!(
        (ran.code, record.status),
        (3, Outcome::Refused),
        "{}",
        ran.stderr
    );
    let mut command = lanemark(&format!(
        "{words} --read-only --format json --progress none"
    ));
    command.args([
        "--only",
        "random read bs=4k",
        "--only",
        "random read bs=64k",
    ]);
    let ran = Ran::of(&command.output().unwrap());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(ran.record().steps.len(), 2);
    assert_eq!(std::fs::read(&file).unwrap(), vec![1_u8; 8 << 20]);
}

#[test]
fn what_is_about_to_happen_is_told_before() {
    let ran = run(&format!("suite run bsweep --dry-run --device {DEVICE}"));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(
        ran.stdout.contains("estimate: about 14 min; writes about "),
        "{}",
        ran.stdout
    );
    let ran = run(&format!(
        "suite run bsweep --dry-run --format json --device {DEVICE}"
    ));
    let plan: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(
        plan["estimate"]["least_s"].as_f64().unwrap().round(),
        806.0,
        "{}",
        plan["estimate"]
    );
    assert!(plan["estimate"]["most_written_bytes"].as_f64().unwrap() > 1e9);
    let ran = run(&format!(
        "suite run seq --quick --runtime 5ms --device {DEVICE}"
    ));
    assert!(
        ran.stderr
            .contains("note: 2 steps, about 1 s; writes about "),
        "{}",
        ran.stderr
    );
}

#[test]
fn preconditioning_comes_first_and_covers_the_device_as_often_as_asked() {
    let (ran, record) =
        run_json("run --precondition 2 --runtime 10ms --device sim:latency=10us,capacity=64M");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let first = &record.steps[0];
    assert!(first.origin.is_precondition);
    assert_eq!(first.write.as_ref().unwrap().bytes_count, 128 << 20);
    assert_eq!(record.steps[1].name, "randread");
}

/// Files of finished steps in the folder of a run, with what is in them.
fn finished(folder: &std::path::Path) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder.join("steps")).unwrap() {
        let path = entry.unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        let step: lanemark::record::Step = serde_json::from_slice(&bytes).unwrap();
        if step.status == Outcome::Finished {
            files.push((path.display().to_string(), bytes));
        }
    }
    files.sort();
    files
}

#[test]
fn a_suite_whose_device_is_gone_stops_there_and_goes_on_later() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("kept");
    // It is gone after so many I/Os of one run: a fresh start is a device that has come back.
    let device = format!("{DEVICE},gone_after=1500");
    let mut words = format!(
        "suite run qdsweep --quick --runtime 20ms --ramp_time 0s --device {device} --output-dir {}",
        folder.display()
    );
    let mut before = Vec::new();
    for turn in 0..9 {
        let (ran, record) = run_json(&words);
        let (last, earlier) = record.steps.split_last().unwrap();
        assert!(earlier.iter().all(|step| step.status == Outcome::Finished));
        let now = finished(&folder);
        assert_eq!(
            now[..before.len()],
            before[..],
            "finished steps are as they were"
        );
        if ran.code == 0 {
            assert_eq!((record.status, record.steps.len()), (Outcome::Finished, 9));
            assert!(turn > 0, "it was never gone");
            return;
        }
        assert_eq!(
            (ran.code, record.status),
            (1, Outcome::Failed),
            "{}",
            ran.stderr
        );
        assert_eq!(last.error.as_ref().unwrap().kind, "gone");
        assert!(
            now.len() > before.len(),
            "turn {turn} has measured nothing more"
        );
        before = now;
        words = format!("suite run --resume {}", folder.display());
    }
    panic!("it never came to an end");
}

#[test]
fn a_million_ios_of_the_file_server_keep_every_share() {
    let mut command = lanemark(
        "suite run applications --only file-server --number_ios 1000000 --device null --format json --progress none",
    );
    let record = Ran::of(&command.output().unwrap()).record();
    let [step] = record.steps.as_slice() else {
        panic!("{:?}", record.steps)
    };
    assert_eq!(step.completed_count, 1_000_000);
    // Eight sizes, and the share of reads.
    assert_eq!(step.mix.len(), 9, "{:?}", step.mix);
    for share in &step.mix {
        let off_pct = (share.achieved_pct - share.asked_pct).abs();
        assert!(off_pct < 0.2, "{share:?}");
    }
}

/// The file of a built-in suite is in the program: a message names the suite, and what to do about it.
#[test]
fn a_suite_that_does_not_fit_names_itself_and_what_helps() {
    let words = "suite run crystaldiskmark --device sim:capacity=256M --read-only";
    let ran = run(&format!("{words} --progress none"));
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(!ran.stderr.contains("configs/suites"), "{}", ran.stderr);
    for said in [
        "the built-in suite crystaldiskmark",
        "lanemark suite show",
        "--size 50%",
    ] {
        assert!(ran.stderr.contains(said), "{said}: {}", ran.stderr);
    }
    let (ran, record) = run_json(&format!("{words} --size 50% --quick"));
    let is_noted = record.warnings.iter().any(|it| it.kind == "suite-changed");
    assert!(is_noted, "{:?} {}", record.warnings, ran.stderr);
    assert!(record.about.unwrap().contains("(changed here: size=50%)"));
    let (_, record) =
        run_json("suite run crystaldiskmark --device sim:capacity=4G --read-only --quick");
    assert!(!record.warnings.iter().any(|it| it.kind == "suite-changed"));
}

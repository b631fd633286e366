//! The HTML report of a long suite in a real browser.

use crate::common::run;
use crate::report_cells::{cells, expected};
use crate::skipped::skipped;
use crate::support::lab;
use lanemark::record::Record;
use std::path::Path;
use std::process::{Command, Output};

/// A job of forty steps in virtual time: depths, block sizes, mixes, places, streams.
fn job() -> String {
    let mut text = "name: forty\ndevice: 'sim:latency=80us..300us,parallelism=32,capacity=1T'\n\
                    defaults: { runtime: 3s, ramp_time: 1s }\nsteps:\n"
        .to_owned();
    let mut step = |keys: String| text.push_str(&format!("  - {{ {keys} }}\n"));
    for rw in ["randread", "randwrite"] {
        for power in 0..8 {
            let depth = 1 << power;
            step(format!(
                "name: {rw} q{depth}, rw: {rw}, bs: 4k, iodepth: {depth}"
            ));
        }
    }
    for bs in ["512", "4k", "16k", "64k", "256k", "512k", "1m", "2m"] {
        step(format!(
            "name: bs {bs}, rw: randread, bs: {bs}, iodepth: 32"
        ));
    }
    for share in [0, 25, 50, 75, 100] {
        step(format!(
            "name: mix {share}, rw: randrw, rwmixread: {share}, bs: 8k, iodepth: 16"
        ));
    }
    for place in (0..100).step_by(10) {
        step(format!(
            "name: at {place}, rw: read, bs: 128k, iodepth: 4, offset: {place}%, size: 5%"
        ));
    }
    step("name: four streams, rw: read, bs: 64k, iodepth: 1, streams: 4".to_owned());
    text
}

/// Headless Chromium on a page, with flags of the caller's.
fn chromium(dir: &Path, page: &Path, flags: &[&str]) -> Output {
    let profile = tempfile::tempdir_in(dir).unwrap();
    let profile = format!("--user-data-dir={}", profile.path().display());
    Command::new("timeout")
        .args([
            "60",
            "chromium",
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
        ])
        .args(["--disable-quic", "--no-first-run", "--disable-sync"])
        .args([
            "--disable-background-networking",
            "--disable-component-update",
        ])
        .args(["--enable-logging=stderr", &profile])
        .args(flags)
        .arg(format!("file://{}", page.display()))
        .output()
        .unwrap()
}

#[test]
fn a_report_of_forty_steps_opens_in_a_browser_and_shows_the_records_figures() {
    let Some(_lab) = lab() else { return };
    if Command::new("chromium").arg("--version").output().is_err() {
        skipped("needs chromium");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let [job_file, json, page] =
        ["job.yaml", "record.json", "report.html"].map(|name| dir.path().join(name));
    std::fs::write(&job_file, job()).unwrap();
    let ran = run(&format!(
        "run {} --format json -o {}",
        job_file.display(),
        json.display()
    ));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let ran = run(&format!("report {} -o {}", json.display(), page.display()));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let record: Record = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    assert_eq!(record.steps.len(), 40);
    assert!(std::fs::metadata(&page).unwrap().len() < 2_000_000);

    let shown = chromium(dir.path(), &page, &["--dump-dom"]);
    let dom = String::from_utf8(shown.stdout).unwrap();
    let said = String::from_utf8_lossy(&shown.stderr);
    assert!(!said.contains("CONSOLE"), "{said}");
    assert_eq!(cells(&dom), expected(&record));
    for title in [
        "IOPS against depth of each stream",
        "Bandwidth against block size",
        "Latency against share of reads",
        "Bandwidth against place on the device",
        "Latency by percentile",
        "Each stream apart",
    ] {
        assert!(dom.contains(title), "{title}");
    }
    // One drawing for a wide window and one for a phone: each must come to a picture.
    for size in ["1200,2000", "400,2000"] {
        let shot = dir.path().join("shot.png");
        let flags = [
            format!("--window-size={size}"),
            format!("--screenshot={}", shot.display()),
        ];
        chromium(dir.path(), &page, &[&flags[0], &flags[1]]);
        assert!(std::fs::metadata(&shot).unwrap().len() > 20_000, "{size}");
        std::fs::remove_file(&shot).unwrap();
    }
}

//! The HTML report of a long suite in a real browser.

use crate::common::run;
use crate::report_cells::{cells, expected};
use crate::skipped::skipped;
use crate::support::{Loop, lab};
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

fn has_chromium() -> bool {
    let has = Command::new("chromium").arg("--version").output().is_ok();
    if !has {
        skipped("needs chromium");
    }
    has
}

/// Runs with these words and opens the report: the record, and the page as the browser has it.
fn opened(dir: &Path, words: &str) -> (Record, String) {
    let [json, page] = ["record.json", "report.html"].map(|name| dir.join(name));
    let ran = run(&format!(
        "{words} --progress none --format json -o {}",
        json.display()
    ));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let ran = run(&format!("report {} -o {}", json.display(), page.display()));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let record: Record = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    let shown = chromium(dir, &page, &["--dump-dom"]);
    let said = String::from_utf8_lossy(&shown.stderr);
    assert!(!said.contains("CONSOLE"), "{said}");
    let dom = String::from_utf8(shown.stdout).unwrap();
    assert_eq!(cells(&dom), expected(&record));
    (record, dom)
}

/// The derived figures of the page, as (place in the record, name, number).
fn derived(dom: &str) -> Vec<(usize, String, f64)> {
    let attribute = |cell: &str, name: &str| {
        let rest = cell.split(&format!("{name}=\"")).nth(1).unwrap();
        rest.split('"').next().unwrap().to_owned()
    };
    let cells = dom
        .split("<td")
        .filter(|cell| cell.contains("data-number="));
    cells
        .map(|cell| {
            (
                attribute(cell, "data-derived").parse().unwrap(),
                attribute(cell, "data-name"),
                attribute(cell, "data-number").parse().unwrap(),
            )
        })
        .collect()
}

#[test]
fn steady_state_derived_figures_and_what_was_left_out_are_on_the_page() {
    let Some(_lab) = lab() else { return };
    if !has_chromium() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    const DEVICE: &str = "sim:latency=80us..300us,parallelism=32,cap_bytes_per_s=2G..1G";
    let (record, dom) = opened(
        dir.path(),
        &format!("suite run snia-throughput --runtime 200ms --device {DEVICE},capacity=1G"),
    );
    let steady = record.steady.as_ref().unwrap();
    assert!(steady.is_attained && steady.cells.len() == 2);
    let headline = format!(
        "Steady state attained after {} rounds",
        steady.samples_count
    );
    assert!(dom.contains(&headline), "{headline}");
    // A picture for each tracked step: every round, the window, and the line that was fitted to it.
    assert_eq!(dom.matches("<rect class=\"window\"").count(), 2);
    assert_eq!(dom.matches("line fitted to the window</li>").count(), 2);
    for cell in &steady.cells {
        let title = format!("Bandwidth of {}: steady", cell.step);
        assert!(dom.contains(&title), "{title}");
        let points = dom
            .split(&format!("<title>{title}</title>"))
            .nth(1)
            .unwrap();
        let points = points.split("</svg>").next().unwrap();
        assert_eq!(points.matches("<circle").count(), cell.values.len());
    }

    let (record, dom) = opened(
        dir.path(),
        &format!("suite run streams --quick --device {DEVICE},capacity=400G,slow=75%..100%*10"),
    );
    let wanted: Vec<(usize, String, f64)> = record
        .derived
        .iter()
        .enumerate()
        .flat_map(|(index, derived)| {
            let values = derived.values.iter();
            values.filter_map(move |value| Some((index, value.name.clone(), value.value?)))
        })
        .collect();
    assert_eq!(derived(&dom), wanted);
    for words in [
        "Each stream's bandwidth",
        "Bandwidth of each stream",
        "the slowest of 4 streams has ",
        "Slowest I/Os",
    ] {
        assert!(dom.contains(words), "{words}");
    }

    let (record, dom) = opened(
        dir.path(),
        &format!("suite run bsweep --quick --iodepth 8 --device {DEVICE},capacity=1G,block=4k"),
    );
    assert_eq!(record.left_out.len(), 6);
    for left in &record.left_out {
        let shown = format!("<strong>{}</strong>", left.step);
        assert!(dom.contains(&shown), "{shown}");
    }
}

#[test]
fn what_a_step_ran_under_is_on_the_page_with_what_is_not_known() {
    let Some(_lab) = lab() else { return };
    if !has_chromium() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let device = Loop::sparse(dir.path(), 16 << 20, &[]);
    let words = format!("run --runtime 300ms --device {}", device.path.display());
    let (record, dom) = opened(dir.path(), &words);
    let found = &record.steps[0].conditions.as_ref().unwrap().devices[0];
    assert!(dom.contains("Devices before and after each step"));
    assert!(dom.contains("I/O of others"));
    let why = found.why_not_before.as_ref().unwrap();
    assert!(dom.contains(why.as_str()), "{why}");
}

#[test]
fn a_report_of_forty_steps_opens_in_a_browser_and_shows_the_records_figures() {
    let Some(_lab) = lab() else { return };
    if !has_chromium() {
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

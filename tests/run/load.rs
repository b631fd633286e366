//! Open loop: arrivals that do not wait for the device, latency against load, the highest rate that holds.

use crate::common::{run, run_json};
use crate::compare::scratch_dir;

#[test]
fn a_fixed_rate_gives_rate_times_time_samples_and_poisson_three_sigma() {
    for (process, rate, seconds, slack) in
        [("fixed", 1000.0, 5.0, 0.0), ("poisson", 2000.0, 5.0, 3.0)]
    {
        for seed in [1, 2, 3] {
            let (_, record) = run_json(&format!(
                "run --device sim:latency=100us --iodepth 16 --rate_iops {rate} --rate_process {process} \
                 --runtime {seconds}s --ramp_time 0s --randseed {seed}"
            ));
            let count = record.steps[0].read.as_ref().unwrap().ios_count as f64;
            let expected: f64 = rate * seconds;
            assert!(
                (count - expected).abs() <= slack * expected.sqrt(),
                "{process} {seed}: {count}"
            );
        }
    }
}

/// One server, fixed service, Poisson arrivals: the mean wait is ρ / (2 (1 - ρ)) services
/// (Pollaczek-Khinchine).
#[test]
fn scheduled_latency_against_load_is_that_of_the_queue() {
    let (ran, record) = run_json(
        "load --device sim:latency=100us,parallelism=1 --iodepth 256 --load 50,80 --runtime 40s --randseed 3",
    );
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let names: Vec<&str> = record.steps.iter().map(|step| step.name.as_str()).collect();
    assert_eq!(names, ["closed loop", "50 % of peak", "80 % of peak"]);
    assert!((record.job["load"]["peak_iops"].as_f64().unwrap() - 10_000.0).abs() < 10.0);
    for (step, load) in record.steps[1..].iter().zip([0.5, 0.8]) {
        let read = step.read.as_ref().unwrap();
        let scheduled = read.scheduled_latency_ns.as_ref().unwrap();
        let expected_ns = 100_000.0 * (1.0 + load / (2.0 * (1.0 - load)));
        assert!(
            (scheduled.mean / expected_ns - 1.0).abs() < 0.03,
            "{load}: {} {expected_ns}",
            scheduled.mean
        );
        assert!(
            (read.iops / (load * 10_000.0) - 1.0).abs() < 0.01,
            "{load}: {}",
            read.iops
        );
    }
}

#[test]
fn the_highest_rate_that_keeps_p99_is_found() {
    // With one server and evenly spaced arrivals there is no wait below the peak: the limit is the peak.
    let (ran, record) = run_json(
        "load --device sim:latency=100us,parallelism=1 --iodepth 64 --rate_process fixed --load 50 --p99 101us --runtime 1s",
    );
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let highest = record.job["load"]["highest_iops"].as_u64().unwrap();
    assert!((9_800..=10_000).contains(&highest), "{highest}");
    // Poisson arrivals wait: at most 300 µs in 99 of 100 holds up to a load well below that, and every step
    // of the search agrees with where it ended.
    let (_, record) = run_json(
        "load --device sim:latency=100us,parallelism=1 --iodepth 256 --load 10,50,90 --p99 400us --runtime 20s --randseed 3",
    );
    let highest = record.job["load"]["highest_iops"].as_u64().unwrap();
    assert!((3_000..8_000).contains(&highest), "{highest}");
    for step in &record.steps[1..] {
        let rate = step.plan["streams"][0]["rate_iops"].as_f64().unwrap();
        let p99 = step
            .read
            .as_ref()
            .unwrap()
            .scheduled_latency_ns
            .as_ref()
            .unwrap()
            .p99;
        assert_eq!(
            p99 <= 400_000,
            rate <= highest as f64,
            "{}: {p99} at {rate}",
            step.name
        );
    }
    // None does: exit 5, and it is said.
    let words =
        "load --device sim:latency=100us --load 50 --p99 50us --runtime 100ms --progress none";
    let ran = run(words);
    assert_eq!(ran.code, 5, "{}", ran.stderr);
    assert!(
        ran.stdout.contains("no rate that was tried"),
        "{}",
        ran.stdout
    );
}

#[test]
fn what_load_decides_itself_is_refused() {
    for (words, word) in [
        ("load --device sim --rate_iops 5", "rate"),
        ("load --device sim --number_ios 5", "number_ios"),
        (
            "load --device sim --cool_down 5s",
            "cool_down has no effect on load",
        ),
        ("load --device sim --load 50,10", "--load"),
        ("load --device sim --p99 5", "--p99"),
        ("load", "device"),
    ] {
        let ran = run(&format!("{words} --format json"));
        assert_eq!(ran.code, 2, "{words}");
        assert!(ran.stderr.contains(word), "{words}: {}", ran.stderr);
    }
}

/// A rate in one stream would make the closed loop's figure that of the rate.
#[test]
fn what_load_decides_itself_is_refused_in_streams_too() {
    let dir = scratch_dir();
    let job = dir.path().join("job.yaml");
    let layers = |streams: &str| {
        [
            format!("steps: [{{ rw: randread, streams: {streams} }}]"),
            format!("defaults: {{ streams: {streams} }}\nsteps: [{{ rw: randread }}]"),
        ]
    };
    for key in ["rate_iops", "number_ios", "io_size", "passes"] {
        for text in layers(&format!("[{{ iodepth: 2 }}, {{ {key}: 1000 }}]")) {
            std::fs::write(&job, &text).unwrap();
            let ran = run(&format!("load {} --device sim", job.display()));
            assert_eq!(ran.code, 2, "{text}: {}", ran.stderr);
            let said = format!("load sets {key} itself");
            assert!(ran.stderr.contains(&said), "{text}: {}", ran.stderr);
        }
    }
}

/// Only the plan of a window with a rate shows it.
#[test]
fn a_mistake_of_a_later_window_is_told_before_the_first_is_measured() {
    for words in [
        "load --device sim --rate_process nonsense",
        "load --device sim --rate_process nonsense --streams 4",
    ] {
        let (ran, record) = run_json(&format!("{words} --runtime 100ms"));
        assert_eq!(ran.code, 2, "{words}: {}", ran.stderr);
        assert!(record.steps.is_empty(), "{words}: something was measured");
        assert!(
            ran.stderr.contains("allowed: fixed, poisson"),
            "{}",
            ran.stderr
        );
    }
    let ran = run("load --device sim --streams 4 --load 50 --runtime 100ms --progress none");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}

/// The wait is what a rate is about: the page has it, and first.
#[test]
fn a_page_shows_scheduled_latency_first() {
    let words =
        "--device sim:latency=100us,parallelism=8 --rate_iops 100000 --iodepth 16 --runtime 200ms";
    let page = run(&format!("run {words} --format html")).stdout;
    let (_, record) = run_json(&format!("run {words}"));
    let read = record.steps[0].read.as_ref().unwrap();
    let waited = read.scheduled_latency_ns.as_ref().unwrap();
    assert!(waited.p99 > 10 * read.latency_ns.p99, "{}", waited.p99);
    for shown in [
        "<dt>latency</dt><dd>read, scheduled: p50 ",
        "data-field=\"scheduled_latency_ns.p99\"",
        "service p99",
        "read scheduled",
        "read service",
        "Service latency second by second",
    ] {
        assert!(page.contains(shown), "{shown}");
    }
    let place = |page: &str, text: &str| page.find(text).unwrap_or_else(|| panic!("{text}"));
    assert!(place(&page, "scheduled_latency_ns.p50") < place(&page, "\"latency_ns.p50"));
    let page = run("load --device sim:latency=100us,parallelism=1 --iodepth 64 --load 20,50,80 --runtime 200ms --format html").stdout;
    let scheduled = place(&page, "Scheduled latency against rate asked for");
    assert!(scheduled < place(&page, "Service latency against rate asked for"));
}

/// The page and the table have the answer, in the words of the terminal.
#[test]
fn every_form_has_the_answer() {
    let words = "load --device sim:latency=100us,parallelism=1 --iodepth 64 --rate_process fixed --load 50 --p99 101us --runtime 200ms --randseed 1";
    let (_, record) = run_json(words);
    let [highest, peak] = record.answer.as_slice() else {
        panic!("{:?}", record.answer);
    };
    assert!(
        highest.starts_with("highest rate with a scheduled p99"),
        "{highest}"
    );
    let of = |format: &str| run(&format!("{words} --format {format} --progress none")).stdout;
    let (text, page, csv) = (of("text"), of("html"), of("csv"));
    for line in [peak, highest] {
        assert!(text.contains(line), "{line}: {text}");
        assert!(page.contains(&format!("<li>{line}</li>")), "{line}");
    }
    assert!(page.contains("<title>lanemark: load</title>"));
    let rate = record.job["load"]["highest_iops"].as_u64().unwrap();
    let row = csv
        .lines()
        .find(|line| line.starts_with("answer: highest rate"));
    assert!(row.unwrap().contains(&format!(",{rate},")), "{csv}");
}

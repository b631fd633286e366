//! SCSI disks by commands, in the one boot of [`crate::guest`]. What runs there is `sg.sh` and `sg_inside`.

use crate::guest::{Guest, guest};
use lanemark::record::Step;

fn feature<'a>(step: &'a Step, word: &str) -> Option<&'a str> {
    let mut lines = step.backend.features.iter();
    lines.find(|line| line.contains(word)).map(String::as_str)
}

#[test]
fn the_tests_inside_the_machine_pass() {
    let Some(guest) = guest() else { return };
    let said = guest.text("sg-inside.out");
    assert_eq!(guest.number("sg-inside.code"), 0, "{said}");
    assert!(said.contains("3 passed"), "{said}");
}

#[test]
fn large_ios_are_sent_as_several_commands_and_the_record_names_the_limit() {
    let Some(guest) = guest() else { return };
    for serial in ["LABSAS0001", "LABRAID0001", "LABSATA0001"] {
        for size in ["4k", "260k", "1M", "4M"] {
            let name = format!("sg-{serial}-{size}");
            let step = guest.step(&name);
            assert_eq!((step.completed_count, step.failed_count), (12, 0), "{name}");
            assert_eq!(step.backend.name, "sg");
            assert!(
                feature(&step, "up to ").unwrap().contains("max_sectors_kb"),
                "{name}"
            );
            let several = feature(&step, "commands for 12 I/Os");
            assert_eq!(
                several.is_some(),
                is_split(guest, &name),
                "{name}: {step:#?}"
            );
        }
        let probe = guest.step(&format!("sg-{serial}-probe"));
        assert_eq!(probe.probe.unwrap().ios_count, 100);
        assert!(probe.read.is_none());
    }
}

/// The plan says so before the run, where the size is above the limit.
fn is_split(guest: &Guest, name: &str) -> bool {
    let record = guest.record(name);
    record
        .warnings
        .iter()
        .any(|warning| warning.kind == "io-split")
}

#[test]
fn writes_trims_and_flushes_go_through_and_only_with_leave() {
    let Some(guest) = guest() else { return };
    let step = guest.step("sg-by-disk");
    assert_eq!(step.backend.name, "sg");
    let written = step.write.unwrap().ios_count;
    assert!(written > 100 && step.flush.unwrap().ios_count >= written / 16 - 1);
    let trimmed = guest.step("sg-trim").trim.unwrap();
    assert_eq!(trimmed.ios_count, 20);
    guest.refused("sg-unasked", &["--allow-write"]);
    guest.refused("sg-mounted", &["mounted at /mnt"]);
}

#[test]
fn whether_data_are_copied_is_in_the_record() {
    let Some(guest) = guest() else { return };
    assert_eq!(guest.text("sg-direct-off.out").trim(), "0");
    let copied = guest.step("sg-LABSAS0001-4k");
    assert!(
        feature(&copied, "data: copied")
            .unwrap()
            .contains("allow_dio")
    );
    let direct = guest.step("sg-direct");
    assert!(feature(&direct, "data: direct I/O").is_some());
    assert_eq!(feature(&direct, "copied all the same"), None);
}

#[test]
fn medium_errors_are_told_in_words_with_their_block_and_spare_the_rest() {
    let Some(guest) = guest() else { return };
    assert_eq!(guest.number("sg-medium.code"), 1);
    let record = guest.record("sg-medium");
    let step = &record.steps[0];
    assert_eq!((step.completed_count, step.failed_count), (1014, 10));
    let error = &step.errors[0];
    assert_eq!(
        (step.errors.len(), error.count, error.first_lba),
        (1, 10, 0x1234)
    );
    let words = "SCSI check condition: medium error, unrecovered read error (3/11/00)";
    assert_eq!(error.status, words);
    assert!(
        feature(step, "sense of 10 reads")
            .unwrap()
            .ends_with("at LBA 4660")
    );
}

#[test]
fn a_unit_attention_at_start_is_retried_and_told() {
    let Some(guest) = guest() else { return };
    let step = guest.step("sg-attention");
    assert_eq!((step.completed_count, step.failed_count), (100, 0));
    let told = feature(&step, "at start, retried once").unwrap();
    assert!(
        told.contains("unit attention, capacity data has changed (6/2a/09)"),
        "{told}"
    );
}

/// The delay that scsi_debug adds is known. The best median of five each: the emulator's unrest only adds.
#[test]
fn a_millisecond_more_of_scsi_debug_is_a_millisecond_more() {
    let Some(guest) = guest() else { return };
    for backend in ["sg", "uring"] {
        let p50_ns = |delay: u32| {
            let one = |round| {
                let step = guest.step(&format!("{backend}-delay-{delay}-{round}"));
                step.read.unwrap().latency_ns.p50
            };
            (1..=5).map(one).min().unwrap()
        };
        let (short_ns, long_ns) = (p50_ns(1), p50_ns(2));
        assert!(short_ns >= 1_000_000, "{backend}: {short_ns}");
        let added_ns = long_ns.saturating_sub(short_ns);
        assert!(
            (950_000..=1_050_000).contains(&added_ns),
            "{backend}: {added_ns}: {short_ns} to {long_ns}"
        );
    }
}

/// First in, first out: each waits for the 60 before it. The last in, first out of a queue at head would show
/// a median of one delay and a slowest of nearly the whole run.
#[test]
fn past_the_devices_depth_nothing_starves() {
    let Some(guest) = guest() else { return };
    let step = guest.step("sg-depth");
    let depth = &step.depth;
    assert_eq!(
        (depth.device_count, depth.queued_count),
        (Some(4), Some(60))
    );
    let latency = step.read.unwrap().latency_ns;
    let turns_ns = 16 * 1_000_000;
    assert!(latency.p50 >= turns_ns * 9 / 10, "{latency:?}");
    assert!(latency.p99 <= latency.p50 * 2, "{latency:?}");
    assert!(latency.max <= latency.p50 * 4, "{latency:?}");
    let shared = guest.step("sg-shared");
    let counts: Vec<u64> = shared
        .reactors
        .iter()
        .map(|reactor| reactor.ios_count)
        .collect();
    assert_eq!(counts, [500, 500]);
    let ends: Vec<f64> = shared.streams.iter().map(|stream| stream.iops).collect();
    assert!(
        ends[0] < ends[1] * 1.5 && ends[1] < ends[0] * 1.5,
        "{ends:?}"
    );
}

#[test]
fn a_disk_that_is_deleted_or_set_offline_in_mid_run_ends_it_at_once() {
    let Some(guest) = guest() else { return };
    for name in ["lost-sg", "lost-uring", "lost-sg-offline"] {
        assert_eq!(guest.number(&format!("{name}.code")), 1, "{name}");
        let record = guest.record(name);
        let step = &record.steps[0];
        let error = step.error.as_ref().unwrap();
        assert_eq!(
            (error.kind.as_str(), error.exit_code),
            ("gone", 1),
            "{name}: {error:?}"
        );
        assert!(
            (0.5..20.0).contains(&step.window_s),
            "{name}: {}",
            step.window_s
        );
        assert!(step.read.as_ref().unwrap().ios_count > 100, "{name}");
        assert!(
            step.failed_count <= 16,
            "{name}: {} failed",
            step.failed_count
        );
        let took_ms = guest.number(&format!("{name}.ms"));
        assert!(took_ms < 8_000, "{name}: {took_ms} ms after it was lost");
    }
}

#[test]
fn what_a_command_costs_is_priced() {
    let Some(guest) = guest() else { return };
    assert_eq!(
        guest.number("sg-calibrate.code"),
        0,
        "{}",
        guest.text("sg-calibrate.err")
    );
    let priced: serde_json::Value = serde_json::from_str(&guest.text("sg-calibrate.out")).unwrap();
    let stages = priced["stages"].as_array().unwrap();
    for stage in [
        "submit, 1 at a time",
        "reap, 1 at a time",
        "submit, 32 at a time",
    ] {
        let found = stages
            .iter()
            .find(|found| found["stage"] == stage && found["backend"] == "sg");
        let ns = found.unwrap_or_else(|| panic!("{stage}: {stages:?}"))["ns_per_io"].as_f64();
        assert!(ns.unwrap() > 100.0, "{stage}");
    }
}

//! SCSI disks by commands, in the one boot of [`crate::guest`]. What runs there is `sg.sh` and `sg_inside`.

use crate::guest::guest;
use crate::skipped::skipped;
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
    let mut split_count = 0;
    for serial in ["LABSAS0001", "LABRAID0001", "LABSATA0001"] {
        let name = format!("sg-{serial}");
        assert_eq!(guest.number(&format!("{name}.code")), 0, "{name}");
        let record = guest.record(&name);
        let limit_bytes = limit_bytes(&record.steps[0]);
        for step in &record.steps[..4] {
            assert_eq!((step.completed_count, step.failed_count), (12, 0), "{name}");
            let io_bytes = step.read.as_ref().unwrap().bytes_count / 12;
            let parts = io_bytes.div_ceil(limit_bytes);
            let told = format!("{} commands for 12 I/Os", 12 * parts);
            let told = step.backend.features.contains(&told);
            assert_eq!(told, parts > 1, "{name}, {}: {:?}", step.name, step.backend);
            split_count += usize::from(parts > 1);
        }
        // The plan says so before the run.
        let noted = record
            .warnings
            .iter()
            .any(|warning| warning.kind == "io-split");
        assert!(noted, "{name}: {:?}", record.warnings);
    }
    assert!(split_count >= 3);
}

/// What the record says of one command: `up to 128 KiB per command (max_sectors_kb, …`.
fn limit_bytes(step: &Step) -> u64 {
    let line = feature(step, "per command (max_sectors_kb").unwrap();
    let mut words = line.split("up to ").nth(1).unwrap().split(' ');
    let number: u64 = words.next().unwrap().parse().unwrap();
    match words.next().unwrap() {
        "KiB" => number << 10,
        "MiB" => number << 20,
        unit => panic!("{unit} in {line}"),
    }
}

/// The emulated MegaRAID fails every command that moves nothing: that is found out before, and told.
#[test]
fn probes_are_sent_where_the_controller_takes_them() {
    let Some(guest) = guest() else { return };
    for name in ["sg-LABSAS0001", "sg-LABSATA0001"] {
        let probe = &guest.record(name).steps[4];
        assert_eq!(probe.probe.as_ref().unwrap().ios_count, 100, "{name}");
        assert!(probe.read.is_none());
    }
    assert_eq!(guest.number("sg-no-probe.code"), 2);
    let said = guest.text("sg-no-probe.err");
    assert!(said.contains("fails TEST UNIT READY"), "{said}");
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
    let zeroed = guest.step("sg-zeroes");
    assert_eq!(zeroed.writezeroes.unwrap().ios_count, 20);
    assert_eq!(guest.number("sg-no-zeroes.code"), 2);
    let said = guest.text("sg-no-zeroes.err");
    assert!(said.contains("cannot write zeros: SATA"), "{said}");
    guest.refused("sg-mounted", &["mounted at /mnt"]);
}

#[test]
fn whether_data_are_copied_is_in_the_record() {
    let Some(guest) = guest() else { return };
    let copied = guest.step("sg-by-disk");
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

/// The disk became smaller than it was when the run began: from 1 GiB to 32 MiB.
#[test]
fn what_lies_past_the_end_fails_by_name_with_its_block() {
    let Some(guest) = guest() else { return };
    assert_eq!(guest.number("sg-shrunk.code"), 1);
    let record = guest.record("sg-shrunk");
    let step = &record.steps[0];
    let of = |words: &str| {
        step.errors
            .iter()
            .find(|error| error.status.contains(words))
    };
    let past = of("logical block address out of range (5/21/00)");
    let past = past.unwrap_or_else(|| panic!("{:?}", step.errors));
    assert!(past.op == "read" && past.count > 50, "{past:?}");
    assert!(past.first_lba >= 65_536 - 7, "{past:?}");
    let told = feature(step, "(5/21/00)").unwrap();
    let words = format!("at LBA {}", past.first_lba);
    assert!(told.contains(&words), "{told}");
    // Whoever comes first after the change is told of it instead.
    let changed = of("capacity data has changed").unwrap();
    assert_eq!(
        (changed.count, step.errors.len()),
        (1, 2),
        "{:?}",
        step.errors
    );
    assert_eq!(past.count + 1, step.failed_count);
    assert!(step.completed_count > 50);
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

/// scsi_debug says 38 °C of at most 65; the emulator's own disks have no log pages.
#[test]
fn log_pages_tell_the_temperature_by_commands_and_by_the_block_layer() {
    let Some(guest) = guest() else { return };
    for name in ["sg-attention", "uring-delay-1-1"] {
        let record = guest.record(name);
        let device = &record.steps[0].conditions.as_ref().unwrap().devices[0];
        for health in [&device.before, &device.after] {
            let health = health
                .as_ref()
                .unwrap_or_else(|| panic!("{name}: {device:?}"));
            let source = &health.source;
            assert!(source.starts_with("SCSI log pages of /dev/"), "{source}");
            let degrees = (health.temperature_celsius, health.limit_celsius);
            assert_eq!(degrees, (Some(38.0), Some(65.0)), "{name}");
            assert_eq!((health.used_pct, health.alarms.len()), (None, 0), "{name}");
        }
        let others = device.others.as_ref().unwrap();
        assert_eq!(others.ios_count, 0, "{name}: {others:?}");
    }
    let mut plain = guest.step("sg-by-disk").conditions.unwrap();
    let plain = plain.devices.remove(0);
    assert!(plain.before.is_none() && plain.after.is_none());
    let why = plain.why_not_before.unwrap();
    assert!(why.contains("LOG SENSE failed"), "{why}");
}

/// The delay that scsi_debug adds is known. The median of 32 medians of each, over rounds in which the delays take
/// turns: the emulator's unrest lasts longer than a round, and one lucky step of either would be taken for the truth.
#[test]
fn a_millisecond_more_of_scsi_debug_is_a_millisecond_more() {
    let Some(guest) = guest() else { return };
    for backend in ["sg", "uring"] {
        let p50s_ns = |delay: u32| {
            let rounds = (1..=4).map(|round| format!("{backend}-delay-{delay}-{round}"));
            let steps = rounds.flat_map(|name| guest.record(&name).steps);
            let p50s = steps.map(|step| step.read.unwrap().latency_ns.p50);
            let mut p50s: Vec<u64> = p50s.collect();
            assert_eq!(p50s.len(), 32, "{p50s:?}");
            p50s.sort_unstable();
            p50s
        };
        let (short, long) = (p50s_ns(1), p50s_ns(2));
        assert!(short[0] >= 1_000_000, "{backend}: {short:?}");
        let median = |all: &[u64]| u64::midpoint(all[15], all[16]);
        let (short_ns, long_ns) = (median(&short), median(&long));
        let added_ns = long_ns.saturating_sub(short_ns);
        let told = format!("{backend}: {added_ns} ns more: {short:?} to {long:?}");
        // A delay that is not taken, or taken twice, lies far outside whatever the emulator does.
        assert!((850_000..=1_150_000).contains(&added_ns), "{told}");
        if !(950_000..=1_050_000).contains(&added_ns) {
            // Emulator and guest want two cores to themselves, and cores that sleep must wake in time.
            skipped(&format!(
                "the emulator wakes late, or other work took its cores: {told}"
            ));
        }
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
    // 64 in flight, four at a time of one millisecond each: 16 turns.
    assert!(latency.p50 >= 15_000_000, "{latency:?}");
    // By first in, first out the slowest waits for 1/31 of the run; the emulator's unrest multiplies that.
    let window_ns = (step.window_s * 1e9) as u64;
    assert!(latency.max * 3 < window_ns, "{latency:?} of {window_ns}");
    let shared = guest.step("sg-shared");
    let counts: Vec<u64> = shared
        .reactors
        .iter()
        .map(|reactor| reactor.ios_count)
        .collect();
    assert_eq!(counts, [300, 300]);
}

#[test]
fn a_disk_that_is_deleted_or_set_offline_in_mid_run_ends_it_at_once() {
    let Some(guest) = guest() else { return };
    for name in ["lost-sg", "lost-uring"] {
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
            (0.1..50.0).contains(&step.window_s),
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

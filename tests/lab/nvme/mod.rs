//! NVMe by passthrough, in one boot of the emulated machine (topology `nvme-io`). What runs there is `nvme.sh`
//! and the tests of [`inside`].

mod across;
mod inside;

use crate::emulated::{Boot, Guest, boot};

static GUEST: Boot<Guest> = Boot::new();

/// What came of the one boot; nothing, with the reason told, where there can be none.
#[track_caller]
fn guest() -> Option<&'static Guest> {
    let tests = std::env::current_exe().unwrap();
    let words = ["tests/lab/nvme.sh", env!("CARGO_BIN_EXE_lanemark")];
    GUEST.get(|| boot("nvme-io", &words, &[tests.to_str().unwrap()]))
}

/// The contract and the bytes, which only a program inside can look at.
#[test]
fn the_tests_inside_the_machine_pass() {
    let Some(guest) = guest() else { return };
    let said = guest.text("tests.out");
    assert_eq!(guest.code("tests"), 0, "{said}");
    assert!(!said.contains("SKIPPED"), "{said}");
    assert!(said.contains("test nvme::inside::"), "{said}");
}

/// By the block layer, by passthrough and by SPDK, each what the others wrote.
#[test]
fn what_one_path_writes_the_other_two_read() {
    let Some(guest) = guest() else { return };
    for name in ["across-claim", "across-release"] {
        let said = guest.text(&format!("{name}.err"));
        assert_eq!(guest.code(name), 0, "{name}: {said}");
    }
    for stage in ["stage_1", "stage_2", "stage_3"] {
        let said = guest.text(&format!("{stage}.out"));
        assert_eq!(guest.code(stage), 0, "{said}");
        assert!(said.contains("1 passed"), "{said}");
    }
}

/// Protection information, bytes beside the block and bytes behind it, on a controller that SPDK drives.
#[test]
fn formats_with_metadata_run_through_spdk_or_are_refused_by_name() {
    let Some(guest) = guest() else { return };
    let of = |name: &str, words: &str| {
        let step = guest.step(name);
        let told = step
            .backend
            .features
            .iter()
            .any(|line| line.contains(words));
        assert!(told, "{name}: {:?}", step.backend.features);
        assert_eq!((step.backend.name.as_str(), step.failed_count), ("spdk", 0));
        step
    };
    let protected = of("spdk-pi", "PRACT");
    assert!(protected.read.is_some() && protected.write.is_some());
    let zeroes = of("spdk-pi-zeroes", "PRACT").writezeroes;
    assert_eq!(zeroes.unwrap().ios_count, 50);
    // What was zeroed is read with its protection information checked.
    assert_eq!(of("spdk-pi-read", "PRACT").read.unwrap().ios_count, 50);
    let beside = of("spdk-separate", "64 bytes of separate metadata");
    assert!(beside.read.is_some() && beside.write.is_some());
    of("spdk-separate-large", "64 bytes of separate metadata");
    guest.refused_with(2, "spdk-extended", &["64 bytes of interleaved metadata"]);
}

#[test]
fn a_namespace_is_driven_by_its_generic_node_and_the_record_says_how() {
    let Some(guest) = guest() else { return };
    let step = guest.step("read");
    assert_eq!(step.read.as_ref().unwrap().ios_count, 500);
    assert_eq!(step.backend.name, "uring-cmd");
    let features = step.backend.features.join("; ");
    for words in [
        "NVMe passthrough by ng",
        "polled: no, the queue has no poll support",
        "format 0: 512-byte blocks",
        "health: 50 °C",
        "registered buffers",
    ] {
        assert!(features.contains(words), "no `{words}` in {features}");
    }
    let device = &step.devices[0];
    assert_eq!(device.model.as_deref(), Some("QEMU NVMe Ctrl"));
    assert_eq!(device.serial.as_deref(), Some("LABIO0001"));
    assert_eq!(device.identity.as_deref(), Some("LABIO0001 ns:1"));
    assert_eq!(
        (device.kind.as_str(), device.capacity_bytes),
        ("nvme", 256 << 20)
    );
    assert_eq!(
        (step.depth.device_count, step.depth.queued_count),
        (Some(32), Some(0))
    );
    assert_eq!(guest.step("by-block").backend.name, "uring-cmd");
    let mix = guest.step("mix");
    assert!(mix.flush.unwrap().ios_count > 10 && mix.write.is_some());
    assert_eq!(guest.step("trim").trim.unwrap().ios_count, 50);
    for name in ["zeroes", "zeroes-pi"] {
        let step = guest.step(name);
        let zeroes = step.writezeroes.unwrap();
        assert!(zeroes.ios_count == 50 && step.write.is_none(), "{name}");
    }
    guest.refused_with(2, "zeroes-large", &["260 KiB", "128 KiB"]);
    guest.refused_with(2, "zeroes-uring", &["cannot write zeros", "uring-cmd"]);
    // Each namespace is filled in its own right, though they have one serial number.
    for name in ["prepare-1", "prepare-2"] {
        let warnings = guest.record(name).warnings;
        let filled = warnings.iter().find(|warning| warning.kind == "prepared");
        let text = &filled
            .unwrap_or_else(|| panic!("{name}: {warnings:?}"))
            .text;
        assert!(text.contains("1 MiB of random data"), "{name}: {text}");
    }
}

/// The emulated drive is at 323 K. Its log is read by whatever node there is, before and after.
#[test]
fn the_drives_health_is_in_the_record_whoever_drives_it() {
    let Some(guest) = guest() else { return };
    for (name, source) in [
        ("read", "SMART log by /dev/ng"),
        ("by-uring", "SMART log by /dev/nvme"),
    ] {
        let step = guest.step(name);
        let device = &step.conditions.as_ref().unwrap().devices[0];
        for health in [&device.before, &device.after] {
            let health = health
                .as_ref()
                .unwrap_or_else(|| panic!("{name}: {device:?}"));
            assert!(health.source.starts_with(source), "{}", health.source);
            assert_eq!(health.temperature_celsius, Some(50.0), "{name}");
            assert_eq!(
                (health.used_pct, health.media_errors_count),
                (Some(0), Some(0))
            );
            assert!(health.alarms.is_empty(), "{health:?}");
        }
        // The drive counts what was read of it.
        let read = |health: &Option<lanemark::record::Health>| health.as_ref()?.read_bytes;
        assert!(read(&device.after) >= read(&device.before), "{name}");
        let others = device.others.as_ref().unwrap();
        assert_eq!(others.ios_count, 0, "{name}: {others:?}");
    }
    let step = guest.step("others");
    let others = step.conditions.unwrap().devices.remove(0).others.unwrap();
    assert_eq!((others.ios_count, others.bytes_count), (40, 40 * 4096));
    assert!(
        step.warnings
            .iter()
            .any(|warning| warning.kind == "others-io")
    );
}

#[test]
fn probes_price_the_path_and_the_block_layer_has_none() {
    let Some(guest) = guest() else { return };
    for name in ["probe", "polled-probe"] {
        let step = guest.step(name);
        let probe = step.probe.unwrap();
        assert!(probe.ios_count >= 20 && probe.bytes_count == 0, "{name}");
        assert!(step.read.is_none(), "{name}");
    }
    let read = guest.step("probe-read").read.unwrap();
    assert_eq!((read.ios_count, read.bytes_count), (200, 200 * 512));
    guest.refused_with(2, "probe-uring", &["cannot probe", "probe-read"]);
}

#[test]
fn limits_and_formats_are_kept_or_refused_by_name() {
    let Some(guest) = guest() else { return };
    assert_eq!(guest.step("largest").read.unwrap().ios_count, 100);
    guest.refused_with(2, "too-large", &["260 KiB", "128 KiB"]);
    guest.refused_with(2, "twice", &["same device"]);
    let pi = guest.step("pi");
    let stripped = pi
        .backend
        .features
        .iter()
        .any(|line| line.contains("PRACT"));
    assert!(stripped, "{:?}", pi.backend.features);
    guest.refused_with(
        2,
        "separate",
        &["64 bytes of separate metadata", "nvme format"],
    );
    guest.refused_with(2, "extended", &["64 bytes of interleaved metadata"]);
}

#[test]
fn one_bad_sector_is_told_with_its_block_and_nothing_else_fails() {
    let Some(guest) = guest() else { return };
    assert_eq!(guest.code("error"), 1, "{}", guest.text("error.err"));
    let step = &guest.record("error").steps[0];
    let [error] = step.errors.as_slice() else {
        panic!("{:?}", step.errors)
    };
    assert_eq!(
        (error.op.as_str(), error.count, error.first_lba),
        ("read", 1, 2048)
    );
    assert!(error.status.contains("unrecovered read error"), "{error:?}");
    assert_eq!((step.completed_count, step.failed_count), (511, 1));
    assert_eq!(step.read.as_ref().unwrap().ios_count, 511);
}

/// The namespace became smaller than it was when the run began.
#[test]
fn what_lies_past_the_end_fails_by_name_with_its_block() {
    let Some(guest) = guest() else { return };
    let said = guest.text("shrunk.err");
    assert_eq!(guest.code("shrunk"), 1, "{said}");
    let step = &guest.record("shrunk").steps[0];
    assert_eq!(step.backend.name, "uring-cmd");
    let [error] = step.errors.as_slice() else {
        panic!("{:?}", step.errors)
    };
    assert!(error.status.contains("LBA out of range"), "{error:?}");
    let half_blocks = (32 << 20) / u64::from(step.devices[0].logical_block_bytes);
    assert!(
        error.op == "read" && error.first_lba >= half_blocks - 7,
        "{error:?}"
    );
    assert_eq!(error.count, step.failed_count);
    // The lower half is read to the end.
    assert!(
        step.completed_count > 200 && step.failed_count > 50,
        "{step:?}"
    );
    let last = step.series.last().unwrap();
    assert!(last.errors_count > 0 && last.read.is_some(), "{last:?}");
    assert_eq!(step.error.as_ref().unwrap().exit_code, 1);
}

#[test]
fn writing_past_the_block_node_is_guarded_like_the_block_node() {
    let Some(guest) = guest() else { return };
    guest.refused_with(3, "mounted", &["mounted at /mnt"]);
    assert!(!guest.step("mounted-read").devices[0].in_use.is_empty());
    let holding = guest.step("holding");
    assert!(holding.write.unwrap().ios_count > 0);
    assert!(
        holding
            .backend
            .features
            .iter()
            .any(|line| line.contains("held"))
    );
    assert_ne!(
        guest.code("held"),
        0,
        "mounted while it was written past the node"
    );
    guest.refused_with(3, "serial", &["not unique", "/dev/nvme"]);
    guest.step("by-path");
}

#[test]
fn a_removal_in_mid_run_ends_it_at_once_with_what_was_measured() {
    let Some(guest) = guest() else { return };
    for name in ["unbind", "head"] {
        assert_eq!(
            guest.code(name),
            1,
            "{name}: {}",
            guest.text(&format!("{name}.err"))
        );
        let record = guest.record(name);
        let step = &record.steps[0];
        let error = step.error.as_ref().unwrap();
        assert_eq!(
            (error.kind.as_str(), error.exit_code),
            ("gone", 1),
            "{name}: {error:?}"
        );
        assert!(
            (1.0..30.0).contains(&step.window_s),
            "{name}: {}",
            step.window_s
        );
        assert!(step.read.as_ref().unwrap().ios_count > 50, "{name}");
        // No flood: what was in flight (16) when it went, and nothing that was sent in its place. The disk of one
        // has a bad sector besides.
        let of_removal = step.errors.iter();
        let of_removal = of_removal.filter(|error| !error.status.contains("unrecovered read"));
        let failed_count: u64 = of_removal.map(|error| error.count).sum();
        assert!(failed_count <= 16, "{name}: {:?}", step.errors);
        let took_ms: u64 = guest.text(&format!("{name}.ms")).trim().parse().unwrap();
        assert!(took_ms < 15_000, "{name}: {took_ms} ms after the removal");
    }
}

#[test]
fn poll_queues_are_polled() {
    let Some(guest) = guest() else { return };
    for name in ["polled", "polled-mix"] {
        let features = guest.step(name).backend.features;
        assert!(
            features.contains(&"polled: yes".to_owned()),
            "{name}: {features:?}"
        );
    }
    assert!(guest.step("polled-mix").flush.unwrap().ios_count > 5);
}

//! `lanemark run` on SPDK end to end: facts to the byte, depths, latency against a device of known delay, errors.

use crate::spdk_target::{Run, Target, run, run_during, target};
use serde_json::{Value, json};
use std::time::Duration;

const NQN: &str = "nqn.2026-01.io.lanemark:run";

/// One step's JSON of a run that must succeed.
#[track_caller]
fn step(device: &str, arguments: &[&str]) -> Value {
    let done = run(device, arguments);
    assert_eq!(done.code, Some(0), "{done:?}");
    done.json()["steps"][0].clone()
}

/// A run that must be refused; what it says.
#[track_caller]
fn refused(device: &str) -> String {
    let Run {
        code,
        stdout,
        stderr,
        ..
    } = run(device, &["--runtime", "100ms"]);
    assert!(matches!(code, Some(1 | 2)), "{code:?} {stderr}");
    let on_stdout: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(on_stdout["status"], "refused", "{on_stdout}");
    stderr
}

#[test]
fn facts_are_right_to_the_byte_and_stdout_is_json_alone() {
    let Some(target) = target() else { return };
    target.null("n0", 1 << 33); // 32 TiB
    target.subsystem(NQN, &[(5, "n0")]); // the only namespace is 5
    let vfio = target.vfio_user(NQN);
    for device in [target.tcp(NQN), vfio] {
        let step = step(
            &device,
            &["--rw", "randread", "--iodepth", "32", "--runtime", "300ms"],
        );
        let found = &step["devices"][0];
        assert_eq!(found["capacity_bytes"], 32_u64 << 40);
        assert_eq!(found["logical_block_bytes"], 4096);
        assert_eq!(
            (&found["serial"], &found["model"], &found["kind"]),
            (
                &json!("LANEMARK01"),
                &json!("lanemark test"),
                &json!("nvme")
            )
        );
        assert!(found["path"].as_str().unwrap().ends_with("ns:5"), "{found}");
        assert!(
            found["identity"].as_str().unwrap().starts_with("uuid."),
            "{found}"
        );
        assert_eq!(step["backend"]["name"], "spdk");
        assert!(
            step["backend"]["features"][0]
                .as_str()
                .unwrap()
                .starts_with("SPDK "),
            "{}",
            step["backend"]
        );
        assert!(step["read"]["iops"].as_f64().unwrap() > 0.0);
        assert_eq!(step["submitted_count"], step["completed_count"]);
    }
}

/// The same for people: size, who it is, its format, queues and versions.
#[test]
fn the_table_tells_what_the_record_does() {
    let Some(target) = target() else { return };
    target.null("n0", 1 << 33);
    target.subsystem(NQN, &[(5, "n0")]);
    let device = target.vfio_user(NQN);
    let words = ["run", "--device", &device, "--runtime", "300ms"];
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_lanemark"));
    let state = env!("CARGO_TARGET_TMPDIR");
    let done = command.args(words).env("XDG_STATE_HOME", state).output();
    let done = done.unwrap();
    let text = String::from_utf8(done.stdout).unwrap();
    assert_eq!(done.status.code(), Some(0), "{text}");
    let text: Vec<&str> = text.split_whitespace().collect();
    let text = text.join(" ");
    for word in [
        "lanemark test",
        "LANEMARK01",
        "35,184,372,088,832 B = 35,184 GB (32,768 GiB)",
        "SPDK 2",
        "DPDK 2",
        "I/O queues granted, ",
        "entries each",
        "format: 4096-byte blocks, no metadata",
    ] {
        assert!(text.contains(word), "no `{word}` in {text}");
    }
}

/// At depth 1 the bell rings at the poll's end (scripts/bench/doorbell: it costs nothing there); a batch of one at a
/// larger depth rings it with each command. Either way the record says so, and all is sent.
#[test]
fn how_the_doorbell_rings_is_told() {
    let Some(target) = target() else { return };
    target.null("n0", 1 << 20);
    target.subsystem(NQN, &[(1, "n0")]);
    let device = target.vfio_user(NQN);
    for (depth, submit, words) in [
        ("1", None, "doorbell once per poll"),
        ("1", Some("submit=1"), "doorbell once per poll"),
        ("8", None, "doorbell once per poll"),
        ("8", Some("submit=1"), "doorbell per command"),
    ] {
        let mut arguments = vec!["--iodepth", depth, "--number_ios", "2000"];
        arguments.extend(submit.map(|_| "--batch"));
        arguments.extend(submit);
        let step = step(&device, &arguments);
        let features = step["backend"]["features"].to_string();
        assert!(
            features.contains(words),
            "depth {depth}, {submit:?}: {features}"
        );
        assert_eq!(step["read"]["ios_count"], 2000);
    }
    let over_tcp = step(&target.tcp(NQN), &["--runtime", "200ms"]);
    let features = over_tcp["backend"]["features"].to_string();
    assert!(!features.contains("doorbell"), "{features}");
}

#[test]
fn of_several_namespaces_one_is_asked_for() {
    let Some(target) = target() else { return };
    target.null("n0", 4096);
    target.malloc("m0", 4096, 512);
    target.subsystem(NQN, &[(1, "n0"), (3, "m0")]);
    let device = target.tcp(NQN);
    let said = refused(&device);
    assert!(said.contains("has 2 namespaces (ns:1, ns:3)"), "{said}");
    assert!(
        refused(&format!("{device} ns:2")).contains("no active namespace 2"),
        "{said}"
    );
    let one = step(&format!("{device} ns:3"), &["--runtime", "600ms"]);
    assert_eq!(one["devices"][0]["logical_block_bytes"], 512);
    let all = step(
        &format!("{device} ns:all"),
        &["--runtime", "600ms", "--iodepth", "4"],
    );
    assert_eq!(all["devices"].as_array().unwrap().len(), 2);
}

#[test]
fn what_does_not_answer_as_a_disk_is_refused_with_the_next_step() {
    let Some(target) = target() else { return };
    target.null("n0", 4096);
    target.subsystem(NQN, &[(1, "n0")]);
    let device = target.tcp(NQN);
    let discovery = device.replace(NQN, "nqn.2014-08.org.nvmexpress.discovery");
    assert!(refused(&discovery).contains("discovery controller"));
    let unnamed = device.split(" subnqn").next().unwrap();
    assert!(refused(unnamed).contains("lacks subnqn"));
    let wrong = refused(&device.replace(NQN, "nqn.2026-01.io.lanemark:other"));
    assert!(
        wrong.contains("cannot attach") && wrong.contains("with this subnqn?"),
        "{wrong}"
    );
    let closed = refused("trtype:TCP traddr:127.0.0.1 trsvcid:1 subnqn:x");
    assert!(
        closed.contains("Connection refused") || closed.contains("111"),
        "{closed}"
    );
    assert!(refused("trtype:VFIOUSER traddr:/nowhere subnqn:x").contains("cannot attach"));
    assert!(refused("trtype:VFIOUSER traddr:/nowhere").contains("lacks subnqn"));
    assert!(refused("7fff:ff:1f.7").contains("no such PCI device"));
}

#[test]
fn latency_follows_a_device_of_known_delay() {
    let Some(target) = target() else { return };
    let settings = [250_u64, 500, 1000];
    let names = settings.map(|us| format!("d{us}"));
    for (name, us) in names.iter().zip(settings) {
        target.null(&format!("n{us}"), 1 << 20);
        target.delay(name, &format!("n{us}"), us);
    }
    let spaces: Vec<(u32, &str)> = (1..).zip(names.iter().map(String::as_str)).collect();
    target.subsystem(NQN, &spaces);
    let device = target.vfio_user(NQN);
    // Other work on the machine shifts a median now and then; a wrong clock or a lost wait does so every time.
    let mut seen = Vec::new();
    for _ in 0..5 {
        let p50s: Vec<f64> = (1..=3)
            .map(|ns| p50_us(&format!("{device} ns:{ns}")))
            .collect();
        for (p50, us) in p50s.iter().zip(settings) {
            assert!(
                *p50 >= us as f64,
                "p50 {p50} µs is under the delay of {us} µs"
            );
        }
        let slope = (p50s[2] - p50s[0]) / 750.0;
        if (slope - 1.0).abs() <= 0.02 {
            return;
        }
        seen.push((slope, p50s));
    }
    let sysfs = lanemark::sysfs::Sysfs::host();
    let text = std::fs::read_to_string(sysfs.proc("loadavg")).unwrap();
    let load: f64 = text.split_whitespace().next().unwrap().parse().unwrap();
    // Target and run take two CPUs' time themselves.
    if load > 4.0 {
        crate::skipped::skipped(&format!(
            "other work on this machine (load {load}) spoils medians of a delay: {seen:?}"
        ));
        return;
    }
    panic!("slope and medians: {seen:?}");
}

fn p50_us(device: &str) -> f64 {
    let arguments = [
        "--rw",
        "randread",
        "--iodepth",
        "1",
        "--runtime",
        "1s",
        "--cpus",
        "1",
    ];
    step(device, &arguments)["read"]["latency_ns"]["p50"]
        .as_f64()
        .unwrap()
        / 1000.0
}

fn errors(target: &Target, count: u64) {
    target.rpc(
        "bdev_error_inject_error",
        json!({ "name": "EE_n0", "io_type": "read", "error_type": "failure", "num": count }),
    );
}

#[test]
fn injected_errors_are_named_and_never_count_as_iops() {
    let Some(target) = target() else { return };
    target.null("n0", 1 << 20);
    target.rpc("bdev_error_create", json!({ "base_name": "n0" }));
    target.subsystem(NQN, &[(1, "EE_n0")]);
    let device = target.tcp(NQN);
    // The errors come when it runs: the look for never-written data reads too.
    let arguments = [
        "--rw",
        "randread",
        "--iodepth",
        "8",
        "--number_ios",
        "8000",
        "--rate_iops",
        "4000",
        "--ramp_time",
        "0s",
    ];
    let done = run_during(&device, &arguments, Duration::from_millis(100), |_| {
        errors(&target, 1000);
    });
    assert_eq!(done.code, Some(1), "{done:?}");
    let step = &done.json()["steps"][0];
    assert_eq!(step["failed_count"], 1000, "{step}");
    assert_eq!(step["errors"][0]["count"], 1000);
    let name = step["errors"][0]["status"].as_str().unwrap();
    assert!(
        name.contains("internal"),
        "the status is said in words: {name}"
    );
    assert_eq!(step["read"]["ios_count"], step["completed_count"]);
}

#[test]
fn depth_beyond_the_queue_is_held_back() {
    let Some(target) = target() else { return };
    target.null("n0", 1 << 20);
    target.subsystem(NQN, &[(1, "n0")]);
    let device = target.tcp_with(NQN, json!({ "max_queue_depth": 128 }));
    for (depth, queued) in [(129_u64, 2_u64), (4096, 3969)] {
        let depth_text = depth.to_string();
        let step = step(
            &device,
            &[
                "--rw",
                "randread",
                "--iodepth",
                &depth_text,
                "--runtime",
                "500ms",
            ],
        );
        assert_eq!(step["depth"]["asked_count"], depth);
        assert_eq!(step["depth"]["device_count"], 127, "{}", step["depth"]);
        assert_eq!(step["depth"]["queued_count"], queued, "{}", step["depth"]);
        assert_eq!(step["abandoned_count"], 0);
    }
}

#[test]
fn large_reads_are_split_and_stay_in_flight() {
    let Some(target) = target() else { return };
    target.null("n0", 1 << 20);
    target.subsystem(NQN, &[(1, "n0")]);
    let device = target.tcp_with(NQN, json!({ "max_io_size": 65536, "io_unit_size": 16384 }));
    let step = step(
        &device,
        &[
            "--rw",
            "randread",
            "--bs",
            "1M",
            "--iodepth",
            "128",
            "--runtime",
            "1s",
        ],
    );
    let mean = step["depth"]["in_flight_mean"].as_f64().unwrap();
    assert!((126.0..=129.0).contains(&mean), "in flight {mean}");
    let features = step["backend"]["features"].to_string();
    assert!(
        features.contains("commands up to 64 KiB, larger I/O is split"),
        "{features}"
    );
    assert!(
        features.contains("16 commands per I/O of 1024 KiB"),
        "{features}"
    );
    assert_eq!(step["failed_count"], 0);
}

#[test]
fn fewer_queues_than_the_run_needs_are_refused_with_what_was_granted_and_asked() {
    let Some(target) = target() else { return };
    let names = ["n1", "n2", "n3", "n4"];
    for name in names {
        target.null(name, 4096);
    }
    let spaces: Vec<(u32, &str)> = (1..).zip(names).collect();
    target.subsystem(NQN, &spaces);
    let device = target.tcp_with(NQN, json!({ "max_io_qpairs_per_ctrlr": 2 }));
    let said = refused(&format!("{device} ns:all"));
    assert!(said.contains("granted 2, 4 are needed"), "{said}");
    step(&format!("{device} ns:3"), &["--runtime", "200ms"]);
}

#[test]
fn what_spdk_cannot_do_is_refused_before_anything_is_issued() {
    let Some(target) = target() else { return };
    target.null("n0", 1 << 20);
    target.subsystem(NQN, &[(1, "n0")]);
    let device = target.tcp(NQN);
    let refused = |arguments: &[&str]| {
        let done = run(&device, arguments);
        assert_eq!(done.code, Some(2), "{done:?}");
        assert_eq!(done.json()["status"], "refused", "{done:?}");
        done.stderr
    };
    let said = refused(&["--stamp", "batch", "--runtime", "100ms"]);
    assert!(said.contains("stamp: batch"), "{said}");
    // 64 GiB of buffers.
    let said = refused(&["--bs", "16M", "--iodepth", "4096", "--runtime", "100ms"]);
    assert!(
        said.contains("no free hugepages: 65536 MiB needed") && said.contains("node 0"),
        "{said}"
    );
}

#[test]
fn the_program_says_which_transports_it_has() {
    let Some(_target) = target() else { return };
    let done = std::process::Command::new(env!("CARGO_BIN_EXE_lanemark"))
        .arg("--version")
        .output()
        .unwrap();
    let text = String::from_utf8(done.stdout).unwrap();
    for word in ["SPDK ", "PCIE", "TCP"] {
        assert!(text.contains(word), "{text}");
    }
    assert!(done.stderr.is_empty(), "{:?}", done.stderr);
}

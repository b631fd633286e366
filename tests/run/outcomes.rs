//! Every way to end: one clear error, strict JSON, the right exit code, nothing lost.

use crate::common::{lanemark, run, run_json};
use lanemark::record::Outcome;
use std::io::Write;
use std::process::Stdio;

/// The one line that says what is wrong.
fn error_line(stderr: &str) -> &str {
    let lines: Vec<_> = stderr
        .lines()
        .filter(|line| line.starts_with("error: "))
        .collect();
    assert_eq!(lines.len(), 1, "{stderr}");
    lines[0]
}

#[test]
fn bad_input_is_refused_before_any_io_with_one_line_that_helps() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    std::fs::write(path("empty"), "").unwrap();
    std::fs::write(path("small"), "abc").unwrap();
    std::fs::write(path("file"), vec![1; 1 << 20]).unwrap();
    std::fs::write(
        path("job.yaml"),
        "steps:\n  - rw: randread\n    iodepth: 0\n",
    )
    .unwrap();
    let job = path("job.yaml");
    for (words, says) in [
        (format!("run --device {}", path("missing")), "ENOENT"),
        (format!("run --device {}", path("empty")), "empty"),
        (format!("run --device {}", path("small")), "block"),
        (
            format!("run --device {} --offset 32", path("file")),
            "offset",
        ),
        (format!("run --device {}", dir.path().display()), "director"),
        ("run --iodepth 4".to_owned(), "--device"),
        ("run --device sim --bs 4kB".to_owned(), "KiB"),
        ("run --device sim --runtime 10".to_owned(), "no unit"),
        ("run --device sim:latncy=1us".to_owned(), "latency"),
        ("run --device sim --backend uring".to_owned(), "backend"),
        ("run --device sim --device null".to_owned(), "one backend"),
        (format!("run {job} --device sim"), "job.yaml:3"),
        (format!("run --device {0} -o {0}", path("file")), "-o"),
        (
            "run --device sim -o /proc/none/x".to_owned(),
            "/proc/none/x",
        ),
    ] {
        let plain = run(&format!("{words} --progress none"));
        assert_eq!(plain.code, 2, "{words}: {}", plain.stderr);
        assert!(
            error_line(&plain.stderr).contains(says),
            "{words}: {}",
            plain.stderr
        );
        assert_eq!(plain.stdout, "", "{words}");
        let (_, record) = run_json(&words);
        assert_eq!(record.status, Outcome::Refused, "{words}");
        assert_eq!(record.error.unwrap().exit_code, 2, "{words}");
    }
    assert_eq!(
        std::fs::read(path("file")).unwrap(),
        vec![1; 1 << 20],
        "a refusal wrote to it"
    );
}

#[test]
fn a_bad_flag_is_json_where_json_was_asked() {
    for words in [
        "run --bogus",
        "bogus",
        "run --device",
        "run --device sim --stamp never",
    ] {
        let (ran, record) = run_json(words);
        assert_eq!(ran.code, 2, "{words}");
        assert_eq!(record.status, Outcome::Refused);
    }
}

#[test]
fn writes_are_refused_without_consent() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("data");
    std::fs::write(&file, vec![7; 1 << 20]).unwrap();
    for rw in [
        "write",
        "randwrite",
        "randrw",
        "trim",
        "randtrim",
        "writezeroes",
        "randwritezeroes",
    ] {
        let (ran, record) = run_json(&format!(
            "run --device {} --rw {rw} --runtime 1s",
            file.display()
        ));
        assert!(
            ran.code == 3 || ((rw.contains("trim") || rw.contains("zeroes")) && ran.code == 2),
            "{rw}: {}",
            ran.stderr
        );
        assert_eq!(record.status, Outcome::Refused);
    }
    assert_eq!(std::fs::read(&file).unwrap(), vec![7; 1 << 20]);
}

#[test]
fn a_scratch_file_may_be_written_and_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let device = format!("scratch:size=16M,dir={}", dir.path().display());
    let words = format!(
        "run --device {device} --rw randrw --iodepth 4 --fsync 50 --runtime 300ms --ramp_time 0s"
    );
    let (ran, record) = run_json(&words);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let step = &record.steps[0];
    assert_eq!(step.backend.name, "uring");
    assert!(step.read.is_some() && step.write.is_some() && step.flush.is_some());
    assert_eq!(step.submitted_count, step.completed_count);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn a_dry_run_shows_bytes_and_blocks_and_does_nothing() {
    let ran = run("run --device sim --bs 8k --size 25% --iodepth 7 --dry-run");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(
        ran.stdout.contains("8192") && ran.stdout.contains("16 blocks"),
        "{}",
        ran.stdout
    );
    let json = run("run --device sim --bs 8k --dry-run --format json");
    serde_json::from_str::<serde_json::Value>(&json.stdout).unwrap();
}

#[test]
fn a_result_that_cannot_be_written_is_an_error_and_not_lost() {
    let ran = run("run --device sim --runtime 1s --progress none --format json -o /dev/full");
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("ENOSPC"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("panicked"));
    assert_eq!(ran.record().status, Outcome::Finished);
}

#[test]
fn a_reader_that_has_gone_is_no_panic() {
    let mut child = lanemark("run --device sim --runtime 1s --progress none")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(!String::from_utf8_lossy(&output.stderr).contains("panicked"));
}

#[test]
fn a_closed_stderr_changes_nothing() {
    let mut child = std::process::Command::new("sh")
        .arg("-c")
        .arg("exec \"$0\" run --device sim --runtime 1s --format json 2>&-")
        .arg(env!("CARGO_BIN_EXE_lanemark"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().flush().unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    serde_json::from_slice::<lanemark::record::Record>(&output.stdout).unwrap();
}

#[test]
fn a_cpu_that_may_not_be_used_is_one_clear_error() {
    let ran = run("run --device null --cpus 4095 --runtime 1s --progress none");
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(error_line(&ran.stderr).contains("4095"));
    let own = lanemark::sys::cpu::AllowedCpus::at_start()
        .unwrap()
        .cpus()
        .to_vec();
    let (Some(first), Some(last)) = (own.first(), own.last()) else {
        return;
    };
    if first == last {
        return;
    }
    let pinned = |words: &str| {
        let output = std::process::Command::new("taskset")
            .args(["-c", &last.to_string(), env!("CARGO_BIN_EXE_lanemark")])
            .args(words.split_whitespace())
            .output()
            .unwrap();
        crate::common::Ran::of(&output)
    };
    let refused = pinned(&format!(
        "run --device null --runtime 100ms --cpus {first} --progress none"
    ));
    assert_eq!(refused.code, 2);
    assert!(
        error_line(&refused.stderr).contains("taskset"),
        "{}",
        refused.stderr
    );
    let default = pinned("run --device null --runtime 100ms --format json --progress none");
    assert_eq!(default.record().steps[0].reactors[0].cpu, Some(*last));
}

#[test]
fn what_is_in_flight_is_counted_to_the_edges_of_the_window() {
    for depth in [1, 128] {
        let words = format!("run --device null --runtime 10ms --iodepth {depth} --stamp exact");
        // A window of 10 ms that other work cuts in half does not close: then another is tried.
        let closes = (0..5).any(|_| {
            let (_, record) = run_json(&words);
            let step = &record.steps[0];
            let in_flight = step.depth.in_flight_mean;
            assert!(
                (in_flight / f64::from(depth) - 1.0).abs() < 1e-3,
                "{in_flight} of {depth}"
            );
            assert!(step.reactors[0].busy_ratio.unwrap() <= 1.0);
            (step.warnings.iter()).all(|warning| warning.kind != "littles-law")
        });
        assert!(closes, "depth {depth}");
    }
}

#[test]
fn one_file_under_two_names_is_not_two_devices() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (file, link) = (dir.path().join("a"), dir.path().join("b"));
    std::fs::write(&file, vec![1; 1 << 20]).unwrap();
    std::fs::hard_link(&file, &link).unwrap();
    let words = format!(
        "run --device {} --device {} --number_ios 10",
        file.display(),
        link.display()
    );
    let (ran, _) = run_json(&words);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(ran.stderr.contains("same device"), "{}", ran.stderr);
}

#[test]
fn too_much_memory_is_an_error_and_not_the_end() {
    let (ran, record) = run_json("run --device null --bs 1G --iodepth 4096 --runtime 10ms");
    assert_ne!(ran.code, 0);
    assert!(record.error.unwrap().text.contains("ENOMEM"));
}

#[test]
fn a_job_file_is_not_replaced_by_its_result() {
    let dir = tempfile::tempdir().unwrap();
    let job = dir.path().join("job.yaml");
    std::fs::write(&job, "device: sim\nsteps:\n  - rw: randread\n").unwrap();
    let (ran, _) = run_json(&format!("run {0} -o {0}", job.display()));
    assert_eq!(ran.code, 2);
    assert!(std::fs::read_to_string(&job).unwrap().starts_with("device"));
}

#[test]
fn filling_what_nothing_reads_is_refused() {
    let (ran, _) = run_json("run --device sim --rw randwrite --prepare");
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("--prepare"), "{}", ran.stderr);
}

/// Whatever is wrong with the job, the result never goes into what is measured or into the job itself.
#[test]
fn an_error_is_not_written_over_what_is_measured() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let (data, good, bad) = (path("data"), path("good.yaml"), path("bad.yaml"));
    let kept = vec![7_u8; 1 << 20];
    let step = format!("device: {data}\nsteps:\n  - {{ rw: read, number_ios: 1 }}\n");
    let typo = step.replace("rw", "wr");
    std::fs::write(&good, &step).unwrap();
    std::fs::write(&bad, &typo).unwrap();
    for words in [
        format!("{bad} --device {data} -o {data}"),
        format!("{bad} -o {bad}"),
        format!("{good} -o {good}"),
        format!("--device {data} --device {data} -o {data}"),
        format!("--device {data} --iodepth 0 -o {data}"),
        format!("--device {data} --backend none -o {data}"),
        format!("--device {data} --iodepth 1 -o {data}"),
    ] {
        std::fs::write(&data, &kept).unwrap();
        let (ran, record) = run_json(&format!("run {words}"));
        assert_eq!((ran.code, record.status), (2, Outcome::Refused), "{words}");
        assert!(std::fs::read(&data).unwrap() == kept, "{words}");
        assert_eq!(std::fs::read_to_string(&good).unwrap(), step, "{words}");
        assert_eq!(std::fs::read_to_string(&bad).unwrap(), typo, "{words}");
    }
}

//! Where results go: never over what is read, measured or in use, by any verb.

use crate::common::{Ran, lanemark, run};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::process::{Command, Stdio};

fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// The verb is refused with these words, and the file keeps its bytes.
#[track_caller]
fn refused(words: &str, file: &Path, why: &str) {
    let before = std::fs::read(file).unwrap();
    let ran = run(words);
    assert_eq!(ran.code, 2, "{words}: {}", ran.stderr);
    assert!(ran.stderr.contains(why), "{words}: {}", ran.stderr);
    assert!(std::fs::read(file).unwrap() == before, "{words}");
}

/// A record there would be taken for one of this run, a step for one that is finished.
#[test]
fn a_folder_with_files_of_others_takes_no_run() {
    for name in [
        "record.json",
        "steps.csv",
        "series.jsonl",
        "steps/00001-x.json",
    ] {
        let dir = folder();
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, vec![7; 1 << 20]).unwrap();
        let to = format!("--output-dir {}", dir.path().display());
        for device in ["sim".to_owned(), path.display().to_string()] {
            for words in [to.clone(), format!("{to} --dry-run")] {
                let words = format!("run --device {device} --runtime 20ms --progress none {words}");
                refused(&words, &path, "is not of a run");
            }
        }
        assert!(!dir.path().join("run.json").exists());
    }
}

#[test]
fn a_folder_that_cannot_be_made_is_found_before_anything_runs() {
    let dir = folder();
    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    for place in [file.join("run"), file, "/proc/no/such".into()] {
        let words = format!(
            "run --device sim --runtime 20ms --output-dir {}",
            place.display()
        );
        let ran = run(&words);
        assert_eq!(ran.code, 2, "{words}: {}", ran.stderr);
        assert!(
            ran.stderr.contains("name a folder you may write to"),
            "{}",
            ran.stderr
        );
        assert!(ran.stdout.is_empty(), "{}", ran.stdout);
    }
}

#[test]
fn files_of_a_run_have_the_mode_of_any_new_file() {
    let dir = folder();
    let (run_dir, single) = (dir.path().join("run"), dir.path().join("x.json"));
    let words = "run --device sim --runtime 20ms --progress none --format json";
    for to in [
        format!("--output-dir {}", run_dir.display()),
        format!("-o {}", single.display()),
    ] {
        assert_eq!(run(&format!("{words} {to}")).code, 0);
    }
    let mode = |path: &Path| std::fs::metadata(path).unwrap().mode() & 0o7777;
    let plain = dir.path().join("plain");
    std::fs::write(&plain, "").unwrap();
    let steps = std::fs::read_dir(run_dir.join("steps")).unwrap();
    let steps = steps.map(|entry| entry.unwrap().path());
    let whole = ["run.json", "record.json", "steps.csv", "series.jsonl"];
    for path in whole
        .map(|name| run_dir.join(name))
        .into_iter()
        .chain(steps)
        .chain([single])
    {
        assert_eq!(mode(&path), mode(&plain), "{}", path.display());
    }
}

#[test]
fn no_verb_replaces_a_file_that_its_job_is_read_from() {
    let dir = folder();
    let (job, part) = (dir.path().join("job.yaml"), dir.path().join("part.yaml"));
    std::fs::write(&job, "include: part.yaml\nsteps: [{ rw: randread }]\n").unwrap();
    std::fs::write(&part, "defaults: { bs: 4k }\n").unwrap();
    let name = job.display();
    for file in [&job, &part] {
        for words in [
            format!("run {name} --device sim"),
            format!("run {name} --device sim --dry-run"),
            format!("peak {name} --device sim"),
            format!("load {name} --device sim"),
            format!("scale {name} --device sim:seed=1 --device sim:seed=2"),
            format!("compare sim:seed=1 sim:seed=2 --job {name}"),
        ] {
            let words = format!("{words} --progress none -o {}", file.display());
            refused(&words, file, "it is read as the job");
        }
    }
}

#[test]
fn a_closed_stdout_is_found_before_anything_runs() {
    let dir = folder();
    let exe = env!("CARGO_BIN_EXE_lanemark");
    let ran = |words: &str, stdout: &str| {
        let script = format!("exec {exe} {words} {stdout}");
        let mut command = Command::new("bash");
        Ran::of(
            &command
                .current_dir(dir.path())
                .args(["-c", &script])
                .output()
                .unwrap(),
        )
    };
    let quick = "run --device sim --runtime 20ms --progress none";
    for words in [
        quick,
        "run --device sim --runtime 20ms --format json",
        "peak --device sim",
        "lanes null",
        "calibrate",
        "devices",
        "schema",
    ] {
        for closed in [">&-", "1</dev/null"] {
            let ran = ran(words, closed);
            assert_eq!(ran.code, 2, "{words} {closed}: {}", ran.stderr);
            assert!(ran.stderr.contains("stdout is closed"), "{}", ran.stderr);
        }
    }
    // With a file for the result nobody needs it; and the null device is open.
    assert_eq!(ran(&format!("{quick} -o x"), ">&-").code, 0);
    assert_eq!(ran(quick, ">/dev/null").code, 0);
    assert!(
        lanemark(quick)
            .stdout(Stdio::null())
            .status()
            .unwrap()
            .success()
    );
}

#[test]
fn what_has_no_end_is_no_job_and_no_record() {
    let dir = folder();
    let job = dir.path().join("job.yaml");
    std::fs::write(&job, "include: /dev/zero\nsteps: [{ rw: randread }]\n").unwrap();
    let image = dir.path().join("disk.img");
    std::fs::write(&image, [0; 4096]).unwrap();
    let image = image.display();
    let mean = "did you mean --device";
    let mut cases = vec![
        ("run /dev/zero".to_owned(), mean),
        (format!("run {image}"), mean),
        (
            format!("run {} --device sim", job.display()),
            "/dev/zero is no job file",
        ),
        ("report /dev/zero".to_owned(), "no record"),
        (format!("report {image}"), "no record"),
    ];
    let nodes = std::fs::read_dir("/dev")
        .unwrap()
        .map(|entry| entry.unwrap());
    let mut blocks = nodes.filter(|node| node.file_type().unwrap().is_block_device());
    if let Some(node) = blocks.next() {
        let node = node.path();
        cases.push((format!("run {}", node.display()), mean));
        cases.push((format!("report {}", node.display()), "a block device"));
    }
    for (words, why) in cases {
        let ran = run(&words);
        assert_eq!(ran.code, 2, "{words}: {}", ran.stderr);
        assert!(ran.stderr.contains(why), "{words}: {}", ran.stderr);
    }
}

#[test]
fn a_scratch_file_that_cannot_be_made_is_bad_input() {
    for device in ["scratch:size=1000T", "scratch:size=8M,dir=/no/such/folder"] {
        let ran = run(&format!(
            "run --device {device} --number_ios 8 --progress none"
        ));
        assert_eq!(ran.code, 2, "{device}: {}", ran.stderr);
    }
}

#[test]
fn a_finished_run_is_shown_and_not_run_or_written_again() {
    let dir = folder();
    let to = dir.path().join("run");
    let words = format!(
        "run --device sim --sweep iodepth=1,2,4 --runtime 20ms --progress none --output-dir {}",
        to.display()
    );
    assert_eq!(run(&words).code, 0);
    let record = to.join("record.json");
    let state = || {
        (
            std::fs::read(&record).unwrap(),
            std::fs::metadata(&record).unwrap().ino(),
        )
    };
    let before = state();
    let resume = format!("run --resume {}", to.display());
    let with_job = format!("{resume} --device sim --sweep iodepth=1,2,4 --runtime 20ms");
    for words in [&resume, &with_job] {
        let ran = run(&format!("{words} --format json --progress none"));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert_eq!(ran.stdout.as_bytes(), before.0, "{words}");
        assert!(state() == before, "{words}");
    }
    let said = run(&resume).stderr;
    assert!(said.contains("nothing left to do"), "{said}");
    refused(
        &format!("{resume} -o {}", record.display()),
        &record,
        "a part of the run",
    );
}

#[test]
fn the_ending_of_the_file_is_its_form() {
    let dir = folder();
    let at = |name: &str| dir.path().join(name).display().to_string();
    let text = |name: &str| std::fs::read_to_string(at(name)).unwrap();
    let (sim, two) = (
        "--device sim --progress none",
        "compare sim:seed=1 sim:seed=2 --progress none",
    );
    let json = at("r.json");
    for words in [
        format!("run {sim} --runtime 20ms -o {json}"),
        format!("run {sim} --runtime 20ms -o {}", at("r.csv")),
        format!(
            "run {sim} --runtime 20ms --format text -o {}",
            at("text.json")
        ),
        format!("report {json} -o {}", at("again.csv")),
        format!("report {json} -o {}", at("again.html")),
        format!("report {json} -o {}", at("again.txt")),
        format!("lanes null -o {}", at("lanes.json")),
        format!("{two} --runtime 20ms --rounds 1 -o {}", at("c.json")),
    ] {
        let ran = run(&words);
        assert_eq!(ran.code, 0, "{words}: {}", ran.stderr);
        assert!(ran.stdout.is_empty(), "{words}");
    }
    for name in ["r.json", "lanes.json", "c.json"] {
        let value: Result<serde_json::Value, _> = serde_json::from_str(&text(name));
        assert!(value.is_ok(), "{name}");
    }
    let (csv, again) = (text("r.csv"), text("again.csv"));
    assert_eq!(csv.lines().next(), again.lines().next());
    assert!(text("text.json").contains("IOPS") && text("again.txt").contains("IOPS"));
    assert!(text("again.html").contains("<title>"));
    let several = run(&format!("report {json} {json} -o {}", at("both.csv")));
    assert_eq!(several.code, 2, "{}", several.stderr);
}

#[test]
fn an_option_of_fio_is_told_what_stands_in_its_place() {
    let dir = folder();
    for (option, hint) in [
        ("numjobs", "streams"),
        ("filename", "use device"),
        ("ioengine", "use backend"),
        ("direct", "always direct"),
        ("group_reporting", "leave it out"),
        ("time_based", "runtime"),
        ("thread", "reactor"),
    ] {
        let ran = run(&format!("run --device sim --{option} 4"));
        assert!(
            ran.code == 2 && ran.stderr.contains(hint),
            "{option}: {}",
            ran.stderr
        );
        assert!(!ran.stderr.contains("similar"), "{}", ran.stderr);
        let job = dir.path().join("job.yaml");
        std::fs::write(&job, format!("steps: [{{ rw: randread, {option}: 4 }}]\n")).unwrap();
        let ran = run(&format!("run {} --device sim", job.display()));
        assert!(
            ran.code == 2 && ran.stderr.contains(hint),
            "{option}: {}",
            ran.stderr
        );
    }
}

/// A value that nothing takes is no value: there is no file whose variable or key it could set.
#[test]
fn a_set_without_a_job_file_is_refused_by_name() {
    for words in ["run --device null --set a=1", "run --set iodepth=4"] {
        let ran = Ran::of(&lanemark(words).output().unwrap());
        assert_eq!(ran.code, 2, "{words}: {}", ran.stderr);
        assert!(
            ran.stderr.contains("there is no job file"),
            "{}",
            ran.stderr
        );
    }
}

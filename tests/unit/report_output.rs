//! Where the result goes: files replaced as a whole, devices never, errors by kind.

use lanemark::cli::exit::Exit;
use lanemark::cli::output::{Output, OutputError, failure_record};
use lanemark::errno::Errno;
use lanemark::record::{Failure, Outcome, Record};
use lanemark::report::{Format, Style, render};
use std::fs;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn fixture(name: &str) -> Record {
    let path = format!(
        "{}/tests/fixtures/records/{name}.json",
        env!("CARGO_MANIFEST_DIR")
    );
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn a_new_file_appears_only_with_its_content() {
    let folder = folder();
    let path = folder.path().join("new.json");
    let output = Output::open(Some(&path)).unwrap();
    assert_eq!(
        names_in(folder.path()),
        [""; 0],
        "nothing is left by the probe"
    );
    output.write("{}\n").unwrap();
    assert_eq!(names_in(folder.path()), ["new.json"]);
    assert_eq!(fs::read_to_string(&path).unwrap(), "{}\n");
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o111, 0);
}

#[test]
fn an_old_file_keeps_its_content_until_the_new_one_is_whole_and_then_its_mode() {
    let folder = folder();
    let path = folder.path().join("old.json");
    fs::write(&path, "old and longer than the new one").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let output = Output::open(Some(&path)).unwrap();
    assert_eq!(
        fs::read_to_string(&path).unwrap(),
        "old and longer than the new one"
    );
    output.write("new").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "new");
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o640);
    assert_eq!(names_in(folder.path()), ["old.json"]);
}

#[test]
fn a_link_stays_a_link() {
    let folder = folder();
    let (real, link) = (folder.path().join("real"), folder.path().join("link"));
    fs::write(&real, "old").unwrap();
    symlink(&real, &link).unwrap();
    Output::open(Some(&link)).unwrap().write("new").unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::read_to_string(&real).unwrap(), "new");
}

#[test]
fn what_cannot_be_written_is_found_before_anything_runs() {
    let folder = folder();
    let missing = folder.path().join("no/such/folder/x.json");
    let in_a_file = folder.path().join("file/x.json");
    fs::write(folder.path().join("file"), "").unwrap();
    for (path, number) in [
        (missing, libc::ENOENT),
        (in_a_file, libc::ENOTDIR),
        (folder.path().to_owned(), libc::EISDIR),
        (
            PathBuf::from(format!("{}/new/", folder.path().display())),
            libc::EISDIR,
        ),
    ] {
        let error = Output::open(Some(&path)).unwrap_err();
        let wanted = OutputError::Open {
            path: path.to_string_lossy().into_owned(),
            errno: Errno(number),
        };
        assert_eq!(error, wanted);
        assert_eq!(error.exit(), Exit::Usage);
    }
    assert_eq!(names_in(folder.path()), ["file"]);
}

#[test]
fn a_full_device_is_an_error_with_its_name() {
    let output = Output::open(Some(Path::new("/dev/full"))).unwrap();
    let error = output.write("rescued\n").unwrap_err();
    let wanted = OutputError::Write {
        path: "/dev/full".to_owned(),
        errno: Errno(libc::ENOSPC),
        rescued: true,
    };
    assert_eq!(error, wanted);
    assert!(error.to_string().contains("/dev/full: ENOSPC"), "{error}");
    assert_eq!(error.exit(), Exit::Failed);
    assert_eq!(error.failure().exit_code, 1);
}

#[test]
fn a_place_that_goes_bad_during_the_run_does_not_lose_the_result() {
    let folder = folder();
    let path = folder.path().join("result");
    let output = Output::open(Some(&path)).unwrap();
    fs::create_dir(&path).unwrap();
    let error = output.write("rescued\n").unwrap_err();
    let wanted = OutputError::Write {
        path: path.to_string_lossy().into_owned(),
        errno: Errno(libc::EISDIR),
        rescued: true,
    };
    assert_eq!(error, wanted);
    assert_eq!(names_in(folder.path()), ["result"], "no scratch is left");
}

#[test]
fn character_devices_and_pipes_are_written_directly() {
    Output::open(Some(Path::new("/dev/null")))
        .unwrap()
        .write("x")
        .unwrap();
    let found = fs::metadata("/dev/null").unwrap();
    assert!(found.file_type().is_char_device(), "it is still there");
}

/// Only the refusal is tried: the node is opened by nobody. Machines without any block device skip it.
#[test]
fn a_block_device_is_never_a_place_for_a_report() {
    let nodes = fs::read_dir("/dev")
        .unwrap()
        .flatten()
        .map(|entry| entry.path());
    let is_block =
        |path: &PathBuf| fs::metadata(path).is_ok_and(|found| found.file_type().is_block_device());
    if let Some(node) = nodes.into_iter().find(is_block) {
        let error = Output::open(Some(&node)).unwrap_err();
        let path = node.to_string_lossy().into_owned();
        assert_eq!(error, OutputError::BlockDevice { path });
        assert_eq!(error.exit(), Exit::Usage);
    }
}

#[test]
fn the_measured_file_is_recognised_under_any_name() {
    let folder = folder();
    let (file, link) = (folder.path().join("image"), folder.path().join("link"));
    fs::write(&file, "data").unwrap();
    symlink(&file, &link).unwrap();
    let output = Output::open(Some(&link)).unwrap();
    assert!(output.is(&file));
    assert!(!output.is(folder.path()));
    assert!(!Output::open(None).unwrap().is(&file));
}

#[test]
fn a_failure_is_a_record_like_any_other() {
    let like = fixture("normal_read");
    for (code, status) in [
        (2, Outcome::Refused),
        (3, Outcome::Refused),
        (1, Outcome::Failed),
        (130, Outcome::Interrupted),
    ] {
        let failure = Failure {
            kind: "usage".to_owned(),
            text: "`4 k` is not a size".to_owned(),
            next_step: "write 4k".to_owned(),
            exit_code: code,
        };
        let record = failure_record(failure.clone(), like.tool.clone(), like.environment.clone());
        assert_eq!(record.status, status);
        assert_eq!(Exit::of_record(&record).code(), code);
        let text = render(&record, Format::Json, &Style::PLAIN);
        let back: Record = serde_json::from_str(&text).unwrap();
        assert_eq!(back.error, Some(failure));
        let text = render(&record, Format::Text, &Style::PLAIN);
        assert!(text.contains("`4 k` is not a size\n-> write 4k"), "{text}");
    }
}

#[test]
fn records_exit_with_their_worst_part() {
    for (name, exit) in [
        ("normal_read", Exit::Ok),
        ("interrupted_partial", Exit::Interrupted),
        ("failed_abandoned", Exit::Failed),
        ("refused", Exit::Refused),
    ] {
        assert_eq!(Exit::of_record(&fixture(name)), exit, "{name}");
    }
    // The step went on to its end; one of its I/Os did not.
    assert_eq!(Exit::of_record(&fixture("hostile_strings")), Exit::Failed);
    let mut both = fixture("interrupted_partial");
    both.steps[0].failed_count = 1;
    assert_eq!(Exit::of_record(&both), Exit::Interrupted);
    both.steps[0].error = Some(Failure {
        kind: "guard".to_owned(),
        text: String::new(),
        next_step: String::new(),
        exit_code: 3,
    });
    assert_eq!(Exit::of_record(&both), Exit::Refused);
}

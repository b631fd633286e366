//! `--prepare`: nothing is filled before everything may be, and only what it was goes on being filled.

use crate::common::{Ran, lanemark, run};
use std::path::{Path, PathBuf};
use std::process::Command;

const MIB: u64 = 1 << 20;

fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// A file of 8 MiB that holds nothing.
fn hollow(dir: &Path, name: &str) -> PathBuf {
    let path = dir.join(name);
    std::fs::File::create(&path)
        .unwrap()
        .set_len(8 * MIB)
        .unwrap();
    path
}

fn is_hollow(path: &Path) -> bool {
    std::fs::read(path).unwrap().iter().all(|byte| *byte == 0)
}

#[test]
fn no_device_is_filled_before_all_may_be() {
    let dir = folder();
    let (one, other) = (hollow(dir.path(), "1.img"), hollow(dir.path(), "2.img"));
    let (a, b) = (one.display(), other.display());
    let rest = format!("--rw randread --prepare --allow-write {a} --progress none --number_ios 8");
    for words in [
        format!("run --device {a} --device {b} {rest}"),
        format!("compare {a} {b} {rest} --rounds 1"),
    ] {
        let ran = run(&words);
        assert_eq!(ran.code, 3, "{words}: {}", ran.stderr);
        assert!(is_hollow(&one) && is_hollow(&other), "{words}");
    }
}

/// Fills a file, of which `limit_kib` can be written.
fn filled(file: &Path, state: &Path, limit_kib: Option<u32>) -> Ran {
    let exe = env!("CARGO_BIN_EXE_lanemark");
    let file = file.display();
    let limit = limit_kib.map_or(String::new(), |kib| format!("ulimit -f {kib}; "));
    let script = format!(
        "{limit}exec {exe} run --device {file} --prepare --allow-write {file} --number_ios 8 --progress none --format json"
    );
    let mut command = Command::new("bash");
    command.args(["-c", &script]).env("XDG_STATE_HOME", state);
    Ran::of(&command.output().unwrap())
}

/// How much a run has filled, by its own word.
fn prepared(ran: &Ran) -> String {
    let warnings = ran.record().warnings;
    let note = warnings.iter().find(|warning| warning.kind == "prepared");
    let words: Vec<&str> = note.unwrap().text.split_whitespace().collect();
    words[1..3].join(" ")
}

#[test]
fn another_file_of_the_same_path_is_filled_from_its_beginning() {
    let (dir, state) = (folder(), folder());
    let file = hollow(dir.path(), "a.img");
    let cut_off = || {
        let ran = filled(&file, state.path(), Some(2048));
        assert_eq!(ran.code, 1, "{}", ran.stderr);
        assert!(ran.stderr.contains("EFBIG"), "{}", ran.stderr);
    };
    cut_off();
    let went_on = filled(&file, state.path(), None);
    assert_eq!(went_on.code, 0, "{}", went_on.stderr);
    assert_eq!(prepared(&went_on), "6 MiB");
    std::fs::remove_file(&file).unwrap();
    hollow(dir.path(), "a.img");
    cut_off();
    // The file system soon gives the number of the one that is gone to the next.
    std::fs::remove_file(&file).unwrap();
    hollow(dir.path(), "a.img");
    let anew = filled(&file, state.path(), None);
    assert_eq!(anew.code, 0, "{}", anew.stderr);
    assert_eq!(prepared(&anew), "8 MiB");
}

#[test]
fn a_file_that_may_grow_no_further_loses_no_result() {
    let dir = folder();
    let to = dir.path().join("x.json");
    let exe = env!("CARGO_BIN_EXE_lanemark");
    let script = format!(
        "ulimit -f 1; exec {exe} run --device sim --runtime 20ms --format json --progress none -o {}",
        to.display()
    );
    let mut command = Command::new("bash");
    let ran = Ran::of(&command.args(["-c", &script]).output().unwrap());
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("EFBIG"), "{}", ran.stderr);
    // Rescued to stdout, and nothing is left behind.
    ran.record();
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    // The limit is the user's: what has none is as before.
    assert_eq!(
        lanemark("lanes null").output().unwrap().status.code(),
        Some(0)
    );
}

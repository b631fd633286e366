//! Where results go: never over what is read, measured or in use, by any verb.

use crate::common::run;
use std::os::fd::AsRawFd;
use std::path::Path;

fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// A record of a simulated run.
fn record_in(dir: &Path, name: &str, words: &str) -> String {
    let path = dir.join(name).display().to_string();
    let ran = run(&format!(
        "run --device sim --runtime 20ms --progress none --format json -o {path} {words}"
    ));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    path
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

#[test]
fn no_verb_replaces_a_file_that_is_in_use() {
    let dir = folder();
    let record = record_in(dir.path(), "r.json", "");
    let path = dir.path().join("held");
    std::fs::write(&path, "bytes of somebody").unwrap();
    let file = std::fs::File::open(&path).unwrap();
    assert!(file.try_lock().is_ok(), "descriptor {}", file.as_raw_fd());
    let held = path.display();
    for words in [
        format!("report {record} -o {held}"),
        format!("lanes null -o {held}"),
        format!("compare {record} {record} -o {held}"),
        format!("run --device sim --runtime 20ms --progress none -o {held}"),
        format!("peak --device sim --progress none -o {held}"),
        format!("load --device sim --progress none -o {held}"),
        format!("scale --device sim:seed=1 --device sim:seed=2 --progress none -o {held}"),
    ] {
        refused(&words, &path, "locked by");
    }
}

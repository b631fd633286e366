//! `run --claim` where there is nothing to claim: it is refused by itself, before the run, and nothing is measured.
//! What claims and gives back is tried in the emulated machine of the lab.

use crate::common::{run, run_json};
use lanemark::record::Outcome;

#[test]
fn what_cannot_be_claimed_is_refused_before_anything_is_measured() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, vec![0; 8192]).unwrap();
    for (words, said) in [
        // Named as a file, which would be run without the claim.
        (
            format!("--device {}", file.display()),
            "a file needs no claim",
        ),
        ("--device 0000:ff:1f.7".to_owned(), "no such PCI device"),
        (
            "--device 0000:ff:1f.7 --dry-run".to_owned(),
            "no such PCI device",
        ),
        ("--device null".to_owned(), "the null device needs no claim"),
        (
            "--device null --backend uring".to_owned(),
            "--claim is for SPDK",
        ),
        // All devices are looked up before one is claimed.
        (
            format!("--device 0000:ff:1f.7 --device {}", file.display()),
            "a file needs no claim",
        ),
    ] {
        let (ran, record) = run_json(&format!("run --claim {words} --number_ios 4"));
        assert_eq!(ran.code, 2, "{words}: {}", ran.stderr);
        assert_eq!(record.status, Outcome::Refused, "{words}");
        assert!(record.steps.is_empty(), "{words}");
        let error = record.error.unwrap();
        assert!(error.text.contains(said), "{words}: {}", error.text);
    }
}

/// What is wrong with the job the run itself says: nothing is claimed for it.
#[test]
fn a_job_that_is_wrong_is_told_as_without_a_claim() {
    for words in ["--number_ios 4", "--device null --rw nonsense"] {
        let (with, without) = (
            run(&format!("run --claim {words}")),
            run(&format!("run {words}")),
        );
        assert_eq!((with.code, without.code), (2, 2), "{words}");
        assert_eq!(with.stderr, without.stderr, "{words}");
    }
}

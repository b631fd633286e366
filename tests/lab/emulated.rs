//! A boot of `scripts/lab`, and what it left.

use crate::invariants;
use lanemark::record::{Outcome, Record, Step};
use std::collections::HashMap;
use std::path::Path;
use std::process::{Command, Stdio};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/lab");

/// Sees to it that there can be boots, or says why not.
pub fn prepared() -> Result<(), String> {
    let prepared = Command::new(SCRIPT).arg("prepare").output().unwrap();
    if prepared.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&prepared.stderr);
    let last = said.lines().last().unwrap_or_default();
    Err(format!("the emulated machine cannot be prepared: {last}"))
}

/// Files that a guest left, by name.
pub struct Guest(HashMap<String, Vec<u8>>);

/// Boots a topology, runs a script there with the shared folder's path after its own words, and takes what it
/// left.
pub fn boot(topology: &str, words: &[&str], more: &[&str]) -> Guest {
    let folder = tempfile::tempdir().unwrap();
    let ran = Command::new(SCRIPT)
        .args([
            "run",
            "--topology",
            topology,
            "--timeout",
            "1500",
            "--share",
        ])
        .arg(folder.path())
        .args(words)
        .arg(folder.path())
        .args(more)
        .env("LANEMARK_TEST_PROGRAM", std::env::current_exe().unwrap())
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(ran.status.success(), "the lab, {topology}: {ran:?}");
    Guest::in_folder(folder.path())
}

impl Guest {
    fn in_folder(folder: &Path) -> Self {
        let mut files = HashMap::new();
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            files.insert(name, std::fs::read(entry.path()).unwrap());
        }
        let guest = Self(files);
        assert_eq!(guest.found("setup.failed"), None);
        guest
    }

    /// The text of a file that need not be there.
    pub fn found(&self, name: &str) -> Option<String> {
        let bytes = self.0.get(name)?;
        Some(String::from_utf8_lossy(bytes).into_owned())
    }

    #[track_caller]
    pub fn bytes(&self, name: &str) -> &[u8] {
        self.0.get(name).unwrap_or_else(|| panic!("no {name} came"))
    }

    #[track_caller]
    pub fn text(&self, name: &str) -> String {
        String::from_utf8_lossy(self.bytes(name)).into_owned()
    }

    #[track_caller]
    pub fn number(&self, name: &str) -> i64 {
        self.text(name).trim().parse().unwrap()
    }

    /// The JSON that a verb which must have ended well has printed.
    #[track_caller]
    pub fn json(&self, name: &str) -> serde_json::Value {
        let said = self.text(&format!("{name}.err"));
        assert_eq!(self.number(&format!("{name}.code")), 0, "{name}: {said}");
        serde_json::from_slice(self.bytes(&format!("{name}.out"))).unwrap()
    }

    #[track_caller]
    pub fn record(&self, name: &str) -> Record {
        let text = self.text(&format!("{name}.out"));
        let record: Record = serde_json::from_str(&text).unwrap_or_else(|error| {
            panic!(
                "{name}: {error}: {text} {}",
                self.text(&format!("{name}.err"))
            )
        });
        invariants::check(&record);
        record
    }

    /// The step of a run that must have ended well.
    #[track_caller]
    pub fn step(&self, name: &str) -> Step {
        assert_eq!(
            self.number(&format!("{name}.code")),
            0,
            "{name}: {}",
            self.text(&format!("{name}.err"))
        );
        let mut record = self.record(name);
        assert_eq!(record.status, Outcome::Finished, "{name}");
        record.steps.remove(0)
    }

    #[track_caller]
    pub fn refused(&self, name: &str, words: &[&str]) {
        let said = self.text(&format!("{name}.err"));
        assert_eq!(self.number(&format!("{name}.code")), 3, "{name}: {said}");
        for word in words {
            assert!(said.contains(word), "{name}: no `{word}` in {said}");
        }
    }
}

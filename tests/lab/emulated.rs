//! Boots of `scripts/lab`, and what they left.
//!
//! A boot costs as much as a hundred tests: it is made once for all that read its results, and one that failed is
//! not tried again. Each of its tests then fails at once, with the machine's last words.

use crate::invariants;
use crate::skipped::skipped;
use crate::support::lab;
use lanemark::record::{Outcome, Record, Step};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/lab");
/// Of everything in a guest together.
const LIMIT_S: &str = "1500";
/// Lines of the console that are kept of a boot that failed.
const LAST_WORDS_COUNT: usize = 60;

/// Why there is nothing to read.
#[derive(Debug, Clone)]
pub enum NoGuest {
    /// This machine cannot have a guest: tests are skipped.
    Absent(String),
    /// It was booted, and did not come to its end: tests fail.
    Failed(String),
}

/// One boot, or several at once, for every test that reads what came of them.
pub struct Boot<T>(OnceLock<Result<T, NoGuest>>);

impl<T> Boot<T> {
    pub const fn new() -> Self {
        Self(OnceLock::new())
    }

    /// What came of it; nothing, with the reason told, where there can be none.
    #[track_caller]
    pub fn get(&self, boot: impl FnOnce() -> Result<T, NoGuest>) -> Option<&T> {
        let _lab = lab()?;
        let made = || prepared().map_err(NoGuest::Absent).and_then(|()| boot());
        came(self.0.get_or_init(made))
    }
}

/// Skips the test where there can be no guest, and fails it where there should be one.
#[track_caller]
pub fn came<T>(made: &Result<T, NoGuest>) -> Option<&T> {
    match made {
        Ok(made) => Some(made),
        Err(NoGuest::Absent(why)) => {
            skipped(why);
            None
        }
        Err(NoGuest::Failed(words)) => panic!("{words}"),
    }
}

/// Sees to it that there can be boots, or says why not.
fn prepared() -> Result<(), String> {
    let ran = Command::new(SCRIPT).arg("prepare").output();
    let said = match ran {
        Ok(ran) if ran.status.success() => return Ok(()),
        Ok(ran) => String::from_utf8_lossy(&ran.stderr).into_owned(),
        Err(error) => error.to_string(),
    };
    let last = said.lines().last().unwrap_or_default();
    Err(format!("the emulated machine cannot be prepared: {last}"))
}

/// Files that a guest left, by name.
pub struct Guest(HashMap<String, Vec<u8>>);

/// Boots a topology, runs a script there with the shared folder's path after its own words, and takes what it
/// left.
pub fn boot(topology: &str, words: &[&str], more: &[&str]) -> Result<Guest, NoGuest> {
    let folder = tempfile::tempdir().unwrap();
    let console = tempfile::NamedTempFile::new().unwrap();
    let ran = Command::new(SCRIPT)
        .args(["run", "--topology", topology, "--timeout", LIMIT_S])
        .arg("--console")
        .arg(console.path())
        .arg("--share")
        .arg(folder.path())
        .args(words)
        .arg(folder.path())
        .args(more)
        .env("LANEMARK_TEST_PROGRAM", std::env::current_exe().unwrap())
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let guest = Guest::in_folder(folder.path());
    // The time of each part, for whoever looks where it goes.
    told(&format!(
        "{topology}: {}",
        String::from_utf8_lossy(&ran.stdout).replace('\n', "; ")
    ));
    if ran.status.success() && guest.found("setup.failed").is_none() {
        return Ok(guest);
    }
    let console = std::fs::read(console.path()).unwrap_or_default();
    Err(NoGuest::Failed(last_words(
        topology, &ran, &guest, &console,
    )))
}

/// Says something past libtest, which keeps what passing tests print to itself.
pub fn told(line: &str) {
    let _ = std::io::stderr().write_all(format!("\n{line}\n").as_bytes());
}

/// What a boot that failed has said: the script, what it noted, and the kernel.
fn last_words(topology: &str, ran: &Output, guest: &Guest, console: &[u8]) -> String {
    let mut text = format!("the lab, {topology}: {}", ran.status);
    let mut add = |name: &str, said: &[u8]| {
        let said = String::from_utf8_lossy(said);
        let lines: Vec<&str> = said.lines().collect();
        let kept = &lines[lines.len().saturating_sub(LAST_WORDS_COUNT)..];
        if !kept.is_empty() {
            let _ = write!(text, "\n--- {name}:\n{}", kept.join("\n"));
        }
    };
    add("output", &ran.stdout);
    add("messages", &ran.stderr);
    for (name, said) in &guest.0 {
        // Stacks come before the kernel's messages, of which there are many.
        if name.ends_with(".stuck") {
            let said = String::from_utf8_lossy(said);
            let first: Vec<&str> = said.lines().take(LAST_WORDS_COUNT).collect();
            add(name, first.join("\n").as_bytes());
        } else if name == "setup.failed" {
            add(name, said);
        }
    }
    // What was begun and never ended.
    for (name, said) in &guest.0 {
        let command = name.strip_suffix(".err");
        let unended = command.filter(|name| !guest.0.contains_key(&format!("{name}.code")));
        if let Some(command) = unended {
            let said = [said.as_slice(), b"(no exit code)"].concat();
            add(command, &said);
        }
    }
    add("console", console);
    text
}

impl Guest {
    fn in_folder(folder: &Path) -> Self {
        let mut files = HashMap::new();
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            files.insert(name, std::fs::read(entry.path()).unwrap());
        }
        Self(files)
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

    /// The exit code of a command that the script has noted.
    #[track_caller]
    pub fn code(&self, name: &str) -> i64 {
        self.number(&format!("{name}.code"))
    }

    /// The JSON that a verb which must have ended well has printed.
    #[track_caller]
    pub fn json(&self, name: &str) -> serde_json::Value {
        let said = self.text(&format!("{name}.err"));
        assert_eq!(self.code(name), 0, "{name}: {said}");
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
        let said = self.text(&format!("{name}.err"));
        assert_eq!(self.code(name), 0, "{name}: {said}");
        let mut record = self.record(name);
        assert_eq!(record.status, Outcome::Finished, "{name}");
        record.steps.remove(0)
    }

    /// Refused by the guard, in these words.
    #[track_caller]
    pub fn refused(&self, name: &str, words: &[&str]) {
        self.refused_with(3, name, words);
    }

    #[track_caller]
    pub fn refused_with(&self, code: i64, name: &str, words: &[&str]) {
        let said = self.text(&format!("{name}.err"));
        assert_eq!(self.code(name), code, "{name}: {said}");
        for word in words {
            assert!(said.contains(word), "{name}: no `{word}` in {said}");
        }
    }
}

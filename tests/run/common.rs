//! Runs the binary and reads what it says.

use crate::invariants;
use lanemark::record::Record;
use std::process::{Child, Command, Output, Stdio};

/// The binary with these words; quiet on stderr but for errors.
pub fn lanemark(words: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lanemark"));
    command.args(words.split_whitespace()).stdin(Stdio::null());
    command
}

/// What a run came to.
pub struct Ran {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    pub fn of(output: &Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout.clone()).unwrap(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// stdout as one strict JSON document that reads as a record, writes back the same and contradicts
    /// itself nowhere.
    #[track_caller]
    pub fn record(&self) -> Record {
        let value: serde_json::Value = serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error} in:\n{}\n{}", self.stdout, self.stderr));
        let record: Record = serde_json::from_value(value.clone()).unwrap();
        assert_eq!(serde_json::to_value(&record).unwrap(), value);
        invariants::check(&record);
        record
    }
}

/// Runs to the end.
pub fn run(words: &str) -> Ran {
    Ran::of(&lanemark(words).output().unwrap())
}

/// Runs with JSON on stdout.
pub fn run_json(words: &str) -> (Ran, Record) {
    let ran = run(&format!("{words} --format json --progress none"));
    let record = ran.record();
    assert_eq!(
        i32::from(lanemark::cli::exit::Exit::of_record(&record).code()),
        ran.code,
        "the exit code and the record disagree"
    );
    (ran, record)
}

/// Starts a run with JSON on stdout.
pub fn start(words: &str) -> Child {
    lanemark(&format!("{words} --format json --progress none"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Sends a signal by its name.
pub fn send(child: &Child, signal: &str) {
    let sent = Command::new("kill")
        .args(["-s", signal, &child.id().to_string()])
        .status()
        .unwrap();
    assert!(sent.success());
}

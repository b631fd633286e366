//! `lanemark report`: saved records as a page for people.

use super::clash;
use super::exit::Exit;
use super::output::{self, Output};
use super::saved::{self, Saved};
use crate::method::compare::saved::contradictions;
use crate::record::{Failure, Step};
use crate::report::html;
use crate::sysfs::Sysfs;
use clap::Args;
use std::path::PathBuf;

/// Flags of `lanemark report`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct ReportArgs {
    /// Records as `--format json` writes them, or folders of runs; several are shown side by side
    #[arg(value_name = "RECORD", required = true)]
    pub records: Vec<PathBuf>,

    /// Write the page to this file, not to stdout
    #[arg(short, long, value_name = "FILE.html")]
    pub output: Option<PathBuf>,
}

/// Runs the verb; the exit code.
pub fn run(args: &ReportArgs) -> Exit {
    match page(args) {
        Ok(()) => Exit::Ok,
        Err(failure) => {
            output::complain(&failure);
            Exit::of_code(failure.exit_code)
        }
    }
}

/// A record can have been edited: what contradicts itself is named, where the run did not name it itself.
fn doubt(step: &mut Step) {
    for warning in contradictions(step) {
        if step.warnings.iter().all(|known| known.kind != warning.kind) {
            step.warnings.push(warning);
        }
    }
}

fn page(args: &ReportArgs) -> Result<(), Failure> {
    let output = Output::open(args.output.as_deref()).map_err(|error| error.failure())?;
    let read = args.records.iter();
    let read = read.map(|path| (path.as_path(), "it is a record that is read"));
    clash::judge(&output, read, &Sysfs::host()).map_err(|clash| Failure {
        kind: "usage".to_owned(),
        text: clash.to_string(),
        next_step: String::new(),
        exit_code: Exit::Usage.code(),
    })?;
    let (mut records, mut comparisons) = (Vec::new(), Vec::new());
    for path in &args.records {
        match saved::load(path).map_err(|error| error.failure())? {
            Saved::Run(mut record) => {
                record.steps.iter_mut().for_each(doubt);
                records.push(*record);
            }
            Saved::Comparison(comparison) => comparisons.push(*comparison),
        }
    }
    output
        .write(&html::render(&records, &comparisons))
        .map_err(|error| error.failure())
}

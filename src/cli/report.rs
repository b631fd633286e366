//! `lanemark report`: saved records as a page for people.

use super::exit::Exit;
use super::line::endings;
use super::output::clash;
use super::output::saved::{self, Saved};
use super::output::{self, Output};
use crate::method::compare::saved::contradictions;
use crate::record::{Comparison, Failure, Record, Step};
use crate::report::{Format, Style, html, render, render_comparison};
use crate::sysfs::Sysfs;
use clap::Args;
use std::path::PathBuf;

/// Flags of `lanemark report`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct ReportArgs {
    /// Records as `--format json` writes them, or folders of runs; several are shown side by side
    #[arg(value_name = "RECORD", required = true)]
    pub records: Vec<PathBuf>,

    /// Write the page to this file, not to stdout. With .json, .csv or .txt at its end, one record in that form
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
    let text = match args.output.as_deref().and_then(endings::format_of) {
        None | Some(Format::Html) => html::render(&records, &comparisons),
        Some(format) => single(&records, &comparisons, format)?,
    };
    output.write(&text).map_err(|error| error.failure())
}

/// What is no page holds one record.
fn single(
    records: &[Record],
    comparisons: &[Comparison],
    format: Format,
) -> Result<String, Failure> {
    match (records, comparisons) {
        ([record], []) => Ok(render(record, format, &Style::PLAIN)),
        ([], [comparison]) => Ok(render_comparison(comparison, format, &Style::PLAIN)),
        _ => Err(Failure {
            kind: "usage".to_owned(),
            text: format!("{} takes one record at a time", format.name()),
            next_step: "several go side by side into a page: -o FILE.html".to_owned(),
            exit_code: Exit::Usage.code(),
        }),
    }
}

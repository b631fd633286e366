//! Runs that are kept in a folder, and runs that go on from one.

use super::saved::{Saved, load};
use crate::cli::RunArgs;
use crate::cli::line::args::{SuiteVerb, Verb, parse};
use crate::cli::line::flags::SafetyFlags;
use crate::cli::run::RunError;
use crate::config::{Plan, plan_json};
use crate::method::resume::{DeviceMark, Folder, RUN_SCHEMA_VERSION, ResumeError, RunMark};
use crate::method::run_folder::{RECORD_FILE, SERIES_FILE, STEPS_FILE};
use crate::record::{Outcome, Record};
use crate::report::{Format, Style, render, series_lines, steps_table};
use crate::session::{Opened, tool};
use std::ffi::OsString;

/// The arguments to run with, and the run that is gone on with. Where the command line names no job, it
/// is that of the folder; leave to write is never taken from there.
pub(in crate::cli) fn resumed(args: &RunArgs) -> Result<(RunArgs, Option<RunMark>), RunError> {
    let Some(path) = &args.resume else {
        return Ok((args.clone(), None));
    };
    let (_, mark) = Folder::open(path)?;
    if args.job.is_some() || !args.keys.is_empty() {
        return Ok((args.clone(), Some(mark)));
    }
    let words = mark.words.iter().map(OsString::from);
    let stored = match parse(words).map(|cli| cli.verb) {
        Ok(Verb::Run(stored)) => RunArgs {
            suite: None,
            ..*stored
        },
        Ok(Verb::Suite(SuiteVerb::Run(stored))) => RunArgs {
            suite: stored.job.as_ref().map(|job| job.display().to_string()),
            ..*stored
        },
        _ => {
            let why = format!("the command line in {} is not one of a run", path.display());
            return Err(RunError::Words(format!("--resume: {why}")));
        }
    };
    let job = stored.job.map(|job| {
        let beside = mark.folder.as_ref().map(|folder| folder.join(&job));
        // The name of a suite is no file; that of a job file is where the run began.
        beside.filter(|path| path.exists()).unwrap_or(job)
    });
    let args = RunArgs {
        job,
        keys: stored.keys,
        set: stored.set,
        only: stored.only,
        read_only: stored.read_only,
        quick: stored.quick,
        suite: stored.suite,
        safety: SafetyFlags {
            strict: stored.safety.strict || args.safety.strict,
            ..args.safety.clone()
        },
        ..args.clone()
    };
    Ok((args, Some(mark)))
}

/// What this run is.
pub(in crate::cli) fn mark(args: &RunArgs, opened: &Opened, plan: &Plan) -> RunMark {
    let tool = tool(None);
    RunMark {
        schema_version: RUN_SCHEMA_VERSION,
        version: tool.version,
        git_commit: tool.git_commit,
        backend: opened.backend_use().name,
        words: args.words.clone(),
        folder: std::env::current_dir().ok(),
        seed: plan.seed,
        devices: opened.facts().iter().map(DeviceMark::of).collect(),
        plan: plan_json(plan),
    }
}

/// The record of the run that is gone on with, where all of it was measured.
pub(in crate::cli) fn finished(args: &RunArgs) -> Option<Box<Record>> {
    match load(args.resume.as_deref()?) {
        Ok(Saved::Run(record)) if record.status == Outcome::Finished => Some(record),
        _ => None,
    }
}

/// Whether the command line says nothing of a job, so that it can only be that of the folder.
pub(in crate::cli) fn is_bare(args: &RunArgs) -> bool {
    args.resume.is_some() && args.job.is_none() && args.keys.is_empty()
}

/// Writes the whole into the folder of the run, where there is one: the record, a row for each step, a
/// line for each second.
pub(in crate::cli) fn write_all(args: &RunArgs, record: &Record) -> Result<(), ResumeError> {
    let Some(path) = args.resume.clone().or_else(|| args.folder()) else {
        return Ok(());
    };
    let (folder, _) = Folder::open(&path)?;
    folder.write(RECORD_FILE, &render(record, Format::Json, &Style::PLAIN))?;
    folder.write(STEPS_FILE, &steps_table(record))?;
    folder.write(SERIES_FILE, &series_lines(record))
}

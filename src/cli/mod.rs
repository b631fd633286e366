//! The command line: its types, one file per verb, and what goes out to the user.

pub mod calibrate;
pub mod check;
pub mod claim;
pub mod compare;
pub mod completions;
pub mod devices;
mod diagnostics;
pub mod exit;
pub mod lanes;
pub mod line;
pub mod listing;
pub mod load;
pub mod output;
pub mod peak;
pub mod progress;
mod quick;
pub mod report;
pub mod run;
pub mod scale;
pub mod schema;
mod signals;
mod suites;
mod version;

pub use line::args::{Cli, RunArgs, SuiteVerb, Verb};
pub use line::job_flags::{JobFlags, job_from_flags};

use crate::config::fio::instead_of;
use crate::record::{Failure, Warning};
use crate::report::Format;
use crate::sys::standin;
use crate::sysfs::Sysfs;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use devices::DevicesError;
use exit::Exit;
use listing::ListFormat;
use std::ffi::OsString;
use std::path::Path;

/// Runs the program: the whole command line, the program's name first.
pub fn main(args: &[OsString]) -> Exit {
    diagnostics::listen();
    standin::outlive_file_limit();
    if let Err(lack) = crate::spdk::check_transports() {
        output::warn(&Warning {
            kind: "spdk".to_owned(),
            text: lack.finding(),
            next_step: lack.remedy(),
        });
    }
    match line::args::parse(args.iter().cloned()) {
        Ok(cli) => verb(with_words(cli.verb, args)),
        Err(error) if error.use_stderr() => usage_error(&error, args),
        // --help and --version.
        Err(error) => handed_over(output::to_stdout(&error.render().to_string())),
    }
}

/// A run knows the words it was started with, and a suite its name.
fn with_words(mut verb: Verb, args: &[OsString]) -> Verb {
    let is_suite = matches!(verb, Verb::Suite(_));
    if let Verb::Run(run) | Verb::Suite(SuiteVerb::Run(run)) = &mut verb {
        let words = args.iter().map(|word| word.to_string_lossy().into_owned());
        run.words = words.collect();
        run.suite = run
            .job
            .as_ref()
            .filter(|_| is_suite)
            .map(|job| job.display().to_string());
    }
    verb
}

fn verb(what: Verb) -> Exit {
    match what {
        Verb::Run(args) if args.claim => claim::claimed::run(&args),
        Verb::Run(args) => in_child(args.format, || run::run(&args)),
        Verb::Suite(SuiteVerb::List { format }) => suites::list(format),
        Verb::Suite(SuiteVerb::Show { name }) => suites::show(&name),
        Verb::Suite(SuiteVerb::Run(args)) => verb(Verb::Run(args)),
        Verb::Schema { document } => handed_over(output::to_stdout(&schema::text(document))),
        Verb::Devices { device, format } => {
            let list = devices::devices(&Sysfs::host(), format, device.as_deref());
            listed(format, list)
        }
        Verb::Compare(args) if args.claim => claim::claimed::compare(&args),
        Verb::Compare(args) => in_child(args.result.format, || compare::run(&args)),
        Verb::Peak(args) => in_child(args.flags.result.format, || peak::run(&args)),
        Verb::Load(args) => in_child(args.flags.result.format, || load::run(&args)),
        Verb::Scale(args) => in_child(args.flags.result.format, || scale::run(&args)),
        Verb::Check { format } => listed(format, Ok(check::check(&Sysfs::host(), format))),
        Verb::Calibrate(args) => in_child(args.format.into(), || calibrated(&args)),
        Verb::Lanes(args) => in_child(args.format.into(), || lanes::run(&args)),
        Verb::Claim(args) => claim::claim(&args, &Sysfs::host()),
        Verb::Release(args) => claim::release(&args, &Sysfs::host()),
        Verb::Report(args) => report::run(&args),
        Verb::Completions { shell } => handed_over(output::to_stdout(&completions::completions(
            shell,
            line::help::command(),
        ))),
        Verb::Man { dir } => manual(&dir),
    }
}

/// A device that never answers must not hold the command line: the work is done in a child. Until it listens for
/// signals (the job may come from a pipe that nobody writes to) one ends it.
fn in_child(format: Format, work: impl FnOnce() -> Exit) -> Exit {
    let work = || {
        standin::release_signals();
        work().code()
    };
    standin::run(work).map_or_else(|died| run::died(format, died), Exit::of_code)
}

/// A list on stdout, or why there is none: on stderr, and in JSON where that was asked for.
fn listed(format: ListFormat, list: Result<String, DevicesError>) -> Exit {
    match list {
        Ok(text) => handed_over(output::to_stdout(&text)),
        Err(DevicesError::Unknown(name)) => {
            let failure = Failure {
                kind: "no-device".to_owned(),
                text: DevicesError::Unknown(name).to_string(),
                next_step: "lanemark devices lists what is here".to_owned(),
                exit_code: Exit::Usage.code(),
            };
            run::refuse(None, format.into(), &Sysfs::host(), failure)
        }
        Err(error @ DevicesError::Sysfs(_)) => {
            let failure = Failure {
                kind: "sysfs".to_owned(),
                text: error.to_string(),
                next_step: "run where /sys is mounted".to_owned(),
                exit_code: Exit::Failed.code(),
            };
            run::refuse(None, format.into(), &Sysfs::host(), failure)
        }
    }
}

/// What the tool costs, on stdout, or why it cannot be told.
fn calibrated(args: &calibrate::CalibrateArgs) -> Exit {
    let sysfs = Sysfs::host();
    let measured = match output::Output::open(None) {
        Ok(_) => calibrate::run(args, &sysfs),
        Err(error) => return handed_over(Err(error)),
    };
    match measured {
        Ok(text) => handed_over(output::to_stdout(&text)),
        Err(error) => {
            let failure = Failure {
                kind: error.kind().to_owned(),
                text: error.to_string(),
                next_step: String::new(),
                exit_code: error.exit_code(),
            };
            let format = match args.format {
                ListFormat::Text => Format::Text,
                ListFormat::Json => Format::Json,
            };
            run::refuse(None, format, &sysfs, failure)
        }
    }
}

/// An option that fio has, and what to take in its place: a name that merely looks like it would mislead.
fn fio_option(error: &clap::Error) -> Option<Failure> {
    let Some(ContextValue::String(flag)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    let is_unknown = error.kind() == ErrorKind::UnknownArgument;
    let next_step = instead_of(flag.strip_prefix("--")?).filter(|_| is_unknown)?;
    Some(Failure {
        kind: "usage".to_owned(),
        text: format!("{flag} is an option of fio, and none of lanemark"),
        next_step: next_step.to_owned(),
        exit_code: Exit::Usage.code(),
    })
}

/// clap's message on stderr as it is, or as a record on stdout where JSON was asked for.
fn usage_error(error: &clap::Error, args: &[OsString]) -> Exit {
    if let Some(failure) = fio_option(error) {
        let format = if line::args::asks_for_json(args) {
            Format::Json
        } else {
            Format::Text
        };
        return run::refuse(None, format, &Sysfs::host(), failure);
    }
    if line::args::asks_for_json(args) {
        let text = error.render().to_string();
        let text = text.trim().trim_start_matches("error: ").to_owned();
        let failure = Failure {
            kind: "usage".to_owned(),
            text,
            next_step: String::new(),
            exit_code: Exit::Usage.code(),
        };
        return run::refuse(None, Format::Json, &Sysfs::host(), failure);
    }
    // Nobody may be listening on stderr: that is no error.
    let _ = error.print();
    Exit::Usage
}

fn manual(dir: &Path) -> Exit {
    let pages = completions::man_pages(line::help::command());
    let written = pages.and_then(|pages| {
        std::fs::create_dir_all(dir)?;
        pages
            .iter()
            .try_for_each(|page| std::fs::write(dir.join(&page.file_name), &page.roff))
    });
    match written {
        Ok(()) => Exit::Ok,
        Err(error) => {
            output::complain(&Failure {
                kind: "output".to_owned(),
                text: format!(
                    "cannot write the manual pages into {}: {error}",
                    dir.display()
                ),
                next_step: "name a folder you may write to".to_owned(),
                exit_code: Exit::Failed.code(),
            });
            Exit::Failed
        }
    }
}

fn handed_over(result: Result<(), output::OutputError>) -> Exit {
    match result {
        Ok(()) => Exit::Ok,
        Err(error) => {
            output::complain(&error.failure());
            error.exit()
        }
    }
}

//! `lanemark run`: one job on its devices.

use super::exit::Exit;
use super::output::clash::{self, Clash};
use super::output::resume;
use super::output::{self, Output};
use super::{RunArgs, job_from_flags, progress, quick, signals, suites};
use crate::config::{Choices, ConfigError, Job, Plan, StepPlan, describe, plan_chosen, plan_json};
use crate::method::resume::{Folder, Keeper, NoKeeper, ResumeError, RunMark};
use crate::method::run_folder::{WHOLE_FILES, is_free};
use crate::method::suite::{Suite, SuiteError};
use crate::reactor::Control;
use crate::record::{Failure, Record, SuiteUse, Warning};
use crate::report::Format;
use crate::session::guard::UnknownSignature;
use crate::session::{
    Observer, Opened, Session, SessionError, Setup, environment, never_written, permits, prepare,
    tool, tool_cost_ns,
};
use crate::sys::clock::MachineClock;
use crate::sys::cpu::AllowedCpus;
use crate::sys::standin::Died;
use crate::sysfs::Sysfs;
use crate::units::Nanos;
use std::path::Path;
use std::sync::Arc;

/// The longest window of a first look.
pub(super) const QUICK_WINDOW: Nanos = Nanos(500_000_000);

/// Why a run did not come to a record of its own.
#[derive(Debug, thiserror::Error)]
pub(super) enum RunError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Session(#[from] SessionError),
    #[error(
        "no device is named: give --device, or `device:` in the job file, or no key at all for the quick job on a scratch file"
    )]
    NoDevice,
    #[error(transparent)]
    Clash(#[from] Clash),
    #[error("cannot listen for signals: {0}")]
    Signals(#[from] std::io::Error),
    #[error("--overwrite: {0}")]
    Overwrite(#[from] UnknownSignature),
    #[error(transparent)]
    Resume(#[from] ResumeError),
    #[error("{0}")]
    Words(String),
}

impl RunError {
    fn failure(&self) -> Failure {
        let (kind, exit) = match self {
            Self::Config(_)
            | Self::NoDevice
            | Self::Clash(_)
            | Self::Words(_)
            | Self::Overwrite(_) => ("usage", Exit::Usage),
            Self::Session(error) => (error.kind(), Exit::of_code(error.exit_code())),
            Self::Resume(error) => ("resume", Exit::of_code(error.exit_code())),
            Self::Signals(_) => ("signals", Exit::Failed),
        };
        Failure {
            kind: kind.to_owned(),
            text: self.to_string(),
            next_step: match self {
                Self::Session(error) => error.next_step(),
                _ => String::new(),
            },
            exit_code: exit.code(),
        }
    }
}

impl From<SuiteError> for RunError {
    fn from(error: SuiteError) -> Self {
        match error {
            SuiteError::Session(error) => Self::Session(error),
            SuiteError::Resume(error) => Self::Resume(error),
        }
    }
}

fn failure_of_suite(error: &SuiteError) -> Failure {
    let (kind, exit_code, next_step) = match error {
        SuiteError::Session(error) => (error.kind(), error.exit_code(), error.next_step()),
        SuiteError::Resume(error) => ("resume", error.exit_code(), String::new()),
    };
    Failure {
        kind: kind.to_owned(),
        text: error.to_string(),
        next_step,
        exit_code,
    }
}

/// Says how long it will take, how much it writes, and what is not run.
fn announce(args: &RunArgs, plan: &Plan) {
    if args.progress == progress::Mode::None {
        return;
    }
    let is_single = plan.steps.len() == 1 && plan.left_out.is_empty();
    if !is_single || plan.steps.iter().any(StepPlan::writes) {
        let count = plan.steps.len();
        let steps = if count == 1 { "step" } else { "steps" };
        output::note(&format!("{count} {steps}, {}", plan.estimate));
    }
    for left in &plan.left_out {
        output::note(&format!("left out: {}: {}", left.step, left.why));
    }
}

/// Where finished steps are kept.
fn keeper(
    args: &RunArgs,
    resumed: Option<&RunMark>,
    opened: &Opened,
    plan: &Plan,
) -> Result<Box<dyn Keeper>, RunError> {
    let mark = resume::mark(args, opened, plan);
    if let (Some(path), Some(was)) = (&args.resume, resumed) {
        was.check(&mark, path)?;
        return Ok(Box::new(Folder::open(path)?.0));
    }
    Ok(match args.folder() {
        Some(path) => Box::new(Folder::begin(&path, &mark)?),
        None => Box::new(NoKeeper),
    })
}

/// Runs the verb; the exit code.
pub fn run(args: &RunArgs) -> Exit {
    run_job(args, None)
}

/// The job of a command line, its flags included, not yet judged.
///
/// # Errors
/// Why there is none.
pub(super) fn load(args: &RunArgs) -> Result<Job, Failure> {
    resume::resumed(args)
        .and_then(|(args, _)| loaded(&args))
        .map_err(|error| suites::told(args, error.failure()))
}

fn loaded(args: &RunArgs) -> Result<Job, RunError> {
    let mut file = match &args.job {
        Some(path) => Some(suites::load(args, path)?),
        None => quick::job(args)?,
    };
    if let Some(set) = args.set.first().filter(|_| args.job.is_none()) {
        let text = format!("--set {set}: there is no job file; give the key as a flag of its name");
        return Err(RunError::Words(text));
    }
    if args.quick {
        let job = file.get_or_insert_with(Job::of_flags);
        job.quick = Some(QUICK_WINDOW);
    }
    Ok(job_from_flags(args, file)?)
}

/// Runs a job that [`load`] has given already, or that of the command line; the exit code.
pub(super) fn run_job(args: &RunArgs, job: Option<Job>) -> Exit {
    let is_bare = resume::is_bare(args) && !args.dry_run;
    match resume::resumed(args) {
        Ok((args, resumed)) => match resume::finished(&args).filter(|_| is_bare) {
            Some(record) => show_finished(&args, &record),
            None => run_all(&args, job, resumed.as_ref()),
        },
        Err(error) => refuse(None, args.format, &Sysfs::host(), error.failure()),
    }
}

/// A run that has come to its end is shown as it is: nothing is opened, filled or written for it.
fn show_finished(args: &RunArgs, record: &Record) -> Exit {
    let sysfs = Sysfs::host();
    let folder = args.resume.as_deref().unwrap_or(Path::new(""));
    let files = WHOLE_FILES.map(|name| folder.join(name));
    let read = files
        .iter()
        .map(|path| (path.as_path(), "it is a part of the run"));
    let output = match Output::open(args.output_file()) {
        Ok(output) => output,
        Err(error) => return refuse(None, args.format, &sysfs, error.failure()),
    };
    if let Err(clash) = clash::judge(&output, read, &sysfs) {
        return refuse(None, args.format, &sysfs, RunError::from(clash).failure());
    }
    let count = record.steps.len();
    output::note(&format!(
        "nothing left to do: all {count} steps were measured"
    ));
    hand_over(record, output, args.format)
}

fn run_all(args: &RunArgs, job: Option<Job>, resumed: Option<&RunMark>) -> Exit {
    let sysfs = Sysfs::host();
    let output = match Output::open(args.output_file()) {
        Ok(output) => output,
        Err(error) => return refuse(None, args.format, &sysfs, error.failure()),
    };
    // Before anything is opened. Until then nothing has to be undone, and a signal ends the process.
    let control = Arc::new(Control::default());
    let job = judged_job(args, job, &output, &sysfs)
        .and_then(|job| signals::listen(&control).map(|()| job).map_err(Into::into));
    let job = match job {
        Ok(job) => job,
        // Not known yet whether it is what is measured: nothing is written there, not even to say so.
        Err(error) => {
            let failure = suites::told(args, error.failure());
            return refuse(None, args.format, &sysfs, failure);
        }
    };
    let mut observer = progress::on_stderr(args.progress);
    let done = measure(args, (&job, resumed), control, &sysfs, observer.as_mut());
    // Progress leaves its line before anything else is said.
    drop(observer);
    match done {
        Ok(Done::Record(record)) => {
            let saved = resume::finished(args).filter(|saved| saved.steps == record.steps);
            let (record, kept) = match saved {
                Some(saved) => (saved, Ok(())),
                None => {
                    let kept = resume::write_all(args, &record);
                    (record, kept)
                }
            };
            let exit = hand_over(&record, output, args.format);
            match kept {
                Ok(()) => exit,
                Err(error) => {
                    let failure = RunError::from(error).failure();
                    output::complain(&failure);
                    exit.and(Exit::of_code(failure.exit_code))
                }
            }
        }
        Ok(Done::Plan(plan)) => show_plan(&plan, output, args.format),
        Err(error) => {
            let failure = suites::told(args, error.failure());
            refuse(Some(output), args.format, &sysfs, failure)
        }
    }
}

/// The process that measured left no word: tells so in its place. It may have died before it had judged the
/// file of `-o`, so the record goes to stdout.
pub fn died(format: Format, died: Died) -> Exit {
    let failure = if died.is_interrupt() {
        Failure {
            kind: "interrupted".to_owned(),
            text: "interrupted before there was a result".to_owned(),
            next_step: String::new(),
            exit_code: Exit::Interrupted.code(),
        }
    } else {
        Failure {
            kind: "died".to_owned(),
            text: died.to_string(),
            next_step: "look at the kernel's log for want of memory; otherwise please report it"
                .to_owned(),
            exit_code: Exit::Failed.code(),
        }
    };
    refuse(None, format, &Sysfs::host(), failure)
}

fn hand_over(record: &Record, output: Output, format: Format) -> Exit {
    let exit = Exit::of_record(record);
    let failures = record
        .error
        .iter()
        .chain(record.steps.iter().flat_map(|step| &step.error));
    failures.for_each(output::complain);
    for step in &record.steps {
        output::missed(step);
    }
    match output.write_record(record, format) {
        Ok(()) => exit,
        Err(error) => {
            output::complain(&error.failure());
            exit.and(error.exit())
        }
    }
}

/// What a run ends with.
enum Done {
    Record(Box<Record>),
    Plan(Box<Plan>),
}

/// The job, once it is known that the result goes into nothing that it reads or measures.
fn judged_job(
    args: &RunArgs,
    job: Option<Job>,
    output: &Output,
    sysfs: &Sysfs,
) -> Result<Job, RunError> {
    let job = match job {
        Some(job) => job,
        None => loaded(args)?,
    };
    let names = job.device_names()?;
    if names.is_empty() {
        return Err(RunError::NoDevice);
    }
    let measured = names.iter().map(|name| (Path::new(*name), clash::MEASURED));
    let inputs: Vec<_> = measured.chain(clash::files_of(&job)).collect();
    clash::judge(output, inputs.iter().copied(), sysfs)?;
    // Before anything is opened, filled or measured.
    if let Some(folder) = &args.resume {
        clash::judge_folder(folder, &WHOLE_FILES, &inputs, sysfs)?;
    } else if let Some(folder) = &args.folder() {
        is_free(folder)?;
    }
    Ok(job)
}

fn measure(
    args: &RunArgs,
    (job, resumed): (&Job, Option<&RunMark>),
    control: Arc<Control>,
    sysfs: &Sysfs,
    observer: &mut dyn Observer,
) -> Result<Done, RunError> {
    let names = job.device_names()?;
    let choice = job.backend_choice()?;
    let allowed = AllowedCpus::at_start().map_err(SessionError::from)?;
    let mut setup = Setup {
        control: &control,
        observer,
        dry_run: args.dry_run,
    };
    let mut opened = Opened::open(&names, choice, sysfs, &mut setup)?;
    let choices = Choices {
        only: args.only.clone(),
        read_only: args.read_only,
        lenient: args.suite.is_some(),
        cpus_count: (!matches!(opened, Opened::Sim { .. })).then(|| allowed.cpus().len()),
    };
    let seed = resumed.map_or_else(fresh_seed, |run| run.seed);
    let plan = plan_chosen(job, &opened.facts(), seed, &choices)?;
    if args.dry_run {
        return Ok(Done::Plan(Box::new(plan)));
    }
    announce(args, &plan);
    observer.planned(&plan.all_steps_s());
    let consent = args.safety.consent()?;
    let permits = permits(&plan, &opened, &consent, sysfs)?;
    let mut warnings = opened.notes();
    if args.safety.prepare {
        warnings.extend(prepare(
            &plan, &opened, &consent, sysfs, &control, observer,
        )?);
    }
    let doubts = never_written(&plan, &opened, args.safety.strict, &control)?;
    if !permits.is_empty() {
        opened = opened.permit_writes(&permits, sysfs)?;
    }
    let clock = MachineClock::new(sysfs);
    let is_sim = matches!(opened, Opened::Sim { .. });
    let first_cpu = allowed.cpus().last().copied();
    let tool_cost_ns = first_cpu
        .filter(|_| !is_sim)
        .and_then(|cpu| tool_cost_ns(&clock, cpu));
    let session = Session {
        sysfs: sysfs.clone(),
        allowed,
        clock,
        control,
        tool_cost_ns,
    };
    let mut keeper = keeper(args, resumed, &opened, &plan)?;
    let suite = Suite {
        session: &session,
        opened: &opened,
        plan: &plan,
        doubts: &doubts,
        is_lenient: args.suite.is_some(),
        keeper: keeper.as_mut(),
    };
    let failure_of = |error: &SuiteError| failure_of_suite(error);
    let mut record = suite.run(observer, &failure_of)?;
    record.command = output::command_line();
    record.suite = args.suite.clone().map(|name| SuiteUse {
        name,
        is_quick: args.quick,
        only: args.only.clone(),
    });
    suites::note_changes(args, job, &mut record);
    record.warnings.splice(0..0, warnings);
    Ok(Done::Record(Box::new(record)))
}

/// A seed that differs from run to run; it is in the record.
pub(super) fn fresh_seed() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    std::collections::hash_map::RandomState::new()
        .build_hasher()
        .finish()
        >> 12
}

fn show_plan(plan: &Plan, output: Output, format: Format) -> Exit {
    let text = match format {
        Format::Json => {
            format!("{:#}\n", plan_json(plan))
        }
        Format::Text | Format::Csv | Format::Html => describe(plan),
    };
    plan.notes
        .iter()
        .for_each(|note: &Warning| output::warn(note));
    match output.write(&text) {
        Ok(()) => Exit::Ok,
        Err(error) => {
            output::complain(&error.failure());
            error.exit()
        }
    }
}

/// Tells why nothing was measured: on stderr, and in JSON where that was asked for.
pub fn refuse(output: Option<Output>, format: Format, sysfs: &Sysfs, failure: Failure) -> Exit {
    let exit = Exit::of_code(failure.exit_code);
    output::complain(&failure);
    if format != Format::Json {
        return exit;
    }
    let clock = MachineClock::monotonic_raw(crate::sys::clock::WhyNotTsc::Unknown);
    let allowed = AllowedCpus::at_start().unwrap_or_else(|_| AllowedCpus::of(&[]));
    let record = output::failure_record(failure, tool(None), environment(sysfs, &clock, &allowed));
    let output = output.map_or_else(|| Output::open(None), Ok);
    match output.and_then(|output| output.write_record(&record, Format::Json)) {
        Ok(()) => exit,
        Err(error) => exit.and(error.exit()),
    }
}

//! `lanemark run`: one job on its devices.

use super::exit::Exit;
use super::output::{self, Output};
use super::{RunArgs, job_from_flags, progress, quick, signals};
use crate::config::{ConfigError, Job, Plan, describe, plan, plan_json, step_json};
use crate::reactor::{Control, StopCause};
use crate::record::{Failure, Outcome, Record, SCHEMA_VERSION, Step, Warning};
use crate::report::Format;
use crate::session::guard::{Consent, UnknownSignature, in_use, parse_overwrite};
use crate::session::{
    Observer, Opened, Session, SessionError, Setup, environment, never_written, permits, prepare,
    tool, tool_cost_ns,
};
use crate::sys::clock::MachineClock;
use crate::sys::cpu::AllowedCpus;
use crate::sys::standin::Died;
use crate::sysfs::Sysfs;
use std::path::Path;
use std::sync::Arc;

/// Why a run did not come to a record of its own.
#[derive(Debug, thiserror::Error)]
enum RunError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Session(#[from] SessionError),
    #[error(
        "no device is named: give --device, or `device:` in the job file, or no key at all for the quick job on a scratch file"
    )]
    NoDevice,
    #[error("the result cannot go into {0}: it is what is measured; name another file with -o")]
    OutputIsDevice(String),
    #[error("the result cannot go into {0}: it is the job file; name another file with -o")]
    OutputIsJob(String),
    #[error("the result cannot go into {0}: {1}; name another file with -o")]
    OutputInUse(String, String),
    #[error("cannot listen for signals: {0}")]
    Signals(#[from] std::io::Error),
    #[error("--overwrite: {0}")]
    Overwrite(#[from] UnknownSignature),
}

impl RunError {
    fn failure(&self) -> Failure {
        let (kind, exit) = match self {
            Self::Config(_)
            | Self::NoDevice
            | Self::OutputIsDevice(_)
            | Self::OutputIsJob(_)
            | Self::OutputInUse(..)
            | Self::Overwrite(_) => ("usage", Exit::Usage),
            Self::Session(error) => (error.kind(), Exit::of_code(error.exit_code())),
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

/// Runs the verb; the exit code.
pub fn run(args: &RunArgs) -> Exit {
    run_job(args, None)
}

/// The job of a command line, its flags included, not yet judged.
///
/// # Errors
/// Why there is none.
pub(super) fn load(args: &RunArgs) -> Result<Job, Failure> {
    loaded(args).map_err(|error| error.failure())
}

fn loaded(args: &RunArgs) -> Result<Job, RunError> {
    let file = match &args.job {
        Some(path) => Some(Job::load(path)?),
        None => quick::job(args)?,
    };
    Ok(job_from_flags(args, file)?)
}

/// Runs a job that [`load`] has given already, or that of the command line; the exit code.
pub(super) fn run_job(args: &RunArgs, job: Option<Job>) -> Exit {
    let sysfs = Sysfs::host();
    let output = match Output::open(args.output.as_deref()) {
        Ok(output) => output,
        Err(error) => return refuse(None, args.format, &sysfs, error.failure()),
    };
    // Before anything that takes time: until then a signal waits.
    let control = Arc::new(Control::default());
    let job = signals::listen(&control)
        .map_err(RunError::from)
        .and_then(|()| judged_job(args, job, &output, &sysfs));
    let job = match job {
        Ok(job) => job,
        // Not known yet whether it is what is measured: nothing is written there, not even to say so.
        Err(error) => return refuse(None, args.format, &sysfs, error.failure()),
    };
    let mut observer = progress::on_stderr(args.progress);
    let done = measure(args, &job, control, &sysfs, observer.as_mut());
    // Progress leaves its line before anything else is said.
    drop(observer);
    match done {
        Ok(Done::Record(record)) => hand_over(&record, output, args.format),
        Ok(Done::Plan(plan)) => show_plan(&plan, output, args.format),
        Err(error) => refuse(Some(output), args.format, &sysfs, error.failure()),
    }
}

/// The process that measured left no word: tells so in its place. It may have died before it had judged the
/// file of `-o`, so the record goes to stdout.
pub fn died(format: Format, died: Died) -> Exit {
    let exit = if died.is_interrupt() {
        Exit::Interrupted
    } else {
        Exit::Failed
    };
    let failure = Failure {
        kind: "died".to_owned(),
        text: died.to_string(),
        next_step: "look at the kernel's log for want of memory; otherwise please report it"
            .to_owned(),
        exit_code: exit.code(),
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
    if let Some(path) = args.job.as_deref().filter(|path| output.is(path)) {
        return Err(RunError::OutputIsJob(path.display().to_string()));
    }
    let job = match job {
        Some(job) => job,
        None => loaded(args)?,
    };
    let names = job.device_names()?;
    if names.is_empty() {
        return Err(RunError::NoDevice);
    }
    if let Some(name) = names.iter().find(|name| output.is(Path::new(name))) {
        return Err(RunError::OutputIsDevice((*name).to_owned()));
    }
    if let Some(path) = &args.output
        && let Some(used) = in_use(sysfs, path).first().filter(|_| path.is_file())
    {
        return Err(RunError::OutputInUse(
            path.display().to_string(),
            used.clone(),
        ));
    }
    Ok(job)
}

fn measure(
    args: &RunArgs,
    job: &Job,
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
    let plan = plan(job, &opened.facts(), fresh_seed())?;
    if args.dry_run {
        return Ok(Done::Plan(Box::new(plan)));
    }
    let consent = consent(args)?;
    let permits = permits(&plan, &opened, &consent, sysfs)?;
    let mut warnings = [plan.notes.clone(), opened.notes()].concat();
    if args.prepare {
        warnings.extend(prepare(
            &plan, &opened, &consent, sysfs, &control, observer,
        )?);
    }
    let doubts = never_written(&plan, &opened, args.strict, &control)?;
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
    let mut record = steps(&session, &opened, &plan, observer)?;
    record.warnings = warnings;
    for (step, doubts) in record.steps.iter_mut().zip(doubts) {
        step.warnings.extend(doubts);
    }
    Ok(Done::Record(Box::new(record)))
}

/// Runs the steps in turn. What was measured before a failure is kept.
fn steps(
    session: &Session,
    opened: &Opened,
    plan: &Plan,
    observer: &mut dyn Observer,
) -> Result<Record, RunError> {
    let mut record = Record {
        schema_version: SCHEMA_VERSION,
        command: output::command_line(),
        status: Outcome::Finished,
        error: None,
        tool: tool(session.tool_cost_ns),
        environment: environment(&session.sysfs, &session.clock, &session.allowed),
        job: plan_json(plan),
        seed: plan.seed,
        steps: Vec::new(),
        warnings: Vec::new(),
    };
    for (number, step) in (1..).zip(&plan.steps) {
        if session.control.cause() >= StopCause::Signal {
            record.status = Outcome::Interrupted;
            break;
        }
        let json = step_json(step, &plan.devices);
        let numbers = (number, plan.steps.len());
        match session.run_step(opened, step, json, numbers, observer) {
            Ok(mut done) => {
                done.expect = crate::method::expect::judge(&done, &step.expect);
                record.status = worse(record.status, &done);
                let over = done.status == Outcome::Interrupted || is_final(&done);
                record.steps.push(done);
                if over {
                    break;
                }
            }
            Err(error) if record.steps.is_empty() => return Err(error.into()),
            Err(error) => {
                record.status = Outcome::Failed;
                record.error = Some(RunError::from(error).failure());
                break;
            }
        }
    }
    if record.steps.is_empty() {
        return Err(SessionError::Interrupted.into());
    }
    Ok(record)
}

/// A device that is gone or stuck will not do better in the next step.
fn is_final(step: &Step) -> bool {
    step.error
        .as_ref()
        .is_some_and(|error| matches!(error.kind.as_str(), "gone" | "stuck"))
}

fn worse(so_far: Outcome, step: &Step) -> Outcome {
    match (so_far, step.status) {
        (_, Outcome::Interrupted) => Outcome::Interrupted,
        (Outcome::Finished, other) => other,
        (so_far, _) => so_far,
    }
}

/// What the user allowed on the command line.
fn consent(args: &RunArgs) -> Result<Consent, RunError> {
    let mut overwrite = Vec::new();
    for word in &args.overwrite {
        overwrite.extend(parse_overwrite(word)?);
    }
    Ok(Consent {
        allow_write: args.allow_write.clone(),
        overwrite,
    })
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

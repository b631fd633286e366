//! What the verbs share that make their own steps out of a job of one: reading it, opening its devices, asking
//! for consent.

use super::flags::{ResultFlags, SafetyFlags};
use crate::backend::DeviceFacts;
use crate::cli::exit::Exit;
use crate::cli::output::clash::{self, Clash};
use crate::cli::output::{self, Output};
use crate::cli::{JobFlags, RunArgs, job_from_flags, run};
use crate::config::{ConfigError, Job, Key, Keys, Plan, Step as JobStep, Streams, plan};
use crate::reactor::Control;
use crate::record::{Failure, Outcome, Record, SCHEMA_VERSION, Step, Warning};
use crate::report::{Format, render_verb};
use crate::session::guard::UnknownSignature;
use crate::session::{
    Observer, Opened, Session, SessionError, Setup, environment, never_written, permits, prepare,
    tool, tool_cost_ns,
};
use crate::sys::clock::MachineClock;
use crate::sys::cpu::AllowedCpus;
use crate::sysfs::Sysfs;
use clap::Args;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
pub enum OneStepError {
    /// The job.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The devices.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// `--overwrite`.
    #[error("--overwrite: {0}")]
    Overwrite(#[from] UnknownSignature),
    /// Signals.
    #[error("cannot listen for signals: {0}")]
    Signals(#[from] std::io::Error),
    /// Where the result would go.
    #[error(transparent)]
    Clash(#[from] Clash),
    /// A flag, or what this verb cannot do with a job.
    #[error("{0}")]
    Usage(String),
}

impl OneStepError {
    /// As errors are told.
    #[must_use]
    pub fn failure(&self) -> Failure {
        let (kind, exit) = match self {
            Self::Session(error) => (error.kind(), Exit::of_code(error.exit_code())),
            Self::Signals(_) => ("signals", Exit::Failed),
            _ => ("usage", Exit::Usage),
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

/// Flags of `peak`, `load` and `scale`, beside those of their own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct OneStepFlags {
    /// A job file of one step; without one, the flags make it
    #[arg(value_name = "JOB.yaml")]
    pub job: Option<PathBuf>,

    /// Where the result goes.
    #[command(flatten)]
    pub result: ResultFlags,
    /// What may be done.
    #[command(flatten)]
    pub safety: SafetyFlags,

    /// The keys of the job.
    #[command(flatten)]
    pub keys: JobFlags,
}

impl OneStepFlags {
    /// The job file, read.
    ///
    /// # Errors
    /// [`ConfigError`].
    pub fn file(&self) -> Result<Option<Job>, ConfigError> {
        self.job.as_deref().map(Job::load).transpose()
    }
}

/// What was asked on the command line.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// The verb.
    pub verb: &'static str,
    /// The job, and what becomes of it.
    pub flags: &'a OneStepFlags,
    /// Keys that the verb sets itself.
    pub own_keys: &'a [Key],
}

/// Everything is open, and consent was given.
#[derive(Debug)]
pub struct Ready {
    /// The devices.
    pub opened: Opened,
    /// The session.
    pub session: Session,
    /// The job as it is without what the verb sets.
    pub plan: Plan,
    /// Doubts about what is read.
    pub doubts: Vec<Warning>,
    /// What was filled before, and what a reader has to know of the devices.
    pub notes: Vec<Warning>,
}

impl Ready {
    /// The record of what the verb has run.
    #[must_use]
    pub fn record(
        &self,
        status: Outcome,
        error: Option<&SessionError>,
        job: serde_json::Value,
        mut steps: Vec<Step>,
    ) -> Record {
        for step in &mut steps {
            step.warnings.extend(self.doubts.iter().cloned());
        }
        let failure = error.map(|error| Failure {
            kind: error.kind().to_owned(),
            text: error.to_string(),
            next_step: error.next_step(),
            exit_code: error.exit_code(),
        });
        let session = &self.session;
        Record {
            schema_version: SCHEMA_VERSION,
            command: output::command_line(),
            status,
            error: failure.filter(|failure| failure.kind != "interrupted"),
            tool: tool(session.tool_cost_ns),
            environment: environment(&session.sysfs, &session.clock, &session.allowed),
            job,
            seed: self.plan.seed,
            suite: None,
            about: None,
            left_out: Vec::new(),
            derived: Vec::new(),
            steady: None,
            scale: None,
            answer: Vec::new(),
            steps,
            warnings: [self.plan.notes.clone(), self.notes.clone()].concat(),
        }
    }
}

/// A session on this machine. Simulated devices cost nothing: the tool's own cost is not taken for them.
///
/// # Errors
/// [`SessionError`] where the CPUs cannot be told.
pub fn session(
    is_sim: bool,
    sysfs: &Sysfs,
    control: Arc<Control>,
) -> Result<Session, SessionError> {
    let allowed = AllowedCpus::at_start()?;
    let clock = MachineClock::new(sysfs);
    let cpu = allowed.cpus().last().copied().filter(|_| !is_sim);
    Ok(Session {
        sysfs: sysfs.clone(),
        tool_cost_ns: cpu.and_then(|cpu| tool_cost_ns(&clock, cpu)),
        allowed,
        clock,
        control,
    })
}

/// Hands over a record, as text made by `text` or in any other form.
pub fn hand_over(
    output: Output,
    format: Format,
    record: &Record,
    text: impl FnOnce() -> String,
) -> Exit {
    let failures = record
        .error
        .iter()
        .chain(record.steps.iter().flat_map(|step| &step.error));
    failures.for_each(output::complain);
    let exit = Exit::of_record(record);
    let written = match format {
        Format::Text => {
            let whole = render_verb(record, &text(), &output.style());
            output.write(&whole)
        }
        format => output.write_record(record, format),
    };
    match written {
        Ok(()) => exit,
        Err(error) => {
            output::complain(&error.failure());
            exit.and(error.exit())
        }
    }
}

/// The keys of a step, and those of each of its streams.
fn mappings(step: &JobStep) -> impl Iterator<Item = &Keys> {
    let streams = match &step.streams {
        Some(Streams::List { streams, .. }) => streams.as_slice(),
        Some(Streams::Count(_)) | None => &[],
    };
    std::iter::once(&step.keys).chain(streams)
}

impl Asked<'_> {
    /// The job of these flags over this file, where it suits the verb.
    ///
    /// # Errors
    /// [`OneStepError::Usage`] and [`OneStepError::Config`], before any I/O.
    pub fn job(
        &self,
        keys: JobFlags,
        file: Option<Job>,
        output: &Output,
        sysfs: &Sysfs,
    ) -> Result<Job, OneStepError> {
        let flags = RunArgs {
            keys,
            ..RunArgs::default()
        };
        let job = job_from_flags(&flags, file)?;
        let names = job.device_names()?;
        if names.is_empty() {
            return Err(ConfigError::NoDevice.into());
        }
        if job.steps.len() != 1 {
            return Err(OneStepError::Usage(format!(
                "{} wants a job of one step: it makes its own steps of it",
                self.verb
            )));
        }
        let given = [&job.flags, &job.defaults, &job.steps[0]];
        let has = |key: &&Key| {
            let mut mappings = given.into_iter().flat_map(mappings);
            mappings.any(|keys| keys.contains_key(key))
        };
        if let Some(key) = self.own_keys.iter().find(has) {
            return Err(OneStepError::Usage(format!(
                "{} sets {} itself: leave it out",
                self.verb,
                key.name()
            )));
        }
        self.judge_whole(&job)?;
        let measured = names.iter().map(|name| (Path::new(*name), clash::MEASURED));
        clash::judge(output, measured.chain(clash::files_of(&job)), sysfs)?;
        Ok(job)
    }

    /// What belongs to jobs of many steps, or is judged in those only, would have no effect here.
    fn judge_whole(&self, job: &Job) -> Result<(), OneStepError> {
        let given = [&job.flags, &job.defaults, &job.steps[0]];
        let any = |has: fn(&JobStep) -> bool| given.iter().any(|step| has(step));
        let unused = [
            ("sweep", any(|step| step.sweep.is_some())),
            ("repeat", any(|step| step.repeat.is_some())),
            ("precondition", job.precondition.is_some()),
            ("steady", job.steady.is_some()),
            ("derive", !job.derive.is_empty()),
            ("expect", any(|step| step.keys.contains_key(&Key::Expect))),
            (
                "cool_down",
                any(|step| step.keys.contains_key(&Key::CoolDown)),
            ),
            (
                "steadystate",
                any(|step| step.keys.contains_key(&Key::Steadystate)),
            ),
        ];
        match unused.iter().find(|(_, is_given)| *is_given) {
            None => Ok(()),
            Some((name, _)) => Err(OneStepError::Usage(format!(
                "{name} has no effect on {}: leave it out, or use `lanemark run`",
                self.verb
            ))),
        }
    }

    /// Opens the devices and asks the guard. Before that, and before anything is filled, `judge` has its say on the
    /// devices and the plan.
    ///
    /// # Errors
    /// [`OneStepError`], before any measurement.
    pub fn open(
        &self,
        job: &Job,
        control: Arc<Control>,
        observer: &mut dyn Observer,
        sysfs: &Sysfs,
        judge: impl FnOnce(&[DeviceFacts], &Plan) -> Result<(), OneStepError>,
    ) -> Result<Ready, OneStepError> {
        let mut setup = Setup {
            control: &control,
            observer,
            dry_run: false,
        };
        let mut opened = Opened::open(
            &job.device_names()?,
            job.backend_choice()?,
            sysfs,
            &mut setup,
        )?;
        let facts = opened.facts();
        let plan = plan(job, &facts, run::fresh_seed())?;
        judge(&facts, &plan)?;
        let consent = self.flags.safety.consent()?;
        let permits = permits(&plan, &opened, &consent, sysfs)?;
        let mut notes = opened.notes();
        if self.flags.safety.prepare {
            notes.extend(prepare(
                &plan, &opened, &consent, sysfs, &control, observer,
            )?);
        }
        let doubts = never_written(&plan, &opened, self.flags.safety.strict, &control)?;
        if !permits.is_empty() {
            opened = opened.permit_writes(&permits, sysfs)?;
        }
        Ok(Ready {
            session: session(matches!(opened, Opened::Sim { .. }), sysfs, control)?,
            opened,
            plan,
            doubts: doubts.into_iter().flatten().collect(),
            notes,
        })
    }
}

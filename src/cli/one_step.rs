//! What the verbs share that make their own steps out of a job of one: reading it, opening its devices, asking
//! for consent.

use super::output::Output;
use super::{JobFlags, RunArgs, job_from_flags, run};
use crate::config::{ConfigError, Job, Key, Plan, plan};
use crate::reactor::Control;
use crate::record::{Failure, Warning};
use crate::session::guard::{Consent, UnknownSignature, in_use, parse_overwrite};
use crate::session::{
    Observer, Opened, Session, SessionError, Setup, never_written, permits, tool_cost_ns,
};
use crate::sys::clock::MachineClock;
use crate::sys::cpu::AllowedCpus;
use crate::sysfs::Sysfs;
use std::path::Path;
use std::sync::Arc;

use super::exit::Exit;

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

/// What was asked on the command line.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// The verb.
    pub verb: &'static str,
    /// The job file.
    pub job: Option<&'a Path>,
    /// `-o`.
    pub output: Option<&'a Path>,
    /// Consents.
    pub allow_write: &'a [String],
    /// Consents to overwrite signatures.
    pub overwrite: &'a [String],
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
        let has = |key: &&Key| given.iter().any(|step| step.keys.contains_key(key));
        if let Some(key) = self.own_keys.iter().find(has) {
            return Err(OneStepError::Usage(format!(
                "{} sets {} itself: leave it out",
                self.verb,
                key.name()
            )));
        }
        self.judge_output(&names, output, sysfs)?;
        Ok(job)
    }

    fn judge_output(
        &self,
        names: &[&str],
        output: &Output,
        sysfs: &Sysfs,
    ) -> Result<(), OneStepError> {
        let refuse = |path: &str, why: &str| {
            Err(OneStepError::Usage(format!(
                "the result cannot go into {path}: {why}; name another file with -o"
            )))
        };
        if let Some(name) = names.iter().find(|name| output.is(Path::new(name))) {
            return refuse(name, "it is what is measured");
        }
        if let Some(path) = self.output {
            let shown = path.display().to_string();
            if self.job.is_some_and(|job| output.is(job)) {
                return refuse(&shown, "it is the job file");
            }
            if let Some(used) = in_use(sysfs, path).first().filter(|_| path.is_file()) {
                return refuse(&shown, used);
            }
        }
        Ok(())
    }

    /// Opens the devices and asks the guard.
    ///
    /// # Errors
    /// [`OneStepError`], before any measurement.
    pub fn open(
        &self,
        job: &Job,
        control: Arc<Control>,
        observer: &mut dyn Observer,
        sysfs: &Sysfs,
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
        let plan = plan(job, &opened.facts(), run::fresh_seed())?;
        let mut consent = Consent {
            allow_write: self.allow_write.to_vec(),
            overwrite: Vec::new(),
        };
        for word in self.overwrite {
            consent.overwrite.extend(parse_overwrite(word)?);
        }
        let permits = permits(&plan, &opened, &consent, sysfs)?;
        let doubts = never_written(&plan, &opened, false, &control)?;
        if !permits.is_empty() {
            opened = opened.permit_writes(&permits, sysfs)?;
        }
        let allowed = AllowedCpus::at_start().map_err(SessionError::from)?;
        let clock = MachineClock::new(sysfs);
        let is_sim = matches!(opened, Opened::Sim { .. });
        let cpu = allowed.cpus().last().copied().filter(|_| !is_sim);
        Ok(Ready {
            session: Session {
                sysfs: sysfs.clone(),
                tool_cost_ns: cpu.and_then(|cpu| tool_cost_ns(&clock, cpu)),
                allowed,
                clock,
                control,
            },
            opened,
            plan,
            doubts: doubts.into_iter().flatten().collect(),
        })
    }
}

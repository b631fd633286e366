//! `--claim`: takes the NVMe devices of a run from the kernel for its time, and gives them back however it ends.
//!
//! The run is in a child process ([`standin`]); this one owns the claims. It touches no device, so that it is
//! here to give them back when the child has failed, panicked, been killed or is stuck. Signals are passed on to
//! the child and do not end this process. Only SIGKILL does: then `lanemark release` finds the claims in the state
//! file.

use super::{moved_line, warn_of_names};
use crate::cli::compare::{self, CompareArgs};
use crate::cli::exit::Exit;
use crate::cli::{RunArgs, output, run};
use crate::config::{BackendChoice, Job};
use crate::record::Failure;
use crate::session::claim::{ClaimError, Claimer, Entry, Lease, Moved, State, function_of};
use crate::session::machine::Machine;
use crate::sys::standin;
use crate::sysfs::Sysfs;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag::register_conditional_shutdown;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A child that has reported may take this long to let go of its devices, before it is ended by force.
const END_LIMIT: Duration = Duration::from_secs(10);

/// Why the devices of a run were not claimed.
#[derive(Debug, thiserror::Error)]
enum NotClaimed {
    #[error(transparent)]
    Claim(#[from] ClaimError),
    #[error("--claim is for SPDK: leave it out, or --backend {0}")]
    Backend(&'static str),
}

impl NotClaimed {
    fn failure(&self) -> Failure {
        let (kind, next_step, exit_code) = match self {
            Self::Claim(error) => (error.kind(), error.next_step(), error.exit_code()),
            Self::Backend(_) => ("usage", String::new(), Exit::Usage.code()),
        };
        Failure {
            kind: kind.to_owned(),
            text: self.to_string(),
            next_step,
            exit_code,
        }
    }
}

/// Runs `lanemark run --claim`; the exit code.
pub(in crate::cli) fn run(args: &RunArgs) -> Exit {
    let sysfs = Sysfs::host();
    // Read once: it may be a pipe, perhaps one that nobody writes to. Nothing is claimed yet.
    let is_reading = Arc::new(AtomicBool::new(true));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        let code = i32::from(Exit::Interrupted.code());
        // Without a handler the signal ends the process all the same.
        let _ = register_conditional_shutdown(signal, code, Arc::clone(&is_reading));
    }
    let job = match run::load(args) {
        Ok(job) => job,
        Err(failure) => return run::refuse(None, args.format, &sysfs, failure),
    };
    // From here on a signal waits until the child is there to answer it.
    standin::hold_signals();
    is_reading.store(false, Ordering::SeqCst);
    let claimer = Claimer::new(&sysfs, &output::note);
    let lease = match take(&claimer, &job, &sysfs, args.dry_run) {
        Ok(lease) => lease,
        Err(error) => return run::refuse(None, args.format, &sysfs, error.failure()),
    };
    for line in lease.moved().iter().map(moved_line) {
        output::note(&line);
    }
    let done = standin::run(|| run::run_job(args, Some(job)).code());
    let exit = match done {
        Ok(code) => Exit::of_code(code),
        Err(died) => run::died(args.format, died),
    };
    exit.and(give_back(lease))
}

/// Runs `lanemark compare --claim`; the exit code. The child claims for each window and gives back after it; what is
/// still claimed once it has ended, it died over, and is given back here.
pub(in crate::cli) fn compare(args: &CompareArgs) -> Exit {
    let done = standin::run(|| {
        standin::release_signals();
        compare::run(args).code()
    });
    let exit = match done {
        Ok(code) => Exit::of_code(code),
        Err(died) => run::died(args.result.format, died),
    };
    let has_ended = child_has_ended();
    let sysfs = Sysfs::host();
    let child = standin::worker();
    let is_left = |entry: &Entry| entry.is_of(child);
    if !State::peek(&sysfs).claims.iter().any(is_left) {
        return exit;
    }
    let back = told_back(Claimer::new(&sysfs, &output::note).release_of(child));
    if has_ended {
        return exit.and(back);
    }
    output::complain(&Failure {
        kind: "died".to_owned(),
        text: format!(
            "process {child}, which measures, does not end: what it had claimed was left by it"
        ),
        next_step: "see dmesg for what it waits for, then lanemark release --all".to_owned(),
        exit_code: Exit::Failed.code(),
    });
    exit.and(back).and(Exit::Failed)
}

/// Waits for the child, and ends it by force where that takes too long; whether it is gone.
fn child_has_ended() -> bool {
    standin::ended(END_LIMIT) || {
        standin::end();
        standin::ended(END_LIMIT)
    }
}

/// Claims the devices of the job. What cannot be claimed is said before anything is moved.
fn take<'c>(
    claimer: &'c Claimer<'_>,
    job: &Job,
    sysfs: &Sysfs,
    dry_run: bool,
) -> Result<Lease<'c>, NotClaimed> {
    // What is wrong with the job the run itself says, with nothing claimed.
    let (Ok(names), Ok(choice)) = (job.device_names(), job.backend_choice()) else {
        return Ok(Lease::none(claimer));
    };
    if names.is_empty() {
        return Ok(Lease::none(claimer));
    }
    if !matches!(choice, BackendChoice::Auto | BackendChoice::Spdk) {
        return Err(NotClaimed::Backend(choice.name()));
    }
    let machine = Machine::read(sysfs).map_err(ClaimError::from)?;
    let state = State::peek(sysfs);
    let mut wanted = Vec::new();
    for name in names {
        wanted.push(function_of(&machine, &state, name).map_err(ClaimError::from)?);
    }
    if dry_run {
        claimer.plan(&wanted, true)?;
        return Ok(Lease::none(claimer));
    }
    Ok(claimer.lease(&wanted)?)
}

fn give_back(lease: Lease<'_>) -> Exit {
    if lease.is_empty() {
        return Exit::Ok;
    }
    // It may be stuck in a device that it still has open: that one is refused.
    let _ = child_has_ended();
    told_back(lease.give_back())
}

fn told_back(back: Result<Vec<Moved>, ClaimError>) -> Exit {
    match back {
        Ok(moved) => {
            for line in moved.iter().map(moved_line) {
                output::note(&line);
            }
            warn_of_names(&moved);
            Exit::Ok
        }
        Err(error) => {
            output::complain(&Failure {
                kind: error.kind().to_owned(),
                text: format!("not everything was given back: {error}"),
                next_step: "lanemark release --all".to_owned(),
                exit_code: Exit::Failed.code(),
            });
            Exit::Failed
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn job(text: &str) -> Job {
        Job::from_yaml(text, "job.yaml").unwrap()
    }

    #[test]
    fn a_job_that_spdk_cannot_do_leases_nothing() {
        let root = tempfile::tempdir().unwrap();
        let sysfs = Sysfs::at(root.path());
        let claimer = Claimer::new(&sysfs, &output::note);
        let bad = job("device: 0000:01:00.0\nbackend: nonsense\nsteps: [{ rw: randread }]");
        let lease = take(&claimer, &bad, &sysfs, false).unwrap();
        assert!(lease.is_empty(), "the run itself says what is wrong");
        // On a machine without huge pages too: there is nothing that would need them.
        let nameless = job("steps: [{ rw: randread }]");
        assert!(take(&claimer, &nameless, &sysfs, false).unwrap().is_empty());
        assert_eq!(give_back(lease), Exit::Ok);
        let other = job("device: 0000:01:00.0\nbackend: sg\nsteps: [{ rw: randread }]");
        let refused = take(&claimer, &other, &sysfs, false).unwrap_err();
        assert!(matches!(refused, NotClaimed::Backend("sg")), "{refused}");
        assert_eq!(refused.failure().exit_code, 2);
        assert!(!root.path().join("run").exists(), "no state was made");
    }

    #[test]
    fn a_device_that_stays_claimed_fails_the_run() {
        assert_eq!(told_back(Ok(Vec::new())), Exit::Ok);
        let stays = ClaimError::Unready("it hangs".to_owned());
        assert_eq!(told_back(Err(stays)), Exit::Failed);
        // Also one whose measurement was fine, and not one that was ended.
        assert_eq!(Exit::Ok.and(Exit::Failed), Exit::Failed);
        assert_eq!(Exit::Interrupted.and(Exit::Failed), Exit::Interrupted);
    }
}

//! Measures two sides in turn, round by round, until the intervals are narrow enough or the limit is met.

use super::judge::Rules;
use super::order;
use super::runs::SideRuns;
use super::stopping::{self, Next, Stopping};
use super::table::widest_ratio;
use crate::record::{Failure, Outcome, Step};
use crate::session::SessionError;

/// How long to go on, and how to judge.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Design {
    /// Rounds at most.
    pub rounds_max: u32,
    /// Half-width of the intervals, relative to A, that is narrow enough; absent: all rounds are run.
    pub precision_pct: Option<f64>,
    /// Sides within this of each other count as equal.
    pub equal_within_pct: f64,
    /// Seed of the resampling.
    pub seed: u64,
}

impl Design {
    /// Rounds at least: fewer never end by narrow intervals.
    #[must_use]
    pub fn rounds_least(&self) -> u32 {
        match self.precision_pct {
            Some(_) => stopping::LEAST_COUNT.min(self.rounds_max),
            None => self.rounds_max,
        }
    }

    /// The rules of judgement.
    #[must_use]
    pub const fn rules(&self, ended_early: bool) -> Rules {
        Rules {
            equal_within_pct: self.equal_within_pct,
            ended_early,
            is_paired: true,
            seed: self.seed,
        }
    }
}

/// One window to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// 0 is A, 1 is B.
    pub side: usize,
    /// Place of the step in the job.
    pub step: usize,
    /// Round, from 0.
    pub round: u32,
    /// Place of the window in the whole comparison, from 0: no two windows have the same.
    pub number: u64,
}

/// Why a window was not measured.
#[derive(Debug)]
pub enum Stop {
    /// A signal came.
    Interrupted,
    /// The side could not be opened or run.
    Failed(SessionError),
    /// Its devices could not be claimed for the window, or given back after it.
    Unclaimed(Failure),
}

/// What can be measured: devices, or a model of them in tests.
pub trait Bench {
    /// Names of the steps.
    fn steps(&self) -> Vec<String>;
    /// Labels of the two sides, as errors name them.
    fn label(&self, side: usize) -> String;
    /// Waits for the cool-down, then measures one window.
    ///
    /// # Errors
    /// [`Stop`]
    fn window(&mut self, window: Window) -> Result<Step, Stop>;
}

/// What was measured.
#[derive(Debug)]
pub struct Measured {
    /// Each step with its two sides: finished rounds only.
    pub steps: Vec<(String, Vec<SideRuns>)>,
    /// Rounds that every step has.
    pub rounds_done: u32,
    /// `precision`, `rounds`, `failed`, `interrupted`.
    pub ended_by: &'static str,
    /// How it ended.
    pub status: Outcome,
    /// Why it did not finish.
    pub error: Option<Failure>,
    /// The side that failed.
    pub failed_side: Option<usize>,
}

impl Measured {
    /// Whether the intervals have to be widened: see `stopping`.
    #[must_use]
    pub fn ended_early(&self) -> bool {
        self.ended_by == "precision"
    }
}

/// Runs the rounds. What was finished before a failure or a signal is kept.
pub fn measure(design: &Design, bench: &mut dyn Bench) -> Measured {
    let names = bench.steps();
    let mut measured = Measured {
        steps: names
            .iter()
            .map(|name| (name.clone(), vec![SideRuns::default(); 2]))
            .collect(),
        rounds_done: 0,
        ended_by: "rounds",
        status: Outcome::Finished,
        error: None,
        failed_side: None,
    };
    let precision_ratio = design.precision_pct.map(|pct| pct / 100.0);
    let mut stopping = Stopping::new(design.rounds_max, precision_ratio);
    for round in 0..design.rounds_max {
        for step in 0..names.len() {
            match windows(bench, round, step, names.len()) {
                Ok(windows) => {
                    for (side, windows) in measured.steps[step].1.iter_mut().zip(&windows) {
                        side.add(windows);
                    }
                }
                Err((side, stop)) => {
                    fail(&mut measured, bench, side, stop);
                    return measured;
                }
            }
        }
        measured.rounds_done = round + 1;
        let widest = (stopping.looks_after(round + 1))
            .then(|| widest_ratio(&measured.steps, design.rules(false)));
        match stopping.after(round + 1, widest.flatten()) {
            Next::Round => {}
            Next::Limit => break,
            Next::Narrow => {
                measured.ended_by = "precision";
                break;
            }
        }
    }
    measured
}

/// Why a round of a step is not whole.
enum Broken {
    Stop(Stop),
    /// The window was run and went wrong.
    Step(Box<Step>),
}

/// One round of one step: both sides' windows.
fn windows(
    bench: &mut dyn Bench,
    round: u32,
    step: usize,
    steps_count: usize,
) -> Result<[Vec<Step>; 2], (usize, Broken)> {
    let mut all = [Vec::new(), Vec::new()];
    let base = (u64::from(round) * steps_count as u64 + step as u64) * 4;
    for (place, is_b) in (0_u64..).zip(order(round)) {
        let side = usize::from(is_b);
        let window = Window {
            side,
            step,
            round,
            number: base + place,
        };
        let done = bench
            .window(window)
            .map_err(|stop| (side, Broken::Stop(stop)))?;
        if done.status != Outcome::Finished {
            return Err((side, Broken::Step(Box::new(done))));
        }
        all[side].push(done);
    }
    Ok(all)
}

fn fail(measured: &mut Measured, bench: &dyn Bench, side: usize, broken: Broken) {
    let label = bench.label(side);
    let named = |failure: Failure| Failure {
        text: format!("{label}: {}", failure.text),
        ..failure
    };
    let (status, error) = match broken {
        Broken::Stop(Stop::Interrupted) => (Outcome::Interrupted, None),
        Broken::Stop(Stop::Failed(error)) => (
            Outcome::Failed,
            Some(named(Failure {
                kind: error.kind().to_owned(),
                text: error.to_string(),
                next_step: error.next_step(),
                exit_code: error.exit_code(),
            })),
        ),
        Broken::Stop(Stop::Unclaimed(failure)) => (Outcome::Failed, Some(named(failure))),
        Broken::Step(step) if step.status == Outcome::Interrupted => (Outcome::Interrupted, None),
        Broken::Step(step) => (Outcome::Failed, step.error.map(named)),
    };
    measured.status = status;
    measured.error = error;
    measured.failed_side = (status == Outcome::Failed).then_some(side);
    measured.ended_by = if status == Outcome::Failed {
        "failed"
    } else {
        "interrupted"
    };
}

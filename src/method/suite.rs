//! Runs the steps of a plan in turn: rounds until they are steady, cooling down, what an earlier run has
//! left, and a record of the whole.

use super::derive::{derive, figure_of};
use super::resume::{Keeper, ResumeError};
use super::steady::{fio, pts};
use super::steady_watch::SteadyWatch;
use crate::backend::BackendError;
use crate::config::{Plan, Rounds, StepPlan, plan_json, step_json};
use crate::reactor::{ReactorError, StopCause};
use crate::record::{
    Failure, LeftOut, Origin, Outcome, PointValue, Record, SCHEMA_VERSION, Steady, Step, Warning,
};
use crate::session::{Observer, Opened, Session, SessionError, environment, is_gone, tool};

/// Why nothing, or not all, was run.
#[derive(Debug, thiserror::Error)]
pub enum SuiteError {
    /// A step could not start.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// A finished step could not be kept, or read back.
    #[error(transparent)]
    Resume(#[from] ResumeError),
}

/// What is run, and where it goes.
pub struct Suite<'a> {
    /// The machine.
    pub session: &'a Session,
    /// The devices.
    pub opened: &'a Opened,
    /// The steps.
    pub plan: &'a Plan,
    /// Doubts about each step of the plan, in order.
    pub doubts: &'a [Vec<Warning>],
    /// Whether a step that cannot be set up is left out by name.
    pub is_lenient: bool,
    /// Keeps every finished step.
    pub keeper: &'a mut dyn Keeper,
}

impl std::fmt::Debug for Suite<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Suite")
            .field("plan", &self.plan.name)
            .finish_non_exhaustive()
    }
}

/// How a step left the list of steps.
enum Went {
    On,
    Over,
}

impl Suite<'_> {
    /// Runs everything. What was measured before a failure is kept in the record.
    ///
    /// # Errors
    /// [`SuiteError`] where nothing at all was measured.
    pub fn run(
        mut self,
        observer: &mut dyn Observer,
        failure_of: &dyn Fn(&SuiteError) -> Failure,
    ) -> Result<Record, SuiteError> {
        let mut record = self.empty_record();
        let mut kept_count = 0_usize;
        let done = self.all_rounds(&mut record, &mut kept_count, observer);
        match done {
            Ok(()) => {}
            Err(error) if record.steps.is_empty() => return Err(error),
            Err(error) => {
                record.status = Outcome::Failed;
                record.error = Some(failure_of(&error));
            }
        }
        if record.steps.is_empty() {
            return Err(SessionError::Interrupted.into());
        }
        if kept_count > 0 {
            record.warnings.push(Warning {
                kind: "resumed".to_owned(),
                text: format!(
                    "{kept_count} of {} steps were measured by an earlier run that ended early; figures may differ by what happened between",
                    record.steps.len()
                ),
                next_step: String::new(),
            });
        }
        conclude(&mut record, self.plan);
        Ok(record)
    }

    fn empty_record(&self) -> Record {
        let session = self.session;
        Record {
            schema_version: SCHEMA_VERSION,
            // Known above.
            command: Vec::new(),
            status: Outcome::Finished,
            error: None,
            tool: tool(session.tool_cost_ns),
            environment: environment(&session.sysfs, &session.clock, &session.allowed),
            job: plan_json(self.plan),
            seed: self.plan.seed,
            suite: None,
            about: self.plan.about.clone(),
            steps: Vec::new(),
            left_out: left_out(self.plan),
            derived: Vec::new(),
            steady: None,
            scale: None,
            answer: Vec::new(),
            warnings: self.plan.notes.clone(),
        }
    }

    fn all_rounds(
        &mut self,
        record: &mut Record,
        kept_count: &mut usize,
        observer: &mut dyn Observer,
    ) -> Result<(), SuiteError> {
        let plan = self.plan;
        let most = plan.rounds.as_ref().map_or(1, |rounds| rounds.most_count);
        let is_first = |step: &&StepPlan| step.origin.is_precondition;
        let once_count = plan.steps.iter().filter(is_first).count();
        let steps_count = once_count + (plan.steps.len() - once_count) * most;
        let mut number = 0;
        for round in 0..most {
            for (step, doubts) in plan.steps.iter().zip(self.doubts) {
                if round > 0 && step.origin.is_precondition {
                    continue;
                }
                number += 1;
                let in_round = plan.rounds.is_some() && !step.origin.is_precondition;
                // At most a thousand rounds.
                let round_index = u32::try_from(round).ok().filter(|_| in_round);
                let place = Place {
                    number,
                    steps_count,
                    round_index,
                };
                if self.session.control.cause() >= StopCause::Signal {
                    record.status = Outcome::Interrupted;
                    return Ok(());
                }
                let went = self.one(step, doubts, &place, record, kept_count, observer)?;
                if matches!(went, Went::Over) {
                    return Ok(());
                }
            }
            if let Some(rounds) = &plan.rounds {
                let steady = judged(rounds, &record.steps);
                let is_attained = steady.is_attained;
                record.steady = Some(steady);
                if is_attained {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn one(
        &mut self,
        step: &StepPlan,
        doubts: &[Warning],
        place: &Place,
        record: &mut Record,
        kept_count: &mut usize,
        observer: &mut dyn Observer,
    ) -> Result<Went, SuiteError> {
        let step = &place.step(step);
        if let Some(kept) = self.keeper.kept(place.number, &step.name)? {
            record.steps.push(kept);
            *kept_count += 1;
            return Ok(Went::On);
        }
        let json = step_json(step, &self.plan.devices);
        let numbers = (place.number, place.steps_count);
        let (session, opened) = (self.session, self.opened);
        let done = match step.steady {
            None => session.run_step(opened, step, json, numbers, observer),
            Some(steady) => {
                let mut watch = SteadyWatch::new(steady, &session.control, observer);
                session.run_step(opened, step, json, numbers, &mut watch)
            }
        };
        let mut done = match done {
            Ok(done) => done,
            // Nothing was issued: what is too much for this device or machine is left out by name.
            Err(error) if self.is_lenient && is_too_much(&error) => {
                record.left_out.push(LeftOut {
                    step: step.name.clone(),
                    why: error.to_string(),
                });
                return Ok(Went::On);
            }
            Err(error) => return Err(error.into()),
        };
        done.expect = super::expect::judge(&done, &step.expect);
        done.origin = origin(step, place.round_index);
        done.steady = step
            .steady
            .map(|steady| fio(&step.name, &done.series, &steady));
        done.warnings.extend_from_slice(doubts);
        record.status = worse(record.status, &done);
        if done.status != Outcome::Interrupted {
            self.keeper.keep(place.number, &done)?;
        }
        let over = done.status == Outcome::Interrupted || is_final(&done);
        record.steps.push(done);
        if over {
            return Ok(Went::Over);
        }
        if place.number < place.steps_count {
            session.idle(opened, step, numbers, observer);
        }
        Ok(Went::On)
    }
}

/// The place of a step in the whole.
struct Place {
    number: usize,
    steps_count: usize,
    round_index: Option<u32>,
}

impl Place {
    fn step(&self, step: &StepPlan) -> StepPlan {
        match self.round_index {
            Some(round_index) => step.in_round(round_index),
            None => step.clone(),
        }
    }
}

fn origin(step: &StepPlan, round_index: Option<u32>) -> Origin {
    let from = &step.origin;
    let point = from.point.iter().map(|(key, value)| PointValue {
        key: key.clone(),
        value: value.clone(),
    });
    Origin {
        step: from.step.clone(),
        point: point.collect(),
        pass_index: from.pass_index,
        round_index,
        is_precondition: from.is_precondition,
        dropped: from.dropped.clone(),
    }
}

fn left_out(plan: &Plan) -> Vec<LeftOut> {
    let left = plan.left_out.iter().map(|left| LeftOut {
        step: left.step.clone(),
        why: left.why.clone(),
    });
    left.collect()
}

/// Every tracked step's figure in every round so far, judged.
fn judged(rounds: &Rounds, steps: &[Step]) -> Steady {
    let cells: Vec<(String, Vec<Option<f64>>)> = rounds
        .track
        .iter()
        .map(|name| {
            let own = steps.iter().filter(|step| {
                let round = step.origin.round_index.map(|index| u64::from(index) + 1);
                round.is_some_and(|round| step.name == format!("{name}, round {round}"))
            });
            (
                name.clone(),
                own.map(|step| figure_of(step, rounds.of)).collect(),
            )
        })
        .collect();
    pts(&cells, rounds)
}

/// Adds what only the whole shows: derived figures, and a word where a steady state was not attained.
pub fn conclude(record: &mut Record, plan: &Plan) {
    let first_round = record.steady.as_ref().map(|steady| {
        let first = steady.samples_count.saturating_sub(steady.window_count);
        u32::try_from(first).unwrap_or(u32::MAX)
    });
    let in_window = |step: &&Step| match (first_round, step.origin.round_index) {
        (Some(first), Some(round)) => round >= first,
        _ => true,
    };
    let steps: Vec<&Step> = record.steps.iter().filter(in_window).collect();
    record.derived = derive(&plan.derive, &steps, &record.left_out);
    let rounds = record.steady.iter();
    let seconds = record.steps.iter().filter_map(|step| step.steady.as_ref());
    let missed: Vec<&Steady> = rounds
        .chain(seconds)
        .filter(|steady| !steady.is_attained)
        .collect();
    if let Some(first) = missed.first() {
        let cells: Vec<&str> = missed
            .iter()
            .flat_map(|steady| &steady.cells)
            .filter(|cell| !cell.is_steady)
            .map(|cell| cell.step.as_str())
            .collect();
        record.warnings.push(Warning {
            kind: "steady-state-not-attained".to_owned(),
            text: format!(
                "steady state ({}) was not attained in {} samples: {}",
                first.definition,
                first.samples_count,
                cells.join(", ")
            ),
            next_step: "precondition the device, or run longer; these figures are not settled"
                .to_owned(),
        });
    }
}

/// A queue or its buffers could not be made; a device that cannot even be opened is another matter.
const fn is_too_much(error: &SessionError) -> bool {
    match error {
        SessionError::Reactor(ReactorError::Queue(why @ BackendError::Setup { .. })) => {
            !is_gone(why)
        }
        _ => false,
    }
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

//! Which steps are run on these devices, and why the others are not.

use super::error::ConfigError;
use super::fit::add_note;
use super::intent::{JobIntent, StepIntent};
use super::plan::{Choices, LeftOut, StepPlan};
use super::planner::plan_step;
use super::rounds::Rounds;
use super::target::Target;
use crate::record::Warning;

/// The steps that are run, those that are not, and doubts.
#[derive(Debug, Default)]
pub(super) struct Chosen {
    pub(super) steps: Vec<StepPlan>,
    pub(super) left_out: Vec<LeftOut>,
    pub(super) notes: Vec<Warning>,
}

/// Plans what can be run and was not chosen away.
///
/// # Errors
/// What a device cannot do where that is not left out; [`ConfigError::NoStep`] where nothing is left.
pub(super) fn choose(
    intent: &JobIntent,
    targets: &[Target<'_>],
    seed: u64,
    choices: &Choices,
) -> Result<Chosen, ConfigError> {
    known(intent, choices)?;
    let mut chosen = Chosen::default();
    let mut first_error = None;
    for (index, step) in (0_u32..).zip(&intent.steps) {
        if !is_wanted(step, choices) || !is_needed(step, &mut chosen) {
            continue;
        }
        // With a seed of its own a step does not depend on its place: two steps can repeat each other.
        let seed = step.seed.map_or((seed, index), |own| (own, 0));
        let mut notes = Vec::new();
        match plan_step(step, targets, seed, &mut notes) {
            Ok(plan) => match barred(&plan, choices) {
                Some(why) => leave_out(&mut chosen, step, why),
                None => {
                    chosen.steps.push(with_dropped(plan, &notes));
                    notes
                        .into_iter()
                        .for_each(|note| add_note(&mut chosen.notes, note));
                }
            },
            Err(error @ ConfigError::Unfit { .. }) if may_leave_out(step, choices) => {
                let ConfigError::Unfit { why, .. } = &error else {
                    return Err(error);
                };
                leave_out(&mut chosen, step, why.clone());
                first_error.get_or_insert(error);
            }
            Err(error) => return Err(error),
        }
    }
    if chosen.steps.iter().all(|step| step.origin.is_precondition) {
        return Err(first_error.unwrap_or_else(|| nothing_left(&chosen)));
    }
    Ok(chosen)
}

fn may_leave_out(step: &StepIntent, choices: &Choices) -> bool {
    let may = choices.lenient || !step.origin.point.is_empty();
    may && !step.origin.is_precondition
}

/// Every name of `--only` is a step.
fn known(intent: &JobIntent, choices: &Choices) -> Result<(), ConfigError> {
    let is_step = |name: &&String| {
        intent
            .steps
            .iter()
            .any(|step| step.name == **name || step.origin.step == **name)
    };
    let Some(unknown) = choices.only.iter().find(|name| !is_step(name)) else {
        return Ok(());
    };
    let mut names: Vec<&str> = Vec::new();
    for step in &intent.steps {
        if names.last() != Some(&step.origin.step.as_str()) {
            names.push(&step.origin.step);
        }
    }
    Err(ConfigError::NoStep {
        what: format!(
            "--only: there is no step `{unknown}`; steps: {}",
            names.join(", ")
        ),
    })
}

fn is_wanted(step: &StepIntent, choices: &Choices) -> bool {
    let names = [
        Some(&step.name),
        Some(&step.origin.step),
        step.instead_of.as_ref(),
    ];
    let is_named = |wanted: &String| names.into_iter().flatten().any(|name| name == wanted);
    choices.only.is_empty() || step.origin.is_precondition || choices.only.iter().any(is_named)
}

/// A step that stands in for another is run where that one was left out, and says so.
fn is_needed(step: &StepIntent, chosen: &mut Chosen) -> bool {
    let Some(other) = &step.instead_of else {
        return true;
    };
    let is_run = chosen.steps.iter().any(|step| step.origin.step == *other);
    let Some(left_out) = chosen.left_out.iter().find(|left| left.written == *other) else {
        return false;
    };
    if !is_run {
        let note = Warning {
            kind: "scaled".to_owned(),
            text: format!(
                "{} is run instead of {other}, which was left out: {}",
                step.name, left_out.why
            ),
            next_step: format!("do not compare it with a device that can run {other}"),
        };
        add_note(&mut chosen.notes, note);
    }
    !is_run
}

/// Why a step that the device could do is not run all the same.
fn barred(plan: &StepPlan, choices: &Choices) -> Option<String> {
    if choices.read_only && plan.writes() {
        return Some("it writes, and --read-only was given".to_owned());
    }
    let count = choices
        .cpus_count
        .filter(|_| choices.lenient || !plan.origin.point.is_empty())?;
    let wanted = plan.reactors_count as usize;
    (wanted > count)
        .then(|| format!("{wanted} reactors need {wanted} CPUs, and {count} may be used"))
}

fn leave_out(chosen: &mut Chosen, step: &StepIntent, why: String) {
    chosen.left_out.push(LeftOut {
        step: step.name.clone(),
        written: step.origin.step.clone(),
        why,
    });
}

/// Notes with the step which shares of its mix the device cannot do.
fn with_dropped(mut plan: StepPlan, notes: &[Warning]) -> StepPlan {
    let dropped = notes
        .iter()
        .filter(|note| note.kind == "bssplit-share-dropped");
    plan.origin.dropped = dropped.map(|note| note.text.clone()).collect();
    plan
}

fn nothing_left(chosen: &Chosen) -> ConfigError {
    let why = chosen.left_out.first().map_or_else(
        || "the job has only steps that stand in for others".to_owned(),
        |left| format!("{}: {}", left.step, left.why),
    );
    ConfigError::NoStep {
        what: format!("no step is left to run: {why}"),
    }
}

/// What is tracked, as far as it is run.
pub(super) fn tracked(rounds: Option<&Rounds>, chosen: &mut Chosen) -> Option<Rounds> {
    let mut rounds = rounds?.clone();
    let steps = &chosen.steps;
    let is_run = |name: &String| steps.iter().any(|step| step.name == *name);
    let missing: Vec<String> = rounds
        .track
        .iter()
        .filter(|name| !is_run(name))
        .cloned()
        .collect();
    if missing.is_empty() {
        return Some(rounds);
    }
    rounds.track.retain(|name| is_run(name));
    let is_judged = !rounds.track.is_empty();
    let what = if is_judged {
        "by the others"
    } else {
        "not at all"
    };
    chosen.notes.push(Warning {
        kind: "steady-not-tracked".to_owned(),
        text: format!(
            "steady state is judged {what}: not run: {}",
            missing.join(", ")
        ),
        next_step: "do not compare it with a run that tracks all of them".to_owned(),
    });
    is_judged.then_some(rounds)
}

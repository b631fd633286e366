//! Saved records as the sides of a comparison: what may be held against each other, and what may not.

use super::build::{Frame, build};
use super::comparable::differences;
use super::judge::{CONFIDENCE_PCT, Rules};
use super::metric::directions;
use super::runs::SideRuns;
use crate::measure::{CheckInput, self_checks};
use crate::record::{Comparison, ComparisonDesign, Confounder, Outcome, Record, Step, Warning};

/// The records of one side: one, or several runs of the same.
#[derive(Debug, Clone)]
pub struct SavedSide {
    /// As the user named it.
    pub name: String,
    /// The records.
    pub records: Vec<Record>,
}

/// How saved records are judged.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SavedRules {
    /// Sides within this of each other count as equal.
    pub equal_within_pct: f64,
    /// Differences that are accepted, by name; `all` accepts every one.
    pub accepted: Vec<String>,
    /// Seed of the resampling.
    pub seed: u64,
}

/// Why records are not compared.
#[derive(Debug, thiserror::Error)]
pub enum SavedError {
    /// Nothing in them can be held against each other.
    #[error("{0} and {1} have no step in common: steps are matched by their names")]
    NoCommonStep(String, String),
    /// They measured different things.
    #[error("the records are not comparable, they differ in {list}")]
    NotComparable {
        /// What differs, with the values.
        list: String,
        /// The names alone.
        names: Vec<String>,
    },
    /// `--accept` of something that is no difference here.
    #[error("--accept {name}: that does not differ; what keeps the records apart is {list}")]
    NothingToAccept {
        /// As given.
        name: String,
        /// What does differ.
        list: String,
    },
}

impl SavedError {
    /// What the user can do next.
    #[must_use]
    pub fn next_step(&self) -> String {
        match self {
            Self::NotComparable { names, .. } => {
                let accepts: Vec<String> = names
                    .iter()
                    .map(|name| format!("--accept '{name}'"))
                    .collect();
                format!("if that is what you mean to compare: {}", accepts.join(" "))
            }
            _ => String::new(),
        }
    }
}

/// Holds saved records against the first of them.
///
/// # Errors
/// [`SavedError`] where they cannot be compared, with the list of what differs.
pub fn compare(
    frame: Frame,
    sides: &[SavedSide],
    saved: &SavedRules,
) -> Result<Comparison, SavedError> {
    let (names, only) = common_steps(sides)?;
    let mut frame = frame;
    frame.warnings.extend(only);
    frame.warnings.extend(sides.iter().flat_map(foreign_checks));
    let differing = differences(sides, &names);
    refuse(&differing, saved)?;
    let steps: Vec<(String, Vec<SideRuns>)> = names
        .iter()
        .map(|name| {
            (
                name.clone(),
                sides.iter().map(|side| runs_of(side, name)).collect(),
            )
        })
        .collect();
    let runs_count = sides
        .iter()
        .map(|side| side.records.len())
        .min()
        .unwrap_or(0);
    let runs_count = u32::try_from(runs_count).unwrap_or(u32::MAX);
    let design = ComparisonDesign {
        mode: "saved".to_owned(),
        order: String::new(),
        rounds_asked_count: runs_count,
        rounds_done_count: runs_count,
        precision_pct: None,
        equal_within_pct: saved.equal_within_pct,
        confidence_pct: CONFIDENCE_PCT,
        cool_down_s: 0.0,
        ended_by: "saved".to_owned(),
        method: method(runs_count),
    };
    let rules = Rules {
        equal_within_pct: saved.equal_within_pct,
        ended_early: false,
        is_paired: false,
        seed: saved.seed,
    };
    let mut comparison = build(frame, design, rules, &steps, (Outcome::Finished, None));
    for difference in differing {
        let known = comparison
            .confounders
            .iter_mut()
            .find(|known| known.name == difference.name);
        match known {
            Some(known) => known.forbids |= difference.forbids,
            None => comparison.confounders.push(difference),
        }
    }
    Ok(comparison)
}

fn method(runs_count: u32) -> String {
    if runs_count < 3 {
        "one or two records a side: no interval, since nothing tells how runs vary; name three records a side, or compare live".to_owned()
    } else {
        "smoothed symmetric bootstrap-t over records, not paired; drift between the runs is in it"
            .to_owned()
    }
}

/// Steps that every record has, in the order of the first, and a warning for each that some lack.
fn common_steps(sides: &[SavedSide]) -> Result<(Vec<String>, Vec<Warning>), SavedError> {
    let mut records = sides
        .iter()
        .flat_map(|side| side.records.iter().map(move |record| (side, record)));
    let Some((first_side, first)) = records.next() else {
        return Ok((Vec::new(), Vec::new()));
    };
    let mut names: Vec<String> = first.steps.iter().map(|step| step.name.clone()).collect();
    let mut warnings = Vec::new();
    for (side, record) in records {
        let has = |name: &String| record.steps.iter().any(|step| step.name == *name);
        let (both, lost): (Vec<String>, Vec<String>) = names.into_iter().partition(has);
        if both.is_empty() {
            return Err(SavedError::NoCommonStep(
                first_side.name.clone(),
                side.name.clone(),
            ));
        }
        let new = record
            .steps
            .iter()
            .filter(|step| !both.contains(&step.name))
            .map(|step| &step.name);
        for name in lost.iter().chain(new) {
            let text = format!("step `{name}` is not in every record and was left out");
            if !warnings
                .iter()
                .any(|warning: &Warning| warning.text == text)
            {
                warnings.push(Warning {
                    kind: "step-missing".to_owned(),
                    text,
                    next_step: "compare records of one job".to_owned(),
                });
            }
        }
        names = both;
    }
    Ok((names, warnings))
}

/// The step of this name in every record of a side.
pub(super) fn steps_of<'a>(side: &'a SavedSide, name: &'a str) -> impl Iterator<Item = &'a Step> {
    let steps = side.records.iter().flat_map(|record| &record.steps);
    steps.filter(move |step| step.name == name)
}

fn runs_of(side: &SavedSide, name: &str) -> SideRuns {
    let mut runs = SideRuns::default();
    for step in steps_of(side, name) {
        runs.add(std::slice::from_ref(step));
    }
    runs
}

fn refuse(differing: &[Confounder], saved: &SavedRules) -> Result<(), SavedError> {
    let forbidding: Vec<&Confounder> = differing
        .iter()
        .filter(|difference| difference.forbids)
        .collect();
    let list = |differences: &[&Confounder]| {
        let shown: Vec<String> = differences
            .iter()
            .map(|difference| shown(difference))
            .collect();
        shown.join("; ")
    };
    for name in saved.accepted.iter().filter(|name| *name != "all") {
        if !forbidding.iter().any(|difference| difference.name == *name) {
            return Err(SavedError::NothingToAccept {
                name: name.clone(),
                list: if forbidding.is_empty() {
                    "nothing".to_owned()
                } else {
                    list(&forbidding)
                },
            });
        }
    }
    let left: Vec<&Confounder> = forbidding
        .into_iter()
        .filter(|difference| {
            !saved
                .accepted
                .iter()
                .any(|name| name == "all" || *name == difference.name)
        })
        .collect();
    if left.is_empty() {
        return Ok(());
    }
    Err(SavedError::NotComparable {
        list: list(&left),
        names: left
            .iter()
            .map(|difference| difference.name.clone())
            .collect(),
    })
}

/// `block size (4096 B against 8192 B)`.
fn shown(difference: &Confounder) -> String {
    let values: Vec<&str> = difference
        .values
        .iter()
        .map(|value| value.as_deref().unwrap_or("nothing"))
        .collect();
    format!("{} ({})", difference.name, values.join(" against "))
}

/// Do the figures of a record agree with themselves? Records come from elsewhere too: what was published may
/// not close.
fn foreign_checks(side: &SavedSide) -> Vec<Warning> {
    let mut warnings = Vec::new();
    for record in &side.records {
        for step in &record.steps {
            for mut warning in contradictions(step) {
                warning.text = format!("{}, step `{}`: {}", side.name, step.name, warning.text);
                warnings.push(warning);
            }
        }
    }
    warnings
}

/// Where the figures of a step as it was saved contradict each other.
#[must_use]
pub fn contradictions(step: &Step) -> Vec<Warning> {
    let mut found = self_checks(&check_input(step));
    for warning in &mut found {
        // Where lanemark itself did not doubt it, it is no fault of lanemark's.
        "do not trust these figures, or ask whoever measured them"
            .clone_into(&mut warning.next_step);
    }
    found
}

/// What the checks look at, as far as a record holds it.
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss
)]
fn check_input(step: &Step) -> CheckInput {
    let all: Vec<_> = directions(step).map(|(_, direction)| direction).collect();
    let rates = directions(step).flat_map(|(name, direction)| {
        let (iops, bytes) = (direction.iops, direction.bytes_per_s);
        [
            (format!("{name} IOPS"), iops, direction.ios_count),
            (format!("{name} bytes"), bytes, direction.bytes_count),
        ]
    });
    let ios_count: u64 = all.iter().map(|direction| direction.ios_count).sum();
    let sum_ns: f64 = all
        .iter()
        .map(|direction| direction.latency_ns.mean * direction.ios_count as f64)
        .sum();
    // The latencies of failures are in no record: without them the law cannot close.
    let is_whole = step.failed_count == 0 && step.abandoned_count == 0 && ios_count > 0;
    CheckInput {
        ios_count,
        mean_ns: is_whole.then(|| sum_ns / ios_count as f64),
        max_ns: all
            .iter()
            .map(|direction| direction.latency_ns.max)
            .max()
            .unwrap_or(0),
        window_ns: (step.window_s * 1e9) as u64,
        in_flight_mean: step.depth.in_flight_mean,
        depth_count: step.depth.asked_count,
        latencies: all
            .iter()
            .map(|direction| direction.latency_ns.clone())
            .collect(),
        rates: rates.collect(),
        mix: step.mix.clone(),
        mix_ios_count: step.submitted_count,
        streams_count: step.streams.len() as u64,
        ..CheckInput::default()
    }
}

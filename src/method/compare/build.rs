//! From what was measured to the record of a comparison.

use super::aggregate::aggregates;
use super::conclude::conclusions;
use super::confound::confounders;
use super::judge::{CONFIDENCE_PCT, Rules};
use super::live::{Design, Measured};
use super::runs::SideRuns;
use super::saturation::saturations;
use super::table::{compared_step, indices};
use super::ways::Facts;
use super::{ORDER, stopping};
use crate::record::{
    COMPARISON_KIND, ComparedSide, Comparison, ComparisonDesign, Confounder, Environment, Failure,
    Outcome, SCHEMA_VERSION, Step, Tool, Warning,
};

/// What a comparison is made of besides what was measured.
#[derive(Debug)]
pub struct Frame {
    /// The program.
    pub tool: Tool,
    /// The machine.
    pub environment: Environment,
    /// The resolved job of the first side.
    pub job: serde_json::Value,
    /// The seed.
    pub seed: u64,
    /// Names of the sides, the baseline first.
    pub names: Vec<String>,
    /// What is known of the controllers of each side; empty for saved records.
    pub ways: Vec<Facts>,
    /// Doubts so far.
    pub warnings: Vec<Warning>,
}

/// Labels of sides: A, B, … Z, then numbers.
#[must_use]
pub fn label(index: usize) -> String {
    u8::try_from(index)
        .ok()
        .filter(|index| *index < 26)
        .map_or_else(
            || format!("side {}", index + 1),
            |index| char::from(b'A' + index).to_string(),
        )
}

/// A live comparison.
#[must_use]
pub fn live(frame: Frame, design: &Design, cool_down_s: f64, measured: Measured) -> Comparison {
    let rules = design.rules(measured.ended_early());
    let design = ComparisonDesign {
        mode: "live".to_owned(),
        order: ORDER.to_owned(),
        rounds_asked_count: design.rounds_max,
        rounds_done_count: measured.rounds_done,
        precision_pct: design.precision_pct,
        equal_within_pct: design.equal_within_pct,
        confidence_pct: CONFIDENCE_PCT,
        cool_down_s,
        ended_by: measured.ended_by.to_owned(),
        method: method(measured.ended_early()),
    };
    let outcome = (measured.status, measured.error);
    build(frame, design, rules, &measured.steps, outcome)
}

fn method(ended_early: bool) -> String {
    let mut text =
        "smoothed symmetric bootstrap-t over rounds, paired; every interval holds by itself"
            .to_owned();
    if ended_early {
        text += &format!(
            "; {:.0} % wider, since narrow intervals ended the rounds",
            (stopping::WIDENED - 1.0) * 100.0
        );
    }
    text
}

/// Everything that follows from the runs.
pub(super) fn build(
    frame: Frame,
    design: ComparisonDesign,
    rules: Rules,
    steps: &[(String, Vec<SideRuns>)],
    (status, error): (Outcome, Option<Failure>),
) -> Comparison {
    // A step that a failure has left without a finished round has no place in the figures.
    let done: Vec<(String, Vec<SideRuns>)> = steps
        .iter()
        .filter(|(_, sides)| sides.iter().all(|side| side.rounds_count() > 0))
        .cloned()
        .collect();
    let firsts: Vec<&Step> = done
        .first()
        .map(|(_, sides)| {
            sides
                .iter()
                .filter_map(|side| side.first.as_ref())
                .collect()
        })
        .unwrap_or_default();
    let sides = (0..frame.names.len()).map(|index| ComparedSide {
        label: label(index),
        name: frame.names[index].clone(),
        runs_count: done.iter().map(|(_, sides)| sides[index].runs_count).sum(),
    });
    let mut comparison = Comparison {
        schema_version: SCHEMA_VERSION,
        kind: COMPARISON_KIND.to_owned(),
        status,
        error,
        tool: frame.tool,
        environment: frame.environment,
        job: frame.job,
        seed: frame.seed,
        design,
        sides: sides.collect(),
        confounders: all_confounders(&firsts, &frame.ways),
        steps: done
            .iter()
            .filter_map(|(name, sides)| compared_step(name, sides, rules))
            .collect(),
        indices: indices(&done, rules),
        saturations: saturations(&done),
        aggregates: aggregates(&done, rules),
        misses: Vec::new(),
        conclusions: Vec::new(),
        warnings: frame.warnings,
    };
    comparison.conclusions = conclusions(&comparison);
    comparison
}

fn all_confounders(firsts: &[&Step], ways: &[Facts]) -> Vec<Confounder> {
    if firsts.len() < 2 {
        return Vec::new();
    }
    confounders(firsts, ways)
}

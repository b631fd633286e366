//! `lanemark suite`: which suites there are, and where their texts come from.

use super::exit::Exit;
use super::listing::{LIST_SCHEMA_VERSION, ListFormat, table, text_of};
use super::{RunArgs, output};
use crate::backend::{Device, DeviceFacts, DeviceKind, NullDevice};
use crate::config::{Choices, ConfigError, Job, Loader, Plan, StepPlan, plan_chosen};
use crate::method::suites::{FILES, find, names};
use crate::record::Failure;
use crate::units::Bytes;
use serde_json::json;
use std::path::Path;

/// The job of a file, or of a suite where one is run by its name.
///
/// # Errors
/// [`ConfigError`] of the file.
pub(super) fn load(args: &RunArgs, path: &Path) -> Result<Job, ConfigError> {
    let name = path.to_string_lossy();
    let known = args.suite.as_ref().and_then(|_| find(&name));
    let loader = Loader {
        embedded: if known.is_some() { &FILES } else { &[] },
        sets: &args.set,
        ..Loader::default()
    };
    match known {
        Some((path, text)) => loader.from_text(text, path),
        None if args.suite.is_some() && !path.exists() => Err(ConfigError::NoStep {
            what: unknown(&name),
        }),
        None => loader.load(path),
    }
}

fn unknown(name: &str) -> String {
    let all: Vec<&str> = names().collect();
    format!(
        "there is no suite `{name}`, and no file of this path; suites: {}",
        all.join(", ")
    )
}

/// A device of a usual size, to tell what a suite takes before any is named.
fn usual_device() -> DeviceFacts {
    let device = NullDevice::new("a usual device", Bytes(1_000_204_886_016));
    DeviceFacts {
        kind: DeviceKind::Block,
        ..device.facts().clone()
    }
}

fn planned(name: &str) -> Option<Plan> {
    let (path, text) = find(name)?;
    let loader = Loader {
        embedded: &FILES,
        ..Loader::default()
    };
    let job = loader.from_text(text, path).ok()?;
    let choices = Choices {
        lenient: true,
        ..Choices::default()
    };
    plan_chosen(&job, &[usual_device()], 1, &choices).ok()
}

/// The list of suites, on stdout.
pub(super) fn list(format: ListFormat) -> Exit {
    let plans: Vec<(&str, Plan)> = names()
        .filter_map(|name| Some((name, planned(name)?)))
        .collect();
    let text = match format {
        ListFormat::Json => {
            let suites: Vec<_> = plans
                .iter()
                .map(|(name, plan)| suite_json(name, plan))
                .collect();
            let document = json!({ "schema_version": LIST_SCHEMA_VERSION, "suites": suites });
            format!("{document:#}\n")
        }
        ListFormat::Text => {
            let mut rows = table(&["SUITE", "STEPS", "TIME", "WRITES", "WHAT IT MEASURES"]);
            for (name, plan) in &plans {
                let writes = if writes(plan) { "yes" } else { "no" };
                let about = plan.about.as_deref().unwrap_or_default();
                let steps = plan.steps.len().to_string();
                rows.add_row([name, steps.as_str(), &plan.estimate.times(), writes, about]);
            }
            let note = "Times are for a SATA SSD of 1 TB; `suite run NAME --dry-run --device D` tells them for yours, `--quick` is a first look.\n";
            text_of(&rows) + note
        }
    };
    super::handed_over(output::to_stdout(&text))
}

fn writes(plan: &Plan) -> bool {
    plan.steps.iter().any(StepPlan::writes)
}

fn suite_json(name: &str, plan: &Plan) -> serde_json::Value {
    json!({
        "name": name,
        "about": plan.about,
        "steps_count": plan.steps.len(),
        "least_s": plan.estimate.least_s,
        "most_s": plan.estimate.most_s,
        "is_writing": writes(plan),
    })
}

/// A suite as it is written, on stdout.
pub(super) fn show(name: &str) -> Exit {
    let Some((_, text)) = find(name) else {
        output::complain(&Failure {
            kind: "usage".to_owned(),
            text: unknown(name),
            next_step: "`lanemark suite list` tells what they measure".to_owned(),
            exit_code: Exit::Usage.code(),
        });
        return Exit::Usage;
    };
    super::handed_over(output::to_stdout(text))
}

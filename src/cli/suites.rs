//! `lanemark suite`: which suites there are, and where their texts come from.

use super::exit::Exit;
use super::listing::{LIST_SCHEMA_VERSION, ListFormat, table, text_of};
use super::{RunArgs, output};
use crate::backend::{Device, DeviceFacts, DeviceKind, NullDevice};
use crate::config::{
    Choices, ConfigError, Job, Key, Loader, PAST_THE_DEVICE, Plan, StepPlan, plan_chosen,
};
use crate::method::suites::{FILES, find, names};
use crate::record::{Failure, Record, Warning};
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

/// A mistake found in a suite of ours: it stands in no file of the user's, and flags mend it.
pub(super) fn told(args: &RunArgs, mut failure: Failure) -> Failure {
    let Some(name) = args.suite.as_deref() else {
        return failure;
    };
    let Some((path, _)) = find(name) else {
        return failure;
    };
    let ours = format!("the built-in suite {name} (`lanemark suite show {name}`), line ");
    failure.text = failure.text.replace(&format!("{path}:"), &ours);
    if failure.text.contains(PAST_THE_DEVICE) && failure.next_step.is_empty() {
        "name a region that fits, such as --size 50%: then it is no longer the published method"
            .clone_into(&mut failure.next_step);
    }
    failure
}

/// Keys that change where and how exactly a suite is measured, not what.
const OF_PLACE: [Key; 7] = [
    Key::Cpus,
    Key::Reactors,
    Key::Randseed,
    Key::Stamp,
    Key::Grace,
    Key::MaxErrors,
    Key::Expect,
];

/// What flags made of a suite of ours; `None` where it is the published method.
fn changes(args: &RunArgs, job: &Job) -> Option<String> {
    find(args.suite.as_deref()?)?;
    let flags = &job.flags;
    let keys = flags.keys.iter().filter(|(key, _)| !OF_PLACE.contains(key));
    let mut changes: Vec<String> = keys
        .map(|(key, word)| format!("{}={}", key.name(), word.text))
        .collect();
    changes.extend(
        args.keys
            .streams
            .iter()
            .map(|count| format!("streams={count}")),
    );
    changes.extend(args.keys.sweep.iter().map(|sweep| format!("sweep {sweep}")));
    changes.extend(
        args.keys
            .repeat
            .iter()
            .map(|count| format!("repeat={count}")),
    );
    changes.extend(args.set.iter().cloned());
    (!changes.is_empty()).then(|| changes.join(", "))
}

/// Says in the record of a suite of ours what flags made of it: its heading and its figures are then not those of the
/// published method.
pub(super) fn note_changes(args: &RunArgs, job: &Job, record: &mut Record) {
    let Some(changes) = changes(args, job) else {
        return;
    };
    if let Some(about) = &mut record.about {
        *about += &format!(" (changed here: {changes})");
    }
    let name = args.suite.as_deref().unwrap_or_default();
    record.warnings.push(Warning {
        kind: "suite-changed".to_owned(),
        text: format!(
            "{name} was changed by flags ({changes}): its figures are not those of the published method"
        ),
        next_step: "leave these flags out to compare with figures of the unchanged suite".to_owned(),
    });
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

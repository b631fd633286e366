//! The page: what stands where. Texts come in as they are in the record; the template escapes them.

use super::super::{figures as show, printable};
use super::compare::{self, ComparisonView};
use super::conditions::{self, ConditionsView};
use super::curves;
use super::derived::{self, DerivedView};
use super::path::{self, PathView};
use super::steady::{self, SteadyView};
use super::step::{self, StepView};
use super::table::{self, Table};
use super::verdict::{self, VerdictView};
use crate::record::{Comparison, Environment, Record, Tool};
use askama::Template;

#[derive(Template)]
#[template(path = "page.html", config = "src/report/html/askama.toml")]
struct Page {
    title: String,
    subtitle: String,
    style: &'static str,
    verdicts: Vec<VerdictView>,
    answers: Vec<(String, Vec<String>)>,
    comparisons: Vec<ComparisonView>,
    curves: Vec<String>,
    runs: Vec<RunView>,
}

/// Steps that are shown one by one, so that the page of a long run stays one that opens.
const STEPS_MOST: usize = 100;

/// One record.
struct RunView {
    number: usize,
    name: String,
    error: Option<String>,
    paths: Vec<PathView>,
    ceilings: Option<Table>,
    about: String,
    steady: Vec<SteadyView>,
    derived: DerivedView,
    table: Table,
    warnings: Vec<WarningView>,
    steps: Vec<StepView>,
    steps_note: String,
    environment: Vec<(String, String)>,
    conditions: ConditionsView,
    command: String,
    job: String,
}

struct WarningView {
    text: String,
    next_step: String,
}

pub fn render(records: &[Record], comparisons: &[Comparison]) -> String {
    let page = Page {
        title: title(records, comparisons),
        subtitle: subtitle(records),
        style: include_str!("style.css"),
        verdicts: records
            .iter()
            .enumerate()
            .flat_map(|(number, record)| verdict::views(number, records.len(), record))
            .collect(),
        answers: answers(records),
        comparisons: comparisons.iter().map(compare::view).collect(),
        curves: curves::charts(records),
        runs: records.iter().enumerate().map(run).collect(),
    };
    page.render()
        .expect("the template writes to memory: nothing can fail")
}

/// The job's own name, or the verb that made its own steps.
fn name(record: &Record) -> String {
    let job = &record.job;
    let of_plan = job.get("plan").and_then(|plan| plan.get("name"));
    let own = job.get("name").or(of_plan).and_then(|name| name.as_str());
    let verb = match () {
        () if record.scale.is_some() => "scale",
        () if job.get("peak").is_some() => "peak",
        () if job.get("load").is_some() => "load",
        () => return printable(own.unwrap_or("run")),
    };
    // A job of flags alone is named after the usual verb.
    let own = own.filter(|own| *own != "run");
    printable(&own.map_or_else(|| verb.to_owned(), |own| format!("{verb}, {own}")))
}

fn title(records: &[Record], comparisons: &[Comparison]) -> String {
    match records {
        [] => format!(
            "lanemark: {}",
            if comparisons.len() == 1 {
                "a comparison"
            } else {
                "comparisons"
            }
        ),
        [one] => format!("lanemark: {}", name(one)),
        many => format!("lanemark: {} records", many.len()),
    }
}

/// What each verb found, by name where there are several records.
fn answers(records: &[Record]) -> Vec<(String, Vec<String>)> {
    let heading = |number: usize, record: &Record| match records.len() {
        1 => "Answer".to_owned(),
        _ => format!("Answer of record {}, {}", number + 1, name(record)),
    };
    let found = records.iter().enumerate();
    let found = found.filter(|(_, record)| !record.answer.is_empty());
    let lines = |record: &Record| record.answer.iter().map(|line| printable(line)).collect();
    found
        .map(|(number, record)| (heading(number, record), lines(record)))
        .collect()
}

fn subtitle(records: &[Record]) -> String {
    let mut devices: Vec<String> = Vec::new();
    for device in records
        .iter()
        .flat_map(|record| &record.steps)
        .flat_map(|step| &step.devices)
    {
        let mut text = device.path.clone();
        if let Some(model) = device
            .model
            .as_deref()
            .filter(|model| !model.trim().is_empty())
        {
            text += &format!(" ({})", model.trim());
        }
        let text = format!(
            "{}, {}",
            printable(&text),
            show::capacity(device.capacity_bytes)
        );
        if !devices.contains(&text) {
            devices.push(text);
        }
    }
    devices.join(" · ")
}

fn run((number, record): (usize, &Record)) -> RunView {
    let error = record.error.as_ref().map(|error| {
        let mut text = error.text.clone();
        if !error.next_step.is_empty() {
            text += &format!(" ({})", error.next_step);
        }
        printable(&text)
    });
    let steps = record.steps.iter().map(|step| (Some(step), &step.warnings));
    let all = steps.chain([(None, &record.warnings)]);
    let warnings = all
        .flat_map(|(step, warnings)| warnings.iter().map(move |warning| (step, warning)))
        .map(|(step, warning)| WarningView {
            text: match step {
                Some(step) => printable(&format!("{}: {}", step.name, warning.text)),
                None => printable(&warning.text),
            },
            next_step: printable(&warning.next_step),
        })
        .collect();
    let shown_from = record.steps.len().saturating_sub(STEPS_MOST);
    let steps_note = match shown_from {
        0 => String::new(),
        _ => format!(
            "The last {STEPS_MOST} of {} steps; the table above has a row for each.",
            record.steps.len()
        ),
    };
    RunView {
        number: number + 1,
        name: name(record),
        error,
        paths: path::views(record),
        ceilings: path::ceilings(record),
        about: about(record),
        steady: steady::views(record),
        derived: derived::view(record),
        table: table::every_figure(record),
        warnings,
        steps: record.steps[shown_from..].iter().map(step::view).collect(),
        steps_note,
        environment: environment(&record.tool, &record.environment, record.seed),
        conditions: conditions::view(record),
        command: command(&record.command),
        job: serde_json::to_string_pretty(&record.job).unwrap_or_default(),
    }
}

/// What was run, in a line.
fn about(record: &Record) -> String {
    let mut parts: Vec<String> = record.about.iter().cloned().collect();
    if let Some(suite) = &record.suite {
        let quick = if suite.is_quick {
            ", quick: a first look with short windows"
        } else {
            ""
        };
        parts.insert(0, format!("Suite {}{quick}", suite.name));
    }
    printable(&parts.join(". "))
}

/// The words as a shell takes them.
fn command(words: &[String]) -> String {
    let quoted = words.iter().map(|word| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c);
        if !word.is_empty() && word.chars().all(is_plain) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', "'\\''"))
        }
    });
    printable(&quoted.collect::<Vec<_>>().join(" "))
}

fn environment(tool: &Tool, machine: &Environment, seed: u64) -> Vec<(String, String)> {
    let mut rows = vec![(
        "lanemark".to_owned(),
        format!("{} ({})", tool.version, tool.git_commit),
    )];
    let mut push = |name: &str, value: Option<String>| {
        let value = value.unwrap_or_else(|| show::NOT_AVAILABLE.to_owned());
        rows.push((name.to_owned(), printable(&value)));
    };
    push("SPDK", tool.spdk_version.clone());
    push("own cost per I/O", tool.cost_ns_per_io.map(show::time));
    push("kernel", Some(machine.kernel.clone()));
    push("processor", Some(machine.cpu.clone()));
    push("CPUs allowed", Some(machine.cpus_allowed.clone()));
    push("governor", machine.governor.clone());
    push("clock", Some(machine.clock.clone()));
    push("kernel's clocksource", machine.clocksource.clone());
    let smt = machine
        .smt
        .map(|on| if on { "on" } else { "off" }.to_owned());
    push("SMT", smt);
    push("seed", Some(seed.to_string()));
    push("began", Some(show::date(machine.started_unix_s)));
    rows
}

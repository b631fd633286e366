//! The terminal report: what was measured, how far it can be trusted, and what to do next.

mod comparison;
mod conditions;
mod details;
mod figures;
pub mod lanes;
mod layout;
pub mod path;
pub mod verb;
mod whole;

pub use comparison::render as render_comparison;

pub use path::criterion_text;
pub use whole::{quantity, step_title};

use super::{Style, printable};
use crate::record::{Failure, Outcome, Record, Step};
use layout::{Page, Tone};

/// The whole report. A run that did not finish says so first.
pub fn render(record: &Record, style: &Style) -> String {
    let mut page = Page::new(*style);
    state(&mut page, record.status, record.error.as_ref());
    if let Some(about) = &record.about {
        page.paragraph(&printable(about), Tone::Heading);
        page.gap();
    }
    if record.steps.len() > whole::PAGES_MOST_COUNT {
        whole::table_of_steps(&mut page, record);
    } else {
        pages(&mut page, record);
    }
    let rows = whole::rows(record);
    if !rows.is_empty() {
        page.gap();
        page.rows(&rows);
    }
    if !record.warnings.is_empty() {
        page.gap();
        page.rows(&details::warnings(&record.warnings));
    }
    page.gap();
    page.paragraph(&provenance(record), Tone::Quiet);
    page.finish()
}

/// A page for each step.
fn pages(page: &mut Page, record: &Record) {
    for (index, step) in record.steps.iter().enumerate() {
        page.gap();
        step_heading(page, record, index);
        if step.error.is_some() && step.error != record.error {
            step_error(page, step);
        }
        page.paragraph(&printable(&step.summary), Tone::Plain);
        page.rows(&details::setting(step));
        page.gap();
        figures::render(page, step);
        page.gap();
        page.rows(&details::trust(step));
        page.rows(&conditions::rows(step));
        details::streams(page, step);
        page.rows(&details::findings(step));
    }
}

/// How it ended, first thing, where it did not finish.
fn state(page: &mut Page, status: Outcome, error: Option<&Failure>) {
    if status == Outcome::Finished {
        return;
    }
    let what = error.map(|error| error.text.as_str());
    page.paragraph(&headline(status, what), Tone::Bad);
    if let Some(error) = error {
        next_step(page, error);
    }
    page.gap();
}

fn headline(status: Outcome, what: Option<&str>) -> String {
    let word = match status {
        Outcome::Finished => "FINISHED",
        Outcome::Interrupted => "INTERRUPTED",
        Outcome::Failed => "FAILED",
        Outcome::Refused => "REFUSED",
    };
    match what {
        Some(what) => format!("{word}: {}", printable(what)),
        None => word.to_owned(),
    }
}

fn next_step(page: &mut Page, error: &Failure) {
    if !error.next_step.is_empty() {
        page.paragraph(
            &format!("-> {}", printable(&error.next_step)),
            Tone::Caution,
        );
    }
}

fn provenance(record: &Record) -> String {
    let (tool, machine) = (&record.tool, &record.environment);
    let mut text = format!("lanemark {} ({})", tool.version, tool.git_commit);
    if let Some(spdk) = &tool.spdk_version {
        text += &format!(", SPDK {spdk}");
    }
    if let Some(cost) = tool.cost_ns_per_io {
        text += &format!(", own cost {} per I/O", super::figures::time(cost));
    }
    for (name, value) in [("kernel", &machine.kernel), ("", &machine.cpu)] {
        if !value.is_empty() {
            text += &format!(", {name} {value}").replace(",  ", ", ");
        }
    }
    text += &format!(", seed {}", record.seed);
    printable(&text)
}

fn step_heading(page: &mut Page, record: &Record, index: usize) {
    let step = &record.steps[index];
    let mut text = printable(&step.name);
    if record.steps.len() > 1 {
        text = format!("{}/{} {text}", index + 1, record.steps.len());
    }
    if step.status == Outcome::Finished {
        page.paragraph(&text, Tone::Heading);
    } else {
        page.paragraph(
            &format!("{text}: {}", headline(step.status, None)),
            Tone::Bad,
        );
    }
}

fn step_error(page: &mut Page, step: &Step) {
    if let Some(error) = &step.error {
        page.paragraph(&printable(&error.text), Tone::Bad);
        next_step(page, error);
    }
}

//! `lanemark check`: is this machine ready to measure, and what would make it readier.

use super::listing::{LIST_SCHEMA_VERSION, ListFormat, table, text_of};
use crate::session::preflight::{Check, State, preflight};
use crate::sysfs::Sysfs;

/// The list of checks, ready to print, with a newline at its end.
#[must_use]
pub fn check(sysfs: &Sysfs, format: ListFormat) -> String {
    let checks = preflight(sysfs);
    match format {
        ListFormat::Json => json(&checks),
        ListFormat::Text => text(&checks),
    }
}

fn json(checks: &[Check]) -> String {
    let document = serde_json::json!({
        "schema_version": LIST_SCHEMA_VERSION,
        "checks": checks,
    });
    format!("{document:#}\n")
}

fn text(checks: &[Check]) -> String {
    let mut rows = table(&["CHECK", "STATE", "FOUND", "REMEDY"]);
    for check in checks {
        rows.add_row([check.name, check.state.name(), &check.found, &check.remedy]);
    }
    let count = |state| checks.iter().filter(|check| check.state == state).count();
    let summary = format!(
        "{} ok, {} to look at, {} missing, {} unknown\n",
        count(State::Ok),
        count(State::Warn),
        count(State::Missing),
        count(State::Unknown)
    );
    text_of(&rows) + &summary
}

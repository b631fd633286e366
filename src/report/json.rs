//! The record as JSON: what the other exporters' figures are taken from, in full.

use serde::Serialize;

/// The record, indented, and a line break. Strict JSON (RFC 8259): a figure that is not finite has no
/// place there and is written as `null`, like every other figure that does not exist.
pub fn render(record: &impl Serialize) -> String {
    let mut text = serde_json::to_string_pretty(record)
        .expect("records have string keys and write to memory: nothing can fail");
    text.push('\n');
    text
}

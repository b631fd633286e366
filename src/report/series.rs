//! The seconds of every step as JSON Lines: one object a line, with its step.

use crate::record::Record;
use serde_json::{Value, json};

/// Every second of every step, in order.
#[must_use]
pub fn series_lines(record: &Record) -> String {
    let mut out = String::new();
    for (index, step) in record.steps.iter().enumerate() {
        for second in &step.series {
            let mut line = json!({ "step": step.name, "step_index": index });
            if let (Value::Object(line), Ok(Value::Object(fields))) =
                (&mut line, serde_json::to_value(second))
            {
                line.extend(fields);
            }
            out.push_str(&line.to_string());
            out.push('\n');
        }
    }
    out
}

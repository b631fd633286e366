//! The JSON Schema of what is written as JSON, generated from the types.

use super::{Comparison, LanesReport, Record};
use schemars::JsonSchema;
use serde_json::Value;

/// The schema of a record. What a type does not name may not stand there.
#[must_use]
pub fn schema() -> Value {
    schema_of::<Record>(
        "A record of lanemark",
        "The result of one run. A figure without a sample is null, never 0; every name ends in its unit.",
    )
}

/// The schema of a comparison.
#[must_use]
pub fn comparison_schema() -> Value {
    schema_of::<Comparison>(
        "A comparison of lanemark",
        "The result of `lanemark compare`. A figure without a sample is null, never 0.",
    )
}

/// The schema of a report on lanes.
#[must_use]
pub fn lanes_schema() -> Value {
    schema_of::<LanesReport>(
        "A report on lanes of lanemark",
        "The result of `lanemark lanes`: paths with their ceilings, and what was measured against them.",
    )
}

/// The schema of a type that is written whole.
#[must_use]
pub fn schema_of<T: JsonSchema>(title: &str, description: &str) -> Value {
    let mut schema = schemars::schema_for!(T).to_value();
    close(&mut schema);
    schema["title"] = Value::from(title);
    schema["description"] = Value::from(description);
    schema
}

/// Objects with named properties have no others, and all of them: a record is written whole.
fn close(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            if let Some(Value::Object(properties)) = object.get("properties") {
                let names: Vec<Value> = properties.keys().cloned().map(Value::from).collect();
                object.insert("additionalProperties".to_owned(), Value::from(false));
                object.insert("required".to_owned(), Value::from(names));
            }
            object.values_mut().for_each(close);
        }
        Value::Array(list) => list.iter_mut().for_each(close),
        _ => {}
    }
}

//! The JSON Schema of records, generated from the types.

use super::Record;
use serde_json::Value;

/// The schema of a record. What a type does not name may not stand there.
#[must_use]
pub fn schema() -> Value {
    let mut schema = schemars::schema_for!(Record).to_value();
    close(&mut schema);
    schema["title"] = Value::from("A record of lanemark");
    schema["description"] = Value::from(
        "The result of one run. A figure without a sample is null, never 0; every name ends in its unit.",
    );
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

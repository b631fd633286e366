//! A validator for the part of JSON Schema (draft 2020-12) that the published schema uses. A keyword that
//! it does not know is a finding, so that nothing passes unseen.

use serde_json::Value;

/// Says something about a value, and nothing about which values are allowed.
const SILENT: [&str; 9] = [
    "$schema",
    "$defs",
    "title",
    "description",
    "default",
    "format",
    "examples",
    "deprecated",
    "$comment",
];

/// Everything in `value` that `schema` does not allow, with its place.
pub fn findings(schema: &Value, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    check(schema, schema, value, "", &mut found);
    found
}

fn check(root: &Value, schema: &Value, value: &Value, at: &str, found: &mut Vec<String>) {
    let rules = match schema {
        Value::Bool(true) => return,
        Value::Object(rules) => rules,
        other => return found.push(format!("{at}: the schema {other} allows nothing")),
    };
    for (keyword, rule) in rules {
        match keyword.as_str() {
            "$ref" => {
                let pointer = rule.as_str().unwrap_or_default().trim_start_matches('#');
                match root.pointer(pointer) {
                    Some(target) => check(root, target, value, at, found),
                    None => found.push(format!("{at}: no {rule}")),
                }
            }
            "anyOf" | "oneOf" => one_of(root, rule, keyword == "oneOf", value, at, found),
            "allOf" => {
                for part in rule.as_array().into_iter().flatten() {
                    check(root, part, value, at, found);
                }
            }
            "type" if !is_type(rule, value) => found.push(format!("{at}: {value} is not {rule}")),
            "const" if rule != value => found.push(format!("{at}: {value} is not {rule}")),
            "enum" if !rule.as_array().is_some_and(|all| all.contains(value)) => {
                found.push(format!("{at}: {value} is none of {rule}"));
            }
            "minimum" if value.is_number() && value.as_f64() < rule.as_f64() => {
                found.push(format!("{at}: {value} < {rule}"))
            }
            "maximum" if value.is_number() && value.as_f64() > rule.as_f64() => {
                found.push(format!("{at}: {value} > {rule}"));
            }
            "minItems"
                if value
                    .as_array()
                    .is_some_and(|list| (list.len() as u64) < rule.as_u64().unwrap_or(0)) =>
            {
                found.push(format!("{at}: fewer than {rule}"));
            }
            "maxItems"
                if value
                    .as_array()
                    .is_some_and(|list| list.len() as u64 > rule.as_u64().unwrap_or(0)) =>
            {
                found.push(format!("{at}: more than {rule}"));
            }
            "type" | "const" | "enum" | "minimum" | "maximum" | "minItems" | "maxItems" => {}
            "prefixItems" | "items" => items(root, rules, keyword, value, at, found),
            "properties" | "required" | "additionalProperties" => {
                object(root, rules, keyword, value, at, found);
            }
            other if SILENT.contains(&other) => {}
            other => found.push(format!("{at}: the keyword {other} is not known here")),
        }
    }
}

fn one_of(
    root: &Value,
    rule: &Value,
    exactly: bool,
    value: &Value,
    at: &str,
    found: &mut Vec<String>,
) {
    let parts = rule.as_array().cloned().unwrap_or_default();
    let all: Vec<Vec<String>> = parts
        .iter()
        .map(|part| {
            let mut inner = Vec::new();
            check(root, part, value, at, &mut inner);
            inner
        })
        .collect();
    let fitting_count = all.iter().filter(|inner| inner.is_empty()).count();
    if fitting_count == 0 {
        // What comes nearest says most.
        found.extend(
            all.into_iter()
                .max_by_key(|inner| inner.iter().map(String::len).sum::<usize>())
                .unwrap_or_default(),
        );
    } else if exactly && fitting_count > 1 {
        found.push(format!("{at}: fits {fitting_count} of a choice"));
    }
}

fn is_type(rule: &Value, value: &Value) -> bool {
    let is = |name: &str| match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    };
    match rule {
        Value::String(name) => is(name),
        Value::Array(names) => names.iter().filter_map(Value::as_str).any(is),
        _ => false,
    }
}

type Rules = serde_json::Map<String, Value>;

fn items(
    root: &Value,
    rules: &Rules,
    keyword: &str,
    value: &Value,
    at: &str,
    found: &mut Vec<String>,
) {
    let Some(list) = value.as_array() else {
        return;
    };
    let first = rules
        .get("prefixItems")
        .and_then(Value::as_array)
        .map_or(0, Vec::len);
    for (index, item) in list.iter().enumerate() {
        let rule = match keyword {
            "prefixItems" => rules["prefixItems"].get(index),
            _ if index >= first => rules.get("items"),
            _ => None,
        };
        if let Some(rule) = rule {
            check(root, rule, item, &format!("{at}/{index}"), found);
        }
    }
}

fn object(
    root: &Value,
    rules: &Rules,
    keyword: &str,
    value: &Value,
    at: &str,
    found: &mut Vec<String>,
) {
    let Some(fields) = value.as_object() else {
        return;
    };
    let known = rules.get("properties").and_then(Value::as_object);
    match keyword {
        "required" => {
            let names = rules["required"].as_array().into_iter().flatten();
            let missing = names
                .filter_map(Value::as_str)
                .filter(|name| !fields.contains_key(*name));
            found.extend(missing.map(|name| format!("{at}: {name} is missing")));
        }
        "properties" => {
            for (name, rule) in known.into_iter().flatten() {
                if let Some(field) = fields.get(name) {
                    check(root, rule, field, &format!("{at}/{name}"), found);
                }
            }
        }
        _ => {
            let others = fields
                .iter()
                .filter(|(name, _)| known.is_none_or(|known| !known.contains_key(*name)));
            for (name, field) in others {
                check(
                    root,
                    &rules["additionalProperties"],
                    field,
                    &format!("{at}/{name}"),
                    found,
                );
            }
        }
    }
}

#[test]
fn what_the_published_schema_does_not_allow_is_found() {
    let schema = lanemark::record::schema();
    let text = include_str!("../fixtures/records/normal_read.json");
    let record: lanemark::record::Record = serde_json::from_str(text).unwrap();
    let good = serde_json::to_value(&record).unwrap();
    assert_eq!(findings(&schema, &good), Vec::<String>::new());
    let spoiled = |change: &dyn Fn(&mut Value)| {
        let mut value = good.clone();
        change(&mut value);
        findings(&schema, &value).join("\n")
    };
    assert!(spoiled(&|v| v["seed"] = Value::from("x")).contains("/seed"));
    assert!(spoiled(&|v| v["seed"] = Value::from(-1)).contains("/seed"));
    assert!(spoiled(&|v| v["status"] = Value::from("done")).contains("done"));
    assert!(spoiled(&|v| v["bogus"] = Value::from(1)).contains("/bogus"));
    assert!(
        spoiled(&|v| {
            v.as_object_mut().unwrap().remove("tool");
        })
        .contains("tool is missing")
    );
    let in_read = spoiled(&|v| v["steps"][0]["read"]["iops"] = Value::Null);
    // What may also be absent is found at its own place: neither alternative fits.
    assert!(in_read.contains("/steps/0/read"), "{in_read}");
    let pair = spoiled(&|v| v["steps"][0]["read"]["histogram"][0] = serde_json::json!([1]));
    assert!(pair.contains("/steps/0/read"), "{pair}");
}

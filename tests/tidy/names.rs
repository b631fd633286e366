//! Names in the record end in their unit.

use crate::source::{Finding, Source, block_at};

/// The units of names, and what else says by itself what a number counts.
const UNITS: [&str; 17] = [
    "ns",
    "us",
    "s",
    "bytes",
    "blocks",
    "iops",
    "bytes_per_s",
    "gbit_per_s",
    "ratio",
    "pct",
    "count",
    "celsius",
    // Fixed by the record's published layout.
    "ns_per_io",
    "hz",
    "lba",
    "index",
    "version",
];

/// Numbers without a unit, and statistics whose unit the object's own name carries (`latency_ns.p50`).
/// Every entry must be needed.
pub const UNITLESS: &[(&str, &[&str])] = &[
    (
        "Latency",
        &[
            "min", "mean", "stddev", "p50", "p90", "p99", "p99_9", "p99_99", "max",
        ],
    ),
    ("Failure", &["exit_code"]),
    ("Record", &["seed"]),
    // The unit is a field beside them.
    ("DerivedValue", &["value"]),
    ("SteadyCell", &["values", "mean", "line_first", "line_last"]),
    ("Depth", &["in_flight_mean"]),
    ("ReactorUse", &["cpu"]),
    ("CpuConditions", &["cpu"]),
    ("SlowIo", &["cpu", "stream"]),
    // The unit is a field beside them.
    ("Criterion", &["limit", "measured"]),
    ("Comparison", &["seed"]),
    // Their unit depends on the metric, and is a field beside them.
    ("ComparedMetric", &["rounds", "means"]),
    ("Estimate", &["value", "low", "high"]),
];

fn is_unitless(owner: &str, name: &str) -> bool {
    (UNITLESS.iter()).any(|(known, names)| *known == owner && names.contains(&name))
}

const NUMBERS: [&str; 14] = [
    "u8", "u16", "u32", "u64", "u128", "usize", "i8", "i16", "i32", "i64", "i128", "isize", "f32",
    "f64",
];

/// A number, or an optional one, or a list of them.
fn is_number(kind: &str) -> bool {
    let inner = ["Option<", "Vec<"]
        .iter()
        .find_map(|outer| kind.strip_prefix(outer)?.strip_suffix('>'));
    inner.map_or_else(|| NUMBERS.contains(&kind), is_number)
}

fn has_unit(name: &str) -> bool {
    let name = name.to_lowercase();
    UNITS.iter().any(|unit| {
        name.strip_suffix(unit)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('_'))
    })
}

/// Public fields and constants of number types in `src/record`: where, of what, name.
fn numbers(source: &Source) -> Vec<(usize, String, String)> {
    let mut all = Vec::new();
    for at in source.words("struct") {
        let head = &source.code[at + "struct".len()..];
        let Some(open) = head
            .find(['{', ';', '('])
            .filter(|&at| head[at..].starts_with('{'))
        else {
            continue;
        };
        let owner = head[..open].trim();
        let body = block_at(&source.code, at + "struct".len() + open);
        let inside = |&field: &usize| body.contains(&field);
        for field in source.words("pub").filter(inside) {
            if let Some((name, kind)) = declaration(&source.code[field + "pub".len()..]) {
                all.push((field, owner.to_owned(), name, kind));
            }
        }
    }
    for at in source.words("const") {
        let (name, kind) = declaration(&source.code[at + "const".len()..]).unwrap_or_default();
        all.push((at, "const".to_owned(), name, kind));
    }
    all.retain(|(_, _, _, kind)| is_number(kind));
    (all.into_iter()
        .map(|(at, owner, name, _)| (at, owner, name)))
    .collect()
}

/// `name: type`, up to the end of the field or the value of the constant.
fn declaration(text: &str) -> Option<(String, String)> {
    let (name, rest) = text.split_once(':')?;
    let kind = &rest[..rest.find([',', '=', '}', ';'])?];
    Some((name.trim().to_owned(), kind.trim().to_owned()))
}

/// Entries of [`UNITLESS`] that nothing in the tree needs any more.
pub fn needless(tree: &[Source]) -> Vec<String> {
    let used: Vec<(String, String)> = tree
        .iter()
        .filter(|source| source.path.starts_with("src/record/"))
        .flat_map(|source| {
            numbers(source)
                .into_iter()
                .map(|(_, owner, name)| (owner, name))
        })
        .collect();
    let pairs = UNITLESS.iter().flat_map(|(owner, names)| {
        names
            .iter()
            .map(move |name| (owner.to_string(), name.to_string()))
    });
    pairs
        .filter(|pair| !used.contains(pair))
        .map(|(owner, name)| format!("tests/tidy/names.rs: `{name}` of {owner} is not there"))
        .collect()
}

pub fn check(source: &Source) -> Vec<Finding> {
    if !source.path.starts_with("src/record/") {
        return Vec::new();
    }
    numbers(source)
        .into_iter()
        .filter(|(_, owner, name)| !has_unit(name) && !is_unitless(owner, name))
        .map(|(at, owner, name)| {
            let what = format!("units: `{name}` of {owner} ends in no unit");
            source.finding(at, what)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        let findings = check(&Source::new("src/record/x.rs", text));
        findings.into_iter().map(|finding| finding.what).collect()
    }

    #[test]
    fn numbers_without_a_unit_are_found() {
        let text = "pub struct A<T> { /// Doc.\n pub elapsed: f64, pub size: Option<u64>, pub all: Vec<u32>, }\nconst LIMIT: usize = 3;";
        let found = names(text);
        assert_eq!(found.len(), 4, "{found:?}");
        assert!(found[0].contains("`elapsed`"));
    }

    #[test]
    fn units_and_other_types_are_not() {
        let text = "pub struct A { pub window_s: f64, pub iops: f64, pub max_ns: Option<u64>, pub name: String, pub step: Step }\npub struct B; pub struct C(u64);\npub const SCHEMA_VERSION: u32 = 1; pub const NAME: &str = \"\"; const fn f(x: u64) {}";
        assert_eq!(names(text), Vec::<String>::new());
        assert!(check(&Source::new("src/cli/x.rs", "pub struct A { pub x: u64 }")).is_empty());
    }
}

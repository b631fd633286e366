//! The floors: a file uses floors below its own and its own folder, never a sibling on the same floor.

use crate::source::{Finding, Source, block_at};

/// The modules of the crate, by floor.
const FLOORS: [&[&str]; 9] = [
    &["units", "errno"],
    &["request", "clock", "proto", "sysfs", "record"],
    &["sys", "spdk"],
    &["backend", "workload", "measure", "ceiling"],
    &["reactor", "config"],
    &["session"],
    &["report", "method"],
    &["cli"],
    &["main"],
];

fn floor(module: &str) -> Option<usize> {
    FLOORS.iter().position(|modules| modules.contains(&module))
}

/// The top module of a file of the crate; `None` outside, and for `lib.rs`, which only lists the modules.
fn top_module(path: &str) -> Option<&str> {
    let inside = path.strip_prefix("src/")?;
    let top = inside.split('/').next()?.trim_end_matches(".rs");
    (top != "lib").then_some(top)
}

/// Every use of another top module.
pub fn check(source: &Source) -> Vec<Finding> {
    let Some(own) = top_module(&source.path) else {
        return Vec::new();
    };
    let Some(own_floor) = floor(own) else {
        let what = format!("floors: module `{own}` is on no floor: add it to tests/tidy/floors.rs");
        return vec![source.finding(0, what)];
    };
    let mut findings = Vec::new();
    for (at, used) in uses(source) {
        let what = match floor(&used) {
            _ if used == own => continue,
            Some(floor) if floor < own_floor => continue,
            Some(floor) if floor == own_floor => {
                format!("floors: `{own}` uses its sibling `{used}` on floor {floor}")
            }
            Some(floor) => {
                format!("floors: `{own}` on floor {own_floor} uses `{used}` on floor {floor}")
            }
            None => format!("floors: `{own}` uses `{used}`, which is on no floor"),
        };
        findings.push(source.finding(at, what));
    }
    findings
}

/// How many uses of other modules the rule has looked at: a rule that sees none would always pass.
pub fn uses_count(tree: &[Source]) -> usize {
    let inside = tree.iter().filter(|source| source.path.starts_with("src/"));
    inside.map(|source| uses(source).len()).sum()
}

/// The modules named behind `crate::`, `lanemark::` and chains of `super::` that reach the root.
fn uses(source: &Source) -> Vec<(usize, String)> {
    let mut all = Vec::new();
    for root in ["crate", "lanemark"] {
        for at in source.words(root) {
            if let Some(rest) = source.code[at + root.len()..].strip_prefix("::") {
                all.extend(heads(rest).into_iter().map(|head| (at, head)));
            }
        }
    }
    for at in source.words("super") {
        if source.code[..at].ends_with("super::") {
            continue;
        }
        let mut rest = &source.code[at..];
        let mut steps = 0;
        while let Some(next) = rest.strip_prefix("super::") {
            rest = next;
            steps += 1;
        }
        if steps > 0 && steps == depth(source, at) {
            all.extend(heads(rest).into_iter().map(|head| (at, head)));
        }
    }
    all
}

/// How many modules lie between the root and this place.
fn depth(source: &Source, at: usize) -> usize {
    let parts = source.path.trim_start_matches("src/").split('/').count();
    let by_file = if source.path.ends_with("/mod.rs") {
        parts - 1
    } else {
        parts
    };
    let inline = source.words("mod").filter(|&start| {
        let rest = &source.code[start..];
        let open = rest
            .find(['{', ';'])
            .filter(|&open| rest[open..].starts_with('{'));
        open.is_some_and(|open| block_at(&source.code, start + open).contains(&at))
    });
    by_file + inline.count()
}

/// The first names of a path or of each path of a group: `a::b` gives a; `{a::{b, c}, d}` gives a and d.
fn heads(path: &str) -> Vec<String> {
    let name = |text: &str| -> String {
        let text = text.trim_start();
        text.chars()
            .take_while(|c| c.is_alphanumeric() || *c == '_')
            .collect()
    };
    let Some(group) = path.strip_prefix('{') else {
        return vec![name(path)];
    };
    let mut heads = vec![name(group)];
    let mut nesting = 0;
    for (at, c) in group.char_indices() {
        match c {
            '{' => nesting += 1,
            '}' if nesting == 0 => break,
            '}' => nesting -= 1,
            ',' if nesting == 0 => heads.push(name(&group[at + 1..])),
            _ => {}
        }
    }
    heads.retain(|head| !head.is_empty());
    heads
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, text: &str) -> usize {
        check(&Source::new(path, text)).len()
    }

    #[test]
    fn lower_floors_and_the_own_folder_may_be_used() {
        let text = "use crate::units::Bytes; use crate::{errno, request::{Io, Op}}; use crate::workload::x; use super::spec;";
        assert_eq!(findings("src/workload/x.rs", text), 0);
        assert_eq!(findings("src/main.rs", "use lanemark::cli;"), 0);
        assert_eq!(findings("src/lib.rs", "pub mod cli; use crate::cli;"), 0);
        assert_eq!(findings("tests/x.rs", "use lanemark::cli;"), 0);
    }

    #[test]
    fn siblings_and_higher_floors_may_not() {
        for text in [
            "use crate::measure::Tally;",
            "use crate::{units, backend::Queue};",
            "use crate::{units::{A, B}, session};",
            "fn f(x: crate::cli::Args) {}",
            "use super::super::measure::Tally;",
            "mod inner { use super::super::super::measure::Tally; }",
            "use crate::unheard_of::X;",
        ] {
            assert_eq!(findings("src/workload/x.rs", text), 1, "{text}");
        }
        assert_eq!(findings("src/workload/mod.rs", "use super::measure;"), 1);
        assert_eq!(findings("src/clock.rs", "use super::record;"), 1);
        assert_eq!(findings("src/units/mod.rs", "use crate::errno;"), 1);
        assert_eq!(findings("src/novel/mod.rs", ""), 1);
    }

    #[test]
    fn words_in_comments_and_own_parents_do_not_count() {
        let text = "//! [`crate::cli`]\nmod tests { use super::*; use super::super::spec; }";
        assert_eq!(findings("src/workload/x.rs", text), 0);
    }
}

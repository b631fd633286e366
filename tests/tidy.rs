//! Style is a test: floors, fences, lengths, headers and units of the whole tree, all findings at once.
#![allow(clippy::unwrap_used)]

#[path = "tidy/floors.rs"]
mod floors;
#[path = "tidy/names.rs"]
mod names;
#[path = "tidy/rules.rs"]
mod rules;
#[path = "tidy/source.rs"]
mod source;

use source::{Finding, Source};
use std::path::{Path, PathBuf};

/// Every rule; each has a test beside it that shows it failing.
const RULES: [fn(&Source) -> Vec<Finding>; 9] = [
    floors::check,
    names::check,
    rules::unsafe_fences,
    rules::safety_comments,
    rules::rooted_paths,
    rules::file_length,
    rules::function_length,
    rules::file_header,
    rules::stubs,
];

fn rust_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// The project's own files, by their paths from the root.
fn tree() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = vec![root.join("build.rs")];
    for folder in ["src", "tests", "spdk-sys/src"] {
        rust_files(&root.join(folder), &mut files);
    }
    files.extend(Some(root.join("spdk-sys/build.rs")).filter(|path| path.exists()));
    files.sort();
    files
        .iter()
        .map(|path| {
            let name = path.strip_prefix(root).unwrap().to_str().unwrap();
            Source::new(name, &std::fs::read_to_string(path).unwrap())
        })
        .collect()
}

#[test]
fn the_tree_is_tidy() {
    let tree = tree();
    assert!(tree.len() > 50, "the tree was found");
    assert!(floors::uses_count(&tree) > 100, "its modules were read");
    let mut findings: Vec<Finding> = tree
        .iter()
        .flat_map(|source| RULES.iter().flat_map(|rule| rule(source)))
        .collect();
    findings.sort();
    let mut lines: Vec<String> = findings
        .iter()
        .map(|finding| format!("{}:{}: {}", finding.path, finding.line, finding.what))
        .collect();
    lines.extend(names::needless(&tree));
    lines.extend(rules::needless(&tree));
    assert!(
        lines.is_empty(),
        "{} findings:\n{}",
        lines.len(),
        lines.join("\n")
    );
}

#[test]
fn allowances_that_nothing_needs_are_found() {
    let empty = [Source::new("src/record/mod.rs", "")];
    assert!(!names::needless(&empty).is_empty());
}

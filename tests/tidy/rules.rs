//! The rules for a single file, apart from the floors.

use crate::source::{Finding, Literal, Source, block_at};

const FILE_LINES_MAX: usize = 500;
const MAIN_LINES_MAX: usize = 40;
const FUNCTION_LINES_MAX: usize = 80;

/// Where `unsafe` may stand: the two fences, SPDK's facts, and a test's counting allocator.
fn may_be_unsafe(path: &str) -> bool {
    let fenced = ["src/sys/", "src/spdk/", "spdk-sys/"];
    fenced.iter().any(|fence| path.starts_with(fence))
        || (path.starts_with("tests/") && path.contains("alloc"))
}

pub fn unsafe_fences(source: &Source) -> Vec<Finding> {
    if may_be_unsafe(&source.path) {
        return Vec::new();
    }
    let what = "unsafe: allowed in src/sys, src/spdk and spdk-sys only";
    (source.words("unsafe").map(|at| source.finding(at, what))).collect()
}

/// Blocks and impls say who guarantees what in a `SAFETY:` comment on or directly above the statement.
pub fn safety_comments(source: &Source) -> Vec<Finding> {
    let lines: Vec<&str> = source.text.lines().collect();
    let code: Vec<&str> = source.code.lines().collect();
    let is_covered = |line: usize| {
        if lines[line].contains("// SAFETY:") {
            return true;
        }
        for above in (0..line).rev() {
            let text = lines[above].trim();
            let ends_statement = code[above].trim_end().ends_with([';', '{', '}']);
            if text.starts_with("// SAFETY:") {
                return true;
            }
            if text.is_empty() || (ends_statement && !text.starts_with("//")) {
                return false;
            }
        }
        false
    };
    source
        .words("unsafe")
        .filter(|&at| {
            let next = source.code[at + "unsafe".len()..].trim_start();
            next.starts_with('{') || next.starts_with("impl")
        })
        .filter(|&at| !is_covered(source.line_of(at) - 1))
        .map(|at| source.finding(at, "safety: no `// SAFETY:` that says who guarantees what"))
        .collect()
}

/// Path literals outside `src/sysfs` that have a reason: file, literal, reason. Every entry must be needed.
pub const ROOTED_PATHS_ALLOWED: [(&str, &str, &str); 0] = [];

/// Entries of [`ROOTED_PATHS_ALLOWED`] that nothing in the tree needs any more, or without a reason.
pub fn needless(tree: &[Source]) -> Vec<String> {
    let is_used = |path: &str, text: &str| {
        (tree.iter().filter(|source| source.path == path))
            .any(|source| rooted_literals(source).any(|literal| literal.text == text))
    };
    ROOTED_PATHS_ALLOWED
        .iter()
        .filter(|(path, text, reason)| reason.is_empty() || !is_used(path, text))
        .map(|(path, text, _)| format!("tests/tidy/rules.rs: `{text}` in {path} is needless"))
        .collect()
}

/// A path below the three roots, not a sentence that mentions one.
fn is_rooted(text: &str) -> bool {
    ["/sys", "/proc", "/dev"].iter().any(|root| {
        let starts = text.strip_prefix(root);
        let as_prefix = starts.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        let inside = !text.contains(char::is_whitespace) && text.contains(&format!("{root}/"));
        (as_prefix && !text.contains(' ')) || inside
    })
}

/// The literals that name a path below the three roots where none may.
fn rooted_literals(source: &Source) -> impl Iterator<Item = &Literal> {
    let applies = source.path.starts_with("src/") && !source.path.starts_with("src/sysfs/");
    let literals = source.literals.iter().filter(move |_| applies);
    literals.filter(|literal| is_rooted(&literal.text) && !source.in_tests(literal.at))
}

pub fn rooted_paths(source: &Source) -> Vec<Finding> {
    rooted_literals(source)
        .filter(|literal| {
            !(ROOTED_PATHS_ALLOWED.iter())
                .any(|(path, text, _)| *path == source.path && *text == literal.text)
        })
        .map(|literal| {
            let what = format!("paths: `{}`: take the path from `Sysfs`", literal.text);
            source.finding(literal.at, what)
        })
        .collect()
}

pub fn file_length(source: &Source) -> Vec<Finding> {
    let max = if source.path == "src/main.rs" {
        MAIN_LINES_MAX
    } else {
        FILE_LINES_MAX
    };
    let lines = source.text.lines().count();
    let what = format!("length: {lines} lines, at most {max}");
    (lines > max)
        .then(|| source.finding(0, what))
        .into_iter()
        .collect()
}

pub fn function_length(source: &Source) -> Vec<Finding> {
    source
        .words("fn")
        .filter_map(|at| {
            let head = &source.code[at..];
            let open = at + head.find(['{', ';'])?;
            if !source.code[open..].starts_with('{') {
                return None;
            }
            let name: String = head["fn".len()..]
                .trim_start()
                .chars()
                .take_while(|c| c.is_alphanumeric() || *c == '_')
                .collect();
            let end = block_at(&source.code, open).end;
            let lines = source.text[at..end].lines().count();
            let what = format!("length: fn {name} has {lines} lines, at most {FUNCTION_LINES_MAX}");
            (lines > FUNCTION_LINES_MAX && !name.is_empty()).then(|| source.finding(at, what))
        })
        .collect()
}

pub fn file_header(source: &Source) -> Vec<Finding> {
    let has_header = source.text.starts_with("//! ");
    let what = "header: the first line is no `//!` that says what the file is for";
    (!has_header)
        .then(|| source.finding(0, what))
        .into_iter()
        .collect()
}

pub fn stubs(source: &Source) -> Vec<Finding> {
    ["todo!", "unimplemented!", "#[ignore"]
        .iter()
        .flat_map(|stub| source.code.match_indices(stub))
        .map(|(at, stub)| source.finding(at, format!("stub: `{stub}`")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(rule: fn(&Source) -> Vec<Finding>, path: &str, text: &str) -> usize {
        rule(&Source::new(path, text)).len()
    }

    #[test]
    fn unsafe_outside_the_fences_is_found() {
        let text = "fn f() { unsafe { g() } }\nunsafe fn g() {}\n// unsafe\n#![allow(unsafe_code)]";
        assert_eq!(findings(unsafe_fences, "src/reactor/poll.rs", text), 2);
        assert_eq!(findings(unsafe_fences, "tests/peak.rs", text), 2);
        for path in [
            "src/sys/ring.rs",
            "src/spdk/mod.rs",
            "spdk-sys/src/lib.rs",
            "tests/no_alloc.rs",
        ] {
            assert_eq!(findings(unsafe_fences, path, text), 0);
        }
    }

    #[test]
    fn an_unsafe_block_without_its_reason_is_found() {
        for bad in [
            "fn f() {\n    unsafe { g() };\n}",
            "// SAFETY: of another statement\nh();\nunsafe { g() };",
            "// SAFETY: far away\n\nunsafe { g() };",
            "// safe because\nunsafe impl Send for X {}",
        ] {
            assert_eq!(findings(safety_comments, "src/sys/x.rs", bad), 1, "{bad}");
        }
        for good in [
            "// SAFETY: the caller\nunsafe { g() };",
            "// SAFETY: the caller\n// of f.\nlet x =\n    unsafe { g() };",
            "unsafe { g() }; // SAFETY: the kernel",
            "// SAFETY: no thread\nunsafe impl Send for X {}",
            "/// # Safety\nunsafe fn g() {}",
        ] {
            assert_eq!(findings(safety_comments, "src/sys/x.rs", good), 0, "{good}");
        }
    }

    #[test]
    fn rooted_paths_outside_sysfs_are_found() {
        for bad in [
            "/sys/block",
            "/proc",
            "/dev/null",
            "{root}/sys/block",
            "/dev/",
        ] {
            let text = format!("fn f() {{ open(\"{bad}\"); }}");
            assert_eq!(findings(rooted_paths, "src/cli/x.rs", &text), 1, "{bad}");
            assert_eq!(findings(rooted_paths, "src/sysfs/x.rs", &text), 0, "{bad}");
            assert_eq!(findings(rooted_paths, "tests/x.rs", &text), 0, "{bad}");
            let in_tests = format!("#[cfg(test)]\nmod tests {{ {text} }}");
            assert_eq!(
                findings(rooted_paths, "src/cli/x.rs", &in_tests),
                0,
                "{bad}"
            );
        }
        for good in [
            "give a device such as /dev/nvme0n1",
            "/system",
            "/device/x",
            "a/system",
        ] {
            let text = format!("fn f() {{ say(\"{good}\"); }}");
            assert_eq!(findings(rooted_paths, "src/cli/x.rs", &text), 0, "{good}");
        }
    }

    #[test]
    fn long_files_and_functions_are_found() {
        let text = "//! x\n".repeat(501);
        assert_eq!(findings(file_length, "src/x.rs", &text), 1);
        assert_eq!(findings(file_length, "src/x.rs", &text[6..]), 0);
        assert_eq!(findings(file_length, "src/main.rs", &text[..41 * 6]), 1);
        let function = |lines| {
            format!(
                "trait T {{ fn f(); }}\nfn long() {{\n{}}}\n",
                "g();\n".repeat(lines)
            )
        };
        assert_eq!(findings(function_length, "src/x.rs", &function(79)), 1);
        assert_eq!(findings(function_length, "src/x.rs", &function(78)), 0);
    }

    #[test]
    fn missing_headers_and_stubs_are_found() {
        assert_eq!(findings(file_header, "src/x.rs", "use a;\n//! x"), 1);
        assert_eq!(findings(file_header, "src/x.rs", "//! x"), 0);
        let text = "fn f() { todo!() }\nfn g() { unimplemented!() }\n#[ignore]\n#[ignore = \"\"]\n// todo!";
        assert_eq!(findings(stubs, "src/x.rs", text), 4);
    }
}

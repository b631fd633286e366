//! A Rust file as the rules see it: code with comments and literals blanked out, and the literals apart.

use std::ops::Range;

/// One broken rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    pub path: String,
    /// Counted from 1.
    pub line: usize,
    pub what: String,
}

/// A string literal's content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Literal {
    pub at: usize,
    pub text: String,
}

/// One file. Offsets are in bytes and the same in `text` and `code`.
pub struct Source {
    /// From the root of the tree, with `/`.
    pub path: String,
    pub text: String,
    /// `text` with comments and the contents of literals replaced by spaces; line ends are kept.
    pub code: String,
    pub literals: Vec<Literal>,
    /// Bodies under `#[cfg(test)]`; the whole file where it is a test.
    pub tests: Vec<Range<usize>>,
}

impl Source {
    pub fn new(path: &str, text: &str) -> Self {
        let (code, literals) = blank(text);
        let is_test = path.starts_with("tests/") || path.ends_with("tests.rs");
        let tests = if is_test {
            std::iter::once(0..text.len()).collect()
        } else {
            blocks_after(&code, "#[cfg(test)]")
        };
        Self {
            path: path.to_owned(),
            text: text.to_owned(),
            code,
            literals,
            tests,
        }
    }

    pub fn line_of(&self, at: usize) -> usize {
        self.text[..at].matches('\n').count() + 1
    }

    pub fn finding(&self, at: usize, what: impl Into<String>) -> Finding {
        Finding {
            path: self.path.clone(),
            line: self.line_of(at),
            what: what.into(),
        }
    }

    pub fn in_tests(&self, at: usize) -> bool {
        self.tests.iter().any(|body| body.contains(&at))
    }

    /// Where a whole word stands in the code.
    pub fn words<'a>(&'a self, word: &'a str) -> impl Iterator<Item = usize> + 'a {
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        self.code.match_indices(word).filter_map(move |(at, _)| {
            let before = self.code[..at].chars().next_back();
            let after = self.code[at + word.len()..].chars().next();
            let apart = !before.is_some_and(is_part) && !after.is_some_and(is_part);
            apart.then_some(at)
        })
    }
}

/// The bodies in braces that directly follow a marker (with an item's head in between, but no `;`).
fn blocks_after(code: &str, marker: &str) -> Vec<Range<usize>> {
    code.match_indices(marker)
        .filter_map(|(at, _)| {
            let open = at + code[at..].find(['{', ';'])?;
            code[open..].starts_with('{').then(|| block_at(code, open))
        })
        .collect()
}

/// From an opening brace to behind its partner; to the end of the code where it has none.
pub fn block_at(code: &str, open: usize) -> Range<usize> {
    let mut depth = 0_usize;
    for (at, byte) in code.bytes().enumerate().skip(open) {
        match byte {
            b'{' => depth += 1,
            b'}' => {
                depth -= 1;
                if depth == 0 {
                    return open..at + 1;
                }
            }
            _ => {}
        }
    }
    open..code.len()
}

/// Blanks comments and literals. Works on bytes: all that matters to it is ASCII.
fn blank(text: &str) -> (String, Vec<Literal>) {
    let bytes = text.as_bytes();
    let mut code = bytes.to_vec();
    let mut literals = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let end = match bytes[at] {
            b'/' if bytes[at..].starts_with(b"//") => line_end(bytes, at),
            b'/' if bytes[at..].starts_with(b"/*") => comment_end(bytes, at),
            b'"' | b'r' | b'b' | b'c' if literal_starts(bytes, at) => {
                let (content, end) = literal(bytes, at);
                literals.push(Literal {
                    at,
                    text: String::from_utf8_lossy(&bytes[content]).into_owned(),
                });
                end
            }
            b'\'' => char_end(bytes, at),
            _ => {
                at += 1;
                continue;
            }
        };
        for byte in &mut code[at..end] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
        at = end;
    }
    (String::from_utf8_lossy(&code).into_owned(), literals)
}

fn line_end(bytes: &[u8], at: usize) -> usize {
    let rest = bytes[at..].iter().position(|&byte| byte == b'\n');
    rest.map_or(bytes.len(), |length| at + length)
}

/// Block comments nest.
fn comment_end(bytes: &[u8], start: usize) -> usize {
    let mut depth = 0_usize;
    let mut at = start;
    while at < bytes.len() {
        if bytes[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if bytes[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    at
}

/// Whether a string literal, with its prefix, starts here and not within a name.
fn literal_starts(bytes: &[u8], at: usize) -> bool {
    let in_name = at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_');
    let prefix = bytes[at..].iter().take_while(|byte| b"rbc".contains(byte));
    let after_prefix = at + prefix.count();
    let hashes = bytes[after_prefix..]
        .iter()
        .take_while(|&&byte| byte == b'#');
    let quote = after_prefix + hashes.count();
    let is_raw = bytes[at..after_prefix].contains(&b'r');
    let hashes_fit = quote == after_prefix || is_raw;
    !in_name && after_prefix - at <= 2 && hashes_fit && bytes.get(quote) == Some(&b'"')
}

/// The content of the string literal that starts here, and where the literal ends.
fn literal(bytes: &[u8], start: usize) -> (Range<usize>, usize) {
    let quote = start
        + bytes[start..]
            .iter()
            .take_while(|&&byte| byte != b'"')
            .count();
    let head = &bytes[start..quote];
    let hashes = head.iter().filter(|&&byte| byte == b'#').count();
    let is_raw = head.contains(&b'r');
    let mut at = quote + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' if !is_raw => at += 2,
            b'"' if bytes[at + 1..].iter().take_while(|&&b| b == b'#').count() >= hashes => {
                return (quote + 1..at, at + 1 + hashes);
            }
            _ => at += 1,
        }
    }
    (quote + 1..bytes.len(), bytes.len())
}

/// Behind a character literal; a lifetime or label is only stepped over.
fn char_end(bytes: &[u8], at: usize) -> usize {
    if bytes.get(at + 1) == Some(&b'\\') {
        let close = bytes[at + 3..].iter().position(|&byte| byte == b'\'');
        return close.map_or(bytes.len(), |length| at + 3 + length + 1);
    }
    // One character of up to four bytes, then the closing quote; not `'a, 'b`.
    let close = (2..=5).find(|&length| bytes.get(at + length) == Some(&b'\''));
    match close {
        Some(2) => at + 3,
        Some(length) if bytes[at + 1] >= 0x80 => at + length + 1,
        _ => at + 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_blanked_and_kept_apart() {
        let source = Source::new(
            "src/x.rs",
            "let a = \"un\\\"safe\"; // unsafe\n/* unsafe /* nested */ unsafe */ let b = r#\"un\"safe\"#;\nlet c: &'static str = b\"x\"; let d = '\"'; let e = '\\''; unsafe {}",
        );
        assert_eq!(source.words("unsafe").count(), 1);
        let texts: Vec<&str> = source.literals.iter().map(|l| l.text.as_str()).collect();
        assert_eq!(texts, ["un\\\"safe", "un\"safe", "x"]);
        assert_eq!(source.code.len(), source.text.len());
        assert_eq!(source.line_of(source.text.len()), 3);
    }

    #[test]
    fn names_and_lifetimes_are_not_literals() {
        let source = Source::new(
            "src/x.rs",
            "fn r<'a, 'b>(bar: &'a str) { r#fn(); 'l: loop {} }",
        );
        assert!(source.literals.is_empty());
        assert_eq!(source.code, source.text.replace('\'', " "));
    }

    #[test]
    fn test_bodies_are_found() {
        let source = Source::new(
            "src/x.rs",
            "fn a() {}\n#[cfg(test)]\nmod tests { fn b() { c() } }\nfn d() {}",
        );
        let inside = |word| source.in_tests(source.words(word).next().unwrap_or(0));
        assert!(!inside("a") && inside("b") && inside("c") && !inside("d"));
        assert!(Source::new("tests/x.rs", "fn a() {}").in_tests(3));
        let declared = Source::new("src/x.rs", "#[cfg(test)]\nmod tests;\nfn d() {}");
        assert!(!declared.in_tests(declared.words("d").next().unwrap_or(0)));
    }
}

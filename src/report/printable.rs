//! Text from devices and users made harmless. Model and serial strings are whatever the drive says.

use std::fmt::Write as _;

/// The text with everything that could steer a terminal, reorder a line or hide in it spelled out:
/// control characters (C0, DEL, C1), line and paragraph separators, the bidirectional controls and the
/// zero-width characters of Unicode (UAX #9, UTR #36), and the replacement character that stands where
/// bytes were not UTF-8. The result is one line.
#[must_use]
pub fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        let written = match c {
            '\0'..='\x1f' | '\x7f' => write!(out, "\\x{:02x}", u32::from(c)),
            c if is_hidden(c) => write!(out, "\\u{{{:x}}}", u32::from(c)),
            c => {
                out.push(c);
                Ok(())
            }
        };
        written.expect("writing to a String cannot fail");
    }
    out
}

const fn is_hidden(c: char) -> bool {
    matches!(c,
        '\u{80}'..='\u{9f}'
        | '\u{ad}'
        | '\u{61c}'
        | '\u{180e}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}'
        | '\u{fff9}'..='\u{fffd}'
        | '\u{e0000}'..='\u{e007f}')
}

/// [`printable`] text for the content and the quoted attributes of HTML.
#[must_use]
pub fn html_escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in printable(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn control_characters_are_spelled_out() {
        assert_eq!(printable("\x1b[31mred\x07\n"), "\\x1b[31mred\\x07\\x0a");
        assert_eq!(printable("a\u{9b}2Jb"), "a\\u{9b}2Jb", "C1 CSI steers too");
        assert_eq!(printable("\u{202e}gnp.exe"), "\\u{202e}gnp.exe");
        assert_eq!(printable("SN\u{fffd}1"), "SN\\u{fffd}1");
        assert_eq!(printable("Größe 盘 µs"), "Größe 盘 µs");
    }

    #[test]
    fn html_is_escaped_after_that() {
        assert_eq!(
            html_escaped("<script a=\"1\" b='2'>&\x1b"),
            "&lt;script a=&quot;1&quot; b=&#39;2&#39;&gt;&amp;\\x1b"
        );
    }

    proptest! {
        #[test]
        fn nothing_that_steers_is_left(text in "\\PC*|\\p{Any}*") {
            let shown = printable(&text);
            prop_assert!(shown.chars().all(|c| !c.is_control() && !is_hidden(c)));
            prop_assert_eq!(printable(&shown), shown.clone(), "twice is once");
            prop_assert!(!html_escaped(&text).contains(['<', '>', '"', '\'']));
        }
    }
}

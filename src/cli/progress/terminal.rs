//! What the terminal on the other end can show.

use comfy_table::Table;
use std::io::IsTerminal;

/// Narrower than this nothing can be laid out; wider lines may then wrap.
const NARROWEST: usize = 20;

/// Columns of the terminal on stdout; absent where it is none.
pub fn stdout_width() -> Option<usize> {
    width(&Table::new())
}

/// Columns of the terminal on stderr; absent where it is none.
pub fn stderr_width() -> Option<usize> {
    width(Table::new().use_stderr())
}

/// A table without a width of its own takes that of its terminal, and so finds it out.
fn width(table: &Table) -> Option<usize> {
    table.width().map(|width| usize::from(width).max(NARROWEST))
}

/// Whether a stream is a terminal that shows colours, and the user lets us (<https://no-color.org>).
pub fn is_colorful(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && moves_cursor(variable) && !colors_refused(variable)
}

/// Whether stderr is a terminal whose cursor can be moved back.
pub fn stderr_redraws() -> bool {
    std::io::stderr().is_terminal() && moves_cursor(variable)
}

/// Whether the locale shows text as UTF-8: `LC_ALL`, `LC_CTYPE`, `LANG`, the first that is set decides
/// (POSIX XBD 8.2).
pub fn is_utf8() -> bool {
    utf8_locale(variable)
}

fn variable(name: &str) -> Option<String> {
    let value = std::env::var_os(name)?;
    Some(value.to_string_lossy().into_owned()).filter(|value| !value.is_empty())
}

fn moves_cursor(variable: impl Fn(&str) -> Option<String>) -> bool {
    variable("TERM").is_some_and(|term| term != "dumb")
}

fn colors_refused(variable: impl Fn(&str) -> Option<String>) -> bool {
    variable("NO_COLOR").is_some()
}

fn utf8_locale(variable: impl Fn(&str) -> Option<String>) -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .find_map(variable);
    locale.is_some_and(|locale| {
        let locale = locale.to_ascii_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set<'a>(pairs: &'a [(&'a str, &'a str)]) -> impl Fn(&str) -> Option<String> + 'a {
        move |name| {
            let found = pairs.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| (*value).to_owned())
        }
    }

    #[test]
    fn dumb_terminals_are_not_redrawn() {
        assert!(moves_cursor(set(&[("TERM", "xterm")])));
        assert!(!moves_cursor(set(&[("TERM", "dumb")])));
        assert!(!moves_cursor(set(&[])));
        assert!(colors_refused(set(&[("NO_COLOR", "1")])));
        assert!(!colors_refused(set(&[])));
    }

    #[test]
    fn the_first_locale_variable_that_is_set_decides() {
        assert!(utf8_locale(set(&[("LANG", "de_DE.UTF-8")])));
        assert!(utf8_locale(set(&[("LC_CTYPE", "C.utf8"), ("LANG", "C")])));
        assert!(!utf8_locale(set(&[("LC_ALL", "C"), ("LANG", "C.UTF-8")])));
        assert!(!utf8_locale(set(&[])));
    }
}

//! `${NAME}` and `${NAME:-default}` in the values of a job file.

use super::value::Why;

/// Puts values in the place of variables; `value_of` knows them. `$${` is a plain `${`.
///
/// # Errors
/// What is wrong, with the variable's name.
pub(super) fn substitute(
    text: &str,
    value_of: &mut dyn FnMut(&str) -> Option<String>,
) -> Result<String, Why> {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let (before, from) = rest.split_at(at);
        if let Some(before) = before.strip_suffix('$') {
            out.push_str(before);
            out.push_str("${");
            rest = &from[2..];
            continue;
        }
        out.push_str(before);
        let end = from.find('}').ok_or_else(|| {
            format!("`{from}` does not end; write ${{NAME}} or ${{NAME:-default}}")
        })?;
        let inner = &from[2..end];
        let (name, default) = match inner.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inner, None),
        };
        if !is_name(name) {
            return Err(format!(
                "`{name}` is no name of a variable; allowed: letters, digits and _, not a digit first"
            ));
        }
        // As a shell has it: `:-` stands in for an empty value, too.
        let value = value_of(name).filter(|value| default.is_none() || !value.is_empty());
        let value = value.or(default.map(str::to_owned)).ok_or_else(|| {
            format!(
                "the variable {name} is not set; set it in the environment, give --set {name}=VALUE, or write ${{{name}:-default}}"
            )
        })?;
        out.push_str(&value);
        rest = &from[end + 1..];
    }
    out.push_str(rest);
    Ok(out)
}

/// Whether a text can be the name of a variable.
pub(super) fn is_name(text: &str) -> bool {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    !text.is_empty() && !text.starts_with(|c: char| c.is_ascii_digit()) && text.chars().all(is_part)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn put(text: &str) -> Result<String, Why> {
        substitute(text, &mut |name| match name {
            "BS" => Some("8k".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        })
    }

    #[test]
    fn variables_are_put_in_once() {
        assert_eq!(put("a ${BS} ${BS:-4k}b").unwrap(), "a 8k 8kb");
        assert_eq!(put("${NONE:-4k}${EMPTY:-x}${EMPTY}").unwrap(), "4kx");
        assert_eq!(put("$${BS} $5 $").unwrap(), "${BS} $5 $");
        assert_eq!(put("${NONE:-}").unwrap(), "");
    }

    #[test]
    fn what_is_missing_or_no_variable_is_refused_by_name() {
        assert!(
            put("x ${NONE}")
                .unwrap_err()
                .contains("variable NONE is not set")
        );
        assert!(put("${BS").unwrap_err().contains("does not end"));
        assert!(put("${1A}").unwrap_err().contains("`1A` is no name"));
        assert!(put("${}").unwrap_err().contains("no name"));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".{0,40}") {
            let _ = put(&text);
        }

        #[test]
        fn a_text_without_variables_stays(text in "[^$]{0,40}") {
            prop_assert_eq!(put(&text).unwrap(), text);
        }
    }
}

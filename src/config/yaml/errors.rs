//! What is wrong with a job file, in our words. The YAML crate knows the place; the key is found there.

use crate::config::error::ConfigError;
use crate::config::place::{At, Place};
use crate::config::suggest::hint_for;
use serde_yaml::{Error as YamlError, Location};

pub(super) fn syntax(file: &str, at: At, key: &str, why: &str) -> ConfigError {
    let place = match at {
        // Without a place the file is named in front of the key.
        At::Default => Place::named(&[], at, &format!("{file}: {key}")),
        _ => Place::named(&[file.to_owned()], at, key),
    };
    ConfigError::Syntax {
        place,
        why: why.to_owned(),
    }
}

pub(super) fn line_at(line: u64, column: u64) -> At {
    At::File {
        file_index: 0,
        line: u32::try_from(line).unwrap_or(u32::MAX),
        column: u32::try_from(column).unwrap_or(u32::MAX),
    }
}

pub(super) fn at_of(location: Location) -> At {
    line_at(location.line(), location.column())
}

/// The crate's error in our words.
pub(super) fn translate(error: &YamlError, text: &str, file: &str) -> ConfigError {
    let at = error.location().map_or(At::Default, at_of);
    match error {
        YamlError::AliasError { error, .. } => translate(error, text, file),
        YamlError::SerdeUnknownField {
            field, expected, ..
        } => ConfigError::UnknownKey {
            place: Place::named(&[file.to_owned()], at, field),
            hint: hint_for(field, expected),
        },
        YamlError::DuplicateMappingKey { key, .. } => syntax(
            file,
            at,
            key.as_deref().unwrap_or_default(),
            "the key stands twice in one mapping; keep one of them",
        ),
        YamlError::MultipleDocuments { .. } => syntax(
            file,
            at,
            "",
            "a second document begins here; a job file holds one",
        ),
        YamlError::Budget { .. } => syntax(
            file,
            at,
            "",
            "from here on the file is larger or deeper than any job needs; split it",
        ),
        YamlError::Unexpected { expected, .. } => {
            let wanted = match *expected {
                "string scalar" | "scalar" => "it takes one value, not a list or a mapping",
                "sequence start" => "it takes a list: lines that begin with `- `",
                "mapping start" => "a mapping of keys is needed here: `key: value`",
                other => other,
            };
            syntax(file, at, key_near(text, at), wanted)
        }
        // The crate appends the place, which ours already has.
        other => {
            let shown = other.to_string();
            let why = shown.split(" at line ").next().unwrap_or(&shown);
            syntax(file, at, key_near(text, at), why)
        }
    }
}

/// The key that a place in the text belongs to: the last `word:` at or before it on its line. Errors
/// inside the YAML crate know the place but not the key.
fn key_near(text: &str, at: At) -> &str {
    let At::File { line, column, .. } = at else {
        return "";
    };
    let row = text.lines().nth(line as usize - 1).unwrap_or_default();
    // A place is in characters, a slice in bytes.
    let end = row
        .char_indices()
        .nth((column as usize).saturating_sub(1))
        .map_or(row.len(), |(index, _)| index);
    let Some((head, _)) = row[..end].rsplit_once(':') else {
        return "";
    };
    let is_key = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    head.rsplit(|letter| !is_key(letter))
        .next()
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_of_a_place_is_found_on_its_line() {
        let text = "a:\n  - {rw: read, bs: [1]}\n";
        assert_eq!(key_near(text, line_at(2, 20)), "bs");
        assert_eq!(key_near(text, line_at(2, 10)), "rw");
        assert_eq!(key_near(text, line_at(9, 1)), "");
        assert_eq!(key_near("é: [1]", line_at(1, 4)), "");
    }
}

//! What was perhaps meant by a key that does not exist.

use super::fio::instead_of;
use super::key::STEP_KEYS;

/// `did you mean …? allowed here: …`.
pub(super) fn hint_for(name: &str, allowed: &[&str]) -> String {
    if let Some(instead) = instead_of(name) {
        return format!("it is an option of fio; here {instead}");
    }
    let list = allowed.join(", ");
    if let Some(near) = nearest(name, allowed) {
        return format!("did you mean `{near}`? Allowed here: {list}");
    }
    if STEP_KEYS.contains(&name) {
        let home = if allowed.contains(&"steps") {
            "a step or `defaults`"
        } else {
            "the step"
        };
        return format!("it belongs into {home}. Allowed here: {list}");
    }
    format!("allowed here: {list}")
}

fn nearest<'a>(name: &str, allowed: &[&'a str]) -> Option<&'a str> {
    let plain = name.replace('-', "_").to_ascii_lowercase();
    allowed
        .iter()
        .map(|candidate| (distance(&plain, candidate), *candidate))
        .filter(|(edits, candidate)| *edits <= 2 && *edits * 2 < candidate.len())
        .min()
        .map(|(_, candidate)| candidate)
}

/// Levenshtein's distance in bytes. Keys are short.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let substituted = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn near_names_are_offered_and_far_ones_are_not() {
        assert_eq!(nearest("iodpth", STEP_KEYS), Some("iodepth"));
        assert_eq!(nearest("ramp-time", STEP_KEYS), Some("ramp_time"));
        assert_eq!(nearest("histogram", STEP_KEYS), None);
        assert_eq!(nearest("xx", STEP_KEYS), None);
    }

    #[test]
    fn keys_at_the_wrong_level_are_sent_home() {
        assert!(hint_for("runtime", super::super::key::STREAM_KEYS).contains("into the step"));
        assert!(hint_for("bs", super::super::key::JOB_KEYS).contains("a step or `defaults`"));
    }
}

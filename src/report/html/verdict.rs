//! The verdicts, first thing on the page: one for every different finding, with the steps it holds for.

use super::super::printable;
use crate::record::{Outcome, Record, Verdict};

/// One verdict.
pub struct VerdictView {
    /// What bound the result.
    pub headline: String,
    /// The evidence, and for which steps.
    pub text: String,
    /// Whether something went wrong.
    pub is_bad: bool,
}

/// Steps named one by one; with more, they are counted.
const NAMED_MOST: usize = 4;

/// Those of one record of `count`.
pub fn views(number: usize, count: usize, record: &Record) -> Vec<VerdictView> {
    let mut out: Vec<VerdictView> = Vec::new();
    let prefix = if count > 1 {
        format!("Record {}: ", number + 1)
    } else {
        String::new()
    };
    if record.status != Outcome::Finished {
        let word = match record.status {
            Outcome::Interrupted => "interrupted: only a part was measured",
            Outcome::Failed => "failed",
            _ => "refused: nothing was measured",
        };
        out.push(VerdictView {
            headline: format!("{prefix}{word}"),
            text: record
                .error
                .as_ref()
                .map(|error| printable(&error.text))
                .unwrap_or_default(),
            is_bad: true,
        });
    }
    let mut groups: Vec<((String, String), Vec<&str>)> = Vec::new();
    for step in &record.steps {
        let key = said(&step.verdict);
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, steps)) => steps.push(&step.name),
            None => groups.push((key, vec![&step.name])),
        }
    }
    for ((headline, why), steps) in groups {
        let of = if steps.len() == record.steps.len() && steps.len() > 1 {
            "every step".to_owned()
        } else if steps.len() > NAMED_MOST {
            format!("{} of {} steps", steps.len(), record.steps.len())
        } else {
            steps.join(", ")
        };
        out.push(VerdictView {
            headline: format!("{prefix}{}", printable(&headline)),
            text: printable(&format!("{of}: {why}")),
            is_bad: false,
        });
    }
    out
}

/// The verdict in words, with the place it points at; and its evidence, with what to do.
fn said(verdict: &Verdict) -> (String, String) {
    let mut headline = verdict.kind.words().to_owned();
    if let Some(at) = &verdict.at {
        headline += &format!(" at {at}");
    }
    let mut why = verdict.why.clone();
    if !verdict.next_step.is_empty() {
        why += &format!(" ({})", verdict.next_step);
    }
    (headline, why)
}

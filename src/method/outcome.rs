//! How a method that ran several steps ended.

use crate::record::{Outcome, Step};
use crate::session::SessionError;

/// Interrupted where a step or the whole was, else failed where anything was, else finished.
#[must_use]
pub fn outcome(steps: &[Step], error: Option<&SessionError>) -> Outcome {
    let any = |outcome| steps.iter().any(|step| step.status == outcome);
    if any(Outcome::Interrupted) || matches!(error, Some(SessionError::Interrupted)) {
        Outcome::Interrupted
    } else if error.is_some() || any(Outcome::Failed) {
        Outcome::Failed
    } else {
        Outcome::Finished
    }
}

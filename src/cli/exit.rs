//! Exit codes, and which one wins where several apply.

use crate::record::{Failure, Outcome, Record};
use std::process::ExitCode;

/// How the program ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Exit {
    /// Everything asked was done.
    Ok,
    /// An I/O failed, or the run did.
    Failed,
    /// The command line, the job file or a named device is not usable.
    Usage,
    /// The guard refused to write.
    Refused,
    /// Data read back are not those written. Kept for that: nothing compares data yet.
    Mismatch,
    /// A criterion the user set was not met.
    Criterion,
    /// A signal ended the run; the partial record is written.
    Interrupted,
}

impl Exit {
    /// Every way to end, weakest first: where several apply, the later one wins.
    pub const BY_WEIGHT: [Self; 7] = [
        Self::Ok,
        Self::Usage,
        Self::Criterion,
        Self::Failed,
        Self::Mismatch,
        Self::Interrupted,
        Self::Refused,
    ];

    /// The number the shell sees.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Refused => 3,
            Self::Mismatch => 4,
            Self::Criterion => 5,
            Self::Interrupted => 130,
        }
    }

    /// The way to end that has this number; any other number is a failure.
    #[must_use]
    pub fn of_code(code: u8) -> Self {
        Self::BY_WEIGHT
            .into_iter()
            .find(|exit| exit.code() == code)
            .unwrap_or(Self::Failed)
    }

    /// The one of two that wins.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let weight = |exit| Self::BY_WEIGHT.iter().position(|each| *each == exit);
        if weight(other) > weight(self) {
            other
        } else {
            self
        }
    }

    /// What a record as a whole comes to. An I/O that failed or was abandoned counts even where its
    /// step went on to its end.
    #[must_use]
    pub fn of_record(record: &Record) -> Self {
        let whole = Self::of_part(record.status, record.error.as_ref());
        record.steps.iter().fold(whole, |exit, step| {
            let lost = step.failed_count > 0 || step.abandoned_count > 0;
            let missed = step.expect.iter().any(|criterion| !criterion.is_met);
            exit.and(Self::of_part(step.status, step.error.as_ref()))
                .and(if lost { Self::Failed } else { Self::Ok })
                .and(if missed { Self::Criterion } else { Self::Ok })
        })
    }

    /// What a comparison comes to, criteria apart: one that failed ends as its error says.
    #[must_use]
    pub fn of_comparison(status: Outcome, error: Option<&Failure>) -> Self {
        let said = error.map(|error| Self::of_code(error.exit_code));
        match status {
            Outcome::Finished => said.unwrap_or(Self::Ok),
            Outcome::Interrupted => said.unwrap_or(Self::Ok).and(Self::Interrupted),
            Outcome::Failed | Outcome::Refused => said.unwrap_or(Self::Failed),
        }
    }

    fn of_part(status: Outcome, error: Option<&Failure>) -> Self {
        let said = error.map(|error| Self::of_code(error.exit_code));
        match status {
            Outcome::Finished => said.unwrap_or(Self::Ok),
            Outcome::Interrupted => said.unwrap_or(Self::Ok).and(Self::Interrupted),
            Outcome::Failed => said.unwrap_or(Self::Ok).and(Self::Failed),
            // Without a word on why, it is bad input: the guard always gives its finding.
            Outcome::Refused => said.unwrap_or(Self::Usage).and(Self::Usage),
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_heavier_code_wins_in_either_order() {
        // 3 > 130 > 4 > 1 > 5 > 2, and 0 last.
        let falling = [3, 130, 4, 1, 5, 2, 0].map(Exit::of_code);
        for (i, heavy) in falling.iter().enumerate() {
            for light in &falling[i..] {
                assert_eq!(heavy.and(*light), *heavy);
                assert_eq!(light.and(*heavy), *heavy);
            }
        }
    }

    #[test]
    fn a_comparison_ends_as_its_error_says() {
        let of = |status, code: Option<u8>| {
            let error = code.map(|exit_code| Failure {
                kind: "guard".to_owned(),
                text: "B: refused".to_owned(),
                next_step: String::new(),
                exit_code,
            });
            Exit::of_comparison(status, error.as_ref())
        };
        for code in [1, 2, 3] {
            assert_eq!(of(Outcome::Failed, Some(code)).code(), code);
        }
        assert_eq!(of(Outcome::Failed, None), Exit::Failed);
        assert_eq!(of(Outcome::Finished, None), Exit::Ok);
        assert_eq!(of(Outcome::Interrupted, None), Exit::Interrupted);
        assert_eq!(of(Outcome::Interrupted, Some(3)), Exit::Refused);
        // A criterion that is missed besides: 3 > 1 > 5.
        let missed = |code| of(Outcome::Failed, Some(code)).and(Exit::Criterion).code();
        assert_eq!([missed(3), missed(1)], [3, 1]);
    }

    #[test]
    fn codes_are_those_of_the_manual() {
        let codes = Exit::BY_WEIGHT.map(Exit::code);
        assert_eq!(codes, [0, 2, 5, 1, 4, 130, 3]);
        for exit in Exit::BY_WEIGHT {
            assert_eq!(Exit::of_code(exit.code()), exit);
        }
        assert_eq!(Exit::of_code(77), Exit::Failed);
    }
}

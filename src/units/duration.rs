//! Durations with a suffix: `100us`, `2s`, `1.5h`.

use super::Nanos;
use super::decimal::{Decimal, split_number};
use std::fmt;

/// Why a text is not a duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a duration: {why}")]
pub struct DurationError {
    /// The text.
    pub text: String,
    /// What is wrong and what is allowed.
    pub why: &'static str,
}

const ALLOWED: &str =
    "use a number with a suffix and no space: ns, us, ms, s, m, h, d, such as 100us, 2s, 1.5h";
const NO_SUFFIX: &str =
    "it has no unit; add one of ns, us, ms, s, m, h, d, such as 10s for ten seconds";
const NEGATIVE: &str = "a duration cannot be negative; use 0s or more";
const TOO_LARGE: &str = "it is longer than 584 years";
const INEXACT: &str = "it is not a whole number of nanoseconds; use fewer decimals";

/// Suffixes and their nanoseconds, longest unit first.
const UNITS: [(&str, u64); 7] = [
    ("d", 86_400_000_000_000),
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

/// Reads a duration.
///
/// # Errors
/// [`DurationError`] where the suffix is missing, or the number is not one, is negative, is past 64 bits
/// of nanoseconds or is not a whole number of them.
pub fn parse_duration(text: &str) -> Result<Nanos, DurationError> {
    parse(text).map_err(|why| DurationError {
        text: text.to_owned(),
        why,
    })
}

fn parse(text: &str) -> Result<Nanos, &'static str> {
    if text.starts_with('-') {
        return Err(NEGATIVE);
    }
    let (number, suffix) = split_number(text).ok_or(ALLOWED)?;
    if suffix.is_empty() {
        return Err(NO_SUFFIX);
    }
    let suffix = if suffix == "µs" { "us" } else { suffix };
    let (_, unit) = UNITS
        .iter()
        .find(|(name, _)| *name == suffix)
        .ok_or(ALLOWED)?;
    let number = Decimal::parse(number).ok_or(TOO_LARGE)?;
    let nanos = number.times_exact(u128::from(*unit)).ok_or(INEXACT)?;
    u64::try_from(nanos).map(Nanos).map_err(|_| TOO_LARGE)
}

impl fmt::Display for Nanos {
    /// In the longest unit that is exact, as [`parse_duration`] reads it back: `10s`, `1500ms`, `2h`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.write_str("0s");
        }
        // The last unit is 1 ns, which divides everything.
        let (name, unit) = UNITS
            .iter()
            .find(|(_, unit)| self.0.is_multiple_of(*unit))
            .unwrap_or(&("ns", 1));
        write!(f, "{}{name}", self.0 / unit)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn nanos(text: &str) -> u64 {
        parse_duration(text).unwrap().0
    }

    fn why(text: &str) -> &'static str {
        parse_duration(text).unwrap_err().why
    }

    #[test]
    fn every_suffix_has_its_length() {
        assert_eq!(nanos("7ns"), 7);
        assert_eq!(nanos("100us"), 100_000);
        assert_eq!(nanos("100µs"), 100_000);
        assert_eq!(nanos("3ms"), 3_000_000);
        assert_eq!(nanos("2s"), 2_000_000_000);
        assert_eq!(nanos("5m"), 300_000_000_000);
        assert_eq!(nanos("1h"), 3_600_000_000_000);
        assert_eq!(nanos("1d"), 86_400_000_000_000);
        assert_eq!(nanos("0s"), 0);
    }

    #[test]
    fn fractions_count_where_they_are_whole_nanoseconds() {
        assert_eq!(nanos("1.5h"), 5_400_000_000_000);
        assert_eq!(nanos("0.5us"), 500);
        assert_eq!(nanos("0.000000001s"), 1);
        assert_eq!(why("0.5ns"), INEXACT);
        assert_eq!(why("0.0000000001s"), INEXACT);
    }

    #[test]
    fn what_is_no_duration_says_what_is() {
        assert_eq!(why("10"), NO_SUFFIX);
        assert_eq!(why("0"), NO_SUFFIX);
        assert_eq!(why("-1s"), NEGATIVE);
        assert_eq!(why("600000d"), TOO_LARGE);
        assert_eq!(
            why("99999999999999999999999999999999999999999999s"),
            TOO_LARGE
        );
        for text in [
            "", "s", "1 s", " 1s", "1s ", "1sec", "1S", "1M", "1m30s", "1e3s", "+1s", ".5s", "1.s",
            "inf",
        ] {
            assert_eq!(why(text), ALLOWED, "`{text}`");
        }
    }

    #[test]
    fn durations_are_shown_in_the_longest_exact_unit() {
        assert_eq!(Nanos(0).to_string(), "0s");
        assert_eq!(Nanos(1_500_000_000).to_string(), "1500ms");
        assert_eq!(Nanos(120_000_000_000).to_string(), "2m");
        assert_eq!(Nanos(90_000_000_000).to_string(), "90s");
    }

    proptest! {
        #[test]
        fn durations_round_trip(nanos in any::<u64>(), unit in 0_usize..7) {
            let nanos = Nanos(nanos / UNITS[unit].1 * UNITS[unit].1);
            prop_assert_eq!(parse_duration(&nanos.to_string()).unwrap(), nanos);
        }

        #[test]
        fn no_text_panics(text in ".*") {
            let _ = parse_duration(&text);
        }
    }
}

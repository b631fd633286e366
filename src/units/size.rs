//! Sizes: `4k`, `1.5G`, `0x1000`, `25%`. Every suffix is binary: `k` is 1024.

use super::Bytes;
use super::decimal::{Decimal, split_number};
use std::fmt;
use std::str::FromStr;

/// A size as written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SizeSpec {
    /// So many bytes.
    Bytes(Bytes),
    /// A share of the device in percent, 0 to 100.
    Percent(f64),
}

/// Why a text is not a size.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a size: {why}")]
pub struct SizeError {
    /// The text.
    pub text: String,
    /// What is wrong and what is allowed.
    pub why: &'static str,
}

const ALLOWED: &str = "use whole bytes or a binary suffix without a space, such as 4096, 0x1000, 4k, 64KiB, 1M, 1.5G, 2T";
const NEGATIVE: &str = "a size cannot be negative; use 0 or more";
const TOO_LARGE: &str = "it is larger than 64 bits can hold (16 EiB)";
const INEXACT: &str =
    "it is not a whole number of bytes; write the bytes out or use a smaller unit";
const DECIMAL_UNIT: &str = "kB, MB, GB could mean 1000 or 1024; write KiB, MiB, GiB (or k, M, G) for powers of 1024, or the bytes in full";
const NO_PERCENT: &str = "a percentage makes no sense here; use bytes such as 4096, 4k, 1M";
const PERCENT_RANGE: &str = "a percentage is from 0% to 100%";
const ZERO_BLOCK: &str = "a block size is at least 1 byte, such as 512, 4k, 1M";
const HEX: &str = "after 0x come 1 to 16 hexadecimal digits and no suffix, such as 0x1000";

/// Reads a size: bytes, or a percentage of the device.
///
/// # Errors
/// [`SizeError`] that says what is allowed: for signs, spaces, fractions that are no whole number of
/// bytes, figures past 64 bits, and `kB`/`MB`, which could be decimal.
pub fn parse_size(text: &str) -> Result<SizeSpec, SizeError> {
    parse(text).map_err(|why| SizeError {
        text: text.to_owned(),
        why,
    })
}

/// Reads a block size: bytes, at least 1.
///
/// # Errors
/// [`SizeError`] as [`parse_size`], and for zero and percentages.
pub fn parse_block_size(text: &str) -> Result<Bytes, SizeError> {
    let refuse = |why| SizeError {
        text: text.to_owned(),
        why,
    };
    match parse_size(text)? {
        SizeSpec::Percent(_) => Err(refuse(NO_PERCENT)),
        SizeSpec::Bytes(Bytes(0)) => Err(refuse(ZERO_BLOCK)),
        SizeSpec::Bytes(bytes) => Ok(bytes),
    }
}

fn parse(text: &str) -> Result<SizeSpec, &'static str> {
    if text.starts_with('-') {
        return Err(NEGATIVE);
    }
    if let Some(digits) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        return parse_hex(digits).map(|bytes| SizeSpec::Bytes(Bytes(bytes)));
    }
    let (number, suffix) = split_number(text).ok_or(ALLOWED)?;
    if suffix == "%" {
        return parse_percent(number);
    }
    let shift = shift_of(suffix)?;
    let number = Decimal::parse(number).ok_or(TOO_LARGE)?;
    match number.times_exact(1_u128 << shift) {
        None => Err(INEXACT),
        Some(bytes) => u64::try_from(bytes)
            .map(|bytes| SizeSpec::Bytes(Bytes(bytes)))
            .map_err(|_| TOO_LARGE),
    }
}

fn parse_hex(digits: &str) -> Result<u64, &'static str> {
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(HEX);
    }
    u64::from_str_radix(digits, 16).map_err(|_| TOO_LARGE)
}

fn parse_percent(number: &str) -> Result<SizeSpec, &'static str> {
    let share_pct: f64 = number.parse().map_err(|_| PERCENT_RANGE)?;
    if (0.0..=100.0).contains(&share_pct) {
        Ok(SizeSpec::Percent(share_pct))
    } else {
        Err(PERCENT_RANGE)
    }
}

/// The power of two of a suffix, in any case: fio's `m` is a mega too.
fn shift_of(suffix: &str) -> Result<u32, &'static str> {
    let lower = suffix.to_ascii_lowercase();
    if lower.is_empty() || lower == "b" {
        return Ok(0);
    }
    let shift = match lower.as_bytes()[0] {
        b'k' => 10,
        b'm' => 20,
        b'g' => 30,
        b't' => 40,
        b'p' => 50,
        b'e' => 60,
        _ => return Err(ALLOWED),
    };
    match &lower[1..] {
        "" | "i" | "ib" => Ok(shift),
        "b" => Err(DECIMAL_UNIT),
        _ => Err(ALLOWED),
    }
}

impl FromStr for SizeSpec {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<Self, SizeError> {
        parse_size(text)
    }
}

impl fmt::Display for SizeSpec {
    /// As [`parse_size`] reads it back: `4KiB`, `4097`, `25%`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(&str, u32); 6] = [
            ("EiB", 60),
            ("PiB", 50),
            ("TiB", 40),
            ("GiB", 30),
            ("MiB", 20),
            ("KiB", 10),
        ];
        match *self {
            Self::Percent(share_pct) => write!(f, "{share_pct}%"),
            Self::Bytes(Bytes(bytes)) => {
                for (name, shift) in UNITS {
                    if bytes >> shift != 0 && bytes.trailing_zeros() >= shift {
                        return write!(f, "{}{name}", bytes >> shift);
                    }
                }
                write!(f, "{bytes}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn bytes(text: &str) -> u64 {
        match parse_size(text) {
            Ok(SizeSpec::Bytes(Bytes(bytes))) => bytes,
            other => panic!("{text}: {other:?}"),
        }
    }

    fn why(text: &str) -> &'static str {
        parse_size(text).unwrap_err().why
    }

    #[test]
    fn every_suffix_is_binary() {
        for text in ["4k", "4K", "4ki", "4Ki", "4KiB", "4kib", "4KIB"] {
            assert_eq!(bytes(text), 4096, "{text}");
        }
        for (text, shift) in [
            ("1m", 20),
            ("1M", 20),
            ("1MiB", 20),
            ("1G", 30),
            ("1gi", 30),
            ("1T", 40),
            ("1P", 50),
            ("1E", 60),
        ] {
            assert_eq!(bytes(text), 1 << shift, "{text}");
        }
        assert_eq!(bytes("0"), 0);
        assert_eq!(bytes("512"), 512);
        assert_eq!(bytes("512B"), 512);
        assert_eq!(bytes("0x1000"), 4096);
        assert_eq!(bytes("0xFFFFFFFFFFFFFFFF"), u64::MAX);
        assert_eq!(bytes("18446744073709551615"), u64::MAX);
    }

    #[test]
    fn fractions_count_where_they_are_whole_bytes() {
        assert_eq!(bytes("1.5G"), 3 << 29);
        assert_eq!(bytes("0.5k"), 512);
        assert_eq!(bytes("1.50k"), 1536);
        assert_eq!(bytes("2.0"), 2);
        assert_eq!(why("1.0001k"), INEXACT);
        assert_eq!(why("1.5"), INEXACT);
        assert_eq!(why("0.1G"), INEXACT);
    }

    #[test]
    fn what_is_no_size_says_what_is() {
        for text in [
            "", " ", "k", "4 k", " 4k", "4k ", "4x", "4kk", "1e3", "+4k", "1,5G", ".5k", "5.k",
            "1..5k", "4k4", "٤k", "4iB", "∞",
        ] {
            assert_eq!(why(text), ALLOWED, "`{text}`");
        }
        assert_eq!(why("-1"), NEGATIVE);
        assert_eq!(why("-4k"), NEGATIVE);
        assert_eq!(why("18446744073709551616"), TOO_LARGE);
        assert_eq!(why("16E"), TOO_LARGE);
        assert_eq!(
            why("99999999999999999999999999999999999999999999999k"),
            TOO_LARGE
        );
        assert_eq!(why("0x10000000000000000"), TOO_LARGE);
        for text in ["0x", "0xg", "0x10k", "0x-1", "0x+1", "0x1_0"] {
            assert_eq!(why(text), HEX, "`{text}`");
        }
    }

    #[test]
    fn decimal_looking_units_are_refused_with_a_hint() {
        for text in ["4kB", "4KB", "1MB", "1mb", "400GB"] {
            let error = parse_block_size(text).unwrap_err();
            assert_eq!(error.why, DECIMAL_UNIT, "{text}");
            assert!(error.to_string().contains("KiB"));
        }
    }

    #[test]
    fn percentages_stay_in_range_and_out_of_block_sizes() {
        assert_eq!(parse_size("25%").unwrap(), SizeSpec::Percent(25.0));
        assert_eq!(parse_size("0%").unwrap(), SizeSpec::Percent(0.0));
        assert_eq!(parse_size("33.3%").unwrap(), SizeSpec::Percent(33.3));
        assert_eq!(parse_size("100%").unwrap(), SizeSpec::Percent(100.0));
        assert_eq!(why("100.1%"), PERCENT_RANGE);
        assert_eq!(why("-5%"), NEGATIVE);
        assert_eq!(why("%"), ALLOWED);
        assert_eq!(parse_block_size("25%").unwrap_err().why, NO_PERCENT);
        assert_eq!(parse_block_size("0").unwrap_err().why, ZERO_BLOCK);
    }

    proptest! {
        #[test]
        fn bytes_round_trip(bytes in any::<u64>(), shift in 0_u32..64) {
            let size = SizeSpec::Bytes(Bytes(bytes << shift));
            prop_assert_eq!(parse_size(&size.to_string()).unwrap(), size);
        }

        #[test]
        fn percentages_round_trip(share_pct in 0.0_f64..=100.0) {
            let size = SizeSpec::Percent(share_pct);
            prop_assert_eq!(parse_size(&size.to_string()).unwrap(), size);
        }

        #[test]
        fn no_text_panics(text in ".*") {
            let _ = parse_size(&text);
            let _ = parse_block_size(&text);
        }

        #[test]
        fn number_like_texts_agree_with_arithmetic(whole in 0_u64..1 << 40, quarters in 0_u64..4) {
            let text = format!("{whole}.{:02}k", quarters * 25);
            prop_assert_eq!(bytes(&text), whole * 1024 + quarters * 256);
        }
    }
}

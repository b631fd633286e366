//! Decimal numbers as users write them, kept exact: a figure that is not a whole number of units is an
//! error, never a rounding.

/// A decimal number: `digits` divided by ten to the power of `places`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Decimal {
    digits: u128,
    places: u32,
}

/// Splits a text into its leading number (`12`, `1.5`) and the rest, or `None` where it does not begin
/// with a digit or a point is not between digits.
pub(super) fn split_number(text: &str) -> Option<(&str, &str)> {
    let whole = text.bytes().take_while(u8::is_ascii_digit).count();
    if whole == 0 {
        return None;
    }
    let Some(rest) = text[whole..].strip_prefix('.') else {
        return Some(text.split_at(whole));
    };
    let places = rest.bytes().take_while(u8::is_ascii_digit).count();
    if places == 0 {
        return None;
    }
    Some(text.split_at(whole + 1 + places))
}

impl Decimal {
    /// Reads the number part of [`split_number`]; `None` where it has more digits than 128 bits hold.
    pub(super) fn parse(number: &str) -> Option<Self> {
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let fraction = fraction.trim_end_matches('0');
        let mut digits: u128 = 0;
        for digit in whole.bytes().chain(fraction.bytes()) {
            digits = digits
                .checked_mul(10)?
                .checked_add(u128::from(digit - b'0'))?;
        }
        Some(Self {
            digits,
            places: u32::try_from(fraction.len()).ok()?,
        })
    }

    /// This number times `unit`, or `None` where that is not whole (or not below 2^128: then it is far
    /// past anything a device has).
    pub(super) fn times_exact(self, unit: u128) -> Option<u128> {
        // Dividing first keeps the product small: only the part of the unit that the fraction does not
        // use up is multiplied.
        let divisor = 10_u128.checked_pow(self.places)?;
        let common = gcd(unit, divisor);
        let rest = divisor / common;
        if !self.digits.is_multiple_of(rest) {
            return None;
        }
        Some((self.digits / rest).saturating_mul(unit / common))
    }
}

const fn gcd(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn numbers_are_split_from_what_follows() {
        assert_eq!(split_number("1.5G"), Some(("1.5", "G")));
        assert_eq!(split_number("15"), Some(("15", "")));
        assert_eq!(split_number("1.G"), None);
        assert_eq!(split_number(".5"), None);
        assert_eq!(split_number(""), None);
    }

    #[test]
    fn products_are_exact_or_absent() {
        let half = Decimal::parse("0.50").unwrap();
        assert_eq!(half.times_exact(1024), Some(512));
        assert_eq!(half.times_exact(1), None);
        let long = Decimal::parse("0.000000000000000000000000000000000001").unwrap();
        assert_eq!(long.times_exact(1 << 60), None);
        let huge = Decimal::parse("340282366920938463463374607431768211455").unwrap();
        assert_eq!(huge.times_exact(1 << 60), Some(u128::MAX));
        assert_eq!(
            Decimal::parse("340282366920938463463374607431768211456"),
            None
        );
    }
}

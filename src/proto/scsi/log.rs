//! LOG SENSE: a page is a header and parameters of their own length (SPC-5, "Log page format").

use super::Malformed;

/// Page codes.
pub mod page {
    /// Which pages there are.
    pub const SUPPORTED: u8 = 0x00;
    /// Error counters of writes.
    pub const WRITE_ERRORS: u8 = 0x02;
    /// Error counters of reads.
    pub const READ_ERRORS: u8 = 0x03;
    /// Temperature.
    pub const TEMPERATURE: u8 = 0x0d;
    /// Informational exceptions: a failure that the device foresees.
    pub const EXCEPTIONS: u8 = 0x2f;
}

/// A temperature that the device does not know.
const NO_TEMPERATURE: u8 = 0xff;

/// A log page: its parameters in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogPage<'a> {
    /// Byte 0 bits 5:0.
    pub code: u8,
    parameters: Vec<(u16, &'a [u8])>,
}

impl<'a> LogPage<'a> {
    /// Cuts a page into parameters: page length in bytes 2-3; of each parameter the code in bytes 0-1, the
    /// length of its value in byte 3, the value from byte 4. One that is cut short ends the list.
    ///
    /// # Errors
    /// [`Malformed`] where even the header is cut short.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let [code, _, high, low, rest @ ..] = bytes else {
            return Err(Malformed::Truncated {
                what: "a log page",
                needed_bytes: 4,
                got_bytes: bytes.len(),
            });
        };
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        let mut rest = &rest[..length.min(rest.len())];
        let mut parameters = Vec::new();
        while let [high, low, _, length, tail @ ..] = rest {
            let Some((value, next)) = tail.split_at_checked(usize::from(*length)) else {
                break;
            };
            parameters.push((u16::from_be_bytes([*high, *low]), value));
            rest = next;
        }
        Ok(Self {
            code: code & 0x3f,
            parameters,
        })
    }

    /// A parameter's value.
    #[must_use]
    pub fn value(&self, code: u16) -> Option<&'a [u8]> {
        let found = self.parameters.iter().find(|(found, _)| *found == code)?;
        Some(found.1)
    }

    /// A parameter's value as a number of up to 8 bytes; larger ones that do not fit are the most there is.
    #[must_use]
    pub fn number(&self, code: u16) -> Option<u64> {
        let value = self.value(code).filter(|value| !value.is_empty())?;
        let wide = value.iter().try_fold(0_u64, |sum, byte| {
            Some(sum.checked_mul(256)? | u64::from(*byte))
        });
        Some(wide.unwrap_or(u64::MAX))
    }

    fn expect(self, what: &'static str, codes: &[u8]) -> Result<Self, Malformed> {
        if codes.contains(&self.code) {
            Ok(self)
        } else {
            Err(Malformed::OtherPage {
                what,
                got: self.code,
            })
        }
    }
}

/// Temperature log page (SPC-5, "Temperature log page"): byte 5 of parameters 0000h and 0001h.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Temperature {
    /// Now, degrees Celsius.
    pub celsius: Option<u8>,
    /// The highest at which the device may run for long, degrees Celsius.
    pub reference_celsius: Option<u8>,
}

impl Temperature {
    /// Decodes the page.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let page = LogPage::decode(bytes)?;
        let page = page.expect("the temperature log page (0dh)", &[page::TEMPERATURE])?;
        let degrees = |code| {
            let value = *page.value(code)?.get(1)?;
            (value != NO_TEMPERATURE).then_some(value)
        };
        Ok(Self {
            celsius: degrees(0),
            reference_celsius: degrees(1),
        })
    }
}

/// Error counters of reads or writes (SPC-5, "Error counter log pages"), since they were last reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ErrorCounters {
    /// 0000h: corrected without substantial delay.
    pub corrected_fast_count: Option<u64>,
    /// 0001h: corrected with possible delay.
    pub corrected_slow_count: Option<u64>,
    /// 0002h: reads or writes done again.
    pub repeated_count: Option<u64>,
    /// 0003h: corrected in all.
    pub corrected_count: Option<u64>,
    /// 0004h: times that a correction algorithm ran.
    pub algorithm_count: Option<u64>,
    /// 0005h: bytes processed.
    pub processed_bytes: Option<u64>,
    /// 0006h: not corrected.
    pub uncorrected_count: Option<u64>,
}

impl ErrorCounters {
    /// Decodes the page of reads (03h) or of writes (02h).
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let pages = [page::WRITE_ERRORS, page::READ_ERRORS];
        let page =
            LogPage::decode(bytes)?.expect("an error counter log page (02h, 03h)", &pages)?;
        Ok(Self {
            corrected_fast_count: page.number(0),
            corrected_slow_count: page.number(1),
            repeated_count: page.number(2),
            corrected_count: page.number(3),
            algorithm_count: page.number(4),
            processed_bytes: page.number(5),
            uncorrected_count: page.number(6),
        })
    }
}

/// Informational exceptions (SPC-5, "Informational Exceptions log page"), parameter 0000h.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exceptions {
    /// Byte 4: additional sense code; 5Dh where the device foresees its failure, 0 where all is well.
    pub asc: u8,
    /// Byte 5: its qualifier.
    pub ascq: u8,
    /// Byte 6: the last temperature that was read, degrees Celsius.
    pub celsius: Option<u8>,
}

impl Exceptions {
    /// Decodes the page; `None` where it has no such parameter.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn decode(bytes: &[u8]) -> Result<Option<Self>, Malformed> {
        let page = LogPage::decode(bytes)?;
        let what = "the informational exceptions log page (2fh)";
        let page = page.expect(what, &[page::EXCEPTIONS])?;
        Ok(match page.value(0) {
            Some([asc, ascq, rest @ ..]) => Some(Self {
                asc: *asc,
                ascq: *ascq,
                celsius: rest
                    .first()
                    .copied()
                    .filter(|value| *value != NO_TEMPERATURE),
            }),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn temperatures_now_and_at_most() {
        let page = [
            0x0d, 0, 0, 12, 0, 0, 1, 2, 0, 38, 0, 1, 1, 2, 0, 65, 0, 9, 1, 2, 0, 99,
        ];
        let found = Temperature::decode(&page).unwrap();
        // The third parameter lies past the page's own length.
        assert_eq!(
            (found.celsius, found.reference_celsius),
            (Some(38), Some(65))
        );
        let unknown = [0x0d, 0, 0, 6, 0, 0, 1, 2, 0, 0xff];
        let found = Temperature::decode(&unknown).unwrap();
        assert_eq!((found.celsius, found.reference_celsius), (None, None));
        let other = [0x2f, 0, 0, 0];
        assert!(matches!(
            Temperature::decode(&other),
            Err(Malformed::OtherPage { got: 0x2f, .. })
        ));
    }

    #[test]
    fn counters_are_of_any_length() {
        let mut page = vec![0x43, 0, 0, 0]; // SPF is no part of the code
        let values: [&[u8]; 7] = [
            &[1],
            &[1, 0],
            &[0, 0, 0, 3],
            &[0, 0, 0, 0, 0, 0, 0, 4],
            &[5; 9],
            &[0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc],
            &[],
        ];
        for (code, value) in (0_u8..).zip(values) {
            page.extend([0, code, 0, value.len() as u8]);
            page.extend(value);
        }
        page[3] = (page.len() - 4) as u8;
        let found = ErrorCounters::decode(&page).unwrap();
        let wanted = ErrorCounters {
            corrected_fast_count: Some(1),
            corrected_slow_count: Some(256),
            repeated_count: Some(3),
            corrected_count: Some(4),
            algorithm_count: Some(u64::MAX),
            processed_bytes: Some(0x1234_5678_9abc),
            uncorrected_count: None,
        };
        assert_eq!(found, wanted);
    }

    #[test]
    fn a_foreseen_failure_is_told() {
        let page = [0x2f, 0, 0, 8, 0, 0, 3, 4, 0x5d, 0x10, 41, 0];
        let found = Exceptions::decode(&page).unwrap().unwrap();
        assert_eq!(
            (found.asc, found.ascq, found.celsius),
            (0x5d, 0x10, Some(41))
        );
        assert_eq!(Exceptions::decode(&[0x2f, 0, 0, 0]), Ok(None));
        assert!(Exceptions::decode(&[0x2f, 0, 0]).is_err());
    }

    proptest! {
        #[test]
        fn anything_is_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = (Temperature::decode(&bytes), ErrorCounters::decode(&bytes), Exceptions::decode(&bytes));
        }
    }
}

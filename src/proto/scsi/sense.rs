//! Sense data: why a command did not end well, in fixed or descriptor format.

use super::sense_names;
use std::fmt;

/// Sense keys (SPC-5, "Sense key descriptions").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SenseKey(pub u8);

impl SenseKey {
    /// Nothing to tell.
    pub const NO_SENSE: Self = Self(0x0);
    /// The command succeeded, with some recovery by the device.
    pub const RECOVERED_ERROR: Self = Self(0x1);
    /// The logical unit cannot be accessed.
    pub const NOT_READY: Self = Self(0x2);
    /// A flaw of the medium, or an error in what was recorded.
    pub const MEDIUM_ERROR: Self = Self(0x3);
    /// Something in the command was wrong.
    pub const ILLEGAL_REQUEST: Self = Self(0x5);
    /// The device was reset, or something about it has changed.
    pub const UNIT_ATTENTION: Self = Self(0x6);

    /// The key in words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self.0 {
            0x0 => "no sense",
            0x1 => "recovered error",
            0x2 => "not ready",
            0x3 => "medium error",
            0x4 => "hardware error",
            0x5 => "illegal request",
            0x6 => "unit attention",
            0x7 => "data protect",
            0x8 => "blank check",
            0x9 => "vendor specific",
            0xa => "copy aborted",
            0xb => "aborted command",
            0xd => "volume overflow",
            0xe => "miscompare",
            0xf => "completed",
            _ => "reserved sense key",
        }
    }
}

/// Which field of the command was wrong (SPC-5, "Field pointer sense key specific information").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FieldPointer {
    /// C/D, bit 6: in the CDB, otherwise in the parameter data.
    pub in_cdb: bool,
    /// Offset of the first byte that was wrong.
    pub byte: u16,
    /// The leftmost bit of it, where the device says (BPV, bit 3; bits 2:0).
    pub bit: Option<u8>,
}

/// Sense data, whichever format it came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sense {
    /// The key.
    pub key: SenseKey,
    /// Additional sense code.
    pub asc: u8,
    /// Its qualifier.
    pub ascq: u8,
    /// It tells of an earlier command that had already ended (response codes 71h and 73h).
    pub is_deferred: bool,
    /// INFORMATION, where VALID is set: for block devices the LBA of the first block in error.
    pub information: Option<u64>,
    /// ILI: the length asked for is not the length there is.
    pub is_incorrect_length: bool,
    /// With ILLEGAL REQUEST: what was wrong.
    pub field_pointer: Option<FieldPointer>,
}

impl Sense {
    /// Decodes sense data of any length; `None` where there is no response code that is one. Fields past its
    /// end are absent.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let code = bytes.first()? & 0x7f;
        let mut sense = match code {
            0x70 | 0x71 => fixed(bytes),
            0x72 | 0x73 => descriptors(bytes),
            _ => return None,
        };
        sense.is_deferred = code & 1 == 1;
        Some(sense)
    }

    /// The block in error: INFORMATION of a current error.
    #[must_use]
    pub fn lba(&self) -> Option<u64> {
        self.information.filter(|_| !self.is_deferred)
    }
}

impl fmt::Display for Sense {
    /// `medium error, unrecovered read error (3/11/00) at LBA 4660`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&sense_names::in_words(self.key, self.asc, self.ascq))?;
        if let Some(lba) = self.lba() {
            write!(f, " at LBA {lba}")?;
        }
        if self.is_deferred {
            f.write_str(", deferred: of an earlier command")?;
        }
        if let Some(field) = self.field_pointer {
            let place = if field.in_cdb { "CDB" } else { "parameters" };
            write!(f, ", {place} byte {}", field.byte)?;
        }
        Ok(())
    }
}

/// SPC-5, "Fixed format sense data": VALID byte 0 bit 7, ILI byte 2 bit 5, key byte 2 bits 3:0, INFORMATION
/// bytes 3-6, ASC byte 12, ASCQ byte 13, sense key specific bytes 15-17.
fn fixed(bytes: &[u8]) -> Sense {
    let at = |index: usize| bytes.get(index).copied().unwrap_or(0);
    let key = SenseKey(at(2) & 0xf);
    let information = u32::from_be_bytes([at(3), at(4), at(5), at(6)]);
    Sense {
        key,
        asc: at(12),
        ascq: at(13),
        is_deferred: false,
        information: (at(0) & 0x80 != 0).then_some(u64::from(information)),
        is_incorrect_length: at(2) & 0x20 != 0,
        field_pointer: field_pointer(key, [at(15), at(16), at(17)]),
    }
}

/// SPC-5, "Descriptor format sense data": key byte 1 bits 3:0, ASC byte 2, ASCQ byte 3, additional length
/// byte 7, descriptors from byte 8 with their type in byte 0 and their further length in byte 1.
fn descriptors(bytes: &[u8]) -> Sense {
    let at = |index: usize| bytes.get(index).copied().unwrap_or(0);
    let key = SenseKey(at(1) & 0xf);
    let mut sense = Sense {
        key,
        asc: at(2),
        ascq: at(3),
        is_deferred: false,
        information: None,
        is_incorrect_length: false,
        field_pointer: None,
    };
    let rest = bytes.get(8..).unwrap_or_default();
    let mut rest = &rest[..usize::from(at(7)).min(rest.len())];
    while let [kind, length, tail @ ..] = rest {
        let Some((body, next)) = tail.split_at_checked(usize::from(*length)) else {
            break;
        };
        match (kind, body) {
            // Information: VALID byte 2 bit 7, INFORMATION bytes 4-11.
            (0x00, [flags, _, value @ ..]) if flags & 0x80 != 0 => {
                sense.information = value.first_chunk().map(|raw| u64::from_be_bytes(*raw));
            }
            // Sense key specific: bytes 4-6.
            (0x02, [_, _, a, b, c, ..]) => sense.field_pointer = field_pointer(key, [*a, *b, *c]),
            // Block commands: ILI byte 3 bit 5.
            (0x05, [_, flags, ..]) => sense.is_incorrect_length = flags & 0x20 != 0,
            // Direct access block device: VALID and ILI byte 2 bits 7 and 5, sense key specific bytes 4-6,
            // INFORMATION bytes 8-15.
            (0x0d, [flags, _, a, b, c, _, value @ ..]) => {
                sense.is_incorrect_length = flags & 0x20 != 0;
                sense.field_pointer = field_pointer(key, [*a, *b, *c]);
                if flags & 0x80 != 0 {
                    sense.information = value.first_chunk().map(|raw| u64::from_be_bytes(*raw));
                }
            }
            _ => {}
        }
        rest = next;
    }
    sense
}

/// SKSV is bit 7 of the first byte.
fn field_pointer(key: SenseKey, specific: [u8; 3]) -> Option<FieldPointer> {
    let flags = specific[0];
    (key == SenseKey::ILLEGAL_REQUEST && flags & 0x80 != 0).then(|| FieldPointer {
        in_cdb: flags & 0x40 != 0,
        byte: u16::from_be_bytes([specific[1], specific[2]]),
        bit: (flags & 0x08 != 0).then_some(flags & 0x7),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    const MEDIUM: [u8; 18] = [
        0xf0, 0, 0x03, 0x00, 0x00, 0x12, 0x34, 10, 0, 0, 0, 0, 0x11, 0x00, 0, 0, 0, 0,
    ];

    #[test]
    fn a_medium_error_is_told_with_its_block() {
        let sense = Sense::decode(&MEDIUM).unwrap();
        assert_eq!(
            (sense.key, sense.asc, sense.ascq),
            (SenseKey::MEDIUM_ERROR, 0x11, 0)
        );
        assert_eq!(sense.lba(), Some(0x1234));
        let words = "medium error, unrecovered read error (3/11/00) at LBA 4660";
        assert_eq!(sense.to_string(), words);
    }

    #[test]
    fn every_field_of_the_fixed_format() {
        let with = |at: usize, value| {
            let mut bytes = MEDIUM;
            bytes[at] = value;
            Sense::decode(&bytes).unwrap()
        };
        assert_eq!(with(0, 0x70).information, None, "VALID is not set");
        assert!(with(0, 0x71).is_deferred && !with(0, 0x70).is_deferred);
        assert_eq!(with(0, 0xf1).information, Some(0x1234));
        assert_eq!(with(0, 0xf1).lba(), None, "another command's block");
        assert!(with(2, 0x23).is_incorrect_length && !with(2, 0xd3).is_incorrect_length);
        assert_eq!(with(2, 0xf5).key, SenseKey::ILLEGAL_REQUEST);
        assert_eq!((with(12, 0x29).asc, with(13, 0x02).ascq), (0x29, 2));
        assert_eq!(with(15, 0xc0).field_pointer, None, "of this key only");
        let mut bytes = MEDIUM;
        bytes[2] = 0x05;
        bytes[15..].copy_from_slice(&[0xcf, 0x01, 0x02]);
        let pointer = Sense::decode(&bytes).unwrap().field_pointer.unwrap();
        let wanted = FieldPointer {
            in_cdb: true,
            byte: 0x102,
            bit: Some(7),
        };
        assert_eq!(pointer, wanted);
        bytes[15] = 0x80;
        let pointer = Sense::decode(&bytes).unwrap().field_pointer.unwrap();
        assert!(!pointer.in_cdb && pointer.bit.is_none());
        bytes[15] = 0x40;
        assert_eq!(Sense::decode(&bytes).unwrap().field_pointer, None);
    }

    #[test]
    fn every_field_of_the_descriptor_format() {
        let mut bytes = vec![0x72, 0x05, 0x21, 0x00, 0, 0, 0, 0];
        bytes.extend([0x00, 0x0a, 0x80, 0, 0, 0, 0, 1, 0x23, 0x45, 0x67, 0x89]);
        bytes.extend([0x02, 0x06, 0, 0, 0xc8, 0, 2, 0]);
        bytes.extend([0x05, 0x02, 0, 0x20]);
        bytes[7] = (bytes.len() - 8) as u8;
        let sense = Sense::decode(&bytes).unwrap();
        assert_eq!(sense.lba(), Some(0x1_2345_6789));
        assert_eq!((sense.key, sense.asc), (SenseKey::ILLEGAL_REQUEST, 0x21));
        assert!(sense.is_incorrect_length && !sense.is_deferred);
        let pointer = sense.field_pointer.unwrap();
        assert_eq!(
            (pointer.in_cdb, pointer.byte, pointer.bit),
            (true, 2, Some(0))
        );
        let words = "illegal request, logical block address out of range (5/21/00) at LBA 4886718345, CDB byte 2";
        assert_eq!(sense.to_string(), words);
        bytes[10] = 0;
        assert_eq!(Sense::decode(&bytes).unwrap().information, None);
        bytes[7] = 0;
        assert_eq!(Sense::decode(&bytes).unwrap().field_pointer, None);
        bytes[0] = 0x73;
        assert!(Sense::decode(&bytes).unwrap().is_deferred);
    }

    #[test]
    fn the_direct_access_descriptor_holds_it_all() {
        let mut bytes = vec![0xf2, 0x03, 0x11, 0x00, 0, 0, 0, 0x20, 0x0d, 0x1e, 0xa0, 0];
        bytes.extend([0; 4]);
        bytes.extend([0, 0, 0, 1, 0, 0, 0, 2]);
        bytes.extend([0; 16]);
        let sense = Sense::decode(&bytes).unwrap();
        assert_eq!(sense.information, Some(0x1_0000_0002));
        assert!(sense.is_incorrect_length);
    }

    #[test]
    fn what_is_no_sense_data_is_none_and_what_is_cut_short_is_read_as_far_as_it_goes() {
        assert_eq!(Sense::decode(&[]), None);
        assert_eq!(Sense::decode(&[0x00; 18]), None);
        assert_eq!(Sense::decode(&[0x7f; 18]), None);
        let short = Sense::decode(&MEDIUM[..8]).unwrap();
        assert_eq!(
            (short.key, short.asc, short.lba()),
            (SenseKey::MEDIUM_ERROR, 0, Some(0x1234))
        );
    }

    proptest! {
        #[test]
        fn anything_is_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64), code in 0x70_u8..0x74) {
            let _ = Sense::decode(&bytes).map(|sense| sense.to_string());
            let coded = [&[code][..], &bytes].concat();
            prop_assert!(Sense::decode(&coded).is_some());
        }
    }
}

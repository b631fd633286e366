//! Completion status: Status Code Type and Status Code, in words.

use super::status_names;
use std::fmt;

/// The Status Field of a completion (Base, "Completion Queue Entry: Status Field").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct NvmeStatus {
    /// Status Code Type, 3 bits.
    pub sct: u8,
    /// Status Code, 8 bits.
    pub sc: u8,
    /// Command Retry Delay, 2 bits: which of the controller's three retry delays to wait, 0 for none.
    pub crd: u8,
    /// More information is in the error log.
    pub more: bool,
    /// Do Not Retry.
    pub dnr: bool,
}

impl NvmeStatus {
    /// From the status field with the phase tag in bit 0, as it stands in bytes 15:14 of the completion:
    /// SC 8:1, SCT 11:9, CRD 13:12, M 14, DNR 15.
    #[must_use]
    pub const fn from_field(field: u16) -> Self {
        Self {
            sc: ((field >> 1) & 0xff) as u8,
            sct: ((field >> 9) & 0x7) as u8,
            crd: ((field >> 12) & 0x3) as u8,
            more: field >> 14 & 1 == 1,
            dnr: field >> 15 & 1 == 1,
        }
    }

    /// From the 16-byte completion queue entry.
    #[must_use]
    pub const fn from_entry(entry: &[u8; 16]) -> Self {
        Self::from_field(u16::from_le_bytes([entry[14], entry[15]]))
    }

    /// From the result of a passthrough command in Linux: the status field without its phase tag, so SC 7:0,
    /// SCT 10:8, CRD 12:11, M 13, DNR 14. Nothing above it is looked at.
    #[must_use]
    pub const fn from_result(result: i32) -> Self {
        Self::from_field(((result as u32) << 1) as u16)
    }

    /// From type and code alone.
    #[must_use]
    pub const fn new(sct: u8, sc: u8) -> Self {
        Self {
            sct,
            sc,
            crd: 0,
            more: false,
            dnr: false,
        }
    }

    /// Whether the command did what was asked.
    #[must_use]
    pub const fn is_ok(self) -> bool {
        self.sct == 0 && self.sc == 0
    }

    /// The type in words (Base, "Status Code – Status Code Type Values").
    #[must_use]
    pub const fn type_name(self) -> &'static str {
        match self.sct {
            0 => "generic",
            1 => "command specific",
            2 => "media and data integrity",
            3 => "path related",
            7 => "vendor specific",
            _ => "reserved type",
        }
    }

    /// The code in words; absent where the specification leaves it open.
    #[must_use]
    pub fn code_name(self) -> Option<&'static str> {
        status_names::name(self.sct, self.sc)
    }
}

impl fmt::Display for NvmeStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let code = match (self.code_name(), self.sc >= 0xc0) {
            (Some(name), _) => name,
            (None, true) => "vendor specific code",
            (None, false) => "unknown code",
        };
        write!(
            f,
            "{}: {code} ({:#x}/{:#04x})",
            self.type_name(),
            self.sct,
            self.sc
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_bit_of_the_field_is_where_the_figure_says() {
        assert_eq!(NvmeStatus::from_field(0x0001), NvmeStatus::new(0, 0)); // the phase tag is no status
        assert_eq!(NvmeStatus::from_field(0x01fe).sc, 0xff);
        assert_eq!(NvmeStatus::from_field(0x0e00).sct, 0x7);
        assert_eq!(NvmeStatus::from_field(0x3000).crd, 0x3);
        assert!(NvmeStatus::from_field(0x4000).more && !NvmeStatus::from_field(0x4000).dnr);
        assert!(NvmeStatus::from_field(0x8000).dnr && !NvmeStatus::from_field(0x8000).more);
        let mut entry = [0; 16];
        (entry[14], entry[15]) = (0x02, 0x05); // SC 0x81, SCT 2: unrecovered read error
        assert_eq!(NvmeStatus::from_entry(&entry), NvmeStatus::new(2, 0x81));
    }

    #[test]
    fn statuses_are_said_in_words() {
        assert_eq!(
            NvmeStatus::new(2, 0x81).to_string(),
            "media and data integrity: unrecovered read error (0x2/0x81)"
        );
        assert_eq!(
            NvmeStatus::new(0, 0x80).to_string(),
            "generic: LBA out of range (0x0/0x80)"
        );
        assert_eq!(
            NvmeStatus::new(1, 0x82).to_string(),
            "command specific: attempted write to read only range (0x1/0x82)"
        );
        assert_eq!(
            NvmeStatus::new(3, 0x02).to_string(),
            "path related: asymmetric access inaccessible (0x3/0x02)"
        );
        assert_eq!(
            NvmeStatus::new(7, 0xc1).to_string(),
            "vendor specific: vendor specific code (0x7/0xc1)"
        );
        assert_eq!(
            NvmeStatus::new(5, 0x10).to_string(),
            "reserved type: unknown code (0x5/0x10)"
        );
    }

    proptest! {
        #[test]
        fn any_field_decodes_and_prints(field: u16) {
            let status = NvmeStatus::from_field(field);
            prop_assert!(!status.to_string().is_empty());
            prop_assert_eq!(status.is_ok(), field & 0x0ffe == 0);
        }
    }
}

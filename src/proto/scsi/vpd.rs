//! Vital product data: the pages that name a device, 80h (SPC-5, "Unit Serial Number VPD page") and 83h ("Device
//! Identification VPD page"; designators), which the kernel exports in raw bytes too, the list of pages 00h
//! ("Supported VPD Pages"), and what SBC-4 adds: B0h ("Block Limits"), B1h ("Block Device Characteristics"), B2h
//! ("Logical Block Provisioning").

use super::{Fields, Malformed};

/// Page codes.
pub mod page {
    /// Which pages there are.
    pub const SUPPORTED: u8 = 0x00;
    /// Serial number.
    pub const SERIAL: u8 = 0x80;
    /// Names.
    pub const IDENTIFICATION: u8 = 0x83;
    /// Limits of transfers.
    pub const LIMITS: u8 = 0xb0;
    /// Rotation and form.
    pub const CHARACTERISTICS: u8 = 0xb1;
    /// Deallocation.
    pub const PROVISIONING: u8 = 0xb2;
}

/// Codes of the pages that the device has, of page 00h; none where it is not that page.
#[must_use]
pub fn supported(page: &[u8]) -> &[u8] {
    body(page, page::SUPPORTED).unwrap_or_default()
}

/// Limits of transfers (page B0h). A limit of 0 is none, or not told: `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BlockLimits {
    /// MAXIMUM TRANSFER LENGTH, bytes 8-11.
    pub max_transfer_blocks: Option<u32>,
    /// OPTIMAL TRANSFER LENGTH, bytes 12-15.
    pub optimal_transfer_blocks: Option<u32>,
    /// MAXIMUM UNMAP LBA COUNT, bytes 20-23.
    pub max_unmap_blocks: Option<u32>,
    /// MAXIMUM UNMAP BLOCK DESCRIPTOR COUNT, bytes 24-27.
    pub max_unmap_descriptors: Option<u32>,
    /// OPTIMAL UNMAP GRANULARITY, bytes 28-31.
    pub unmap_granularity_blocks: Option<u32>,
    /// MAXIMUM WRITE SAME LENGTH, bytes 36-43.
    pub max_write_same_blocks: Option<u64>,
}

impl BlockLimits {
    /// Decodes the page. Devices of SBC-2 end it after byte 15.
    ///
    /// # Errors
    /// [`Malformed`] where it is cut short or another page.
    pub fn decode(page: &[u8]) -> Result<Self, Malformed> {
        let fields = block_page("the block limits VPD page (b0h)", page, page::LIMITS, 16)?;
        let limit = |at: usize| {
            let told = fields.0.len() >= at + 4;
            told.then(|| fields.u32(at)).filter(|value| *value != 0)
        };
        Ok(Self {
            max_transfer_blocks: limit(8),
            optimal_transfer_blocks: limit(12),
            max_unmap_blocks: limit(20),
            max_unmap_descriptors: limit(24),
            unmap_granularity_blocks: limit(28),
            max_write_same_blocks: (fields.0.len() >= 44)
                .then(|| u64::from(fields.u32(36)) << 32 | u64::from(fields.u32(40)))
                .filter(|value| *value != 0),
        })
    }
}

/// MEDIUM ROTATION RATE of page B1h, bytes 4-5.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rotation {
    /// 0000h, or a reserved value.
    NotReported,
    /// 0001h: nothing turns.
    Solid,
    /// 0401h to FFFEh: rotations a minute.
    Rpm(u16),
}

impl Rotation {
    /// Decodes page B1h.
    ///
    /// # Errors
    /// [`Malformed`] where it is cut short or another page.
    pub fn decode(page: &[u8]) -> Result<Self, Malformed> {
        let what = "the block device characteristics VPD page (b1h)";
        let fields = block_page(what, page, page::CHARACTERISTICS, 6)?;
        Ok(match fields.u16(4) {
            1 => Self::Solid,
            rate @ 0x0401..=0xfffe => Self::Rpm(rate),
            _ => Self::NotReported,
        })
    }
}

/// How blocks can be deallocated (page B2h, byte 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Provisioning {
    /// LBPU, bit 7: by UNMAP.
    pub unmap: bool,
    /// LBPWS, bit 6: by WRITE SAME (16).
    pub write_same_16: bool,
    /// LBPWS10, bit 5: by WRITE SAME (10).
    pub write_same_10: bool,
    /// LBPRZ, bits 4:2 not zero: deallocated blocks read as zeros, or as a pattern of the device's.
    pub reads_pattern: bool,
}

impl Provisioning {
    /// Decodes the page.
    ///
    /// # Errors
    /// [`Malformed`] where it is cut short or another page.
    pub fn decode(page: &[u8]) -> Result<Self, Malformed> {
        let what = "the logical block provisioning VPD page (b2h)";
        let fields = block_page(what, page, page::PROVISIONING, 6)?;
        Ok(Self {
            unmap: fields.bit(5, 7),
            write_same_16: fields.bit(5, 6),
            write_same_10: fields.bit(5, 5),
            reads_pattern: fields.u8(5) >> 2 & 0x7 != 0,
        })
    }
}

/// A page that must be there, cut to its own length.
fn block_page<'a>(
    what: &'static str,
    page: &'a [u8],
    code: u8,
    needed_bytes: usize,
) -> Result<Fields<'a>, Malformed> {
    let header = Fields::new(what, page, 4)?;
    if header.u8(1) != code {
        return Err(Malformed::OtherPage {
            what,
            got: header.u8(1),
        });
    }
    let length = 4 + usize::from(header.u16(2));
    Fields::new(what, &page[..length.min(page.len())], needed_bytes)
}

/// Serial number of page 80h; `None` where the page is not one or the serial is blank.
#[must_use]
pub fn serial(page: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(body(page, 0x80)?)
        .trim_matches(['\0', ' '])
        .to_owned();
    (!text.is_empty()).then_some(text)
}

/// Names of the logical unit in page 83h, in the kernel's spelling (`naa.5000…`, `eui.…`, `t10.…`).
/// Names of ports and targets (association 1 and 2) are not the device's and are left out.
#[must_use]
pub fn identities(page: &[u8]) -> Vec<String> {
    let Some(mut rest) = body(page, 0x83) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    while let [code_set, kind, _, length, tail @ ..] = rest {
        let Some((name, next)) = tail.split_at_checked(usize::from(*length)) else {
            break;
        };
        if kind & 0x30 == 0 {
            found.extend(spelled(code_set & 0x0f, kind & 0x0f, name));
        }
        rest = next;
    }
    found
}

/// The page's payload by its own length (bytes 2-3), cut where the kernel stored less.
fn body(page: &[u8], code: u8) -> Option<&[u8]> {
    let [_, found, high, low, rest @ ..] = page else {
        return None;
    };
    let length = usize::from(u16::from_be_bytes([*high, *low]));
    (*found == code).then(|| &rest[..length.min(rest.len())])
}

/// Designator types 1 (T10 vendor), 2 (EUI-64), 3 (NAA), 8 (SCSI name string), 10 (UUID).
fn spelled(code_set: u8, kind: u8, name: &[u8]) -> Option<String> {
    let blank = name.iter().all(|byte| *byte == 0 || *byte == b' ');
    if blank {
        return None;
    }
    let text = || {
        let text = String::from_utf8_lossy(name);
        text.trim_matches(['\0', ' ']).to_owned()
    };
    match (kind, code_set) {
        (1, 2 | 3) => Some(format!("t10.{}", text())),
        (2, 1) => Some(format!("eui.{}", hex(name))),
        (3, 1) => Some(format!("naa.{}", hex(name))),
        (8, 3) => Some(text().to_lowercase()),
        // SPC-5 7.6.1.11: byte 0 is the designator's own type, byte 1 reserved, then 16 bytes.
        (10, 1) if name.len() == 18 => Some(format!("uuid.{}", hex(&name[2..]))),
        _ => None,
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    /// A page of this length with these bytes set.
    fn paged(code: u8, bytes: usize, set: &[(usize, &[u8])]) -> Vec<u8> {
        let mut page = vec![0; bytes];
        (page[1], page[3]) = (code, (bytes - 4) as u8);
        for (at, value) in set {
            page[*at..at + value.len()].copy_from_slice(value);
        }
        page
    }

    #[test]
    fn pages_are_listed() {
        assert_eq!(
            supported(&[0, 0, 0, 3, 0x00, 0x80, 0x83, 0xb0]),
            [0x00, 0x80, 0x83]
        );
        assert_eq!(supported(&[0, 0x80, 0, 1, 0x41]), [0_u8; 0]);
    }

    #[test]
    fn every_limit_is_where_the_table_says() {
        let limits = |set: &[(usize, &[u8])]| BlockLimits::decode(&paged(0xb0, 64, set)).unwrap();
        assert_eq!(limits(&[]), BlockLimits::default());
        let value = &[0x01, 0x23, 0x45, 0x67][..];
        let number = Some(0x0123_4567);
        assert_eq!(limits(&[(8, value)]).max_transfer_blocks, number);
        assert_eq!(limits(&[(12, value)]).optimal_transfer_blocks, number);
        assert_eq!(limits(&[(20, value)]).max_unmap_blocks, number);
        assert_eq!(limits(&[(24, value)]).max_unmap_descriptors, number);
        assert_eq!(limits(&[(28, value)]).unmap_granularity_blocks, number);
        let wide = &[0, 0, 0, 2, 0x01, 0x23, 0x45, 0x67][..];
        let same = limits(&[(36, wide)]).max_write_same_blocks;
        assert_eq!(same, Some(0x2_0123_4567));
        assert_eq!(
            limits(&[(36, &wide[..4])]).max_write_same_blocks,
            Some(2 << 32)
        );
        let cut = BlockLimits::decode(&paged(0xb0, 40, &[(36, &wide[..4])])).unwrap();
        assert_eq!(cut.max_write_same_blocks, None);
        let old = BlockLimits::decode(&paged(0xb0, 16, &[(8, value)])).unwrap();
        assert_eq!(
            (old.max_transfer_blocks, old.max_unmap_blocks),
            (number, None)
        );
        assert!(matches!(
            BlockLimits::decode(&paged(0xb1, 64, &[])),
            Err(Malformed::OtherPage { got: 0xb1, .. })
        ));
    }

    #[test]
    fn what_turns_says_how_fast() {
        let rate = |high, low| Rotation::decode(&paged(0xb1, 64, &[(4, &[high, low])])).unwrap();
        assert_eq!(rate(0, 0), Rotation::NotReported);
        assert_eq!(rate(0, 1), Rotation::Solid);
        assert_eq!(rate(0x04, 0x00), Rotation::NotReported);
        assert_eq!(rate(0x29, 0x04), Rotation::Rpm(10_500));
        assert_eq!(rate(0xff, 0xff), Rotation::NotReported);
    }

    #[test]
    fn ways_to_deallocate() {
        let ways = |byte| Provisioning::decode(&paged(0xb2, 8, &[(5, &[byte])])).unwrap();
        assert!(ways(0x80).unmap && !ways(0x7f).unmap);
        assert!(ways(0x40).write_same_16 && !ways(0xbf).write_same_16);
        assert!(ways(0x20).write_same_10 && !ways(0xdf).write_same_10);
        assert!(ways(0x04).reads_pattern && ways(0x10).reads_pattern && !ways(0xe3).reads_pattern);
        assert!(Provisioning::decode(&[0, 0xb2, 0, 1, 0]).is_err());
    }

    #[test]
    fn a_serial_is_trimmed_and_a_blank_one_is_none() {
        assert_eq!(
            serial(b"\0\x80\0\x0a  Z1F0ABCD"),
            Some("Z1F0ABCD".to_owned())
        );
        assert_eq!(serial(b"\0\x80\0\x04    "), None);
        assert_eq!(serial(b"\0\x83\0\x04ABCD"), None);
        assert_eq!(serial(b"\0\x80"), None);
    }

    #[test]
    fn names_of_the_unit_are_kept_and_those_of_its_ports_are_not() {
        let mut page = vec![0x00, 0x83, 0x00, 0x00];
        // Association 0, NAA 5: the drive.
        page.extend([
            0x01, 0x03, 0x00, 0x08, 0x50, 0x00, 0xc5, 0x00, 0x11, 0x22, 0x33, 0x44,
        ]);
        // Association 1 (bits 5-4 = 01), SAS protocol, PIV: the port. Differs on a drive's two ports.
        page.extend([
            0x61, 0x93, 0x00, 0x08, 0x50, 0x00, 0xc5, 0x00, 0x11, 0x22, 0x33, 0x45,
        ]);
        // T10 vendor, ASCII.
        page.extend([0x02, 0x01, 0x00, 0x08]);
        page.extend(b"ATA DISK");
        let length = page.len() - 4;
        page[3] = u8::try_from(length).unwrap_or_default();
        assert_eq!(identities(&page), ["naa.5000c50011223344", "t10.ATA DISK"]);
    }

    #[test]
    fn uuid_and_eui_designators_are_spelled_out() {
        let mut page = vec![0x00, 0x83, 0x00, 34];
        page.extend([
            0x01, 0x02, 0x00, 0x08, 0, 0x25, 0x38, 0x5b, 0x91, 0xb0, 0x0f, 0x01,
        ]);
        page.extend([0x01, 0x0a, 0x00, 18, 0x10, 0x00]);
        page.extend(1..=16);
        assert_eq!(
            identities(&page),
            [
                "eui.0025385b91b00f01",
                "uuid.0102030405060708090a0b0c0d0e0f10"
            ]
        );
    }

    #[test]
    fn a_blank_name_names_nothing_and_a_cut_page_ends_quietly() {
        assert_eq!(
            identities(&[0, 0x83, 0, 8, 1, 3, 0, 4, 0, 0, 0, 0]),
            Vec::<String>::new()
        );
        assert_eq!(
            identities(&[0, 0x83, 0, 99, 1, 3, 0, 8, 0x50, 0]),
            Vec::<String>::new()
        );
    }

    proptest! {
        #[test]
        fn any_page_is_read_without_panic(page in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = (serial(&page), identities(&page), supported(&page));
            let _ = (BlockLimits::decode(&page), Rotation::decode(&page), Provisioning::decode(&page));
        }
    }
}

//! MODE SENSE: the header of its data, and the caching page.

use super::{Fields, Malformed};

/// Page code of the caching page.
const CACHING: u8 = 0x08;
/// What we read of the caching page ends with byte 12 (NV_DIS).
const CACHING_BYTES: usize = 13;

/// Header of mode parameter data (SPC-5, "Mode parameter list format").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModeHeader {
    /// WP, bit 7 of the device-specific parameter: the medium is write protected (SBC-4).
    pub is_write_protected: bool,
    /// DPOFUA, bit 4 of it: reads and writes may ask for Force Unit Access.
    pub has_fua: bool,
    /// Where the first page begins.
    pub page_at_bytes: usize,
}

impl ModeHeader {
    /// Header of 4 bytes: device-specific parameter in byte 2, length of the block descriptors in byte 3.
    ///
    /// # Errors
    /// [`Malformed`] where it is cut short.
    pub fn decode_6(bytes: &[u8]) -> Result<Self, Malformed> {
        let fields = Fields::new("MODE SENSE (6) data", bytes, 4)?;
        Ok(Self::of(fields.u8(2), 4 + usize::from(fields.u8(3))))
    }

    /// Header of 8 bytes: device-specific parameter in byte 3, length of the block descriptors in bytes 6-7.
    ///
    /// # Errors
    /// [`Malformed`] where it is cut short.
    pub fn decode_10(bytes: &[u8]) -> Result<Self, Malformed> {
        let fields = Fields::new("MODE SENSE (10) data", bytes, 8)?;
        Ok(Self::of(fields.u8(3), 8 + usize::from(fields.u16(6))))
    }

    const fn of(specific: u8, page_at_bytes: usize) -> Self {
        Self {
            is_write_protected: specific & 0x80 != 0,
            has_fua: specific & 0x10 != 0,
            page_at_bytes,
        }
    }
}

/// The caching page (SBC-4, "Caching mode page").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caching {
    /// WCE, byte 2 bit 2: a write may end before its data are on the medium.
    pub write_cache: bool,
    /// RCD, byte 2 bit 0, the other way round: reads may be answered from the cache.
    pub read_cache: bool,
    /// DRA, byte 12 bit 5, the other way round: the device may read ahead.
    pub read_ahead: bool,
    /// NV_DIS, byte 12 bit 0: the non-volatile cache is switched off.
    pub non_volatile_disabled: bool,
}

impl Caching {
    /// Decodes the page itself, without the header of the mode data. The page code is byte 0 bits 5:0.
    ///
    /// # Errors
    /// [`Malformed`] where it is cut short or another page.
    pub fn decode(page: &[u8]) -> Result<Self, Malformed> {
        // Pages of SCSI-2 end after byte 11: bits past that are not set.
        let fields = Fields::new("the caching mode page", page, 3)?;
        if fields.u8(0) & 0x3f != CACHING {
            return Err(Malformed::OtherPage {
                what: "the caching mode page (08h)",
                got: fields.u8(0) & 0x3f,
            });
        }
        let last = |bit| page.len() >= CACHING_BYTES && fields.bit(12, bit);
        Ok(Self {
            write_cache: fields.bit(2, 2),
            read_cache: !fields.bit(2, 0),
            read_ahead: !last(5),
            non_volatile_disabled: last(0),
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn both_headers_lead_to_the_page() {
        let short = ModeHeader::decode_6(&[0x17, 0, 0x90, 8]).unwrap();
        assert!(short.is_write_protected && short.has_fua && short.page_at_bytes == 12);
        let long = ModeHeader::decode_10(&[0, 0x1a, 0, 0x10, 0, 0, 1, 2]).unwrap();
        assert!(!long.is_write_protected && long.has_fua);
        assert_eq!(long.page_at_bytes, 8 + 0x102);
        assert!(!ModeHeader::decode_6(&[0x17, 0, 0x80, 8]).unwrap().has_fua);
        assert!(ModeHeader::decode_6(&[0; 3]).is_err() && ModeHeader::decode_10(&[0; 7]).is_err());
    }

    #[test]
    fn every_bit_of_the_caching_page() {
        let mut page = [0; 20];
        (page[0], page[1]) = (0x88, 0x12); // PS is no part of the code
        let plain = Caching::decode(&page).unwrap();
        assert!(!plain.write_cache && plain.read_cache && plain.read_ahead);
        page[2] = 0x04;
        assert!(Caching::decode(&page).unwrap().write_cache);
        page[2] = 0x01;
        let found = Caching::decode(&page).unwrap();
        assert!(!found.read_cache && !found.write_cache);
        page[12] = 0x20;
        let found = Caching::decode(&page).unwrap();
        assert!(!found.read_ahead && !found.non_volatile_disabled);
        page[12] = 0x01;
        let found = Caching::decode(&page).unwrap();
        assert!(found.read_ahead && found.non_volatile_disabled);
        page[0] = 0x0a;
        assert!(matches!(
            Caching::decode(&page),
            Err(Malformed::OtherPage { got: 0x0a, .. })
        ));
    }

    proptest! {
        #[test]
        fn anything_is_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let _ = (ModeHeader::decode_6(&bytes), ModeHeader::decode_10(&bytes), Caching::decode(&bytes));
        }
    }
}

//! What SATA drives count of errors on their link: the log of phy event counters, and SMART attribute 199.

/// Size of both answers.
pub const PAGE_BYTES: usize = 512;
/// SMART attribute of CRC errors on the way between drive and host (`UDMA_CRC_Error_Count` in every list of
/// attributes; the numbers are the makers' convention, not ACS').
const CRC_ATTRIBUTE: u8 = 199;
/// Places for attributes in the answer to SMART READ DATA (SFF-8035i, 2.3): 30 of 12 bytes from byte 2.
const ATTRIBUTES: (usize, usize, usize) = (2, 30, 12);

/// Phy event counters (Serial ATA 3.x, "Phy event counters, identifiers") that tell of errors.
const EVENTS: [(u16, &str); 15] = [
    (0x001, "commands failed by interface CRC"),
    (0x002, "R_ERR for data FISes"),
    (0x003, "R_ERR for data FISes to the host"),
    (0x004, "R_ERR for data FISes to the drive"),
    (0x005, "R_ERR for other FISes"),
    (0x006, "R_ERR for other FISes to the host"),
    (0x007, "R_ERR for other FISes to the drive"),
    (0x008, "retries of FISes to the host"),
    (0x009, "losses of the phy"),
    (0x00a, "resets of the link"),
    (0x00b, "CRC errors in FISes to the drive"),
    (0x00d, "other errors in FISes to the drive"),
    (0x00f, "CRC errors in data FISes to the drive"),
    (0x010, "other errors in data FISes to the drive"),
    (0x012, "CRC errors in other FISes to the drive"),
];

/// What IDENTIFY DEVICE says of the counters that a drive keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keeps {
    /// Phy event counters (word 76 bit 10).
    pub events: bool,
    /// SMART, enabled (word 82 bit 0, word 85 bit 0).
    pub smart: bool,
}

impl Keeps {
    /// From the words of IDENTIFY DEVICE (ACS-4, 7.13.6). Words of 0 and FFFFh say nothing.
    #[must_use]
    pub fn of(words: &[u16]) -> Self {
        let word = |at: usize| words.get(at).copied().filter(|word| *word != 0xffff);
        let has = |at: usize, bit: u16| word(at).is_some_and(|word| word & 1 << bit != 0);
        Self {
            events: has(76, 10),
            smart: has(82, 0) && has(85, 0),
        }
    }
}

/// The words of IDENTIFY DEVICE: the lower byte first (ACS-4, 3.4.8). Not every drive has its checksum (word 255).
///
/// # Errors
/// [`BadPage::Short`].
pub fn identify_words(page: &[u8]) -> Result<Vec<u16>, BadPage> {
    let page = page.get(..PAGE_BYTES).ok_or(BadPage::Short(page.len()))?;
    let words = page.as_chunks().0.iter();
    Ok(words.map(|bytes| u16::from_le_bytes(*bytes)).collect())
}

/// Why an answer is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadPage {
    /// Shorter than a sector.
    #[error("the answer has {0} of {PAGE_BYTES} bytes")]
    Short(usize),
    /// Its bytes do not add up to 0.
    #[error("the checksum of the answer is wrong")]
    Checksum,
    /// The attribute is not kept.
    #[error("the drive keeps no SMART attribute {CRC_ATTRIBUTE}")]
    NoAttribute,
}

/// The last byte makes all of them add up to 0 (ACS-4, "data structure checksum").
fn whole(page: &[u8]) -> Result<&[u8], BadPage> {
    let page = page.get(..PAGE_BYTES).ok_or(BadPage::Short(page.len()))?;
    let sum = page.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
    if sum == 0 {
        Ok(page)
    } else {
        Err(BadPage::Checksum)
    }
}

/// The raw value of attribute 199 in the answer to SMART READ DATA.
///
/// # Errors
/// [`BadPage`].
pub fn crc_errors(page: &[u8]) -> Result<u64, BadPage> {
    let page = whole(page)?;
    let (first, count, size) = ATTRIBUTES;
    let mut all = page[first..first + count * size].chunks_exact(size);
    // Byte 0 is the number, bytes 5 to 10 the raw value, the lowest first.
    let own = all.find(|attribute| attribute[0] == CRC_ATTRIBUTE);
    let own = own.ok_or(BadPage::NoAttribute)?;
    Ok(little(&own[5..11]))
}

/// The counters of log 11h that are known, with their names: an identifier of two bytes, whose bits 14:12 are the
/// words of the value that follows; identifier 0 ends the list.
///
/// # Errors
/// [`BadPage`].
pub fn phy_events(page: &[u8]) -> Result<Vec<(&'static str, u64)>, BadPage> {
    let page = whole(page)?;
    let mut found = Vec::new();
    let mut rest = &page[4..PAGE_BYTES - 1];
    while let [low, high, after @ ..] = rest {
        let id = u16::from_le_bytes([*low, *high]);
        let bytes = usize::from(id >> 12 & 0x7) * 2;
        if id == 0 || bytes > after.len() {
            break;
        }
        let (value, next) = after.split_at(bytes);
        // Bit 15: a counter of the maker's own.
        let known = EVENTS.iter().find(|(known, _)| *known == id & 0x8fff);
        if let Some((_, name)) = known.filter(|_| bytes > 0) {
            found.push((*name, little(value)));
        }
        rest = next;
    }
    Ok(found)
}

/// The lowest byte first; of more than eight the lowest eight.
fn little(bytes: &[u8]) -> u64 {
    let low = bytes.iter().take(8).rev();
    low.fold(0, |value, byte| value << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn summed(mut page: Vec<u8>) -> Vec<u8> {
        page.resize(PAGE_BYTES, 0);
        let sum = page[..PAGE_BYTES - 1]
            .iter()
            .fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
        page[PAGE_BYTES - 1] = sum.wrapping_neg();
        page
    }

    #[test]
    fn the_raw_value_of_attribute_199_is_found() {
        // Structure revision 10h, then attributes 9 (power-on hours) and 199.
        let mut page = vec![0x10, 0];
        page.extend([9, 0x32, 0, 100, 100, 0x39, 0x30, 0, 0, 0, 0, 0]);
        page.extend([199, 0x3e, 0, 200, 200, 0x02, 0x01, 0, 0, 0, 0, 0]);
        let page = summed(page);
        assert_eq!(crc_errors(&page), Ok(0x102));
        let mut broken = page.clone();
        broken[20] ^= 1;
        assert_eq!(crc_errors(&broken), Err(BadPage::Checksum));
        assert_eq!(crc_errors(&page[..511]), Err(BadPage::Short(511)));
        assert_eq!(crc_errors(&summed(vec![0x10])), Err(BadPage::NoAttribute));
    }

    #[test]
    fn counters_of_any_width_are_read_and_unknown_ones_passed_over() {
        let mut page = vec![0; 4];
        // 001h of two bytes, a maker's of four, 009h of four, 00Bh of eight; then the end.
        page.extend([0x01, 0x10, 0x07, 0x00]);
        page.extend([0x01, 0xa0, 1, 2, 3, 4]);
        page.extend([0x09, 0x20, 0x00, 0x00, 0x01, 0x00]);
        page.extend([0x0b, 0x40, 5, 0, 0, 0, 0, 0, 0, 0]);
        page.extend([0, 0, 0x02, 0x10, 9, 0]);
        assert_eq!(
            phy_events(&summed(page)).unwrap(),
            [
                ("commands failed by interface CRC", 7),
                ("losses of the phy", 65_536),
                ("CRC errors in FISes to the drive", 5)
            ]
        );
        assert_eq!(phy_events(&summed(vec![])), Ok(vec![]));
    }

    #[test]
    fn what_a_drive_keeps_is_in_its_identify_data() {
        let mut words = [0_u16; 256];
        words[76] = 1 << 10;
        words[82] = 1;
        assert_eq!(
            Keeps::of(&words),
            Keeps {
                events: true,
                smart: false
            }
        );
        words[85] = 1;
        assert!(Keeps::of(&words).smart);
        words[76] = 0xffff;
        assert!(!Keeps::of(&words).events);
        assert!(!Keeps::of(&words[..10]).smart);
    }

    proptest! {
        #[test]
        fn no_page_is_a_panic(page in proptest::collection::vec(any::<u8>(), 0..600)) {
            let _ = (crc_errors(&page), phy_events(&page));
            let summed = summed(page);
            let _ = crc_errors(&summed);
            prop_assert!(phy_events(&summed).is_ok());
        }
    }
}

//! Log pages 01h (Error Information) and 03h (Firmware Slot Information), and the Active Namespace ID list.

use super::{Fields, NvmeStatus, Truncated};

/// Log identifier of the error log (Base, "Get Log Page – Log Page Identifiers").
pub const ERROR_LOG_ID: u8 = 0x01;
/// Length of one entry of the error log in bytes.
pub const ERROR_ENTRY_BYTES: usize = 64;
/// Log identifier of the firmware slots.
pub const FIRMWARE_LOG_ID: u8 = 0x03;
/// Length of the firmware slot log in bytes.
pub const FIRMWARE_LOG_BYTES: usize = 512;
/// Length of the Active Namespace ID list in bytes (Identify, CNS 02h).
pub const NAMESPACE_LIST_BYTES: usize = 4096;

/// One entry of the error log (Base, "Error Information Log Entry Data Structure"), newest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorEntry {
    /// Bytes 7:0: a number that only grows.
    pub error_number: u64,
    /// Bytes 9:8: the submission queue; absent where the error is of no command.
    pub queue_id: Option<u16>,
    /// Bytes 11:10: the command; absent where the error is of no command.
    pub command_id: Option<u16>,
    /// Bytes 13:12: how it ended.
    pub status: NvmeStatus,
    /// Bytes 15:14: the byte (bits 7:0) and bit (bits 10:8) of the command that is at fault, where one is.
    pub parameter: Option<(u8, u8)>,
    /// Bytes 23:16: the first block that failed.
    pub lba: u64,
    /// Bytes 27:24: the namespace.
    pub nsid: u32,
    /// Byte 31: the command's opcode.
    pub opcode: u8,
}

impl ErrorEntry {
    /// Decodes one entry; `None` for one that was never filled (error number 0).
    ///
    /// # Errors
    /// [`Truncated`] where there are fewer than 64 bytes.
    pub fn decode(bytes: &[u8]) -> Result<Option<Self>, Truncated> {
        let at = Fields::new("Error Information log entry", bytes, ERROR_ENTRY_BYTES)?;
        let error_number = at.u64(0);
        if error_number == 0 {
            return Ok(None);
        }
        let set = |value: u16| (value != 0xffff).then_some(value);
        let location = at.u16(14);
        Ok(Some(Self {
            error_number,
            queue_id: set(at.u16(8)),
            command_id: set(at.u16(10)),
            status: NvmeStatus::from_field(at.u16(12)),
            parameter: set(location)
                .map(|location| ((location & 0xff) as u8, (location >> 8 & 0x7) as u8)),
            lba: at.u64(16),
            nsid: at.u32(24),
            opcode: at.u8(31),
        }))
    }

    /// Decodes all entries of a log that are filled; what is left at the end and too short for one is not
    /// looked at.
    #[must_use]
    pub fn decode_all(bytes: &[u8]) -> Vec<Self> {
        bytes
            .chunks_exact(ERROR_ENTRY_BYTES)
            .filter_map(|entry| Self::decode(entry).ok().flatten())
            .collect()
    }
}

/// The firmware slots (Base, "Firmware Slot Information Log Page").
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FirmwareSlots {
    /// Byte 0 bits 2:0: the slot that runs, 1 to 7; 0 is what no controller says.
    pub active: u8,
    /// Byte 0 bits 6:4: the slot that runs after the next reset; absent: no change.
    pub next: Option<u8>,
    /// Bytes 63:8: revisions in slots 1 to 7; absent where a slot is empty.
    pub revisions: [Option<String>; 7],
}

impl FirmwareSlots {
    /// Decodes the page.
    ///
    /// # Errors
    /// [`Truncated`] where there are fewer than 512 bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, Truncated> {
        let at = Fields::new("Firmware Slot Information log", bytes, FIRMWARE_LOG_BYTES)?;
        let info = at.u8(0);
        Ok(Self {
            active: info & 0x7,
            next: Some(info >> 4 & 0x7).filter(|slot| *slot != 0),
            revisions: std::array::from_fn(|slot| {
                Some(at.text(8 + slot * 8, 8)).filter(|text| !text.is_empty())
            }),
        })
    }
}

/// The Active Namespace ID list (Base, "Namespace List Format"): ascending, ended by the first 0, at most
/// 1024 of them.
///
/// # Errors
/// [`Truncated`] where there are fewer than 4096 bytes.
pub fn active_namespaces(bytes: &[u8]) -> Result<Vec<u32>, Truncated> {
    let at = Fields::new("Active Namespace ID list", bytes, NAMESPACE_LIST_BYTES)?;
    Ok((0..NAMESPACE_LIST_BYTES / 4)
        .map(|index| at.u32(index * 4))
        .take_while(|nsid| *nsid != 0)
        .collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn entry(set: &[(usize, &[u8])]) -> ErrorEntry {
        let mut bytes = [0; ERROR_ENTRY_BYTES];
        bytes[0] = 1;
        for (at, value) in set {
            bytes[*at..*at + value.len()].copy_from_slice(value);
        }
        ErrorEntry::decode(&bytes).unwrap().unwrap()
    }

    #[test]
    fn every_field_of_an_error_is_where_the_figure_says() {
        let number = entry(&[(0, &[8, 7, 6, 5, 4, 3, 2, 1])]).error_number;
        assert_eq!(number, 0x0102_0304_0506_0708);
        assert_eq!(entry(&[(8, &[2, 1])]).queue_id, Some(0x0102));
        assert_eq!(entry(&[(8, &[0xff, 0xff])]).queue_id, None);
        assert_eq!(entry(&[(10, &[4, 3])]).command_id, Some(0x0304));
        assert_eq!(entry(&[(10, &[0xff, 0xff])]).command_id, None);
        // SC 81h in bits 8:1, SCT 2h in bits 11:9.
        assert_eq!(entry(&[(12, &[2, 5])]).status, NvmeStatus::new(2, 0x81));
        assert_eq!(entry(&[(14, &[40, 3])]).parameter, Some((40, 3)));
        assert_eq!(entry(&[(14, &[0xff, 0xff])]).parameter, None);
        assert_eq!(entry(&[(16, &[1, 0, 0, 0, 0, 0, 0, 2])]).lba, 2 << 56 | 1);
        assert_eq!(entry(&[(24, &[1, 0, 0, 4])]).nsid, 4 << 24 | 1);
        assert_eq!(entry(&[(31, &[2])]).opcode, 2);
        assert_eq!(ErrorEntry::decode(&[0; 64]), Ok(None));
        let short = ErrorEntry::decode(&[1; 63]).unwrap_err();
        assert_eq!((short.needed_bytes, short.got_bytes), (64, 63));
    }

    #[test]
    fn a_log_ends_where_entries_were_never_filled() {
        let mut bytes = vec![0; 3 * ERROR_ENTRY_BYTES + 5];
        (bytes[0], bytes[ERROR_ENTRY_BYTES]) = (9, 8);
        let numbers: Vec<u64> = ErrorEntry::decode_all(&bytes)
            .iter()
            .map(|entry| entry.error_number)
            .collect();
        assert_eq!(numbers, [9, 8]);
    }

    #[test]
    fn slots_and_revisions_are_where_the_figure_says() {
        let mut bytes = [0; FIRMWARE_LOG_BYTES];
        bytes[0] = 0x32;
        bytes[8..16].copy_from_slice(b"1.0     ");
        bytes[56..64].copy_from_slice(b"ABCDEFGH");
        let slots = FirmwareSlots::decode(&bytes).unwrap();
        assert_eq!((slots.active, slots.next), (2, Some(3)));
        assert_eq!(slots.revisions[0].as_deref(), Some("1.0"));
        assert_eq!(slots.revisions[6].as_deref(), Some("ABCDEFGH"));
        assert!(slots.revisions[1..6].iter().all(Option::is_none));
        bytes[0] = 0x07;
        let slots = FirmwareSlots::decode(&bytes).unwrap();
        assert_eq!((slots.active, slots.next), (7, None));
        assert!(FirmwareSlots::decode(&bytes[..511]).is_err());
    }

    #[test]
    fn the_namespace_list_ends_at_its_first_zero() {
        let mut bytes = vec![0; NAMESPACE_LIST_BYTES];
        (bytes[0], bytes[5], bytes[12]) = (1, 2, 9);
        assert_eq!(active_namespaces(&bytes), Ok(vec![1, 0x200]));
        let full = vec![1; NAMESPACE_LIST_BYTES];
        assert_eq!(active_namespaces(&full).unwrap().len(), 1024);
        assert!(active_namespaces(&full[1..]).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_decode_or_are_short(bytes in prop::collection::vec(any::<u8>(), 0..5000)) {
            let is_long = |needed| bytes.len() >= needed;
            prop_assert_eq!(ErrorEntry::decode(&bytes).is_ok(), is_long(ERROR_ENTRY_BYTES));
            prop_assert!(ErrorEntry::decode_all(&bytes).len() <= bytes.len() / ERROR_ENTRY_BYTES);
            let slots = FirmwareSlots::decode(&bytes);
            prop_assert_eq!(slots.is_ok(), is_long(FIRMWARE_LOG_BYTES));
            let list = active_namespaces(&bytes);
            prop_assert_eq!(list.is_ok(), is_long(NAMESPACE_LIST_BYTES));
            prop_assert!(list.unwrap_or_default().iter().all(|nsid| *nsid != 0));
        }
    }
}

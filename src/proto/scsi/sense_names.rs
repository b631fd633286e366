//! Additional sense codes in words (SPC-5, "ASC and ASCQ assignments"), as far as disks send them.

use super::sense::SenseKey;

/// The code in words; absent where it is the vendor's, or not one that disks send.
#[must_use]
pub fn additional_name(asc: u8, ascq: u8) -> Option<&'static str> {
    let place = NAMES.binary_search_by_key(&(asc, ascq), |(asc, ascq, _)| (*asc, *ascq));
    if let Ok(place) = place {
        return Some(NAMES[place].2);
    }
    match (asc, ascq) {
        (0x40, 0x80..) => Some("diagnostic failure on component"),
        (0x4d, _) => Some("tagged overlapped commands"),
        (0x5d, 0x10..=0xef) => Some("impending failure"),
        _ => None,
    }
}

/// `medium error, unrecovered read error (3/11/00)`.
pub(super) fn in_words(key: SenseKey, asc: u8, ascq: u8) -> String {
    let name = match (additional_name(asc, ascq), asc, ascq) {
        (_, 0, 0) => String::new(),
        (Some(name), ..) => format!(", {name}"),
        (None, 0x80.., _) | (None, _, 0x80..) => ", vendor specific code".to_owned(),
        (None, ..) => ", unknown code".to_owned(),
    };
    format!("{}{name} ({:x}/{asc:02x}/{ascq:02x})", key.name(), key.0)
}

/// In order, for the search.
#[rustfmt::skip]
const NAMES: &[(u8, u8, &str)] = &[
    (0x00, 0x00, "no additional sense information"),
    (0x00, 0x06, "I/O process terminated"),
    (0x00, 0x16, "operation in progress"),
    (0x00, 0x1d, "ATA pass through information available"),
    (0x01, 0x00, "no index/sector signal"),
    (0x02, 0x00, "no seek complete"),
    (0x03, 0x00, "peripheral device write fault"),
    (0x04, 0x00, "logical unit not ready, cause not reportable"),
    (0x04, 0x01, "logical unit is in process of becoming ready"),
    (0x04, 0x02, "logical unit not ready, initializing command required"),
    (0x04, 0x03, "logical unit not ready, manual intervention required"),
    (0x04, 0x04, "logical unit not ready, format in progress"),
    (0x04, 0x05, "logical unit not ready, rebuild in progress"),
    (0x04, 0x06, "logical unit not ready, recalculation in progress"),
    (0x04, 0x07, "logical unit not ready, operation in progress"),
    (0x04, 0x09, "logical unit not ready, self-test in progress"),
    (0x04, 0x0a, "logical unit not accessible, asymmetric access state transition"),
    (0x04, 0x0b, "logical unit not accessible, target port in standby state"),
    (0x04, 0x0c, "logical unit not accessible, target port in unavailable state"),
    (0x04, 0x11, "logical unit not ready, notify (enable spinup) required"),
    (0x04, 0x12, "logical unit not ready, offline"),
    (0x04, 0x1a, "logical unit not ready, start stop unit command in progress"),
    (0x04, 0x1b, "logical unit not ready, sanitize in progress"),
    (0x04, 0x1c, "logical unit not ready, additional power use not yet granted"),
    (0x04, 0x22, "logical unit not ready, power cycle required"),
    (0x04, 0x24, "depopulation in progress"),
    (0x05, 0x00, "logical unit does not respond to selection"),
    (0x06, 0x00, "no reference position found"),
    (0x08, 0x00, "logical unit communication failure"),
    (0x08, 0x01, "logical unit communication time-out"),
    (0x08, 0x02, "logical unit communication parity error"),
    (0x08, 0x03, "logical unit communication CRC error"),
    (0x09, 0x00, "track following error"),
    (0x09, 0x04, "head select fault"),
    (0x0a, 0x00, "error log overflow"),
    (0x0b, 0x00, "warning"),
    (0x0b, 0x01, "warning - specified temperature exceeded"),
    (0x0b, 0x02, "warning - enclosure degraded"),
    (0x0b, 0x03, "warning - background self-test failed"),
    (0x0b, 0x04, "warning - background pre-scan detected medium error"),
    (0x0b, 0x05, "warning - background medium scan detected medium error"),
    (0x0b, 0x08, "warning - power loss expected"),
    (0x0c, 0x00, "write error"),
    (0x0c, 0x01, "write error - recovered with auto reallocation"),
    (0x0c, 0x02, "write error - auto reallocation failed"),
    (0x0c, 0x03, "write error - recommend reassignment"),
    (0x0c, 0x0b, "auxiliary memory write error"),
    (0x0c, 0x0c, "write error - unexpected unsolicited data"),
    (0x0c, 0x0d, "write error - not enough unsolicited data"),
    (0x0e, 0x00, "invalid information unit"),
    (0x10, 0x00, "ID CRC or ECC error"),
    (0x10, 0x01, "logical block guard check failed"),
    (0x10, 0x02, "logical block application tag check failed"),
    (0x10, 0x03, "logical block reference tag check failed"),
    (0x11, 0x00, "unrecovered read error"),
    (0x11, 0x01, "read retries exhausted"),
    (0x11, 0x02, "error too long to correct"),
    (0x11, 0x03, "multiple read errors"),
    (0x11, 0x04, "unrecovered read error - auto reallocate failed"),
    (0x11, 0x0a, "miscorrected error"),
    (0x11, 0x0b, "unrecovered read error - recommend reassignment"),
    (0x11, 0x0c, "unrecovered read error - recommend rewrite the data"),
    (0x11, 0x14, "read error - LBA marked bad by application client"),
    (0x12, 0x00, "address mark not found for ID field"),
    (0x13, 0x00, "address mark not found for data field"),
    (0x14, 0x00, "recorded entity not found"),
    (0x14, 0x01, "record not found"),
    (0x15, 0x00, "random positioning error"),
    (0x15, 0x01, "mechanical positioning error"),
    (0x15, 0x02, "positioning error detected by read of medium"),
    (0x16, 0x00, "data synchronization mark error"),
    (0x17, 0x00, "recovered data with no error correction applied"),
    (0x17, 0x01, "recovered data with retries"),
    (0x17, 0x02, "recovered data with positive head offset"),
    (0x17, 0x03, "recovered data with negative head offset"),
    (0x17, 0x05, "recovered data using previous sector ID"),
    (0x17, 0x06, "recovered data without ECC - data auto-reallocated"),
    (0x17, 0x07, "recovered data without ECC - recommend reassignment"),
    (0x17, 0x08, "recovered data without ECC - recommend rewrite"),
    (0x17, 0x09, "recovered data without ECC - data rewritten"),
    (0x18, 0x00, "recovered data with error correction applied"),
    (0x18, 0x01, "recovered data with error correction and retries applied"),
    (0x18, 0x02, "recovered data - data auto-reallocated"),
    (0x18, 0x05, "recovered data - recommend reassignment"),
    (0x18, 0x06, "recovered data - recommend rewrite"),
    (0x18, 0x07, "recovered data with ECC - data rewritten"),
    (0x19, 0x00, "defect list error"),
    (0x1a, 0x00, "parameter list length error"),
    (0x1b, 0x00, "synchronous data transfer error"),
    (0x1c, 0x00, "defect list not found"),
    (0x1d, 0x00, "miscompare during verify operation"),
    (0x1f, 0x00, "partial defect list transfer"),
    (0x20, 0x00, "invalid command operation code"),
    (0x20, 0x02, "access denied - no access rights"),
    (0x21, 0x00, "logical block address out of range"),
    (0x21, 0x04, "unaligned write command"),
    (0x21, 0x05, "write boundary violation"),
    (0x21, 0x06, "attempt to read invalid data"),
    (0x24, 0x00, "invalid field in CDB"),
    (0x24, 0x01, "CDB decryption error"),
    (0x25, 0x00, "logical unit not supported"),
    (0x26, 0x00, "invalid field in parameter list"),
    (0x26, 0x01, "parameter not supported"),
    (0x26, 0x02, "parameter value invalid"),
    (0x27, 0x00, "write protected"),
    (0x27, 0x01, "hardware write protected"),
    (0x27, 0x02, "logical unit software write protected"),
    (0x27, 0x07, "space allocation failed write protect"),
    (0x28, 0x00, "not ready to ready change, medium may have changed"),
    (0x29, 0x00, "power on, reset, or bus device reset occurred"),
    (0x29, 0x01, "power on occurred"),
    (0x29, 0x02, "SCSI bus reset occurred"),
    (0x29, 0x03, "bus device reset function occurred"),
    (0x29, 0x04, "device internal reset"),
    (0x29, 0x05, "transceiver mode changed to single-ended"),
    (0x29, 0x06, "transceiver mode changed to LVD"),
    (0x29, 0x07, "I_T nexus loss occurred"),
    (0x2a, 0x00, "parameters changed"),
    (0x2a, 0x01, "mode parameters changed"),
    (0x2a, 0x02, "log parameters changed"),
    (0x2a, 0x03, "reservations preempted"),
    (0x2a, 0x04, "reservations released"),
    (0x2a, 0x05, "registrations preempted"),
    (0x2a, 0x06, "asymmetric access state changed"),
    (0x2a, 0x09, "capacity data has changed"),
    (0x2c, 0x00, "command sequence error"),
    (0x2c, 0x09, "previous reservation conflict status"),
    (0x2f, 0x00, "commands cleared by another initiator"),
    (0x2f, 0x01, "commands cleared by power loss notification"),
    (0x2f, 0x02, "commands cleared by device server"),
    (0x30, 0x00, "incompatible medium installed"),
    (0x31, 0x00, "medium format corrupted"),
    (0x31, 0x01, "format command failed"),
    (0x31, 0x03, "sanitize command failed"),
    (0x32, 0x00, "no defect spare location available"),
    (0x35, 0x00, "enclosure services failure"),
    (0x37, 0x00, "rounded parameter"),
    (0x38, 0x07, "thin provisioning soft threshold reached"),
    (0x39, 0x00, "saving parameters not supported"),
    (0x3a, 0x00, "medium not present"),
    (0x3e, 0x00, "logical unit has not self-configured yet"),
    (0x3e, 0x01, "logical unit failure"),
    (0x3e, 0x02, "timeout on logical unit"),
    (0x3e, 0x03, "logical unit failed self-test"),
    (0x3f, 0x00, "target operating conditions have changed"),
    (0x3f, 0x01, "microcode has been changed"),
    (0x3f, 0x02, "changed operating definition"),
    (0x3f, 0x03, "inquiry data has changed"),
    (0x3f, 0x05, "device identifier changed"),
    (0x3f, 0x0e, "reported luns data has changed"),
    (0x40, 0x00, "RAM failure"),
    (0x41, 0x00, "data path failure"),
    (0x42, 0x00, "power-on or self-test failure"),
    (0x43, 0x00, "message error"),
    (0x44, 0x00, "internal target failure"),
    (0x44, 0x71, "ATA device failed set features"),
    (0x45, 0x00, "select or reselect failure"),
    (0x47, 0x00, "SCSI parity error"),
    (0x47, 0x01, "data phase CRC error detected"),
    (0x47, 0x03, "information unit iuCRC error detected"),
    (0x47, 0x7f, "some commands cleared by iSCSI protocol event"),
    (0x48, 0x00, "initiator detected error message received"),
    (0x49, 0x00, "invalid message error"),
    (0x4a, 0x00, "command phase error"),
    (0x4b, 0x00, "data phase error"),
    (0x4b, 0x02, "too much write data"),
    (0x4b, 0x03, "ACK/NAK timeout"),
    (0x4b, 0x04, "NAK received"),
    (0x4b, 0x05, "data offset error"),
    (0x4b, 0x06, "initiator response timeout"),
    (0x4c, 0x00, "logical unit failed self-configuration"),
    (0x4e, 0x00, "overlapped commands attempted"),
    (0x53, 0x00, "media load or eject failed"),
    (0x55, 0x00, "system resource failure"),
    (0x55, 0x03, "insufficient resources"),
    (0x5b, 0x00, "log exception"),
    (0x5b, 0x01, "threshold condition met"),
    (0x5c, 0x00, "RPL status change"),
    (0x5d, 0x00, "failure prediction threshold exceeded"),
    (0x5d, 0xff, "failure prediction threshold exceeded (false)"),
    (0x5e, 0x00, "low power condition on"),
    (0x5e, 0x01, "idle condition activated by timer"),
    (0x5e, 0x02, "standby condition activated by timer"),
    (0x65, 0x00, "voltage fault"),
    (0x67, 0x0a, "set target port groups command failed"),
    (0x67, 0x0b, "ATA device feature not enabled"),
    (0x68, 0x00, "logical unit not configured"),
    (0x74, 0x71, "logical unit access not authorized"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_table_is_in_order_and_has_no_code_twice() {
        let codes: Vec<(u8, u8)> = NAMES.iter().map(|(asc, ascq, _)| (*asc, *ascq)).collect();
        assert!(codes.is_sorted_by(|a, b| a < b));
    }

    #[test]
    fn known_ranged_and_unknown_codes() {
        let name = |asc, ascq| additional_name(asc, ascq);
        assert_eq!(name(0x11, 0x00), Some("unrecovered read error"));
        assert_eq!(name(0x21, 0x00), Some("logical block address out of range"));
        assert_eq!(name(0x40, 0x81), Some("diagnostic failure on component"));
        assert_eq!(name(0x4d, 0x07), Some("tagged overlapped commands"));
        assert_eq!(name(0x5d, 0x62), Some("impending failure"));
        assert_eq!(name(0x80, 0x00), None);
        let words = |key, asc, ascq| in_words(SenseKey(key), asc, ascq);
        assert_eq!(
            words(4, 0x80, 1),
            "hardware error, vendor specific code (4/80/01)"
        );
        assert_eq!(
            words(4, 0x0d, 0x7f),
            "hardware error, unknown code (4/0d/7f)"
        );
        assert_eq!(words(0, 0, 0), "no sense (0/00/00)");
    }

    proptest! {
        #[test]
        fn every_code_has_words(key in any::<u8>(), asc in any::<u8>(), ascq in any::<u8>()) {
            prop_assert!(in_words(SenseKey(key), asc, ascq).contains('('));
        }
    }
}

//! The two SCSI inquiry pages that name a device: 80h (serial number) and 83h (identification), as the
//! kernel exports them in raw bytes. SPC-5: 7.7.20 Unit Serial Number, 7.7.6 Device Identification,
//! 7.6.1 designators.

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
    use super::*;
    use proptest::prelude::*;

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
            let _ = (serial(&page), identities(&page));
        }
    }
}

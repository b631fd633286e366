//! The names of status codes (Base, "Status Code – Generic Command Status Values", "… Command Specific Status
//! Values", "… Media and Data Integrity Error Values", "… Path Related Status Values"; NVM, ZNS and KV add theirs).

/// The name of a code of a type; absent where no specification names it.
pub(super) fn name(sct: u8, sc: u8) -> Option<&'static str> {
    let table: &[(u8, &str)] = match sct {
        0 => GENERIC,
        1 => COMMAND_SPECIFIC,
        2 => MEDIA,
        3 => PATH,
        _ => &[],
    };
    table
        .iter()
        .find(|(code, _)| *code == sc)
        .map(|(_, name)| *name)
}

const GENERIC: &[(u8, &str)] = &[
    (0x00, "successful completion"),
    (0x01, "invalid command opcode"),
    (0x02, "invalid field in command"),
    (0x03, "command ID conflict"),
    (0x04, "data transfer error"),
    (0x05, "commands aborted due to power loss notification"),
    (0x06, "internal error"),
    (0x07, "command abort requested"),
    (0x08, "command aborted due to SQ deletion"),
    (0x09, "command aborted due to failed fused command"),
    (0x0a, "command aborted due to missing fused command"),
    (0x0b, "invalid namespace or format"),
    (0x0c, "command sequence error"),
    (0x0d, "invalid SGL segment descriptor"),
    (0x0e, "invalid number of SGL descriptors"),
    (0x0f, "data SGL length invalid"),
    (0x10, "metadata SGL length invalid"),
    (0x11, "SGL descriptor type invalid"),
    (0x12, "invalid use of controller memory buffer"),
    (0x13, "PRP offset invalid"),
    (0x14, "atomic write unit exceeded"),
    (0x15, "operation denied"),
    (0x16, "SGL offset invalid"),
    (0x18, "host identifier inconsistent format"),
    (0x19, "keep alive timer expired"),
    (0x1a, "keep alive timeout invalid"),
    (0x1b, "command aborted due to preempt and abort"),
    (0x1c, "sanitize failed"),
    (0x1d, "sanitize in progress"),
    (0x1e, "SGL data block granularity invalid"),
    (0x1f, "command not supported for queue in CMB"),
    (0x20, "namespace is write protected"),
    (0x21, "command interrupted"),
    (0x22, "transient transport error"),
    (0x23, "command prohibited by command and feature lockdown"),
    (0x24, "admin command media not ready"),
    (0x25, "invalid key tag"),
    (0x26, "host dispersed namespace support not enabled"),
    (0x27, "host identifier not initialized"),
    (0x28, "incorrect key"),
    (0x29, "FDP disabled"),
    (0x2a, "invalid placement handle list"),
    (0x80, "LBA out of range"),
    (0x81, "capacity exceeded"),
    (0x82, "namespace not ready"),
    (0x83, "reservation conflict"),
    (0x84, "format in progress"),
    (0x85, "invalid value size"),
    (0x86, "invalid key size"),
    (0x87, "KV key does not exist"),
    (0x88, "unrecovered error"),
    (0x89, "key exists"),
];

const COMMAND_SPECIFIC: &[(u8, &str)] = &[
    (0x00, "completion queue invalid"),
    (0x01, "invalid queue identifier"),
    (0x02, "invalid queue size"),
    (0x03, "abort command limit exceeded"),
    (0x05, "asynchronous event request limit exceeded"),
    (0x06, "invalid firmware slot"),
    (0x07, "invalid firmware image"),
    (0x08, "invalid interrupt vector"),
    (0x09, "invalid log page"),
    (0x0a, "invalid format"),
    (0x0b, "firmware activation requires conventional reset"),
    (0x0c, "invalid queue deletion"),
    (0x0d, "feature identifier not saveable"),
    (0x0e, "feature not changeable"),
    (0x0f, "feature not namespace specific"),
    (0x10, "firmware activation requires NVM subsystem reset"),
    (0x11, "firmware activation requires controller level reset"),
    (0x12, "firmware activation requires maximum time violation"),
    (0x13, "firmware activation prohibited"),
    (0x14, "overlapping range"),
    (0x15, "namespace insufficient capacity"),
    (0x16, "namespace identifier unavailable"),
    (0x18, "namespace already attached"),
    (0x19, "namespace is private"),
    (0x1a, "namespace not attached"),
    (0x1b, "thin provisioning not supported"),
    (0x1c, "controller list invalid"),
    (0x1d, "device self-test in progress"),
    (0x1e, "boot partition write prohibited"),
    (0x1f, "invalid controller identifier"),
    (0x20, "invalid secondary controller state"),
    (0x21, "invalid number of controller resources"),
    (0x22, "invalid resource identifier"),
    (
        0x23,
        "sanitize prohibited while persistent memory region is enabled",
    ),
    (0x24, "ANA group identifier invalid"),
    (0x25, "ANA attach failed"),
    (0x26, "insufficient capacity"),
    (0x27, "namespace attachment limit exceeded"),
    (0x28, "prohibition of command execution not supported"),
    (0x29, "I/O command set not supported"),
    (0x2a, "I/O command set not enabled"),
    (0x2b, "I/O command set combination rejected"),
    (0x2c, "invalid I/O command set"),
    (0x2d, "identifier unavailable"),
    (0x7f, "stream resource allocation failed"),
    (0x80, "conflicting attributes"),
    (0x81, "invalid protection information"),
    (0x82, "attempted write to read only range"),
    (0x83, "command size limit exceeded"),
    (0xb8, "zoned boundary error"),
    (0xb9, "zone is full"),
    (0xba, "zone is read only"),
    (0xbb, "zone is offline"),
    (0xbc, "zone invalid write"),
    (0xbd, "too many active zones"),
    (0xbe, "too many open zones"),
    (0xbf, "invalid zone state transition"),
];

const MEDIA: &[(u8, &str)] = &[
    (0x80, "write fault"),
    (0x81, "unrecovered read error"),
    (0x82, "end-to-end guard check error"),
    (0x83, "end-to-end application tag check error"),
    (0x84, "end-to-end reference tag check error"),
    (0x85, "compare failure"),
    (0x86, "access denied"),
    (0x87, "deallocated or unwritten logical block"),
    (0x88, "end-to-end storage tag check error"),
];

const PATH: &[(u8, &str)] = &[
    (0x00, "internal path error"),
    (0x01, "asymmetric access persistent loss"),
    (0x02, "asymmetric access inaccessible"),
    (0x03, "asymmetric access transition"),
    (0x60, "controller pathing error"),
    (0x70, "host pathing error"),
    (0x71, "command aborted by host"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_in_order_and_named_once() {
        for table in [GENERIC, COMMAND_SPECIFIC, MEDIA, PATH] {
            assert!(
                table
                    .windows(2)
                    .all(|pair| pair[0].0 < pair[1].0 && pair[0].1 != pair[1].1)
            );
        }
    }

    #[test]
    fn codes_shared_by_types_keep_their_own_names() {
        let names = [0, 1, 2, 3].map(|sct| name(sct, 0x00));
        assert_eq!(
            names,
            [
                Some("successful completion"),
                Some("completion queue invalid"),
                None,
                Some("internal path error")
            ]
        );
        let names = [0, 1, 2, 3].map(|sct| name(sct, 0x83));
        assert_eq!(
            names,
            [
                Some("reservation conflict"),
                Some("command size limit exceeded"),
                Some("end-to-end application tag check error"),
                None
            ]
        );
        assert_eq!(name(0, 0x17), None);
        assert_eq!(name(7, 0x00), None);
    }
}

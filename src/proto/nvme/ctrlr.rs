//! Identify Controller (Base, "Identify – Identify Controller Data Structure, I/O Command Set Independent").

use super::{Fields, Truncated};

/// Length of every Identify structure in bytes.
pub const IDENTIFY_BYTES: usize = 4096;

/// What the controller is for (Controller Type, CNTRLTYPE).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ControllerKind {
    /// Older than the field, or silent about it.
    NotReported,
    /// Does I/O.
    Io,
    /// Tells where subsystems are; has no namespaces.
    Discovery,
    /// Administration only.
    Administrative,
    /// A value without a meaning yet.
    Reserved(u8),
}

/// The fields of Identify Controller that a measurement needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdentifyController {
    /// PCI vendor, bytes 1:0.
    pub vendor_id: u16,
    /// PCI subsystem vendor, bytes 3:2.
    pub subsystem_vendor_id: u16,
    /// Serial number, bytes 23:4.
    pub serial: String,
    /// Model number, bytes 63:24.
    pub model: String,
    /// Firmware revision, bytes 71:64.
    pub firmware: String,
    /// IEEE OUI, bytes 75:73.
    pub ieee_oui: u32,
    /// More than one port or controller may share the namespaces (CMIC bits 0 and 1, byte 76).
    pub multi_path: bool,
    /// Maximum Data Transfer Size as a power of two of the smallest memory page (MDTS, byte 77); absent: no limit.
    pub mdts: Option<u8>,
    /// Controller identifier, bytes 79:78.
    pub controller_id: u16,
    /// Version as major, minor, tertiary (VER, bytes 83:80).
    pub version: (u16, u8, u8),
    /// Controller type, byte 111.
    pub kind: ControllerKind,
    /// SMART log per namespace (LPA bit 0, byte 261).
    pub smart_per_namespace: bool,
    /// Warning composite temperature threshold in kelvin (WCTEMP, bytes 267:266); absent: not reported.
    pub warning_temperature_k: Option<u16>,
    /// Critical composite temperature threshold in kelvin (CCTEMP, bytes 269:268); absent: not reported.
    pub critical_temperature_k: Option<u16>,
    /// Total NVM capacity in bytes (TNVMCAP, bytes 295:280); 0 where not reported.
    pub total_capacity_bytes: u128,
    /// Keep alive granularity in units of 100 ms (KAS, bytes 321:320); 0: no keep alive.
    pub keep_alive_granularity_100ms: u16,
    /// Most outstanding commands (MAXCMD, bytes 515:514); 0 where not reported.
    pub max_commands_count: u16,
    /// Highest namespace identifier (NN, bytes 519:516).
    pub namespaces_count: u32,
    /// Dataset Management is supported (ONCS bit 2, bytes 521:520).
    pub dataset_management: bool,
    /// Write Zeroes is supported (ONCS bit 3).
    pub write_zeroes: bool,
    /// A volatile write cache is present (VWC bit 0, byte 525).
    pub volatile_write_cache: bool,
    /// Flush with the broadcast namespace is supported (VWC bits 2:1 = 11b).
    pub flush_broadcast: bool,
    /// Atomic write unit under normal operation, in blocks (AWUN, bytes 527:526, zero-based).
    pub atomic_write_blocks: u32,
    /// NVM subsystem qualified name, bytes 1023:768.
    pub subsystem_nqn: String,
}

impl IdentifyController {
    /// Decodes the structure.
    ///
    /// # Errors
    /// [`Truncated`] where there are fewer than 4096 bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, Truncated> {
        let at = Fields::new("Identify Controller", bytes, IDENTIFY_BYTES)?;
        let oui = at.array::<3>(73);
        let oncs = at.u16(520);
        let vwc = at.u8(525);
        let version = at.u32(80);
        let reported = |kelvin: u16| (kelvin != 0).then_some(kelvin);
        Ok(Self {
            vendor_id: at.u16(0),
            subsystem_vendor_id: at.u16(2),
            serial: at.text(4, 20),
            model: at.text(24, 40),
            firmware: at.text(64, 8),
            ieee_oui: u32::from_le_bytes([oui[0], oui[1], oui[2], 0]),
            multi_path: at.u8(76) & 0b11 != 0,
            mdts: Some(at.u8(77)).filter(|mdts| *mdts != 0),
            controller_id: at.u16(78),
            version: ((version >> 16) as u16, (version >> 8) as u8, version as u8),
            kind: match at.u8(111) {
                0 => ControllerKind::NotReported,
                1 => ControllerKind::Io,
                2 => ControllerKind::Discovery,
                3 => ControllerKind::Administrative,
                other => ControllerKind::Reserved(other),
            },
            smart_per_namespace: at.u8(261) & 1 != 0,
            warning_temperature_k: reported(at.u16(266)),
            critical_temperature_k: reported(at.u16(268)),
            total_capacity_bytes: at.u128(280),
            keep_alive_granularity_100ms: at.u16(320),
            max_commands_count: at.u16(514),
            namespaces_count: at.u32(516),
            dataset_management: oncs & 1 << 2 != 0,
            write_zeroes: oncs & 1 << 3 != 0,
            volatile_write_cache: vwc & 1 != 0,
            flush_broadcast: vwc >> 1 & 0b11 == 0b11,
            atomic_write_blocks: u32::from(at.u16(526)) + 1,
            subsystem_nqn: at.text(768, 256),
        })
    }

    /// Largest transfer in bytes for a controller whose smallest page is `page_bytes` (CAP.MPSMIN: 4096 on all
    /// common hardware); absent: no limit, or one beyond 64 bits.
    #[must_use]
    pub fn max_transfer_bytes(&self, page_bytes: u64) -> Option<u64> {
        self.mdts
            .and_then(|mdts| 1u64.checked_shl(u32::from(mdts)))
            .and_then(|pages| pages.checked_mul(page_bytes))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn with(set: &[(usize, &[u8])]) -> IdentifyController {
        let mut bytes = [0; IDENTIFY_BYTES];
        for (at, value) in set {
            bytes[*at..*at + value.len()].copy_from_slice(value);
        }
        IdentifyController::decode(&bytes).unwrap()
    }

    #[test]
    fn names_are_trimmed_and_never_hold_control_bytes() {
        let c = with(&[
            (4, b"  S1234\x07             "),
            (24, b"ACME SSD 9000           "),
            (64, b"1.0\0\0\0\0\0"),
        ]);
        assert_eq!(
            (c.serial.as_str(), c.model.as_str(), c.firmware.as_str()),
            ("S1234?", "ACME SSD 9000", "1.0")
        );
    }

    #[test]
    fn every_numeric_field_is_at_its_bytes() {
        let c = with(&[
            (0, &[0x86, 0x80]),
            (2, &[0x4d, 0x14]),
            (73, &[0xe4, 0xd2, 0x5c]),
            (77, &[5]),
            (78, &[0x21, 0x43]),
            (80, &[0x02, 0x03, 0x01, 0x00]),
            (111, &[1]),
            (266, &[0x57, 0x01]),
            (268, &[0x5c, 0x01]),
            (280, &[0, 0, 0, 0, 0, 1]),
            (320, &[10, 0]),
            (514, &[0x00, 0x04]),
            (516, &[32, 0, 0, 0]),
            (526, &[7, 0]),
        ]);
        assert_eq!(
            (c.vendor_id, c.subsystem_vendor_id, c.ieee_oui),
            (0x8086, 0x144d, 0x005c_d2e4)
        );
        assert_eq!(
            (c.mdts, c.controller_id, c.version, c.kind),
            (Some(5), 0x4321, (1, 3, 2), ControllerKind::Io)
        );
        assert_eq!(
            (c.warning_temperature_k, c.critical_temperature_k),
            (Some(343), Some(348))
        );
        assert_eq!(
            (c.total_capacity_bytes, c.keep_alive_granularity_100ms),
            (1 << 40, 10)
        );
        assert_eq!(
            (
                c.max_commands_count,
                c.namespaces_count,
                c.atomic_write_blocks
            ),
            (1024, 32, 8)
        );
    }

    #[test]
    fn every_flag_is_its_own_bit() {
        let none = with(&[]);
        assert!(
            !none.multi_path
                && !none.smart_per_namespace
                && !none.dataset_management
                && !none.write_zeroes
        );
        assert!(!none.volatile_write_cache && !none.flush_broadcast && none.mdts.is_none());
        assert!(with(&[(76, &[2])]).multi_path && !with(&[(76, &[4])]).multi_path);
        assert!(
            with(&[(261, &[1])]).smart_per_namespace
                && !with(&[(261, &[0xfe])]).smart_per_namespace
        );
        let dsm = with(&[(520, &[0x04, 0])]);
        assert!(dsm.dataset_management && !dsm.write_zeroes);
        let zeroes = with(&[(520, &[0x08, 0])]);
        assert!(zeroes.write_zeroes && !zeroes.dataset_management);
        let vwc = with(&[(525, &[1])]);
        assert!(vwc.volatile_write_cache && !vwc.flush_broadcast);
        assert!(with(&[(525, &[6])]).flush_broadcast && !with(&[(525, &[4])]).flush_broadcast);
    }

    #[test]
    fn mdts_is_a_power_of_two_of_the_page() {
        assert_eq!(with(&[(77, &[5])]).max_transfer_bytes(4096), Some(131_072));
        assert_eq!(with(&[]).max_transfer_bytes(4096), None);
        assert_eq!(with(&[(77, &[255])]).max_transfer_bytes(4096), None);
        assert_eq!(with(&[(77, &[63])]).max_transfer_bytes(4096), None);
    }

    #[test]
    fn a_short_structure_is_an_error_that_says_so() {
        let error = IdentifyController::decode(&[0; 4095]).unwrap_err();
        assert_eq!(
            error,
            Truncated {
                what: "Identify Controller",
                needed_bytes: 4096,
                got_bytes: 4095
            }
        );
    }

    proptest! {
        #[test]
        fn any_bytes_decode(bytes in proptest::collection::vec(any::<u8>(), 4000..4200)) {
            if let Ok(c) = IdentifyController::decode(&bytes) {
                prop_assert!(c.max_transfer_bytes(4096).is_none_or(|max| max >= 8192));
                prop_assert!(c.serial.chars().all(|ch| !ch.is_control()));
            }
        }
    }
}

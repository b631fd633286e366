//! SMART / Health Information log (Base, "SMART / Health Information Log Page", page 02h).

use super::{Fields, Truncated};

/// The log's identifier.
pub const SMART_LOG_ID: u8 = 0x02;
/// Length of the log in bytes.
pub const SMART_BYTES: usize = 512;
/// One data unit: a thousand 512-byte units.
const DATA_UNIT_BYTES: u128 = 512_000;

/// The health of a controller or namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SmartLog {
    /// Critical Warning, byte 0: spare low, temperature, reliability degraded, read-only, backup failed (bits 0-4).
    pub critical_warning: u8,
    /// Composite temperature in kelvin, bytes 2:1.
    pub temperature_k: u16,
    /// Available spare, byte 3, in percent.
    pub spare_pct: u8,
    /// Available spare threshold, byte 4, in percent.
    pub spare_threshold_pct: u8,
    /// Percentage of the rated life used, byte 5; may exceed 100.
    pub used_pct: u8,
    /// Data read by the host in bytes, from Data Units Read, bytes 47:32.
    pub read_bytes: u128,
    /// Data written by the host in bytes, from Data Units Written, bytes 63:48.
    pub written_bytes: u128,
    /// Host read commands, bytes 79:64.
    pub read_commands_count: u128,
    /// Host write commands, bytes 95:80.
    pub write_commands_count: u128,
    /// Power cycles, bytes 127:112.
    pub power_cycles_count: u128,
    /// Power-on time in hours, bytes 143:128.
    pub power_on_hours: u128,
    /// Unsafe shutdowns, bytes 159:144.
    pub unsafe_shutdowns_count: u128,
    /// Media and data integrity errors, bytes 175:160.
    pub media_errors_count: u128,
    /// Error log entries, bytes 191:176.
    pub error_log_entries_count: u128,
    /// Time over the warning temperature in minutes, bytes 195:192.
    pub warning_temperature_minutes: u32,
    /// Time over the critical temperature in minutes, bytes 199:196.
    pub critical_temperature_minutes: u32,
    /// Temperature sensors 1 to 8 in kelvin, bytes 215:200; absent where not implemented.
    pub sensors_k: [Option<u16>; 8],
    /// Thermal management transitions to temperatures 1 and 2, bytes 223:216.
    pub throttles_count: [u32; 2],
    /// Time in thermal management temperatures 1 and 2 in seconds, bytes 231:224.
    pub throttled_s: [u32; 2],
}

impl SmartLog {
    /// Decodes the log.
    ///
    /// # Errors
    /// [`Truncated`] where there are fewer than 512 bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, Truncated> {
        let at = Fields::new("SMART log", bytes, SMART_BYTES)?;
        Ok(Self {
            critical_warning: at.u8(0),
            temperature_k: at.u16(1),
            spare_pct: at.u8(3),
            spare_threshold_pct: at.u8(4),
            used_pct: at.u8(5),
            read_bytes: at.u128(32).saturating_mul(DATA_UNIT_BYTES),
            written_bytes: at.u128(48).saturating_mul(DATA_UNIT_BYTES),
            read_commands_count: at.u128(64),
            write_commands_count: at.u128(80),
            power_cycles_count: at.u128(112),
            power_on_hours: at.u128(128),
            unsafe_shutdowns_count: at.u128(144),
            media_errors_count: at.u128(160),
            error_log_entries_count: at.u128(176),
            warning_temperature_minutes: at.u32(192),
            critical_temperature_minutes: at.u32(196),
            sensors_k: std::array::from_fn(|i| {
                Some(at.u16(200 + 2 * i)).filter(|kelvin| *kelvin != 0)
            }),
            throttles_count: [at.u32(216), at.u32(220)],
            throttled_s: [at.u32(224), at.u32(228)],
        })
    }

    /// Composite temperature in °C; absent where the device reports 0 K.
    #[must_use]
    pub fn temperature_c(&self) -> Option<i32> {
        (self.temperature_k != 0).then(|| i32::from(self.temperature_k) - 273)
    }

    /// The critical warnings in words.
    #[must_use]
    pub fn warnings(&self) -> Vec<&'static str> {
        const WORDS: [&str; 6] = [
            "available spare is below its threshold",
            "temperature is outside its thresholds",
            "reliability is degraded by media errors",
            "media is read only",
            "volatile memory backup has failed",
            "persistent memory region is read only or unreliable",
        ];
        WORDS
            .iter()
            .enumerate()
            .filter(|(bit, _)| self.critical_warning >> bit & 1 == 1)
            .map(|(_, word)| *word)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_field_is_at_its_bytes() {
        let mut log = [0; SMART_BYTES];
        log[..6].copy_from_slice(&[0x05, 0x2d, 0x01, 98, 10, 3]);
        for (at, value) in [
            (32, 7u8),
            (48, 8),
            (64, 9),
            (80, 10),
            (112, 12),
            (128, 13),
            (144, 14),
            (160, 15),
            (176, 16),
            (192, 17),
            (196, 18),
            (200, 19),
            (214, 20),
            (216, 21),
            (220, 22),
            (224, 23),
            (228, 24),
        ] {
            log[at] = value;
        }
        let s = SmartLog::decode(&log).unwrap();
        assert_eq!(
            (
                s.temperature_c(),
                s.spare_pct,
                s.spare_threshold_pct,
                s.used_pct
            ),
            (Some(28), 98, 10, 3)
        );
        assert_eq!((s.read_bytes, s.written_bytes), (7 * 512_000, 8 * 512_000));
        assert_eq!(
            (
                s.read_commands_count,
                s.write_commands_count,
                s.power_cycles_count
            ),
            (9, 10, 12)
        );
        assert_eq!(
            (
                s.power_on_hours,
                s.unsafe_shutdowns_count,
                s.media_errors_count,
                s.error_log_entries_count
            ),
            (13, 14, 15, 16)
        );
        assert_eq!(
            (
                s.warning_temperature_minutes,
                s.critical_temperature_minutes
            ),
            (17, 18)
        );
        assert_eq!(
            (s.sensors_k[0], s.sensors_k[1], s.sensors_k[7]),
            (Some(19), None, Some(20))
        );
        assert_eq!((s.throttles_count, s.throttled_s), ([21, 22], [23, 24]));
        assert_eq!(
            s.warnings(),
            [
                "available spare is below its threshold",
                "reliability is degraded by media errors"
            ]
        );
    }

    #[test]
    fn counters_are_128_bits_and_saturate() {
        let mut log = [0; SMART_BYTES];
        log[32..48].copy_from_slice(&[0xff; 16]);
        log[64 + 15] = 0x80;
        let s = SmartLog::decode(&log).unwrap();
        assert_eq!(
            (s.read_bytes, s.read_commands_count, s.temperature_c()),
            (u128::MAX, 1 << 127, None)
        );
    }

    proptest! {
        #[test]
        fn any_bytes_decode(bytes in proptest::collection::vec(any::<u8>(), 500..520)) {
            prop_assert_eq!(SmartLog::decode(&bytes).is_ok(), bytes.len() >= SMART_BYTES);
        }
    }
}

//! How a command ended besides its sense data: SAM status, and the bytes that Linux adds for host adapter and
//! driver.

use super::sense::SenseKey;
use super::sense_names;

/// Status codes (SAM-6, "Status codes").
pub mod sam {
    /// All is well.
    pub const GOOD: u8 = 0x00;
    /// Sense data say more.
    pub const CHECK_CONDITION: u8 = 0x02;
    /// The device's queue is full.
    pub const TASK_SET_FULL: u8 = 0x28;
}

/// Host bytes that mean something to a run (include/scsi/scsi_status.h).
pub mod host {
    /// No connection before the timeout: the device is not there, or offline.
    pub const NO_CONNECT: u8 = 0x01;
    /// The command timed out.
    pub const TIME_OUT: u8 = 0x03;
    /// The target is not there.
    pub const BAD_TARGET: u8 = 0x04;
    /// The transport gave the device up.
    pub const TRANSPORT_FAILFAST: u8 = 0x0f;
}

/// A status code in words.
#[must_use]
pub const fn status_name(status: u8) -> &'static str {
    match status {
        0x00 => "good",
        0x02 => "check condition",
        0x04 => "condition met",
        0x08 => "busy",
        0x18 => "reservation conflict",
        0x28 => "task set full",
        0x30 => "ACA active",
        0x40 => "task aborted",
        _ => "reserved status",
    }
}

/// The kernel's host byte in words.
#[must_use]
pub const fn host_name(host: u8) -> &'static str {
    match host {
        0x00 => "no error",
        host::NO_CONNECT => "no connection: the device is gone or offline",
        0x02 => "bus busy",
        host::TIME_OUT => "the command timed out",
        host::BAD_TARGET => "bad target",
        0x05 => "aborted",
        0x06 => "parity error",
        0x07 => "internal error of adapter or driver",
        0x08 => "reset",
        0x09 => "unexpected interrupt",
        0x0a => "passthrough refused",
        0x0b => "soft error, to be tried again",
        0x0c => "to be tried again at once",
        0x0d => "to be queued again",
        0x0e => "transport disrupted",
        host::TRANSPORT_FAILFAST => "transport failed",
        0x10 => "target failure",
        0x11 => "nexus failure: reserved by another host",
        0x12 => "allocation failure",
        0x13 => "medium error",
        0x14 => "transport marginal",
        _ => "unknown host adapter status",
    }
}

/// The kernel's driver byte in words; its low nibble counts (kernels from 5.14 on set 08h alone).
#[must_use]
pub const fn driver_name(driver: u8) -> &'static str {
    match driver & 0x0f {
        0x00 => "no error",
        0x01 => "busy",
        0x02 => "soft error",
        0x03 => "media error",
        0x04 => "error",
        0x05 => "invalid",
        0x06 => "timeout",
        0x07 => "hard error",
        0x08 => "sense data came",
        _ => "unknown driver status",
    }
}

/// A status and what its sense data said: `check condition: medium error, unrecovered read error (3/11/00)`.
#[must_use]
pub fn in_words(status: u8, key: u8, asc: u8, ascq: u8) -> String {
    let name = status_name(status);
    if status == sam::CHECK_CONDITION || key != 0 {
        format!(
            "{name}: {}",
            sense_names::in_words(SenseKey(key), asc, ascq)
        )
    } else {
        format!("{name} ({status:02x}h)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_said_in_words() {
        assert_eq!(
            in_words(0x02, 0x3, 0x11, 0x00),
            "check condition: medium error, unrecovered read error (3/11/00)"
        );
        assert_eq!(in_words(0x28, 0, 0, 0), "task set full (28h)");
        assert_eq!(in_words(0x18, 0, 0, 0), "reservation conflict (18h)");
        assert_eq!(
            in_words(0x02, 0, 0, 0),
            "check condition: no sense (0/00/00)"
        );
        let names = [0x00, 0x04, 0x08, 0x30, 0x40, 0x42].map(status_name);
        let wanted = [
            "good",
            "condition met",
            "busy",
            "ACA active",
            "task aborted",
            "reserved status",
        ];
        assert_eq!(names, wanted);
    }

    #[test]
    fn host_and_driver_bytes_are_those_of_the_kernel() {
        assert!(host_name(1).starts_with("no connection"));
        assert!(host_name(3).contains("timed out") && host_name(7).contains("internal"));
        assert_eq!(
            (host_name(0x14), host_name(0xff)),
            ("transport marginal", "unknown host adapter status")
        );
        assert_eq!(
            (driver_name(0x08), driver_name(0x26)),
            ("sense data came", "timeout")
        );
        for host in 0..=0x14 {
            assert!(!host_name(host).starts_with("unknown"), "{host}");
        }
    }
}

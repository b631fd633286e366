//! SCSI as bytes: command descriptor blocks, status and sense, INQUIRY, VPD, mode and log pages.
//!
//! Sources are SPC-5 (primary commands), SBC-4 (block commands) and SAM-6 (status codes). Clauses are cited by
//! title, since their numbers move between revisions; "byte" is an offset in the structure, and all numbers are
//! big-endian. Every field has a vector in the tests beside it.

mod capacity;
mod cdb;
mod inquiry;
mod log;
mod mode;
mod sense;
mod sense_names;
mod status;
pub mod vpd;

pub use capacity::{CAPACITY_10_BYTES, CAPACITY_16_BYTES, Capacity};
pub use cdb::{Cdb, UNMAP_LIST_BYTES, opcode, unmap_list};
pub use inquiry::{INQUIRY_BYTES, Inquiry, PERIPHERAL_DISK, PERIPHERAL_HOST_MANAGED_ZONED};
pub use log::{ErrorCounters, Exceptions, LogPage, Temperature, page};
pub use mode::{Caching, ModeHeader};
pub use sense::{FieldPointer, Sense, SenseKey};
pub use sense_names::additional_name;
pub use status::{driver_name, host, host_name, in_words, sam, status_name};

/// An answer that ended before its last field, or is another page than was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Too short.
    #[error("{what} needs {needed_bytes} bytes, {got_bytes} came: the device cut its answer short")]
    Truncated {
        /// Which structure.
        what: &'static str,
        /// Its length in bytes.
        needed_bytes: usize,
        /// What there was, in bytes.
        got_bytes: usize,
    },
    /// Another page.
    #[error("{what} was asked for, and page {got:02x}h came")]
    OtherPage {
        /// Which structure.
        what: &'static str,
        /// Page code of what came.
        got: u8,
    },
}

/// A structure of known least length, read by offset. Offsets are constants below that length.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    const fn new(
        what: &'static str,
        bytes: &'a [u8],
        needed_bytes: usize,
    ) -> Result<Self, Malformed> {
        if bytes.len() < needed_bytes {
            return Err(Malformed::Truncated {
                what,
                needed_bytes,
                got_bytes: bytes.len(),
            });
        }
        Ok(Self(bytes))
    }

    const fn u8(&self, at: usize) -> u8 {
        self.0[at]
    }

    const fn bit(&self, at: usize, bit: u32) -> bool {
        self.0[at] >> bit & 1 == 1
    }

    fn u16(&self, at: usize) -> u16 {
        u16::from_be_bytes(self.array(at))
    }

    fn u32(&self, at: usize) -> u32 {
        u32::from_be_bytes(self.array(at))
    }

    fn u64(&self, at: usize) -> u64 {
        u64::from_be_bytes(self.array(at))
    }

    fn array<const N: usize>(&self, at: usize) -> [u8; N] {
        let mut out = [0; N];
        out.copy_from_slice(&self.0[at..at + N]);
        out
    }

    /// An ASCII field, padded with spaces (or zeros, which some devices send).
    fn text(&self, at: usize, bytes: usize) -> String {
        text(&self.0[at..at + bytes])
    }
}

/// ASCII, without its padding; what cannot be printed becomes `?`.
fn text(raw: &[u8]) -> String {
    let end = raw.iter().position(|byte| *byte == 0).unwrap_or(raw.len());
    let printable = |byte: &u8| match byte {
        0x20..0x7f => char::from(*byte),
        _ => '?',
    };
    let text: String = raw[..end].iter().map(printable).collect();
    text.trim().to_owned()
}

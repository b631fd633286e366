//! NVMe as bytes: commands, completion status, Identify and log pages.
//!
//! Sources are the NVM Express Base Specification 2.x and the NVM Command Set Specification 1.x. Figures are
//! cited by title, since their numbers move between revisions; "CDW" is a command dword, "byte" an offset in
//! the structure. Every field has a vector in the tests beside it.

mod command;
mod completion;
mod ctrlr;
mod features;
mod layout;
mod logs;
mod ns;
mod smart;
mod status;
mod status_names;
mod zeroes;

pub use command::{COMMAND_BYTES, Command, DSM_RANGE_BYTES, PiCheck, dsm_range, opcode};
pub use completion::{COMPLETION_BYTES, Completion};
pub use ctrlr::{ControllerKind, IDENTIFY_BYTES, IdentifyController};
pub use features::{VOLATILE_WRITE_CACHE, is_no_feature, is_write_cache_on};
pub use layout::{Layout, Metadata};
pub use logs::{
    ERROR_ENTRY_BYTES, ERROR_LOG_ID, ErrorEntry, FIRMWARE_LOG_BYTES, FIRMWARE_LOG_ID,
    FirmwareSlots, NAMESPACE_LIST_BYTES, active_namespaces,
};
pub use ns::{IdentifyNamespace, LbaFormat, NamespaceIds, PiType};
pub use smart::{SMART_BYTES, SMART_LOG_ID, SmartLog};
pub use status::NvmeStatus;
pub use zeroes::{
    CNS_COMMAND_SET_CONTROLLER, has_command_set_controller, max_zeroes_bytes, zeroes_shift,
};

/// A structure that ended before its last field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "{what} needs {needed_bytes} bytes, {got_bytes} came: the device or a log was cut short, ask again"
)]
pub struct Truncated {
    /// Which structure.
    pub what: &'static str,
    /// Its length in bytes.
    pub needed_bytes: usize,
    /// What there was, in bytes.
    pub got_bytes: usize,
}

/// A structure of known length, read by offset. Offsets are constants below that length.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn new(what: &'static str, bytes: &'a [u8], needed_bytes: usize) -> Result<Self, Truncated> {
        match bytes.get(..needed_bytes) {
            Some(bytes) => Ok(Self(bytes)),
            None => Err(Truncated {
                what,
                needed_bytes,
                got_bytes: bytes.len(),
            }),
        }
    }

    fn array<const N: usize>(&self, at: usize) -> [u8; N] {
        let mut out = [0; N];
        out.copy_from_slice(&self.0[at..at + N]);
        out
    }

    fn u8(&self, at: usize) -> u8 {
        self.0[at]
    }

    fn u16(&self, at: usize) -> u16 {
        u16::from_le_bytes(self.array(at))
    }

    fn u32(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.array(at))
    }

    fn u64(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.array(at))
    }

    fn u128(&self, at: usize) -> u128 {
        u128::from_le_bytes(self.array(at))
    }

    /// An ASCII field, padded with spaces (or zeros, which some devices send).
    fn text(&self, at: usize, bytes: usize) -> String {
        let raw = &self.0[at..at + bytes];
        let printable = |byte: &u8| {
            if (0x20..0x7f).contains(byte) {
                char::from(*byte)
            } else {
                '?'
            }
        };
        let end = raw.iter().position(|byte| *byte == 0).unwrap_or(raw.len());
        raw[..end]
            .iter()
            .map(printable)
            .collect::<String>()
            .trim()
            .to_owned()
    }
}

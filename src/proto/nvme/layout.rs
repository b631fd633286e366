//! How a namespace's format travels: plain blocks, metadata beside them, protection information.

use super::{Command, IdentifyNamespace, PiCheck, PiType};

/// Bytes of protection information with 16-bit guards.
const PI_BYTES: u16 = 8;

/// What goes with the data of an I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Metadata {
    /// Nothing.
    None,
    /// The controller inserts and strips protection information (PRACT), so only data move.
    Stripped {
        /// What it checks on reads.
        check: PiCheck,
        /// The reference tag follows the LBA.
        reference: bool,
    },
    /// Bytes per block in a buffer of their own; written as zeros, not looked at when read.
    Separate(u16),
}

/// The format of a namespace as the queue needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Data bytes of a logical block.
    pub block_bytes: u32,
    /// What goes with them.
    pub metadata: Metadata,
}

impl Layout {
    /// From Identify Namespace.
    ///
    /// # Errors
    /// The name of a format that cannot be driven, and what to do.
    pub fn of(ns: &IdentifyNamespace) -> Result<Self, String> {
        let Some(block_bytes) = ns.format.block_bytes() else {
            return Err(format!(
                "has a block size of 2^{} bytes, which cannot be driven",
                ns.format.data_shift
            ));
        };
        let bytes = ns.format.metadata_bytes;
        let refuse = |what: &str| {
            Err(format!(
                "is formatted with {bytes} bytes of {what} per {block_bytes}-byte block, which lanemark does not drive; \
                 use a format without metadata (nvme format --lbaf)"
            ))
        };
        let metadata = match (bytes, ns.pi) {
            (0, _) => Metadata::None,
            (PI_BYTES, PiType::Type1 | PiType::Type2) => Metadata::Stripped {
                check: PiCheck {
                    guard: true,
                    application_tag: false,
                    reference_tag: true,
                },
                reference: true,
            },
            (PI_BYTES, PiType::Type3) => Metadata::Stripped {
                check: PiCheck {
                    guard: true,
                    ..PiCheck::default()
                },
                reference: false,
            },
            (_, PiType::Type1 | PiType::Type2 | PiType::Type3 | PiType::Reserved(_)) => {
                return refuse("metadata with protection information");
            }
            (_, PiType::None) if ns.metadata_interleaved => return refuse("interleaved metadata"),
            (_, PiType::None) => Metadata::Separate(bytes),
        };
        Ok(Self {
            block_bytes,
            metadata,
        })
    }

    /// What goes with the data, in words; nothing for plain blocks.
    #[must_use]
    pub fn note(&self) -> Option<String> {
        match self.metadata {
            Metadata::None => None,
            Metadata::Stripped { .. } => Some(
                "protection information inserted and checked by the controller (PRACT)".to_owned(),
            ),
            Metadata::Separate(bytes) => Some(format!(
                "{bytes} bytes of separate metadata per block, written as zeros"
            )),
        }
    }

    /// All of it, for the record.
    #[must_use]
    pub fn describe(&self) -> String {
        let metadata = self.note().unwrap_or_else(|| "no metadata".to_owned());
        format!("format: {}-byte blocks, {metadata}", self.block_bytes)
    }

    /// Whether the controller has to insert and strip protection information.
    #[must_use]
    pub const fn is_stripped(&self) -> bool {
        matches!(self.metadata, Metadata::Stripped { .. })
    }

    /// Metadata bytes that an I/O of `blocks` moves beside its data.
    #[must_use]
    pub fn metadata_bytes(&self, blocks: u32) -> u32 {
        match self.metadata {
            Metadata::Separate(bytes) => blocks.saturating_mul(u32::from(bytes)),
            Metadata::None | Metadata::Stripped { .. } => 0,
        }
    }

    /// A Write Zeroes of this format, whose range is set later. It never deallocates: that would be a trim. The
    /// controller writes protection information for what it makes up, and has nothing to check (NVM, "Write Zeroes
    /// command").
    #[must_use]
    pub fn zeroes(&self, nsid: u32) -> Command {
        let command = Command::write_zeroes(nsid, 0, 1, false);
        match self.metadata {
            Metadata::Stripped { .. } => command.with_pi_action(PiCheck::default()),
            Metadata::None | Metadata::Separate(_) => command,
        }
    }

    /// A read or write command of this format, whose range is set later.
    #[must_use]
    pub fn template(&self, command: Command) -> Command {
        match self.metadata {
            Metadata::Stripped { check, .. } => command.with_pi_action(check),
            Metadata::None | Metadata::Separate(_) => command,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::IDENTIFY_BYTES;
    use super::*;

    fn layout(metadata: u8, shift: u8, flbas: u8, dps: u8) -> Result<Layout, String> {
        let mut bytes = [0; IDENTIFY_BYTES];
        (bytes[26], bytes[29], bytes[128], bytes[130]) = (flbas, dps, metadata, shift);
        Layout::of(&IdentifyNamespace::decode(&bytes).unwrap())
    }

    #[test]
    fn formats_run_or_are_refused_by_name() {
        assert_eq!(
            layout(0, 12, 0, 0).unwrap(),
            Layout {
                block_bytes: 4096,
                metadata: Metadata::None
            }
        );
        let plain = layout(0, 12, 0, 0).unwrap().describe();
        assert_eq!(plain, "format: 4096-byte blocks, no metadata");
        assert_eq!(
            layout(64, 12, 0, 0).unwrap().metadata,
            Metadata::Separate(64)
        );
        assert!(
            layout(64, 12, 0x10, 0)
                .unwrap_err()
                .contains("64 bytes of interleaved metadata per 4096-byte block")
        );
        assert!(matches!(
            layout(8, 9, 0, 1).unwrap().metadata,
            Metadata::Stripped {
                reference: true,
                ..
            }
        ));
        assert!(matches!(
            layout(8, 9, 0x10, 3).unwrap().metadata,
            Metadata::Stripped {
                reference: false,
                ..
            }
        ));
        assert!(
            layout(16, 12, 0, 1)
                .unwrap_err()
                .contains("metadata with protection information")
        );
        assert!(layout(0, 0, 0, 0).unwrap_err().contains("2^0 bytes"));
    }

    #[test]
    fn zeroes_carry_the_action_bit_alone_and_never_deallocate() {
        let plain = layout(0, 12, 0, 0).unwrap().zeroes(3);
        assert_eq!(plain, Command::write_zeroes(3, 0, 1, false));
        assert_eq!((plain.opcode(), plain.dword(12)), (0x08, 0));
        let protected = layout(8, 9, 0, 1).unwrap().zeroes(3);
        assert_eq!(protected.dword(12), 0x2000_0000);
        assert_eq!(layout(64, 12, 0, 0).unwrap().zeroes(3), plain);
    }

    #[test]
    fn stripped_formats_set_the_action_bit_and_move_no_metadata() {
        let stripped = layout(8, 9, 0, 1).unwrap();
        assert_eq!(
            stripped.template(Command::read(1, 0, 1)).dword(12) >> 26,
            0b1101
        );
        assert_eq!(
            (
                stripped.metadata_bytes(8),
                layout(64, 12, 0, 0).unwrap().metadata_bytes(8)
            ),
            (0, 512)
        );
        assert_eq!(
            layout(0, 9, 0, 0).unwrap().template(Command::read(1, 0, 1)),
            Command::read(1, 0, 1)
        );
    }
}

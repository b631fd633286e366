//! A device to plan for, and its arithmetic: bytes and percentages in whole blocks.

use super::error::ConfigError;
use super::place::Place;
use crate::backend::DeviceFacts;
use crate::units::{BlockSize, Blocks, Bytes};

/// A device that can be planned for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Target<'a> {
    pub(super) facts: &'a DeviceFacts,
    pub(super) block: BlockSize,
    /// Capacity; at least 1.
    pub(super) blocks: u64,
}

impl<'a> Target<'a> {
    /// Refuses devices on which nothing can be measured.
    pub(super) fn of(facts: &'a DeviceFacts) -> Result<Self, ConfigError> {
        let block = facts.logical_block;
        let blocks = facts.blocks().0;
        let why = match facts.capacity {
            Bytes(0) => "it is empty (0 bytes); a device or file with at least one block is needed"
                .to_owned(),
            bytes if blocks == 0 => format!(
                "it has {bytes}, which is less than one logical block of {} bytes; at least one block is needed",
                block.bytes()
            ),
            _ => {
                return Ok(Self {
                    facts,
                    block,
                    blocks,
                });
            }
        };
        Err(ConfigError::Device {
            device: facts.path.clone(),
            why,
        })
    }

    pub(super) fn unfit(&self, place: &Place, why: String) -> ConfigError {
        ConfigError::Unfit {
            place: place.clone(),
            device: self.facts.path.clone(),
            why: format!("{}: {why}", self.facts.path),
        }
    }

    /// Blocks as people read them: `8 blocks of 512 bytes (4 KiB)`.
    pub(super) fn shown(&self, blocks: u64) -> String {
        let bytes = self
            .block
            .bytes_of(Blocks(blocks))
            .map_or_else(String::new, |bytes| format!(" ({bytes})"));
        format!("{blocks} blocks of {} bytes{bytes}", self.block.bytes())
    }

    /// A percentage of the device in blocks, rounded down to a multiple of `unit`.
    pub(super) fn share(&self, share_pct: f64, unit: u64) -> u64 {
        // Nine decimals of a percent as a whole number: from there on the arithmetic is exact, which
        // floating point is not beyond 2^53 blocks. The share is 0 to 100 by its parser.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let nanos = (share_pct * 1e9).round() as u128;
        let blocks = u128::from(self.blocks) * nanos / 100_000_000_000;
        let blocks = u64::try_from(blocks).unwrap_or(self.blocks);
        blocks / unit * unit
    }

    /// An amount of bytes in whole blocks.
    pub(super) fn exact(&self, bytes: Bytes, place: &Place) -> Result<u64, ConfigError> {
        self.block
            .blocks_exact(bytes)
            .map(|blocks| blocks.0)
            .ok_or_else(|| {
                let block = self.block.bytes();
                self.unfit(
                    place,
                    format!("{} bytes is not a multiple of the logical block; allowed: multiples of {block} bytes", bytes.0),
                )
            })
    }
}

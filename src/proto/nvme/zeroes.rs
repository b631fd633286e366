//! How much one Write Zeroes may name.

use super::{Fields, IDENTIFY_BYTES, Truncated};

/// Identify structure: Identify Controller of an I/O command set; of set 0, the NVM Command Set's (Base, "Identify –
/// CNS Values").
pub const CNS_COMMAND_SET_CONTROLLER: u8 = 0x06;
/// The first version whose controllers have that structure (Base 2.0); older ones would log an error.
const FIRST_VERSION: (u16, u8, u8) = (2, 0, 0);
/// NLB has 16 bits and counts from zero (NVM, "Write Zeroes – Command Dword 12").
const MOST_BLOCKS: u64 = 1 << 16;

/// Whether a controller of this version may be asked for [`CNS_COMMAND_SET_CONTROLLER`].
#[must_use]
pub fn has_command_set_controller(version: (u16, u8, u8)) -> bool {
    version >= FIRST_VERSION
}

/// Write Zeroes Size Limit as a power of two of the smallest memory page (WZSL, byte 1 of the NVM Command Set's
/// Identify Controller); absent: no limit of its own.
///
/// # Errors
/// [`Truncated`].
pub fn zeroes_shift(bytes: &[u8]) -> Result<Option<u8>, Truncated> {
    let at = Fields::new("Identify Controller (NVM)", bytes, IDENTIFY_BYTES)?;
    Ok(Some(at.u8(1)).filter(|shift| *shift != 0))
}

/// Most bytes that one Write Zeroes may name, in whole blocks. Where the controller tells no limit of its own, what
/// a transfer may have holds: MDTS does not apply to a command without data, but not every controller knows that.
#[must_use]
pub fn max_zeroes_bytes(
    shift: Option<u8>,
    page_bytes: u64,
    transfer_bytes: u64,
    block_bytes: u32,
) -> u64 {
    let block_bytes = u64::from(block_bytes.max(1));
    let own = shift.map(|shift| {
        let pages = 1_u64.checked_shl(u32::from(shift));
        pages.map_or(u64::MAX, |pages| pages.saturating_mul(page_bytes))
    });
    let most = own
        .unwrap_or(transfer_bytes)
        .min(MOST_BLOCKS * block_bytes)
        .max(block_bytes);
    most / block_bytes * block_bytes
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_limit_is_byte_1_and_zero_is_none() {
        let mut bytes = [0xff; IDENTIFY_BYTES];
        bytes[1] = 5;
        assert_eq!(zeroes_shift(&bytes), Ok(Some(5)));
        bytes[1] = 0;
        assert_eq!(zeroes_shift(&bytes), Ok(None));
        assert!(zeroes_shift(&bytes[..4095]).is_err());
    }

    #[test]
    fn only_new_controllers_are_asked() {
        assert!(has_command_set_controller((2, 0, 0)) && has_command_set_controller((2, 1, 0)));
        assert!(!has_command_set_controller((1, 4, 0)) && !has_command_set_controller((1, 0, 0)));
    }

    #[test]
    fn the_controllers_own_limit_goes_before_that_of_transfers() {
        let most = |shift, transfer| max_zeroes_bytes(shift, 4096, transfer, 512);
        assert_eq!(most(None, 128 << 10), 128 << 10);
        assert_eq!(most(Some(3), 128 << 10), 32 << 10);
        assert_eq!(most(Some(8), 128 << 10), 1 << 20);
        // 65,536 blocks are the most that the command can say.
        assert_eq!(most(Some(63), 1), 32 << 20);
        assert_eq!(most(Some(200), 1), 32 << 20);
        assert_eq!(most(None, u64::MAX), 32 << 20);
        assert_eq!(max_zeroes_bytes(None, 4096, 10_000, 4096), 8192);
        assert_eq!(max_zeroes_bytes(None, 4096, 512, 4096), 4096);
    }
}

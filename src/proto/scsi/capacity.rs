//! READ CAPACITY: how many blocks of which size.

use super::{Fields, Malformed};

/// Length of what READ CAPACITY (10) returns.
pub const CAPACITY_10_BYTES: usize = 8;
/// Length of what READ CAPACITY (16) returns.
pub const CAPACITY_16_BYTES: usize = 32;

/// Size and format of a logical unit (SBC-4, "READ CAPACITY (16) parameter data").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Capacity {
    /// Number of logical blocks: RETURNED LOGICAL BLOCK ADDRESS, which is the last one, and one more.
    pub blocks: u64,
    /// LOGICAL BLOCK LENGTH IN BYTES; protection information not included.
    pub block_bytes: u32,
    /// Protection type 1 to 3: PROT_EN (byte 12 bit 0) and P_TYPE (bits 3:1), which is one less.
    pub protection_type: Option<u8>,
    /// Logical blocks in a physical one: 2 to the power of byte 13 bits 3:0.
    pub blocks_per_physical: u32,
    /// LBPME (byte 14 bit 7): blocks can be deallocated.
    pub is_provisioned: bool,
    /// LBPRZ (byte 14 bit 6): deallocated blocks read as zeros.
    pub reads_zeros: bool,
    /// LOWEST ALIGNED LOGICAL BLOCK ADDRESS (bytes 14-15, 14 bits).
    pub lowest_aligned_lba: u16,
}

impl Capacity {
    /// Parameter data of READ CAPACITY (10); `None` where it says (`FFFFFFFFh`) that the other form is needed.
    ///
    /// # Errors
    /// [`Malformed`] where it is cut short.
    pub fn decode_10(bytes: &[u8]) -> Result<Option<Self>, Malformed> {
        let fields = Fields::new("READ CAPACITY (10) data", bytes, CAPACITY_10_BYTES)?;
        let last = fields.u32(0);
        Ok((last != u32::MAX).then(|| Self {
            blocks: u64::from(last) + 1,
            block_bytes: fields.u32(4),
            blocks_per_physical: 1,
            ..Self::default()
        }))
    }

    /// Parameter data of READ CAPACITY (16).
    ///
    /// # Errors
    /// [`Malformed`] where it is cut short.
    pub fn decode_16(bytes: &[u8]) -> Result<Self, Malformed> {
        // Devices of SBC-2 send 12 bytes: what is missing is zero.
        Fields::new("READ CAPACITY (16) data", bytes, 12)?;
        let mut whole = [0; CAPACITY_16_BYTES];
        let len = bytes.len().min(CAPACITY_16_BYTES);
        whole[..len].copy_from_slice(&bytes[..len]);
        let fields = Fields(&whole);
        Ok(Self {
            blocks: fields.u64(0).saturating_add(1),
            block_bytes: fields.u32(8),
            protection_type: fields.bit(12, 0).then(|| (fields.u8(12) >> 1 & 0x7) + 1),
            blocks_per_physical: 1 << (fields.u8(13) & 0xf),
            is_provisioned: fields.bit(14, 7),
            reads_zeros: fields.bit(14, 6),
            lowest_aligned_lba: fields.u16(14) & 0x3fff,
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_last_block_is_returned_and_not_their_number() {
        let data = [0x00, 0x01, 0xff, 0xff, 0, 0, 0x02, 0x08];
        let found = Capacity::decode_10(&data).unwrap().unwrap();
        assert_eq!((found.blocks, found.block_bytes), (0x2_0000, 520));
        let large = [0xff, 0xff, 0xff, 0xff, 0, 0, 2, 0];
        assert_eq!(Capacity::decode_10(&large), Ok(None));
    }

    #[test]
    fn every_field_of_the_long_form() {
        let mut data = [0; CAPACITY_16_BYTES];
        data[..12].copy_from_slice(&[0, 0, 0, 2, 0xba, 0xa0, 0xf4, 0xaf, 0, 0, 0x10, 0x08]);
        let plain = Capacity::decode_16(&data).unwrap();
        assert_eq!((plain.blocks, plain.block_bytes), (0x2_baa0_f4b0, 4104));
        assert_eq!(
            (plain.protection_type, plain.blocks_per_physical),
            (None, 1)
        );
        data[12] = 0b0000_0100;
        assert_eq!(Capacity::decode_16(&data).unwrap().protection_type, None);
        data[12] = 0b0000_0101;
        assert_eq!(Capacity::decode_16(&data).unwrap().protection_type, Some(3));
        data[13] = 0x53;
        assert_eq!(Capacity::decode_16(&data).unwrap().blocks_per_physical, 8);
        data[14] = 0x80;
        let found = Capacity::decode_16(&data).unwrap();
        assert!(found.is_provisioned && !found.reads_zeros && found.lowest_aligned_lba == 0);
        (data[14], data[15]) = (0x7f, 0xfe);
        let found = Capacity::decode_16(&data).unwrap();
        assert!(!found.is_provisioned && found.reads_zeros);
        assert_eq!(found.lowest_aligned_lba, 0x3ffe);
        assert_eq!(Capacity::decode_16(&data[..12]).unwrap(), plain);
        assert!(matches!(
            Capacity::decode_16(&data[..11]),
            Err(Malformed::Truncated { got_bytes: 11, .. })
        ));
    }

    proptest! {
        #[test]
        fn anything_is_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let _ = (Capacity::decode_10(&bytes), Capacity::decode_16(&bytes));
        }
    }
}

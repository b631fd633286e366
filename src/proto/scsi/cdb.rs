//! Command descriptor blocks.

/// Operation codes (SPC-5, SBC-4: "Operation codes").
pub mod opcode {
    /// Says whether the logical unit is ready; touches no medium.
    pub const TEST_UNIT_READY: u8 = 0x00;
    /// Identity and VPD pages.
    pub const INQUIRY: u8 = 0x12;
    /// Mode pages, 6-byte form.
    pub const MODE_SENSE_6: u8 = 0x1a;
    /// Size in blocks, 32-bit form.
    pub const READ_CAPACITY_10: u8 = 0x25;
    /// Reads blocks, 32-bit addresses.
    pub const READ_10: u8 = 0x28;
    /// Writes blocks, 32-bit addresses.
    pub const WRITE_10: u8 = 0x2a;
    /// Makes earlier writes durable, 32-bit addresses.
    pub const SYNCHRONIZE_CACHE_10: u8 = 0x35;
    /// Deallocates blocks.
    pub const UNMAP: u8 = 0x42;
    /// Log pages.
    pub const LOG_SENSE: u8 = 0x4d;
    /// Mode pages, 10-byte form.
    pub const MODE_SENSE_10: u8 = 0x5a;
    /// Hands an ATA command on to a SATA drive (SAT-4).
    pub const ATA_PASS_THROUGH_16: u8 = 0x85;
    /// Reads blocks, 64-bit addresses.
    pub const READ_16: u8 = 0x88;
    /// Writes blocks, 64-bit addresses.
    pub const WRITE_16: u8 = 0x8a;
    /// Writes one block to many, 64-bit addresses.
    pub const WRITE_SAME_16: u8 = 0x93;
    /// Makes earlier writes durable, 64-bit addresses.
    pub const SYNCHRONIZE_CACHE_16: u8 = 0x91;
    /// Several commands by service action; READ CAPACITY (16) is 10h.
    pub const SERVICE_ACTION_IN_16: u8 = 0x9e;
}

/// Service action of READ CAPACITY (16) in byte 1, bits 4:0.
const READ_CAPACITY_16: u8 = 0x10;
/// Page control of LOG SENSE: current cumulative values (byte 2, bits 7:6 = 01b).
const CUMULATIVE: u8 = 0b01 << 6;
/// Disable block descriptors (MODE SENSE, byte 1 bit 3).
const DBD: u8 = 1 << 3;

/// Length of a parameter list of UNMAP with one descriptor: header of 8, descriptor of 16 bytes.
pub const UNMAP_LIST_BYTES: usize = 24;

/// A command of 6, 10 or 16 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cdb {
    bytes: [u8; 16],
    len: u8,
}

impl Cdb {
    const fn new(opcode: u8, len: u8) -> Self {
        let mut bytes = [0; 16];
        bytes[0] = opcode;
        Self { bytes, len }
    }

    /// The bytes that go over the wire.
    #[must_use]
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    /// TEST UNIT READY.
    #[must_use]
    pub const fn test_unit_ready() -> Self {
        Self::new(opcode::TEST_UNIT_READY, 6)
    }

    /// Standard INQUIRY data.
    #[must_use]
    pub const fn inquiry(allocation_bytes: u16) -> Self {
        Self::new(opcode::INQUIRY, 6).with_u16(3, allocation_bytes)
    }

    /// A VPD page: EVPD in byte 1 bit 0, the page code in byte 2.
    #[must_use]
    pub const fn inquiry_vpd(page: u8, allocation_bytes: u16) -> Self {
        let mut cdb = Self::inquiry(allocation_bytes);
        cdb.bytes[1] = 1;
        cdb.bytes[2] = page;
        cdb
    }

    /// READ CAPACITY (10).
    #[must_use]
    pub const fn read_capacity_10() -> Self {
        Self::new(opcode::READ_CAPACITY_10, 10)
    }

    /// READ CAPACITY (16).
    #[must_use]
    pub const fn read_capacity_16(allocation_bytes: u32) -> Self {
        let mut cdb = Self::new(opcode::SERVICE_ACTION_IN_16, 16).with_u32(10, allocation_bytes);
        cdb.bytes[1] = READ_CAPACITY_16;
        cdb
    }

    /// A mode page with its current values, 6-byte form, without block descriptors.
    #[must_use]
    pub const fn mode_sense_6(page: u8, allocation_bytes: u8) -> Self {
        let mut cdb = Self::new(opcode::MODE_SENSE_6, 6);
        cdb.bytes[1] = DBD;
        cdb.bytes[2] = page & 0x3f;
        cdb.bytes[4] = allocation_bytes;
        cdb
    }

    /// The same, 10-byte form.
    #[must_use]
    pub const fn mode_sense_10(page: u8, allocation_bytes: u16) -> Self {
        let mut cdb = Self::new(opcode::MODE_SENSE_10, 10).with_u16(7, allocation_bytes);
        cdb.bytes[1] = DBD;
        cdb.bytes[2] = page & 0x3f;
        cdb
    }

    /// A log page with its cumulative values.
    #[must_use]
    pub const fn log_sense(page: u8, allocation_bytes: u16) -> Self {
        let mut cdb = Self::new(opcode::LOG_SENSE, 10).with_u16(7, allocation_bytes);
        cdb.bytes[2] = CUMULATIVE | page & 0x3f;
        cdb
    }

    /// READ in the short form where it reaches (and `long` does not ask for the other): up to block
    /// 2^32 - 1 and 65,535 blocks.
    #[must_use]
    #[inline]
    pub const fn read(lba: u64, blocks: u32, long: bool) -> Self {
        Self::ranged((opcode::READ_10, opcode::READ_16), lba, blocks, long)
    }

    /// WRITE, chosen as [`Self::read`].
    #[must_use]
    #[inline]
    pub const fn write(lba: u64, blocks: u32, long: bool) -> Self {
        Self::ranged((opcode::WRITE_10, opcode::WRITE_16), lba, blocks, long)
    }

    /// SYNCHRONIZE CACHE of the whole medium (LBA 0, number of blocks 0: to the last), without IMMED: it
    /// ends when the data are durable.
    #[must_use]
    pub const fn synchronize_cache(long: bool) -> Self {
        let opcodes = (opcode::SYNCHRONIZE_CACHE_10, opcode::SYNCHRONIZE_CACHE_16);
        Self::ranged(opcodes, 0, 0, long)
    }

    /// WRITE SAME (16) of the one block that is sent to `blocks` (at least 1: 0 would mean all to the end) from
    /// `lba`, without UNMAP, and with NDOB clear: many devices know no command without the block (SBC-4, "WRITE
    /// SAME (16) command").
    #[must_use]
    #[inline]
    pub const fn write_same(lba: u64, blocks: u32) -> Self {
        let opcodes = (opcode::WRITE_SAME_16, opcode::WRITE_SAME_16);
        Self::ranged(opcodes, lba, blocks, true)
    }

    /// UNMAP with a parameter list of this length; see [`unmap_list`].
    #[must_use]
    pub const fn unmap(list_bytes: u16) -> Self {
        Self::new(opcode::UNMAP, 10).with_u16(7, list_bytes)
    }

    /// SMART READ DATA of a SATA drive: one sector (ACS-3, 7.48.9).
    #[must_use]
    pub const fn ata_smart_data() -> Self {
        let mut cdb = Self::ata_sector_in(false);
        cdb.bytes[4] = 0xd0;
        // The signature that every SMART command carries in LBA 23:8.
        cdb.bytes[10] = 0x4f;
        cdb.bytes[12] = 0xc2;
        cdb.bytes[14] = 0xb0;
        cdb
    }

    /// READ LOG EXT of a SATA drive: the first sector of a log (ACS-4, 7.22). Feature 0: counters are not reset.
    #[must_use]
    pub const fn ata_log(log: u8) -> Self {
        let mut cdb = Self::ata_sector_in(true);
        cdb.bytes[8] = log;
        cdb.bytes[14] = 0x2f;
        cdb
    }

    /// IDENTIFY DEVICE of a SATA drive (ACS-4, 7.13).
    #[must_use]
    pub const fn ata_identify() -> Self {
        let mut cdb = Self::ata_sector_in(false);
        cdb.bytes[14] = 0xec;
        cdb
    }

    /// ATA PASS-THROUGH (16) of a command that hands over one sector (SAT-4, 12.2.2.3): protocol PIO data-in in
    /// byte 1, bits 4:1; T_DIR from the device, BYT_BLOK blocks, T_LENGTH in the count field.
    const fn ata_sector_in(is_48_bit: bool) -> Self {
        let mut cdb = Self::new(opcode::ATA_PASS_THROUGH_16, 16);
        cdb.bytes[1] = 4 << 1 | is_48_bit as u8;
        cdb.bytes[2] = 1 << 3 | 1 << 2 | 0b10;
        cdb.bytes[6] = 1;
        cdb
    }

    /// The two layouts that READ, WRITE and SYNCHRONIZE CACHE share. (10): LBA in bytes 2-5, blocks in 7-8;
    /// (16): LBA in bytes 2-9, blocks in 10-13.
    #[inline]
    const fn ranged(opcodes: (u8, u8), lba: u64, blocks: u32, long: bool) -> Self {
        if long || blocks > 0xffff || lba.saturating_add(blocks as u64) > 1 << 32 {
            let [b0, b1, b2, b3, b4, b5, b6, b7] = lba.to_be_bytes();
            let mut cdb = Self::new(opcodes.1, 16).with_u32(10, blocks);
            cdb = cdb.with_u32(2, u32::from_be_bytes([b0, b1, b2, b3]));
            cdb.with_u32(6, u32::from_be_bytes([b4, b5, b6, b7]))
        } else {
            // Both fit: checked above.
            let cdb = Self::new(opcodes.0, 10).with_u32(2, lba as u32);
            cdb.with_u16(7, blocks as u16)
        }
    }

    const fn with_u16(mut self, at: usize, value: u16) -> Self {
        [self.bytes[at], self.bytes[at + 1]] = value.to_be_bytes();
        self
    }

    const fn with_u32(mut self, at: usize, value: u32) -> Self {
        [
            self.bytes[at],
            self.bytes[at + 1],
            self.bytes[at + 2],
            self.bytes[at + 3],
        ] = value.to_be_bytes();
        self
    }
}

/// Parameter list of UNMAP with one descriptor (SBC-4, "UNMAP command"): UNMAP DATA LENGTH in bytes 0-1 (what
/// follows it), UNMAP BLOCK DESCRIPTOR DATA LENGTH in 2-3, then LBA in 8-15 and number of blocks in 16-19.
#[must_use]
pub const fn unmap_list(lba: u64, blocks: u32) -> [u8; UNMAP_LIST_BYTES] {
    let mut list = [0; UNMAP_LIST_BYTES];
    list[1] = (UNMAP_LIST_BYTES - 2) as u8;
    list[3] = 16;
    let (lba, blocks) = (lba.to_be_bytes(), blocks.to_be_bytes());
    let mut at = 0;
    while at < 8 {
        list[8 + at] = lba[at];
        if at < 4 {
            list[16 + at] = blocks[at];
        }
        at += 1;
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_and_writes_are_as_the_tables_say() {
        assert_eq!(
            Cdb::read(0x0123_4567, 0x89ab, false).as_bytes(),
            [0x28, 0, 0x01, 0x23, 0x45, 0x67, 0, 0x89, 0xab, 0]
        );
        assert_eq!(
            Cdb::write(0x0123_4567, 0x89ab, false).as_bytes(),
            [0x2a, 0, 0x01, 0x23, 0x45, 0x67, 0, 0x89, 0xab, 0]
        );
        let long = [
            1, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0xfe, 0xdc, 0xba, 0x98, 0, 0,
        ];
        let read = Cdb::read(0x0123_4567_89ab_cdef, 0xfedc_ba98, false);
        assert_eq!(read.as_bytes(), [&[0x88, 0][..], &long].concat());
        let write = Cdb::write(0x0123_4567_89ab_cdef, 0xfedc_ba98, false);
        assert_eq!(write.as_bytes(), [&[0x8a, 0][..], &long].concat());
    }

    #[test]
    fn the_long_form_is_taken_where_the_short_one_does_not_reach() {
        let opcode = |lba, blocks, long| Cdb::read(lba, blocks, long).as_bytes()[0];
        assert_eq!(opcode((1 << 32) - 1, 1, false), opcode::READ_10);
        assert_eq!(opcode((1 << 32) - 1, 2, false), opcode::READ_16);
        assert_eq!(opcode(1 << 32, 1, false), opcode::READ_16);
        assert_eq!(opcode(0, 0xffff, false), opcode::READ_10);
        assert_eq!(opcode(0, 0x1_0000, false), opcode::READ_16);
        assert_eq!(opcode(0, 1, true), opcode::READ_16);
        assert_eq!(opcode(u64::MAX, u32::MAX, false), opcode::READ_16);
    }

    #[test]
    fn a_flush_is_of_the_whole_medium() {
        let short = [0x35, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(Cdb::synchronize_cache(false).as_bytes(), short);
        let mut long = [0; 16];
        long[0] = 0x91;
        assert_eq!(Cdb::synchronize_cache(true).as_bytes(), long);
    }

    #[test]
    fn one_block_is_written_to_many() {
        let wanted = [
            0x93, 0, 1, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0xfe, 0xdc, 0xba, 0x98, 0, 0,
        ];
        let cdb = Cdb::write_same(0x0123_4567_89ab_cdef, 0xfedc_ba98);
        assert_eq!(cdb.as_bytes(), wanted);
        let first = [0x93, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0];
        assert_eq!(Cdb::write_same(0, 1).as_bytes(), first);
    }

    #[test]
    fn unmap_and_its_list() {
        let cdb = Cdb::unmap(UNMAP_LIST_BYTES as u16);
        assert_eq!(cdb.as_bytes(), [0x42, 0, 0, 0, 0, 0, 0, 0, 24, 0]);
        let list = [
            0, 22, 0, 16, 0, 0, 0, 0, 1, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0xfe, 0xdc,
            0xba, 0x98, 0, 0, 0, 0,
        ];
        assert_eq!(unmap_list(0x0123_4567_89ab_cdef, 0xfedc_ba98), list);
    }

    #[test]
    fn questions_are_as_the_tables_say() {
        assert_eq!(Cdb::test_unit_ready().as_bytes(), [0; 6]);
        assert_eq!(Cdb::inquiry(0x1234).as_bytes(), [0x12, 0, 0, 0x12, 0x34, 0]);
        assert_eq!(
            Cdb::inquiry_vpd(0xb0, 0x40).as_bytes(),
            [0x12, 1, 0xb0, 0, 0x40, 0]
        );
        let capacity = [0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(Cdb::read_capacity_10().as_bytes(), capacity);
        assert_eq!(
            Cdb::read_capacity_16(32).as_bytes(),
            [0x9e, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 32, 0, 0]
        );
        assert_eq!(
            Cdb::mode_sense_6(0x08, 0xfe).as_bytes(),
            [0x1a, 8, 8, 0, 0xfe, 0]
        );
        assert_eq!(
            Cdb::mode_sense_10(0x08, 0x1234).as_bytes(),
            [0x5a, 8, 8, 0, 0, 0, 0, 0x12, 0x34, 0]
        );
        assert_eq!(
            Cdb::log_sense(0x0d, 0x1234).as_bytes(),
            [0x4d, 0, 0x4d, 0, 0, 0, 0, 0x12, 0x34, 0]
        );
    }

    /// As `sg_raw` and smartctl send them: SAT-4, 12.2.2.3.
    #[test]
    fn ata_commands_are_as_the_tables_say() {
        assert_eq!(
            Cdb::ata_smart_data().as_bytes(),
            [
                0x85, 0x08, 0x0e, 0, 0xd0, 0, 1, 0, 0, 0, 0x4f, 0, 0xc2, 0, 0xb0, 0
            ]
        );
        assert_eq!(
            Cdb::ata_log(0x11).as_bytes(),
            [
                0x85, 0x09, 0x0e, 0, 0, 0, 1, 0, 0x11, 0, 0, 0, 0, 0, 0x2f, 0
            ]
        );
        assert_eq!(
            Cdb::ata_identify().as_bytes(),
            [0x85, 0x08, 0x0e, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0xec, 0]
        );
    }

    proptest! {
        #[test]
        fn the_range_is_in_the_bytes(lba in any::<u64>(), blocks in any::<u32>(), long in any::<bool>()) {
            let cdb = Cdb::read(lba, blocks, long);
            let bytes = cdb.as_bytes();
            let number = |range: std::ops::Range<usize>| {
                bytes[range].iter().fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte))
            };
            let found = match bytes.len() {
                10 => (number(2..6), number(7..9)),
                _ => (number(2..10), number(10..14)),
            };
            prop_assert_eq!(found, (lba, u64::from(blocks)));
        }
    }
}

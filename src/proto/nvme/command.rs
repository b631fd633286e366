//! 64-byte submission queue entries.

/// Length of a command in bytes (Base, "Common Command Format").
pub const COMMAND_BYTES: usize = 64;
/// Length of one dataset management range in bytes (NVM, "Dataset Management – Range Definition").
pub const DSM_RANGE_BYTES: usize = 16;

/// Opcodes (NVM, "Opcodes for NVM Commands"; Base, "Opcodes for Admin Commands").
pub mod opcode {
    /// Makes earlier writes durable.
    pub const FLUSH: u8 = 0x00;
    /// Writes blocks.
    pub const WRITE: u8 = 0x01;
    /// Reads blocks.
    pub const READ: u8 = 0x02;
    /// Makes blocks read as zeros.
    pub const WRITE_ZEROES: u8 = 0x08;
    /// Dataset management, used to deallocate.
    pub const DATASET_MANAGEMENT: u8 = 0x09;
    /// Admin: reads a log page.
    pub const ADMIN_GET_LOG_PAGE: u8 = 0x02;
    /// Admin: reads an Identify structure.
    pub const ADMIN_IDENTIFY: u8 = 0x06;
    /// Admin: reads a setting.
    pub const ADMIN_GET_FEATURES: u8 = 0x0a;
}

/// CDW12 bit 30: Force Unit Access (NVM, "Write – Command Dword 12").
const FUA: u32 = 1 << 30;
/// CDW12 bit 29: Protection Information Action (NVM, "Protection Information Field Definition").
const PRACT: u32 = 1 << 29;
/// CDW12 bit 25: Deallocate (NVM, "Write Zeroes – Command Dword 12").
const DEAC: u32 = 1 << 25;
/// CDW11 bit 2: Attribute – Deallocate (NVM, "Dataset Management – Command Dword 11").
const AD: u32 = 1 << 2;
/// CDW10 bit 15 of Get Log Page: Retain Asynchronous Event.
const RAE: u32 = 1 << 15;

/// What a controller checks of the protection information (NVM, "Protection Information Field Definition").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PiCheck {
    /// CDW12 bit 28.
    pub guard: bool,
    /// CDW12 bit 27.
    pub application_tag: bool,
    /// CDW12 bit 26.
    pub reference_tag: bool,
}

/// A submission queue entry as the 16 little-endian dwords that go over the wire. The command identifier and
/// the data pointer (PRP or SGL) are the transport's and stay zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C, align(8))]
pub struct Command([u32; 16]);

impl Command {
    const fn empty(opcode: u8, nsid: u32) -> Self {
        let mut dwords = [0; 16];
        dwords[0] = (opcode as u32).to_le(); // CDW0 bits 7:0
        dwords[1] = nsid.to_le(); // CDW1
        Self(dwords)
    }

    /// Read. `blocks` 1 to 65,536 logical blocks; 0 is taken as 1.
    #[must_use]
    pub const fn read(nsid: u32, lba: u64, blocks: u32) -> Self {
        let mut command = Self::empty(opcode::READ, nsid);
        command.set_range(lba, blocks);
        command
    }

    /// Write. `blocks` 1 to 65,536 logical blocks; 0 is taken as 1.
    #[must_use]
    pub const fn write(nsid: u32, lba: u64, blocks: u32) -> Self {
        let mut command = Self::empty(opcode::WRITE, nsid);
        command.set_range(lba, blocks);
        command
    }

    /// Write Zeroes, which moves no data. With `deallocate` the controller may unmap the blocks.
    #[must_use]
    pub const fn write_zeroes(nsid: u32, lba: u64, blocks: u32, deallocate: bool) -> Self {
        let mut command = Self::empty(opcode::WRITE_ZEROES, nsid);
        command.set_range(lba, blocks);
        if deallocate {
            command.0[12] |= DEAC.to_le();
        }
        command
    }

    /// Dataset Management with the deallocate attribute. Its data are `ranges_count` (1 to 256) ranges, see
    /// [`dsm_range`].
    #[must_use]
    pub const fn deallocate(nsid: u32, ranges_count: u32) -> Self {
        let mut command = Self::empty(opcode::DATASET_MANAGEMENT, nsid);
        command.0[10] = (ranges_count.saturating_sub(1) & 0xff).to_le(); // NR, bits 7:0, zero-based
        command.0[11] = AD.to_le();
        command
    }

    /// Flush of the namespace.
    #[must_use]
    pub const fn flush(nsid: u32) -> Self {
        Self::empty(opcode::FLUSH, nsid)
    }

    /// Admin command Identify of structure `cns` (Base, "Identify – Command Dword 10").
    #[must_use]
    pub const fn identify(cns: u8, nsid: u32) -> Self {
        let mut command = Self::empty(opcode::ADMIN_IDENTIFY, nsid);
        command.0[10] = (cns as u32).to_le(); // CNS, bits 7:0
        command
    }

    /// Admin command Get Log Page: `bytes` (a multiple of 4, at least 4) of page `page` from its start. The
    /// asynchronous event is retained: reading a log changes nothing.
    #[must_use]
    pub const fn get_log_page(page: u8, nsid: u32, bytes: u32) -> Self {
        let dwords = (bytes / 4).saturating_sub(1); // NUMD, zero-based
        let mut command = Self::empty(opcode::ADMIN_GET_LOG_PAGE, nsid);
        command.0[10] = (page as u32 | RAE | (dwords & 0xffff) << 16).to_le(); // LID 7:0, NUMDL 31:16
        command.0[11] = (dwords >> 16).to_le(); // NUMDU 15:0
        command
    }

    /// Admin command Get Features of `feature`'s current value, which comes back in the completion
    /// (Base, "Get Features – Command Dword 10").
    #[must_use]
    pub const fn get_features(feature: u8) -> Self {
        let mut command = Self::empty(opcode::ADMIN_GET_FEATURES, 0);
        command.0[10] = (feature as u32).to_le(); // FID, bits 7:0; SEL, bits 10:8, 0: current
        command
    }

    /// Sets the blocks of a read, write or write zeroes and nothing else of CDW12's flags
    /// (NVM, "Read – Command Dword 10 and Command Dword 11", "Read – Command Dword 12").
    #[inline]
    pub const fn set_range(&mut self, lba: u64, blocks: u32) {
        self.0[10] = (lba as u32).to_le(); // SLBA 31:0
        self.0[11] = ((lba >> 32) as u32).to_le(); // SLBA 63:32
        let flags = u32::from_le(self.0[12]) & 0xffff_0000;
        self.0[12] = (flags | (blocks.saturating_sub(1) & 0xffff)).to_le(); // NLB 15:0, zero-based
    }

    /// The same command with Force Unit Access.
    #[must_use]
    pub const fn with_fua(mut self) -> Self {
        self.0[12] |= FUA.to_le();
        self
    }

    /// The same command with the controller inserting (write) or checking and stripping (read) protection
    /// information, where the metadata is nothing else.
    #[must_use]
    pub const fn with_pi_action(mut self, check: PiCheck) -> Self {
        let bits = (check.guard as u32) << 28
            | (check.application_tag as u32) << 27
            | (check.reference_tag as u32) << 26;
        self.0[12] |= (PRACT | bits).to_le();
        self
    }

    /// The same command with the Initial (Expected) Logical Block Reference Tag, CDW14.
    #[must_use]
    #[inline]
    pub const fn with_reference_tag(mut self, tag: u32) -> Self {
        self.0[14] = tag.to_le();
        self
    }

    /// Opcode, CDW0 bits 7:0.
    #[must_use]
    pub const fn opcode(&self) -> u8 {
        (u32::from_le(self.0[0]) & 0xff) as u8
    }

    /// Namespace, CDW1.
    #[must_use]
    pub const fn nsid(&self) -> u32 {
        u32::from_le(self.0[1])
    }

    /// Command dword `index` (0 to 15) in host order; 0 beyond.
    #[must_use]
    pub const fn dword(&self, index: usize) -> u32 {
        if index < self.0.len() {
            u32::from_le(self.0[index])
        } else {
            0
        }
    }

    /// The entry as it goes over the wire.
    #[must_use]
    pub const fn to_bytes(&self) -> [u8; COMMAND_BYTES] {
        let mut out = [0; COMMAND_BYTES];
        let mut at = 0;
        while at < COMMAND_BYTES {
            out[at] = self.0[at / 4].to_ne_bytes()[at % 4];
            at += 1;
        }
        out
    }
}

/// One range of a Dataset Management command (NVM, "Dataset Management – Range Definition"): context attributes
/// (none), length in logical blocks, first block.
#[must_use]
pub const fn dsm_range(lba: u64, blocks: u32) -> [u8; DSM_RANGE_BYTES] {
    let (length, start) = (blocks.to_le_bytes(), lba.to_le_bytes());
    let mut out = [0; DSM_RANGE_BYTES];
    let mut at = 0;
    while at < 8 {
        if at < 4 {
            out[4 + at] = length[at]; // bytes 7:4
        }
        out[8 + at] = start[at]; // bytes 15:8
        at += 1;
    }
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    /// A wire image: the given (offset, byte) pairs, all else zero.
    fn wire(set: &[(usize, u8)]) -> [u8; COMMAND_BYTES] {
        let mut bytes = [0; COMMAND_BYTES];
        for (at, byte) in set {
            bytes[*at] = *byte;
        }
        bytes
    }

    #[test]
    fn read_puts_every_field_at_its_byte() {
        let lba = 0x1122_3344_5566_7788;
        let expected = wire(&[
            (0, 0x02),
            (4, 0x05),
            (40, 0x88),
            (41, 0x77),
            (42, 0x66),
            (43, 0x55),
            (44, 0x44),
            (45, 0x33),
            (46, 0x22),
            (47, 0x11),
            (48, 0x07),
        ]);
        assert_eq!(Command::read(5, lba, 8).to_bytes(), expected);
    }

    #[test]
    fn the_longest_transfer_is_65536_blocks() {
        let command = Command::write(1, 0, 65_536);
        assert_eq!(
            command.to_bytes(),
            wire(&[(0, 0x01), (4, 1), (48, 0xff), (49, 0xff)])
        );
        assert_eq!(Command::read(1, 0, 1).dword(12), 0);
    }

    #[test]
    fn flags_live_in_the_upper_half_of_cdw12_and_survive_a_new_range() {
        let all = PiCheck {
            guard: true,
            application_tag: true,
            reference_tag: true,
        };
        assert_eq!(Command::write(1, 0, 1).with_fua().dword(12), 0x4000_0000);
        assert_eq!(
            Command::read(1, 0, 1)
                .with_pi_action(PiCheck::default())
                .dword(12),
            0x2000_0000
        );
        assert_eq!(
            Command::read(1, 0, 1).with_pi_action(all).dword(12),
            0x3c00_0000
        );
        assert_eq!(
            Command::read(1, 0, 1)
                .with_pi_action(PiCheck {
                    guard: true,
                    ..PiCheck::default()
                })
                .dword(12),
            0x3000_0000
        );
        assert_eq!(Command::write_zeroes(1, 0, 1, true).dword(12), 0x0200_0000);
        let mut command = Command::write_zeroes(1, 0, 1, true);
        command.set_range(9, 2);
        assert_eq!((command.dword(12), command.dword(10)), (0x0200_0001, 9));
        assert_eq!(
            Command::read(1, 0, 1)
                .with_reference_tag(0xdead_beef)
                .dword(14),
            0xdead_beef
        );
    }

    #[test]
    fn deallocate_counts_ranges_from_zero_and_sets_ad() {
        assert_eq!(
            Command::deallocate(3, 1).to_bytes(),
            wire(&[(0, 0x09), (4, 3), (44, 0x04)])
        );
        assert_eq!(Command::deallocate(3, 256).dword(10), 0xff);
        let range = dsm_range(0x0102_0304_0506_0708, 0x1122_3344);
        assert_eq!(
            range,
            [0, 0, 0, 0, 0x44, 0x33, 0x22, 0x11, 8, 7, 6, 5, 4, 3, 2, 1]
        );
    }

    #[test]
    fn admin_commands_match_their_vectors() {
        assert_eq!(
            Command::flush(0xffff_ffff).to_bytes(),
            wire(&[(4, 255), (5, 255), (6, 255), (7, 255)])
        );
        assert_eq!(
            Command::identify(0x01, 0).to_bytes(),
            wire(&[(0, 0x06), (40, 0x01)])
        );
        assert_eq!(
            Command::get_features(0x07).to_bytes(),
            wire(&[(0, 0x0a), (40, 0x07)])
        );
        let smart = Command::get_log_page(0x02, 0xffff_ffff, 512);
        assert_eq!(smart.dword(10), 0x007f_8002);
        let large = Command::get_log_page(0x05, 0, 4 * 0x1_0001);
        assert_eq!((large.dword(10), large.dword(11)), (0x0000_8005, 1));
    }

    proptest! {
        #[test]
        fn a_range_reads_back(lba: u64, blocks in 1u32..=65_536, nsid: u32) {
            let command = Command::read(nsid, lba, blocks);
            prop_assert_eq!(u64::from(command.dword(11)) << 32 | u64::from(command.dword(10)), lba);
            prop_assert_eq!(command.dword(12) + 1, blocks);
            prop_assert_eq!((command.opcode(), command.nsid()), (opcode::READ, nsid));
            let bytes = command.to_bytes();
            prop_assert_eq!(u32::from_le_bytes(bytes[4..8].try_into().unwrap()), nsid);
        }
    }
}

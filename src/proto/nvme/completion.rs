//! 16-byte completion queue entries.

use super::NvmeStatus;

/// Length of a completion in bytes (Base, "Common Completion Queue Entry Layout").
pub const COMPLETION_BYTES: usize = 16;

/// A completion queue entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    /// Dword 0: the command's own result.
    pub result: u32,
    /// Dword 2 bits 15:0: how far the controller has read the submission queue.
    pub queue_head: u16,
    /// Dword 2 bits 31:16: the submission queue.
    pub queue_id: u16,
    /// Dword 3 bits 15:0: the command.
    pub command_id: u16,
    /// Dword 3 bit 16: flips with each pass over the queue.
    pub phase: bool,
    /// Dword 3 bits 31:17.
    pub status: NvmeStatus,
}

impl Completion {
    /// Decodes an entry.
    #[must_use]
    pub fn decode(bytes: &[u8; COMPLETION_BYTES]) -> Self {
        let word = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        Self {
            result: u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]),
            queue_head: word(8),
            queue_id: word(10),
            command_id: word(12),
            phase: bytes[14] & 1 == 1,
            status: NvmeStatus::from_field(word(14)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_field_is_where_the_figure_says() {
        let entry = |set: &[(usize, u8)]| {
            let mut bytes = [0; COMPLETION_BYTES];
            set.iter().for_each(|(at, byte)| bytes[*at] = *byte);
            Completion::decode(&bytes)
        };
        assert_eq!(entry(&[(0, 1), (3, 4)]).result, 0x0400_0001);
        assert_eq!(entry(&[(8, 1), (9, 2)]).queue_head, 0x0201);
        assert_eq!(entry(&[(10, 3), (11, 4)]).queue_id, 0x0403);
        assert_eq!(entry(&[(12, 5), (13, 6)]).command_id, 0x0605);
        assert!(entry(&[(14, 1)]).phase && !entry(&[(14, 2)]).phase);
        let failed = entry(&[(14, 0x03), (15, 0x05)]);
        assert_eq!(
            (failed.phase, failed.status),
            (true, NvmeStatus::new(2, 0x81))
        );
        assert!(
            entry(&[(4, 255), (7, 255)]).status.is_ok(),
            "dword 1 is nobody's"
        );
    }

    proptest! {
        #[test]
        fn any_entry_decodes(bytes: [u8; COMPLETION_BYTES]) {
            let completion = Completion::decode(&bytes);
            prop_assert_eq!(completion.status, NvmeStatus::from_entry(&bytes));
            prop_assert_eq!(&completion.result.to_le_bytes()[..], &bytes[..4]);
        }
    }
}

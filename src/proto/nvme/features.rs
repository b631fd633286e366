//! Features: what Get Features answers in dword 0 of its completion.

use super::NvmeStatus;

/// Feature Identifier of the volatile write cache (Base, "Volatile Write Cache").
pub const VOLATILE_WRITE_CACHE: u8 = 0x06;

/// WCE, bit 0 of dword 0: the volatile write cache is switched on.
#[must_use]
pub const fn is_write_cache_on(dword_0: u32) -> bool {
    dword_0 & 1 != 0
}

/// Whether a feature was refused for there is none: Invalid Field in Command, which is how a controller without a
/// volatile write cache answers.
#[must_use]
pub const fn is_no_feature(status: NvmeStatus) -> bool {
    status.sct == 0 && status.sc == 0x02
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_bit_0_tells_of_the_write_cache() {
        assert!(is_write_cache_on(0x0000_0001) && is_write_cache_on(0xffff_ffff));
        assert!(!is_write_cache_on(0) && !is_write_cache_on(0xffff_fffe));
    }

    #[test]
    fn only_an_invalid_field_means_that_there_is_none() {
        // Invalid Field in Command with DNR, as controllers give it.
        assert!(is_no_feature(NvmeStatus::from_result(0x4002)));
        for other in [0x0001, 0x0004, 0x0102, 0x0000] {
            assert!(!is_no_feature(NvmeStatus::from_result(other)), "{other:#x}");
        }
    }
}

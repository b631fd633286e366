//! How wide the IOMMU is, and where DMA memory must lie to fit under it.
//!
//! SPDK maps memory for devices at its virtual address. DPDK reserves that near 2^45; an IOMMU of 39 bits (many
//! desktops) cannot translate it, and mapping fails with EINVAL.

use crate::sysfs::{Sysfs, read_text};

/// Width that DPDK's default addresses need.
pub const USUAL_BITS: u32 = 48;
/// Least width we can place memory under: the base below plus room.
pub const LEAST_BITS: u32 = 38;
/// Base address under a narrow IOMMU: above what programs use, below 2^38.
pub const NARROW_BASE: u64 = 1 << 36;

/// Width in bits of the narrowest IOMMU that this machine reports; absent where there is none, or none that says
/// (AMD and ARM units are at least 48 bits wide).
#[must_use]
pub fn narrowest_bits(sysfs: &Sysfs) -> Option<u32> {
    let units = std::fs::read_dir(sysfs.sys("class/iommu")).ok()?;
    units
        .flatten()
        .filter_map(|unit| read_text(&unit.path().join("intel-iommu/cap")).ok())
        .filter_map(|cap| width(&cap))
        .min()
}

/// The width in the capability register of an Intel unit: MGAW, bits 21:16, one less than the width
/// (VT-d specification, "Capability Register").
fn width(cap: &str) -> Option<u32> {
    let cap = u64::from_str_radix(cap.trim_start_matches("0x"), 16).ok()?;
    Some((cap >> 16 & 0x3f) as u32 + 1)
}

/// Base address for DPDK's memory; absent where its own choice fits.
#[must_use]
pub const fn base_for(bits: Option<u32>) -> Option<u64> {
    match bits {
        Some(bits) if bits < USUAL_BITS && bits >= LEAST_BITS => Some(NARROW_BASE),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_width_is_in_bits_21_to_16() {
        assert_eq!(width("d2008c222f0686"), Some(48)); // 0x2f + 1
        assert_eq!(width("c0000020660462"), Some(39)); // 0x26 is one less
        assert_eq!(width("nonsense"), None);
    }

    #[test]
    fn the_narrowest_unit_decides() {
        let root = tempfile::tempdir().unwrap();
        for (unit, cap) in [("dmar0", "d2008c222f0686"), ("dmar1", "c0000020660462")] {
            let dir = root
                .path()
                .join("sys/class/iommu")
                .join(unit)
                .join("intel-iommu");
            std::fs::create_dir_all(&dir).unwrap();
            std::fs::write(dir.join("cap"), cap).unwrap();
        }
        let sysfs = Sysfs::at(root.path());
        assert_eq!(narrowest_bits(&sysfs), Some(39));
        assert_eq!(
            narrowest_bits(&Sysfs::at(root.path().join("nowhere"))),
            None
        );
    }

    #[test]
    fn only_a_narrow_unit_moves_the_base() {
        assert_eq!(base_for(None), None);
        assert_eq!(base_for(Some(48)), None);
        assert_eq!(base_for(Some(39)), Some(1 << 36));
        assert_eq!(base_for(Some(32)), None);
    }
}

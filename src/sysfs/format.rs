//! What a block carries beside its data.

use super::absent::Fact;
use super::{BlockDev, read_u64, read_word};

/// Bytes of metadata beside each logical block of an NVMe namespace (Linux 6.8 and later).
///
/// # Errors
/// [`Absent`](super::absent::Absent) before that, and for other devices.
pub fn metadata_bytes(disk: &BlockDev) -> Fact<u64> {
    Ok(read_u64(&disk.disk_dir().join("metadata_bytes"))?)
}

/// Protection information that the kernel's block layer handles: `T10-DIF-TYPE1-CRC`, `nop`; `None` where it
/// handles none.
#[must_use]
pub fn integrity(disk: &BlockDev) -> Option<String> {
    let text = read_word(&disk.disk_dir().join("integrity/format"))
        .ok()
        .flatten();
    text.filter(|text| text != "none")
}

//! SCSI hosts: what a disk's controller calls itself, and how many commands it takes.

use super::absent::Fact;
use super::{Sysfs, read_u64, read_word};
use std::path::Path;

/// A host: one port of an AHCI controller, one whole HBA.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScsiHost {
    /// Kernel name: `host0`.
    pub name: String,
    /// The low-level driver's name: `mpt3sas`, `megaraid_sas`, `ahci`, `virtio_scsi`.
    pub driver: Option<String>,
    /// Commands that it takes at once.
    pub can_queue_count: Fact<u64>,
    /// Hardware queues.
    pub hardware_queues_count: Fact<u64>,
    /// Name of the board, or the product, where the driver tells.
    pub board: Option<String>,
    /// Firmware version, where the driver tells.
    pub firmware: Option<String>,
}

/// What drivers call the name of their board: mpt3sas and mptsas, hpsa, aacraid.
const BOARD: [&str; 3] = ["board_name", "model", "version_product"];
/// And the version of its firmware.
const FIRMWARE: [&str; 4] = [
    "version_fw",
    "firmware_revision",
    "hba_monitor_version",
    "fw_version",
];

impl ScsiHost {
    /// The host above a SCSI device's folder.
    #[must_use]
    pub fn of(sysfs: &Sysfs, device_dir: &Path) -> Option<Self> {
        let name = device_dir
            .ancestors()
            .filter_map(|dir| dir.file_name()?.to_str())
            .find(|name| {
                let digits = name.strip_prefix("host").unwrap_or_default();
                !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit())
            })?;
        let dir = sysfs.sys("class/scsi_host").join(name);
        let word = |file: &str| read_word(&dir.join(file)).ok().flatten();
        Some(Self {
            name: name.to_owned(),
            driver: word("proc_name").filter(|name| name != "<NULL>" && name != "(null)"),
            can_queue_count: read_u64(&dir.join("can_queue")).map_err(Into::into),
            hardware_queues_count: read_u64(&dir.join("nr_hw_queues")).map_err(Into::into),
            board: BOARD.iter().find_map(|file| word(file)),
            firmware: FIRMWARE.iter().find_map(|file| word(file)),
        })
    }
}

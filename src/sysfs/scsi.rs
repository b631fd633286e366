//! SCSI disks as the kernel names them, and their generic (`sg`) nodes.

use super::{
    DevNum, Sysfs, SysfsError, names_in, optional, read_bytes, read_text, read_word, real_path,
};
use std::path::{Path, PathBuf};

/// What the kernel knows of one SCSI device.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ScsiDevice {
    /// Vendor: `ATA` for disks behind the kernel's translation.
    pub vendor: Option<String>,
    /// Model.
    pub model: Option<String>,
    /// Firmware revision.
    pub firmware: Option<String>,
    /// VPD page 80h (serial number) in raw bytes; empty where it is not exported. `proto::scsi` decodes it.
    pub page_80: Vec<u8>,
    /// VPD page 83h (names) in raw bytes; empty where it is not exported.
    pub page_83: Vec<u8>,
    /// The kernel's own choice among the names of page 83h.
    pub wwid: Option<String>,
}

impl ScsiDevice {
    /// Reads the folder of a SCSI device (`…/target6:0:0/6:0:0:0`).
    ///
    /// # Errors
    /// [`SysfsError::Read`] where a file exists but cannot be read.
    pub fn read(dir: &Path) -> Result<Self, SysfsError> {
        let page = |name| optional(read_bytes(&dir.join(name)));
        Ok(Self {
            vendor: read_word(&dir.join("vendor"))?,
            model: read_word(&dir.join("model"))?,
            firmware: read_word(&dir.join("rev"))?,
            page_80: page("vpd_pg80")?.unwrap_or_default(),
            page_83: page("vpd_pg83")?.unwrap_or_default(),
            wwid: read_word(&dir.join("wwid"))?,
        })
    }
}

/// The SCSI device folder behind a whole disk's folder, where it is a SCSI disk.
#[must_use]
pub fn device_dir(disk_dir: &Path) -> Option<PathBuf> {
    let dir = real_path(&disk_dir.join("device")).ok()?;
    let is_scsi = dir.join("scsi_level").exists() || dir.join("scsi_generic").exists();
    is_scsi.then_some(dir)
}

/// Name and number of the `sg` node of a SCSI device folder.
///
/// # Errors
/// [`SysfsError`] where a node exists but its number is unreadable or garbled.
pub fn generic_node(device_dir: &Path) -> Result<Option<(String, DevNum)>, SysfsError> {
    let folder = device_dir.join("scsi_generic");
    let names = optional(names_in(&folder))?.unwrap_or_default();
    let Some(name) = names.into_iter().next() else {
        return Ok(None);
    };
    let path = folder.join(&name).join("dev");
    let text = read_text(&path)?;
    let dev = DevNum::parse(&text)
        .ok_or_else(|| SysfsError::garbled(&path, &text, "a device number such as 21:0"))?;
    Ok(Some((name, dev)))
}

/// The SCSI device folder of the `sg` node with this number; `None` where no `sg` node has it.
///
/// # Errors
/// [`SysfsError`] where the class exists but cannot be listed.
pub fn device_of_generic(sysfs: &Sysfs, dev: DevNum) -> Result<Option<PathBuf>, SysfsError> {
    let class = sysfs.sys("class/scsi_generic");
    for name in optional(names_in(&class))?.unwrap_or_default() {
        let text = read_text(&class.join(&name).join("dev"))?;
        if DevNum::parse(&text) == Some(dev) {
            return real_path(&class.join(&name).join("device")).map(Some);
        }
    }
    Ok(None)
}

/// Name of the disk's block device below a SCSI device folder; tapes and enclosures have none.
///
/// # Errors
/// [`SysfsError::Read`] where the folder exists but cannot be listed.
pub fn block_of_device(device_dir: &Path) -> Result<Option<String>, SysfsError> {
    let names = optional(names_in(&device_dir.join("block")))?.unwrap_or_default();
    Ok(names.into_iter().next())
}

//! SCSI disks as the kernel names them, and their generic (`sg`) nodes.

use super::{
    DevNum, Sysfs, SysfsError, names_in, optional, read_bool, read_bytes, read_text, read_u64,
    read_word, real_path,
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

/// How many commands a SCSI device is given at once, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ScsiQueue {
    /// What the device itself is given (`queue_depth`).
    pub depth_count: Option<u32>,
    /// What its host adapter takes for all of its devices (`can_queue`).
    pub host_count: Option<u32>,
    /// What the block layer has requests for (`nr_requests`); absent without a block device.
    pub requests_count: Option<u32>,
    /// After how long the kernel aborts a command, seconds (`timeout`).
    pub timeout_s: Option<u32>,
}

impl ScsiQueue {
    /// Reads it for a SCSI device folder.
    ///
    /// # Errors
    /// [`SysfsError`] where a figure exists but is unreadable or garbled.
    pub fn read(sysfs: &Sysfs, device_dir: &Path) -> Result<Self, SysfsError> {
        let count = |path: &Path| -> Result<Option<u32>, SysfsError> {
            let value = optional(read_u64(path))?;
            Ok(value.and_then(|value| u32::try_from(value).ok()))
        };
        // `host:channel:id:lun`
        let name = device_dir.file_name().unwrap_or_default().to_string_lossy();
        let host = name.split(':').next().unwrap_or_default();
        let block = block_of_device(device_dir)?;
        let requests = |name: String| {
            device_dir
                .join("block")
                .join(name)
                .join("queue/nr_requests")
        };
        Ok(Self {
            depth_count: count(&device_dir.join("queue_depth"))?,
            host_count: count(&sysfs.sys(format!("class/scsi_host/host{host}/can_queue")))?,
            requests_count: match block {
                Some(name) => count(&requests(name))?,
                None => None,
            },
            timeout_s: count(&device_dir.join("timeout"))?,
        })
    }

    /// The most that can be in the device at once, without one waiting in the kernel: the least of all.
    #[must_use]
    pub fn device_count(&self) -> Option<u32> {
        let all = [self.depth_count, self.host_count, self.requests_count];
        all.into_iter().flatten().filter(|count| *count > 0).min()
    }
}

/// Whether the kernel has given a SCSI device up (`state`: offline, deleted …), or it is not there any more.
#[must_use]
pub fn is_dead(device_dir: &Path) -> bool {
    const ALIVE: [&str; 5] = [
        "running",
        "created",
        "quiesce",
        "blocked",
        "created-blocked",
    ];
    match read_text(&device_dir.join("state")) {
        Ok(state) => !ALIVE.contains(&state.as_str()),
        Err(error) => error.is_absent(),
    }
}

/// Whether the sg driver lets data go straight to the caller's buffers (its parameter `allow_dio`); `None` without
/// the driver. (Kernels with `CONFIG_SCSI_PROC_FS` show it below `/proc/scsi/sg` too.)
///
/// # Errors
/// [`SysfsError`] where it exists but is unreadable or garbled.
pub fn allows_direct(sysfs: &Sysfs) -> Result<Option<bool>, SysfsError> {
    optional(read_bool(&sysfs.sys("module/sg/parameters/allow_dio")))
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, Sysfs, PathBuf) {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let dir = root.path().join("sys/devices/host2/2:0:0:0");
        std::fs::create_dir_all(&dir).unwrap();
        let sysfs = Sysfs::at(root.path());
        (root, sysfs, dir)
    }

    #[test]
    fn the_least_of_three_is_what_the_device_holds() {
        let (_root, sysfs, dir) = tree(&[
            ("sys/devices/host2/2:0:0:0/queue_depth", "64\n"),
            ("sys/devices/host2/2:0:0:0/timeout", "30\n"),
            (
                "sys/devices/host2/2:0:0:0/block/sda/queue/nr_requests",
                "8\n",
            ),
            ("sys/class/scsi_host/host2/can_queue", "4\n"),
        ]);
        let queue = ScsiQueue::read(&sysfs, &dir).unwrap();
        let wanted = ScsiQueue {
            depth_count: Some(64),
            host_count: Some(4),
            requests_count: Some(8),
            timeout_s: Some(30),
        };
        assert_eq!((queue, queue.device_count()), (wanted, Some(4)));
    }

    #[test]
    fn what_is_not_told_is_unknown_and_what_is_garbled_is_an_error() {
        let (_root, sysfs, dir) = tree(&[]);
        let queue = ScsiQueue::read(&sysfs, &dir).unwrap();
        assert_eq!((queue, queue.device_count()), (ScsiQueue::default(), None));
        assert_eq!(allows_direct(&sysfs), Ok(None));
        let (_root, sysfs, dir) = tree(&[
            ("sys/devices/host2/2:0:0:0/queue_depth", "deep\n"),
            ("sys/module/sg/parameters/allow_dio", "perhaps\n"),
        ]);
        let found = ScsiQueue::read(&sysfs, &dir);
        assert!(matches!(found, Err(SysfsError::Garbled { .. })));
        assert!(matches!(
            allows_direct(&sysfs),
            Err(SysfsError::Garbled { .. })
        ));
    }

    #[test]
    fn offline_and_vanished_devices_are_dead() {
        let dead = |state: &str| {
            let (_root, _, dir) = tree(&[("sys/devices/host2/2:0:0:0/state", state)]);
            is_dead(&dir)
        };
        assert!(!dead("running\n") && !dead("blocked\n") && !dead("quiesce\n"));
        assert!(dead("offline\n") && dead("transport-offline\n") && dead("deleted\n"));
        assert!(is_dead(&tree(&[]).2), "no state file: the device has gone");
    }
}

//! Limits of a block device's queue, and what the device says of itself, by its numbers.

use super::{Sysfs, SysfsError, read_text, read_u64};
use crate::errno::Errno;
use crate::units::Bytes;
use std::path::{Path, PathBuf};

/// What `/sys/dev/block/MAJOR:MINOR` tells. Absent files are `None`: bio-based devices have no
/// `nr_requests`, older kernels lack others.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BlockQueue {
    /// Largest request that is not split (`queue/max_sectors_kb`).
    pub max_io: Option<Bytes>,
    /// Largest request that the device takes (`queue/max_hw_sectors_kb`).
    pub max_hw: Option<Bytes>,
    /// Pieces of memory that one request may have (`queue/max_segments`).
    pub max_segments_count: Option<u32>,
    /// Requests that the block layer holds for the device (`queue/nr_requests`).
    pub nr_requests_count: Option<u32>,
    /// Commands that the device itself holds (`device/queue_depth`: SCSI, and NCQ through it).
    pub queue_depth_count: Option<u32>,
    /// Rotating medium.
    pub rotational: Option<bool>,
    /// Whether the queue has poll support (`queue/io_poll`).
    pub polls: Option<bool>,
    /// Largest discard; 0 where the device has none.
    pub discard_max: Option<Bytes>,
    /// Whether the driver has a request queue (`mq`); bio-based ones (zram, dm, md) have none.
    pub has_requests: bool,
    /// Whether the kernel will not let it be written.
    pub read_only: Option<bool>,
    /// Model, vendor in front where there is one.
    pub model: Option<String>,
    /// Serial number.
    pub serial: Option<String>,
    /// Firmware revision.
    pub firmware: Option<String>,
}

impl BlockQueue {
    /// Reads it; a partition has the queue of its whole device.
    ///
    /// # Errors
    /// [`SysfsError::Garbled`] where a figure is none. A missing directory or file is no error.
    pub fn read(sysfs: &Sysfs, major: u32, minor: u32) -> Result<Self, SysfsError> {
        let whole = whole_device(sysfs.sys(format!("dev/block/{major}:{minor}")));
        let (queue, device) = (whole.join("queue"), whole.join("device"));
        let count = |path: PathBuf| Ok(number(&path)?.and_then(|count| u32::try_from(count).ok()));
        let flag = |path: PathBuf| Ok(number(&path)?.map(|value| value != 0));
        let kib = number(&queue.join("max_sectors_kb"))?;
        let vendor = text(&device.join("vendor")).filter(|name| !name.starts_with("0x"));
        let model = text(&device.join("model"));
        Ok(Self {
            max_hw: number(&queue.join("max_hw_sectors_kb"))?
                .and_then(|kib| kib.checked_mul(1024))
                .map(Bytes),
            max_segments_count: count(queue.join("max_segments"))?,
            max_io: kib.and_then(|kib| kib.checked_mul(1024)).map(Bytes),
            nr_requests_count: count(queue.join("nr_requests"))?,
            queue_depth_count: count(device.join("queue_depth"))?,
            rotational: flag(queue.join("rotational"))?,
            polls: flag(queue.join("io_poll"))?,
            discard_max: number(&queue.join("discard_max_bytes"))?.map(Bytes),
            has_requests: whole.join("mq").is_dir(),
            read_only: flag(whole.join("ro"))?,
            model: match (vendor, model) {
                // SCSI calls every SATA drive's vendor "ATA": the model alone says more.
                (Some(vendor), Some(model)) if vendor != "ATA" => Some(format!("{vendor} {model}")),
                (_, model) => model,
            },
            serial: text(&device.join("serial")).or_else(|| text(&whole.join("serial"))),
            firmware: text(&device.join("firmware_rev")).or_else(|| text(&device.join("rev"))),
        })
    }

    /// Commands that reach the device at once: its own limit, else the block layer's.
    #[must_use]
    pub fn device_depth_count(&self) -> Option<u32> {
        match (self.queue_depth_count, self.nr_requests_count) {
            (Some(device), Some(layer)) => Some(device.min(layer)),
            (device, layer) => device.or(layer),
        }
    }
}

/// The directory of the whole device; partitions lie inside it.
fn whole_device(dir: PathBuf) -> PathBuf {
    if !dir.join("partition").exists() {
        return dir;
    }
    let real = std::fs::canonicalize(&dir).unwrap_or(dir);
    real.parent().map_or(real.clone(), Path::to_owned)
}

/// A number, or `None` where there is no such file, or the driver does not answer for it.
fn number(path: &Path) -> Result<Option<u64>, SysfsError> {
    match read_u64(path) {
        Ok(value) => Ok(Some(value)),
        Err(SysfsError::Read {
            errno: Errno(libc::ENOENT | libc::ENOTDIR | libc::EINVAL | libc::EOPNOTSUPP),
            ..
        }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// A text; `None` where it is missing or empty.
fn text(path: &Path) -> Option<String> {
    read_text(path).ok().filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, Sysfs) {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join("sys").join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let sysfs = Sysfs::at(root.path());
        (root, sysfs)
    }

    const SATA: [(&str, &str); 9] = [
        ("devices/ata1/block/sda/queue/max_sectors_kb", "1280\n"),
        ("devices/ata1/block/sda/queue/nr_requests", "64\n"),
        ("devices/ata1/block/sda/queue/rotational", "1\n"),
        ("devices/ata1/block/sda/queue/io_poll", "0\n"),
        ("devices/ata1/block/sda/queue/discard_max_bytes", "0\n"),
        ("devices/ata1/block/sda/device/queue_depth", "32\n"),
        ("devices/ata1/block/sda/device/vendor", "ATA     \n"),
        ("devices/ata1/block/sda/device/model", "WDC WD2500AAKX  \n"),
        ("devices/ata1/block/sda/sda1/partition", "1\n"),
    ];

    #[test]
    fn a_sata_drive_holds_32_and_its_partition_is_the_same_queue() {
        let (root, sysfs) = tree(&SATA);
        let dev = root.path().join("sys/dev/block");
        std::fs::create_dir_all(&dev).unwrap();
        let link = std::os::unix::fs::symlink::<&str, PathBuf>;
        link("../../devices/ata1/block/sda", dev.join("8:0")).unwrap();
        link("../../devices/ata1/block/sda/sda1", dev.join("8:1")).unwrap();
        let whole = BlockQueue::read(&sysfs, 8, 0).unwrap();
        assert_eq!(whole.device_depth_count(), Some(32));
        assert_eq!(whole.max_io, Some(Bytes(1280 * 1024)));
        assert_eq!((whole.rotational, whole.polls), (Some(true), Some(false)));
        assert_eq!(whole.discard_max, Some(Bytes(0)));
        assert_eq!(whole.model.as_deref(), Some("WDC WD2500AAKX"));
        assert_eq!(BlockQueue::read(&sysfs, 8, 1).unwrap(), whole);
    }

    #[test]
    fn what_is_not_there_is_unknown_and_what_is_garbled_is_an_error() {
        let (_root, sysfs) = tree(&[("dev/block/7:0/queue/nr_requests", "128\n")]);
        let loop_device = BlockQueue::read(&sysfs, 7, 0).unwrap();
        assert_eq!(loop_device.device_depth_count(), Some(128));
        assert_eq!((loop_device.max_io, loop_device.model), (None, None));
        assert_eq!(
            BlockQueue::read(&sysfs, 99, 0).unwrap(),
            BlockQueue::default()
        );
        let (_root, sysfs) = tree(&[("dev/block/7:0/queue/nr_requests", "many\n")]);
        assert!(matches!(
            BlockQueue::read(&sysfs, 7, 0),
            Err(SysfsError::Garbled { .. })
        ));
    }

    #[test]
    fn a_pci_vendor_number_is_no_model() {
        let (_root, sysfs) = tree(&[
            ("dev/block/254:0/device/vendor", "0x1af4\n"),
            ("dev/block/254:0/serial", "abc\n"),
        ]);
        let virtio = BlockQueue::read(&sysfs, 254, 0).unwrap();
        assert_eq!(
            (virtio.model, virtio.serial.as_deref()),
            (None, Some("abc"))
        );
    }
}

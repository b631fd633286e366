//! Block devices and partitions: number, size, limits, what holds them, what they are built on.

use super::{
    DevNum, Sysfs, SysfsError, link_name, names_in, optional, read_bool, read_text, read_u64,
    read_word, real_path,
};
use crate::units::{BlockSize, Bytes, Sectors512};
use std::path::{Path, PathBuf};

/// A whole disk or a partition as sysfs shows it. Figures are read when asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockDev {
    /// The kernel's name: `sdb`, `sdb2`, `dm-0`. A `!` of sysfs is a `/` here (`cciss/c0d0`).
    pub name: String,
    /// Its number; absent for hidden ones (a path of an NVMe multipath head has no node).
    pub dev: Option<DevNum>,
    /// For a partition, the name of its disk.
    pub disk: Option<String>,
    dir: PathBuf,
}

/// What a loop device reads and writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backing {
    /// The path as the kernel shows it, in the mount namespace of whoever set it up.
    pub path: PathBuf,
    /// The file has no name any more.
    pub deleted: bool,
}

/// What a device-mapper device calls itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DmName {
    /// Its name: `vg-root`.
    pub name: String,
    /// Its UUID, whose prefix tells who made it: `LVM-`, `CRYPT-`, `mpath-`.
    pub uuid: String,
}

impl BlockDev {
    /// Looks at one entry of `class/block`.
    ///
    /// # Errors
    /// [`SysfsError`] where there is none, or its number is missing or garbled.
    pub fn named(sysfs: &Sysfs, name: &str) -> Result<Self, SysfsError> {
        Self::at(&sysfs.sys("class/block").join(name.replace('/', "!")))
    }

    /// The device with this number.
    ///
    /// # Errors
    /// [`SysfsError`].
    pub fn numbered(sysfs: &Sysfs, dev: DevNum) -> Result<Self, SysfsError> {
        Self::at(&sysfs.sys("dev/block").join(dev.to_string()))
    }

    fn at(path: &Path) -> Result<Self, SysfsError> {
        let dir = real_path(path)?;
        let file_name = |path: &Path| {
            let name = path.file_name().unwrap_or_default();
            name.to_string_lossy().replace('!', "/")
        };
        let hidden = optional(read_bool(&dir.join("hidden")))?.unwrap_or(false);
        let dev = match read_text(&dir.join("dev")) {
            Ok(text) => Some(DevNum::parse(&text).ok_or_else(|| {
                SysfsError::garbled(&dir.join("dev"), &text, "a device number such as 8:16")
            })?),
            Err(error) if hidden && error.is_absent() => None,
            Err(error) => return Err(error),
        };
        let is_part = dir.join("partition").exists();
        let disk = if is_part {
            dir.parent().map(file_name)
        } else {
            None
        };
        Ok(Self {
            name: file_name(&dir),
            dev,
            disk,
            dir,
        })
    }

    /// Every block device and partition that can be looked at, and what was wrong with the others.
    ///
    /// # Errors
    /// [`SysfsError::Read`] where the list itself is not there.
    pub fn all(sysfs: &Sysfs) -> Result<(Vec<Self>, Vec<SysfsError>), SysfsError> {
        let folder = sysfs.sys("class/block");
        let (mut found, mut problems) = (Vec::new(), Vec::new());
        for name in names_in(&folder)? {
            match Self::at(&folder.join(name)) {
                Ok(device) => found.push(device),
                Err(error) => problems.push(error),
            }
        }
        Ok((found, problems))
    }

    /// Its folder in sysfs, without symbolic links.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Whether it is a partition.
    #[must_use]
    pub const fn is_partition(&self) -> bool {
        self.disk.is_some()
    }

    /// The name of its whole disk: its own unless it is a partition.
    #[must_use]
    pub fn disk_name(&self) -> &str {
        self.disk.as_deref().unwrap_or(&self.name)
    }

    /// The folder of its whole disk, where `queue` and `device` are.
    #[must_use]
    pub fn disk_dir(&self) -> &Path {
        match (self.is_partition(), self.dir.parent()) {
            (true, Some(parent)) => parent,
            _ => &self.dir,
        }
    }

    /// Size. sysfs counts sectors of 512 bytes whatever the logical block is.
    ///
    /// # Errors
    /// [`SysfsError`].
    pub fn size(&self) -> Result<Bytes, SysfsError> {
        sectors(&self.dir.join("size"))
    }

    /// First byte of a partition on its disk; 0 for a whole disk.
    ///
    /// # Errors
    /// [`SysfsError`].
    pub fn start(&self) -> Result<Bytes, SysfsError> {
        if self.is_partition() {
            return sectors(&self.dir.join("start"));
        }
        Ok(Bytes(0))
    }

    /// Whether the kernel refuses writes to it.
    ///
    /// # Errors
    /// [`SysfsError`].
    pub fn read_only(&self) -> Result<bool, SysfsError> {
        read_bool(&self.dir.join("ro"))
    }

    /// Number of the medium in the device: changes when a loop device gets another file.
    ///
    /// # Errors
    /// [`SysfsError`]; absent on kernels before 5.15.
    pub fn disk_sequence(&self) -> Result<Option<u64>, SysfsError> {
        optional(read_u64(&self.disk_dir().join("diskseq")))
    }

    /// Logical block.
    ///
    /// # Errors
    /// [`SysfsError`]; zero and numbers past 32 bits are garbled.
    pub fn logical_block(&self) -> Result<BlockSize, SysfsError> {
        block_size(&self.disk_dir().join("queue/logical_block_size"))
    }

    /// Physical block.
    ///
    /// # Errors
    /// [`SysfsError`].
    pub fn physical_block(&self) -> Result<BlockSize, SysfsError> {
        block_size(&self.disk_dir().join("queue/physical_block_size"))
    }

    /// Whether the medium rotates.
    ///
    /// # Errors
    /// [`SysfsError`].
    pub fn rotational(&self) -> Result<bool, SysfsError> {
        read_bool(&self.disk_dir().join("queue/rotational"))
    }

    /// Whether the kernel's driver polls for completions on this queue.
    ///
    /// # Errors
    /// [`SysfsError`].
    pub fn polls(&self) -> Result<bool, SysfsError> {
        read_bool(&self.disk_dir().join("queue/io_poll"))
    }

    /// The scheduler in force: the word in brackets, or the only one.
    ///
    /// # Errors
    /// [`SysfsError`].
    pub fn scheduler(&self) -> Result<String, SysfsError> {
        let path = self.disk_dir().join("queue/scheduler");
        let text = read_text(&path)?;
        chosen_word(&text)
            .map(str::to_owned)
            .ok_or_else(|| SysfsError::garbled(&path, &text, "a list with one [chosen] scheduler"))
    }

    /// Names of the devices built on it (dm, md, bcache).
    ///
    /// # Errors
    /// [`SysfsError`]: every block device has this folder, so its absence is an error.
    pub fn holders(&self) -> Result<Vec<String>, SysfsError> {
        names_in(&self.dir.join("holders")).map(decoded)
    }

    /// Names of the devices it is built on; none for a partition.
    ///
    /// # Errors
    /// [`SysfsError::Read`] where the folder exists but cannot be read.
    pub fn slaves(&self) -> Result<Vec<String>, SysfsError> {
        Ok(optional(names_in(&self.dir.join("slaves")))?
            .map(decoded)
            .unwrap_or_default())
    }

    /// What a loop device stands on; `None` for others and for free loop devices.
    ///
    /// # Errors
    /// [`SysfsError::Read`] where the file exists but cannot be read.
    pub fn backing(&self) -> Result<Option<Backing>, SysfsError> {
        let Some(text) = read_word(&self.dir.join("loop/backing_file"))? else {
            return Ok(None);
        };
        let (path, deleted) = match text.strip_suffix(" (deleted)") {
            Some(path) => (path, true),
            None => (text.as_str(), false),
        };
        Ok(Some(Backing {
            path: PathBuf::from(path),
            deleted,
        }))
    }

    /// The first byte of its backing file that a loop device shows; `None` for anything else.
    ///
    /// # Errors
    /// [`SysfsError`] where the file exists but cannot be read, or is garbled.
    pub fn loop_offset(&self) -> Result<Option<Bytes>, SysfsError> {
        let path = self.dir.join("loop/offset");
        Ok(optional(read_u64(&path))?.map(Bytes))
    }

    /// Name and UUID of a device-mapper device.
    ///
    /// # Errors
    /// [`SysfsError::Read`] where the files exist but cannot be read.
    pub fn dm(&self) -> Result<Option<DmName>, SysfsError> {
        let Some(name) = read_word(&self.dir.join("dm/name"))? else {
            return Ok(None);
        };
        let uuid = read_word(&self.dir.join("dm/uuid"))?.unwrap_or_default();
        Ok(Some(DmName { name, uuid }))
    }

    /// RAID level of an md array.
    ///
    /// # Errors
    /// [`SysfsError::Read`] where the file exists but cannot be read.
    pub fn md_level(&self) -> Result<Option<String>, SysfsError> {
        read_word(&self.dir.join("md/level"))
    }

    /// Driver of the closest device above it that has one: `nvme`, `sd`, `virtio_blk`.
    #[must_use]
    pub fn driver(&self) -> Option<String> {
        let mut dir = real_path(&self.disk_dir().join("device")).ok()?;
        for _ in 0..4 {
            if let Some(name) = link_name(&dir.join("driver")) {
                return Some(name);
            }
            dir = dir.parent()?.to_owned();
        }
        None
    }
}

fn decoded(names: Vec<String>) -> Vec<String> {
    names
        .into_iter()
        .map(|name| name.replace('!', "/"))
        .collect()
}

fn sectors(path: &Path) -> Result<Bytes, SysfsError> {
    let count = read_u64(path)?;
    Sectors512(count).bytes().ok_or_else(|| {
        SysfsError::garbled(
            path,
            &count.to_string(),
            "a number of sectors within 64 bits of bytes",
        )
    })
}

fn block_size(path: &Path) -> Result<BlockSize, SysfsError> {
    let bytes = read_u64(path)?;
    let size = u32::try_from(bytes).ok().and_then(BlockSize::new);
    size.ok_or_else(|| SysfsError::garbled(path, &bytes.to_string(), "a block size in bytes"))
}

/// `[none] mq-deadline` says `none`; a single word is itself.
fn chosen_word(text: &str) -> Option<&str> {
    let mut words = text.split_whitespace();
    let bracketed = |word: &'_ str| word.starts_with('[') && word.ends_with(']');
    if let Some(word) = text.split_whitespace().find(|word| bracketed(word)) {
        return Some(&word[1..word.len() - 1]);
    }
    match (words.next(), words.next()) {
        (Some(only), None) => Some(only),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chosen_scheduler_is_the_bracketed_word() {
        assert_eq!(chosen_word("[none] mq-deadline"), Some("none"));
        assert_eq!(chosen_word("none [mq-deadline] kyber"), Some("mq-deadline"));
        assert_eq!(chosen_word("none"), Some("none"));
        assert_eq!(chosen_word("none kyber"), None);
        assert_eq!(chosen_word(""), None);
    }
}

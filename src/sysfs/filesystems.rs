//! Traces that a mounted file system leaves in `/sys/fs`, whichever mount namespace it is mounted in,
//! and file locks.

use super::{DevNum, FileId, Sysfs, SysfsError, names_in, optional, read_text};

/// A block device that a mounted file system uses, by its kernel name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FsMember {
    /// Type of file system.
    pub fs_type: &'static str,
    /// Name of the block device.
    pub device: String,
}

/// Every block device that a mounted ext4, XFS, F2FS or btrfs file system uses. ext4, XFS and F2FS name
/// a folder after the device; btrfs lists all devices of the file system, of which the mount table shows
/// only one.
///
/// # Errors
/// [`SysfsError::Read`] where a folder exists but cannot be listed.
pub fn members(sysfs: &Sysfs) -> Result<Vec<FsMember>, SysfsError> {
    let mut found = Vec::new();
    for fs_type in ["ext4", "xfs", "f2fs"] {
        let names = optional(names_in(&sysfs.sys("fs").join(fs_type)))?.unwrap_or_default();
        found.extend(names.into_iter().map(|device| FsMember { fs_type, device }));
    }
    let btrfs = sysfs.sys("fs/btrfs");
    for uuid in optional(names_in(&btrfs))?.unwrap_or_default() {
        let names = optional(names_in(&btrfs.join(uuid).join("devices")))?.unwrap_or_default();
        found.extend(names.into_iter().map(|device| FsMember {
            fs_type: "btrfs",
            device,
        }));
    }
    for member in &mut found {
        member.device = member.device.replace('!', "/");
    }
    Ok(found)
}

/// Whether a ZFS pool is imported: the module keeps a folder for each.
///
/// # Errors
/// [`SysfsError::Read`] where the folder exists but cannot be listed.
pub fn imported_zfs_pools(sysfs: &Sysfs) -> Result<Vec<String>, SysfsError> {
    let folder = sysfs.proc("spl/kstat/zfs");
    let names = optional(names_in(&folder))?.unwrap_or_default();
    Ok(names
        .into_iter()
        .filter(|name| folder.join(name).is_dir())
        .collect())
}

/// Processes that hold a lock on a file, from `/proc/locks` (proc_locks(5)). -1 stands for an owner that
/// is not a process (open file description locks, as virtual machine monitors take).
///
/// # Errors
/// [`SysfsError`] where the list exists but is unreadable.
pub fn lock_owners(sysfs: &Sysfs, file: FileId) -> Result<Vec<i64>, SysfsError> {
    let Some(text) = optional(read_text(&sysfs.proc("locks")))? else {
        return Ok(Vec::new());
    };
    Ok(text
        .lines()
        .filter_map(|line| owner_in(line, file))
        .collect())
}

/// `1: OFDLCK ADVISORY  READ -1 fe:00:12345 100 101`; a `->` after the number marks one who waits.
fn owner_in(line: &str, file: FileId) -> Option<i64> {
    let mut words = line.split_whitespace().skip(1).peekable();
    words.next_if_eq(&"->");
    let owner = words.nth(3)?.parse().ok()?;
    let (dev, inode) = words.next()?.rsplit_once(':')?;
    let matches = DevNum::parse_hex(dev) == Some(file.dev) && inode.parse() == Ok(file.inode);
    matches.then_some(owner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_are_matched_by_file_system_and_inode() {
        let file = FileId {
            dev: DevNum {
                major: 254,
                minor: 0,
            },
            inode: 12345,
        };
        let owner = |line: &str| owner_in(line, file);
        assert_eq!(
            owner("1: OFDLCK ADVISORY  READ -1 fe:00:12345 100 101"),
            Some(-1)
        );
        assert_eq!(
            owner("2: FLOCK  ADVISORY  WRITE 812 fe:00:12345 0 EOF"),
            Some(812)
        );
        assert_eq!(
            owner("2: -> POSIX  ADVISORY  WRITE 9 fe:00:12345 0 EOF"),
            Some(9)
        );
        assert_eq!(
            owner("3: POSIX  ADVISORY  WRITE 812 fe:00:12346 0 EOF"),
            None
        );
        assert_eq!(
            owner("3: POSIX  ADVISORY  WRITE 812 fe:01:12345 0 EOF"),
            None
        );
        assert_eq!(owner("garbled"), None);
    }
}

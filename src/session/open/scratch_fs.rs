//! The file system that a scratch file lies on, and what that means for its figures.

use crate::record::Warning;
use crate::sysfs::Sysfs;
use crate::sysfs::mounts::Mounts;
use std::path::{Path, PathBuf};

/// File systems that keep files in memory.
const IN_MEMORY: [&str; 4] = ["tmpfs", "ramfs", "hugetlbfs", "rootfs"];

/// Where a scratch file lies.
#[derive(Debug, Clone)]
pub(in crate::session) struct HomeFs {
    dir: PathBuf,
    /// Its type and what was mounted; absent where the kernel does not say.
    mount: Option<(String, String)>,
}

impl HomeFs {
    /// The file system of a folder.
    pub fn of(sysfs: &Sysfs, dir: &Path) -> Self {
        let dir = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
        let mounts = Mounts::read(sysfs).unwrap_or_default();
        let mount = mounts
            .containing(&dir, None)
            .map(|mount| (mount.fs_type.clone(), mount.source.clone()));
        Self { dir, mount }
    }

    /// Whether its files are memory.
    pub fn is_memory(&self) -> bool {
        self.mount
            .as_ref()
            .is_some_and(|(fs_type, _)| IN_MEMORY.contains(&fs_type.as_str()))
    }

    fn name(&self) -> String {
        match &self.mount {
            Some((fs_type, source)) if source.contains('/') => format!("{fs_type} ({source})"),
            Some((fs_type, _)) => fs_type.clone(),
            None => "a file system the kernel does not name".to_owned(),
        }
    }

    /// Why nothing can be measured where files cannot be reached past the page cache.
    pub fn refuses_direct(&self) -> String {
        let what = if self.is_memory() {
            ", which is memory,"
        } else {
            ""
        };
        format!(
            "its file system, {}{what} refuses O_DIRECT, so memory would be measured instead of a disk; name a folder on a disk with scratch:dir=FOLDER",
            self.name()
        )
    }

    /// What the reader of a result has to know.
    pub fn note(&self, size_bytes: u64, asked_bytes: u64) -> Warning {
        let mib = size_bytes >> 20;
        let cut = if size_bytes < asked_bytes {
            format!(
                ", of the {} MiB asked for: room or time for the fill ran out",
                asked_bytes >> 20
            )
        } else {
            String::new()
        };
        let place = format!(
            "measured on a scratch file of {mib} MiB in {} on {}{cut}",
            self.dir.display(),
            self.name()
        );
        let (kind, text, next_step) = if self.is_memory() {
            (
                "scratch-in-memory",
                format!(
                    "{place}: that file system is memory, and these are figures of memory, not of a disk"
                ),
                "start in a folder on a disk, or name one with --device scratch:dir=FOLDER",
            )
        } else {
            (
                "scratch-file",
                format!(
                    "{place}: a file is not a device, the file system has its part in every figure"
                ),
                "`lanemark devices` lists the devices here; `lanemark run --device /dev/…` reads one and changes nothing on it",
            )
        };
        Warning {
            kind: kind.to_owned(),
            text,
            next_step: next_step.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// A tree whose mount table has `/` on ext4 and the given folder on a tmpfs.
    fn tree(memory: &Path) -> (tempfile::TempDir, Sysfs) {
        let root = tempfile::tempdir().unwrap();
        let own = root.path().join("proc/self");
        std::fs::create_dir_all(&own).unwrap();
        let table = format!(
            "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 0:9 / {} rw - tmpfs tmpfs rw\n",
            memory.display()
        );
        std::fs::write(own.join("mountinfo"), table).unwrap();
        let sysfs = Sysfs::at(root.path());
        (root, sysfs)
    }

    #[test]
    fn memory_is_told_from_a_disk_by_name() {
        let memory = tempfile::tempdir().unwrap();
        let path = memory.path().canonicalize().unwrap();
        let (_root, sysfs) = tree(&path);
        let home = HomeFs::of(&sysfs, &path);
        assert!(home.is_memory());
        assert_eq!(home.note(1 << 30, 1 << 30).kind, "scratch-in-memory");
        assert!(home.refuses_direct().contains("tmpfs, which is memory,"));

        let disk = HomeFs::of(&sysfs, Path::new("/"));
        let note = disk.note(1 << 30, 1 << 30);
        assert_eq!(note.kind, "scratch-file");
        assert!(
            note.text
                .contains("1024 MiB in / on ext4 (/dev/sda1): a file is not a device")
        );
        assert!(note.next_step.contains("lanemark devices"));
    }

    #[test]
    fn a_table_that_cannot_be_read_is_no_obstacle() {
        let nothing = tempfile::tempdir().unwrap();
        let home = HomeFs::of(&Sysfs::at(nothing.path()), Path::new("/"));
        assert!(!home.is_memory() && home.note(1, 1).text.contains("does not name"));
    }
}

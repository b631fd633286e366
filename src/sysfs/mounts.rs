//! Mounts of every mount namespace that can be seen, from `/proc/*/mountinfo` (proc_pid_mountinfo(5)).

use super::{DevNum, Sysfs, SysfsError, names_in, read_text, unescape_octal};
use std::collections::HashSet;
use std::path::Path;

/// One mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Number of the file system's device; anonymous (major 0) for btrfs, overlay, tmpfs.
    pub dev: DevNum,
    /// Where it is mounted, in its own namespace.
    pub at: String,
    /// Type of file system.
    pub fs_type: String,
    /// What was mounted: a device path, a pool, a word.
    pub source: String,
    /// Mounted read-only: this mount or the whole file system.
    pub read_only: bool,
    /// Options of the file system: `lowerdir=…` of an overlay.
    pub super_options: String,
    /// A process that sees it, where it is not in our own namespace.
    pub seen_by: Option<u32>,
}

impl Mount {
    /// Value of an option of the file system.
    #[must_use]
    pub fn option(&self, key: &str) -> Option<&str> {
        self.super_options
            .split(',')
            .find_map(|option| option.strip_prefix(key)?.strip_prefix('='))
    }
}

/// Mounts, and the processes whose table could not be looked at.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Mounts {
    /// Every mount of every namespace seen; our own namespace first.
    pub all: Vec<Mount>,
    /// Processes whose namespace is not ours or is unknown, and whose table may not be read.
    pub unseen_count: usize,
}

impl Mounts {
    /// Reads every namespace once: ours, then that of each process that has another.
    ///
    /// # Errors
    /// [`SysfsError`] where our own table is missing, or any table is garbled: a table that cannot be
    /// understood must not be taken for one without mounts.
    pub fn read(sysfs: &Sysfs) -> Result<Self, SysfsError> {
        let mut mounts = Self::default();
        let mut seen = HashSet::new();
        let own = sysfs.proc("self");
        if let Some(namespace) = namespace_of(&own) {
            seen.insert(namespace);
        }
        mounts.all = parse_file(&own.join("mountinfo"), None)?;
        for name in names_in(&sysfs.proc(""))? {
            if let Ok(pid) = name.parse::<u32>() {
                mounts.add_process(&sysfs.proc(&name), pid, &mut seen)?;
            }
        }
        Ok(mounts)
    }

    fn add_process(
        &mut self,
        dir: &Path,
        pid: u32,
        seen: &mut HashSet<String>,
    ) -> Result<(), SysfsError> {
        let namespace = namespace_of(dir);
        if namespace.as_ref().is_some_and(|ns| seen.contains(ns)) {
            return Ok(());
        }
        match parse_file(&dir.join("mountinfo"), Some(pid)) {
            Ok(found) => {
                self.all.extend(found);
                seen.extend(namespace);
            }
            // The process has ended (ESRCH, EINVAL for a zombie), or is not ours to look at.
            Err(SysfsError::Read { errno, .. }) => {
                let ended = [libc::ENOENT, libc::ESRCH, libc::EINVAL].contains(&errno.0);
                self.unseen_count += usize::from(!ended);
            }
            Err(garbled) => return Err(garbled),
        }
        Ok(())
    }

    /// The mount that a path of the same namespace lies on: the longest mount point above it, and of
    /// several at one place the last, which hides the others.
    #[must_use]
    pub fn containing(&self, path: &Path, seen_by: Option<u32>) -> Option<&Mount> {
        self.all
            .iter()
            .filter(|mount| mount.seen_by == seen_by && path.starts_with(&mount.at))
            .max_by_key(|mount| Path::new(&mount.at).components().count())
    }
}

fn namespace_of(process: &Path) -> Option<String> {
    let link = std::fs::read_link(process.join("ns/mnt")).ok()?;
    Some(link.to_string_lossy().into_owned())
}

fn parse_file(path: &Path, seen_by: Option<u32>) -> Result<Vec<Mount>, SysfsError> {
    let text = read_text(path)?;
    text.lines()
        .map(|line| {
            parse_line(line, seen_by)
                .ok_or_else(|| SysfsError::garbled(path, line, "a line of mountinfo"))
        })
        .collect()
}

/// `27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard`: the fields before the lone `-` are
/// id, parent, device, root, mount point, options and any number of tags; after it type, source, options.
fn parse_line(line: &str, seen_by: Option<u32>) -> Option<Mount> {
    let (before, after) = line.split_once(" - ")?;
    let fields: Vec<&str> = before.split(' ').collect();
    let [id, parent, dev, _root, at, options, ..] = fields.as_slice() else {
        return None;
    };
    id.parse::<u64>().ok()?;
    parent.parse::<u64>().ok()?;
    // The source may be an empty string (two blanks in a row); the super options may be missing.
    let mut tail = after.split(' ');
    let fs_type = tail.next().filter(|word| !word.is_empty())?;
    let source = tail.next()?;
    let super_options = tail.next().unwrap_or_default();
    let read_only = [options, super_options]
        .iter()
        .any(|list| list.split(',').any(|option| option == "ro"));
    Some(Mount {
        dev: DevNum::parse(dev)?,
        at: unescape_octal(at),
        fs_type: unescape_octal(fs_type),
        source: unescape_octal(source),
        read_only,
        super_options: unescape_octal(super_options),
        seen_by,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_line_is_read_field_by_field() {
        let line = r"36 35 8:18 /sub /mnt/my\040disk ro,noatime master:1 shared:7 - ext4 /dev/sdb2 rw,errors=continue";
        let mount = parse_line(line, Some(7)).unwrap();
        assert_eq!(
            mount.dev,
            DevNum {
                major: 8,
                minor: 18
            }
        );
        assert_eq!(mount.at, "/mnt/my disk");
        assert_eq!(
            (mount.fs_type.as_str(), mount.source.as_str()),
            ("ext4", "/dev/sdb2")
        );
        assert!(mount.read_only);
        assert_eq!(mount.seen_by, Some(7));
        assert_eq!(mount.option("errors"), Some("continue"));
        assert_eq!(mount.option("error"), None);
    }

    #[test]
    fn read_only_may_stand_in_either_list() {
        let by_fs = parse_line("1 2 8:1 / /a rw - xfs /dev/sda1 ro", None).unwrap();
        let neither = parse_line("1 2 8:1 / /a rw,noro - xfs /dev/sda1 rw", None).unwrap();
        assert!(by_fs.read_only && !neither.read_only);
    }

    #[test]
    fn an_empty_source_is_kept_and_a_cut_line_is_refused() {
        assert_eq!(
            parse_line("1 2 0:5 / /a rw - tmpfs  rw", None)
                .unwrap()
                .source,
            ""
        );
        for bad in [
            "",
            "1 2 8:1 / /a rw",
            "1 2 8 / /a rw - ext4 x rw",
            "1 2 8:1 / /a - ext4",
            "x 2 8:1 / /a rw - ext4 s rw",
        ] {
            assert_eq!(parse_line(bad, None), None, "{bad}");
        }
    }

    #[test]
    fn a_path_lies_on_the_longest_mount_and_not_on_a_namesake() {
        let lines = [
            "1 0 8:1 / / rw - ext4 a rw",
            "2 1 8:2 / /data rw - ext4 b rw",
        ];
        let all = lines
            .iter()
            .map(|line| parse_line(line, None).unwrap())
            .collect();
        let mounts = Mounts {
            all,
            unseen_count: 0,
        };
        let at = |path: &str| mounts.containing(Path::new(path), None).unwrap().at.clone();
        assert_eq!(at("/data/x"), "/data");
        assert_eq!(at("/database/x"), "/");
        assert!(mounts.containing(Path::new("/data"), Some(1)).is_none());
    }

    proptest! {
        #[test]
        fn any_line_is_read_without_panic(line in ".{0,120}") {
            let _ = parse_line(&line, None);
        }
    }
}

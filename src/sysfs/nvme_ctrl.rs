//! The controllers behind an NVMe generic node: one, or those of a multipath subsystem.

use super::{DevNum, Sysfs, SysfsError, names_in, optional, read_u64, read_word, real_path};
use std::path::Path;

/// One controller as the kernel's driver has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Controller {
    /// `nvme0`; its character device has the same name.
    pub name: String,
    /// `live`, `resetting`, `connecting`, `deleting`, `dead`.
    pub state: Option<String>,
    /// Commands that fit one of its submission queues.
    pub queue_entries_count: Option<u32>,
}

impl Controller {
    fn read(dir: &Path, name: &str) -> Result<Self, SysfsError> {
        let entries = optional(read_u64(&dir.join("sqsize")))?;
        Ok(Self {
            name: name.to_owned(),
            state: read_word(&dir.join("state"))?,
            queue_entries_count: entries.and_then(|entries| u32::try_from(entries).ok()),
        })
    }

    /// Whether it takes commands.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.state.as_deref() == Some("live")
    }

    /// Whether it never will again.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        let state = self.state.as_deref().unwrap_or_default();
        state.starts_with("deleting") || state == "dead"
    }
}

/// The controllers that a generic node (`ng0n1`) leads to, by name. Empty where there is no such node.
///
/// # Errors
/// [`SysfsError`] where a fact exists but is unreadable or garbled.
pub fn controllers(sysfs: &Sysfs, generic: &str) -> Result<Vec<Controller>, SysfsError> {
    let link = sysfs.sys("class/nvme-generic").join(generic);
    let Some(node) = optional(real_path(&link))? else {
        return Ok(Vec::new());
    };
    let Some(above) = node.parent() else {
        return Ok(Vec::new());
    };
    if above.join("state").exists() {
        let name = above.file_name().unwrap_or_default().to_string_lossy();
        return Ok(vec![Controller::read(above, &name)?]);
    }
    let is_controller = |name: &String| {
        let number = name.strip_prefix("nvme").unwrap_or_default();
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    };
    let mut names = optional(names_in(above))?.unwrap_or_default();
    names.retain(is_controller);
    names.sort();
    let read = |name: &String| Controller::read(&above.join(name), name);
    names.iter().map(read).collect()
}

/// How many generic nodes there are.
///
/// # Errors
/// [`SysfsError`] where the class exists but cannot be listed.
pub fn generic_nodes_count(sysfs: &Sysfs) -> Result<usize, SysfsError> {
    let names = optional(names_in(&sysfs.sys("class/nvme-generic")))?;
    Ok(names.map_or(0, |names| names.len()))
}

/// Whether the kernel still shows a character device of this number. It takes it away when the namespace
/// or its last controller is removed, while whoever has it open keeps it.
#[must_use]
pub fn is_shown(sysfs: &Sysfs, node: DevNum) -> bool {
    sysfs
        .sys(format!("dev/char/{}:{}", node.major, node.minor))
        .exists()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::os::unix::fs::symlink;

    fn machine(files: &[(&str, &str)], node: &str) -> (tempfile::TempDir, Sysfs) {
        let root = tempfile::tempdir().unwrap();
        let sys = root.path().join("sys");
        for (path, text) in files {
            let path = sys.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        std::fs::create_dir_all(sys.join(node)).unwrap();
        std::fs::create_dir_all(sys.join("class/nvme-generic")).unwrap();
        symlink(sys.join(node), sys.join("class/nvme-generic/ng0n1")).unwrap();
        let sysfs = Sysfs::at(root.path());
        (root, sysfs)
    }

    #[test]
    fn a_plain_namespace_hangs_below_its_controller() {
        let files = [
            ("devices/pci/nvme/nvme0/state", "live\n"),
            ("devices/pci/nvme/nvme0/sqsize", "1023\n"),
        ];
        let (_root, sysfs) = machine(&files, "devices/pci/nvme/nvme0/ng0n1");
        let found = controllers(&sysfs, "ng0n1").unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].name.as_str(), found[0].is_live()),
            ("nvme0", true)
        );
        assert_eq!(found[0].queue_entries_count, Some(1023));
        assert_eq!(controllers(&sysfs, "ng9n9"), Ok(Vec::new()));
        assert_eq!(generic_nodes_count(&sysfs), Ok(1));
        assert_eq!(generic_nodes_count(&Sysfs::at("/nowhere")), Ok(0));
    }

    #[test]
    fn a_multipath_head_has_all_controllers_of_its_subsystem() {
        let base = "devices/virtual/nvme-subsystem/nvme-subsys0";
        let files = [
            (format!("{base}/nvme0/state"), "deleting (no IO)\n"),
            (format!("{base}/nvme1/state"), "live\n"),
            (format!("{base}/nvme0n1/size"), "8\n"),
            (format!("{base}/model"), "x\n"),
        ];
        let files: Vec<(&str, &str)> = files.iter().map(|(a, b)| (a.as_str(), *b)).collect();
        let (_root, sysfs) = machine(&files, &format!("{base}/ng0n1"));
        let found = controllers(&sysfs, "ng0n1").unwrap();
        let states: Vec<_> = found
            .iter()
            .map(|c| (c.name.as_str(), c.is_live(), c.is_lost()))
            .collect();
        assert_eq!(states, [("nvme0", false, true), ("nvme1", true, false)]);
    }

    #[test]
    fn what_is_garbled_is_an_error_and_what_was_removed_is_not_shown() {
        let files = [
            ("devices/nvme0/state", "live\n"),
            ("devices/nvme0/sqsize", "many\n"),
            ("dev/char/243:0", ""),
        ];
        let (_root, sysfs) = machine(&files, "devices/nvme0/ng0n1");
        let found = controllers(&sysfs, "ng0n1");
        assert!(matches!(found, Err(SysfsError::Garbled { .. })));
        let number = |minor| DevNum { major: 243, minor };
        assert!(is_shown(&sysfs, number(0)) && !is_shown(&sysfs, number(1)));
    }
}

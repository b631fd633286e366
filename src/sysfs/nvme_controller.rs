//! NVMe controllers, which of them lead to a namespace's block device or generic node, and whether they still do.

use super::absent::Fact;
use super::pci::Bdf;
use super::{DevNum, Sysfs, SysfsError, names_in, optional, read_u64, read_word, real_path};
use std::path::{Path, PathBuf};

/// One controller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Controller {
    /// Kernel name: `nvme0`.
    pub name: String,
    /// `pcie`, `tcp`, `rdma`, `fc`, `loop`.
    pub transport: Option<String>,
    /// PCI address, or where it is on the network: `traddr=…,trsvcid=…`.
    pub address: Option<String>,
    /// `live`, `connecting`, `deleting`, `dead` …
    pub state: Option<String>,
    /// Model.
    pub model: Option<String>,
    /// Serial number.
    pub serial: Option<String>,
    /// Firmware revision.
    pub firmware: Option<String>,
    /// Qualified name of its subsystem.
    pub subsystem_nqn: Option<String>,
    /// Queues, the admin queue included.
    pub queues_count: Fact<u64>,
    /// Submission queue entries (the kernel's `sqsize` counts from 0).
    pub queue_entries_count: Fact<u64>,
    dir: PathBuf,
}

impl Controller {
    /// Reads `class/nvme/NAME`.
    ///
    /// # Errors
    /// [`SysfsError::Read`] where there is none of this name.
    pub fn named(sysfs: &Sysfs, name: &str) -> Result<Self, SysfsError> {
        Ok(Self::in_folder(
            name,
            real_path(&sysfs.sys("class/nvme").join(name))?,
        ))
    }

    fn in_folder(name: &str, dir: PathBuf) -> Self {
        let word = |file: &str| read_word(&dir.join(file)).ok().flatten();
        let entries = read_u64(&dir.join("sqsize")).map(|last| last.saturating_add(1));
        Self {
            name: name.to_owned(),
            transport: word("transport"),
            address: word("address"),
            state: word("state"),
            model: word("model"),
            serial: word("serial"),
            firmware: word("firmware_rev"),
            subsystem_nqn: word("subsysnqn"),
            queues_count: read_u64(&dir.join("queue_count")).map_err(Into::into),
            queue_entries_count: entries.map_err(Into::into),
            dir,
        }
    }

    /// Every controller, by name.
    ///
    /// # Errors
    /// [`SysfsError::Read`] where the class exists but cannot be listed.
    pub fn all(sysfs: &Sysfs) -> Result<Vec<Self>, SysfsError> {
        let names = optional(names_in(&sysfs.sys("class/nvme")))?.unwrap_or_default();
        Ok(names
            .iter()
            .filter_map(|name| Self::named(sysfs, name).ok())
            .collect())
    }

    /// The controllers that lead to a namespace's block device or to one of a multipath head's paths, given by the
    /// kernel's name: `nvme0n1`, `nvme0c1n1`. More than one where the head has several paths.
    ///
    /// # Errors
    /// [`SysfsError`] where the block device is not there, or a class cannot be listed.
    pub fn of_namespace(sysfs: &Sysfs, name: &str) -> Result<Vec<Self>, SysfsError> {
        let dir = real_path(&sysfs.sys("class/block").join(name))?;
        // Plain namespaces and paths lie in their controller's folder; heads in their subsystem's.
        let above = dir.parent().unwrap_or(&dir);
        if let Some(own) = name_of(above).filter(|name| is_controller(name)) {
            return Ok(vec![Self::named(sysfs, &own)?]);
        }
        let mut found = Vec::new();
        for controller in Self::all(sysfs)? {
            if controller.leads_to(name) {
                found.push(controller);
            }
        }
        Ok(found)
    }

    /// The controllers that a generic node (`ng0n1`) leads to, by name: one, or those of a multipath head's subsystem.
    /// None where there is no such node.
    ///
    /// # Errors
    /// [`SysfsError::Read`] where a folder exists but cannot be listed.
    pub fn of_generic(sysfs: &Sysfs, generic: &str) -> Result<Vec<Self>, SysfsError> {
        let link = sysfs.sys("class/nvme-generic").join(generic);
        let Some(node) = optional(real_path(&link))? else {
            return Ok(Vec::new());
        };
        let Some(above) = node.parent() else {
            return Ok(Vec::new());
        };
        if let Some(own) = name_of(above).filter(|name| is_controller(name)) {
            return Ok(vec![Self::in_folder(&own, above.to_owned())]);
        }
        let mut names = optional(names_in(above))?.unwrap_or_default();
        names.retain(|name| is_controller(name));
        let read = |name: &String| Self::in_folder(name, above.join(name));
        Ok(names.iter().map(read).collect())
    }

    /// Whether this controller has a path (`nvme0c1n1`) to the head `nvme0n1`. The first number is the
    /// subsystem's, the last the head's: both are the same in the two names.
    fn leads_to(&self, head: &str) -> bool {
        let Some((subsystem, namespace)) = head.rsplit_once('n') else {
            return false;
        };
        let names = names_in(&self.dir).unwrap_or_default();
        names.iter().any(|name| {
            let rest = name.strip_prefix(subsystem);
            rest.and_then(|rest| rest.strip_prefix('c')?.split_once('n'))
                .is_some_and(|(_, number)| number == namespace)
        })
    }

    /// Commands that one of its submission queues takes at once: one less than its entries (NVMe Base 2.0, 3.3.1.5
    /// "Full Queue").
    #[must_use]
    pub fn commands_count(&self) -> Option<u32> {
        let entries = self.queue_entries_count.as_ref().ok()?;
        u32::try_from(entries.checked_sub(1)?).ok()
    }

    /// Whether it takes commands.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.state.as_deref() == Some("live")
    }

    /// Whether it never will again. One without a state was taken away while it was looked at.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.state
            .as_deref()
            .is_none_or(|state| state.starts_with("deleting") || state == "dead")
    }

    /// The PCI function it is; `None` over fabrics.
    #[must_use]
    pub fn bdf(&self) -> Option<Bdf> {
        if let Some(bdf) = self.address.as_deref().and_then(Bdf::parse) {
            return Some(bdf);
        }
        // Before Linux 4.x there was no `address`.
        self.dir
            .ancestors()
            .find_map(|dir| Bdf::parse(&name_of(dir)?))
    }

    /// Whether it is reached over a network.
    #[must_use]
    pub fn is_fabrics(&self) -> bool {
        let transport = self.transport.as_deref();
        transport.is_some_and(|transport| !matches!(transport, "pcie" | "apple-nvme"))
    }

    /// Its folder in sysfs.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }
}

fn name_of(dir: &Path) -> Option<String> {
    Some(dir.file_name()?.to_str()?.to_owned())
}

/// `nvme0` and not `nvme-subsys0`.
fn is_controller(name: &str) -> bool {
    let digits = name.strip_prefix("nvme").unwrap_or_default();
    !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit())
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
    use super::super::absent::fault;
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
        let found = Controller::of_generic(&sysfs, "ng0n1").unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].name.as_str(), found[0].is_live()),
            ("nvme0", true)
        );
        assert_eq!(
            (&found[0].queue_entries_count, found[0].commands_count()),
            (&Ok(1024), Some(1023))
        );
        assert_eq!(Controller::of_generic(&sysfs, "ng9n9"), Ok(Vec::new()));
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
        let found = Controller::of_generic(&sysfs, "ng0n1").unwrap();
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
        let found = Controller::of_generic(&sysfs, "ng0n1").unwrap();
        assert!(fault(&found[0].queue_entries_count).is_some());
        assert_eq!(found[0].commands_count(), None);
        let number = |minor| DevNum { major: 243, minor };
        assert!(is_shown(&sysfs, number(0)) && !is_shown(&sysfs, number(1)));
    }
}

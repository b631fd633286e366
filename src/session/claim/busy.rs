//! Who has a node open, and whether a process drives a PCI function from user space.

use super::obstacle::Obstacle;
use crate::errno::Errno;
use crate::sysfs::pci::Bdf;
use crate::sysfs::{Node, NodeKind, Sysfs, filesystems, link_name, names_in, optional, read_word};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A process that has a node open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opener {
    /// The node.
    pub node: PathBuf,
    /// The process.
    pub process: u32,
    /// Its name.
    pub name: String,
}

/// Every other process that has one of the nodes open, as far as this user may look.
#[must_use]
pub fn openers(sysfs: &Sysfs, nodes: &[PathBuf]) -> Vec<Opener> {
    let numbers: Vec<(u64, &PathBuf)> = nodes
        .iter()
        .filter_map(|node| Some((std::fs::metadata(sysfs.locate(node)).ok()?.rdev(), node)))
        .filter(|(number, _)| *number != 0)
        .collect();
    let devices = sysfs.shown(&sysfs.dev(""));
    let node_of = |link: &Path, target: &Path| {
        if let Some(node) = nodes.iter().find(|node| *node == target) {
            return Some(node.clone());
        }
        // Only what looks like a device is looked at: a file on a dead network mount must not hold us.
        if !target.starts_with(&devices) {
            return None;
        }
        let number = std::fs::metadata(link).ok()?.rdev();
        let found = numbers.iter().find(|(known, _)| *known == number);
        found.map(|(_, node)| (*node).clone())
    };
    let own = std::process::id();
    let mut found = Vec::new();
    for name in names_in(&sysfs.proc("")).unwrap_or_default() {
        let Some(process) = name.parse::<u32>().ok().filter(|process| *process != own) else {
            continue;
        };
        let folder = sysfs.proc(&name);
        for fd in names_in(&folder.join("fd")).unwrap_or_default() {
            let link = folder.join("fd").join(fd);
            let node = std::fs::read_link(&link)
                .ok()
                .and_then(|target| node_of(&link, &target));
            if let Some(node) = node {
                let name = read_word(&folder.join("comm")).ok().flatten();
                found.push(Opener {
                    node,
                    process,
                    name: name.unwrap_or_else(|| "unknown".to_owned()),
                });
            }
        }
    }
    found.dedup();
    found
}

/// Whether a process is alive, as far as the process list shows.
#[must_use]
pub fn is_alive(sysfs: &Sysfs, process: u32) -> bool {
    sysfs.proc(process.to_string()).exists()
}

/// Whether this user may see what other processes have open.
#[must_use]
pub fn sees_all(sysfs: &Sysfs) -> bool {
    names_in(&sysfs.proc("1/fd")).is_ok()
}

/// The process that is seen to drive the function from user space, looked for without opening anything.
#[must_use]
pub fn seen_driving(sysfs: &Sysfs, bdf: Bdf) -> Option<i64> {
    let opener = openers(sysfs, &user_nodes(sysfs, bdf)).into_iter().next();
    let process = opener.map(|opener| i64::from(opener.process));
    process.or_else(|| spdk_lock(sysfs, bdf).filter(|process| *process > 0))
}

/// The nodes through which a process drives it.
fn user_nodes(sysfs: &Sysfs, bdf: Bdf) -> Vec<PathBuf> {
    let folder = sysfs.sys("bus/pci/devices").join(bdf.to_string());
    let group = link_name(&folder.join("iommu_group")).map(|number| format!("vfio/{number}"));
    let mut names: Vec<String> = group.into_iter().collect();
    for (class, prefix) in [("vfio-dev", "vfio/devices/"), ("uio", "")] {
        let found = optional(names_in(&folder.join(class)));
        names.extend(
            (found.ok().flatten().unwrap_or_default().iter()).map(|name| format!("{prefix}{name}")),
        );
    }
    let nodes = names.iter();
    nodes.map(|name| sysfs.shown(&sysfs.dev(name))).collect()
}

/// The process that drives the function from user space. Unbinding its driver would wait for it, and another
/// one that attaches would reset the controller under it.
#[must_use]
pub fn driven(sysfs: &Sysfs, bdf: Bdf) -> Option<Obstacle> {
    let folder = sysfs.sys("bus/pci/devices").join(bdf.to_string());
    let group = link_name(&folder.join("iommu_group")).map(|number| format!("vfio/{number}"));
    let nodes = user_nodes(sysfs, bdf);
    if let Some(opener) = openers(sysfs, &nodes).first() {
        return Some(Obstacle::Driven {
            process: Some(i64::from(opener.process)),
        });
    }
    if let Some(process) = spdk_lock(sysfs, bdf) {
        return Some(Obstacle::Driven {
            process: (process > 0).then_some(process),
        });
    }
    // A VFIO group opens only once: who has it may be in a container, out of our sight.
    let opened = group.map(|group| {
        let mut options = std::fs::OpenOptions::new();
        options.read(true).write(true).open(sysfs.dev(group))
    })?;
    let errno = opened.err().map(|error| Errno::of(&error));
    (errno == Some(Errno(libc::EBUSY))).then_some(Obstacle::Driven { process: None })
}

/// SPDK locks a file for each function that it drives (lib/env_dpdk/pci.c, `spdk_pci_device_claim`).
fn spdk_lock(sysfs: &Sysfs, bdf: Bdf) -> Option<i64> {
    let path = format!("/var/tmp/spdk_pci_lock_{bdf}");
    let NodeKind::File { id, .. } = Node::kind_at(sysfs, Path::new(&path)).ok()? else {
        return None;
    };
    let owners = filesystems::lock_owners(sysfs, id).ok()?;
    owners.first().copied()
}

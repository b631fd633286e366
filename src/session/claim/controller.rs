//! Everything that hangs on one PCI function, and who uses it: every namespace, every other path to each, every
//! partition. What the guard asks about one device is asked here about all of a controller's.

use super::busy::openers;
use super::obstacle::Obstacle;
use super::state::Former;
use crate::session::device::identity::{Device, pci_address, whole_disk};
use crate::session::guard::content::Contents;
use crate::session::guard::{imported_pools_on, of_device};
use crate::session::machine::Machine;
use crate::sysfs::pci::Function;
use crate::sysfs::{BlockDev, NodeKind, Sysfs, names_in, nvme, optional, real_path};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What ends within this is no user of the device.
const LET_GO: Duration = Duration::from_secs(2);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The disks of a function: its namespaces, and the multipath heads that lead to them.
#[must_use]
pub fn disks_of<'m>(machine: &'m Machine<'_>, function: &Function) -> Vec<&'m BlockDev> {
    disks_among(&machine.blocks, function)
}

/// The same among block devices that were read by themselves.
pub(super) fn disks_among<'b>(blocks: &'b [BlockDev], function: &Function) -> Vec<&'b BlockDev> {
    let address = function.bdf.to_string();
    let disks = || blocks.iter().filter(|device| !device.is_partition());
    let mut found: Vec<&BlockDev> = disks()
        .filter(|disk| pci_address(disk).as_deref() == Some(address.as_str()))
        .collect();
    let heads: Vec<String> = found.iter().filter_map(|disk| head(&disk.name)).collect();
    for name in heads {
        if let Some(head) = disks().find(|disk| disk.name == name)
            && !found.contains(&head)
        {
            found.push(head);
        }
    }
    found
}

/// `nvme3c4n2` is a path of the head `nvme3n2`.
fn head(name: &str) -> Option<String> {
    let rest = name.strip_prefix("nvme")?;
    let (subsystem, rest) = rest.split_once('c')?;
    let (_, namespace) = rest.split_once('n')?;
    Some(format!("nvme{subsystem}n{namespace}"))
}

/// Everything that speaks against taking the function from the kernel. `contents` reads what the devices hold,
/// and is asked only where ZFS pools are imported, which show in no other way.
#[must_use]
pub fn uses(machine: &Machine<'_>, function: &Function, contents: &dyn Contents) -> Vec<Obstacle> {
    let mut found = unlisted(machine, function);
    let mut devices: Vec<Device> = Vec::new();
    let mut disks = disks_of(machine, function);
    // Heads before their paths: both are the same device, and the head has the node.
    disks.sort_by_key(|disk| disk.dev.is_none());
    for disk in disks {
        if devices.iter().any(|device| device.disks.contains(disk)) {
            continue;
        }
        match whole_disk(machine, disk) {
            Ok(device) => devices.push(device),
            Err(error) => found.push(unreadable(&error)),
        }
    }
    for device in &devices {
        match of_device(machine, device) {
            Ok(uses) => found.extend(uses.into_iter().map(Obstacle::InUse)),
            Err(error) => found.push(unreadable(&error)),
        }
        // A path without a node is read by the head that leads over it.
        if device.disks.first().is_some_and(|disk| disk.dev.is_some()) {
            let pools = imported_pools_on(machine, device, contents);
            found.extend(pools.into_iter().map(Obstacle::InUse));
        }
    }
    if found.is_empty() {
        let nodes = nodes_of(&devices);
        // A disk would vanish under whoever has it open.
        let openers = openers(machine.sysfs, &nodes).into_iter();
        found.extend(openers.map(|opener| Obstacle::Open {
            node: opener.node,
            process: opener.process,
            name: opener.name,
        }));
        if found.is_empty() {
            found.extend(nodes.iter().filter_map(|node| held(machine.sysfs, node)));
        }
    }
    // Two namespaces of one LVM group say the same thing of themselves only once.
    let mut unique: Vec<Obstacle> = Vec::new();
    for obstacle in found {
        if !unique.contains(&obstacle) {
            unique.push(obstacle);
        }
    }
    unique
}

fn unreadable(error: &crate::sysfs::SysfsError) -> Obstacle {
    Obstacle::Unreadable {
        what: error.to_string(),
    }
}

/// Namespaces that the controller has and the list of block devices has not: they cannot be judged.
fn unlisted(machine: &Machine<'_>, function: &Function) -> Vec<Obstacle> {
    let controllers = function.dir().join("nvme");
    let mut found = Vec::new();
    for controller in optional(names_in(&controllers))
        .unwrap_or_default()
        .unwrap_or_default()
    {
        match names_in(&controllers.join(&controller)) {
            Ok(names) => found.extend(
                names
                    .into_iter()
                    .filter(|name| is_namespace(name) && machine.named(name).is_none())
                    .map(|name| Obstacle::Unreadable {
                        what: format!("{name}, a namespace that is in no list of block devices"),
                    }),
            ),
            Err(error) => found.push(unreadable(&error)),
        }
    }
    found
}

/// `nvme0n1` and `nvme0c1n1`, and not `nvme0`.
fn is_namespace(name: &str) -> bool {
    let rest = name.strip_prefix("nvme").filter(|_| nvme::is_nvme(name));
    rest.is_some_and(|rest| rest.contains('n'))
}

fn nodes_of(devices: &[Device]) -> Vec<PathBuf> {
    let mut nodes: Vec<PathBuf> = devices
        .iter()
        .flat_map(|device| device.aliases.iter().map(|alias| alias.path.clone()))
        .collect();
    nodes.sort();
    nodes.dedup();
    nodes
}

/// The kernel's own word: an exclusive open fails where a mount, a holder, swap or a pool has the device, seen
/// by us or not. Nothing is written, and nobody else is kept out once it is closed again. A run that has just ended
/// may hold it for a moment: io_uring closes its files in the background (io_uring/io_uring.c, `io_ring_exit_work`).
fn held(sysfs: &Sysfs, node: &Path) -> Option<Obstacle> {
    let path = sysfs.locate(node);
    if !matches!(
        crate::sysfs::Node::kind_at(sysfs, node),
        Ok(NodeKind::Block(_))
    ) {
        return None;
    }
    let mut options = std::fs::OpenOptions::new();
    options
        .read(true)
        .custom_flags(libc::O_EXCL | libc::O_NONBLOCK);
    let is_busy = || {
        let opened = options.open(&path);
        opened.is_err_and(|error| error.raw_os_error() == Some(libc::EBUSY))
    };
    let deadline = Instant::now() + LET_GO;
    while is_busy() {
        if Instant::now() >= deadline {
            return Some(Obstacle::Held {
                node: node.to_owned(),
            });
        }
        std::thread::sleep(LOOK_EVERY);
    }
    None
}

/// The paths by which its namespaces are known now, for finding them again once they are claimed.
#[must_use]
pub fn former(machine: &Machine<'_>, function: &Function) -> Vec<Former> {
    let links = links(machine.sysfs);
    let mut found: Vec<Former> = Vec::new();
    for disk in disks_of(machine, function) {
        if disk.dev.is_none() {
            continue;
        }
        let mut paths = vec![machine.node_path(&disk.name)];
        if let Ok(Some((generic, _))) = nvme::generic_node(machine.sysfs, &disk.name) {
            paths.push(machine.node_path(&generic));
        }
        let own = paths.clone();
        let leads_here = links.iter().filter(|(_, target)| own.contains(target));
        paths.extend(leads_here.map(|(link, _)| link.clone()));
        let namespace = nvme::Namespace::read(disk.dir()).ok();
        found.push(Former {
            nsid: namespace.as_ref().and_then(|namespace| namespace.nsid),
            serial: namespace.and_then(|namespace| namespace.serial),
            paths,
        });
    }
    found
}

/// What udev's links lead to.
fn links(sysfs: &Sysfs) -> Vec<(PathBuf, PathBuf)> {
    let root = sysfs.dev("disk");
    let mut found = Vec::new();
    for kind in names_in(&root).unwrap_or_default() {
        for name in names_in(&root.join(&kind)).unwrap_or_default() {
            let link = root.join(&kind).join(name);
            if let Ok(target) = real_path(&link) {
                found.push((sysfs.shown(&link), sysfs.shown(&target)));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_its_head_and_others_have_none() {
        assert_eq!(head("nvme3c4n2").as_deref(), Some("nvme3n2"));
        assert_eq!(head("nvme3n2"), None);
        assert_eq!(head("sdc1n"), None);
    }

    #[test]
    fn namespaces_are_told_from_controllers() {
        assert!(is_namespace("nvme0n1") && is_namespace("nvme0c1n1"));
        assert!(!is_namespace("nvme0") && !is_namespace("hwmon1") && !is_namespace("ng0n1"));
    }
}

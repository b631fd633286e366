//! Who uses a device: mounts, swap, holders, loop devices, the root file system.

use super::finding::{Finding, Place, Relation};
use crate::session::device::identity::Device;
use crate::session::machine::Machine;
use crate::sysfs::{BlockDev, FileId, Mount, NodeKind, SysfsError};
use std::collections::HashSet;
use std::path::Path;

/// Every use of a device: of the node named, its parts, its disk and every other node of the same device.
///
/// # Errors
/// [`SysfsError`] where a list that decides could not be read.
pub fn of_device(machine: &Machine<'_>, device: &Device) -> Result<Vec<Finding>, SysfsError> {
    let mut found = Vec::new();
    for disk in &device.disks {
        found.extend(of_node(machine, disk, &place(device, disk), &device.disks)?);
        for part in machine.parts(&disk.name) {
            found.extend(of_node(machine, part, &place(device, part), &device.disks)?);
        }
    }
    found.extend(root(machine, device)?);
    Ok(found)
}

/// Every use of one whole disk and its parts, as a list of devices shows it.
///
/// # Errors
/// [`SysfsError`].
pub fn of_disk(machine: &Machine<'_>, disk: &BlockDev) -> Result<Vec<Finding>, SysfsError> {
    let own = std::slice::from_ref(disk);
    let place = |device: &BlockDev| Place {
        name: device.name.clone(),
        relation: if device.is_partition() {
            Relation::Part
        } else {
            Relation::Itself
        },
    };
    let mut found = of_node(machine, disk, &place(disk), own)?;
    for part in machine.parts(&disk.name) {
        found.extend(of_node(machine, part, &place(part), own)?);
    }
    let is_below = below_root(machine)?.contains(&disk.name);
    found.extend(is_below.then(|| Finding::Root { place: place(disk) }));
    Ok(found)
}

fn place(device: &Device, node: &BlockDev) -> Place {
    let first = device.disks.first().map(|disk| disk.name.as_str());
    let relation = match (&device.part, first == Some(node.disk_name())) {
        (_, false) => Relation::SameDevice,
        (Some(part), true) if part.name == node.name => Relation::Itself,
        (Some(_), true) => Relation::SameDisk,
        (None, true) if node.is_partition() => Relation::Part,
        (None, true) => Relation::Itself,
    };
    Place {
        name: node.name.clone(),
        relation,
    }
}

/// Uses of exactly this node. Holders and loop devices that are the device itself by another name do not
/// count as its users.
fn of_node(
    machine: &Machine<'_>,
    node: &BlockDev,
    place: &Place,
    same: &[BlockDev],
) -> Result<Vec<Finding>, SysfsError> {
    let mut found = mounts(machine, node, place)?;
    for swap in machine.swaps.as_ref().map_err(Clone::clone)? {
        if !swap.is_file
            && machine
                .at_path(&swap.path)
                .is_some_and(|device| device.name == node.name)
        {
            found.push(Finding::Swap {
                place: place.clone(),
            });
        }
    }
    let is_same = |name: &str| same.iter().any(|disk| disk.name == name);
    let holders = match node.holders() {
        Ok(holders) => holders,
        // Hidden paths of a multipath head have no holders; their head has.
        Err(error) if error.is_absent() && node.dev.is_none() => Vec::new(),
        Err(error) => return Err(error),
    };
    for holder in holders.iter().filter(|name| !is_same(name)) {
        found.push(Finding::Holder {
            place: place.clone(),
            holder: holder.clone(),
            what: machine
                .named(holder)
                .map_or_else(|| "unknown".to_owned(), describe),
            used: used(machine, holder, 0),
        });
    }
    for above in &machine.loops {
        let is_on_it = match above.node.as_ref().map(|node| node.kind) {
            Some(NodeKind::Block(dev)) => node.dev == Some(dev),
            // The path leads nowhere from here: go by its name rather than not at all.
            None => machine
                .at_path(&above.backing.path)
                .is_some_and(|found| found.name == node.name),
            Some(_) => false,
        };
        if is_on_it && !is_same(&above.name) {
            found.push(backing(machine, place, &above.name));
        }
    }
    Ok(found)
}

fn backing(machine: &Machine<'_>, place: &Place, loop_name: &str) -> Finding {
    Finding::Backing {
        place: place.clone(),
        loop_name: loop_name.to_owned(),
        used: used(machine, loop_name, 0),
    }
}

fn mounts(
    machine: &Machine<'_>,
    node: &BlockDev,
    place: &Place,
) -> Result<Vec<Finding>, SysfsError> {
    let table = machine.mounts.as_ref().map_err(Clone::clone)?;
    let mut places = HashSet::new();
    let mut found = Vec::new();
    for mount in table
        .all
        .iter()
        .filter(|mount| is_mount_of(machine, mount, node))
    {
        // Containers repeat the same mounts: each place is told once, our own sight of it first.
        if places.insert(&mount.at) {
            found.push(Finding::Mounted {
                place: place.clone(),
                at: mount.at.clone(),
                fs_type: mount.fs_type.clone(),
                read_only: mount.read_only,
                seen_by: mount.seen_by,
            });
        }
    }
    if found.is_empty() {
        let members = machine.members.as_ref().map_err(Clone::clone)?;
        if let Some(member) = members.iter().find(|member| member.device == node.name) {
            found.push(Finding::MountedElsewhere {
                place: place.clone(),
                fs_type: member.fs_type.to_owned(),
            });
        }
    }
    Ok(found)
}

/// By device number; file systems without one of their own (btrfs, bcachefs) by the nodes that were mounted.
fn is_mount_of(machine: &Machine<'_>, mount: &Mount, node: &BlockDev) -> bool {
    let leads_to_it = |path: &str| {
        let path = Path::new(path);
        path.is_absolute()
            && machine
                .at_path(path)
                .is_some_and(|device| device.name == node.name)
    };
    // An XFS log or real-time device has no mount and no signature of its own.
    let extra = ["logdev", "rtdev"]
        .iter()
        .filter_map(|key| mount.option(key));
    if mount.fs_type == "xfs" && extra.into_iter().any(leads_to_it) {
        return true;
    }
    if !mount.dev.is_anonymous() {
        return node.dev == Some(mount.dev);
    }
    // Overlay, bind mounts of tmpfs and the like may carry any word as their source; bcachefs names all its
    // devices, joined by colons.
    let may_be_device = !matches!(mount.fs_type.as_str(), "overlay" | "tmpfs" | "autofs");
    may_be_device && (leads_to_it(&mount.source) || mount.source.split(':').any(leads_to_it))
}

/// What a device built on another calls itself.
#[must_use]
pub fn describe(device: &BlockDev) -> String {
    if let Ok(Some(dm)) = device.dm() {
        let name = &dm.name;
        return match dm.uuid.split('-').next().unwrap_or_default() {
            "LVM" => format!("LVM {}", lvm_name(name)),
            "CRYPT" => format!("dm-crypt {name}"),
            "mpath" => format!("multipath {name}"),
            _ => format!("device mapper {name}"),
        };
    }
    if let Ok(Some(level)) = device.md_level() {
        return format!("md {level}");
    }
    if device.name.starts_with("md") {
        return "md array".to_owned();
    }
    if device.name.starts_with("bcache") {
        return "bcache".to_owned();
    }
    "block device".to_owned()
}

/// `vg--a-lv` is volume `lv` of group `vg-a`: the device mapper name joins both by a hyphen and doubles those
/// that belong to a name (lvm2 libdm, dm_build_dm_name).
fn lvm_name(name: &str) -> String {
    const DOUBLED: char = '\u{0}';
    let marked = name.replace("--", &DOUBLED.to_string());
    marked.replacen('-', "/", 1).replace(DOUBLED, "-")
}

/// What a device built on the one in question is used for, a few levels up.
fn used(machine: &Machine<'_>, name: &str, level: u8) -> Vec<String> {
    let Some(device) = machine.named(name).filter(|_| level < 4) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    let nodes = std::iter::once(device).chain(machine.parts(name));
    for node in nodes {
        let place = Place {
            name: node.name.clone(),
            relation: Relation::Itself,
        };
        for finding in of_node_shallow(machine, node, &place) {
            found.push(finding);
        }
        for holder in node.holders().unwrap_or_default() {
            let what = machine.named(&holder).map_or_else(String::new, describe);
            found.push(format!("held by {holder} ({what})"));
            found.extend(used(machine, &holder, level + 1));
        }
    }
    found.dedup();
    found
}

fn of_node_shallow(machine: &Machine<'_>, node: &BlockDev, place: &Place) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for finding in mounts(machine, node, place).unwrap_or_default() {
        found.push(match finding {
            Finding::Mounted { at, .. } => format!("mounted at {at}"),
            _ => "mounted out of sight".to_owned(),
        });
    }
    let is_swap = |swap: &crate::sysfs::Swap| {
        !swap.is_file
            && machine
                .at_path(&swap.path)
                .is_some_and(|device| device.name == node.name)
    };
    if machine
        .swaps
        .as_ref()
        .is_ok_and(|swaps| swaps.iter().any(is_swap))
    {
        found.push("swap in use".to_owned());
    }
    found
}

fn root(machine: &Machine<'_>, device: &Device) -> Result<Option<Finding>, SysfsError> {
    let below = below_root(machine)?;
    let disk = device.disks.iter().find(|disk| below.contains(&disk.name));
    Ok(disk.map(|disk| Finding::Root {
        place: place(device, disk),
    }))
}

/// Names of all devices that the root file system stands on: through LVM, RAID, encryption, loop devices, and
/// the layers of an overlay.
fn below_root(machine: &Machine<'_>) -> Result<Vec<String>, SysfsError> {
    let table = machine.mounts.as_ref().map_err(Clone::clone)?;
    let mut names = Vec::new();
    // Our own root and that of the first process, where we are in a container and can see it.
    let roots = table
        .all
        .iter()
        .filter(|mount| mount.at == "/" && matches!(mount.seen_by, None | Some(1)));
    for mount in roots {
        for device in devices_of(machine, mount) {
            names.extend(machine.stands_on(device));
        }
    }
    // A disk holds the root where one of its parts does; `stands_on` has gone from part to disk already.
    Ok(names)
}

fn devices_of<'m>(machine: &'m Machine<'_>, mount: &Mount) -> Vec<&'m BlockDev> {
    if mount.fs_type == "overlay" {
        let layers = ["upperdir", "lowerdir", "workdir"];
        let dirs = layers
            .iter()
            .filter_map(|key| mount.option(key))
            .flat_map(|list| list.split(':'));
        // The layers' paths are those of whoever mounted it: the host, seen here or not.
        return dirs
            .filter(|dir| Path::new(dir).is_absolute())
            .flat_map(|dir| [None, Some(1)].map(|seen_by| (dir, seen_by)))
            .filter_map(|(dir, seen_by)| machine.device_of_path(Path::new(dir), seen_by))
            .collect();
    }
    machine
        .blocks
        .iter()
        .filter(|node| is_mount_of(machine, mount, node))
        .collect()
}

/// Uses of a regular file: a loop device or swap on it, a lock.
///
/// # Errors
/// [`SysfsError`].
pub fn of_file(machine: &Machine<'_>, path: &Path, id: FileId) -> Result<Vec<Finding>, SysfsError> {
    let place = Place {
        name: path.display().to_string(),
        relation: Relation::Itself,
    };
    let is_it = |other: &Path| {
        let node = crate::sysfs::Node::inspect(machine.sysfs, other);
        matches!(node.map(|node| node.kind), Ok(NodeKind::File { id: found, .. }) if found == id)
    };
    // A file needs no mount, but without this there is no telling a kernel without swap from a /proc that
    // is not there.
    machine.mounts.as_ref().map_err(Clone::clone)?;
    let mut found = Vec::new();
    for above in &machine.loops {
        if above.backing.path == path || is_it(&above.backing.path) {
            found.push(backing(machine, &place, &above.name));
        }
    }
    for swap in machine.swaps.as_ref().map_err(Clone::clone)? {
        if swap.is_file && (swap.path == path || is_it(&swap.path)) {
            found.push(Finding::Swap {
                place: place.clone(),
            });
        }
    }
    for owner in crate::sysfs::filesystems::lock_owners(machine.sysfs, id)? {
        found.push(Finding::Locked {
            process: (owner > 0).then_some(owner),
        });
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubled_hyphens_belong_to_the_names() {
        assert_eq!(lvm_name("vg-root"), "vg/root");
        assert_eq!(lvm_name("vg--a-lv--b"), "vg-a/lv-b");
        assert_eq!(lvm_name("vg-lv-real"), "vg/lv-real");
    }
}

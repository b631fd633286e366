//! A device is its identity, not its path: from any node, link or partition to the disk, and to every other
//! node of the same disk.

use crate::proto::scsi::vpd;
use crate::session::machine::Machine;
use crate::sysfs::{BlockDev, Node, NodeKind, SysfsError, nvme, read_word, real_path, scsi};
use std::path::{Path, PathBuf};

/// What names a device in the world.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Identity {
    /// World-wide names in one spelling: `naa.`, `eui.`, `uuid.`, `t10.`, `dm.`, `md.`.
    pub world_wide: Vec<String>,
    /// Vendor.
    pub vendor: Option<String>,
    /// Model.
    pub model: Option<String>,
    /// Serial number, of the controller or subsystem for NVMe.
    pub serial: Option<String>,
    /// Firmware revision.
    pub firmware: Option<String>,
    /// NVMe namespace ID.
    pub nsid: Option<u64>,
    /// How it is attached, where the kernel says: `pcie`, `tcp`, `scsi`, `virtio`.
    pub transport: Option<String>,
}

impl Identity {
    /// Reads it from the folder of a whole disk.
    ///
    /// # Errors
    /// [`SysfsError`] where a fact exists but is unreadable or garbled.
    pub fn of_disk(disk: &BlockDev) -> Result<Self, SysfsError> {
        if nvme::is_nvme(&disk.name) {
            return Self::of_namespace(disk);
        }
        if let Some(device) = scsi::device_dir(disk.dir()) {
            return Self::of_scsi(&device);
        }
        let mut identity = Self {
            serial: read_word(&disk.dir().join("serial"))?,
            model: read_word(&disk.dir().join("device/model"))?,
            ..Self::default()
        };
        if identity.serial.is_none() {
            identity.serial = read_word(&disk.dir().join("device/serial"))?;
        }
        if disk.driver().as_deref() == Some("virtio_blk") {
            identity.transport = Some("virtio".to_owned());
        }
        if let Some(dm) = disk.dm()?.filter(|dm| !dm.uuid.is_empty()) {
            identity.world_wide.push(format!("dm.{}", dm.uuid));
        }
        if let Some(uuid) = read_word(&disk.dir().join("md/uuid"))? {
            identity.world_wide.push(format!("md.{uuid}"));
        }
        Ok(identity)
    }

    fn of_namespace(disk: &BlockDev) -> Result<Self, SysfsError> {
        let namespace = nvme::Namespace::read(disk.dir())?;
        Ok(Self {
            world_wide: namespace.identities,
            vendor: None,
            model: namespace.model,
            serial: namespace.serial,
            firmware: namespace.firmware,
            nsid: namespace.nsid,
            transport: namespace.transport.or(Some("nvme".to_owned())),
        })
    }

    pub(in crate::session) fn of_scsi(dir: &Path) -> Result<Self, SysfsError> {
        let device = scsi::ScsiDevice::read(dir)?;
        let mut world_wide = vpd::identities(&device.page_83);
        world_wide.extend(device.wwid);
        world_wide.sort();
        world_wide.dedup();
        Ok(Self {
            world_wide,
            vendor: device.vendor,
            model: device.model,
            serial: vpd::serial(&device.page_80),
            firmware: device.firmware,
            nsid: None,
            transport: Some("scsi".to_owned()),
        })
    }

    /// Whether both are, or may be, the same device. World-wide names decide where both have them;
    /// otherwise the same model, serial and namespace are taken for the same device: the guard errs
    /// toward refusing.
    #[must_use]
    pub fn may_be(&self, other: &Self) -> bool {
        if !self.world_wide.is_empty() && !other.world_wide.is_empty() {
            return self.is_surely(other);
        }
        self.serial.is_some()
            && self.serial == other.serial
            && self.model == other.model
            && self.nsid == other.nsid
    }

    /// Whether a world-wide name says that both are the same device.
    #[must_use]
    pub fn is_surely(&self, other: &Self) -> bool {
        self.world_wide
            .iter()
            .any(|name| other.world_wide.contains(name))
    }

    /// The best name there is: a world-wide one before the serial number. The namespaces of an NVMe
    /// controller share its serial number, so their ID goes with it: `S123 ns:2`.
    #[must_use]
    pub fn best(&self) -> Option<String> {
        let serial = self.serial.as_deref();
        self.world_wide_name()
            .map(str::to_owned)
            .or_else(|| match (serial?, self.nsid) {
                (serial, Some(nsid)) => Some(format!("{serial} ns:{nsid}")),
                (serial, None) => Some(serial.to_owned()),
            })
    }

    /// The best of the world-wide names.
    #[must_use]
    pub fn world_wide_name(&self) -> Option<&str> {
        const ORDER: [&str; 4] = ["uuid.", "eui.", "naa.", "dm."];
        let ranked = ORDER
            .iter()
            .find_map(|prefix| self.world_wide.iter().find(|name| name.starts_with(prefix)));
        ranked.or(self.world_wide.first()).map(String::as_str)
    }
}

/// What kind of way to the device a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// The block device of the whole disk.
    Disk,
    /// A partition.
    Part,
    /// SCSI generic.
    Sg,
    /// NVMe generic.
    Ng,
}

/// One way to a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alias {
    /// Kernel name.
    pub name: String,
    /// Node, as the machine writes it; hidden devices have none in truth.
    pub path: PathBuf,
    /// What it is.
    pub way: Way,
    /// Name of the whole disk it leads to.
    pub disk: String,
}

/// A device on the machine, with every way to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// As it was named.
    pub asked: PathBuf,
    /// What that name leads to.
    pub node: Node,
    /// The partition, where one was named.
    pub part: Option<BlockDev>,
    /// Its whole disks: the one named first, then other paths and members of the same identity. Empty for a
    /// SCSI device without a block device.
    pub disks: Vec<BlockDev>,
    /// Every node of the device.
    pub aliases: Vec<Alias>,
    /// What names it.
    pub identity: Identity,
}

/// What a path turned out to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A device.
    Device(Box<Device>),
    /// A regular file.
    File(Node),
}

/// Why a path is no device and no file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdentityError {
    /// A fact about it is missing or garbled.
    #[error(transparent)]
    Sysfs(#[from] SysfsError),
    /// There is such a node, but the kernel shows no such device.
    #[error("{path} is {what}; name a block device, its sg or ng node, or a regular file")]
    Unsuitable {
        /// The path.
        path: PathBuf,
        /// What it is instead.
        what: String,
    },
}

/// Follows a path to the device or file it leads to.
///
/// # Errors
/// [`IdentityError`].
pub fn resolve(machine: &Machine<'_>, path: &Path) -> Result<Target, IdentityError> {
    let node = Node::inspect(machine.sysfs, path)?;
    let unsuitable = |what: &str| IdentityError::Unsuitable {
        path: path.to_owned(),
        what: what.to_owned(),
    };
    match node.kind {
        NodeKind::File { .. } => Ok(Target::File(node)),
        NodeKind::Folder => Err(unsuitable("a folder")),
        NodeKind::Other => Err(unsuitable("a socket or pipe")),
        NodeKind::Block(dev) => {
            let named = match machine.numbered(dev) {
                Some(device) => device.clone(),
                // Says which fact is missing or garbled.
                None => BlockDev::numbered(machine.sysfs, dev)?,
            };
            device(machine, path, node, &named)
        }
        NodeKind::Char(dev) => {
            if let Some(dir) = scsi::device_of_generic(machine.sysfs, dev)? {
                return scsi_device(machine, path, node, &dir);
            }
            let name = nvme::block_of_generic(machine.sysfs, dev)?
                .ok_or_else(|| unsuitable("a character device that is no sg or ng node"))?;
            let named = BlockDev::named(machine.sysfs, &name)?;
            device(machine, path, node, &named)
        }
    }
}

/// The device that a whole disk of the machine is. For disks without a node (paths of a multipath head), which
/// no path leads to.
///
/// # Errors
/// [`SysfsError`] where a fact that identifies it is unreadable or garbled.
pub fn whole_disk(machine: &Machine<'_>, disk: &BlockDev) -> Result<Device, SysfsError> {
    let path = machine.node_path(&disk.name);
    let node = Node {
        path: path.clone(),
        kind: disk.dev.map_or(NodeKind::Other, NodeKind::Block),
    };
    let identity = machine.identity(disk)?;
    let disks = same_disks(machine, &identity, Some(disk))?;
    Ok(Device {
        asked: path,
        aliases: aliases(machine, &disks)?,
        node,
        part: None,
        disks,
        identity,
    })
}

fn scsi_device(
    machine: &Machine<'_>,
    path: &Path,
    node: Node,
    dir: &Path,
) -> Result<Target, IdentityError> {
    if let Some(name) = scsi::block_of_device(dir)? {
        let named = BlockDev::named(machine.sysfs, &name)?;
        return device(machine, path, node, &named);
    }
    let identity = Identity::of_scsi(dir)?;
    let disks = same_disks(machine, &identity, None)?;
    Ok(Target::Device(Box::new(Device {
        asked: path.to_owned(),
        aliases: aliases(machine, &disks)?,
        node,
        part: None,
        disks,
        identity,
    })))
}

fn device(
    machine: &Machine<'_>,
    path: &Path,
    node: Node,
    named: &BlockDev,
) -> Result<Target, IdentityError> {
    let disk = match &named.disk {
        Some(disk) => BlockDev::named(machine.sysfs, disk)?,
        None => named.clone(),
    };
    let identity = machine.identity(&disk)?;
    let disks = same_disks(machine, &identity, Some(&disk))?;
    Ok(Target::Device(Box::new(Device {
        asked: path.to_owned(),
        aliases: aliases(machine, &disks)?,
        node,
        part: named.is_partition().then(|| named.clone()),
        disks,
        identity,
    })))
}

/// The disk itself, then every other disk that is, or may be, the same: other paths by identity, the paths
/// of a multipath map, what a loop device stands on, and loop devices on the same file.
fn same_disks(
    machine: &Machine<'_>,
    identity: &Identity,
    disk: Option<&BlockDev>,
) -> Result<Vec<BlockDev>, SysfsError> {
    let mut disks: Vec<BlockDev> = disk.cloned().into_iter().collect();
    let mut identities = vec![identity.clone()];
    let mut next = 0;
    while next < disks.len() {
        for below in same_content(machine, &disks[next])? {
            if !disks.contains(&below) {
                identities.push(machine.identity(&below)?);
                disks.push(below);
            }
        }
        next += 1;
    }
    for other in machine.disks() {
        // A disk whose identity cannot be read cannot be told from this one by anything but its name.
        let is_same = machine
            .identity(other)
            .is_ok_and(|found| identities.iter().any(|known| known.may_be(&found)));
        if is_same && !disks.contains(other) {
            disks.push(other.clone());
        }
    }
    Ok(disks)
}

/// Disks below or beside `disk` that hold the very same bytes and are not held by it exclusively.
fn same_content(machine: &Machine<'_>, disk: &BlockDev) -> Result<Vec<BlockDev>, SysfsError> {
    let mut names = Vec::new();
    if disk.dm()?.is_some_and(|dm| dm.uuid.starts_with("mpath-")) {
        names.extend(disk.slaves()?);
    }
    if let Some(own) = machine.loops.iter().find(|device| device.name == disk.name) {
        if let Some(NodeKind::Block(dev)) = own.node.as_ref().map(|node| node.kind) {
            names.extend(machine.numbered(dev).map(|device| device.name.clone()));
        }
        names.extend(loops_beside(machine, own));
    }
    let whole = |name: &String| {
        let device = machine.named(name)?;
        machine.named(device.disk_name()).cloned()
    };
    Ok(names.iter().filter_map(whole).collect())
}

fn loops_beside(machine: &Machine<'_>, own: &crate::session::machine::Loop) -> Vec<String> {
    let file =
        |device: &crate::session::machine::Loop| match device.node.as_ref().map(|node| node.kind) {
            Some(NodeKind::File { id, .. }) => Some(id),
            _ => None,
        };
    let is_same = |other: &&crate::session::machine::Loop| {
        other.name != own.name
            && (other.backing == own.backing || (file(own).is_some() && file(own) == file(other)))
    };
    machine
        .loops
        .iter()
        .filter(is_same)
        .map(|device| device.name.clone())
        .collect()
}

fn aliases(machine: &Machine<'_>, disks: &[BlockDev]) -> Result<Vec<Alias>, SysfsError> {
    let mut found = Vec::new();
    let mut push = |disk: &BlockDev, name: &str, way| {
        found.push(Alias {
            name: name.to_owned(),
            path: machine.node_path(name),
            way,
            disk: disk.name.clone(),
        });
    };
    for disk in disks {
        if disk.dev.is_some() {
            push(disk, &disk.name, Way::Disk);
        }
        for part in machine.parts(&disk.name) {
            push(disk, &part.name, Way::Part);
        }
        if let Some(dir) = scsi::device_dir(disk.dir())
            && let Some((name, _)) = scsi::generic_node(&dir)?
        {
            push(disk, &name, Way::Sg);
        }
        if let Some((name, _)) = nvme::generic_node(machine.sysfs, &disk.name)? {
            push(disk, &name, Way::Ng);
        }
    }
    Ok(found)
}

/// The BDF of the PCI function that a disk hangs on, for looking up links and drivers.
#[must_use]
pub fn pci_address(disk: &BlockDev) -> Option<String> {
    let dir = real_path(disk.dir()).ok()?;
    let is_bdf = |name: &&str| {
        let (rest, function) = name.rsplit_once('.').unwrap_or_default();
        let mut fields = rest
            .split(':')
            .map(|field| u32::from_str_radix(field, 16).is_ok());
        function.len() == 1
            && fields.next() == Some(true)
            && fields.next() == Some(true)
            && fields.next() == Some(true)
            && fields.next().is_none()
    };
    let mut names = dir.iter().rev().filter_map(|name| name.to_str());
    names.find(is_bdf).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(names: &[&str], serial: Option<&str>) -> Identity {
        Identity {
            world_wide: names.iter().map(|name| (*name).to_owned()).collect(),
            serial: serial.map(str::to_owned),
            ..Identity::default()
        }
    }

    #[test]
    fn world_wide_names_decide_where_both_have_them() {
        let a = identity(&["naa.1", "t10.x"], Some("S"));
        assert!(a.may_be(&identity(&["naa.1"], None)));
        assert!(
            !a.may_be(&identity(&["naa.2"], Some("S"))),
            "same serial, other disk"
        );
    }

    #[test]
    fn without_world_wide_names_the_serial_may_be_the_same_and_blanks_are_not() {
        let a = identity(&[], Some("S"));
        assert!(a.may_be(&identity(&["naa.1"], Some("S"))));
        assert!(!a.is_surely(&identity(&[], Some("S"))));
        assert!(!identity(&[], None).may_be(&identity(&[], None)));
    }

    #[test]
    fn namespaces_of_one_controller_share_its_serial_and_are_not_the_same() {
        let one = Identity {
            nsid: Some(1),
            ..identity(&[], Some("S"))
        };
        let two = Identity {
            nsid: Some(2),
            ..one.clone()
        };
        assert!(!one.may_be(&two) && one.may_be(&one));
        assert_eq!(one.best().as_deref(), Some("S ns:1"));
        assert_eq!(two.best().as_deref(), Some("S ns:2"));
        assert_eq!(identity(&[], Some("S")).best().as_deref(), Some("S"));
        let named = Identity {
            world_wide: vec!["eui.1".to_owned()],
            ..two
        };
        assert_eq!(named.best().as_deref(), Some("eui.1"));
    }
}

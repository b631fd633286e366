//! One look at the machine: its block devices and everything that can be using them. Read once, asked often.

use super::device::identity::{Identity, IdentityError, Target, resolve};
use crate::sysfs::filesystems::{self, FsMember};
use crate::sysfs::mounts::Mounts;
use crate::sysfs::{BlockDev, DevNum, Node, NodeKind, Swap, Sysfs, SysfsError, block, swaps};
use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// A loop device and what it stands on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loop {
    /// Its name.
    pub name: String,
    /// What the kernel says it stands on.
    pub backing: block::Backing,
    /// What is found at that path; absent where the path leads nowhere from here.
    pub node: Option<Node>,
}

/// The machine at one moment. Lists that could not be read are kept as errors: who only shows may go on,
/// who decides about writing must not.
#[derive(Debug, Clone)]
pub struct Machine<'a> {
    /// Where it was read.
    pub sysfs: &'a Sysfs,
    /// Block devices and partitions.
    pub blocks: Vec<BlockDev>,
    /// Block devices that could not be looked at.
    pub problems: Vec<SysfsError>,
    /// Mounts of every namespace seen.
    pub mounts: Result<Mounts, SysfsError>,
    /// Swap areas.
    pub swaps: Result<Vec<Swap>, SysfsError>,
    /// Devices of mounted file systems, whoever sees the mount.
    pub members: Result<Vec<FsMember>, SysfsError>,
    /// Loop devices in use.
    pub loops: Vec<Loop>,
    /// Who the disks are, as far as somebody has asked: each is a dozen files.
    identities: RefCell<HashMap<String, Result<Identity, SysfsError>>>,
}

impl<'a> Machine<'a> {
    /// Looks at the machine.
    ///
    /// # Errors
    /// [`SysfsError::Read`] where there is no list of block devices at all.
    pub fn read(sysfs: &'a Sysfs) -> Result<Self, SysfsError> {
        let (blocks, mut problems) = BlockDev::all(sysfs)?;
        let mut loops = Vec::new();
        for device in &blocks {
            match device.backing() {
                Ok(Some(backing)) => loops.push(look_at(sysfs, device, backing)),
                Ok(None) => {}
                Err(error) => problems.push(error),
            }
        }
        Ok(Self {
            sysfs,
            blocks,
            problems,
            mounts: Mounts::read(sysfs),
            swaps: swaps::swaps(sysfs),
            members: filesystems::members(sysfs),
            loops,
            identities: RefCell::default(),
        })
    }

    /// Who a disk is. The same at every call: each disk is compared with every other.
    ///
    /// # Errors
    /// [`SysfsError`] where a fact exists but is unreadable or garbled.
    pub fn identity(&self, disk: &BlockDev) -> Result<Identity, SysfsError> {
        let known = self.identities.borrow().get(&disk.name).cloned();
        known.unwrap_or_else(|| {
            let read = Identity::of_disk(disk);
            let mut identities = self.identities.borrow_mut();
            identities.insert(disk.name.clone(), read.clone());
            read
        })
    }

    /// The device of this name.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<&BlockDev> {
        self.blocks.iter().find(|device| device.name == name)
    }

    /// The device of this number.
    #[must_use]
    pub fn numbered(&self, dev: DevNum) -> Option<&BlockDev> {
        self.blocks.iter().find(|device| device.dev == Some(dev))
    }

    /// Whole disks only.
    pub fn disks(&self) -> impl Iterator<Item = &BlockDev> {
        self.blocks.iter().filter(|device| !device.is_partition())
    }

    /// Partitions of a disk, by the kernel's word and not by their names.
    pub fn parts<'b>(&'b self, disk: &'b str) -> impl Iterator<Item = &'b BlockDev> {
        self.blocks
            .iter()
            .filter(move |device| device.disk.as_deref() == Some(disk))
    }

    /// The node of a device, as the machine writes it.
    #[must_use]
    pub fn node_path(&self, name: &str) -> PathBuf {
        self.sysfs.shown(&self.sysfs.dev(name))
    }

    /// The device that a path of the kernel (a mount's source, a swap area) leads to: by the number of its
    /// node, and where there is no such node here, by its name.
    #[must_use]
    pub fn at_path(&self, path: &Path) -> Option<&BlockDev> {
        match Node::inspect(self.sysfs, path).map(|node| node.kind) {
            Ok(NodeKind::Block(dev)) => return self.numbered(dev),
            Ok(_) => return None,
            Err(_) => {}
        }
        let name = path.file_name()?.to_string_lossy();
        self.named(&name).or_else(|| {
            let is_it = |dm: &block::DmName| dm.name == name;
            self.blocks
                .iter()
                .find(|device| device.dm().ok().flatten().as_ref().is_some_and(is_it))
        })
    }

    /// Names of everything a device stands on, itself included: disks of partitions, slaves, what backs a
    /// loop device, and the device of the file system that a backing file lies on.
    #[must_use]
    pub fn stands_on(&self, device: &BlockDev) -> Vec<String> {
        let mut names = vec![device.name.clone()];
        let mut next = 0;
        while let Some(name) = names.get(next).cloned() {
            next += 1;
            let Some(device) = self.named(&name) else {
                continue;
            };
            let mut below: Vec<String> = device.slaves().unwrap_or_default();
            below.extend(device.disk.clone());
            below.extend(self.below_loop(&name).map(|device| device.name.clone()));
            for name in below {
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        names
    }

    fn below_loop(&self, name: &str) -> Option<&BlockDev> {
        let backed = self.loops.iter().find(|device| device.name == name)?;
        match backed.node.as_ref().map(|node| node.kind) {
            Some(NodeKind::Block(dev)) => self.numbered(dev),
            _ => self.device_of_path(&backed.backing.path, None),
        }
    }

    /// The block device of the file system that a path lies on.
    #[must_use]
    pub fn device_of_path(&self, path: &Path, seen_by: Option<u32>) -> Option<&BlockDev> {
        let mounts = self.mounts.as_ref().ok()?;
        let mount = mounts.containing(path, seen_by)?;
        if mount.dev.is_anonymous() {
            let source = Path::new(&mount.source);
            return source.is_absolute().then(|| self.at_path(source)).flatten();
        }
        self.numbered(mount.dev)
    }
}

fn look_at(sysfs: &Sysfs, device: &BlockDev, backing: block::Backing) -> Loop {
    let found = if backing.deleted {
        None
    } else {
        Node::inspect(sysfs, &backing.path).ok()
    };
    Loop {
        name: device.name.clone(),
        backing,
        node: found,
    }
}

/// The machine as it was when somebody first asked, and where paths led then. For naming and describing the devices
/// of a run, of which there may be many. Who decides about writing looks anew instead: the guard.
#[derive(Debug)]
pub struct Seen<'a> {
    /// Where it is read.
    pub sysfs: &'a Sysfs,
    machine: OnceCell<Result<Machine<'a>, SysfsError>>,
    targets: RefCell<HashMap<PathBuf, Result<Target, IdentityError>>>,
}

impl<'a> Seen<'a> {
    /// Nothing yet.
    #[must_use]
    pub fn new(sysfs: &'a Sysfs) -> Self {
        Self {
            sysfs,
            machine: OnceCell::new(),
            targets: RefCell::default(),
        }
    }

    /// The machine.
    ///
    /// # Errors
    /// [`SysfsError::Read`] where there is no list of block devices at all.
    pub fn machine(&self) -> Result<&Machine<'a>, SysfsError> {
        let read = self.machine.get_or_init(|| Machine::read(self.sysfs));
        read.as_ref().map_err(Clone::clone)
    }

    /// What a path leads to.
    ///
    /// # Errors
    /// [`IdentityError`].
    pub fn target(&self, path: &Path) -> Result<Target, IdentityError> {
        let known = self.targets.borrow().get(path).cloned();
        if let Some(known) = known {
            return known;
        }
        let found = resolve(self.machine()?, path);
        let mut targets = self.targets.borrow_mut();
        targets.insert(path.to_owned(), found.clone());
        found
    }
}

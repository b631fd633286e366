//! Names after a release: the kernel numbers NVMe controllers in the order in which it finds them, so that a namespace
//! that comes back may have another name than before its claim, and its old one may lead to another device.

use super::controller::disks_among;
use super::state::Former;
use super::{Claimer, Moved};
use crate::session::device::identity::pci_address;
use crate::sysfs::pci::{Bdf, Function};
use crate::sysfs::{BlockDev, Sysfs, nvme};
use serde::Serialize;
use std::path::Path;

/// A namespace whose name has changed, or been taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Renamed {
    /// Its namespace ID.
    pub nsid: Option<u64>,
    /// The node that it had before it was claimed.
    pub before: String,
    /// The node that it has now; absent where it has not come back.
    pub now: Option<String>,
    /// What the old node leads to now, in words; absent where it leads nowhere.
    pub before_is_now: Option<String>,
}

impl Renamed {
    /// Under which name it is to be found.
    #[must_use]
    pub fn line(&self) -> Option<String> {
        let now = self.now.as_deref()?;
        Some(format!("{} is {now} now", self.before))
    }

    /// What whoever goes on using the old name has to know.
    #[must_use]
    pub fn danger(&self) -> Option<String> {
        let other = self.before_is_now.as_deref()?;
        let own = match &self.now {
            Some(now) => format!("what it was before the claim is {now}"),
            None => "what it was before the claim has not come back".to_owned(),
        };
        Some(format!(
            "{} is another device now: {other}; {own}",
            self.before
        ))
    }
}

impl Claimer<'_> {
    /// Looks for the namespaces of everything that was given back. To be asked once all of them were: each may have
    /// taken the name of another.
    pub(super) fn look_for_names(&self, moved: &mut [Moved]) {
        if moved.iter().all(|one| one.former.is_empty()) {
            return;
        }
        let Ok((blocks, _)) = BlockDev::all(self.sysfs) else {
            return;
        };
        for one in moved {
            one.renamed = of_function(self.sysfs, &blocks, one);
        }
    }
}

fn of_function(sysfs: &Sysfs, blocks: &[BlockDev], moved: &Moved) -> Vec<Renamed> {
    let function = Bdf::parse(&moved.bdf).and_then(|bdf| Function::read(sysfs, bdf).ok());
    let Some(function) = function else {
        return Vec::new();
    };
    let disks = disks_among(blocks, &function);
    let node = |disk: &BlockDev| sysfs.shown(&sysfs.dev(&disk.name));
    let renamed = |former: &Former| {
        let before = former.paths.first()?;
        let is_it = |disk: &&&BlockDev| disk.dev.is_some() && is_same(former, disk);
        let now = disks.iter().find(is_it).map(|disk| node(disk));
        if now.as_deref() == Some(before) {
            return None;
        }
        let taken = blocks.iter().find(|disk| node(disk) == *before);
        let found = Renamed {
            nsid: former.nsid,
            before: shown(before),
            now: now.as_deref().map(shown),
            before_is_now: taken.map(in_words),
        };
        // What has not come back, and whose name nobody has, is told by the number that came.
        (found.now.is_some() || found.before_is_now.is_some()).then_some(found)
    };
    moved.former.iter().filter_map(renamed).collect()
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// A namespace of the same function and number, of the same drive as far as both tell: one may have been put in the
/// place of another.
fn is_same(former: &Former, disk: &BlockDev) -> bool {
    let Ok(now) = nvme::Namespace::read(disk.dir()) else {
        return false;
    };
    let is_other = matches!((&former.serial, &now.serial), (Some(was), Some(is)) if was != is);
    now.nsid == former.nsid && !is_other
}

fn in_words(disk: &BlockDev) -> String {
    let namespace = nvme::Namespace::read(disk.dir()).ok();
    let mut words = Vec::new();
    if let Some(namespace) = &namespace {
        words.extend(
            [&namespace.model, &namespace.serial]
                .into_iter()
                .flatten()
                .cloned(),
        );
        words.extend(namespace.nsid.map(|nsid| format!("namespace {nsid}")));
    }
    words.extend(pci_address(disk).map(|address| format!("at {address}")));
    match words.is_empty() {
        true => "of unknown identity".to_owned(),
        false => words.join(" "),
    }
}

//! I/O of others on a device, from the kernel's counters: what was counted on its block device while the step ran, less
//! the most that the step can have put there itself. So it never says more than there was.

use super::own::OwnIo;
use super::{DeviceFacts, DeviceKind};
use crate::record::OthersIo;
use crate::session::device::identity::{Device, Target, resolve};
use crate::session::machine::Machine;
use crate::sysfs::diskstats::{BlockStat, counts_passthrough, is_counted};
use crate::sysfs::{BlockDev, SysfsError, optional, read_u64};
use std::path::{Path, PathBuf};

/// The largest request that the kernel makes of pages of 4 KiB (`BIO_MAX_VECS` of them), and a page.
const LARGEST_BIO_BYTES: u64 = 1 << 20;
const PAGE_BYTES: u64 = 4096;
const SECTOR_BYTES: u64 = 512;

/// Why others' I/O cannot be told for a device of this kind; `None` where the counters have to be tried.
pub(super) fn why_not(facts: &DeviceFacts) -> Option<String> {
    let why = match facts.kind {
        DeviceKind::Null | DeviceKind::Sim => "no device: nobody else can use it",
        DeviceKind::File => {
            "a file: the kernel counts what its whole device does, and not for whom"
        }
        DeviceKind::Nvme if facts.block_path.is_none() => {
            "SPDK has the device: the kernel counts nothing of it"
        }
        DeviceKind::Scsi if facts.block_path.is_none() => "it has no block device to count on",
        DeviceKind::Block | DeviceKind::Nvme | DeviceKind::Scsi => return None,
    };
    Some(why.to_owned())
}

/// One device's counters.
#[derive(Debug, Clone)]
pub(super) struct Counted {
    disks: Vec<(String, PathBuf)>,
    before: Vec<BlockStat>,
    after: Option<Result<Vec<BlockStat>, SysfsError>>,
    /// Whether our own commands are counted there too.
    is_own_counted: bool,
    parts: Parts,
}

impl Counted {
    /// Finds where the device's I/O is counted, and reads the counters.
    pub(super) fn begin(machine: &Machine<'_>, facts: &DeviceFacts) -> Result<Self, String> {
        if let Some(why) = why_not(facts) {
            return Err(why);
        }
        let path = facts.block_path.as_deref().unwrap_or(&facts.path);
        let disks = disks(machine, Path::new(path))?;
        let passes_by = facts.kind != DeviceKind::Block;
        let looked = || -> Result<Self, SysfsError> {
            let mut is_own_counted = !passes_by;
            for disk in &disks {
                is_own_counted |= counts_passthrough(disk.dir())?;
            }
            let mut parts = Parts::of(&disks[0])?;
            for disk in &disks[1..] {
                parts = parts.smaller(Parts::of(disk)?);
            }
            let places = disks
                .iter()
                .map(|disk| (disk.name.clone(), disk.dir().to_owned()));
            let places: Vec<_> = places.collect();
            Ok(Self {
                before: stats(&places)?,
                disks: places,
                after: None,
                is_own_counted,
                parts,
            })
        };
        for disk in &disks {
            if !is_counted(disk.dir()).map_err(|error| error.to_string())? {
                return Err(format!("{} is not counted (queue/iostats is 0)", disk.name));
            }
        }
        looked().map_err(|error| error.to_string())
    }

    /// Reads the counters again.
    pub(super) fn end(&mut self) {
        self.after = Some(stats(&self.disks));
    }

    /// What is left once `own` is taken off.
    pub(super) fn others(&self, own: &OwnIo) -> Result<OthersIo, String> {
        let after = match &self.after {
            Some(Ok(after)) => after,
            Some(Err(error)) => return Err(error.to_string()),
            None => return Err("the counters were not read again".to_owned()),
        };
        let (mut ios_count, mut bytes_count) = (0_u64, 0_u64);
        for ((before, after), (name, _)) in self.before.iter().zip(after).zip(&self.disks) {
            let grown = after.since(before);
            let grown = grown.ok_or_else(|| format!("the counters of {name} went backwards"))?;
            ios_count = ios_count.saturating_add(grown.reads_count + grown.writes_count);
            bytes_count = bytes_count.saturating_add(grown.read_bytes + grown.written_bytes);
        }
        if self.is_own_counted {
            let own_count = own.requests(|bytes| self.parts.most(bytes));
            ios_count = ios_count.saturating_sub(own_count);
            bytes_count = bytes_count.saturating_sub(own.bytes());
        }
        // A mapped device counts each piece that its target cuts an I/O into, and no limit tells how it cuts. What
        // others read or wrote was a sector each at least.
        ios_count = ios_count.min(bytes_count / SECTOR_BYTES);
        Ok(OthersIo {
            counted_on: self.disks.iter().map(|(name, _)| name.clone()).collect(),
            ios_count: ios_count.max(u64::from(bytes_count > 0)),
            bytes_count,
        })
    }
}

/// What the step has put on the disks of the device at `index`, through whichever of its devices: two partitions of
/// one disk are counted together.
pub(super) fn shared(all: &[Result<Counted, String>], index: usize, own: &[OwnIo]) -> OwnIo {
    let mut sum = OwnIo::default();
    let Some(Ok(mine)) = all.get(index) else {
        return sum;
    };
    for (other, own) in all.iter().zip(own) {
        let is_shared = other.as_ref().is_ok_and(|other| {
            let mut disks = other.disks.iter();
            disks.any(|disk| mine.disks.contains(disk))
        });
        if is_shared {
            sum.add(own);
        }
    }
    sum
}

fn stats(disks: &[(String, PathBuf)]) -> Result<Vec<BlockStat>, SysfsError> {
    disks.iter().map(|(_, dir)| BlockStat::read(dir)).collect()
}

/// The disks on which all I/O of a device is counted, each I/O once: the whole disk of a partition, the paths of a
/// multipath device and not its head, every loop device on the same file.
fn disks(machine: &Machine<'_>, path: &Path) -> Result<Vec<BlockDev>, String> {
    let device = match resolve(machine, path) {
        Ok(Target::Device(device)) => device,
        Ok(Target::File(_)) => return Err("a file".to_owned()),
        Err(error) => return Err(error.to_string()),
    };
    let found = counted_disks(machine, &device)?;
    if found.is_empty() {
        return Err(format!(
            "no block device of {} is to be seen",
            path.display()
        ));
    }
    Ok(found)
}

fn counted_disks(machine: &Machine<'_>, device: &Device) -> Result<Vec<BlockDev>, String> {
    let is_loop = |disk: &BlockDev| machine.loops.iter().any(|one| one.name == disk.name);
    let Some(own) = device.disks.first() else {
        return Ok(Vec::new());
    };
    let all = device.disks.iter();
    if is_loop(own) {
        // What it stands on sees other I/O: of the file system, and cut otherwise.
        return Ok(all.filter(|disk| is_loop(disk)).cloned().collect());
    }
    let hidden: Vec<BlockDev> = all
        .clone()
        .filter(|disk| disk.dev.is_none())
        .cloned()
        .collect();
    if !hidden.is_empty() {
        return Ok(hidden);
    }
    let mut heads = Vec::new();
    for disk in &device.disks {
        let below = disk.slaves().map_err(|error| error.to_string())?;
        if below
            .iter()
            .any(|name| device.disks.iter().any(|disk| disk.name == *name))
        {
            heads.push(disk.name.clone());
        }
    }
    Ok(all
        .filter(|disk| !heads.contains(&disk.name))
        .cloned()
        .collect())
}

/// Into how many requests the kernel may cut one I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Parts {
    /// Up to here an I/O is one request.
    most_bytes: u64,
    /// What one request of a larger one holds at least.
    whole_bytes: u64,
    /// Requests do not cross multiples of this (`queue/chunk_sectors`).
    chunk_bytes: Option<u64>,
}

impl Parts {
    /// Of a whole disk. A limit that is not shown may be as small as a page.
    fn of(disk: &BlockDev) -> Result<Self, SysfsError> {
        let limit = |name: &str, unit_bytes: u64| -> Result<Option<u64>, SysfsError> {
            let count = optional(read_u64(&disk.dir().join("queue").join(name)))?;
            let count = count.filter(|count| *count > 0);
            Ok(count.map(|count| count.saturating_mul(unit_bytes)))
        };
        let by_size = limit("max_sectors_kb", 1024)?.unwrap_or(PAGE_BYTES);
        let by_pieces = limit("max_segments", PAGE_BYTES)?.unwrap_or(PAGE_BYTES);
        let most_bytes = LARGEST_BIO_BYTES.min(by_size).min(by_pieces);
        let physical_bytes = disk
            .physical_block()
            .map_or(PAGE_BYTES, |size| size.bytes().into());
        Ok(Self {
            most_bytes,
            // Cuts are made at borders of physical blocks.
            whole_bytes: most_bytes.saturating_sub(physical_bytes).max(SECTOR_BYTES),
            chunk_bytes: limit("chunk_sectors", SECTOR_BYTES)?,
        })
    }

    fn smaller(self, other: Self) -> Self {
        let chunks = self.chunk_bytes.into_iter().chain(other.chunk_bytes);
        Self {
            most_bytes: self.most_bytes.min(other.most_bytes),
            whole_bytes: self.whole_bytes.min(other.whole_bytes),
            chunk_bytes: chunks.min(),
        }
    }

    /// The most requests that an I/O of so many bytes becomes.
    fn most(self, bytes: u64) -> u64 {
        let by_size = match bytes <= self.most_bytes {
            true => 1,
            false => bytes.div_ceil(self.whole_bytes),
        };
        by_size
            + self
                .chunk_bytes
                .map_or(0, |chunk_bytes| bytes / chunk_bytes + 1)
    }
}

#[cfg(test)]
#[path = "others_tests.rs"]
mod tests;

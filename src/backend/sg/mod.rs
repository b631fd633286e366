//! `sg`: SCSI disks behind HBAs and RAID controllers, and SATA through the kernel's translation, by SCSI commands
//! over sg version 3. The block layer's splitting, merging and scheduling are not in the way.
//!
//! No more commands are sent at once than the device holds: the rest wait in the queue itself, first in, first
//! out. (The kernel would take more, and its write(2) would sleep once its own requests are used up.)

mod ask;
#[cfg(test)]
mod fake;
mod health;
mod link;
mod open;
mod outcome;
mod queue;
mod seats;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod zeroes_tests;

pub(super) use health::of_node as health_of_node;
pub use link::{NoCounters, ata_link_errors};
pub use queue::SgQueue;

use super::write_cache::of_mode_page;
use super::{BackendError, Device, DeviceFacts, DeviceKind, QueueSpec};
use crate::errno::Errno;
use crate::proto::scsi::vpd::Rotation;
use crate::record::Warning;
use crate::sys::sg::{COMMANDS_PER_FILE, CommandNode, NodeLimits, SgNode};
use crate::sys::sg_lane::SgLane;
use crate::sysfs::Sysfs;
use crate::sysfs::scsi::{self, ScsiQueue};
use crate::units::{BlockSize, Bytes};
use ask::{Asker, Learned};
use queue::Rules;
use seats::Shared;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The kernel's own limit for disks, where it does not tell the device's.
const TIMEOUT_S: u32 = 30;
/// One element of a copy's buffer in the kernel (`SG_SCATTER_SZ`).
const COPY_ELEMENT_BYTES: u32 = 32 << 10;
/// One element of a transfer to our buffers where its pages are nowhere next to each other.
const PAGE_BYTES: u32 = 4096;

/// A SCSI device, driven by commands.
#[derive(Debug)]
pub struct SgDevice<N: CommandNode = SgNode> {
    node: N,
    facts: DeviceFacts,
    learned: Learned,
    rules: Rules,
    limits: NodeLimits,
    /// Whether data may go straight to our buffers, or why not.
    direct: Result<(), &'static str>,
    device_dir: Option<PathBuf>,
    sysfs: Sysfs,
    shared: Arc<Shared>,
    /// Block nodes held exclusively while this device is written.
    held: Vec<File>,
}

/// What the kernel says of the device.
#[derive(Debug, Clone, Default)]
struct Kernel {
    queue: ScsiQueue,
    device_dir: Option<PathBuf>,
    allows_direct: bool,
}

impl SgDevice {
    /// Opens the sg node at `path`, or that of the SCSI disk at `path`, and asks the device about itself.
    /// Nothing is written.
    ///
    /// # Errors
    /// [`BackendError::Open`] where the node cannot be opened; [`BackendError::Unsuitable`] where there is none,
    /// it is no disk, is not ready or does not answer.
    pub fn open_at(sysfs: &Sysfs, path: &Path) -> Result<Self, BackendError> {
        let place = open::place(sysfs, path)?;
        let name = path.display().to_string();
        let unread = |error: crate::sysfs::SysfsError| BackendError::Unsuitable {
            path: name.clone(),
            why: format!("has a queue that cannot be read: {error}"),
        };
        let kernel = Kernel {
            queue: ScsiQueue::read(sysfs, &place.device_dir).map_err(unread)?,
            allows_direct: scsi::allows_direct(sysfs).map_err(unread)? == Some(true),
            device_dir: Some(place.device_dir.clone()),
        };
        let device = Self::over(sysfs, &name, SgNode::at(&place.node), kernel)?;
        let block = scsi::block_of_device(&place.device_dir).map_err(unread)?;
        let block_path = block.map(|block| sysfs.dev(block).display().to_string());
        Ok(device.with_facts(|facts| facts.block_path = block_path))
    }
}

impl<N: CommandNode> SgDevice<N> {
    fn over(sysfs: &Sysfs, name: &str, node: N, kernel: Kernel) -> Result<Self, BackendError> {
        let unsuitable = |why: String| BackendError::Unsuitable {
            path: name.to_owned(),
            why,
        };
        let opened = |errno| open::open_error(name, errno);
        let limits = node.limits().map_err(opened)?;
        let asker = Asker::new(sysfs, node.open(0).map_err(opened)?).map_err(opened)?;
        let learned = asker.learn().map_err(|(question, error)| {
            unsuitable(format!("does not answer {question}: {error}"))
        })?;
        if !learned.inquiry.is_disk() {
            return Err(unsuitable(format!(
                "is no disk: its peripheral device type is {:02x}h",
                learned.inquiry.peripheral_type
            )));
        }
        let block_bytes = learned.capacity.block_bytes;
        let block = BlockSize::new(block_bytes)
            .ok_or_else(|| unsuitable("reports blocks of 0 bytes".to_owned()))?;
        let capacity = learned.capacity.blocks.checked_mul(u64::from(block_bytes));
        let capacity = capacity.ok_or_else(|| unsuitable("reports an absurd size".to_owned()))?;
        let direct = if kernel.allows_direct {
            Ok(())
        } else {
            Err("the driver's allow_dio is 0: echo 1 > /sys/module/sg/parameters/allow_dio")
        };
        let rules = rules(&learned, &limits, &kernel, direct.is_ok());
        let facts = facts(name, &learned, &rules, block, Bytes(capacity));
        Ok(Self {
            node,
            facts,
            learned,
            rules,
            limits,
            direct,
            device_dir: kernel.device_dir,
            sysfs: sysfs.clone(),
            shared: Arc::default(),
            held: Vec::new(),
        })
    }

    /// Lets it be written, while these block nodes are held.
    ///
    /// # Errors
    /// [`BackendError::Unsuitable`] where the device says that it is write protected.
    pub fn with_writes(mut self, held: Vec<File>) -> Result<Self, BackendError> {
        if self.learned.is_write_protected {
            return Err(BackendError::Unsuitable {
                path: self.facts.path,
                why: "is write protected (WP of its mode data)".to_owned(),
            });
        }
        self.rules.writes = true;
        self.held = held;
        Ok(self)
    }

    /// Adds what the opener knows beyond the node: names, identity, uses.
    #[must_use]
    pub fn with_facts(mut self, change: impl FnOnce(&mut DeviceFacts)) -> Self {
        change(&mut self.facts);
        self
    }

    /// Files for so many slots of so many bytes: one for each 16 commands that can be in the device.
    fn files_count(&self, spec: QueueSpec) -> u32 {
        let slot_blocks = spec.slot_bytes / self.rules.block_bytes;
        let parts = slot_blocks.div_ceil(self.rules.command_blocks).max(1);
        let wanted = spec.slots_count.saturating_mul(parts);
        let most = self.rules.device_depth.unwrap_or(u32::MAX).max(1);
        wanted.min(most).div_ceil(COMMANDS_PER_FILE as u32).max(1)
    }
}

/// Limits of commands: the queue's own, and what its scatter-gather elements hold.
fn rules(learned: &Learned, limits: &NodeLimits, kernel: &Kernel, direct: bool) -> Rules {
    let block_bytes = learned.capacity.block_bytes;
    let element = if direct {
        PAGE_BYTES
    } else {
        COPY_ELEMENT_BYTES
    };
    let by_elements = limits.elements_count.saturating_mul(element);
    let most_bytes = match limits.max_sectors_bytes {
        0 => by_elements,
        bytes if by_elements == 0 => bytes,
        bytes => bytes.min(by_elements),
    };
    let by_device = learned.limits.max_transfer_blocks.unwrap_or(u32::MAX);
    let provisioning = learned.provisioning.filter(|ways| ways.unmap);
    Rules {
        block_bytes,
        // Whole blocks: of 520 or 4160 bytes as many as fit.
        command_blocks: (most_bytes / block_bytes).min(by_device).max(1),
        unmap_blocks: provisioning
            .map_or(0, |_| learned.limits.max_unmap_blocks.unwrap_or(u32::MAX)),
        same_blocks: same_blocks(learned),
        long: learned.capacity.blocks > 1 << 32,
        timeout_ms: kernel.queue.timeout_s.unwrap_or(TIMEOUT_S).clamp(1, 86_400) * 1000,
        direct,
        writes: false,
        device_depth: kernel.queue.device_count(),
    }
}

/// Vendor of every SATA drive behind a translation (SAT-4, "INQUIRY command").
const SATA_VENDOR: &str = "ATA";

/// Most blocks of one WRITE SAME (16); 0 where nothing says that the device has it.
fn same_blocks(learned: &Learned) -> u32 {
    // ATA has no such command: the kernel's translation takes this one to trim, and refuses it otherwise
    // (drivers/ata/libata-scsi.c, `ata_scsi_write_same_xlat`), though it tells a length for it.
    if learned.inquiry.vendor == SATA_VENDOR {
        return 0;
    }
    let has_it = learned.provisioning.is_some_and(|ways| ways.write_same_16);
    match learned.limits.max_write_same_blocks {
        Some(blocks) => u32::try_from(blocks).unwrap_or(u32::MAX),
        None if has_it => u32::MAX,
        None => 0,
    }
}

fn facts(
    name: &str,
    learned: &Learned,
    rules: &Rules,
    block: BlockSize,
    capacity: Bytes,
) -> DeviceFacts {
    let physical = u64::from(block.bytes()) * u64::from(learned.capacity.blocks_per_physical);
    let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let trim = match learned.provisioning {
        Some(ways) if ways.unmap => Ok(()),
        Some(ways) if ways.write_same_16 || ways.write_same_10 => Err(
            "it deallocates by WRITE SAME only, and sg trims by UNMAP; use backend uring"
                .to_owned(),
        ),
        _ => Err("it says nothing of UNMAP (LBPU of VPD page b2h)".to_owned()),
    };
    DeviceFacts {
        path: name.to_owned(),
        kind: DeviceKind::Scsi,
        identity: best_name(&learned.identities),
        model: learned.inquiry.model(),
        serial: learned.serial.clone(),
        firmware: text(&learned.inquiry.revision),
        capacity,
        logical_block: block,
        physical_block: u32::try_from(physical).ok().and_then(BlockSize::new),
        rotational: match learned.rotation {
            Rotation::NotReported => None,
            Rotation::Solid => Some(false),
            Rotation::Rpm(_) => Some(true),
        },
        max_io: Some(Bytes(
            u64::from(rules.command_blocks) * u64::from(block.bytes()),
        )),
        max_command: None,
        device_depth: rules.device_depth,
        trim,
        write_zeroes: if rules.same_blocks > 0 {
            Ok(None)
        } else {
            Err(match learned.inquiry.vendor == SATA_VENDOR {
                true => "SATA drives have no command for it: their translation takes WRITE SAME only to trim",
                false => "it says nothing of WRITE SAME (16) (MAXIMUM WRITE SAME LENGTH of VPD page b0h)",
            }
            .to_owned())
        },
        flush: Ok(()),
        probe: learned.probe.clone(),
        in_use: Vec::new(),
        block_path: None,
        own_scratch: false,
    }
}

/// The name that is most surely the world's only one.
fn best_name(names: &[String]) -> Option<String> {
    const ORDER: [&str; 3] = ["uuid.", "eui.", "naa."];
    let mut ranked = ORDER.iter().flat_map(|prefix| {
        let is_it = |name: &&String| name.starts_with(prefix);
        names.iter().find(is_it)
    });
    ranked.next().or(names.first()).cloned()
}

impl<N: CommandNode> Device for SgDevice<N> {
    type Queue = SgQueue<N::File>;

    fn facts(&self) -> &DeviceFacts {
        &self.facts
    }

    fn features(&self) -> Vec<String> {
        let (rules, version) = (&self.rules, self.limits.version);
        let mut lines = vec![
            format!(
                "sg {}.{}.{}, queued at tail, {COMMANDS_PER_FILE} commands per open file",
                version / 10_000,
                version / 100 % 100,
                version % 100
            ),
            match self.direct {
                Ok(()) => "data: direct I/O asked for".to_owned(),
                Err(why) => format!("data: copied through the kernel ({why})"),
            },
            format!(
                "READ and WRITE ({}), up to {} per command (max_sectors_kb, elements, VPD b0h); larger I/O is sent as several",
                if rules.long { 16 } else { 10 },
                Bytes(u64::from(rules.command_blocks) * u64::from(rules.block_bytes))
            ),
            format!("command timeout {} s", rules.timeout_ms / 1000),
        ];
        if let Some(caching) = self.learned.caching {
            let state = |on| if on { "on" } else { "off" };
            lines.push(format!("write cache {}", state(caching.write_cache)));
        }
        if let Some(kind) = self.learned.capacity.protection_type {
            lines.push(format!(
                "protection information of type {kind} stays in the device"
            ));
        }
        if let Some(celsius) = self.learned.celsius {
            lines.push(format!("{celsius} °C at start"));
        }
        lines.extend(
            self.learned
                .attentions
                .iter()
                .map(|sense| format!("at start, retried once: {sense}")),
        );
        lines.extend(self.shared.with(|tally| tally.lines(rules.direct)));
        lines
    }

    fn warnings(&self) -> Vec<Warning> {
        let count = self.shared.with(|tally| tally.recovered_count);
        let warning = Warning {
            kind: "recovered-errors".to_owned(),
            text: format!(
                "{}: {count} commands succeeded only after the device had recovered an error: their latency holds its retries",
                self.facts.path
            ),
            next_step: "look at the device's error counters (smartctl -a)".to_owned(),
        };
        (count > 0).then_some(warning).into_iter().collect()
    }

    fn health(&self) -> Result<crate::record::Health, String> {
        health::ask(&self.sysfs, &self.node, &self.facts.path)
    }

    fn write_cache(&self) -> Result<crate::record::WriteCache, String> {
        let caching = self.learned.caching;
        let caching = caching.ok_or("it told no caching mode page when it was opened")?;
        Ok(of_mode_page(caching.write_cache, &self.facts.path))
    }

    fn open_queue(&self, spec: QueueSpec) -> Result<Self::Queue, BackendError> {
        let failed = |what, errno| BackendError::Setup {
            path: self.facts.path.clone(),
            what,
            errno,
            hint: match errno {
                Errno(libc::EMFILE | libc::ENFILE) => {
                    "; a file takes 16 commands: raise `ulimit -n` or lower iodepth"
                }
                Errno(libc::ENOMEM) => "; use a lower iodepth or a smaller bs",
                _ => "",
            }
            .to_owned(),
        };
        let command_bytes = self
            .rules
            .command_blocks
            .saturating_mul(self.rules.block_bytes);
        let reserve_bytes = match self.rules.direct {
            true => 0,
            false => command_bytes.min(spec.slot_bytes),
        };
        let mut files = Vec::new();
        for _ in 0..self.files_count(spec) {
            let file = self.node.open(reserve_bytes);
            files.push(file.map_err(|errno| failed("opening the sg node once more", errno))?);
        }
        let lane = SgLane::new(&self.sysfs, files, spec.slots_count, spec.slot_bytes)
            .map_err(|errno| failed("allocating the buffers", errno))?;
        let rules = Rules {
            writes: self.rules.writes && spec.writes,
            ..self.rules
        };
        Ok(SgQueue::new(
            lane,
            rules,
            spec,
            self.device_dir.clone(),
            &self.shared,
        ))
    }
}

//! `uring-cmd`: NVMe commands to a namespace's generic node through io_uring, past the block layer.

mod find;
mod rules;
mod trial;

pub use rules::NvmeRules;

use super::health::of_smart;
use super::ring_queue::{Notes, RingQueue, registered_lines, ring_error};
use super::write_cache::of_feature;
use super::{BackendError, Device, DeviceFacts, DeviceKind, QueueSpec};
use crate::errno::Errno;
use crate::proto::nvme::{IdentifyNamespace, SmartLog, max_zeroes_bytes};
use crate::sys::buffers::PageKind;
use crate::sys::ioctl::{self, OpenMode};
use crate::sys::nvme::{NvmeError, NvmeNode};
use crate::sys::slots::SlotRingSpec;
use crate::sysfs::Sysfs;
use crate::sysfs::nvme_controller::Controller;
use crate::sysfs::queue::BlockQueue;
use crate::units::{BlockSize, Bytes};
use find::Found;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

/// One reactor's queue.
pub type UringCmdQueue = RingQueue<NvmeRules>;

/// The smallest memory page, in which MDTS and segments are counted.
const PAGE_BYTES: u64 = 4096;

/// How to open a namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UringCmdOptions {
    /// Lets writes, trims and flushes through. Reading is the default.
    pub writes: bool,
    /// Polls for completions (IOPOLL) where the kernel has poll queues for the drive.
    pub poll: bool,
}

impl Default for UringCmdOptions {
    fn default() -> Self {
        Self {
            writes: false,
            poll: true,
        }
    }
}

/// A namespace opened for passthrough.
#[derive(Debug)]
pub struct UringCmdDevice {
    facts: DeviceFacts,
    node: NvmeNode,
    found: Found,
    /// The controller's own node, for probes.
    controller: Option<Arc<File>>,
    sysfs: Sysfs,
    writes: bool,
    /// Whether queues poll, or why not.
    polled: Result<(), String>,
    /// Health, or why it could not be read.
    smart: Result<SmartLog, String>,
    /// Bytes that fit the segments of one request on ordinary pages.
    segments_bytes: Option<u64>,
    /// Block nodes held with `O_EXCL` while this one is written.
    held: Vec<File>,
    notes: Notes,
}

impl UringCmdDevice {
    /// Opens `/dev/ngXnY`, or the one that stands beside `/dev/nvmeXnY`, and asks the controller about it.
    /// Nothing is written.
    ///
    /// # Errors
    /// [`BackendError::Unsuitable`] where it is no NVMe namespace, has a format that cannot be driven, or the
    /// kernel is too old; [`BackendError::Open`] where it cannot be opened.
    pub fn open(path: &Path, options: UringCmdOptions) -> Result<Self, BackendError> {
        Self::open_at(&Sysfs::host(), path, options)
    }

    /// The same with the roots of `/sys` and `/proc` given.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_at(
        sysfs: &Sysfs,
        path: &Path,
        options: UringCmdOptions,
    ) -> Result<Self, BackendError> {
        let name = path.display().to_string();
        let found = find::find(sysfs, path)?;
        let node = NvmeNode::open(&found.node, options.writes)
            .map_err(|error| nvme_error(&name, error, options.writes))?;
        find::is_still(&node, &found, &name)?;
        let queue = find::block_queue(sysfs, &found, &name)?;
        trial::passthrough(sysfs, &node).map_err(|why| BackendError::Unsuitable {
            path: name.clone(),
            why,
        })?;
        let polled = if options.poll {
            trial::polling(sysfs, &node, queue.polls)
        } else {
            Err("not asked for".to_owned())
        };
        let (controller, probe) = match open_controller(sysfs, &found.controllers) {
            Ok(file) => (Some(Arc::new(file)), Ok(())),
            Err(why) => (None, Err(why)),
        };
        let smart = node.smart().map_err(|error| error.to_string());
        let mut facts = facts(name, &node, &queue, &found)?;
        facts.probe = probe;
        facts.block_path = Some(sysfs.dev(&found.block).display().to_string());
        Ok(Self {
            facts,
            node,
            found,
            controller,
            sysfs: sysfs.clone(),
            writes: options.writes,
            polled,
            smart,
            segments_bytes: queue
                .max_segments_count
                .map(|count| u64::from(count) * PAGE_BYTES),
            held: Vec::new(),
            notes: Notes::default(),
        })
    }

    /// Adds what the opener knows beyond the node: names, identity, uses.
    #[must_use]
    pub fn with_facts(mut self, change: impl FnOnce(&mut DeviceFacts)) -> Self {
        change(&mut self.facts);
        self
    }

    /// Keeps these files open for as long as the device is: its block nodes, opened with `O_EXCL`, so that
    /// nobody can mount or hold what is being written past them.
    #[must_use]
    pub fn holding(mut self, block_nodes: Vec<File>) -> Self {
        self.held = block_nodes;
        self
    }

    /// Health of the controller.
    ///
    /// # Errors
    /// Why it could not be read.
    pub const fn smart(&self) -> Result<&SmartLog, &String> {
        self.smart.as_ref()
    }
}

impl Device for UringCmdDevice {
    type Queue = UringCmdQueue;

    fn facts(&self) -> &DeviceFacts {
        &self.facts
    }

    fn features(&self) -> Vec<String> {
        let polled = match &self.polled {
            Ok(()) => "polled: yes".to_owned(),
            Err(why) => format!("polled: no, {why}"),
        };
        let mut lines = vec![
            format!("NVMe passthrough by {}", self.found.generic),
            polled,
            format_line(self.node.namespace()),
        ];
        lines.extend(self.node.layout().note());
        lines.push(match &self.smart {
            Ok(smart) => smart_line(smart),
            Err(why) => format!("health: unknown, {why}"),
        });
        if !self.held.is_empty() {
            lines.push("block node held while it is written".to_owned());
        }
        lines.extend(self.notes.lines());
        lines
    }

    fn health(&self) -> Result<crate::record::Health, String> {
        let log = self.node.smart().map_err(|error| error.to_string())?;
        let path = self.sysfs.shown(&self.sysfs.dev(&self.found.generic));
        Ok(of_smart(&log, format!("SMART log by {}", path.display())))
    }

    fn write_cache(&self) -> Result<crate::record::WriteCache, String> {
        let is_on = self.node.write_cache().map_err(|error| error.to_string())?;
        let path = self.sysfs.shown(&self.sysfs.dev(&self.found.generic));
        Ok(of_feature(is_on, &path.display().to_string()))
    }

    fn open_queue(&self, spec: QueueSpec) -> Result<UringCmdQueue, BackendError> {
        let ring_spec = SlotRingSpec {
            slots_count: spec.slots_count,
            slot_bytes: spec.slot_bytes,
            discard_by_worker: false,
            polled: self.polled.is_ok(),
        };
        let ring = self
            .node
            .ring(&self.sysfs, self.controller.as_ref(), ring_spec)
            .map_err(|error| ring_error(&self.facts.path, error))?;
        let registered = ring.registered();
        for line in registered_lines(&registered) {
            self.notes.add(line);
        }
        if let Some(segments_bytes) = self.segments_bytes
            && registered.pages == PageKind::Plain
            && u64::from(spec.slot_bytes) > segments_bytes
        {
            self.notes.add(format!(
                "I/Os beyond {} on ordinary pages have more pieces than one command takes: the kernel copies them; reserve huge pages",
                Bytes(segments_bytes)
            ));
        }
        let writes = self.writes && spec.writes;
        Ok(RingQueue::new(
            ring,
            spec,
            NvmeRules::new(&self.facts, &self.found, spec, writes, &self.sysfs),
            (self.sysfs.clone(), self.notes.clone()),
        ))
    }
}

fn facts(
    path: String,
    node: &NvmeNode,
    queue: &BlockQueue,
    found: &Found,
) -> Result<DeviceFacts, BackendError> {
    let (controller, namespace) = (node.controller(), node.namespace());
    let unsuitable = |why: &str| BackendError::Unsuitable {
        path: path.clone(),
        why: why.to_owned(),
    };
    let logical_block = BlockSize::new(node.layout().block_bytes)
        .ok_or_else(|| unsuitable("has no logical block size"))?;
    let capacity = namespace
        .size_bytes()
        .filter(|bytes| *bytes > 0)
        .ok_or_else(|| unsuitable("has no blocks, or more than 64 bits can count"))?;
    let present = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let max_command = max_command(
        controller.max_transfer_bytes(PAGE_BYTES),
        queue,
        logical_block,
    );
    Ok(DeviceFacts {
        kind: DeviceKind::Nvme,
        identity: None,
        model: present(&controller.model),
        serial: present(&controller.serial),
        firmware: present(&controller.firmware),
        capacity: Bytes(capacity),
        logical_block,
        physical_block: None,
        rotational: queue.rotational,
        max_io: Some(max_command),
        max_command: Some(max_command),
        device_depth: depth(queue, &found.controllers),
        trim: if controller.dataset_management {
            Ok(())
        } else {
            Err("the controller has no dataset management".to_owned())
        },
        write_zeroes: if controller.write_zeroes {
            Ok(Some(Bytes(max_zeroes_bytes(
                node.zeroes_shift(),
                PAGE_BYTES,
                max_command.0,
                logical_block.bytes(),
            ))))
        } else {
            Err("the controller has no Write Zeroes command (ONCS)".to_owned())
        },
        flush: Ok(()),
        probe: Ok(()),
        in_use: Vec::new(),
        own_scratch: false,
        block_path: None,
        path,
    })
}

/// The most that one command moves: the controller's MDTS, the kernel's `max_hw_sectors`, 65,536 blocks; in
/// whole blocks.
fn max_command(mdts_bytes: Option<u64>, queue: &BlockQueue, block: BlockSize) -> Bytes {
    let block_bytes = u64::from(block.bytes());
    let most = [mdts_bytes, queue.max_hw.map(|bytes| bytes.0)]
        .into_iter()
        .flatten()
        .fold(block_bytes << 16, u64::min)
        .min(u64::from(u32::MAX));
    Bytes((most / block_bytes).max(1) * block_bytes)
}

/// Commands that one submission queue holds: the driver's tags, and no more than its entries.
fn depth(queue: &BlockQueue, controllers: &[Controller]) -> Option<u32> {
    let live = controllers.iter().filter(|controller| controller.is_live());
    let entries = live.filter_map(Controller::commands_count);
    match (queue.nr_requests_count, entries.min()) {
        (Some(tags), Some(entries)) => Some(tags.min(entries)),
        (tags, entries) => tags.or(entries),
    }
}

/// `512-byte blocks, 8 bytes of metadata`.
fn format_line(namespace: &IdentifyNamespace) -> String {
    let block = namespace.format.block_bytes().unwrap_or_default();
    match namespace.format.metadata_bytes {
        0 => format!("format {}: {block}-byte blocks", namespace.format_index),
        bytes => format!(
            "format {}: {block}-byte blocks, {bytes} bytes of metadata",
            namespace.format_index
        ),
    }
}

fn smart_line(smart: &SmartLog) -> String {
    let temperature = smart
        .temperature_c()
        .map_or_else(String::new, |celsius| format!("{celsius} °C, "));
    let warnings = match smart.warnings().join(", ") {
        none if none.is_empty() => "no warning".to_owned(),
        some => format!("WARNING: {some}"),
    };
    format!(
        "health: {temperature}{} % used, {} media errors, {warnings}",
        smart.used_pct, smart.media_errors_count
    )
}

/// The controller's character device, through which admin commands are queued.
fn open_controller(sysfs: &Sysfs, controllers: &[Controller]) -> Result<File, String> {
    let Some(controller) = controllers.iter().find(|controller| controller.is_live()) else {
        return Err("the kernel shows no live controller for it".to_owned());
    };
    let path = sysfs.dev(&controller.name);
    let mode = OpenMode {
        direct: false,
        write: false,
        exclusive: false,
    };
    ioctl::open(&path, mode)
        .map_err(|errno| format!("{} cannot be opened: {errno}; run as root", path.display()))
}

fn nvme_error(path: &str, error: NvmeError, writes: bool) -> BackendError {
    let why = match error {
        NvmeError::Kernel {
            what: "open",
            errno,
        } => return open_error(Path::new(path), errno, writes),
        NvmeError::Kernel {
            errno: Errno(libc::ENOTTY),
            ..
        } => "is no NVMe namespace; use backend auto".to_owned(),
        NvmeError::Kernel {
            what,
            errno: errno @ Errno(libc::EACCES | libc::EPERM),
        } => format!("refuses NVMe passthrough: {what} failed: {errno}; run as root"),
        NvmeError::Format(why) => why,
        error => format!("does not identify itself: {error}"),
    };
    BackendError::Unsuitable {
        path: path.to_owned(),
        why,
    }
}

fn open_error(path: &Path, errno: Errno, writes: bool) -> BackendError {
    let hint = match errno {
        Errno(libc::EACCES | libc::EPERM) => "; run as root",
        Errno(libc::EBUSY) if writes => {
            "; it is mounted or held (file system, swap, LVM, md, another process): writes need it free"
        }
        Errno(libc::ENXIO | libc::ENODEV) => "; there is no device behind this node",
        _ => "",
    };
    BackendError::Open {
        path: path.display().to_string(),
        errno,
        hint: hint.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn block(bytes: u32) -> BlockSize {
        BlockSize::new(bytes).unwrap()
    }

    #[test]
    fn the_smallest_limit_counts_in_whole_blocks() {
        let queue = |kib: u64| BlockQueue {
            max_hw: Some(Bytes(kib << 10)),
            ..BlockQueue::default()
        };
        assert_eq!(
            max_command(Some(32 << 10), &queue(512), block(512)),
            Bytes(32 << 10)
        );
        assert_eq!(
            max_command(None, &queue(127), block(4096)),
            Bytes(124 << 10)
        );
        assert_eq!(
            max_command(None, &BlockQueue::default(), block(512)),
            Bytes(32 << 20)
        );
        assert_eq!(
            max_command(None, &BlockQueue::default(), block(1 << 20)),
            Bytes(4095 << 20)
        );
    }

    #[test]
    fn a_queue_holds_what_driver_and_controller_hold() {
        let root = tempfile::tempdir().unwrap();
        let subsystem = root.path().join("sys/devices/nvme-subsys0");
        for (name, last_entry, state) in [("nvme0", "127\n", "live\n"), ("nvme1", "3\n", "dead\n")]
        {
            let folder = subsystem.join(name);
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join("sqsize"), last_entry).unwrap();
            std::fs::write(folder.join("state"), state).unwrap();
        }
        let class = root.path().join("sys/class/nvme-generic");
        std::fs::create_dir_all(&class).unwrap();
        std::fs::create_dir_all(subsystem.join("ng0n1")).unwrap();
        std::os::unix::fs::symlink(subsystem.join("ng0n1"), class.join("ng0n1")).unwrap();
        let live = Controller::of_generic(&Sysfs::at(root.path()), "ng0n1").unwrap();
        let queue = BlockQueue {
            nr_requests_count: Some(1023),
            ..BlockQueue::default()
        };
        assert_eq!(depth(&queue, &live), Some(127));
        assert_eq!(depth(&queue, &[]), Some(1023));
        assert_eq!(depth(&BlockQueue::default(), &[]), None);
    }

    #[test]
    fn what_is_no_namespace_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, [0; 4096]).unwrap();
        let error = UringCmdDevice::open(&file, UringCmdOptions::default());
        assert!(
            matches!(&error, Err(BackendError::Unsuitable { why, .. }) if why.contains("no NVMe namespace")),
            "{error:?}"
        );
        let null = UringCmdDevice::open(&Sysfs::host().dev("null"), UringCmdOptions::default());
        assert!(
            matches!(null, Err(BackendError::Unsuitable { .. })),
            "{null:?}"
        );
        let gone = UringCmdDevice::open(&dir.path().join("no"), UringCmdOptions::default());
        assert!(matches!(gone, Err(BackendError::Open { .. })), "{gone:?}");
    }
}

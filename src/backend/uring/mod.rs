//! `uring`: any block device or regular file through io_uring, past the page cache.

mod health;
mod open;
mod probe;
mod rules;

pub use rules::FileRules;

use super::ring_queue::{Notes, RingQueue, registered_lines, ring_error};
use super::write_cache;
use super::{BackendError, Device, DeviceFacts, DeviceKind, QueueSpec};
use crate::sys::ioctl::{self, NodeKind};
use crate::sys::nvme::write_cache_at;
use crate::sys::slots::{SlotRing, SlotRingSpec};
use crate::sysfs::{BlockDev, DevNum, Sysfs, scsi};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// One reactor's queue.
pub type UringQueue = RingQueue<FileRules>;

/// How to open a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UringOptions {
    /// Opens for writing, block devices with `O_EXCL`. Reading is the default.
    pub writes: bool,
    /// Polls for completions (IOPOLL) where the queue can.
    pub poll: bool,
}

impl Default for UringOptions {
    fn default() -> Self {
        Self {
            writes: false,
            poll: true,
        }
    }
}

/// A block device or file opened with `O_DIRECT`.
#[derive(Debug)]
pub struct UringDevice {
    facts: DeviceFacts,
    file: Arc<File>,
    sysfs: Sysfs,
    writes: bool,
    /// The driver has a request queue (blk-mq); without one it cannot be asked not to wait.
    has_requests: bool,
    /// Whether queues poll, or why not.
    polled: Result<(), String>,
    /// What the queues found; written when one is opened or closed, never while it runs.
    notes: Notes,
}

impl UringDevice {
    /// Opens an existing block device or regular file and asks the kernel about it. Nothing is written.
    ///
    /// # Errors
    /// [`BackendError::Open`] where it is missing, held or refuses direct I/O; [`BackendError::Unsuitable`]
    /// where it is neither block device nor file, or holds less than one block.
    pub fn open(path: &Path, options: UringOptions) -> Result<Self, BackendError> {
        Self::open_at(&Sysfs::host(), path, options)
    }

    /// The same with the roots of `/sys` and `/proc` given.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_at(
        sysfs: &Sysfs,
        path: &Path,
        options: UringOptions,
    ) -> Result<Self, BackendError> {
        let opened = open::open(sysfs, path, options.writes)?;
        let (mut facts, file) = (opened.facts, Arc::new(opened.file));
        if facts.trim.is_ok() {
            facts.trim = probe::discard(sysfs, &file);
        }
        let polled = if options.poll {
            probe::polling(sysfs, &file, opened.queue_polls, facts.logical_block)
        } else {
            Err("not asked for".to_owned())
        };
        Ok(Self {
            facts,
            file,
            sysfs: sysfs.clone(),
            writes: options.writes,
            has_requests: opened.has_requests,
            polled,
            notes: Notes::default(),
        })
    }

    /// The whole disk, where it is one or a partition of one.
    fn disk(&self) -> Option<BlockDev> {
        let NodeKind::Block { major, minor } = ioctl::node_kind(&self.file).ok()? else {
            return None;
        };
        let block = BlockDev::numbered(&self.sysfs, DevNum { major, minor }).ok()?;
        BlockDev::named(&self.sysfs, block.disk_name()).ok()
    }

    /// The SCSI device's folder, where it is a disk of that kind or a partition of one.
    fn scsi_dir(&self) -> Option<PathBuf> {
        scsi::device_dir(self.disk()?.dir())
    }

    /// Adds what the opener knows beyond the node: names, identity, uses.
    #[must_use]
    pub fn with_facts(mut self, change: impl FnOnce(&mut DeviceFacts)) -> Self {
        change(&mut self.facts);
        self
    }
}

impl Device for UringDevice {
    type Queue = UringQueue;

    fn facts(&self) -> &DeviceFacts {
        &self.facts
    }

    fn features(&self) -> Vec<String> {
        let polled = match &self.polled {
            Ok(()) => "polled: yes".to_owned(),
            Err(why) => format!("polled: no, {why}"),
        };
        let mut lines = vec!["direct I/O".to_owned(), polled];
        lines.extend(self.notes.lines());
        lines
    }

    fn health(&self) -> Result<crate::record::Health, String> {
        if self.facts.kind == DeviceKind::File {
            return Err("a file: which device it lies on is the file system's matter".to_owned());
        }
        let disk = self.disk();
        let disk = disk.ok_or_else(|| "the kernel shows no such disk any more".to_owned())?;
        health::of_disk(&self.sysfs, &disk)
    }

    fn write_cache(&self) -> Result<crate::record::WriteCache, String> {
        if self.facts.kind == DeviceKind::File {
            return Err("a file: which device it lies on is the file system's matter".to_owned());
        }
        let disk = self.disk();
        let disk = disk.ok_or_else(|| "the kernel shows no such disk any more".to_owned())?;
        write_cache::of_disk(&self.sysfs, &disk, write_cache_at)
    }

    fn open_queue(&self, spec: QueueSpec) -> Result<UringQueue, BackendError> {
        let ring = SlotRing::new(
            &self.sysfs,
            Arc::clone(&self.file),
            SlotRingSpec {
                slots_count: spec.slots_count,
                slot_bytes: spec.slot_bytes,
                discard_by_worker: !self.has_requests,
                polled: self.polled.is_ok(),
            },
        )
        .map_err(|error| ring_error(&self.facts.path, error))?;
        for line in registered_lines(&ring.registered()) {
            self.notes.add(line);
        }
        let writes = self.writes && spec.writes;
        Ok(RingQueue::new(
            ring,
            spec,
            FileRules::new(
                (Arc::clone(&self.file), self.scsi_dir()),
                spec,
                &self.facts,
                writes,
            ),
            (self.sysfs.clone(), self.notes.clone()),
        ))
    }
}

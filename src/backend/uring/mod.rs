//! `uring`: any block device or regular file through io_uring, past the page cache.

mod open;
mod probe;
mod queue;

pub use queue::UringQueue;

use super::{BackendError, Device, DeviceFacts, QueueSpec};
use crate::errno::Errno;
use crate::sys::ring::RingError;
use crate::sys::slots::{Registered, SlotRing, SlotRingSpec};
use crate::sysfs::Sysfs;
use std::fs::File;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

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

    /// Adds what the opener knows beyond the node: names, identity, uses.
    #[must_use]
    pub fn with_facts(mut self, change: impl FnOnce(&mut DeviceFacts)) -> Self {
        change(&mut self.facts);
        self
    }
}

/// Lines for the record, each once, shared with the queues.
#[derive(Debug, Clone, Default)]
struct Notes(Arc<Mutex<Vec<String>>>);

impl Notes {
    fn add(&self, line: String) {
        // A panic while adding a line leaves a list of lines all the same.
        let mut notes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !notes.contains(&line) {
            notes.push(line);
        }
    }

    fn lines(&self) -> Vec<String> {
        let notes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        notes.clone()
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
        Ok(UringQueue::new(
            (ring, Arc::clone(&self.file)),
            spec,
            &self.facts,
            self.writes && spec.writes,
            (self.sysfs.clone(), self.notes.clone()),
        ))
    }
}

/// What registration brought, for the record.
fn registered_lines(registered: &Registered) -> [String; 4] {
    let outcome = |what: &str, done: Result<(), Errno>, hint: &str| match done {
        Ok(()) => format!("registered {what}"),
        Err(errno) => format!("registered {what}: no, {errno}{hint}"),
    };
    let memlock = match registered.buffers {
        Err(Errno(libc::ENOMEM)) => "; raise `ulimit -l` (RLIMIT_MEMLOCK), or run as root",
        _ => "",
    };
    [
        outcome("buffers", registered.buffers, memlock),
        outcome("file", registered.file, ""),
        format!("buffers on {}", registered.pages.name()),
        format!(
            "{}{}",
            registered.task_run.name(),
            if registered.ring {
                ", registered ring"
            } else {
                ""
            }
        ),
    ]
}

/// A ring's error with what to do about it.
fn ring_error(path: &str, error: RingError) -> BackendError {
    match error {
        RingError::TooDeep { .. } | RingError::TooOld => BackendError::Unsuitable {
            path: path.to_owned(),
            why: format!("cannot be driven so: {error}"),
        },
        RingError::Kernel { what, errno } => BackendError::Setup {
            path: path.to_owned(),
            what,
            errno,
            hint: match errno {
                Errno(libc::EPERM | libc::EACCES) => {
                    "; io_uring is forbidden here: see the sysctl kernel.io_uring_disabled, or the container's seccomp profile"
                }
                Errno(libc::ENOSYS) => "; this kernel is built without io_uring",
                Errno(libc::ENOMEM) => {
                    "; raise `ulimit -l` (RLIMIT_MEMLOCK), or use a lower iodepth or a smaller bs"
                }
                Errno(libc::EMFILE | libc::ENFILE) => "; raise `ulimit -n`",
                _ => "",
            }
            .to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::buffers::PageKind;
    use crate::sys::ring::TaskRun;

    #[test]
    fn what_the_kernel_refuses_is_told_with_its_remedy() {
        let lines = registered_lines(&Registered {
            buffers: Err(Errno(libc::ENOMEM)),
            file: Ok(()),
            ring: false,
            task_run: TaskRun::Interrupting,
            pages: PageKind::Plain,
        });
        assert!(lines[0].starts_with("registered buffers: no, ENOMEM"));
        assert!(lines[0].contains("ulimit -l"));
        assert_eq!(lines[1], "registered file");
        let error = ring_error(
            "x",
            RingError::Kernel {
                what: "io_uring_setup",
                errno: Errno(libc::EPERM),
            },
        );
        assert!(error.to_string().contains("kernel.io_uring_disabled"));
        let deep = ring_error("x", RingError::TooDeep { asked: 40_000 });
        assert!(matches!(deep, BackendError::Unsuitable { .. }));
        assert!(deep.to_string().contains("32768"));
    }
}

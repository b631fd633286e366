//! One io_uring queue behind the [`Queue`] trait.

use crate::backend::{Batch, Closed, DeviceFacts, Full, Gone, Queue, QueueSpec, Sink, Wait};
use crate::errno::Errno;
use crate::request::{Io, Op, Slot, Status};
use crate::sys::ioctl;
use crate::sys::slots::{Request, SlotRing};
use crate::sys::workers::{thread_id, worker_time};
use crate::sysfs::Sysfs;
use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

use super::Notes;

/// For the record, where it was so.
const WORKERS: &str = "some I/Os went through io_uring's worker threads (driver without NOWAIT, no free tag, or flush)";

/// A queue of one reactor. A poll is one enter that hands over what was built and waits for
/// completions; where the ring polls the device (IOPOLL) it spins instead, since the kernel's polling
/// loop knows no timeout.
#[derive(Debug)]
pub struct UringQueue {
    ring: SlotRing,
    batch: Batch,
    rules: Rules,
    /// The device itself, to be asked whether it is still there.
    file: Arc<File>,
    /// I/Os that this queue itself refused, to be reported by the next poll.
    refused: Vec<(Slot, Errno)>,
    /// What the next poll of refusals takes from; the two swap places.
    refused_before: Vec<(Slot, Errno)>,
    /// Where to look for worker threads at the end, and where to note them.
    at_close: (Sysfs, Notes),
}

/// What may be sent, and in which units.
#[derive(Debug, Clone, Copy)]
struct Rules {
    block_bytes: u64,
    slot_bytes: u32,
    writes: bool,
    trim: bool,
}

impl Rules {
    /// The request for an I/O, or why it is refused: EPERM for a change on a queue that was opened
    /// without writes, EOPNOTSUPP for a trim where there is none, EINVAL for more than a slot holds.
    #[inline]
    fn request(self, io: Io) -> Result<Request, Errno> {
        if io.op == Op::Probe {
            return Err(Errno(libc::EOPNOTSUPP));
        }
        if io.op != Op::Read && !self.writes {
            return Err(Errno(libc::EPERM));
        }
        let offset_bytes = io.lba.wrapping_mul(self.block_bytes);
        let length = u64::from(io.blocks) * self.block_bytes;
        let length_bytes = match u32::try_from(length) {
            Ok(length_bytes) if length_bytes <= self.slot_bytes => length_bytes,
            _ if matches!(io.op, Op::Trim | Op::Flush) => 0,
            _ => return Err(Errno(libc::EINVAL)),
        };
        match io.op {
            Op::Read => Ok(Request::Read {
                offset_bytes,
                length_bytes,
            }),
            Op::Write => Ok(Request::Write {
                offset_bytes,
                length_bytes,
            }),
            Op::Trim if self.trim => Ok(Request::Discard {
                offset_bytes,
                length_bytes: length,
            }),
            Op::Trim | Op::Probe => Err(Errno(libc::EOPNOTSUPP)),
            Op::Flush => Ok(Request::Datasync),
        }
    }
}

impl UringQueue {
    pub(super) fn new(
        (ring, file): (SlotRing, Arc<File>),
        spec: QueueSpec,
        facts: &DeviceFacts,
        writes: bool,
        at_close: (Sysfs, Notes),
    ) -> Self {
        // A refusal per slot is the most there can be: neither list ever grows.
        let places = spec.slots_count as usize;
        Self {
            ring,
            batch: spec.batch,
            rules: Rules {
                block_bytes: u64::from(facts.logical_block.bytes()),
                slot_bytes: spec.slot_bytes,
                writes,
                trim: facts.trim.is_ok(),
            },
            file,
            refused: Vec::with_capacity(places),
            refused_before: Vec::with_capacity(places),
            at_close,
        }
    }

    /// One enter.
    #[inline]
    fn enter(&mut self, complete_min: u32, timeout_ns: Option<u64>) -> Result<u32, Gone> {
        match self.ring.enter(self.batch.submit, complete_min, timeout_ns) {
            Ok(taken) => Ok(taken),
            Err(errno) => after_error(errno),
        }
    }

    /// Hands over what was built, in enters of at most `batch.submit`, until at most `leave` remain or
    /// the kernel takes no more for now.
    #[inline]
    fn ring_down_to(&mut self, leave: u32) -> Result<(), Gone> {
        while self.ring.pending() > leave {
            if self.enter(0, None)? == 0 {
                break;
            }
        }
        Ok(())
    }

    /// Reports what was refused without the kernel.
    #[cold]
    fn drain_refused<S: Sink>(&mut self, sink: &mut S) -> usize {
        std::mem::swap(&mut self.refused, &mut self.refused_before);
        let count = self.refused_before.len();
        while let Some((slot, errno)) = self.refused_before.pop() {
            let next = sink.complete(slot, Status::Errno(errno), self.ring.buffer(slot));
            if let Some(io) = next {
                let again = self.submit(slot, io);
                debug_assert_eq!(again, Ok(()), "the slot has just become free");
            }
        }
        count
    }
}

/// Whether a failed I/O says that the device is gone. A removed block device says so by its size alone:
/// the kernel sets it to nothing (block/genhd.c, `__blk_mark_disk_dead`), so that reads find the end of
/// the device (0 bytes moved) and writes no room (ENOSPC, block/fops.c). A file's size is its own affair.
#[cold]
fn gone_by(status: Status, file: &File) -> Option<Gone> {
    if status.is_gone() {
        return Some(Gone(status));
    }
    let at_the_end = matches!(
        status,
        Status::Short { got_bytes: 0 } | Status::Errno(Errno(libc::ENOSPC))
    );
    let is_nothing = at_the_end && ioctl::block_capacity_bytes(file) == Ok(0);
    is_nothing.then_some(Gone(Status::Errno(Errno(libc::ENODEV))))
}

/// What a failed enter means: nothing to worry about, or the end.
#[cold]
fn after_error(errno: Errno) -> Result<u32, Gone> {
    match errno {
        // Time is up, a signal came, the kernel is short of memory for now, or wants completions to be
        // reaped first: what was built stays built, the next poll tries again.
        Errno(libc::ETIME | libc::EINTR | libc::EAGAIN | libc::EBUSY) => Ok(0),
        errno => Err(Gone(Status::Errno(errno))),
    }
}

impl Queue for UringQueue {
    const SLEEPS: bool = true;
    const FOUND_TOGETHER: bool = true;

    #[inline]
    fn submit(&mut self, slot: Slot, io: Io) -> Result<(), Full> {
        let pushed = match self.rules.request(io) {
            Ok(request) => self.ring.push(slot, request),
            Err(errno) => {
                let place =
                    self.ring.is_free(slot) && self.refused.iter().all(|&(taken, _)| taken != slot);
                if place {
                    self.refused.push((slot, errno));
                }
                place
            }
        };
        if pushed { Ok(()) } else { Err(Full) }
    }

    #[inline]
    fn flush(&mut self) -> Result<(), Gone> {
        self.ring_down_to(0)
    }

    #[inline]
    fn poll<S: Sink>(&mut self, sink: &mut S, wait: Wait) -> Result<usize, Gone> {
        let mut found = 0;
        if !self.refused.is_empty() {
            found = self.drain_refused(sink);
        }
        self.ring_down_to(self.batch.submit)?;
        let ready = self.ring.ready();
        // An idle queue sleeps as well: until the next arrival of an open loop.
        let wanted = self.batch.complete_min.min(self.ring.in_flight()).max(1);
        match wait {
            Wait::AtMostNs(ns) if ready < wanted && found == 0 => {
                self.enter(wanted, Some(ns))?;
            }
            _ if self.ring.pending() > 0 || (ready == 0 && self.ring.wants_enter()) => {
                self.enter(0, None)?;
            }
            _ => {}
        }
        let Self {
            ring,
            batch,
            rules,
            file,
            refused,
            ..
        } = self;
        let mut gone = None;
        let drained = ring.drain(batch.complete_max, |slot, status, buffer| {
            if !status.is_ok() && gone.is_none() {
                gone = gone_by(status, file);
            }
            let request = rules.request(sink.complete(slot, status, buffer)?);
            request
                .inspect_err(|&errno| refused.push((slot, errno)))
                .ok()
        });
        match gone {
            Some(gone) => Err(gone),
            None => Ok(found + drained),
        }
    }

    fn buffer(&mut self, slot: Slot) -> &mut [u8] {
        self.ring.buffer(slot)
    }

    fn close(self, limit: Duration) -> Closed {
        let (sysfs, notes) = &self.at_close;
        if worker_time(sysfs, thread_id()).workers_count > 0 {
            notes.add(WORKERS.to_owned());
        }
        Closed {
            abandoned_count: self.ring.close(limit),
        }
    }
}

//! One io_uring queue behind the [`Queue`] trait, whatever its ring carries.

use super::{BackendError, Batch, Closed, Full, Gone, Queue, QueueSpec, Sink, Wait};
use crate::errno::Errno;
use crate::request::{Io, Slot, Status};
use crate::sys::ring::RingError;
use crate::sys::slots::{Registered, SlotKind, SlotRing};
use crate::sys::workers::{thread_id, worker_time};
use crate::sysfs::Sysfs;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// So long a removal may take until the kernel shows it; and how often it is asked.
const DOUBT_LIMIT: Duration = Duration::from_millis(100);
const DOUBT_LOOK: Duration = Duration::from_millis(1);

/// For the record, where it was so.
const WORKERS: &str = "some I/Os went through io_uring's worker threads (driver without NOWAIT, no free tag, or flush)";

/// A queue of one reactor. A poll is one enter that hands over what was built and waits for
/// completions; where the ring polls the device (IOPOLL) it spins instead, since the kernel's polling
/// loop knows no timeout.
#[derive(Debug)]
pub struct RingQueue<R: Rules> {
    ring: SlotRing<R::Kind>,
    batch: Batch,
    rules: R,
    /// I/Os that this queue itself refused, to be reported by the next poll.
    refused: Vec<(Slot, Errno)>,
    /// What the next poll of refusals takes from; the two swap places.
    refused_before: Vec<(Slot, Errno)>,
    /// Failures that may mean that the device is gone, kept back until that is known: what took their place would
    /// only fail too.
    doubted: Vec<(Slot, Status)>,
    /// Since when, and when the kernel was asked last.
    doubt: Option<(Instant, Instant)>,
    /// Such failures meant nothing once: they are told at once from then on.
    pub(super) is_trusted: bool,
    /// Where to look for worker threads at the end, and where to note them.
    at_close: (Sysfs, Notes),
}

/// What a failed I/O says of its device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It is there: the I/O failed by itself.
    Here,
    /// It may be on its way out, which the kernel does not show yet.
    MayBeGone,
    /// It is gone, and this is how it shall be told.
    Gone(Gone),
}

/// What one backend sends for an I/O, and how it knows that the device is gone.
pub trait Rules {
    /// What the ring carries.
    type Kind: SlotKind;

    /// The request for an I/O, or why it is refused.
    ///
    /// # Errors
    /// An errno, with which the I/O completes.
    fn request(&self, io: Io) -> Result<<Self::Kind as SlotKind>::Request, Errno>;

    /// What a failed I/O says of the device.
    fn fate(&self, status: Status) -> Fate;
}

impl<R: Rules> RingQueue<R> {
    pub(super) fn new(
        ring: SlotRing<R::Kind>,
        spec: QueueSpec,
        rules: R,
        at_close: (Sysfs, Notes),
    ) -> Self {
        // A refusal per slot is the most there can be: neither list ever grows.
        let places = spec.slots_count as usize;
        Self {
            ring,
            batch: spec.batch,
            rules,
            refused: Vec::with_capacity(places),
            refused_before: Vec::with_capacity(places),
            doubted: Vec::with_capacity(places),
            doubt: None,
            is_trusted: false,
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

impl<R: Rules> RingQueue<R> {
    /// Asks what the failures that were kept back mean, and tells of them once that is known, or was not for too
    /// long. Says how many were told.
    #[cold]
    fn settle<S: Sink>(&mut self, sink: &mut S, gone: &mut Option<Gone>) -> usize {
        let Some(&(_, status)) = self.doubted.first() else {
            return 0;
        };
        let now = Instant::now();
        let (since, looked) = self.doubt.unwrap_or((now, now));
        if gone.is_none() && (self.doubt.is_none() || now - looked >= DOUBT_LOOK) {
            self.doubt = Some((since, now));
            if let Fate::Gone(known) = self.rules.fate(status) {
                *gone = Some(known);
            }
        }
        self.is_trusted = gone.is_none() && now - since >= DOUBT_LIMIT;
        if gone.is_none() && !self.is_trusted {
            return 0;
        }
        self.doubt = None;
        let count = self.doubted.len();
        while let Some((slot, status)) = self.doubted.pop() {
            let next = sink.complete(slot, status, self.ring.buffer(slot));
            if let (Some(io), None) = (next, *gone) {
                let again = self.submit(slot, io);
                debug_assert_eq!(again, Ok(()), "the slot has just become free");
            }
        }
        count
    }
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

impl<R: Rules> Queue for RingQueue<R> {
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
        let wait = match wait {
            Wait::AtMostNs(ns) if !self.doubted.is_empty() => {
                Wait::AtMostNs(ns.min(DOUBT_LOOK.as_nanos() as u64))
            }
            wait => wait,
        };
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
            refused,
            doubted,
            is_trusted,
            ..
        } = self;
        let doubted_before = doubted.len();
        let mut gone = None;
        let drained = ring.drain(batch.complete_max, |slot, status, buffer| {
            if !status.is_ok() && gone.is_none() {
                match rules.fate(status) {
                    Fate::Gone(known) => gone = Some(known),
                    Fate::MayBeGone if !*is_trusted => {
                        doubted.push((slot, status));
                        return None;
                    }
                    Fate::Here | Fate::MayBeGone => {}
                }
            }
            let request = rules.request(sink.complete(slot, status, buffer)?);
            request
                .inspect_err(|&errno| refused.push((slot, errno)))
                .ok()
        });
        found += drained;
        if !self.doubted.is_empty() {
            found -= self.doubted.len() - doubted_before;
            found += self.settle(sink, &mut gone);
        }
        match gone {
            Some(gone) => Err(gone),
            None => Ok(found),
        }
    }

    fn kept_back_count(&self) -> u32 {
        self.doubted.len() as u32
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
            abandoned_count: self.kept_back_count() + self.ring.close(limit),
        }
    }
}

/// Lines for the record, each once, shared with the queues.
#[derive(Debug, Clone, Default)]
pub(super) struct Notes(Arc<Mutex<Vec<String>>>);

impl Notes {
    pub(super) fn add(&self, line: String) {
        // A panic while adding a line leaves a list of lines all the same.
        let mut notes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !notes.contains(&line) {
            notes.push(line);
        }
    }

    pub(super) fn lines(&self) -> Vec<String> {
        let notes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        notes.clone()
    }
}

/// What registration brought, for the record.
pub(super) fn registered_lines(registered: &Registered) -> [String; 4] {
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
pub(super) fn ring_error(path: &str, error: RingError) -> BackendError {
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

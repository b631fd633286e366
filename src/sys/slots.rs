//! A ring and the buffers of its slots, as one safe thing: one file, a fixed table of slots, at most one
//! I/O in flight in each.
//!
//! Why it is safe: the kernel is only ever given buffers of slots that are marked in flight, a slot's
//! buffer is only handed out while it is not, and where I/Os are abandoned the memory is leaked.

use super::buffers::{Arena, PageKind};
use super::ring::{Entries, Ring, RingError, TaskRun};
use super::slot_kind::Frame;
pub use super::slot_kind::{Files, Request, SlotKind};
use super::uapi as k;
use crate::errno::Errno;
use crate::request::{Slot, Status};
use crate::sysfs::Sysfs;
use std::fs::File;
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// In the table: nothing in flight.
const FREE: u32 = u32::MAX;

/// What a ring is made of.
#[derive(Debug, Clone, Copy)]
pub struct SlotRingSpec {
    /// Number of slots.
    pub slots_count: u32,
    /// Buffer of each.
    pub slot_bytes: u32,
    /// Hands discards to a worker at once. The kernel tries a discard without waiting first, which drivers
    /// without a request queue (zram, dm, md) refuse for good with EOPNOTSUPP.
    pub discard_by_worker: bool,
    /// Polls for completions (IOPOLL); the file must be opened `O_DIRECT` on a queue that polls.
    pub polled: bool,
}

/// What registration brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Registered {
    /// Buffers, or why not.
    pub buffers: Result<(), Errno>,
    /// The file, or why not.
    pub file: Result<(), Errno>,
    /// The ring itself.
    pub ring: bool,
    /// How completions are delivered.
    pub task_run: TaskRun,
    /// What the buffers sit on.
    pub pages: PageKind,
}

/// See the head of this file.
#[derive(Debug)]
pub struct SlotRing<K: SlotKind = Files> {
    main: Ring<K::Entries>,
    /// Takes what a polled ring cannot: flush, discard, admin commands.
    side: Option<Ring<K::Entries>>,
    side_in_flight: u32,
    /// Dropped by hand: not while the kernel may still use it.
    arena: ManuallyDrop<Arena>,
    /// Bytes that the I/O in flight in each slot must move, or `FREE`.
    expected: Box<[u32]>,
    in_flight: u32,
    /// Slots per registered buffer, as a shift.
    buffer_shift: u32,
    kind: K,
    fds: [i32; 2],
    sqe_flags: u8,
    registered: Registered,
    /// Keep the descriptors alive.
    _files: Vec<Arc<File>>,
}

impl SlotRing {
    /// Makes the ring, its buffers, and registers what the kernel lets us register.
    ///
    /// # Errors
    /// [`RingError`].
    pub fn new(sysfs: &Sysfs, file: Arc<File>, spec: SlotRingSpec) -> Result<Self, RingError> {
        let kind = Files {
            discard_flags: if spec.discard_by_worker {
                k::IOSQE_ASYNC
            } else {
                0
            },
        };
        Self::of_kind(sysfs, vec![file], spec, kind)
    }
}

impl<K: SlotKind> SlotRing<K> {
    /// The same for any kind, with one or two files.
    pub(super) fn of_kind(
        sysfs: &Sysfs,
        files: Vec<Arc<File>>,
        spec: SlotRingSpec,
        kind: K,
    ) -> Result<Self, RingError> {
        let main = Ring::<K::Entries>::new(spec.slots_count, spec.polled)?;
        let side = if spec.polled {
            Some(Ring::<K::Entries>::new(spec.slots_count, false)?)
        } else {
            None
        };
        let arena = Arena::new(sysfs, spec.slots_count, spec.slot_bytes).map_err(|errno| {
            RingError::Kernel {
                what: "mapping the buffers",
                errno,
            }
        })?;
        let (buffer_shift, buffers) = register_arena(&main, &arena);
        let handles: Vec<BorrowedFd<'_>> = files.iter().map(|file| file.as_fd()).collect();
        let register_side = |()| {
            side.as_ref()
                .map_or(Ok(()), |side| side.register_files(&handles))
        };
        let file_registered = main.register_files(&handles).and_then(register_side);
        let number = |index: usize| match (file_registered, files.get(index)) {
            (Ok(()), Some(_)) => index as i32,
            (Err(_), Some(file)) => file.as_raw_fd(),
            (_, None) => -1,
        };
        Ok(Self {
            registered: Registered {
                buffers,
                file: file_registered,
                ring: main.ring_registered(),
                task_run: main.task_run(),
                pages: arena.pages(),
            },
            main,
            side,
            side_in_flight: 0,
            arena: ManuallyDrop::new(arena),
            expected: vec![FREE; spec.slots_count as usize].into_boxed_slice(),
            in_flight: 0,
            buffer_shift,
            kind,
            fds: [number(0), number(1)],
            sqe_flags: if file_registered.is_ok() {
                k::IOSQE_FIXED_FILE
            } else {
                0
            },
            _files: files,
        })
    }

    /// What registration brought.
    #[must_use]
    pub const fn registered(&self) -> Registered {
        self.registered
    }

    /// Built or in the kernel, not completed.
    #[must_use]
    #[inline]
    pub const fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Built, not yet in the kernel.
    #[must_use]
    #[inline]
    pub fn pending(&self) -> u32 {
        self.main.pending() + self.side.as_ref().map_or(0, Ring::pending)
    }

    /// Completions that can be drained now.
    #[must_use]
    #[inline]
    pub fn ready(&self) -> u32 {
        self.main.ready() + self.side.as_ref().map_or(0, Ring::ready)
    }

    /// Whether only an enter brings further completions to light.
    #[must_use]
    #[inline]
    pub fn wants_enter(&self) -> bool {
        self.in_flight > 0
            && (self.main.wants_enter() || self.side.as_ref().is_some_and(Ring::wants_enter))
    }

    /// Whether there is such a slot, with nothing in flight.
    #[must_use]
    pub fn is_free(&self, slot: Slot) -> bool {
        self.expected.get(slot.index()) == Some(&FREE)
    }

    /// The buffer of a slot with nothing in flight.
    ///
    /// # Panics
    /// Where an I/O is in flight in the slot, or there is no such slot.
    #[inline]
    pub fn buffer(&mut self, slot: Slot) -> &mut [u8] {
        assert!(
            self.expected[slot.index()] == FREE,
            "slot {} is in flight: its buffer is the kernel's",
            slot.0
        );
        self.arena.slot(slot.index())
    }

    /// Builds a request. `false`, with nothing changed, where the slot does not exist or is in flight,
    /// or where the length is more than its buffer.
    #[inline]
    pub fn push(&mut self, slot: Slot, request: K::Request) -> bool {
        if !self.is_free(slot) {
            return false;
        }
        // A buffer that is not registered with the side ring cannot be named there by its number.
        let aside = self.side.is_some() && self.kind.is_aside(request);
        if self.kind.buffer_bytes(request) > self.arena.slot_bytes() as u64 {
            return false;
        }
        self.kind.prepare(request, self.arena.slot(slot.index()));
        let frame = Frame {
            slot,
            address: self.arena.address(slot.index()),
            // Below 2^14 buffers, see `register_arena`.
            buf_index: (slot.0 >> self.buffer_shift) as u16,
            fixed_buffers: self.registered.buffers.is_ok() && !aside,
            fds: self.fds,
            flags: self.sqe_flags,
        };
        let sqe = self.kind.entry(&frame, request);
        let ring = match &mut self.side {
            Some(side) if aside => {
                self.side_in_flight += 1;
                side
            }
            _ => &mut self.main,
        };
        // SAFETY: the only memory named is this slot's buffer, inside the arena, for a length that was
        // checked. The slot is marked in flight below, so `buffer` keeps everybody else out until the
        // completion; `Drop` and `close` leak the arena where I/Os have not completed.
        let pushed = unsafe { ring.push(sqe) };
        // One entry per slot at most, and as many entries as slots.
        assert!(pushed, "a ring as large as its slots is never full");
        self.expected[slot.index()] = self.kind.expected(request);
        self.in_flight += 1;
        true
    }

    /// One enter: hands over up to `submit` built requests, and sleeps up to `timeout_ns` until
    /// `complete_min` completions are there. A polled ring never sleeps: its kernel loop knows no
    /// timeout (io_uring/io_uring.c, `io_iopoll_check`).
    ///
    /// # Errors
    /// The kernel's, see [`Ring::enter`].
    #[inline]
    pub fn enter(
        &mut self,
        submit: u32,
        complete_min: u32,
        timeout_ns: Option<u64>,
    ) -> Result<u32, Errno> {
        if let Some(side) = &mut self.side {
            if self.side_in_flight > 0 {
                side.enter(u32::MAX, 0, None)?;
            }
            return self.main.enter(submit, 0, None);
        }
        self.main.enter(submit, complete_min, timeout_ns)
    }

    /// Hands up to `max` completions to `each` with the slot's buffer, and builds what it returns in the
    /// same slot. Says how many there were.
    #[inline]
    pub fn drain<F>(&mut self, max: u32, mut each: F) -> usize
    where
        F: FnMut(Slot, Status, &mut [u8]) -> Option<K::Request>,
    {
        let count = self.main.ready().min(max);
        for index in 0..count {
            let cqe = self.main.peek(index);
            self.finish(cqe, &mut each);
        }
        if count > 0 {
            self.main.advance(count);
        }
        if self.side_in_flight > 0 {
            return (count + self.drain_side(max - count, &mut each)) as usize;
        }
        count as usize
    }

    #[cold]
    fn drain_side<F>(&mut self, max: u32, each: &mut F) -> u32
    where
        F: FnMut(Slot, Status, &mut [u8]) -> Option<K::Request>,
    {
        let count = self.side.as_ref().map_or(0, Ring::ready).min(max);
        for index in 0..count {
            let Some(cqe) = self.side.as_ref().map(|side| side.peek(index)) else {
                break;
            };
            self.side_in_flight -= 1;
            self.finish(cqe, each);
        }
        if let Some(side) = &mut self.side {
            side.advance(count);
        }
        count
    }

    #[inline]
    fn finish<F>(&mut self, cqe: <K::Entries as Entries>::Cqe, each: &mut F)
    where
        F: FnMut(Slot, Status, &mut [u8]) -> Option<K::Request>,
    {
        let cqe = K::Entries::base(&cqe);
        // Below the number of slots: it is what `push` wrote.
        let slot = Slot(cqe.user_data as u32);
        let expected = std::mem::replace(&mut self.expected[slot.index()], FREE);
        assert!(expected != FREE, "slot {} completed twice", slot.0);
        self.in_flight -= 1;
        let status = self.kind.status(cqe.res, expected);
        if let Some(next) = each(slot, status, self.arena.slot(slot.index())) {
            let pushed = self.push(slot, next);
            assert!(pushed, "an I/O larger than its slot was asked for");
        }
    }

    /// Waits for what is in flight, up to `limit`, and gives everything back. What has not completed by
    /// then is abandoned: its ring and buffers are leaked, since the device may still write to them.
    /// Says how many were abandoned.
    #[must_use]
    pub fn close(mut self, limit: Duration) -> u32 {
        let deadline = Instant::now() + limit;
        while self.in_flight > 0 {
            let left = deadline.saturating_duration_since(Instant::now());
            let left_ns = u64::try_from(left.as_nanos()).unwrap_or(u64::MAX);
            let entered = self.enter(u32::MAX, 1, Some(left_ns));
            self.drain(u32::MAX, |_, _, _| None);
            let dead = !matches!(
                entered,
                Ok(_)
                    | Err(Errno(
                        libc::ETIME | libc::EINTR | libc::EAGAIN | libc::EBUSY
                    ))
            );
            if left.is_zero() || dead {
                break;
            }
        }
        self.in_flight
        // Drop does the rest.
    }
}

impl<K: SlotKind> Drop for SlotRing<K> {
    fn drop(&mut self) {
        if self.in_flight == 0 {
            self.main.unregister_files();
            if let Some(side) = &self.side {
                side.unregister_files();
            }
            // SAFETY: dropped here and nowhere else, and nothing of `self` is used afterwards. The kernel
            // has completed every I/O that named this memory.
            unsafe { ManuallyDrop::drop(&mut self.arena) };
        }
    }
}

/// Registers the arena in pieces of at most 1 GiB, each of a power of two of slots. Says the shift from
/// slot to piece.
fn register_arena<E: Entries>(ring: &Ring<E>, arena: &Arena) -> (u32, Result<(), Errno>) {
    let (start, bytes) = arena.whole();
    let stride = arena.stride_bytes();
    let per_piece = k::MAX_REGISTERED_BUFFER_BYTES / stride;
    if per_piece == 0 {
        return (0, Err(Errno(libc::EFAULT)));
    }
    let shift = per_piece.ilog2();
    let piece = stride << shift;
    let used = stride * arena.slots_count();
    let ranges: Vec<(u64, usize)> = (0..used)
        .step_by(piece)
        .map(|at| (start + at as u64, piece.min(bytes - at)))
        .collect();
    // SAFETY: parts of the arena, which lives as long as the ring, or for ever where I/Os are abandoned.
    (shift, unsafe { ring.register_buffers(&ranges) })
}

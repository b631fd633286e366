//! A ring and the buffers of its slots, as one safe thing: one file, a fixed table of slots, at most one
//! I/O in flight in each.
//!
//! Why it is safe: the kernel is only ever given buffers of slots that are marked in flight, a slot's
//! buffer is only handed out while it is not, and where I/Os are abandoned the memory is leaked.

use super::buffers::{Arena, PageKind};
use super::ring::{Plain, Ring, RingError, TaskRun};
use super::uapi as k;
use crate::errno::Errno;
use crate::request::{Slot, Status};
use crate::sysfs::Sysfs;
use std::fs::File;
use std::mem::ManuallyDrop;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// In the table: nothing in flight.
const FREE: u32 = u32::MAX;

/// What to do with a slot, in bytes of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    /// Reads into the slot's buffer.
    Read {
        /// Where.
        offset_bytes: u64,
        /// How much, at most the slot.
        length_bytes: u32,
    },
    /// Writes from the slot's buffer.
    Write {
        /// Where.
        offset_bytes: u64,
        /// How much, at most the slot.
        length_bytes: u32,
    },
    /// Discards blocks of a block device (Linux 6.12).
    Discard {
        /// Where.
        offset_bytes: u64,
        /// How much.
        length_bytes: u64,
    },
    /// Makes data durable, `fdatasync(2)`.
    Datasync,
}

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
pub struct SlotRing {
    main: Ring<Plain>,
    /// Takes what a polled ring cannot: flush and discard.
    side: Option<Ring<Plain>>,
    side_in_flight: u32,
    /// Dropped by hand: not while the kernel may still use it.
    arena: ManuallyDrop<Arena>,
    /// Bytes that the I/O in flight in each slot must move, or `FREE`.
    expected: Box<[u32]>,
    in_flight: u32,
    /// Slots per registered buffer, as a shift.
    buffer_shift: u32,
    read_op: u8,
    write_op: u8,
    fd: i32,
    sqe_flags: u8,
    discard_flags: u8,
    registered: Registered,
    /// Keeps the descriptor alive.
    _file: Arc<File>,
}

impl SlotRing {
    /// Makes the ring, its buffers, and registers what the kernel lets us register.
    ///
    /// # Errors
    /// [`RingError`].
    pub fn new(sysfs: &Sysfs, file: Arc<File>, spec: SlotRingSpec) -> Result<Self, RingError> {
        let main = Ring::<Plain>::new(spec.slots_count, spec.polled)?;
        let side = if spec.polled {
            Some(Ring::<Plain>::new(spec.slots_count, false)?)
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
        let register_side = |()| {
            side.as_ref()
                .map_or(Ok(()), |side| side.register_file(&file))
        };
        let file_registered = main.register_file(&file).and_then(register_side);
        let pages = arena.pages();
        Ok(Self {
            registered: Registered {
                buffers,
                file: file_registered,
                ring: main.ring_registered(),
                task_run: main.task_run(),
                pages,
            },
            main,
            side,
            side_in_flight: 0,
            arena: ManuallyDrop::new(arena),
            expected: vec![FREE; spec.slots_count as usize].into_boxed_slice(),
            in_flight: 0,
            buffer_shift,
            read_op: if buffers.is_ok() {
                k::IORING_OP_READ_FIXED
            } else {
                k::IORING_OP_READ
            },
            write_op: if buffers.is_ok() {
                k::IORING_OP_WRITE_FIXED
            } else {
                k::IORING_OP_WRITE
            },
            fd: if file_registered.is_ok() {
                0
            } else {
                file.as_raw_fd()
            },
            discard_flags: if spec.discard_by_worker {
                k::IOSQE_ASYNC
            } else {
                0
            },
            sqe_flags: if file_registered.is_ok() {
                k::IOSQE_FIXED_FILE
            } else {
                0
            },
            _file: file,
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
    pub fn push(&mut self, slot: Slot, request: Request) -> bool {
        if !self.is_free(slot) {
            return false;
        }
        let length_bytes = match request {
            Request::Read { length_bytes, .. } | Request::Write { length_bytes, .. } => {
                length_bytes
            }
            Request::Discard { .. } | Request::Datasync => 0,
        };
        if length_bytes as usize > self.arena.slot_bytes() {
            return false;
        }
        let sqe = self.sqe(slot, request);
        let to_side = matches!(request, Request::Discard { .. } | Request::Datasync);
        let ring = match &mut self.side {
            Some(side) if to_side => {
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
        self.expected[slot.index()] = length_bytes;
        self.in_flight += 1;
        true
    }

    #[inline]
    fn sqe(&self, slot: Slot, request: Request) -> k::Sqe {
        let base = k::Sqe {
            flags: self.sqe_flags,
            fd: self.fd,
            user_data: u64::from(slot.0),
            ..k::Sqe::default()
        };
        let transfer = |opcode, off, len| k::Sqe {
            opcode,
            off,
            len,
            addr: self.arena.address(slot.index()),
            // Below 2^14 buffers, see `register_arena`.
            buf_index: (slot.0 >> self.buffer_shift) as u16,
            ..base
        };
        match request {
            Request::Read {
                offset_bytes,
                length_bytes,
            } => transfer(self.read_op, offset_bytes, length_bytes),
            Request::Write {
                offset_bytes,
                length_bytes,
            } => transfer(self.write_op, offset_bytes, length_bytes),
            Request::Discard {
                offset_bytes,
                length_bytes,
            } => k::Sqe {
                opcode: k::IORING_OP_URING_CMD,
                off: u64::from(k::BLOCK_URING_CMD_DISCARD),
                addr: offset_bytes,
                addr3: length_bytes,
                flags: base.flags | self.discard_flags,
                ..base
            },
            Request::Datasync => k::Sqe {
                opcode: k::IORING_OP_FSYNC,
                op_flags: k::IORING_FSYNC_DATASYNC,
                ..base
            },
        }
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
        F: FnMut(Slot, Status, &mut [u8]) -> Option<Request>,
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
        F: FnMut(Slot, Status, &mut [u8]) -> Option<Request>,
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
    fn finish<F>(&mut self, cqe: k::Cqe, each: &mut F)
    where
        F: FnMut(Slot, Status, &mut [u8]) -> Option<Request>,
    {
        // Below the number of slots: it is what `push` wrote.
        let slot = Slot(cqe.user_data as u32);
        let expected = std::mem::replace(&mut self.expected[slot.index()], FREE);
        assert!(expected != FREE, "slot {} completed twice", slot.0);
        self.in_flight -= 1;
        let status = status(cqe.res, expected);
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

impl Drop for SlotRing {
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

#[inline]
fn status(res: i32, expected: u32) -> Status {
    if res >= 0 {
        let got_bytes = res as u32;
        if got_bytes == expected {
            Status::Ok
        } else {
            Status::Short { got_bytes }
        }
    } else {
        Status::Errno(Errno(-res))
    }
}

/// Registers the arena in pieces of at most 1 GiB, each of a power of two of slots. Says the shift from
/// slot to piece.
fn register_arena(ring: &Ring<Plain>, arena: &Arena) -> (u32, Result<(), Errno>) {
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

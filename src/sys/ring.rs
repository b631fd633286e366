//! One io_uring instance: setup with fallbacks, mapped rings, registration, enter, reaping.
//!
//! Building a submission is for this folder only, since an entry may name any memory; the safe face is
//! [`super::slots::SlotRing`]. The memory ordering is that of io_uring(7): the tail of the submission
//! ring is published with Release, the tail of the completion ring read with Acquire, its head
//! given back with Release.

use super::last_errno;
use super::mapping::Mapping;
pub use super::ring_kinds::{Entries, Plain, RingError, TaskRun, Wide};
use super::uapi as k;
use crate::errno::Errno;
use std::ffi::c_void;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// One io_uring instance. Belongs to the thread that made it.
#[derive(Debug)]
pub struct Ring<E: Entries> {
    fd: OwnedFd,
    /// What `io_uring_enter` is given: the registered ring's index, or the descriptor.
    enter_fd: i32,
    enter_flags: u32,
    task_run: TaskRun,
    polled: bool,
    sq_entries: u32,
    sq_mask: u32,
    sq_tail_local: u32,
    pending: u32,
    sqes: NonNull<E::Sqe>,
    sq_tail: NonNull<AtomicU32>,
    sq_flags: NonNull<AtomicU32>,
    cq_mask: u32,
    cq_head_local: u32,
    cqes: NonNull<E::Cqe>,
    cq_head: NonNull<AtomicU32>,
    cq_tail: NonNull<AtomicU32>,
    cq_overflow: NonNull<AtomicU32>,
    _rings: Mapping,
    _sqe_memory: Mapping,
}

impl<E: Entries> Ring<E> {
    /// Makes a ring of at least `entries` submissions and twice as many completions, with the best
    /// flags that this kernel has.
    ///
    /// # Errors
    /// [`RingError`].
    pub fn new(entries: u32, polled: bool) -> Result<Self, RingError> {
        let asked = entries;
        let entries = entries.max(1).checked_next_power_of_two();
        let Some(entries) = entries.filter(|&entries| entries <= k::IORING_MAX_ENTRIES) else {
            return Err(RingError::TooDeep { asked });
        };
        let mut refused = Errno(libc::EINVAL);
        for task_run in TaskRun::ALL {
            let mut params = k::Params {
                flags: E::SETUP_FLAGS
                    | k::IORING_SETUP_CQSIZE
                    | task_run.setup_flags()
                    | if polled { k::IORING_SETUP_IOPOLL } else { 0 },
                cq_entries: entries * 2,
                ..k::Params::default()
            };
            match k::setup(entries, &mut params) {
                Ok(fd) => {
                    // SAFETY: the kernel has just given us this descriptor; nobody else knows it.
                    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
                    return Self::mapped(fd, &params, task_run, polled);
                }
                // The kernel does not know these flags.
                Err(Errno(libc::EINVAL)) => {}
                Err(errno) => {
                    refused = errno;
                    break;
                }
            }
        }
        Err(RingError::kernel("io_uring_setup", refused))
    }

    fn mapped(
        fd: OwnedFd,
        params: &k::Params,
        task_run: TaskRun,
        polled: bool,
    ) -> Result<Self, RingError> {
        let needed = k::IORING_FEAT_SINGLE_MMAP | k::IORING_FEAT_NODROP | k::IORING_FEAT_EXT_ARG;
        if params.features & needed != needed {
            return Err(RingError::TooOld);
        }
        let (sq, cq) = (&params.sq_off, &params.cq_off);
        let sq_end = sq.array as usize + params.sq_entries as usize * size_of::<u32>();
        let cq_end = cq.cqes as usize + params.cq_entries as usize * size_of::<E::Cqe>();
        let rings = Mapping::of_ring(&fd, sq_end.max(cq_end), k::IORING_OFF_SQ_RING)?;
        let sqe_bytes = params.sq_entries as usize * size_of::<E::Sqe>();
        let sqe_memory = Mapping::of_ring(&fd, sqe_bytes, k::IORING_OFF_SQES)?;
        // SAFETY: the kernel gave these offsets for this mapping, whose length covers both rings; each
        // names an aligned u32, or an array of them or of completions (io_uring_setup(2)).
        let ring = unsafe {
            // Position n of the ring is entry n, for ever.
            let array = rings.at::<AtomicU32>(sq.array);
            for index in 0..params.sq_entries {
                array
                    .add(index as usize)
                    .as_ref()
                    .store(index, Ordering::Relaxed);
            }
            Self {
                enter_fd: fd.as_raw_fd(),
                enter_flags: 0,
                task_run,
                polled,
                sq_entries: params.sq_entries,
                sq_mask: params.sq_entries - 1,
                sq_tail_local: rings
                    .at::<AtomicU32>(sq.tail)
                    .as_ref()
                    .load(Ordering::Relaxed),
                pending: 0,
                sqes: sqe_memory.base.cast(),
                sq_tail: rings.at(sq.tail),
                sq_flags: rings.at(sq.flags),
                cq_mask: params.cq_entries - 1,
                cq_head_local: rings
                    .at::<AtomicU32>(cq.head)
                    .as_ref()
                    .load(Ordering::Relaxed),
                cqes: rings.at(cq.cqes),
                cq_head: rings.at(cq.head),
                cq_tail: rings.at(cq.tail),
                cq_overflow: rings.at(cq.overflow),
                _rings: rings,
                _sqe_memory: sqe_memory,
                fd,
            }
        };
        Ok(ring.with_registered_ring())
    }

    /// Registers the ring itself with the thread, which saves a reference count in each enter (5.18).
    fn with_registered_ring(mut self) -> Self {
        let mut update = k::RsrcUpdate {
            offset: u32::MAX,
            data: self.fd.as_raw_fd() as u64,
            ..k::RsrcUpdate::default()
        };
        // SAFETY: one live, writable `io_uring_rsrc_update`, as this opcode wants.
        let done = unsafe {
            k::register(
                self.fd.as_raw_fd(),
                k::IORING_REGISTER_RING_FDS,
                (&raw mut update).cast(),
                1,
            )
        };
        if done == Ok(1) {
            self.enter_fd = update.offset as i32;
            self.enter_flags = k::IORING_ENTER_REGISTERED_RING;
        }
        self
    }

    /// Whether the ring itself is registered.
    #[must_use]
    pub const fn ring_registered(&self) -> bool {
        self.enter_flags & k::IORING_ENTER_REGISTERED_RING != 0
    }

    /// How completions are delivered.
    #[must_use]
    pub const fn task_run(&self) -> TaskRun {
        self.task_run
    }

    /// Whether completions must be polled for.
    #[must_use]
    pub const fn polled(&self) -> bool {
        self.polled
    }

    /// Registers files, indexed in order.
    ///
    /// # Errors
    /// The kernel's.
    pub fn register_files(&self, fds: &[BorrowedFd<'_>]) -> Result<(), Errno> {
        let mut fds: Vec<i32> = fds.iter().map(AsRawFd::as_raw_fd).collect();
        // SAFETY: `fds` is live and as long as said; the kernel takes its own references to the files.
        unsafe {
            k::register(
                self.fd.as_raw_fd(),
                k::IORING_REGISTER_FILES,
                fds.as_mut_ptr().cast(),
                fds.len() as u32,
            )
        }
        .map(drop)
    }

    /// Gives registered files back. Closing the ring does so too, but some time later, on a worker of the
    /// kernel: until then the device would count as open.
    pub(super) fn unregister_files(&self) {
        // SAFETY: this opcode takes no argument. It fails where none are registered, which is as good.
        let _ = unsafe {
            k::register(
                self.fd.as_raw_fd(),
                k::IORING_UNREGISTER_FILES,
                std::ptr::null_mut(),
                0,
            )
        };
    }

    /// Registers ranges of memory as buffers, indexed in order.
    ///
    /// # Errors
    /// The kernel's: ENOMEM past RLIMIT_MEMLOCK.
    ///
    /// # Safety
    /// The ranges must be mapped memory that outlives every I/O which names them.
    pub(super) unsafe fn register_buffers(&self, ranges: &[(u64, usize)]) -> Result<(), Errno> {
        let mut vectors: Vec<libc::iovec> = ranges
            .iter()
            .map(|&(start, bytes)| libc::iovec {
                iov_base: start as *mut c_void,
                iov_len: bytes,
            })
            .collect();
        // SAFETY: `vectors` is live and as long as said; the ranges are the caller's promise.
        unsafe {
            k::register(
                self.fd.as_raw_fd(),
                k::IORING_REGISTER_BUFFERS,
                vectors.as_mut_ptr().cast(),
                vectors.len() as u32,
            )
        }
        .map(drop)
    }

    /// Entries built but not yet handed to the kernel.
    #[must_use]
    #[inline]
    pub const fn pending(&self) -> u32 {
        self.pending
    }

    /// Builds an entry; `false` where the ring is full.
    ///
    /// # Safety
    /// Memory that the entry names must stay valid, and be used by nobody else, until its completion.
    #[inline]
    pub(super) unsafe fn push(&mut self, sqe: E::Sqe) -> bool {
        if self.pending == self.sq_entries {
            return false;
        }
        // SAFETY: the index is masked, so inside the mapped array; the kernel does not read the entry
        // before the tail passes it, which happens in `enter`.
        unsafe {
            let index = self.sq_tail_local & self.sq_mask;
            self.sqes.add(index as usize).write(sqe);
        }
        self.sq_tail_local = self.sq_tail_local.wrapping_add(1);
        self.pending += 1;
        true
    }

    /// Hands up to `submit` built entries to the kernel, runs its deferred work and, with a timeout in
    /// nanoseconds, sleeps until `complete_min` completions are there. Says how many were taken.
    ///
    /// # Errors
    /// The kernel's: ETIME when the timeout passed, EINTR, EAGAIN and EBUSY when it is short of memory
    /// or completions must be reaped first. Nothing was taken then.
    #[inline]
    pub fn enter(
        &mut self,
        submit: u32,
        complete_min: u32,
        timeout_ns: Option<u64>,
    ) -> Result<u32, Errno> {
        // SAFETY: the pointer lies in the mapping, which lives as long as `self`.
        unsafe { self.sq_tail.as_ref() }.store(self.sq_tail_local, Ordering::Release);
        let time = timeout_ns.map(|ns| k::KernelTimespec {
            tv_sec: (ns / 1_000_000_000) as i64,
            tv_nsec: (ns % 1_000_000_000) as i64,
        });
        let arg = k::GetEventsArg {
            ts: time
                .as_ref()
                .map_or(0, |time| std::ptr::from_ref(time) as u64),
            ..k::GetEventsArg::default()
        };
        // SAFETY: `arg` and the timespec it points to are live for the call and laid out as the
        // kernel's. Memory named by the entries was promised to `push`.
        let taken = unsafe {
            libc::syscall(
                libc::SYS_io_uring_enter,
                libc::c_long::from(self.enter_fd),
                libc::c_long::from(submit.min(self.pending)),
                libc::c_long::from(complete_min),
                libc::c_long::from(
                    self.enter_flags | k::IORING_ENTER_GETEVENTS | k::IORING_ENTER_EXT_ARG,
                ),
                &raw const arg,
                size_of::<k::GetEventsArg>(),
            )
        };
        if taken < 0 {
            return Err(last_errno());
        }
        // At most what was asked to be taken.
        self.pending -= taken as u32;
        Ok(taken as u32)
    }

    /// Whether the kernel has work that only an enter will run: deferred completions, or completions
    /// that did not fit the ring.
    #[must_use]
    #[inline]
    pub fn wants_enter(&self) -> bool {
        // SAFETY: the pointer lies in the mapping, which lives as long as `self`.
        let flags = unsafe { self.sq_flags.as_ref() }.load(Ordering::Relaxed);
        self.polled || flags & (k::IORING_SQ_TASKRUN | k::IORING_SQ_CQ_OVERFLOW) != 0
    }

    /// Completions that can be read now.
    #[must_use]
    #[inline]
    pub fn ready(&self) -> u32 {
        // SAFETY: the pointer lies in the mapping, which lives as long as `self`.
        let tail = unsafe { self.cq_tail.as_ref() }.load(Ordering::Acquire);
        tail.wrapping_sub(self.cq_head_local)
    }

    /// The completion `index` places after the first unread one; only meaningful below [`Self::ready`].
    #[must_use]
    #[inline]
    pub fn peek(&self, index: u32) -> E::Cqe {
        let at = self.cq_head_local.wrapping_add(index) & self.cq_mask;
        // SAFETY: masked, so inside the mapped array. Below `ready` the kernel has published it and does
        // not touch it until the head passes; above, it is old but initialised memory of plain integers.
        unsafe { self.cqes.add(at as usize).read() }
    }

    /// Gives `count` read completions back to the kernel.
    #[inline]
    pub fn advance(&mut self, count: u32) {
        self.cq_head_local = self.cq_head_local.wrapping_add(count);
        // SAFETY: the pointer lies in the mapping, which lives as long as `self`.
        unsafe { self.cq_head.as_ref() }.store(self.cq_head_local, Ordering::Release);
    }

    /// Completions that the kernel had to keep aside because the ring was full. With a completion ring
    /// twice the submissions and at most one I/O per slot this stays 0.
    #[must_use]
    pub fn overflow_count(&self) -> u32 {
        // SAFETY: the pointer lies in the mapping, which lives as long as `self`.
        unsafe { self.cq_overflow.as_ref() }.load(Ordering::Relaxed)
    }
}

impl<E: Entries> Drop for Ring<E> {
    fn drop(&mut self) {
        if self.ring_registered() {
            // The registration holds a reference of its own: without this the ring would live on, and
            // take one of the thread's 16 places, until the thread ends.
            let mut update = k::RsrcUpdate {
                offset: self.enter_fd as u32,
                ..k::RsrcUpdate::default()
            };
            // SAFETY: one live `io_uring_rsrc_update`, as this opcode wants. Where it fails there is
            // nothing to be done: the kernel drops the registration with the thread.
            let _ = unsafe {
                k::register(
                    self.fd.as_raw_fd(),
                    k::IORING_UNREGISTER_RING_FDS,
                    (&raw mut update).cast(),
                    1,
                )
            };
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn nop(user_data: u64) -> k::Sqe {
        k::Sqe {
            opcode: k::IORING_OP_NOP,
            user_data,
            ..k::Sqe::default()
        }
    }

    #[test]
    fn entries_go_round_the_ring_in_both_sizes() {
        let mut ring = Ring::<Plain>::new(4, false).unwrap();
        for round in 0..10u64 {
            for index in 0..4 {
                // SAFETY: a no-op names no memory.
                assert!(unsafe { ring.push(nop(round * 4 + index)) });
            }
            // SAFETY: as above.
            assert!(!unsafe { ring.push(nop(0)) }, "full");
            assert_eq!(ring.enter(3, 3, Some(1_000_000_000)), Ok(3));
            assert_eq!((ring.pending(), ring.ready()), (1, 3));
            assert_eq!(ring.enter(9, 4, Some(1_000_000_000)), Ok(1));
            let got: Vec<u64> = (0..ring.ready())
                .map(|at| ring.peek(at).user_data)
                .collect();
            assert_eq!(got, (round * 4..round * 4 + 4).collect::<Vec<_>>());
            ring.advance(4);
            assert_eq!((ring.ready(), ring.overflow_count()), (0, 0));
        }
        let mut wide = Ring::<Wide>::new(1, false).unwrap();
        let sqe = k::Sqe128 {
            base: nop(77),
            more: [0; 64],
        };
        // SAFETY: a no-op names no memory.
        assert!(unsafe { wide.push(sqe) });
        assert_eq!(wide.enter(1, 1, Some(1_000_000_000)), Ok(1));
        assert_eq!((wide.ready(), wide.peek(0).base.user_data), (1, 77));
    }

    #[test]
    fn rings_give_their_registration_back() {
        for _ in 0..40 {
            let ring = Ring::<Plain>::new(1, false).unwrap();
            // Kernels before 5.18 register none; others must not run out of their 16.
            assert_eq!(
                ring.ring_registered(),
                ring.task_run() != TaskRun::Interrupting
            );
        }
    }

    #[test]
    fn a_waiting_enter_ends_by_its_timeout() {
        let mut ring = Ring::<Plain>::new(1, false).unwrap();
        let start = std::time::Instant::now();
        assert_eq!(ring.enter(0, 1, Some(20_000_000)), Err(Errno(libc::ETIME)));
        assert!(start.elapsed().as_millis() >= 20);
    }

    #[test]
    fn the_kernels_limit_is_named() {
        let too_deep = Ring::<Plain>::new(32_769, false).err();
        assert_eq!(too_deep, Some(RingError::TooDeep { asked: 32_769 }));
        assert_eq!(
            Ring::<Plain>::new(u32::MAX, false).err(),
            Some(RingError::TooDeep { asked: u32::MAX })
        );
    }
}

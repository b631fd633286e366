//! The memory that a ring shares with the kernel.

use super::last_errno;
use super::ring_kinds::RingError;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::NonNull;

/// A memory mapping, unmapped when dropped.
#[derive(Debug)]
pub(super) struct Mapping {
    pub(super) base: NonNull<u8>,
    bytes: usize,
}

impl Mapping {
    /// Maps the part of a ring's memory at `offset`.
    pub(super) fn of_ring(fd: &OwnedFd, bytes: usize, offset: i64) -> Result<Self, RingError> {
        // SAFETY: a new mapping of the ring's own memory, at an address of the kernel's choice.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_POPULATE,
                fd.as_raw_fd(),
                offset as libc::off_t,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(RingError::kernel("mapping the rings", last_errno()));
        }
        let base = NonNull::new(base.cast()).ok_or(RingError::TooOld)?;
        Ok(Self { base, bytes })
    }

    /// A place in it.
    ///
    /// # Safety
    /// `offset` must lie inside the mapping and be aligned for `T`.
    pub(super) unsafe fn at<T>(&self, offset: u32) -> NonNull<T> {
        // SAFETY: the caller's promise.
        unsafe { self.base.add(offset as usize) }.cast()
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by `of_ring`; the ring that points into it is being dropped.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}

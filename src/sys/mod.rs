//! One of the two places where `unsafe` is allowed: system calls, mapped memory, the time stamp counter.
//!
//! Everything public here is safe to call. Each unsafe block says who guarantees what.
#![allow(unsafe_code)]

pub mod bounded;
pub mod buffers;
pub mod clock;
pub mod cpu;
pub mod ioctl;
mod mapping;
pub mod nvme;
pub mod perf;
pub mod ring;
mod ring_kinds;
pub mod sg;
pub mod sg_lane;
mod slot_kind;
pub mod slots;
pub mod space;
pub mod standin;
pub mod stdout;
mod uapi;
pub mod whole;
pub mod workers;

use crate::errno::Errno;

/// A kernel clock in nanoseconds; 0 for a clock that does not exist.
#[inline]
fn clock_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a live, writable timespec of our own; the kernel writes nothing else.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    // Clocks used here never go below zero, and nanoseconds are under 10^9.
    (time.tv_sec as u64)
        .wrapping_mul(1_000_000_000)
        .wrapping_add(time.tv_nsec as u64)
}

/// The errno of the system call that has just failed on this thread.
fn last_errno() -> Errno {
    Errno::of(&std::io::Error::last_os_error())
}

//! Instructions that a thread executes, counted by the CPU (perf_event_open(2)).

use super::last_errno;
use crate::errno::Errno;
use std::fs::File;
use std::io::Read;
use std::os::fd::FromRawFd;

/// include/uapi/linux/perf_event.h: `PERF_TYPE_HARDWARE`, `PERF_COUNT_HW_INSTRUCTIONS`.
const TYPE_HARDWARE: u32 = 0;
const COUNT_HW_INSTRUCTIONS: u64 = 1;
/// `PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING`
const FORMAT_TIMES: u64 = 3;
/// Bits `inherit`, `exclude_kernel` and `exclude_hv` of the attribute's flags.
const FLAGS: u64 = 1 << 1 | 1 << 5 | 1 << 6;
/// `PERF_FLAG_FD_CLOEXEC`
const FD_CLOEXEC: libc::c_ulong = 8;

/// `struct perf_event_attr` as of its first version (`PERF_ATTR_SIZE_VER0`), which every kernel takes.
#[repr(C)]
struct Attr {
    kind: u32,
    size_bytes: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    bp_type: u32,
    config1: u64,
}

const ATTR_BYTES: u32 = 64;
const _: () = assert!(size_of::<Attr>() == ATTR_BYTES as usize);

/// Counts the instructions that the thread which opened it, and threads it starts later, execute in user
/// mode.
#[derive(Debug)]
pub struct InstructionCounter(File);

impl InstructionCounter {
    /// Counts from now on.
    ///
    /// # Errors
    /// The kernel's: ENOENT or EOPNOTSUPP where the CPU (or a virtual machine) has no such counter, EACCES
    /// where `kernel.perf_event_paranoid` forbids it.
    pub fn open() -> Result<Self, Errno> {
        let attr = Attr {
            kind: TYPE_HARDWARE,
            size_bytes: ATTR_BYTES,
            config: COUNT_HW_INSTRUCTIONS,
            sample_period: 0,
            sample_type: 0,
            read_format: FORMAT_TIMES,
            flags: FLAGS,
            wakeup_events: 0,
            bp_type: 0,
            config1: 0,
        };
        // SAFETY: the kernel reads the attribute, which lives through the call and states its own size;
        // the other arguments are numbers: this thread, every CPU, no group.
        let fd = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                &raw const attr,
                0 as libc::pid_t,
                -1 as libc::c_int,
                -1 as libc::c_int,
                FD_CLOEXEC,
            )
        };
        if fd < 0 {
            return Err(last_errno());
        }
        // SAFETY: the kernel has just made this descriptor, and nobody else knows it.
        Ok(Self(unsafe { File::from_raw_fd(fd as libc::c_int) }))
    }

    /// Instructions so far; `None` where the CPU had too few counters to count all the time.
    #[must_use]
    pub fn read(&self) -> Option<u64> {
        let mut words = [0_u8; 24];
        (&self.0).read_exact(&mut words).ok()?;
        let word = |at: usize| {
            let bytes = words[at..at + 8].try_into().ok()?;
            Some(u64::from_ne_bytes(bytes))
        };
        let (count, enabled_ns, running_ns) = (word(0)?, word(8)?, word(16)?);
        (enabled_ns == running_ns).then_some(count)
    }
}

/// Why instructions cannot be counted, for a user.
#[must_use]
pub fn why_not(errno: Errno) -> String {
    match errno {
        Errno(libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV) => {
            "this CPU, or the virtual machine, has no instruction counter".to_owned()
        }
        Errno(libc::EACCES | libc::EPERM) => {
            "not allowed: lower the sysctl kernel.perf_event_paranoid to 2, or run as root"
                .to_owned()
        }
        Errno(libc::ENOSYS) => "this kernel is built without perf events".to_owned(),
        errno => errno.to_string(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn instructions_are_counted_or_the_reason_is_told() {
        match InstructionCounter::open() {
            Ok(counter) => {
                let before = counter.read().unwrap();
                let sum = (0..100_000_u64).fold(0, |sum, n| std::hint::black_box(sum ^ n));
                std::hint::black_box(sum);
                assert!(counter.read().unwrap() - before > 100_000);
            }
            Err(errno) => assert!(!why_not(errno).is_empty()),
        }
    }

    #[test]
    fn each_refusal_has_its_remedy() {
        assert!(why_not(Errno(libc::EACCES)).contains("perf_event_paranoid"));
        assert!(why_not(Errno(libc::ENOENT)).contains("virtual machine"));
    }
}

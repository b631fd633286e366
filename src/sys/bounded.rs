//! A write into a file of the kernel's that may never return.
//!
//! A word to sysfs (`unbind`, `drivers_probe`) is carried out inside the write, which cannot be interrupted: a
//! driver that waits for its device holds the writer as long as it likes, and a process with a thread in there
//! cannot end. So a child process writes, and is left behind where it does not come back in time.

use super::last_errno;
use crate::errno::Errno;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

const LOOK_EVERY: Duration = Duration::from_micros(500);
/// Descriptors that are closed one by one where the kernel (before 5.9) cannot close them together.
const DESCRIPTORS_COUNT: libc::c_int = 1024;

/// Writes `bytes` into a file that must be there, in one call, and waits for that no longer than `limit`.
///
/// # Errors
/// The errno of the open or the write; EIO where it took only a part; ETIMEDOUT where it has not returned: it may
/// still be carried out then, at any time.
pub fn write(path: &Path, bytes: &[u8], limit: Duration) -> Result<(), Errno> {
    let path = CString::new(path.as_os_str().as_bytes()).map_err(|_| Errno(libc::EINVAL))?;
    let deadline = Instant::now() + limit;
    let pid = forked(&path, bytes)?;
    loop {
        let mut status = 0;
        // SAFETY: `status` is live and writable.
        let reaped = unsafe { libc::waitpid(pid, &raw mut status, libc::WNOHANG) };
        if reaped == pid {
            return match (libc::WIFEXITED(status), libc::WEXITSTATUS(status)) {
                (true, 0) => Ok(()),
                (true, code) => Err(Errno(code)),
                // Killed, by us never before the deadline.
                (false, _) => Err(Errno(libc::EINTR)),
            };
        }
        if reaped < 0 && last_errno() != Errno(libc::EINTR) {
            return Err(last_errno());
        }
        if Instant::now() >= deadline {
            // SAFETY: integers only; the child has not been reaped, so its number is still its own.
            unsafe { libc::kill(pid, libc::SIGKILL) };
            std::thread::sleep(LOOK_EVERY);
            // SAFETY: `status` is live and writable. What could be ended is reaped.
            unsafe { libc::waitpid(pid, &raw mut status, libc::WNOHANG) };
            return Err(Errno(libc::ETIMEDOUT));
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Starts the child that writes; its number.
fn forked(path: &CString, bytes: &[u8]) -> Result<libc::pid_t, Errno> {
    // SAFETY: the sets are plain data, live and initialised by sigfillset and by the kernel; the mask is this
    // thread's own, and is put back below.
    let before = unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        // No handler of this process may run in the child.
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        before
    };
    // SAFETY: whatever threads there are, the child makes system calls only (`child`): it takes no lock and
    // allocates nothing.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        child(path, bytes)
    }
    let failed = last_errno();
    // SAFETY: as above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut()) };
    if pid < 0 { Err(failed) } else { Ok(pid) }
}

/// Ends with the errno as its code.
fn child(path: &CString, bytes: &[u8]) -> ! {
    // SAFETY: system calls on integers, on a path that ends in a zero byte and on `bytes.len()` readable bytes, all of
    // them alive in this copy of the process. Nothing here uses the descriptors that are closed: readers of our
    // output and waiters for our locks must not wait for a child that is stuck.
    unsafe {
        if libc::syscall(libc::SYS_close_range, 0, libc::c_uint::MAX, 0) != 0 {
            for fd in 0..DESCRIPTORS_COUNT {
                libc::close(fd);
            }
        }
        let fd = libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
        if fd < 0 {
            libc::_exit(*libc::__errno_location());
        }
        match libc::write(fd, bytes.as_ptr().cast(), bytes.len()) {
            written if written < 0 => libc::_exit(*libc::__errno_location()),
            written if written.unsigned_abs() < bytes.len() => libc::_exit(libc::EIO),
            _ => libc::_exit(0),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn a_write_that_returns_tells_how_it_went() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        assert_eq!(write(&path, b"1", LONG), Err(Errno(libc::ENOENT)));
        assert!(!path.exists(), "nothing is made");
        std::fs::write(&path, "").unwrap();
        assert_eq!(write(&path, b"0000:01:00.0", LONG), Ok(()));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "0000:01:00.0");
        assert_eq!(write(folder.path(), b"1", LONG), Err(Errno(libc::EISDIR)));
        let full = crate::sysfs::Sysfs::host().dev("full");
        assert_eq!(write(&full, b"1", LONG), Err(Errno(libc::ENOSPC)));
    }

    /// Nobody reads the FIFO: its open for writing waits for ever.
    #[test]
    fn a_write_that_does_not_return_is_given_up() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fifo");
        let name = CString::new(path.as_os_str().as_bytes()).unwrap();
        // SAFETY: the path ends in a zero byte and lives.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
        let began = Instant::now();
        let limit = Duration::from_millis(50);
        assert_eq!(write(&path, b"1", limit), Err(Errno(libc::ETIMEDOUT)));
        assert!(began.elapsed() >= limit && began.elapsed() < LONG);
    }
}

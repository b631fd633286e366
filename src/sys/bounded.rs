//! A write into a file of the kernel's, or a read of it, that may never return.
//!
//! A word to sysfs (`unbind`, `drivers_probe`) is carried out inside the write, which cannot be interrupted: a
//! driver that waits for its device holds the writer as long as it likes, and a process with a thread in there
//! cannot end. Some files (`driver_override`) cannot even be read meanwhile. So a child process does it, and is left
//! behind where it does not come back in time.

use super::last_errno;
use crate::errno::Errno;
use std::ffi::CString;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

const LOOK_EVERY: Duration = Duration::from_micros(500);
/// Descriptors that are closed one by one where the kernel (before 5.9) cannot close them together.
const DESCRIPTORS_COUNT: libc::c_int = 1024;
/// What a file of sysfs holds at most; a pipe takes it at once.
const PAGE_BYTES: usize = 4096;

/// Writes `bytes` into a file that must be there, in one call, and waits for that no longer than `limit`.
///
/// # Errors
/// The errno of the open or the write; EIO where it took only a part; ETIMEDOUT where it has not returned: it may
/// still be carried out then, at any time.
pub fn write(path: &Path, bytes: &[u8], limit: Duration) -> Result<(), Errno> {
    waited_for(forked(path, Task::Write(bytes))?, limit)
}

/// Reads a file in one call, up to a page, and waits for that no longer than `limit`.
///
/// # Errors
/// The errno of the open or the read; ETIMEDOUT where it has not returned.
pub fn read(path: &Path, limit: Duration) -> Result<Vec<u8>, Errno> {
    let (mut reader, writer) = std::io::pipe().map_err(|error| Errno::of(&error))?;
    let pid = forked(path, Task::Read(writer.as_raw_fd()))?;
    drop(writer);
    waited_for(pid, limit)?;
    // The child is gone, and whoever was forked meanwhile has closed what it got or closes it at its exec.
    let mut bytes = Vec::new();
    let read = reader.read_to_end(&mut bytes);
    read.map(|_| bytes).map_err(|error| Errno::of(&error))
}

/// What the child does.
#[derive(Clone, Copy)]
enum Task<'a> {
    Write(&'a [u8]),
    /// Into this descriptor.
    Read(libc::c_int),
}

/// Waits for the child, and how it went.
fn waited_for(pid: libc::pid_t, limit: Duration) -> Result<(), Errno> {
    let deadline = Instant::now() + limit;
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

/// Starts the child; its number.
fn forked(path: &Path, task: Task<'_>) -> Result<libc::pid_t, Errno> {
    let path = CString::new(path.as_os_str().as_bytes()).map_err(|_| Errno(libc::EINVAL))?;
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
        child(&path, task)
    }
    let failed = last_errno();
    // SAFETY: as above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut()) };
    if pid < 0 { Err(failed) } else { Ok(pid) }
}

/// Ends with the errno as its code.
fn child(path: &CString, task: Task<'_>) -> ! {
    let (flags, kept) = match task {
        Task::Write(_) => (libc::O_WRONLY, -1),
        Task::Read(into) => (libc::O_RDONLY, into),
    };
    close_all_but(kept);
    // SAFETY: system calls on integers, on a path that ends in a zero byte, on `bytes.len()` readable bytes and on
    // `page`, which is writable and of the length given, all of them alive in this copy of the process.
    unsafe {
        let fd = libc::open(path.as_ptr(), flags | libc::O_CLOEXEC);
        if fd < 0 {
            libc::_exit(*libc::__errno_location());
        }
        let mut page = [0_u8; PAGE_BYTES];
        let (done, wanted) = match task {
            Task::Write(bytes) => (
                libc::write(fd, bytes.as_ptr().cast(), bytes.len()),
                bytes.len(),
            ),
            Task::Read(into) => {
                let read = libc::read(fd, page.as_mut_ptr().cast(), page.len());
                if read < 0 {
                    libc::_exit(*libc::__errno_location());
                }
                let read = read.unsigned_abs();
                (libc::write(into, page.as_ptr().cast(), read), read)
            }
        };
        match done {
            done if done < 0 => libc::_exit(*libc::__errno_location()),
            done if done.unsigned_abs() < wanted => libc::_exit(libc::EIO),
            _ => libc::_exit(0),
        }
    }
}

/// Readers of our output and waiters for our locks must not wait for a child that is stuck. System calls only.
fn close_all_but(kept: libc::c_int) {
    // `kept` is -1 for none of them.
    let below = (0, kept - 1);
    let above = (kept + 1, libc::c_int::MAX);
    for (first, last) in [below, above] {
        // SAFETY: integers only. Nothing in the child uses the descriptors that are closed.
        if first <= last && unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) } != 0 {
            for fd in (0..DESCRIPTORS_COUNT).filter(|fd| *fd != kept) {
                // SAFETY: as above.
                unsafe { libc::close(fd) };
            }
            return;
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

    #[test]
    fn a_read_that_returns_gives_what_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        assert_eq!(read(&path, LONG), Err(Errno(libc::ENOENT)));
        for text in ["", "(null)\n", &"x".repeat(PAGE_BYTES)] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(read(&path, LONG), Ok(text.as_bytes().to_vec()));
        }
        assert_eq!(read(folder.path(), LONG), Err(Errno(libc::EISDIR)));
    }

    /// Nobody is at the other end of the FIFO: its open waits for ever.
    #[test]
    fn what_does_not_return_is_given_up() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fifo");
        let name = CString::new(path.as_os_str().as_bytes()).unwrap();
        // SAFETY: the path ends in a zero byte and lives.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
        let limit = Duration::from_millis(50);
        let began = Instant::now();
        assert_eq!(write(&path, b"1", limit), Err(Errno(libc::ETIMEDOUT)));
        assert!(began.elapsed() >= limit && began.elapsed() < LONG);
        let began = Instant::now();
        assert_eq!(read(&path, limit), Err(Errno(libc::ETIMEDOUT)));
        assert!(began.elapsed() >= limit && began.elapsed() < LONG);
    }
}

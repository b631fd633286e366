//! A stand-in for the process that measures, so that a device which never answers cannot hold the
//! command line.
//!
//! A process with io_uring requests in flight can be killed at once, with one exception: a request that
//! the kernel had to hand to a worker thread of the process (no free tag: more in flight than
//! `nr_requests`; a flush) sleeps there uninterruptibly. Exit waits for such workers
//! (io_uring/io-wq.c, `io_wq_put_and_exit`), so the process stays a zombie until the device answers,
//! perhaps for ever, and whoever waits for it waits too. Nothing in the process can prevent that.
//!
//! So the process forks first. The child does all the work and reports its exit code through a pipe once
//! the record is out; the parent, which never touches a device, exits with that code at once. A child
//! that is stuck is left behind, to be reaped when its device answers.
//!
//! The child is a process group of its own: signals of the terminal reach the parent alone, which passes
//! each one on exactly once (Ctrl-Z stops the parent only, the measurement goes on). Being in the
//! background, the child cannot read from the terminal: it gets EIO. When the parent is killed, the child
//! is sent SIGTERM.

use super::last_errno;
use crate::errno::Errno;
use std::io::{Read, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};

/// Passed on to the child.
const FORWARDED: [libc::c_int; 6] = [
    libc::SIGINT,
    libc::SIGTERM,
    libc::SIGHUP,
    libc::SIGQUIT,
    libc::SIGUSR1,
    libc::SIGUSR2,
];
/// A child that has reported is waited for this long, so that its usage is counted with ours (`time`).
const REAP: Duration = Duration::from_millis(200);
/// Exit code where the child died without a report, as the shell has it: 128 and the signal.
const SIGNAL_CODE: i32 = 128;
/// Exit code of a panic, as the Rust runtime has it.
const PANIC_CODE: i32 = 101;

/// The child, for the signal handler.
static CHILD: AtomicI32 = AtomicI32::new(0);

/// Runs `work` in a child process and gives its result as the exit code of this one. In the child it
/// never returns. Call it before any thread is started; where the process has threads already, or cannot
/// fork, `work` runs right here.
pub fn run(work: impl FnOnce() -> u8) -> u8 {
    let single = std::fs::read_dir(crate::sysfs::Sysfs::host().proc("self/task"))
        .is_ok_and(|threads| threads.count() == 1);
    if !single {
        return work();
    }
    let Ok((reader, writer)) = pipe() else {
        return work();
    };
    // SAFETY: there is one thread (counted above), so the child inherits no lock held by another.
    match unsafe { libc::fork() } {
        0 => {
            drop(reader);
            child(work, writer)
        }
        pid if pid > 0 => {
            drop(writer);
            parent(pid, reader)
        }
        _ => work(),
    }
}

fn pipe() -> Result<(OwnedFd, OwnedFd), Errno> {
    let mut ends = [0; 2];
    // SAFETY: room for two descriptors.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(last_errno());
    }
    // SAFETY: the kernel has just given us both, and nobody else knows them.
    Ok(unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) })
}

fn child(work: impl FnOnce() -> u8, writer: OwnedFd) -> ! {
    // SAFETY: integers only, and they concern this process alone; no handler is installed.
    unsafe {
        libc::setpgid(0, 0);
        // A process in the background that touches the terminal would be stopped, for ever.
        libc::signal(libc::SIGTTIN, libc::SIG_IGN);
        libc::signal(libc::SIGTTOU, libc::SIG_IGN);
        libc::prctl(
            libc::PR_SET_PDEATHSIG,
            libc::SIGTERM as libc::c_ulong,
            0,
            0,
            0,
        );
    }
    let code = std::panic::catch_unwind(AssertUnwindSafe(work)).map_or(PANIC_CODE, i32::from);
    // Nothing can be done about a reader that has gone; `work` has reported what it cared about.
    let _ = std::io::stdout().flush();
    // Readers of our output wait for its end: a child that is stuck must not hold it open.
    for fd in [libc::STDIN_FILENO, libc::STDOUT_FILENO, libc::STDERR_FILENO] {
        // SAFETY: nothing uses these any more: `work` has returned, and the process ends below.
        unsafe { libc::close(fd) };
    }
    let mut report = std::fs::File::from(writer);
    let _ = report.write_all(&code.to_ne_bytes());
    // SAFETY: ends the process, all threads with it, without running anything further.
    unsafe { libc::_exit(code) }
}

fn parent(pid: libc::pid_t, reader: OwnedFd) -> u8 {
    CHILD.store(pid, Ordering::Relaxed);
    for signal in FORWARDED {
        forward(signal);
    }
    let code = match reported(reader) {
        Some(code) => {
            reap(pid, REAP);
            code
        }
        // The child is gone without a word, or going: it has no more descriptors.
        None => reap(pid, Duration::MAX).unwrap_or(PANIC_CODE),
    };
    u8::try_from(code).unwrap_or(u8::MAX)
}

/// The child's word; `None` where its end of the pipe closed without one.
fn reported(reader: OwnedFd) -> Option<i32> {
    let mut code = [0; 4];
    let mut pipe = std::fs::File::from(reader);
    // `read_exact` goes on after EINTR.
    pipe.read_exact(&mut code).ok()?;
    Some(i32::from_ne_bytes(code))
}

/// Waits for the child up to `limit`. Its exit code, or 128 and the signal that ended it.
fn reap(pid: libc::pid_t, limit: Duration) -> Option<i32> {
    let start = Instant::now();
    loop {
        let mut status = 0;
        // SAFETY: `status` is live and writable.
        let reaped = unsafe { libc::waitpid(pid, &raw mut status, libc::WNOHANG) };
        if reaped == pid {
            CHILD.store(0, Ordering::Relaxed);
            return Some(if libc::WIFEXITED(status) {
                libc::WEXITSTATUS(status)
            } else {
                SIGNAL_CODE + libc::WTERMSIG(status)
            });
        }
        let interrupted = reaped < 0 && last_errno() == Errno(libc::EINTR);
        if (reaped < 0 && !interrupted) || start.elapsed() >= limit {
            return None;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn forward(signal: libc::c_int) {
    // SAFETY: sigaction is plain data for which all zeros is a value (no flags, empty mask); the handler
    // does nothing but an atomic load and kill(2), both safe in a handler.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = pass_on as extern "C" fn(libc::c_int) as usize;
        action.sa_flags = libc::SA_RESTART;
        libc::sigaction(signal, &raw const action, std::ptr::null_mut());
    }
}

extern "C" fn pass_on(signal: libc::c_int) {
    let pid = CHILD.load(Ordering::Relaxed);
    if pid > 0 {
        // SAFETY: kill(2) is async-signal-safe; the child has not been reaped, or we are about to exit.
        unsafe { libc::kill(pid, signal) };
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Tests run in threads, where forking is refused: the work runs in place.
    #[test]
    fn with_threads_the_work_runs_in_place() {
        let me = std::process::id();
        let mut ran_in = 0;
        let code = run(|| {
            ran_in = std::process::id();
            7
        });
        assert_eq!((code, ran_in), (7, me));
    }

    #[test]
    fn a_report_is_read_and_silence_is_told_apart() {
        let (reader, writer) = pipe().unwrap();
        let mut end = std::fs::File::from(writer);
        end.write_all(&5i32.to_ne_bytes()).unwrap();
        drop(end);
        assert_eq!(reported(reader), Some(5));
        let (reader, writer) = pipe().unwrap();
        drop(writer);
        assert_eq!(reported(reader), None);
    }
}

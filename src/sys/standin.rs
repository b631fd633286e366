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
/// Exit code of a process that a signal has told to end.
const INTERRUPTED_CODE: i32 = 130;
/// Exit code of a panic, as the Rust runtime has it.
const PANIC_CODE: i32 = 101;

/// The child, for the signal handler.
static CHILD: AtomicI32 = AtomicI32::new(0);
/// The child, also once it has ended.
static STARTED: AtomicI32 = AtomicI32::new(0);

/// The child ended without reporting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Died {
    /// A signal ended it: a crash, or SIGKILL (perhaps for want of memory).
    #[error("the process that measures was ended by signal {0}")]
    Signal(i32),
    /// It exited by itself, or cannot be found.
    #[error("the process that measures ended with code {0} and without a result")]
    Code(i32),
}

impl Died {
    /// The exit code, as the shell has it.
    #[must_use]
    pub const fn code(self) -> i32 {
        match self {
            Self::Signal(signal) => SIGNAL_CODE + signal,
            Self::Code(code) => code,
        }
    }

    /// Whether one of the signals that ask for an end came before there was anybody to answer it, or a second one
    /// before the first was answered.
    #[must_use]
    pub const fn is_interrupt(self) -> bool {
        matches!(
            self,
            Self::Signal(libc::SIGINT | libc::SIGTERM | libc::SIGHUP)
                | Self::Code(INTERRUPTED_CODE)
        )
    }
}

/// Runs `work` in a child process and gives its result as the exit code of this one. In the child it
/// never returns. Call it before any thread is started; where the process has threads already, or cannot
/// fork, `work` runs right here.
///
/// In the child the signals that ask for an end wait until [`release_signals`]: none is lost, and none ends
/// the process before there is somebody to answer it.
///
/// # Errors
/// [`Died`] where the child left no word.
pub fn run(work: impl FnOnce() -> u8) -> Result<u8, Died> {
    let single = std::fs::read_dir(crate::sysfs::Sysfs::host().proc("self/task"))
        .is_ok_and(|threads| threads.count() == 1);
    if !single {
        return Ok(work());
    }
    let Ok((reader, writer)) = pipe() else {
        return Ok(work());
    };
    mask_signals(libc::SIG_BLOCK);
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
        _ => {
            release_signals();
            Ok(work())
        }
    }
}

/// Has a write beyond the limit of file sizes (`ulimit -f`) fail with EFBIG, instead of ending the process.
pub fn outlive_file_limit() {
    // SAFETY: integers only; no handler is installed, and the disposition concerns this process and its children.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

/// Lets the signals that ask for an end wait, from before [`run`]: for what must be undone after it.
pub fn hold_signals() {
    mask_signals(libc::SIG_BLOCK);
}

/// Whether the child has ended, waiting for that up to `limit`. A child that has reported may still be on its way
/// out.
#[must_use]
pub fn ended(limit: Duration) -> bool {
    let pid = CHILD.load(Ordering::Relaxed);
    pid <= 0 || reap(pid, limit).is_some()
}

/// The process that [`run`] has done its work in, whether it has ended or not: this one where there is no child.
#[must_use]
pub fn worker() -> u32 {
    let pid = u32::try_from(STARTED.load(Ordering::Relaxed)).unwrap_or(0);
    if pid > 0 { pid } else { std::process::id() }
}

/// Ends a child that does not end by itself.
pub fn end() {
    let pid = CHILD.load(Ordering::Relaxed);
    if pid > 0 {
        // SAFETY: integers only; the child has not been reaped, or its number would not be kept.
        unsafe { libc::kill(pid, libc::SIGKILL) };
    }
}

/// Lets the signals that ask for an end come, those that wait included. For when handlers are in place.
pub fn release_signals() {
    mask_signals(libc::SIG_UNBLOCK);
}

fn mask_signals(how: libc::c_int) {
    // SAFETY: the set is plain data, live and initialised by sigemptyset; the mask is this thread's own.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
            libc::sigaddset(&raw mut set, signal);
        }
        libc::pthread_sigmask(how, &raw const set, std::ptr::null_mut());
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

fn parent(pid: libc::pid_t, reader: OwnedFd) -> Result<u8, Died> {
    CHILD.store(pid, Ordering::Relaxed);
    STARTED.store(pid, Ordering::Relaxed);
    for signal in FORWARDED {
        forward(signal);
    }
    release_signals();
    let code = match reported(reader) {
        Some(code) => {
            reap(pid, REAP);
            code
        }
        // The child is gone without a word, or going: it has no more descriptors.
        None => {
            let died = reap(pid, Duration::MAX).unwrap_or(Died::Code(PANIC_CODE));
            // A panic in `work` is caught and reported; only `_exit` elsewhere comes here with a code.
            return Err(died);
        }
    };
    Ok(u8::try_from(code).unwrap_or(u8::MAX))
}

/// The child's word; `None` where its end of the pipe closed without one.
fn reported(reader: OwnedFd) -> Option<i32> {
    let mut code = [0; 4];
    let mut pipe = std::fs::File::from(reader);
    // `read_exact` goes on after EINTR.
    pipe.read_exact(&mut code).ok()?;
    Some(i32::from_ne_bytes(code))
}

/// Waits for the child up to `limit`, and tells how it ended.
fn reap(pid: libc::pid_t, limit: Duration) -> Option<Died> {
    let start = Instant::now();
    loop {
        let mut status = 0;
        // SAFETY: `status` is live and writable.
        let reaped = unsafe { libc::waitpid(pid, &raw mut status, libc::WNOHANG) };
        if reaped == pid {
            CHILD.store(0, Ordering::Relaxed);
            return Some(if libc::WIFEXITED(status) {
                Died::Code(libc::WEXITSTATUS(status))
            } else {
                Died::Signal(libc::WTERMSIG(status))
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
        assert_eq!((code, ran_in, worker()), (Ok(7), me, me));
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

//! Calls into SPDK that may never come back, held to a time limit.
//!
//! SPDK talks to a controller synchronously while it attaches, deletes queues and detaches; a stopped target or a
//! dead device then blocks the call for ever. Such a call runs on a thread of its own. When it does not return in
//! time the thread and all it uses are left behind for good, and the process will leave without running DPDK's
//! destructors, which would block as well.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

static LEFT_BEHIND: AtomicBool = AtomicBool::new(false);

/// Runs `call` on a thread of its own. Absent: it did not return within `limit` (or no thread could be had) and
/// is left behind.
pub(super) fn run<T: Send + 'static>(
    limit: Duration,
    call: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let (sender, receiver) = mpsc::sync_channel(1);
    let spawned = std::thread::Builder::new()
        .name("spdk-call".to_owned())
        .spawn(move || {
            let _ = sender.send(call());
        });
    let answer = spawned.ok().and_then(|thread| {
        let answer = receiver.recv_timeout(limit).ok()?;
        let _ = thread.join();
        Some(answer)
    });
    if answer.is_none() {
        LEFT_BEHIND.store(true, Ordering::SeqCst);
    }
    answer
}

/// Whether a call was left behind.
pub(super) fn left_behind() -> bool {
    LEFT_BEHIND.load(Ordering::SeqCst)
}

unsafe extern "C" {
    /// glibc: like `atexit`, and the handler is told the exit code.
    fn on_exit(handler: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
}

/// Arranges that the process can leave even when a call was left behind. Call once.
pub(super) fn guard_exit() {
    // SAFETY: the handler is a function of this program and takes no argument that could dangle.
    unsafe { on_exit(leave, std::ptr::null_mut()) };
}

/// Runs before DPDK's destructors (exit handlers come first).
extern "C" fn leave(code: c_int, _argument: *mut c_void) {
    if left_behind() {
        // SAFETY: ends the process at once; standard output has been flushed by Rust's own exit path before.
        unsafe { libc::_exit(code) };
    }
}

/// Notes that a thread elsewhere is stuck in the driver.
pub(super) fn note_left_behind() {
    LEFT_BEHIND.store(true, Ordering::SeqCst);
}

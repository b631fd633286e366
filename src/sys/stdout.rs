//! Whether stdout can take a result.
//!
//! The Rust runtime opens the null device in place of a standard descriptor that is closed at start, and takes EBADF
//! at a write to stdout for success. From `main` on nobody can tell any more, so this is looked at before.

use std::sync::atomic::{AtomicBool, Ordering};

static IS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Whether stdout was closed when the program was started, or open for reading only.
#[must_use]
pub fn is_closed() -> bool {
    IS_CLOSED.load(Ordering::Relaxed)
}

// SAFETY: the loader calls every entry of this section once, before main, with arguments that `look` does not take;
// it makes one system call and stores a flag, and needs nothing of the runtime.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    // SAFETY: integers only.
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFL) };
    let is_closed = flags < 0 || flags & libc::O_ACCMODE == libc::O_RDONLY;
    IS_CLOSED.store(is_closed, Ordering::Relaxed);
}

//! How much room a file system has.

use super::last_errno;
use crate::errno::Errno;
use std::fs::File;
use std::os::fd::AsRawFd;

/// Room of a file system in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    /// Its size.
    pub total_bytes: u64,
    /// What this user may still write.
    pub available_bytes: u64,
}

/// Asks the file system that holds `file`.
///
/// # Errors
/// The kernel's.
pub fn space(file: &File) -> Result<Space, Errno> {
    // SAFETY: plain integers, for which all zeroes is a value.
    let mut answer: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: the descriptor is open as long as `file` is borrowed; `answer` is ours and writable.
    let failed = unsafe { libc::fstatvfs(file.as_raw_fd(), &raw mut answer) };
    if failed != 0 {
        return Err(last_errno());
    }
    Ok(Space {
        total_bytes: answer.f_blocks.saturating_mul(answer.f_frsize),
        available_bytes: answer.f_bavail.saturating_mul(answer.f_frsize),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_file_system_has_more_room_in_all_than_is_left() {
        let space = space(&tempfile::tempfile().unwrap()).unwrap();
        assert!(space.total_bytes > 0 && space.available_bytes <= space.total_bytes);
    }
}

//! Who drives a PCI device through SPDK. SPDK locks a file per device (lib/env_dpdk/pci.c,
//! `spdk_pci_device_claim`): a POSIX write lock on its first byte, held as long as the process lives.

use super::trid::Bdf;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;

/// Where SPDK keeps its locks.
pub const FOLDER: &str = "/var/tmp";

/// Another process that holds the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holder {
    /// Its number, where the kernel tells.
    pub process: Option<i32>,
}

/// Who else has claimed the device; nobody where there is no such file, or it cannot be read.
#[must_use]
pub fn holder(folder: &Path, bdf: Bdf) -> Option<Holder> {
    let file = File::open(folder.join(format!("spdk_pci_lock_{bdf}"))).ok()?;
    // SAFETY: `flock` is plain old data, for which all zeros is valid.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = libc::F_WRLCK as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    // SAFETY: the descriptor is open during the call, and the kernel writes into our own struct.
    let result = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETLK, &raw mut lock) };
    let is_held = result == 0 && lock.l_type != libc::F_UNLCK as libc::c_short;
    is_held.then(|| Holder {
        process: (lock.l_pid > 0).then_some(lock.l_pid),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_lock_is_seen_while_it_is_held() {
        let folder = tempfile::tempdir().unwrap();
        let bdf: Bdf = "0000:01:00.0".parse().unwrap();
        assert_eq!(holder(folder.path(), bdf), None);
        let path = folder.path().join("spdk_pci_lock_0000:01:00.0");
        let file = File::options()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(path)
            .unwrap();
        assert_eq!(holder(folder.path(), bdf), None, "a file is no lock");
        // A lock of the open file stands against this process too, as another's would.
        // SAFETY: as in `holder`.
        let mut lock: libc::flock = unsafe { std::mem::zeroed() };
        lock.l_type = libc::F_WRLCK as libc::c_short;
        lock.l_len = 1;
        // SAFETY: as in `holder`.
        let taken = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw mut lock) };
        assert_eq!(taken, 0);
        assert_eq!(holder(folder.path(), bdf), Some(Holder { process: None }));
        assert_eq!(holder(folder.path(), "0000:02:00.0".parse().unwrap()), None);
        drop(file);
        assert_eq!(holder(folder.path(), bdf), None);
    }
}

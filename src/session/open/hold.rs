//! Block nodes kept open with `O_EXCL` while their device is written past them, by its sg or ng node: nobody
//! can mount it, or take it as a member, meanwhile.

use crate::backend::BackendError;
use crate::errno::Errno;
use crate::session::SessionError;
use crate::session::guard::Permit;
use crate::sys::ioctl::{self, OpenMode};
use crate::sysfs::Sysfs;
use std::fs::File;

/// Opens all block nodes of what a permit lets be written.
///
/// # Errors
/// [`BackendError::Open`]: EBUSY where somebody holds one.
pub(in crate::session) fn hold(permit: &Permit, sysfs: &Sysfs) -> Result<Vec<File>, SessionError> {
    let mode = OpenMode {
        direct: false,
        write: false,
        exclusive: true,
    };
    let open = |path: &std::path::PathBuf| {
        ioctl::open(&sysfs.locate(path), mode).map_err(|errno| {
            let hint = match errno {
                Errno(libc::EBUSY) => {
                    "; it is mounted or held (file system, swap, LVM, md, another process): writes by another node of the same device need it free"
                }
                _ => "",
            };
            SessionError::from(BackendError::Open {
                path: path.display().to_string(),
                errno,
                hint: hint.to_owned(),
            })
        })
    };
    permit.block_nodes().iter().map(open).collect()
}

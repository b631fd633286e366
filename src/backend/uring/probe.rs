//! Trials that change nothing: whether the queue can be polled, whether the kernel can discard.

use crate::errno::Errno;
use crate::request::{Slot, Status};
use crate::sys::slots::{Request, SlotRing, SlotRingSpec};
use crate::sysfs::Sysfs;
use crate::units::BlockSize;
use std::fs::File;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A trial that takes longer is given up.
const TRIAL: Duration = Duration::from_secs(2);

/// Whether completions can be polled for: the queue says so, and a polled read of one block works.
pub(super) fn polling(
    sysfs: &Sysfs,
    file: &Arc<File>,
    queue_polls: Option<bool>,
    block: BlockSize,
) -> Result<(), String> {
    match queue_polls {
        None => return Err("not a block device".to_owned()),
        Some(false) => return Err("the queue has no poll support".to_owned()),
        Some(true) => {}
    }
    let read = Request::Read {
        offset_bytes: 0,
        length_bytes: block.bytes(),
    };
    match trial(sysfs, file, read, block.bytes(), true)? {
        Status::Ok => Ok(()),
        Status::Errno(errno) => Err(format!("a polled read failed: {errno}")),
        _ => Err("a polled read was short".to_owned()),
    }
}

/// Whether the kernel has block discard over io_uring. A discard of no bytes is asked for, which no
/// kernel carries out (block/ioctl.c, `blkdev_cmd_discard`): EBADF means that it would want the device
/// open for writing, EINVAL that it looked at the empty range, EOPNOTSUPP that it is older than 6.12.
pub(super) fn discard(sysfs: &Sysfs, file: &Arc<File>) -> Result<(), String> {
    let nothing = Request::Discard {
        offset_bytes: 0,
        length_bytes: 0,
    };
    match trial(sysfs, file, nothing, 1, false)? {
        Status::Errno(Errno(libc::EBADF | libc::EINVAL)) => Ok(()),
        Status::Errno(Errno(libc::EOPNOTSUPP)) => {
            Err("this kernel has no block discard over io_uring (Linux 6.12)".to_owned())
        }
        Status::Errno(Errno(libc::EPERM)) => Err("the device is read-only".to_owned()),
        Status::Errno(errno) => Err(format!("a trial discard of no bytes failed: {errno}")),
        _ => Err("a trial discard of no bytes succeeded, which no kernel does".to_owned()),
    }
}

/// One request on a ring of its own.
fn trial(
    sysfs: &Sysfs,
    file: &Arc<File>,
    request: Request,
    slot_bytes: u32,
    polled: bool,
) -> Result<Status, String> {
    let spec = SlotRingSpec {
        discard_by_worker: false,
        slots_count: 1,
        slot_bytes,
        polled,
    };
    let mut ring = SlotRing::new(sysfs, Arc::clone(file), spec)
        .map_err(|error| format!("a trial ring: {error}"))?;
    ring.push(Slot(0), request);
    let deadline = Instant::now() + TRIAL;
    let mut ended = None;
    while ended.is_none() && Instant::now() < deadline {
        if let Err(errno) = ring.enter(1, 1, Some(100_000_000))
            && !matches!(errno, Errno(libc::ETIME | libc::EINTR))
        {
            return Err(format!("a trial request: {errno}"));
        }
        ring.drain(1, |_, status, _| {
            ended = Some(status);
            None
        });
    }
    ended.ok_or_else(|| format!("a trial request did not end within {} s", TRIAL.as_secs()))
}

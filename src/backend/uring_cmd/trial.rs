//! Trials that change nothing: whether the kernel passes NVMe commands on, and whether they can be polled for.

use crate::errno::Errno;
use crate::request::{Slot, Status};
use crate::sys::nvme::{NvmeNode, NvmeRequest};
use crate::sys::ring::RingError;
use crate::sys::slots::SlotRingSpec;
use crate::sysfs::Sysfs;
use std::time::{Duration, Instant};

/// A trial that takes longer is given up.
const TRIAL: Duration = Duration::from_secs(2);
const TOO_OLD: &str = "cannot be driven so: this kernel passes no NVMe commands through io_uring (Linux 5.19 does); use backend: uring";

/// Whether a read of the first block comes back, well or not.
pub(super) fn passthrough(sysfs: &Sysfs, node: &NvmeNode) -> Result<(), String> {
    match trial(sysfs, node, false)? {
        Status::Errno(Errno(libc::EOPNOTSUPP | libc::ENOTTY)) => Err(TOO_OLD.to_owned()),
        Status::Errno(errno @ Errno(libc::EACCES | libc::EPERM)) => {
            Err(format!("refuses NVMe passthrough: {errno}; run as root"))
        }
        Status::Errno(errno) => Err(format!("does not answer a read: {errno}")),
        // A block that cannot be read is for the run to tell.
        _ => Ok(()),
    }
}

/// Whether completions can be polled for: the driver has poll queues, and a polled read of one block works.
pub(super) fn polling(
    sysfs: &Sysfs,
    node: &NvmeNode,
    queue_polls: Option<bool>,
) -> Result<(), String> {
    if queue_polls != Some(true) {
        return Err("the queue has no poll support".to_owned());
    }
    match trial(sysfs, node, true)? {
        Status::Errno(errno) => Err(format!("a polled read failed: {errno}")),
        _ => Ok(()),
    }
}

fn trial(sysfs: &Sysfs, node: &NvmeNode, polled: bool) -> Result<Status, String> {
    let spec = SlotRingSpec {
        slots_count: 1,
        slot_bytes: node.layout().block_bytes,
        discard_by_worker: false,
        polled,
    };
    let mut ring = node.ring(sysfs, None, spec).map_err(|error| match error {
        RingError::Kernel {
            errno: Errno(libc::EINVAL),
            ..
        } => TOO_OLD.to_owned(),
        error => format!("cannot be driven so: {error}"),
    })?;
    ring.push(Slot(0), NvmeRequest::Read { lba: 0, blocks: 1 });
    let deadline = Instant::now() + TRIAL;
    let mut ended = None;
    while ended.is_none() && Instant::now() < deadline {
        if let Err(errno) = ring.enter(1, 1, Some(100_000_000))
            && !matches!(errno, Errno(libc::ETIME | libc::EINTR))
        {
            return Err(format!("a trial read: {errno}"));
        }
        ring.drain(1, |_, status, _| {
            ended = Some(status);
            None
        });
    }
    ended.ok_or_else(|| format!("a trial read did not end within {} s", TRIAL.as_secs()))
}

//! One read of the first block, to learn whether a controller takes the commands that a format needs.

use super::SpdkDevice;
use crate::backend::{BackendError, Batch, Device, DeviceFacts, Queue, QueueSpec, Sink, Wait};
use crate::proto::nvme::NvmeStatus;
use crate::request::{Io, Op, Slot, Status};
use std::time::{Duration, Instant};

/// A controller that has not answered by then will say so when it is measured.
const ANSWER_LIMIT: Duration = Duration::from_secs(2);
const CLOSE_LIMIT: Duration = Duration::from_millis(500);
/// Generic statuses of a command that is not understood as it stands: invalid opcode, invalid field, data length.
const NOT_TAKEN: [u8; 4] = [0x01, 0x02, 0x0f, 0x10];

/// Keeps how the read ended.
#[derive(Default)]
struct Ended(Option<Status>);

impl Sink for Ended {
    fn complete(&mut self, _slot: Slot, status: Status, _buffer: &mut [u8]) -> Option<Io> {
        self.0 = Some(status);
        None
    }
}

/// The status with which the controller refuses a read of this format. A read that fails in another way, or does
/// not end, is no refusal.
///
/// # Errors
/// A queue could not be opened.
pub(super) fn refusal(device: &SpdkDevice) -> Result<Option<NvmeStatus>, BackendError> {
    let facts: &DeviceFacts = device.facts();
    let mut queue = device.open_queue(QueueSpec {
        reactor_index: 0,
        reactors_count: 1,
        slots_count: 1,
        slot_bytes: facts.logical_block.bytes(),
        batch: Batch {
            submit: 1,
            complete_min: 1,
            complete_max: 1,
        },
        writes: false,
    })?;
    let mut ended = Ended::default();
    let read = Io {
        lba: 0,
        blocks: 1,
        op: Op::Read,
    };
    let start = Instant::now();
    if queue.submit(Slot(0), read).is_ok() {
        while ended.0.is_none() && start.elapsed() < ANSWER_LIMIT {
            if queue.poll(&mut ended, Wait::Never).is_err() {
                break;
            }
        }
    }
    queue.close(CLOSE_LIMIT);
    Ok(match ended.0 {
        Some(Status::Nvme { sct: 0, sc }) if NOT_TAKEN.contains(&sc) => {
            Some(NvmeStatus::new(0, sc))
        }
        _ => None,
    })
}

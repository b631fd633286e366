//! A namespace's blocks outside of any measurement: read for the guard and for never-written data, written by
//! `--prepare`. Nothing here waits for ever: a device that does not answer, or a signal, ends it.

use crate::backend::spdk::{SpdkDevice, SpdkQueue};
use crate::backend::{BackendError, Batch, Device, Queue, QueueSpec, Sink, Wait};
use crate::errno::Errno;
use crate::request::{Io, Op, Slot, Status};
use crate::session::fill::prepare::{CHUNK_BYTES, Medium, Progress};
use crate::session::fill::samples::{Blank, Places};
use crate::session::guard::content::ReadAt;
use std::cell::RefCell;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// How long one transfer may take.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);
/// How long it may take once a signal has come.
const STOPPED_LIMIT: Duration = Duration::from_secs(2);
/// How long giving the queue back may take.
const CLOSE_LIMIT: Duration = Duration::from_millis(500);
/// Bytes read at once, where a block is not larger.
const PIECE_BYTES: u32 = 64 << 10;
/// Reads in flight when samples are taken.
const SAMPLES_DEPTH: u32 = 32;
/// Writes in flight when filling: enough to keep a drive busy with 128 KiB each.
const FILL_DEPTH: u32 = 16;
/// A request that cannot be.
const IMPOSSIBLE: Status = Status::Errno(Errno(libc::EINVAL));

/// A queue of one namespace, with its free slots and the first failure.
pub(in crate::session) struct Blocks {
    queue: SpdkQueue,
    free: Vec<u32>,
    slots_count: usize,
    slot_bytes: u64,
    block_bytes: u64,
    size_bytes: u64,
    failed: Option<Status>,
}

/// Gives slots back, and hands on what was read.
struct Reap<'a, F> {
    free: &'a mut Vec<u32>,
    failed: &'a mut Option<Status>,
    take: F,
}

impl<F: FnMut(&[u8])> Sink for Reap<'_, F> {
    fn complete(&mut self, slot: Slot, status: Status, buffer: &mut [u8]) -> Option<Io> {
        self.free.push(slot.0);
        if status.is_ok() {
            (self.take)(buffer);
        } else {
            self.failed.get_or_insert(status);
        }
        None
    }
}

impl Blocks {
    /// Opens a queue of `depth` slots of `slot_bytes`, rounded up to whole blocks.
    pub(in crate::session) fn open(
        device: &SpdkDevice,
        depth: u32,
        slot_bytes: u32,
        writes: bool,
    ) -> Result<Self, BackendError> {
        let facts = device.facts();
        let slot_bytes = slot_bytes.next_multiple_of(facts.logical_block.bytes());
        let spec = QueueSpec {
            reactor_index: 0,
            reactors_count: 1,
            slots_count: depth,
            slot_bytes,
            batch: Batch {
                submit: depth,
                complete_min: 1,
                complete_max: depth,
            },
            writes,
        };
        Ok(Self {
            queue: device.open_queue(spec)?,
            free: (0..depth).collect(),
            slots_count: depth as usize,
            slot_bytes: u64::from(slot_bytes),
            block_bytes: u64::from(facts.logical_block.bytes()),
            size_bytes: facts.capacity.0,
            failed: None,
        })
    }

    /// Gives the queue back; what is in flight is abandoned soon.
    pub(in crate::session) fn close(self) {
        self.queue.close(CLOSE_LIMIT);
    }

    /// Polls until `count` slots are free. What was read goes to `take`, in the order of arrival. `stop` says
    /// that a signal has come: then it is waited `stopped_limit` for what is under way.
    fn wait(
        &mut self,
        count: usize,
        (stop, stopped_limit): (&dyn Fn() -> bool, Duration),
        mut take: impl FnMut(&[u8]),
    ) -> Result<(), Status> {
        let start = Instant::now();
        while self.free.len() < count {
            let mut reap = Reap {
                free: &mut self.free,
                failed: &mut self.failed,
                take: &mut take,
            };
            if let Err(gone) = self.queue.poll(&mut reap, Wait::Never) {
                self.failed.get_or_insert(gone.0);
            }
            if let Some(status) = self.failed {
                return Err(status);
            }
            let waited = start.elapsed();
            if waited >= stopped_limit && stop() {
                return Err(Status::Errno(Errno(libc::ECANCELED)));
            }
            if waited > ANSWER_LIMIT {
                return Err(*self.failed.insert(Status::Errno(Errno(libc::ETIMEDOUT))));
            }
        }
        self.failed.map_or(Ok(()), Err)
    }

    /// Sends in a free slot.
    fn send(&mut self, io: Io, data: &[u8]) -> Result<(), Status> {
        let slot = Slot(self.free.pop().ok_or(IMPOSSIBLE)?);
        if let Some(room) = self.queue.buffer(slot).get_mut(..data.len()) {
            room.copy_from_slice(data);
        } else {
            return Err(IMPOSSIBLE);
        }
        self.queue.submit(slot, io).map_err(|_| IMPOSSIBLE)
    }

    /// The blocks from the one that holds byte `at_bytes` to the one before `end_bytes`.
    fn range(&self, op: Op, at_bytes: u64, end_bytes: u64) -> Result<Io, Status> {
        let lba = at_bytes / self.block_bytes;
        let blocks = end_bytes.div_ceil(self.block_bytes) - lba;
        if end_bytes > self.size_bytes || blocks * self.block_bytes > self.slot_bytes {
            return Err(IMPOSSIBLE);
        }
        Ok(Io {
            lba,
            blocks: u32::try_from(blocks).map_err(|_| IMPOSSIBLE)?,
            op,
        })
    }

    /// Looks at every place, several at a time: how many are blank.
    pub(in crate::session) fn blank_count(
        &mut self,
        places: &Places,
        blank: Blank,
        stop: &dyn Fn() -> bool,
    ) -> Result<u32, Status> {
        let len = usize::try_from(places.sample_bytes).map_err(|_| IMPOSSIBLE)?;
        let mut count = 0;
        let mut look = |buffer: &[u8]| {
            count += u32::from(buffer.get(..len).is_some_and(|block| blank.is(block)));
        };
        for at in &places.offsets_bytes {
            self.wait(1, (stop, Duration::ZERO), &mut look)?;
            let io = self.range(Op::Read, *at, at + places.sample_bytes)?;
            self.send(io, &[])?;
        }
        self.wait(self.slots_count, (stop, Duration::ZERO), &mut look)?;
        Ok(count)
    }
}

/// A queue for looking at samples.
pub(in crate::session) fn for_samples(
    device: &SpdkDevice,
    sample_bytes: u64,
) -> Result<Blocks, BackendError> {
    let bytes = u32::try_from(sample_bytes).unwrap_or(u32::MAX);
    Blocks::open(device, SAMPLES_DEPTH, bytes, false)
}

/// What the guard reads.
pub(in crate::session) struct Content(RefCell<Blocks>);

impl Content {
    pub(in crate::session) fn open(device: &SpdkDevice) -> Result<Self, BackendError> {
        Blocks::open(device, 1, PIECE_BYTES, false).map(|blocks| Self(RefCell::new(blocks)))
    }

    pub(in crate::session) fn close(self) {
        self.0.into_inner().close();
    }
}

impl ReadAt for Content {
    fn size_bytes(&self) -> u64 {
        self.0.borrow().size_bytes
    }

    fn read_at(&self, offset_bytes: u64, buffer: &mut [u8]) -> Result<(), Errno> {
        let mut blocks = self.0.borrow_mut();
        let end = offset_bytes.checked_add(buffer.len() as u64);
        if end.is_none_or(|end| end > blocks.size_bytes) {
            return Err(Errno(libc::EIO));
        }
        let (mut at, mut rest) = (offset_bytes, buffer);
        while !rest.is_empty() {
            let skip = at % blocks.block_bytes;
            let bytes = (blocks.slot_bytes - skip).min(rest.len() as u64);
            let (now, later) =
                rest.split_at_mut(usize::try_from(bytes).map_err(|_| Errno(libc::EIO))?);
            let skip = usize::try_from(skip).map_err(|_| Errno(libc::EIO))?;
            blocks
                .range(Op::Read, at, at + bytes)
                .and_then(|io| blocks.send(io, &[]))
                .and_then(|()| {
                    blocks.wait(1, (&|| false, Duration::ZERO), |read| {
                        now.copy_from_slice(&read[skip..skip + now.len()]);
                    })
                })
                .map_err(errno)?;
            (at, rest) = (at + bytes, later);
        }
        Ok(())
    }
}

/// The nearest errno: the guard only tells apart what could be read and what not.
const fn errno(status: Status) -> Errno {
    match status {
        Status::Errno(errno) => errno,
        _ => Errno(libc::EIO),
    }
}

/// A namespace as `--prepare`'s medium. Several writes are in flight; one that fails is told by the next call,
/// and by every one after it, so that nothing beyond it is ever noted as done.
pub(in crate::session) struct SpdkMedium<'a, F> {
    pub blocks: Blocks,
    pub stop: &'a dyn Fn() -> bool,
    pub progress: F,
}

/// A queue for filling.
pub(in crate::session) fn for_filling(device: &SpdkDevice) -> Result<Blocks, BackendError> {
    let bytes = u32::try_from(CHUNK_BYTES).unwrap_or(u32::MAX);
    Blocks::open(device, FILL_DEPTH, bytes, true)
}

impl<F: FnMut(Progress) -> ControlFlow<()>> Medium for SpdkMedium<'_, F> {
    fn write_at(&mut self, offset_bytes: u64, data: &[u8]) -> Result<(), Status> {
        let blocks = &mut self.blocks;
        blocks.wait(1, (self.stop, Duration::ZERO), |_| ())?;
        let io = blocks.range(Op::Write, offset_bytes, offset_bytes + data.len() as u64)?;
        blocks.send(io, data)
    }

    fn sync(&mut self) -> Result<(), Status> {
        let blocks = &mut self.blocks;
        // What is under way is waited for even after a signal: it is what the note will say.
        let stop = (self.stop, STOPPED_LIMIT);
        blocks.wait(blocks.slots_count, stop, |_| ())?;
        blocks.send(Io::FLUSH, &[])?;
        blocks.wait(blocks.slots_count, stop, |_| ())
    }

    fn progress(&mut self, now: Progress) -> ControlFlow<()> {
        (self.progress)(now)
    }
}

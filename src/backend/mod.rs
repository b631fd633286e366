//! How commands reach a device: the traits every backend implements, and the backends.
//!
//! A [`Device`] is opened once by the session and shared; every reactor thread opens its own [`Queue`]
//! from it. The reactor's hot loop is generic over `Queue`, so that nothing in it is dynamic.

pub mod burn;
#[doc(hidden)]
pub mod contract;
#[cfg(test)]
mod doubt_tests;
mod facts;
mod health;
mod null;
mod ring_queue;
pub mod sg;
pub mod sim;
pub mod spdk;
pub mod uring;
pub mod uring_cmd;
mod write_cache;

pub use facts::{DeviceFacts, DeviceKind};
pub use null::{NullDevice, NullQueue};

use crate::errno::Errno;
use crate::request::{Io, Slot, Status};
use std::time::Duration;

/// The queue took no more: every place is taken. The I/O was not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Full;

/// The device is gone or the queue is dead: the run ends at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gone(pub Status);

/// How long a poll may sleep when nothing has completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Not at all: look and return.
    Never,
    /// At most this long; queues that spin ignore it and return at once.
    AtMostNs(u64),
}

/// What became of the I/Os in flight when a queue was closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Closed {
    /// I/Os that had not completed when the deadline came.
    pub abandoned_count: u32,
}

/// How many commands are handed over and reaped at once. All at least 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Batch {
    /// Most commands handed to the device with one bell or enter.
    pub submit: u32,
    /// A waiting poll sleeps until this many have completed (or fewer are in flight, or its time is up).
    pub complete_min: u32,
    /// Most completions taken by one poll.
    pub complete_max: u32,
}

/// What a reactor asks of a new queue.
#[derive(Debug, Clone, Copy)]
pub struct QueueSpec {
    /// The reactor's number, counted from 0 over the step.
    pub reactor_index: u32,
    /// Reactors of the step that open a queue on this device, this one included.
    pub reactors_count: u32,
    /// I/Os the queue must be able to hold in flight: slots `0..slots_count`.
    pub slots_count: u32,
    /// Size of every slot's buffer in bytes.
    pub slot_bytes: u32,
    /// Batching.
    pub batch: Batch,
    /// Whether writes, trims, writezeroes or flushes may come; a queue opened without refuses them.
    pub writes: bool,
}

/// One submission path to one device. Opened on, and owned by, one pinned reactor thread (`!Send` where
/// the transport demands it). A reactor holds several, all of one backend kind.
///
/// Buffers: the buffer of a slot is the caller's whenever no I/O is in flight in that slot. The caller
/// fills it before `submit`, or inside [`Sink::complete`], which is handed the buffer of the slot that
/// has just completed: there it may read what came and write what goes out next.
pub trait Queue {
    /// Whether `poll` can sleep in the kernel. Busy time is then the thread's CPU time, not spinning.
    const SLEEPS: bool;
    /// Whether every completion that a poll hands over had been found before the first is handed over,
    /// so that one clock reading at the first serves for all and is never too early.
    const FOUND_TOGETHER: bool;

    /// Builds an I/O in a free slot; not yet rung. A queue that may ring earlier (a full submission
    /// ring, `batch.submit`) does so.
    ///
    /// # Errors
    /// [`Full`] when the queue cannot hold it; nothing changed.
    fn submit(&mut self, slot: Slot, io: Io) -> Result<(), Full>;

    /// Rings what was built.
    ///
    /// # Errors
    /// [`Gone`] when the device is gone.
    fn flush(&mut self) -> Result<(), Gone>;

    /// Rings what was built, looks for completions, hands each to the sink as it is found, and builds
    /// what the sink returns in the same slot. What was built in the poll is rung once, at its end, or
    /// at the start of the next poll together with the look (one enter per submit and reap).
    ///
    /// # Errors
    /// [`Gone`] when the device is gone. Failed I/Os are not errors: they go to the sink.
    fn poll<S: Sink>(&mut self, sink: &mut S, wait: Wait) -> Result<usize, Gone>;

    /// I/Os that have ended and are not told of yet, since what their end means is not known. Never for long.
    fn kept_back_count(&self) -> u32 {
        0
    }

    /// The buffer of a slot that has nothing in flight.
    fn buffer(&mut self, slot: Slot) -> &mut [u8];

    /// Gives the queue back. I/Os still in flight are waited for until `limit` has passed, then
    /// abandoned; their completions reach no sink.
    fn close(self, limit: Duration) -> Closed;
}

/// Called for each completion.
pub trait Sink {
    /// `Some(io)`: resubmit in this slot at once, inside the poll. `None`: open loop, or stopping.
    fn complete(&mut self, slot: Slot, status: Status, buffer: &mut [u8]) -> Option<Io>;
}

/// An opened device: its facts, and a maker of queues.
pub trait Device {
    /// The queues it makes.
    type Queue: Queue;

    /// What is known of it.
    fn facts(&self) -> &DeviceFacts;

    /// How commands will reach it, for the record: `registered buffers`, `polled: no, …`.
    fn features(&self) -> Vec<String>;

    /// Doubts that only the device can raise, about what its queues did since the first of a step was opened.
    fn warnings(&self) -> Vec<crate::record::Warning> {
        Vec::new()
    }

    /// What it says of its own health now. It takes the time of some commands: never while queues are open.
    ///
    /// # Errors
    /// Why it cannot be told, in words.
    fn health(&self) -> Result<crate::record::Health, String> {
        Err("this backend cannot ask for it".to_owned())
    }

    /// How its write cache stands now. As [`Device::health`].
    ///
    /// # Errors
    /// Why it cannot be told, in words.
    fn write_cache(&self) -> Result<crate::record::WriteCache, String> {
        Err("this backend cannot ask for it".to_owned())
    }

    /// Opens a queue on the calling thread.
    ///
    /// # Errors
    /// A [`BackendError`] that names the device and what to do.
    fn open_queue(&self, spec: QueueSpec) -> Result<Self::Queue, BackendError>;
}

/// Buffers in plain memory, zeroed, for queues that move nothing.
fn memory_buffers(spec: QueueSpec, path: &str) -> Result<Vec<u8>, BackendError> {
    let bytes = spec.slots_count as usize * spec.slot_bytes as usize;
    let mut buffers = Vec::new();
    buffers
        .try_reserve_exact(bytes)
        .map_err(|_| BackendError::Setup {
            path: path.to_owned(),
            what: "allocating the buffers",
            errno: Errno(libc::ENOMEM),
            hint: format!(": {bytes} bytes are wanted; use a smaller iodepth or bs"),
        })?;
    buffers.resize(bytes, 0);
    Ok(buffers)
}

/// Why a device or a queue could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum BackendError {
    /// SPDK, or what it needs of the machine.
    #[error(transparent)]
    Spdk(#[from] crate::spdk::SpdkError),
    /// The device node or file could not be opened.
    #[error("cannot open {path}: {errno}{hint}")]
    Open {
        /// The path.
        path: String,
        /// Why.
        errno: Errno,
        /// What to do, with a leading separator; may be empty.
        hint: String,
    },
    /// The node is not something this backend can drive.
    #[error("{path} {why}")]
    Unsuitable {
        /// The path.
        path: String,
        /// What it is, and what is needed.
        why: String,
    },
    /// The kernel or the driver refused a resource.
    #[error("{path}: {what} failed: {errno}{hint}")]
    Setup {
        /// The path.
        path: String,
        /// Which step.
        what: &'static str,
        /// Why.
        errno: Errno,
        /// What to do, with a leading separator; may be empty.
        hint: String,
    },
}

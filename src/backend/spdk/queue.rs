//! One queue pair as a [`Queue`]: builds commands, holds back what is beyond the queue's depth, and turns SPDK's
//! completions into the sink's.

use crate::backend::{BackendError, Batch, Closed, Full, Gone, Queue, QueueSpec, Sink, Wait};
use crate::errno::Errno;
use crate::proto::nvme::{Command, DSM_RANGE_BYTES, NvmeStatus, dsm_range};
use crate::proto::nvme::{Layout, Metadata};
use crate::request::{Io, Op, Slot, Status};
use crate::spdk::{Completions, Controller, Lane, Payload, Qpair, QpairSpec, Refused, Split};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// Statuses (type, code) that say the queue or the namespace is no more: aborted for deletion of the queue, and
/// invalid namespace.
const GONE: [(u8, u8); 2] = [(0, 0x08), (0, 0x0b)];

/// What a removed namespace is reported as, whatever its last commands ended with.
const NAMESPACE_REMOVED: Status = Status::Nvme { sct: 0, sc: 0x0b };

/// A queue pair with its commands.
#[derive(Debug)]
pub struct SpdkQueue {
    qpair: Qpair,
    state: State,
}

/// Everything that does not touch SPDK.
#[derive(Debug)]
struct State {
    nsid: u32,
    layout: Layout,
    /// Read and write with this format's flags; the range is set per I/O.
    read: Command,
    write: Command,
    zeroes: Command,
    /// Most blocks of a Write Zeroes; 0 where the controller has none.
    zeroes_blocks: u32,
    /// Most blocks of one command.
    max_blocks: u32,
    /// Most commands in the device.
    depth: u32,
    slots_count: u32,
    complete_max: u32,
    writes: bool,
    /// Taken, but not yet sent: beyond the device's depth.
    held: VecDeque<(u32, Io)>,
    /// Taken, and to be refused at the next poll: what `allow` says no to.
    refused: VecDeque<(u32, Errno)>,
    gone: Option<Status>,
    /// An I/O failed in this poll: look whether the namespace is still there.
    doubt: bool,
}

/// Whether commands of one poll share a bell, rung at its end. Not where the user wants one for each. At depth 1
/// there is one command to a poll either way; rung at its end it is no slower (scripts/bench/doorbell: 0.998 of the
/// time over shared memory), and so that stays the rule.
pub(super) const fn rings_once_per_poll(batch: Batch, slots_count: u32) -> bool {
    batch.submit > 1 || slots_count == 1
}

impl SpdkQueue {
    pub(super) fn open(
        controller: &Arc<Controller>,
        nsid: u32,
        (layout, zeroes_blocks): (Layout, u32),
        spec: QueueSpec,
    ) -> Result<Self, BackendError> {
        let max_transfer = controller.max_transfer_bytes();
        let max_blocks = (max_transfer / layout.block_bytes).clamp(1, 1 << 16);
        let depth = spec.slots_count.min(controller.queue_entries() - 1).max(1);
        let blocks = spec.slot_bytes.div_ceil(layout.block_bytes);
        // A split I/O holds a request for itself and one for each part; one more where it starts unaligned.
        let parts = if blocks > max_blocks {
            blocks.div_ceil(max_blocks) + 2
        } else {
            0
        };
        let range = u32::try_from(DSM_RANGE_BYTES).unwrap_or_default();
        let qpair = Qpair::open(
            controller,
            &QpairSpec {
                nsid,
                slots_count: spec.slots_count,
                slot_bytes: spec.slot_bytes,
                extra_bytes: layout.metadata_bytes(blocks).max(range),
                depth,
                requests_count: depth.saturating_mul(1 + parts),
                deferred: rings_once_per_poll(spec.batch, spec.slots_count),
                queues_asked_count: spec.reactors_count,
            },
        )?;
        let slots = spec.slots_count as usize;
        let state = State {
            nsid,
            layout,
            read: layout.template(Command::read(nsid, 0, 1)),
            write: layout.template(Command::write(nsid, 0, 1)),
            zeroes: layout.zeroes(nsid),
            zeroes_blocks,
            max_blocks,
            depth,
            slots_count: spec.slots_count,
            // What completes is sent again in the same poll, at whose end one bell rings for all.
            complete_max: spec.batch.complete_max.min(spec.batch.submit),
            writes: spec.writes,
            held: VecDeque::with_capacity(slots),
            refused: VecDeque::with_capacity(slots),
            gone: None,
            doubt: false,
        };
        Ok(Self { qpair, state })
    }
}

impl State {
    /// Whether what is no read may be sent: EPERM for a change on a queue that was opened without writes, EOPNOTSUPP
    /// for what the controller or this backend does not have, EINVAL for more zeros than a command may name.
    #[inline]
    const fn allow(&self, io: Io) -> Result<(), Errno> {
        match io.op {
            Op::Probe => Err(Errno(libc::EOPNOTSUPP)),
            _ if !self.writes => Err(Errno(libc::EPERM)),
            Op::WriteZeroes if self.zeroes_blocks == 0 => Err(Errno(libc::EOPNOTSUPP)),
            Op::WriteZeroes if io.blocks == 0 || io.blocks > self.zeroes_blocks => {
                Err(Errno(libc::EINVAL))
            }
            _ => Ok(()),
        }
    }

    /// Sends an I/O, or keeps it for later.
    #[inline]
    fn take(&mut self, lane: &mut Lane<'_>, slot: u32, io: Io) {
        if io.op != Op::Read
            && let Err(errno) = self.allow(io)
        {
            self.refused.push_back((slot, errno));
        } else if lane.in_flight() >= self.depth || !self.held.is_empty() {
            self.held.push_back((slot, io));
            self.send_held(lane);
        } else if self.send(lane, slot, io).is_err() {
            self.held.push_back((slot, io));
        }
    }

    /// Sends what was held back, oldest first, as far as there is room.
    #[inline]
    fn send_held(&mut self, lane: &mut Lane<'_>) {
        while lane.in_flight() < self.depth
            && let Some(&(slot, io)) = self.held.front()
        {
            if self.send(lane, slot, io).is_err() {
                return;
            }
            self.held.pop_front();
        }
    }

    #[inline]
    fn send(&mut self, lane: &mut Lane<'_>, slot: u32, io: Io) -> Result<(), Refused> {
        let (command, payload) = match io.op {
            Op::Read => self.transfer(self.read, io, false),
            Op::Write => self.transfer(self.write, io, true),
            // Probes never come here, see `take`.
            Op::Flush | Op::Probe => (Command::flush(self.nsid), Payload::None),
            Op::WriteZeroes => (self.zeroes(io), Payload::None),
            Op::Trim => {
                let range = dsm_range(io.lba, io.blocks);
                lane.extra(slot)[..DSM_RANGE_BYTES].copy_from_slice(&range);
                (
                    Command::deallocate(self.nsid, 1),
                    Payload::Extra(DSM_RANGE_BYTES as u32),
                )
            }
        };
        let result = lane.submit(slot, &command, payload);
        match result {
            Err(Refused::Dead) => self.gone = Some(Status::Errno(Errno(libc::ENXIO))),
            Err(Refused::Misuse) => self.gone = Some(Status::Errno(Errno(libc::EINVAL))),
            Ok(()) | Err(Refused::Full) => {}
        }
        result
    }

    /// A Write Zeroes; its protection information is of the same blocks.
    #[inline]
    fn zeroes(&self, io: Io) -> Command {
        let mut command = self.zeroes;
        command.set_range(io.lba, io.blocks);
        match self.layout.metadata {
            Metadata::Stripped {
                reference: true, ..
            } => command.with_reference_tag(io.lba as u32),
            _ => command,
        }
    }

    /// A read or write: one command, or a request for the driver to make several.
    #[inline]
    fn transfer(&self, mut command: Command, io: Io, write: bool) -> (Command, Payload) {
        let bytes = io.blocks * self.layout.block_bytes;
        let extra_bytes = self.layout.metadata_bytes(io.blocks);
        if io.blocks > self.max_blocks {
            let flags = command.dword(12) & 0xffff_0000;
            return (
                command,
                Payload::Split(Split {
                    write,
                    lba: io.lba,
                    blocks: io.blocks,
                    bytes,
                    extra_bytes,
                    flags,
                }),
            );
        }
        command.set_range(io.lba, io.blocks);
        match self.layout.metadata {
            Metadata::None => (command, Payload::Data(bytes)),
            Metadata::Stripped {
                reference: true, ..
            } => {
                // Types 1 and 2: the initial reference tag is the low half of the LBA.
                (
                    command.with_reference_tag(io.lba as u32),
                    Payload::Data(bytes),
                )
            }
            Metadata::Stripped { .. } => (command, Payload::Data(bytes)),
            Metadata::Separate(_) => (command, Payload::DataAndExtra { bytes, extra_bytes }),
        }
    }
}

/// Receives SPDK's completions during one poll.
struct Receiver<'a, S> {
    state: &'a mut State,
    sink: &'a mut S,
    found: usize,
}

impl<S: Sink> Receiver<'_, S> {
    /// Tells the sink, and takes what it sends next.
    #[inline]
    fn hand_over(&mut self, lane: &mut Lane<'_>, slot: u32, status: Status) {
        self.found += 1;
        match self.sink.complete(Slot(slot), status, lane.buffer(slot)) {
            Some(io) => self.state.take(lane, slot, io),
            None if !self.state.held.is_empty() => self.state.send_held(lane),
            None => {}
        }
    }
}

impl<S: Sink> Completions for Receiver<'_, S> {
    #[inline]
    fn completed(&mut self, lane: &mut Lane<'_>, slot: u32, status: NvmeStatus) {
        let status = if status.is_ok() {
            Status::Ok
        } else {
            let failed = Status::Nvme {
                sct: status.sct,
                sc: status.sc,
            };
            self.state.doubt = true;
            if GONE.contains(&(status.sct, status.sc)) {
                self.state.gone = Some(failed);
            }
            failed
        };
        self.hand_over(lane, slot, status);
    }
}

impl Queue for SpdkQueue {
    const SLEEPS: bool = false;
    /// The driver finds completions one by one, each handed over before the next is looked for.
    const FOUND_TOGETHER: bool = false;

    #[inline]
    fn submit(&mut self, slot: Slot, io: Io) -> Result<(), Full> {
        let mut lane = self.qpair.lane();
        let waiting = self.state.held.len() + self.state.refused.len();
        if lane.in_flight() as usize + waiting >= self.state.slots_count as usize {
            return Err(Full);
        }
        self.state.take(&mut lane, slot.0, io);
        Ok(())
    }

    /// Nothing to do apart from a poll: the driver rings at the end of each, over all that was built.
    #[inline]
    fn flush(&mut self) -> Result<(), Gone> {
        self.state.gone.map_or(Ok(()), |status| Err(Gone(status)))
    }

    #[inline]
    fn poll<S: Sink>(&mut self, sink: &mut S, _wait: Wait) -> Result<usize, Gone> {
        let most = self.state.complete_max;
        let mut receiver = Receiver {
            state: &mut self.state,
            sink,
            found: 0,
        };
        if !receiver.state.refused.is_empty() {
            let mut lane = self.qpair.lane();
            for _ in 0..receiver.state.refused.len().min(most as usize) {
                if let Some((slot, errno)) = receiver.state.refused.pop_front() {
                    receiver.hand_over(&mut lane, slot, Status::Errno(errno));
                }
            }
            return Ok(receiver.found);
        }
        let polled = self.qpair.poll(&mut receiver, most);
        let found = receiver.found;
        if let Err(errno) = polled {
            return Err(Gone(self.state.gone.unwrap_or(Status::Errno(Errno(errno)))));
        }
        if !self.state.held.is_empty() {
            self.state.send_held(&mut self.qpair.lane());
        }
        if std::mem::take(&mut self.state.doubt) && !self.qpair.namespace_is_active() {
            self.state.gone = Some(NAMESPACE_REMOVED);
        }
        match self.state.gone {
            Some(status) => Err(Gone(status)),
            None => Ok(found),
        }
    }

    fn buffer(&mut self, slot: Slot) -> &mut [u8] {
        // The lane's borrow ends here, the queue's does not: ask the queue pair itself.
        self.qpair.buffer(slot.0)
    }

    fn close(self, limit: Duration) -> Closed {
        let unsent = self.state.held.len() + self.state.refused.len();
        let abandoned = self.qpair.close(limit);
        Closed {
            abandoned_count: abandoned + u32::try_from(unsent).unwrap_or(u32::MAX),
        }
    }
}

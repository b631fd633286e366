//! One queue: I/Os in slots, each of one command or several, no more at once than the device holds.

use super::outcome::{Outcome, Tally, casts_doubt, judge};
use super::seats::{Seat, Shared};
use crate::backend::{Closed, Full, Gone, Queue, QueueSpec, Sink, Wait};
use crate::errno::Errno;
use crate::proto::scsi::{Cdb, UNMAP_LIST_BYTES, unmap_list};
use crate::request::{Io, Op, Slot, Status};
use crate::sys::sg::{Command, CommandFile, Payload};
use crate::sys::sg_lane::{Ended, NotSent, SgLane};
use crate::sysfs::scsi;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What commands are made from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    pub(super) block_bytes: u32,
    /// Most blocks of a command that moves data.
    pub(super) command_blocks: u32,
    /// Most blocks of an UNMAP; 0 where the device has none.
    pub(super) unmap_blocks: u32,
    /// Most blocks of a WRITE SAME; 0 where the device has none.
    pub(super) same_blocks: u32,
    /// The 16-byte forms throughout: the device has more blocks than the short ones reach.
    pub(super) long: bool,
    pub(super) timeout_ms: u32,
    pub(super) direct: bool,
    pub(super) writes: bool,
    /// Most commands in the device at once; absent where that is not known.
    pub(super) device_depth: Option<u32>,
}

impl Rules {
    /// Whether an I/O may be sent: EPERM for a change on a queue that was opened without writes, EOPNOTSUPP for
    /// a trim or a writezeroes where there is none, EINVAL for more than a slot holds.
    #[inline]
    fn allow(&self, io: Io, slot_bytes: u32) -> Result<(), Errno> {
        match io.op {
            Op::Probe => Ok(()),
            op if op != Op::Read && !self.writes => Err(Errno(libc::EPERM)),
            Op::Flush => Ok(()),
            Op::Trim if self.unmap_blocks == 0 => Err(Errno(libc::EOPNOTSUPP)),
            Op::WriteZeroes if self.same_blocks == 0 => Err(Errno(libc::EOPNOTSUPP)),
            Op::Trim | Op::WriteZeroes if io.blocks > 0 => Ok(()),
            Op::Read | Op::Write
                if io.blocks > 0
                    && u64::from(io.blocks) * u64::from(self.block_bytes)
                        <= u64::from(slot_bytes) =>
            {
                Ok(())
            }
            _ => Err(Errno(libc::EINVAL)),
        }
    }

    /// The command for what is left of an I/O, and how many blocks it takes.
    #[inline]
    fn command(&self, slot: u32, io: Io, sent_blocks: u32) -> (Command, u32) {
        let (lba, left) = (
            io.lba.wrapping_add(u64::from(sent_blocks)),
            io.blocks - sent_blocks,
        );
        let blocks = left.min(self.command_blocks);
        // Below the slot's size: `allow` has seen to it.
        let (offset_bytes, length_bytes) =
            (sent_blocks * self.block_bytes, blocks * self.block_bytes);
        let (cdb, payload, blocks) = match io.op {
            Op::Read => (
                Cdb::read(lba, blocks, self.long),
                Payload::Read {
                    offset_bytes,
                    length_bytes,
                },
                blocks,
            ),
            Op::Write => (
                Cdb::write(lba, blocks, self.long),
                Payload::Write {
                    offset_bytes,
                    length_bytes,
                },
                blocks,
            ),
            Op::Trim => {
                let blocks = left.min(self.unmap_blocks);
                let list = Payload::List(unmap_list(lba, blocks));
                (Cdb::unmap(UNMAP_LIST_BYTES as u16), list, blocks)
            }
            Op::WriteZeroes => {
                let blocks = left.min(self.same_blocks);
                // The one block that is sent: zeros, see `accept`.
                let payload = Payload::Write {
                    offset_bytes: 0,
                    length_bytes: self.block_bytes,
                };
                (Cdb::write_same(lba, blocks), payload, blocks)
            }
            Op::Flush => (Cdb::synchronize_cache(self.long), Payload::None, io.blocks),
            Op::Probe => (Cdb::test_unit_ready(), Payload::None, io.blocks),
        };
        let command = Command {
            slot,
            cdb,
            payload,
            timeout_ms: self.timeout_ms,
            direct: self.direct,
        };
        (command, blocks)
    }
}

/// One I/O.
#[derive(Debug, Clone, Copy)]
struct Flight {
    io: Io,
    is_busy: bool,
    /// Blocks for which commands were sent.
    sent_blocks: u32,
    /// Nothing of it is left to send.
    all_sent: bool,
    /// Commands that have not ended.
    commands: u32,
    /// The first failure.
    status: Status,
}

const IDLE: Flight = Flight {
    io: Io::PROBE,
    is_busy: false,
    sent_blocks: 0,
    all_sent: false,
    commands: 0,
    status: Status::Ok,
};

/// A queue of one reactor. It spins: a poll looks and returns.
#[derive(Debug)]
pub struct SgQueue<F> {
    lane: SgLane<F>,
    rules: Rules,
    slot_bytes: u32,
    complete_max: u32,
    flights: Vec<Flight>,
    /// Slots with something left to send, first in, first out.
    waiting: VecDeque<u32>,
    /// Slots that ended without the device, to be reported by the next poll.
    refused: VecDeque<u32>,
    gone: Option<Status>,
    /// A failure of this poll may mean that the device is gone.
    doubt: Option<Status>,
    device_dir: Option<PathBuf>,
    seat: Seat,
    tally: Tally,
    shared: Arc<Shared>,
}

impl<F: CommandFile> SgQueue<F> {
    pub(super) fn new(
        lane: SgLane<F>,
        rules: Rules,
        spec: QueueSpec,
        device_dir: Option<PathBuf>,
        shared: &Arc<Shared>,
    ) -> Self {
        let slots = spec.slots_count as usize;
        Self {
            lane,
            rules,
            slot_bytes: spec.slot_bytes,
            complete_max: spec.batch.complete_max,
            flights: vec![IDLE; slots],
            waiting: VecDeque::with_capacity(slots),
            refused: VecDeque::with_capacity(slots),
            gone: None,
            doubt: None,
            device_dir,
            seat: Shared::seat(shared, rules.device_depth),
            tally: Tally::new(),
            shared: Arc::clone(shared),
        }
    }

    /// Takes an I/O into its free slot, and sends it where there is room.
    #[inline]
    fn accept(&mut self, slot: Slot, io: Io) {
        let flight = &mut self.flights[slot.index()];
        *flight = Flight {
            io,
            is_busy: true,
            ..IDLE
        };
        match self.rules.allow(io, self.slot_bytes) {
            Ok(()) => {
                if io.op == Op::WriteZeroes {
                    let block_bytes = self.rules.block_bytes as usize;
                    self.lane.buffer(slot.0)[..block_bytes].fill(0);
                }
                self.waiting.push_back(slot.0);
                self.pump();
            }
            Err(errno) => {
                flight.status = Status::Errno(errno);
                self.refused.push_back(slot.0);
            }
        }
    }

    /// Sends what waits, in order, as far as the device has room.
    #[inline]
    fn pump(&mut self) {
        while let Some(&slot) = self.waiting.front() {
            if self.gone.is_some() || self.lane.in_flight() >= self.seat.share() {
                return;
            }
            let flight = &mut self.flights[slot as usize];
            let (command, blocks) = self.rules.command(slot, flight.io, flight.sent_blocks);
            match self.lane.send(&command) {
                Ok(()) => {
                    flight.sent_blocks += blocks;
                    flight.commands += 1;
                    self.tally.commands_count += 1;
                    if flight.sent_blocks >= flight.io.blocks {
                        flight.all_sent = true;
                        self.waiting.pop_front();
                    }
                }
                Err(NotSent::Full) => return,
                Err(NotSent::Errno(errno)) => {
                    if !self.not_sent(slot, errno) {
                        return;
                    }
                }
            }
        }
    }

    /// What a refusal of the kernel means; whether to go on sending.
    #[cold]
    fn not_sent(&mut self, slot: u32, errno: Errno) -> bool {
        match errno {
            Errno(libc::ENODEV | libc::ENXIO) => {
                self.gone = Some(Status::Errno(errno));
                false
            }
            // Short of memory, or of requests, for now: what ends gives some back.
            Errno(libc::ENOMEM | libc::EAGAIN | libc::EBUSY | libc::EINTR)
                if self.lane.in_flight() > 0 =>
            {
                false
            }
            errno => {
                let flight = &mut self.flights[slot as usize];
                flight.status = Status::Errno(errno);
                flight.all_sent = true;
                self.waiting.pop_front();
                if flight.commands == 0 {
                    self.refused.push_back(slot);
                }
                true
            }
        }
    }

    /// Books a command that has ended; the slot, where its I/O has ended with it.
    #[inline]
    fn book(&mut self, ended: &Ended) -> Option<Slot> {
        let flight = &mut self.flights[ended.slot as usize];
        flight.commands -= 1;
        if ended.length_bytes > 0 {
            self.tally.moved_count += 1;
            self.tally.copied_count += u64::from(!ended.done.was_direct);
        }
        match judge(ended) {
            Outcome::Ok => {}
            Outcome::Recovered => {
                self.tally.recovered_count += 1;
                self.tally.note(flight.io, ended.done.sense);
            }
            Outcome::Failed(status) => {
                self.tally.note(flight.io, ended.done.sense);
                if casts_doubt(status) {
                    self.doubt = Some(status);
                }
                if flight.status.is_ok() {
                    flight.status = status;
                }
                // What was not sent yet would only fail as well, and the I/O has failed already.
                if !flight.all_sent {
                    flight.all_sent = true;
                    self.waiting.retain(|slot| *slot != ended.slot);
                }
            }
        }
        let is_over = flight.all_sent && flight.commands == 0;
        is_over.then_some(Slot(ended.slot))
    }

    /// Tells the sink of an I/O that has ended, and takes what it sends next.
    #[inline]
    fn hand_over<S: Sink>(&mut self, slot: Slot, sink: &mut S) {
        let flight = &mut self.flights[slot.index()];
        flight.is_busy = false;
        let status = flight.status;
        self.tally.ios_count += 1;
        match sink.complete(slot, status, self.lane.buffer(slot.0)) {
            Some(io) => self.accept(slot, io),
            None => self.pump(),
        }
    }

    fn alive(&self) -> Result<(), Gone> {
        self.gone.map_or(Ok(()), |status| Err(Gone(status)))
    }

    /// After a failure that may mean it: asks the kernel's state of the device.
    #[cold]
    fn settle(&mut self, doubt: Status) {
        if self.device_dir.as_deref().is_some_and(scsi::is_dead) {
            self.gone = Some(doubt);
        }
    }
}

impl<F: CommandFile> Queue for SgQueue<F> {
    const SLEEPS: bool = false;
    /// Commands are read one by one, each handed over before the next is looked for.
    const FOUND_TOGETHER: bool = false;

    #[inline]
    fn submit(&mut self, slot: Slot, io: Io) -> Result<(), Full> {
        if self.flights[slot.index()].is_busy {
            return Err(Full);
        }
        self.accept(slot, io);
        Ok(())
    }

    /// Commands go out as they are built: there is no bell that several could share.
    #[inline]
    fn flush(&mut self) -> Result<(), Gone> {
        self.pump();
        self.alive()
    }

    #[inline]
    fn poll<S: Sink>(&mut self, sink: &mut S, _wait: Wait) -> Result<usize, Gone> {
        let mut found = 0;
        for _ in 0..self.refused.len().min(self.complete_max as usize) {
            if let Some(slot) = self.refused.pop_front() {
                self.hand_over(Slot(slot), sink);
                found += 1;
            }
        }
        self.pump();
        if self.lane.in_flight() > 0 {
            if let Err(errno) = self.lane.look(0) {
                self.gone = Some(Status::Errno(errno));
            }
            while found < self.complete_max as usize && self.gone.is_none() {
                match self.lane.reap() {
                    Ok(Some(ended)) => {
                        if let Some(slot) = self.book(&ended) {
                            self.hand_over(slot, sink);
                            found += 1;
                        } else {
                            self.pump();
                        }
                    }
                    Ok(None) => break,
                    Err(errno) => self.gone = Some(Status::Errno(errno)),
                }
            }
            if let Some(doubt) = self.doubt.take() {
                self.settle(doubt);
            }
        }
        self.alive().map(|()| found)
    }

    fn buffer(&mut self, slot: Slot) -> &mut [u8] {
        self.lane.buffer(slot.0)
    }

    fn close(mut self, limit: Duration) -> Closed {
        let began = Instant::now();
        let mut open = self.flights.iter().filter(|flight| flight.is_busy).count();
        let refused = std::mem::take(&mut self.refused);
        open -= refused.len().min(open);
        while open > 0 && began.elapsed() < limit {
            self.pump();
            let left_ms = limit.saturating_sub(began.elapsed()).as_millis();
            let wait_ms = u32::try_from(left_ms).unwrap_or(u32::MAX).clamp(1, 50);
            // Nothing in flight and nothing that can be sent: nothing will ever end.
            if self.lane.in_flight() == 0 || self.lane.look(wait_ms).is_err() {
                break;
            }
            while let Ok(Some(ended)) = self.lane.reap() {
                open -= usize::from(self.book(&ended).is_some());
                self.pump();
            }
        }
        self.shared.add(&self.tally);
        Closed {
            abandoned_count: u32::try_from(open).unwrap_or(u32::MAX),
        }
    }
}

//! One stream at work: its generator, its arrivals, its free slots.

use super::setup::StreamSetup;
use crate::clock::{Clock, Tick};
use crate::measure::StreamTally;
use crate::request::{Io, Op};
use crate::workload::{Arrivals, Filler, Generator, OpMix};

/// A stream and everything that it alone owns.
#[derive(Debug)]
pub(super) struct Stream {
    pub setup: StreamSetup,
    pub generator: Generator,
    pub filler: Option<Filler>,
    /// Slots of its queue that are not in flight.
    pub free: Vec<u32>,
    pub tally: StreamTally,
    /// The generator has nothing more to give.
    pub exhausted: bool,
    /// When its last I/O completed; only where it ran out of I/Os.
    pub ended: Option<Tick>,
    arrivals: Option<Arrivals>,
    next_arrival: Tick,
    /// When the I/O before the next one was due: a flush belongs to it, and is no arrival of its own.
    last_arrival: Tick,
    start: Tick,
    /// An I/O that the queue did not take; it goes first.
    held: Option<(Io, Tick)>,
}

impl Stream {
    pub fn new(setup: StreamSetup, first_slot: u32) -> Self {
        let spec = &setup.spec;
        let writes = matches!(spec.ops, OpMix::Write | OpMix::ReadWrite { .. });
        Self {
            generator: Generator::new(spec),
            filler: writes.then(|| Filler::new(spec, setup.block_bytes)),
            free: (first_slot..first_slot + spec.depth).rev().collect(),
            tally: StreamTally::default(),
            exhausted: false,
            ended: None,
            arrivals: Arrivals::staggered(
                spec.arrival,
                spec.seed,
                setup.index,
                setup.step_streams_count,
            ),
            next_arrival: Tick(0),
            last_arrival: Tick(0),
            start: Tick(0),
            held: None,
            setup,
        }
    }

    /// Whether arrivals come on their own.
    #[inline]
    pub const fn is_open_loop(&self) -> bool {
        self.arrivals.is_some()
    }

    /// Called when a slot has become free: the stream has ended with its last I/O.
    pub fn note_end(&mut self, now: Tick) {
        if self.exhausted && self.free.len() == self.setup.spec.depth as usize {
            self.ended = Some(now);
        }
    }

    /// Begins the schedule of arrivals.
    pub fn start<C: Clock>(&mut self, start: Tick, clock: &C) {
        self.start = start;
        self.next_arrival = start;
        self.schedule(clock);
    }

    /// When the next arrival is due; `None` in the closed loop or after the last I/O.
    #[inline]
    pub fn next_arrival(&self) -> Option<Tick> {
        (self.arrivals.is_some() && !self.exhausted).then_some(self.next_arrival)
    }

    /// The next I/O that may be issued now, and when it was meant to be.
    #[inline]
    pub fn next<C: Clock>(&mut self, now: Tick, clock: &C) -> Option<(Io, Tick)> {
        if let Some(held) = self.held.take() {
            return Some(held);
        }
        if self.arrivals.is_some() {
            return self.next_open(now, clock);
        }
        let io = self.generator.next();
        self.exhausted = io.is_none();
        Some((io?, now))
    }

    /// Keeps an I/O that the queue did not take.
    #[cold]
    pub fn hold(&mut self, io: Io, scheduled: Tick) {
        self.held = Some((io, scheduled));
    }

    /// Puts the payload of a write into its slot's buffer. Whether the clock must be read again, because
    /// this took time.
    #[inline]
    pub fn fill(&mut self, io: &Io, buffer: &mut [u8]) -> bool {
        match &mut self.filler {
            Some(filler) if io.op == Op::Write => {
                filler.stamp(buffer, io);
                true
            }
            _ => false,
        }
    }

    /// Arrivals due by `end` that were never issued: `each` is told what and when, oldest first.
    pub fn backlog<C: Clock>(&mut self, end: Tick, clock: &C, mut each: impl FnMut(Op, Tick)) {
        let held = self.held.take();
        if let Some((io, scheduled)) = held.filter(|(io, _)| io.op != Op::Flush) {
            each(io.op, scheduled);
        }
        // What was never issued is not of its counts.
        let mut generator = self.generator.clone();
        // Bounded: an overload of hours is told apart from one of a million arrivals by nobody.
        for _ in 0..1_000_000 {
            if self.arrivals.is_none() || self.exhausted || self.next_arrival >= end {
                return;
            }
            let Some(io) = generator.find(|io| io.op != Op::Flush) else {
                return;
            };
            each(io.op, self.next_arrival);
            self.schedule(clock);
        }
    }

    fn next_open<C: Clock>(&mut self, now: Tick, clock: &C) -> Option<(Io, Tick)> {
        if self.next_arrival > now || self.exhausted {
            return self.flush_due();
        }
        let io = self.generator.next();
        if io.is_some_and(|io| io.op == Op::Flush) {
            return Some((Io::FLUSH, self.last_arrival));
        }
        let scheduled = self.next_arrival;
        self.last_arrival = scheduled;
        self.exhausted = io.is_none();
        self.schedule(clock);
        Some((io?, scheduled))
    }

    /// A flush follows its write at once, not with the next arrival.
    fn flush_due(&mut self) -> Option<(Io, Tick)> {
        if !self.generator.flush_is_due() {
            return None;
        }
        Some((self.generator.next()?, self.last_arrival))
    }

    fn schedule<C: Clock>(&mut self, clock: &C) {
        if let Some(arrivals) = &mut self.arrivals {
            self.next_arrival = self.start.plus(clock.to_ticks(arrivals.next_ns()));
        }
    }
}

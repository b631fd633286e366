//! The hot loop: look for completions, book them, send the next I/O in the same slot.
//!
//! One pass is: issue what is due in free slots, poll every queue, read the clock once, look whether the
//! step is over. Within a poll each completion costs one clock reading (exact stamps), one histogram entry
//! and the draw of the next I/O; the completion's stamp is the next submission's. Nothing here allocates,
//! locks, formats or calls through a pointer.

use super::account::{Account, Phase};
use super::control::{Control, StopCause};
use super::setup::ReactorSetup;
use super::sink::PollSink;
use super::slots::SlotTable;
use super::stream::Stream;
use crate::backend::{Gone, Queue, Wait};
use crate::clock::{Clock, Tick};
use crate::measure::{IntervalPort, StampBound};
use crate::request::{Slot, Status};
use std::sync::Arc;

/// A sleeping poll wakes at least this often, so that a signal is never answered late.
const LONGEST_SLEEP_NS: u64 = 100_000_000;
/// Timers wake late by up to about this much: an arrival nearer than this is awaited spinning.
const TIMER_SLACK_NS: u64 = 60_000;
/// After a signal, I/Os in flight are waited for this long at most.
const INTERRUPT_GRACE_NS: u64 = 2_000_000_000;

/// A queue with its table, and its place in the reactor's list.
#[derive(Debug)]
pub(super) struct Lane<Q> {
    pub queue: Q,
    pub slots: SlotTable,
    /// The streams that issue here.
    streams: std::ops::Range<usize>,
}

/// One polling core.
#[derive(Debug)]
pub struct Reactor<Q, C> {
    pub(super) lanes: Vec<Lane<Q>>,
    pub(super) streams: Vec<Stream>,
    pub(super) account: Account<C>,
    pub(super) index: u32,
    pub(super) cpu: Option<u32>,
    pub(super) open_loop: bool,
    /// Free slots may have something to issue.
    pub(super) issue_pending: bool,
    pub(super) pass_end: Tick,
    /// The last pass issued or found something.
    pub(super) worked_before: bool,
    /// The last pass ended with a completion's stamp: what it did after that lies in the next gap.
    pub(super) tail_owed: bool,
    /// The phase at the end of the last pass.
    pub(super) pass_phase: Phase,
    /// Passes that issued or found something.
    pub(super) passes_count: u64,
    pub(super) polls_count: u64,
    pub(super) busy_ticks: u64,
    pub(super) cpu_ns_at_window: Option<u64>,
    pub(super) cpu_ns_used: u64,
    pub(super) in_flight_area: u128,
    /// Of the I/Os that the last pass issued: how long after its start, inside the window, in all.
    late_ticks: u64,
    pub(super) gone: Option<Status>,
    pub(super) stuck: bool,
}

impl<Q: Queue, C: Clock> Reactor<Q, C> {
    /// A reactor over the queues that `open` makes, one per device that its streams name. `open` is told
    /// the device, the slots and the bytes of a slot's buffer.
    ///
    /// # Errors
    /// What `open` says.
    pub fn new<E>(
        setup: &ReactorSetup,
        clock: C,
        control: Arc<Control>,
        port: IntervalPort,
        mut open: impl FnMut(u32, u32, u32) -> Result<Q, E>,
    ) -> Result<Self, E> {
        let mut ordered = setup.streams.clone();
        ordered.sort_by_key(|stream| (stream.spec.device_index, stream.index));
        let mut lanes: Vec<Lane<Q>> = Vec::new();
        let mut streams = Vec::new();
        for group in ordered.chunk_by(|a, b| a.spec.device_index == b.spec.device_index) {
            let first = streams.len();
            let mut slots = SlotTable::default();
            for stream in group {
                let place = u32::try_from(streams.len()).unwrap_or(u32::MAX);
                let first_slot = slots.add_stream(place, stream.spec.depth);
                streams.push(Stream::new(stream.clone(), first_slot));
            }
            let slot_bytes = group
                .iter()
                .map(|s| s.spec.buffer_blocks().saturating_mul(s.block_bytes))
                .max();
            let device = group[0].spec.device_index;
            let mut queue = open(device, slots.len(), slot_bytes.unwrap_or(0))?;
            for stream in &mut streams[first..] {
                fill_buffers(stream, &mut queue);
            }
            lanes.push(Lane {
                queue,
                slots,
                streams: first..streams.len(),
            });
        }
        Ok(Self {
            lanes,
            streams,
            account: Account::new(setup, clock, control, port, Q::FOUND_TOGETHER),
            index: setup.index,
            cpu: setup.cpu,
            open_loop: setup.open_loop(),
            issue_pending: true,
            pass_end: Tick(0),
            worked_before: false,
            tail_owed: false,
            pass_phase: Phase::Ramp,
            passes_count: 0,
            polls_count: 0,
            busy_ticks: 0,
            cpu_ns_at_window: None,
            cpu_ns_used: 0,
            in_flight_area: 0,
            late_ticks: 0,
            gone: None,
            stuck: false,
        })
    }

    /// Sets the common start. Call it when it has come.
    pub fn start(&mut self, start: Tick) {
        self.account.start(start);
        self.pass_end = start;
        for stream in &mut self.streams {
            stream.start(start, &self.account.clock);
        }
    }

    /// Runs until the step is over.
    pub fn run(&mut self) {
        while !self.finished() {
            self.pass();
        }
    }

    /// One pass; whether anything was issued or found.
    #[inline]
    pub fn pass(&mut self) -> bool {
        let wait = self.wait();
        let sampled = self.passes_count.is_multiple_of(StampBound::SAMPLE_EVERY);
        let in_flight = self.account.in_flight;
        let mut found = 0;
        self.account.begin_stamps();
        let issued = self.issue_pending && self.issue();
        if issued && sampled {
            self.sample_stamp_bound();
        }
        let late_ticks = if issued { self.late_ticks } else { 0 };
        let flown = (self.account.in_flight.max(in_flight), late_ticks);
        // The poll may sleep: what it finds must not bear a stamp from before.
        self.account.begin_stamps();
        for lane in &mut self.lanes {
            let mut sink = PollSink {
                account: &mut self.account,
                streams: &mut self.streams,
                slots: &mut lane.slots,
            };
            match lane.queue.poll(&mut sink, wait) {
                Ok(count) => found += count,
                Err(gone) => self.gone = Some(gone.0),
            }
        }
        let worked = found > 0 || issued;
        self.passes_count += u64::from(worked);
        if sampled && found > 0 {
            self.sample_stamp_bound();
        }
        self.after_pass(worked, found > 0, flown);
        worked
    }

    /// Fills free slots with what is due. Whether anything was issued.
    fn issue(&mut self) -> bool {
        let before = self.account.submitted_count;
        self.issue_pending = self.open_loop;
        self.late_ticks = 0;
        for lane in &mut self.lanes {
            for stream in &mut self.streams[lane.streams.clone()] {
                while self.account.issuing()
                    && let Some(&slot) = stream.free.last()
                {
                    let now = self.account.stamp();
                    let Some((io, scheduled)) = stream.next(now, &self.account.clock) else {
                        break;
                    };
                    let slot = Slot(slot);
                    let refilled =
                        stream.filler.is_some() && stream.fill(&io, lane.queue.buffer(slot));
                    if lane.queue.submit(slot, io).is_err() {
                        stream.hold(io, scheduled);
                        self.issue_pending = true;
                        break;
                    }
                    stream.free.pop();
                    let entry = lane.slots.entry(slot);
                    entry.submitted = if refilled && self.account.exact {
                        self.account.clock.now()
                    } else {
                        now
                    };
                    entry.scheduled = scheduled;
                    entry.io = io;
                    entry.busy = true;
                    self.late_ticks += self.account.inside_window(self.pass_end, entry.submitted);
                    self.account.submitted_count += 1;
                    self.account.in_flight += 1;
                }
            }
        }
        self.account.submitted_count != before
    }

    /// Takes the time. `flown` is how many were in flight until the poll found something, and by how much those
    /// that this pass issued came later than its start: to hand a command over may take as long as the device does.
    ///
    /// Amid busy passes the last completion's stamp serves as the end, which saves a reading where there
    /// is one I/O to a pass. What the pass did after it lies in the next gap, which therefore counts as
    /// busy: at the end of a run of busy passes by one idle look too much, never too little.
    #[inline]
    fn after_pass(&mut self, worked: bool, found: bool, (in_flight, late_ticks): (u64, u64)) {
        let stamp_serves = !Q::SLEEPS && found && self.worked_before && self.account.exact;
        // The last completion of a quota ends the window: nothing is in flight after it.
        let end = if stamp_serves || (found && self.is_over()) {
            self.account.last_completion
        } else {
            self.account.clock.now()
        };
        let busy = worked || self.tail_owed;
        self.worked_before = worked;
        self.tail_owed = stamp_serves;
        let start = self.pass_end;
        self.pass_end = end;
        if end >= self.account.next_edge {
            self.account.cross(end);
        }
        // A completion in the poll may have crossed an edge before this.
        let phases = (self.pass_phase, self.account.phase);
        self.pass_phase = self.account.phase;
        let gap = match phases {
            (Phase::Measure, Phase::Measure) => end.since(start),
            (before, after) if before != after => self.account.inside_window(start, end),
            _ => 0,
        };
        if gap > 0 {
            self.polls_count += 1;
            let area = u128::from(in_flight) * u128::from(gap);
            self.in_flight_area += area.saturating_sub(u128::from(late_ticks));
            if busy {
                self.busy_ticks += gap;
            }
            if !Q::SLEEPS {
                self.account.gaps.record(self.account.clock.to_ns(gap));
            }
        }
        if Q::SLEEPS {
            self.note_cpu_time();
        }
    }

    /// Hands over what this pass built apart from the next look, and takes the time it took.
    #[cold]
    fn sample_stamp_bound(&mut self) {
        let Some(first) = self.account.first_stamp() else {
            return;
        };
        for lane in &mut self.lanes {
            if let Err(Gone(status)) = lane.queue.flush() {
                self.gone = Some(status);
            }
        }
        let span = self.account.clock.now().since(first);
        self.account
            .stamp_bound
            .record(self.account.clock.to_ns(span));
    }

    /// Takes the thread's CPU time when the window begins and when it ends.
    #[inline]
    pub(super) fn note_cpu_time(&mut self) {
        match (self.account.phase, self.cpu_ns_at_window) {
            (Phase::Measure, None) => {
                self.cpu_ns_at_window = Some(crate::sys::cpu::thread_cpu_ns())
            }
            (Phase::Drain, Some(at_window)) if self.cpu_ns_used == 0 => {
                self.cpu_ns_used = crate::sys::cpu::thread_cpu_ns().saturating_sub(at_window);
            }
            _ => {}
        }
    }

    /// How long the next poll may sleep.
    #[inline]
    fn wait(&self) -> Wait {
        if !Q::SLEEPS || self.lanes.len() > 1 || (self.issue_pending && !self.open_loop) {
            return Wait::Never;
        }
        let ns = self
            .account
            .clock
            .to_ns(self.next_wake().since(self.pass_end));
        if self.open_loop {
            return match ns.saturating_sub(TIMER_SLACK_NS) {
                0 => Wait::Never,
                early => Wait::AtMostNs(early.min(LONGEST_SLEEP_NS)),
            };
        }
        Wait::AtMostNs(ns.clamp(1, LONGEST_SLEEP_NS))
    }

    /// The next moment at which something has to happen that no completion announces.
    #[must_use]
    pub fn next_wake(&self) -> Tick {
        let account = &self.account;
        let mut wake = account
            .next_edge
            .min(account.drain_deadline)
            .min(account.stall_deadline());
        if self.open_loop && account.issuing() {
            let arrivals = self.streams.iter().filter(|stream| !stream.free.is_empty());
            for arrival in arrivals.filter_map(Stream::next_arrival) {
                wake = wake.min(arrival);
            }
        }
        wake
    }

    /// The queues, for a driver in virtual time.
    pub fn queues(&self) -> impl Iterator<Item = &Q> {
        self.lanes.iter().map(|lane| &lane.queue)
    }

    /// Whether the step is over for this reactor; ends the window where something else than its time does.
    #[inline]
    pub fn finished(&mut self) -> bool {
        if self.account.phase == Phase::Drain {
            return self.drained();
        }
        let cause = self.account.control.cause();
        if cause != StopCause::None || self.gone.is_some() {
            return self.stop_early(cause);
        }
        if self.is_over() {
            self.account.end_window(self.account.last_completion);
            return true;
        }
        if self.account.stalled(self.pass_end) && !self.any_kept_back() {
            self.stuck = true;
            self.account.end_window(self.pass_end);
            return true;
        }
        false
    }

    /// Every stream has met its quota, and nothing is in flight.
    #[inline]
    fn is_over(&self) -> bool {
        self.account.in_flight == 0 && self.streams.iter().all(|stream| stream.exhausted)
    }

    fn drained(&mut self) -> bool {
        if self.account.in_flight == 0 || self.gone.is_some() {
            return true;
        }
        if self.account.control.cause() == StopCause::Abort {
            return true;
        }
        if self.pass_end >= self.account.drain_deadline && !self.any_kept_back() {
            self.stuck = true;
            return true;
        }
        false
    }

    /// Whether I/Os have ended of which it is not known yet how: a grace shorter than that takes must not call
    /// them stuck.
    #[cold]
    fn any_kept_back(&self) -> bool {
        let mut queues = self.queues();
        queues.any(|queue| queue.kept_back_count() > 0)
    }

    #[cold]
    fn stop_early(&mut self, cause: StopCause) -> bool {
        if self.gone.is_some() {
            self.account.control.stop(StopCause::Gone);
        }
        self.account.end_window(self.pass_end);
        if cause == StopCause::Signal {
            let limit = self
                .pass_end
                .plus(self.account.clock.to_ticks(INTERRUPT_GRACE_NS));
            self.account.drain_deadline = self.account.drain_deadline.min(limit);
        }
        self.gone.is_some() || cause >= StopCause::Abort
    }
}

/// Writes carry their pattern from the first I/O on; this is not measured time.
fn fill_buffers<Q: Queue>(stream: &mut Stream, queue: &mut Q) {
    if let Some(filler) = &mut stream.filler {
        for slot in &stream.free {
            filler.initial(queue.buffer(Slot(*slot)));
        }
    }
}

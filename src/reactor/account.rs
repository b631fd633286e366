//! What a completion touches besides its queue: phases of the step, figures, stamps.

use super::control::{Control, StopCause};
use super::setup::ReactorSetup;
use super::slots::Entry;
use crate::clock::{Clock, Tick};
use crate::measure::{
    ErrorTable, Gaps, Interval, IntervalPort, Slow, Slowest, StampBound, StampChoice,
};
use crate::record::StampMode;
use crate::request::Status;
use std::sync::Arc;

const SECOND_NS: u64 = 1_000_000_000;

/// Where a step stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Running, not counting.
    Ramp,
    /// The window.
    Measure,
    /// Waiting for what is in flight; nothing is issued.
    Drain,
}

/// The books of one reactor.
#[derive(Debug)]
pub(super) struct Account<C> {
    pub clock: C,
    pub control: Arc<Control>,
    pub phase: Phase,
    /// Stamp every I/O, not every poll.
    pub exact: bool,
    pub in_flight: u64,
    pub submitted_count: u64,
    pub completed_count: u64,
    pub failed_count: u64,
    pub window_failed_count: u64,
    pub window_failed_sum_ns: u64,
    pub errors: ErrorTable,
    pub slowest: Slowest,
    pub gaps: Gaps,
    pub stamp_bound: StampBound,
    pub interval: Box<Interval>,
    pub window_start: Tick,
    pub window_end: Tick,
    pub last_completion: Tick,
    pub drain_max_ns: u64,
    /// The next moment at which the phase, the interval or the stamping changes.
    pub next_edge: Tick,
    /// The last moment at which I/Os in flight are waited for; only in the drain.
    pub drain_deadline: Tick,
    interval_start: Tick,
    /// Whole seconds of the window that have passed.
    seconds_done: u64,
    port: IntervalPort,
    choice: StampChoice,
    batch_allowed: bool,
    /// The first stamp of this poll; valid while `stamped`.
    first_stamp: Tick,
    stamped: bool,
    ramp_ns: u64,
    runtime_ns: Option<u64>,
    grace_ns: u64,
    max_errors: Option<u64>,
    /// The decision on stamping still lies ahead.
    undecided: bool,
}

impl<C: Clock> Account<C> {
    pub fn new(
        setup: &ReactorSetup,
        clock: C,
        control: Arc<Control>,
        port: IntervalPort,
        found_together: bool,
    ) -> Self {
        Self {
            clock,
            control,
            phase: Phase::Ramp,
            exact: !(setup.stamp == StampChoice::Batch && found_together),
            in_flight: 0,
            submitted_count: 0,
            completed_count: 0,
            failed_count: 0,
            window_failed_count: 0,
            window_failed_sum_ns: 0,
            errors: ErrorTable::default(),
            slowest: Slowest::default(),
            gaps: Gaps::default(),
            stamp_bound: StampBound::default(),
            interval: Box::new(Interval::new(setup.ops(), setup.open_loop())),
            window_start: Tick(0),
            window_end: Tick(u64::MAX),
            last_completion: Tick(0),
            drain_max_ns: 0,
            next_edge: Tick(u64::MAX),
            drain_deadline: Tick(u64::MAX),
            interval_start: Tick(0),
            seconds_done: 0,
            port,
            choice: setup.stamp,
            batch_allowed: found_together,
            first_stamp: Tick(0),
            stamped: false,
            ramp_ns: setup.ramp_ns,
            runtime_ns: setup.runtime_ns,
            grace_ns: setup.grace_ns,
            max_errors: setup.max_errors,
            undecided: setup.stamp == StampChoice::Auto && setup.ramp_ns > 0,
        }
    }

    /// Sets the phases out from the common start.
    pub fn start(&mut self, start: Tick) {
        self.window_start = start.plus(self.clock.to_ticks(self.ramp_ns));
        if let Some(runtime_ns) = self.runtime_ns {
            self.window_end = self.window_start.plus(self.clock.to_ticks(runtime_ns));
        }
        self.last_completion = start;
        self.next_edge = if self.undecided {
            start.plus(self.clock.to_ticks(self.ramp_ns / 4 * 3))
        } else {
            self.window_start
        };
        if self.ramp_ns == 0 {
            self.cross(start);
        }
    }

    /// Whether new I/Os may be issued.
    #[inline]
    pub fn issuing(&self) -> bool {
        self.phase != Phase::Drain
    }

    /// What follows is stamped anew: the next stamp is the first of a batch.
    #[inline]
    pub const fn begin_stamps(&mut self) {
        self.stamped = false;
    }

    /// The first stamp of this poll, if there was any.
    #[inline]
    pub fn first_stamp(&self) -> Option<Tick> {
        self.stamped.then_some(self.first_stamp)
    }

    /// The moment of a completion or a submission: read anew where stamping is exact, else once a poll.
    #[inline]
    pub fn stamp(&mut self) -> Tick {
        if self.stamped && !self.exact {
            return self.first_stamp;
        }
        let now = self.clock.now();
        if !self.stamped {
            self.first_stamp = now;
            self.stamped = true;
        }
        now
    }

    /// Books a completion.
    #[inline]
    pub fn complete(
        &mut self,
        now: Tick,
        entry: &Entry,
        status: Status,
        block_bytes: u32,
        open_loop: bool,
    ) -> Option<u64> {
        // A window holds its end and not its start: one that is cut short may end at a completion, which is in
        // it. Were the start in it too, n periods would hold n + 1 completions.
        if now > self.next_edge {
            self.cross(Tick(now.0 - 1));
        }
        self.last_completion = now;
        let latency_ns = self.clock.to_ns(now.since(entry.submitted));
        if !status.is_ok() {
            self.fail(entry, status, latency_ns);
            return None;
        }
        self.completed_count += 1;
        if self.phase == Phase::Drain {
            self.drain_max_ns = self.drain_max_ns.max(latency_ns);
            return None;
        }
        let bytes = u64::from(entry.io.blocks) * u64::from(block_bytes);
        let scheduled_ns = open_loop.then(|| self.clock.to_ns(now.since(entry.scheduled)));
        self.interval
            .record(entry.io.op, bytes, latency_ns, scheduled_ns);
        if self.phase == Phase::Ramp {
            return None;
        }
        Some(latency_ns)
    }

    /// Keeps a slow I/O for the list of the slowest.
    #[cold]
    pub fn keep_slow(&mut self, now: Tick, entry: &Entry, latency_ns: u64, stream: u32) {
        let at_ns = self.clock.to_ns(now.since(self.window_start));
        self.slowest.insert(Slow {
            latency_ns,
            at_ns,
            io: entry.io,
            stream,
            abandoned: false,
        });
    }

    #[cold]
    fn fail(&mut self, entry: &Entry, status: Status, latency_ns: u64) {
        self.failed_count += 1;
        self.interval.errors_count += 1;
        self.errors.record(entry.io, status);
        if self.phase == Phase::Measure {
            self.window_failed_count += 1;
            self.window_failed_sum_ns = self.window_failed_sum_ns.saturating_add(latency_ns);
        }
        let failures = self.control.count_error();
        if self.max_errors.is_some_and(|limit| failures >= limit) {
            self.control.stop(StopCause::ErrorLimit);
        }
    }

    /// Crosses every edge up to `now`.
    #[cold]
    pub fn cross(&mut self, now: Tick) {
        while now >= self.next_edge && self.phase != Phase::Drain {
            let edge = self.next_edge;
            match self.phase {
                Phase::Ramp if self.undecided => self.decide_stamp(),
                Phase::Ramp => self.begin_window(),
                Phase::Measure if edge >= self.window_end => self.end_window(edge),
                Phase::Measure => self.end_second(edge),
                Phase::Drain => {}
            }
        }
    }

    /// Ends the window at `end`, which may lie before its planned end.
    pub fn end_window(&mut self, end: Tick) {
        if self.phase == Phase::Ramp {
            self.window_start = end;
            self.interval.reset();
        } else {
            self.interval.length_ns = self.clock.to_ns(end.since(self.interval_start));
            self.interval.in_flight_count = self.in_flight;
        }
        self.phase = Phase::Drain;
        self.window_end = end;
        self.next_edge = Tick(u64::MAX);
        self.drain_deadline = end.plus(self.clock.to_ticks(self.grace_ns));
    }

    /// I/Os have been in flight for longer than the grace with nothing completing, in a step that no
    /// clock ends.
    pub fn stalled(&self, now: Tick) -> bool {
        self.runtime_ns.is_none()
            && self.in_flight > 0
            && now.since(self.last_completion) > self.clock.to_ticks(self.grace_ns)
    }

    /// When [`Account::stalled`] may become true.
    pub fn stall_deadline(&self) -> Tick {
        match self.runtime_ns {
            None if self.in_flight > 0 => self
                .last_completion
                .plus(self.clock.to_ticks(self.grace_ns).saturating_add(1)),
            _ => Tick(u64::MAX),
        }
    }

    /// The ticks of this span that lie inside the window.
    pub fn inside_window(&self, start: Tick, end: Tick) -> u64 {
        end.min(self.window_end).since(start.max(self.window_start))
    }

    /// How the window was stamped.
    pub const fn stamp_mode(&self) -> StampMode {
        if self.exact {
            StampMode::Exact
        } else {
            StampMode::Batch
        }
    }

    fn decide_stamp(&mut self) {
        self.undecided = false;
        self.next_edge = self.window_start;
        let p50_ns = self
            .interval
            .latency
            .iter()
            .flatten()
            .filter_map(|latency| latency.percentile_ns(5_000))
            .min();
        if let (true, StampChoice::Auto, Some(p50_ns)) = (self.batch_allowed, self.choice, p50_ns) {
            let bound_ns = self.stamp_bound.bound_ns();
            self.exact = !(bound_ns > 0 && bound_ns < p50_ns / 100);
        }
    }

    fn begin_window(&mut self) {
        if !self.port.swap(&mut self.interval) {
            self.interval.reset();
        }
        self.phase = Phase::Measure;
        self.interval.second = Some(0);
        self.interval_start = self.window_start;
        self.next_edge = self.second_edge(1);
    }

    fn end_second(&mut self, edge: Tick) {
        self.seconds_done += 1;
        self.interval.length_ns = self.clock.to_ns(edge.since(self.interval_start));
        self.interval.in_flight_count = self.in_flight;
        if self.port.swap(&mut self.interval) {
            self.interval.second = Some(self.seconds_done);
            self.interval_start = edge;
        }
        self.next_edge = self.second_edge(self.seconds_done + 1);
    }

    fn second_edge(&self, number: u64) -> Tick {
        let second = self
            .window_start
            .plus(self.clock.to_ticks(number.saturating_mul(SECOND_NS)));
        second.min(self.window_end)
    }
}

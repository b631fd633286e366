//! A queue in which handing a command over takes as long as the device does: what was in flight is counted all
//! the same.
#![allow(clippy::unwrap_used)]

use super::tests::{setup, spec};
use super::{Control, Reactor, ReactorOutcome};
use crate::backend::{Closed, Full, Gone, Queue, Sink, Wait};
use crate::clock::{Clock, VirtualClock};
use crate::measure::{Collector, IntervalPort};
use crate::request::{Io, Slot, Status};
use std::sync::Arc;
use std::time::Duration;

/// Each submission takes its time; what is in flight when one looks has ended.
struct Handing {
    clock: VirtualClock,
    /// What the next submission takes; the first is the slowest.
    next_ns: u64,
    in_flight: Vec<u32>,
    buffer: Vec<u8>,
}

impl Handing {
    fn take(&mut self, slot: u32) {
        self.clock.advance_to(self.clock.now().plus(self.next_ns));
        self.next_ns = 50_000;
        self.in_flight.push(slot);
    }
}

impl Queue for Handing {
    const SLEEPS: bool = false;
    const FOUND_TOGETHER: bool = false;

    fn submit(&mut self, slot: Slot, _io: Io) -> Result<(), Full> {
        self.take(slot.0);
        Ok(())
    }
    fn flush(&mut self) -> Result<(), Gone> {
        Ok(())
    }
    fn poll<S: Sink>(&mut self, sink: &mut S, _wait: Wait) -> Result<usize, Gone> {
        let found = std::mem::take(&mut self.in_flight);
        for slot in &found {
            self.clock.advance_to(self.clock.now().plus(1_000));
            if sink
                .complete(Slot(*slot), Status::Ok, &mut self.buffer)
                .is_some()
            {
                self.take(*slot);
            }
        }
        Ok(found.len())
    }
    fn buffer(&mut self, _slot: Slot) -> &mut [u8] {
        &mut self.buffer
    }
    fn close(self, _limit: Duration) -> Closed {
        Closed::default()
    }
}

/// The outcome, and the sum of all latencies in nanoseconds.
fn run(depth: u32, ios: u64) -> (ReactorOutcome, f64) {
    let clock = VirtualClock::new();
    let mut setup = setup(0, vec![spec(depth, 1)]);
    (setup.ramp_ns, setup.runtime_ns) = (0, None);
    setup.streams[0].spec.quota.ios = Some(ios);
    let port = IntervalPort::new(setup.ops(), false);
    let open = |_, _, _| -> Result<Handing, ()> {
        Ok(Handing {
            clock: clock.clone(),
            next_ns: 1_000_000,
            in_flight: Vec::new(),
            buffer: vec![0; 4096],
        })
    };
    let control = Arc::new(Control::default());
    let mut reactor = Reactor::new(&setup, clock.clone(), control, port.clone(), open).unwrap();
    reactor.start(clock.now());
    reactor.run();
    let outcome = reactor.finish();
    let mut collector = Collector::new(1);
    while let Some(interval) = port.take() {
        collector.add(&interval);
    }
    collector.add(&outcome.last_interval);
    let latency = &collector.finish().latency[0];
    assert_eq!(latency.count(), ios);
    (outcome, latency.mean_ns().unwrap() * ios as f64)
}

/// Little's law holds for the few I/Os of a short run, whose first hand-over is most of it.
#[test]
fn what_is_in_flight_while_a_command_is_handed_over_counts() {
    for (depth, ios) in [(1, 1), (1, 4), (1, 60), (4, 4), (4, 12)] {
        let (outcome, sum_ns) = run(depth, ios);
        let area_ns = outcome.in_flight_area_ns as f64;
        let ratio = area_ns / sum_ns;
        // At depths above 1 those that a pass finds are counted to its end.
        let allowed = if depth == 1 { 0.001 } else { 0.05 };
        assert!(
            (ratio - 1.0).abs() < allowed,
            "depth {depth}, {ios} I/Os: {area_ns} ns counted, {sum_ns} ns of latencies"
        );
    }
}

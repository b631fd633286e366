//! A queue that keeps failures back until it knows what they mean: they have ended, and are not stuck.
#![allow(clippy::unwrap_used)]

use super::tests::{setup, spec};
use super::{Control, Reactor, ReactorOutcome};
use crate::backend::{Closed, Full, Gone, Queue, Sink, Wait};
use crate::clock::{Clock, Tick, VirtualClock};
use crate::errno::Errno;
use crate::measure::IntervalPort;
use crate::request::{Io, Slot, Status};
use std::sync::Arc;
use std::time::Duration;

const KEPT_NS: u64 = 100_000_000;
const GRACE_NS: u64 = 50_000_000;
const POLL_NS: u64 = 1_000_000;

/// Each I/O fails at once. All are told of once that has been known for long enough.
struct Doubting {
    clock: VirtualClock,
    kept: Vec<Slot>,
    told_at: Option<Tick>,
    /// Says that nothing is kept back.
    is_silent: bool,
    buffer: Vec<u8>,
}

impl Queue for Doubting {
    const SLEEPS: bool = false;
    const FOUND_TOGETHER: bool = false;

    fn submit(&mut self, slot: Slot, _io: Io) -> Result<(), Full> {
        self.kept.push(slot);
        let due = self.clock.now().plus(self.clock.to_ticks(KEPT_NS));
        self.told_at.get_or_insert(due);
        Ok(())
    }
    fn flush(&mut self) -> Result<(), Gone> {
        Ok(())
    }
    fn poll<S: Sink>(&mut self, sink: &mut S, _wait: Wait) -> Result<usize, Gone> {
        let pause = self.clock.to_ticks(POLL_NS);
        self.clock.advance_to(self.clock.now().plus(pause));
        if self.told_at.is_none_or(|due| self.clock.now() < due) {
            return Ok(0);
        }
        let told = std::mem::take(&mut self.kept);
        for slot in &told {
            let failed = Status::Errno(Errno(libc::EIO));
            if sink.complete(*slot, failed, &mut self.buffer).is_some() {
                self.kept.push(*slot);
            }
        }
        Ok(told.len())
    }
    fn kept_back_count(&self) -> u32 {
        match self.is_silent {
            true => 0,
            false => self.kept.len() as u32,
        }
    }
    fn buffer(&mut self, _slot: Slot) -> &mut [u8] {
        &mut self.buffer
    }
    fn close(self, _limit: Duration) -> Closed {
        Closed::default()
    }
}

fn run(runtime_ns: Option<u64>, is_silent: bool) -> ReactorOutcome {
    let clock = VirtualClock::new();
    let mut setup = setup(0, vec![spec(4, 1)]);
    (setup.ramp_ns, setup.runtime_ns, setup.grace_ns) = (0, runtime_ns, GRACE_NS);
    setup.streams[0].spec.quota.ios = runtime_ns.is_none().then_some(8);
    let port = IntervalPort::new(setup.ops(), false);
    let open = |_, _, _| -> Result<Doubting, ()> {
        Ok(Doubting {
            clock: clock.clone(),
            kept: Vec::new(),
            told_at: None,
            is_silent,
            buffer: vec![0; 4096],
        })
    };
    let control = Arc::new(Control::default());
    let mut reactor = Reactor::new(&setup, clock.clone(), control, port, open).unwrap();
    reactor.start(clock.now());
    reactor.run();
    reactor.finish()
}

#[test]
fn what_is_kept_back_for_longer_than_the_grace_is_failed_and_not_stuck() {
    // By a quota the loop itself looks for a stall; by time the drain does.
    for (runtime_ns, failed_count) in [(None, 8), (Some(10_000_000), 4)] {
        let outcome = run(runtime_ns, false);
        assert!(!outcome.stuck, "{runtime_ns:?}");
        assert_eq!(outcome.failed_count, failed_count, "{runtime_ns:?}");
        assert_eq!(outcome.abandoned.len(), 0, "{runtime_ns:?}");
        // What does not come back at all is stuck after the grace.
        let outcome = run(runtime_ns, true);
        assert!(outcome.stuck, "{runtime_ns:?}");
        assert_eq!(outcome.abandoned.len(), 4, "{runtime_ns:?}");
    }
}

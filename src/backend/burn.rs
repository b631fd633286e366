//! Burns a known time for each I/O on its reactor, around any device: if the rate falls by just that, the
//! reactor was the limit. For proofs only; what does not burn does not pass through here.

use super::sim::VirtualQueue;
use super::{BackendError, Closed, Device, DeviceFacts, Full, Gone, Queue, QueueSpec, Sink, Wait};
use crate::clock::{Clock, Tick};
use crate::request::{Io, Slot, Status};
use std::time::Duration;

/// A way to let time pass on a core.
pub trait Burn: Clone {
    /// So many nanoseconds in whatever [`Self::burn`] counts.
    fn ticks(&self, ns: u64) -> u64;
    /// Returns when so many ticks have passed; at once for 0.
    fn burn(&self, ticks: u64);
}

/// Spins on a clock.
#[derive(Debug, Clone)]
pub struct Spin<C>(pub C);

/// Readings by which the cost of one is taken, and how often that is done: others may have the core in between.
const READINGS_COUNT: u64 = 64;
const TAKINGS_COUNT: u64 = 8;

impl<C: Clock> Burn for Spin<C> {
    /// Less what the last reading adds.
    fn ticks(&self, ns: u64) -> u64 {
        if ns == 0 {
            return 0;
        }
        let taking = |_| {
            let start = self.0.now();
            for _ in 0..READINGS_COUNT {
                std::hint::black_box(self.0.now());
            }
            self.0.now().since(start) / READINGS_COUNT
        };
        let reading = (0..TAKINGS_COUNT).map(taking).min().unwrap_or(0);
        self.0.to_ticks(ns).saturating_sub(reading).max(1)
    }
    #[inline]
    fn burn(&self, ticks: u64) {
        if ticks == 0 {
            return;
        }
        let end = self.0.now().plus(ticks);
        // No PAUSE: a hypervisor takes a loop of them for a lock that waits, and takes the core away.
        while self.0.now() < end {}
    }
}

/// Moves virtual time. All reactors share it: as if they shared a core.
#[derive(Debug, Clone)]
pub struct Skip(pub crate::clock::VirtualClock);

impl Burn for Skip {
    fn ticks(&self, ns: u64) -> u64 {
        self.0.to_ticks(ns)
    }
    fn burn(&self, ticks: u64) {
        self.0
            .advance_to(Tick(self.0.now().0.saturating_add(ticks)));
    }
}

/// A device whose completions cost more.
#[derive(Debug)]
pub struct BurningDevice<'a, D, B> {
    device: &'a D,
    burn: B,
    burn_ns: u64,
}

impl<'a, D, B> BurningDevice<'a, D, B> {
    /// Burns `burn_ns` at each completion of `device`.
    pub const fn new(device: &'a D, burn: B, burn_ns: u64) -> Self {
        Self {
            device,
            burn,
            burn_ns,
        }
    }
}

impl<D: Device, B: Burn> Device for BurningDevice<'_, D, B> {
    type Queue = BurningQueue<D::Queue, B>;

    fn facts(&self) -> &DeviceFacts {
        self.device.facts()
    }

    fn features(&self) -> Vec<String> {
        self.device.features()
    }

    fn open_queue(&self, spec: QueueSpec) -> Result<Self::Queue, BackendError> {
        Ok(BurningQueue {
            queue: self.device.open_queue(spec)?,
            burn: self.burn.clone(),
            burn_ticks: self.burn.ticks(self.burn_ns),
        })
    }
}

/// A queue whose completions cost more.
#[derive(Debug)]
pub struct BurningQueue<Q, B> {
    queue: Q,
    burn: B,
    burn_ticks: u64,
}

struct BurningSink<'a, S, B> {
    sink: &'a mut S,
    burn: &'a B,
    burn_ticks: u64,
}

impl<S: Sink, B: Burn> Sink for BurningSink<'_, S, B> {
    #[inline]
    fn complete(&mut self, slot: Slot, status: Status, buffer: &mut [u8]) -> Option<Io> {
        self.burn.burn(self.burn_ticks);
        self.sink.complete(slot, status, buffer)
    }
}

impl<Q: Queue, B: Burn> Queue for BurningQueue<Q, B> {
    const SLEEPS: bool = Q::SLEEPS;
    // A reading at the first completion would lie before the burns of the others.
    const FOUND_TOGETHER: bool = false;

    fn submit(&mut self, slot: Slot, io: Io) -> Result<(), Full> {
        self.queue.submit(slot, io)
    }

    fn flush(&mut self) -> Result<(), Gone> {
        self.queue.flush()
    }

    fn poll<S: Sink>(&mut self, sink: &mut S, wait: Wait) -> Result<usize, Gone> {
        let mut burning = BurningSink {
            sink,
            burn: &self.burn,
            burn_ticks: self.burn_ticks,
        };
        self.queue.poll(&mut burning, wait)
    }

    fn kept_back_count(&self) -> u32 {
        self.queue.kept_back_count()
    }

    fn buffer(&mut self, slot: Slot) -> &mut [u8] {
        self.queue.buffer(slot)
    }

    fn close(self, limit: Duration) -> Closed {
        self.queue.close(limit)
    }
}

impl<Q: VirtualQueue, B: Burn> VirtualQueue for BurningQueue<Q, B> {
    fn next_event(&self) -> Option<Tick> {
        self.queue.next_event()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::backend::{Batch, NullDevice};
    use crate::clock::VirtualClock;
    use crate::request::Op;
    use crate::sys::clock::MachineClock;
    use crate::sysfs::Sysfs;
    use crate::units::Bytes;
    use std::cell::Cell;
    use std::rc::Rc;

    /// The best of many rounds: others may have the core in some.
    #[test]
    fn a_burn_takes_what_it_says() {
        const BURNS_COUNT: u64 = 100;
        let clock = MachineClock::new(&Sysfs::host());
        let spin = Spin(clock);
        for ns in [300, 1_000] {
            let ticks = spin.ticks(ns);
            let round = |_| {
                let start = clock.now();
                (0..BURNS_COUNT).for_each(|_| spin.burn(ticks));
                clock.to_ns(clock.now().since(start)) / BURNS_COUNT
            };
            let best_ns = (0..50).map(round).min().unwrap();
            assert!(
                (ns * 7 / 10..=ns * 13 / 10).contains(&best_ns),
                "{ns}: {best_ns}"
            );
        }
        assert_eq!(spin.ticks(0), 0);
    }

    /// A reading takes 20 ns, and once the core is away for a millisecond.
    #[derive(Clone)]
    struct Preempted {
        now_ns: Rc<Cell<u64>>,
        away_at_ns: u64,
    }

    impl Clock for Preempted {
        fn now(&self) -> Tick {
            let was_ns = self.now_ns.get();
            let away = was_ns < self.away_at_ns && was_ns + 20 >= self.away_at_ns;
            self.now_ns.set(was_ns + if away { 1_000_000 } else { 20 });
            Tick(self.now_ns.get())
        }
        fn to_ns(&self, ticks: u64) -> u64 {
            ticks
        }
        fn to_ticks(&self, ns: u64) -> u64 {
            ns
        }
    }

    /// Else nothing would be burnt, and a host that binds be taken for one that does not.
    #[test]
    fn a_core_that_is_away_while_the_cost_is_taken_shortens_no_burn() {
        for away_at_ns in [u64::MAX, 100, 1_000, 5_000] {
            let clock = Preempted {
                now_ns: Rc::default(),
                away_at_ns,
            };
            // 65 readings over 64.
            assert_eq!(Spin(clock).ticks(300), 300 - 20, "{away_at_ns}");
        }
    }

    struct Count(u32);

    impl Sink for Count {
        fn complete(&mut self, _: Slot, status: Status, _: &mut [u8]) -> Option<Io> {
            assert!(status.is_ok());
            self.0 += 1;
            None
        }
    }

    #[test]
    fn every_completion_burns_once_and_nothing_else_does() {
        let (clock, null) = (VirtualClock::new(), NullDevice::new("null", Bytes(1 << 20)));
        let device = BurningDevice::new(&null, Skip(clock.clone()), 7);
        let mut queue = device
            .open_queue(QueueSpec {
                reactor_index: 0,
                reactors_count: 1,
                slots_count: 3,
                slot_bytes: 512,
                batch: Batch {
                    submit: 3,
                    complete_min: 1,
                    complete_max: 3,
                },
                writes: false,
            })
            .unwrap();
        for slot in 0..3 {
            queue
                .submit(
                    Slot(slot),
                    Io {
                        lba: 0,
                        blocks: 1,
                        op: Op::Read,
                    },
                )
                .unwrap();
        }
        queue.flush().unwrap();
        assert_eq!(clock.now(), Tick(0));
        let mut sink = Count(0);
        while sink.0 < 3 {
            queue.poll(&mut sink, Wait::Never).unwrap();
        }
        assert_eq!(clock.now(), Tick(3 * 7));
    }
}

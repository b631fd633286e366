//! Burns a known time for each I/O on its reactor, around any device: if the rate falls by just that, the
//! reactor was the limit. For proofs only; what does not burn does not pass through here.

use super::sim::VirtualQueue;
use super::{BackendError, Closed, Device, DeviceFacts, Full, Gone, Queue, QueueSpec, Sink, Wait};
use crate::clock::{Clock, Tick};
use crate::request::{Io, Slot, Status};
use std::time::Duration;

/// A way to let time pass on a core.
pub trait Burn: Clone {
    /// Returns when so many nanoseconds have passed.
    fn burn(&self, ns: u64);
}

/// Spins on a clock.
#[derive(Debug, Clone)]
pub struct Spin<C>(pub C);

impl<C: Clock> Burn for Spin<C> {
    #[inline]
    fn burn(&self, ns: u64) {
        let end = self.0.now().plus(self.0.to_ticks(ns));
        while self.0.now() < end {
            std::hint::spin_loop();
        }
    }
}

/// Moves virtual time. All reactors share it: as if they shared a core.
#[derive(Debug, Clone)]
pub struct Skip(pub crate::clock::VirtualClock);

impl Burn for Skip {
    fn burn(&self, ns: u64) {
        self.0.advance_to(Tick(self.0.now().0.saturating_add(ns)));
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
            burn_ns: self.burn_ns,
        })
    }
}

/// A queue whose completions cost more.
#[derive(Debug)]
pub struct BurningQueue<Q, B> {
    queue: Q,
    burn: B,
    burn_ns: u64,
}

struct BurningSink<'a, S, B> {
    sink: &'a mut S,
    burn: &'a B,
    burn_ns: u64,
}

impl<S: Sink, B: Burn> Sink for BurningSink<'_, S, B> {
    #[inline]
    fn complete(&mut self, slot: Slot, status: Status, buffer: &mut [u8]) -> Option<Io> {
        self.burn.burn(self.burn_ns);
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
            burn_ns: self.burn_ns,
        };
        self.queue.poll(&mut burning, wait)
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

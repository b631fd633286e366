//! `sim`: a seeded device in virtual time. Everything about it is known, so every figure measured on it can
//! be held against the truth, exactly and repeatably.
//!
//! The model: an I/O that arrives waits for one of `parallelism` servers, for the IOPS cap and for the
//! bandwidth cap; then it is served for a time drawn from the latency model, and for its seek. Caps and
//! service may depend on the position. Faults are drawn per I/O. Devices that name the same hop pass it one after
//! the other before any of that.

mod hop;
mod model;
mod spec;

pub use hop::{Hop, Hops};
pub use spec::{LatencyModel, SimError, SimHop, SimSpec, SlowPart};

use super::{BackendError, Batch, Closed, Device, DeviceFacts, DeviceKind, Full, Gone, Queue};
use super::{QueueSpec, Sink, Wait};
use crate::clock::{Clock, Tick, VirtualClock};
use crate::request::{Io, Slot, Status};
use crate::units::Bytes;
use model::Model;
use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::rc::Rc;
use std::time::Duration;

/// A queue whose completions lie in virtual time.
pub trait VirtualQueue: Queue {
    /// When the next completion can be found; `None` when nothing in flight will ever complete.
    fn next_event(&self) -> Option<Tick>;
}

/// A simulated device. All its queues share the servers and caps.
#[derive(Debug)]
pub struct SimDevice {
    facts: DeviceFacts,
    clock: VirtualClock,
    model: Rc<RefCell<Model>>,
}

impl SimDevice {
    /// A device as `spec` says, living in `clock`'s time.
    #[must_use]
    pub fn new(path: &str, spec: &SimSpec, clock: VirtualClock) -> Self {
        Self::behind(path, spec, clock, None)
    }

    /// The same behind a hop, which other devices may share.
    #[must_use]
    pub fn behind(path: &str, spec: &SimSpec, clock: VirtualClock, hop: Option<Rc<Hop>>) -> Self {
        let facts = DeviceFacts {
            path: path.to_owned(),
            kind: DeviceKind::Sim,
            identity: None,
            model: Some("simulated device".to_owned()),
            serial: Some(format!("SIM{}", spec.seed)),
            firmware: None,
            capacity: Bytes(spec.capacity_bytes),
            logical_block: spec.logical_block,
            physical_block: None,
            rotational: None,
            max_io: None,
            max_command: None,
            block_path: None,
            device_depth: Some(spec.parallelism),
            trim: Ok(()),
            write_zeroes: Ok(None),
            flush: Ok(()),
            probe: Ok(()),
            in_use: Vec::new(),
            own_scratch: true,
        };
        Self {
            facts,
            clock,
            model: Rc::new(RefCell::new(Model::new(spec, hop))),
        }
    }
}

impl Device for SimDevice {
    type Queue = SimQueue;

    fn facts(&self) -> &DeviceFacts {
        &self.facts
    }

    fn features(&self) -> Vec<String> {
        vec!["virtual time".to_owned()]
    }

    fn open_queue(&self, spec: QueueSpec) -> Result<SimQueue, BackendError> {
        let slots = spec.slots_count as usize;
        let slot_bytes = spec.slot_bytes as usize;
        Ok(SimQueue {
            clock: self.clock.clone(),
            model: Rc::clone(&self.model),
            block_bytes: u64::from(self.facts.logical_block.bytes()),
            built: Vec::with_capacity(slots),
            flying: BinaryHeap::with_capacity(slots),
            stuck_count: 0,
            sequence: 0,
            slots_count: spec.slots_count,
            batch: spec.batch,
            slot_bytes,
            buffers: super::memory_buffers(spec, &self.facts.path)?,
        })
    }
}

/// An I/O on its way: completion time, order of submission, slot, outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Flying {
    due: Tick,
    order: u64,
    slot: Slot,
    status: Status,
}

impl Ord for Flying {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.due, self.order).cmp(&(other.due, other.order))
    }
}

impl PartialOrd for Flying {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// One reactor's queue to a simulated device.
#[derive(Debug)]
pub struct SimQueue {
    clock: VirtualClock,
    model: Rc<RefCell<Model>>,
    block_bytes: u64,
    built: Vec<(Slot, Io)>,
    flying: BinaryHeap<Reverse<Flying>>,
    stuck_count: u32,
    sequence: u64,
    slots_count: u32,
    batch: Batch,
    slot_bytes: usize,
    buffers: Vec<u8>,
}

impl SimQueue {
    #[allow(clippy::cast_possible_truncation)]
    fn in_flight(&self) -> u32 {
        (self.built.len() + self.flying.len()) as u32 + self.stuck_count
    }

    /// Whether so few are ready that a waiting poll would go on waiting: fewer than `complete_min`, while
    /// more are on their way.
    fn must_wait(&self, now: Tick) -> bool {
        let wanted = (self.batch.complete_min as usize).min(self.flying.len());
        self.flying
            .iter()
            .filter(|flying| flying.0.due <= now)
            .take(wanted)
            .count()
            < wanted
    }
}

impl Queue for SimQueue {
    const SLEEPS: bool = false;
    const FOUND_TOGETHER: bool = true;

    fn submit(&mut self, slot: Slot, io: Io) -> Result<(), Full> {
        if self.in_flight() >= self.slots_count {
            return Err(Full);
        }
        self.built.push((slot, io));
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Gone> {
        let now = self.clock.now();
        let mut model = self.model.borrow_mut();
        for (slot, io) in self.built.drain(..) {
            let bytes = u64::from(io.blocks) * self.block_bytes;
            match model.serve(now, io, bytes) {
                Some((due, status)) => {
                    let order = self.sequence;
                    self.flying.push(Reverse(Flying {
                        due,
                        order,
                        slot,
                        status,
                    }));
                }
                None => self.stuck_count += 1,
            }
            self.sequence += 1;
        }
        Ok(())
    }

    fn poll<S: Sink>(&mut self, sink: &mut S, _wait: Wait) -> Result<usize, Gone> {
        self.flush()?;
        let now = self.clock.now();
        if self.batch.complete_min > 1 && self.must_wait(now) {
            return Ok(0);
        }
        let mut found = 0;
        while found < self.batch.complete_max as usize {
            let Some(&Reverse(next)) = self.flying.peek() else {
                break;
            };
            if next.due > now {
                break;
            }
            self.flying.pop();
            found += 1;
            let start = next.slot.index() * self.slot_bytes;
            let buffer = &mut self.buffers[start..start + self.slot_bytes];
            if let Some(io) = sink.complete(next.slot, next.status, buffer) {
                self.built.push((next.slot, io));
            }
            if next.status.is_gone() {
                return Err(Gone(next.status));
            }
        }
        self.flush()?;
        Ok(found)
    }

    fn buffer(&mut self, slot: Slot) -> &mut [u8] {
        let start = slot.index() * self.slot_bytes;
        &mut self.buffers[start..start + self.slot_bytes]
    }

    fn close(self, _limit: Duration) -> Closed {
        Closed {
            abandoned_count: self.in_flight(),
        }
    }
}

impl VirtualQueue for SimQueue {
    fn next_event(&self) -> Option<Tick> {
        let next = self.flying.peek().map(|flying| flying.0.due)?;
        if self.batch.complete_min <= 1 {
            return Some(next);
        }
        // The moment at which `complete_min` of them are due.
        let wanted = (self.batch.complete_min as usize).min(self.flying.len());
        let mut due: Vec<Tick> = self.flying.iter().map(|flying| flying.0.due).collect();
        due.sort_unstable();
        due.get(wanted - 1).copied()
    }
}

//! `null`: completes at once and moves nothing. What is measured with it is the engine itself.

use super::{
    BackendError, Batch, Closed, Device, DeviceFacts, DeviceKind, Full, Gone, Queue, memory_buffers,
};
use super::{QueueSpec, Sink, Wait};
use crate::request::{Io, Slot, Status};
use crate::units::{BlockSize, Bytes};
use std::time::Duration;

/// A device that answers at once. Blocks of 512 bytes.
#[derive(Debug)]
pub struct NullDevice {
    facts: DeviceFacts,
}

impl NullDevice {
    /// A null device of this size.
    #[must_use]
    pub fn new(path: &str, capacity: Bytes) -> Self {
        let logical_block = BlockSize::new(512).expect("512 is not zero");
        Self {
            facts: DeviceFacts {
                path: path.to_owned(),
                kind: DeviceKind::Null,
                identity: None,
                model: Some("null device".to_owned()),
                serial: None,
                firmware: None,
                capacity,
                logical_block,
                physical_block: None,
                rotational: None,
                max_io: None,
                max_command: None,
                block_path: None,
                device_depth: None,
                trim: Ok(()),
                write_zeroes: Ok(None),
                flush: Ok(()),
                probe: Ok(()),
                in_use: Vec::new(),
                own_scratch: true,
            },
        }
    }
}

impl Device for NullDevice {
    type Queue = NullQueue;

    fn facts(&self) -> &DeviceFacts {
        &self.facts
    }

    fn features(&self) -> Vec<String> {
        vec!["completes at once, moves no data".to_owned()]
    }

    fn health(&self) -> Result<crate::record::Health, String> {
        Err("no device: null answers in this process".to_owned())
    }

    fn open_queue(&self, spec: QueueSpec) -> Result<NullQueue, BackendError> {
        NullQueue::new(spec, &self.facts.path)
    }
}

/// In-flight slots in the order in which they were submitted.
#[derive(Debug)]
pub struct NullQueue {
    /// A ring: `slots_count` places rounded up to a power of two.
    ring: Vec<u32>,
    mask: u32,
    head: u32,
    tail: u32,
    slots_count: u32,
    batch: Batch,
    slot_bytes: usize,
    buffers: Vec<u8>,
}

impl NullQueue {
    fn new(spec: QueueSpec, path: &str) -> Result<Self, BackendError> {
        let places = spec.slots_count.next_power_of_two();
        let slot_bytes = spec.slot_bytes as usize;
        Ok(Self {
            ring: vec![0; places as usize],
            mask: places - 1,
            head: 0,
            tail: 0,
            slots_count: spec.slots_count,
            batch: spec.batch,
            slot_bytes,
            buffers: memory_buffers(spec, path)?,
        })
    }

    const fn in_flight(&self) -> u32 {
        self.tail.wrapping_sub(self.head)
    }
}

impl Queue for NullQueue {
    const SLEEPS: bool = false;
    const FOUND_TOGETHER: bool = true;

    #[inline]
    fn submit(&mut self, slot: Slot, _io: Io) -> Result<(), Full> {
        if self.in_flight() >= self.slots_count {
            return Err(Full);
        }
        self.ring[(self.tail & self.mask) as usize] = slot.0;
        self.tail = self.tail.wrapping_add(1);
        Ok(())
    }

    #[inline]
    fn flush(&mut self) -> Result<(), Gone> {
        Ok(())
    }

    #[inline]
    fn poll<S: Sink>(&mut self, sink: &mut S, _wait: Wait) -> Result<usize, Gone> {
        let found = self.in_flight().min(self.batch.complete_max);
        for _ in 0..found {
            let slot = Slot(self.ring[(self.head & self.mask) as usize]);
            self.head = self.head.wrapping_add(1);
            let start = slot.index() * self.slot_bytes;
            let buffer = &mut self.buffers[start..start + self.slot_bytes];
            if sink.complete(slot, Status::Ok, buffer).is_some() {
                self.ring[(self.tail & self.mask) as usize] = slot.0;
                self.tail = self.tail.wrapping_add(1);
            }
        }
        Ok(found as usize)
    }

    fn buffer(&mut self, slot: Slot) -> &mut [u8] {
        let start = slot.index() * self.slot_bytes;
        &mut self.buffers[start..start + self.slot_bytes]
    }

    fn close(self, _limit: Duration) -> Closed {
        Closed { abandoned_count: 0 }
    }
}

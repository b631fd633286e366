//! A device that notes every I/O handed to it, in the order it was handed over, and does it.

use lanemark::backend::{
    BackendError, Closed, Device, DeviceFacts, Full, Gone, Queue, QueueSpec, Sink, Wait,
};
use lanemark::request::{Io, Slot, Status};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What each reactor did, by its number.
pub type Log = BTreeMap<u32, Vec<Io>>;

pub struct Recorded<D> {
    pub device: D,
    pub log: Arc<Mutex<Log>>,
}

pub struct RecordedQueue<Q> {
    queue: Q,
    reactor_index: u32,
    own: Vec<Io>,
    log: Arc<Mutex<Log>>,
}

impl<D: Device> Device for Recorded<D> {
    type Queue = RecordedQueue<D::Queue>;

    fn facts(&self) -> &DeviceFacts {
        self.device.facts()
    }
    fn features(&self) -> Vec<String> {
        self.device.features()
    }
    fn open_queue(&self, spec: QueueSpec) -> Result<Self::Queue, BackendError> {
        Ok(RecordedQueue {
            queue: self.device.open_queue(spec)?,
            reactor_index: spec.reactor_index,
            own: Vec::new(),
            log: Arc::clone(&self.log),
        })
    }
}

struct Noting<'a, S> {
    sink: &'a mut S,
    own: &'a mut Vec<Io>,
    failed_count: u32,
}

impl<S: Sink> Sink for Noting<'_, S> {
    fn complete(&mut self, slot: Slot, status: Status, buffer: &mut [u8]) -> Option<Io> {
        self.failed_count += u32::from(!status.is_ok());
        let next = self.sink.complete(slot, status, buffer);
        self.own.extend(next);
        next
    }
}

impl<Q: Queue> Queue for RecordedQueue<Q> {
    const SLEEPS: bool = Q::SLEEPS;
    const FOUND_TOGETHER: bool = Q::FOUND_TOGETHER;

    fn submit(&mut self, slot: Slot, io: Io) -> Result<(), Full> {
        self.queue.submit(slot, io)?;
        self.own.push(io);
        Ok(())
    }
    fn flush(&mut self) -> Result<(), Gone> {
        self.queue.flush()
    }
    fn poll<S: Sink>(&mut self, sink: &mut S, wait: Wait) -> Result<usize, Gone> {
        let mut noting = Noting {
            sink,
            own: &mut self.own,
            failed_count: 0,
        };
        let found = self.queue.poll(&mut noting, wait);
        assert_eq!(noting.failed_count, 0, "what is noted was really read");
        found
    }
    fn buffer(&mut self, slot: Slot) -> &mut [u8] {
        self.queue.buffer(slot)
    }
    fn close(self, limit: Duration) -> Closed {
        self.log
            .lock()
            .unwrap()
            .insert(self.reactor_index, self.own);
        self.queue.close(limit)
    }
}

//! One second of one reactor, and the double buffer through which it leaves the reactor.

use super::LatencyHistogram;
use crate::request::Op;
use crossbeam::queue::ArrayQueue;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What one reactor saw in one interval.
#[derive(Debug)]
pub struct Interval {
    /// Which second of the window; `None` for the ramp, which counts nowhere.
    pub second: Option<u64>,
    /// Real length in nanoseconds.
    pub length_ns: u64,
    /// Submit to completion, by `Op as usize`; absent for operations the step does not use.
    pub latency: [Option<LatencyHistogram>; Op::COUNT],
    /// Scheduled arrival to completion; only where arrivals are open loop.
    pub scheduled: [Option<LatencyHistogram>; Op::COUNT],
    /// Bytes moved, by `Op as usize`.
    pub bytes_count: [u64; Op::COUNT],
    /// I/Os that failed.
    pub errors_count: u64,
    /// In flight at its end.
    pub in_flight_count: u64,
}

impl Interval {
    /// An empty interval for the operations that the step uses.
    #[must_use]
    pub fn new(ops: [bool; Op::COUNT], open_loop: bool) -> Self {
        Self {
            second: None,
            length_ns: 0,
            latency: ops.map(|used| used.then(LatencyHistogram::new)),
            scheduled: ops.map(|used| (used && open_loop).then(LatencyHistogram::new)),
            bytes_count: [0; Op::COUNT],
            errors_count: 0,
            in_flight_count: 0,
        }
    }

    /// Counts one success.
    #[inline]
    pub fn record(&mut self, op: Op, bytes_count: u64, latency_ns: u64, scheduled_ns: Option<u64>) {
        let op = op as usize;
        if let Some(latency) = &mut self.latency[op] {
            latency.record(latency_ns);
        }
        if let (Some(scheduled), Some(wait_ns)) = (&mut self.scheduled[op], scheduled_ns) {
            scheduled.record(wait_ns);
        }
        self.bytes_count[op] += bytes_count;
    }

    /// Forgets everything, keeps the memory.
    pub fn reset(&mut self) {
        self.second = None;
        self.length_ns = 0;
        for latency in self.latency.iter_mut().chain(&mut self.scheduled).flatten() {
            latency.reset();
        }
        self.bytes_count = [0; Op::COUNT];
        self.errors_count = 0;
        self.in_flight_count = 0;
    }
}

/// The two ends between a reactor and the collector: full intervals one way, empty ones back. Neither end
/// ever waits or allocates.
#[derive(Debug, Clone)]
pub struct IntervalPort {
    full: Arc<ArrayQueue<Box<Interval>>>,
    empty: Arc<ArrayQueue<Box<Interval>>>,
    swapped: Arc<AtomicBool>,
}

impl IntervalPort {
    /// Spare intervals per reactor: the collector may be this many seconds late before seconds run together.
    const SPARES_COUNT: usize = 3;

    /// A port with spare intervals in it.
    #[must_use]
    pub fn new(ops: [bool; Op::COUNT], open_loop: bool) -> Self {
        let empty = ArrayQueue::new(Self::SPARES_COUNT + 1);
        for _ in 0..Self::SPARES_COUNT {
            // The queue has room for one more than this, so none is refused.
            let _ = empty.push(Box::new(Interval::new(ops, open_loop)));
        }
        Self {
            full: Arc::new(ArrayQueue::new(Self::SPARES_COUNT + 1)),
            empty: Arc::new(empty),
            swapped: Arc::new(AtomicBool::new(false)),
        }
    }

    /// Reactor's end: swaps a full interval for an empty one. Without a spare, the interval goes on: it
    /// grows longer and says so by its length, and nothing is lost.
    pub fn swap(&self, current: &mut Box<Interval>) -> bool {
        let Some(spare) = self.empty.pop() else {
            return false;
        };
        let full = std::mem::replace(current, spare);
        if let Err(full) = self.full.push(full) {
            let spare = std::mem::replace(current, full);
            let _ = self.empty.push(spare);
            return false;
        }
        self.swapped.store(true, Ordering::Relaxed);
        true
    }

    /// Whether the reactor has swapped at least once: its window has begun.
    #[must_use]
    pub fn was_swapped(&self) -> bool {
        self.swapped.load(Ordering::Relaxed)
    }

    /// Collector's end: the next full interval.
    #[must_use]
    pub fn take(&self) -> Option<Box<Interval>> {
        self.full.pop()
    }

    /// Collector's end: gives an interval back for reuse.
    pub fn give_back(&self, mut interval: Box<Interval>) {
        interval.reset();
        let _ = self.empty.push(interval);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_late_collector_loses_nothing() {
        let ops = Op::ALL.map(|op| op == Op::Read);
        let port = IntervalPort::new(ops, false);
        let mut current = Box::new(Interval::new(ops, false));
        let mut swaps = 0;
        for _ in 0..10 {
            current.record(Op::Read, 4096, 100, None);
            swaps += u64::from(port.swap(&mut current));
        }
        assert_eq!(swaps, 3);
        let mut seen = current.latency[0].as_ref().unwrap().count();
        while let Some(interval) = port.take() {
            seen += interval.latency[0].as_ref().unwrap().count();
            port.give_back(interval);
        }
        assert_eq!(seen, 10);
        assert!(port.swap(&mut current));
    }
}

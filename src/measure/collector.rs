//! Gathers the reactors' intervals into totals and a series. Runs on its own thread, never on a reactor's.

use super::{Interval, LatencyHistogram};
use crate::record::{Second, SecondDirection};
use crate::request::Op;
use std::collections::BTreeMap;

/// What the whole window held, over all reactors.
#[derive(Debug, Default)]
pub struct Collected {
    /// Submit to completion, by `Op as usize`.
    pub latency: [LatencyHistogram; Op::COUNT],
    /// Scheduled arrival to completion; empty without a rate.
    pub scheduled: [LatencyHistogram; Op::COUNT],
    /// Bytes moved, by `Op as usize`.
    pub bytes_count: [u64; Op::COUNT],
    /// Second by second.
    pub series: Vec<Second>,
}

/// A second that not every reactor has delivered yet.
#[derive(Debug, Default)]
struct Pending {
    delivered_count: usize,
    length_ns: u64,
    latency: [LatencyHistogram; Op::COUNT],
    iops: [f64; Op::COUNT],
    bytes_per_s: [f64; Op::COUNT],
    errors_count: u64,
}

/// The gathering end of all reactors.
#[derive(Debug)]
pub struct Collector {
    reactors_count: usize,
    collected: Collected,
    pending: BTreeMap<u64, Pending>,
}

impl Collector {
    /// A second older than this is closed even if a late reactor skipped it.
    const PATIENCE_SECONDS: u64 = 5;

    /// A collector for so many reactors.
    #[must_use]
    pub fn new(reactors_count: usize) -> Self {
        Self {
            reactors_count,
            collected: Collected::default(),
            pending: BTreeMap::new(),
        }
    }

    /// Adds one interval. The ramp's are passed over.
    pub fn add(&mut self, interval: &Interval) {
        let Some(second) = interval.second else {
            return;
        };
        let pending = self.pending.entry(second).or_default();
        pending.delivered_count += 1;
        pending.length_ns = pending.length_ns.max(interval.length_ns);
        pending.errors_count += interval.errors_count;
        for op in Op::ALL.map(|op| op as usize) {
            if let Some(latency) = &interval.latency[op] {
                self.collected.latency[op].merge(latency);
                pending.latency[op].merge(latency);
                pending.iops[op] += per_second(latency.count(), interval.length_ns);
            }
            if let Some(scheduled) = &interval.scheduled[op] {
                self.collected.scheduled[op].merge(scheduled);
            }
            self.collected.bytes_count[op] += interval.bytes_count[op];
            pending.bytes_per_s[op] += per_second(interval.bytes_count[op], interval.length_ns);
        }
        self.close_seconds();
    }

    /// The last second that is complete.
    #[must_use]
    pub fn last_second(&self) -> Option<&Second> {
        self.collected.series.last()
    }

    /// Seconds that are complete.
    #[must_use]
    pub fn seconds_count(&self) -> usize {
        self.collected.series.len()
    }

    /// Everything, once no more intervals will come.
    #[must_use]
    pub fn finish(mut self) -> Collected {
        while let Some((second, pending)) = self.pending.pop_first() {
            self.close(second, &pending);
        }
        self.collected
    }

    fn close_seconds(&mut self) {
        let newest = self
            .pending
            .last_key_value()
            .map_or(0, |(second, _)| *second);
        while let Some(oldest) = self.pending.first_entry() {
            let second = *oldest.key();
            let complete = oldest.get().delivered_count >= self.reactors_count;
            if !complete && second + Self::PATIENCE_SECONDS > newest {
                return;
            }
            let pending = oldest.remove();
            self.close(second, &pending);
        }
    }

    #[allow(clippy::cast_precision_loss)]
    fn close(&mut self, second: u64, pending: &Pending) {
        let [read, write, trim, writezeroes, flush, probe] =
            Op::ALL.map(|op| direction(pending, op as usize));
        self.collected.series.push(Second {
            start_s: second as f64,
            length_s: pending.length_ns as f64 / 1e9,
            read,
            write,
            trim,
            writezeroes,
            flush,
            probe,
            errors_count: pending.errors_count,
        });
    }
}

fn direction(pending: &Pending, op: usize) -> Option<SecondDirection> {
    let latency = &pending.latency[op];
    Some(SecondDirection {
        ios_count: latency.count(),
        iops: pending.iops[op],
        bytes_per_s: pending.bytes_per_s[op],
        mean_ns: latency.mean_ns()?,
        p50_ns: latency.percentile_ns(5_000)?,
        p99_ns: latency.percentile_ns(9_900)?,
        max_ns: latency.max_ns()?,
    })
}

/// `count` events in `length_ns`, per second; 0 for an empty interval.
#[allow(clippy::cast_precision_loss)]
fn per_second(count: u64, length_ns: u64) -> f64 {
    if length_ns == 0 {
        0.0
    } else {
        count as f64 * 1e9 / length_ns as f64
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn interval(second: u64, ios: u64, latency_ns: u64) -> Interval {
        let mut interval = Interval::new(Op::ALL.map(|op| op == Op::Read), false);
        interval.second = Some(second);
        interval.length_ns = 1_000_000_000;
        for _ in 0..ios {
            interval.record(Op::Read, 4096, latency_ns, None);
        }
        interval
    }

    #[test]
    fn a_second_is_closed_when_every_reactor_has_delivered_it() {
        let mut collector = Collector::new(2);
        collector.add(&interval(0, 10, 100));
        assert!(collector.last_second().is_none());
        collector.add(&interval(1, 10, 100));
        collector.add(&interval(0, 30, 300));
        let read = collector.last_second().unwrap().read.clone().unwrap();
        assert_eq!((read.ios_count, read.max_ns, read.p50_ns), (40, 300, 300));
        assert!((read.iops - 40.0).abs() < 1e-9);
        let collected = collector.finish();
        assert_eq!(collected.series.len(), 2);
        assert_eq!(collected.latency[0].count(), 50);
        assert_eq!(collected.bytes_count[0], 50 * 4096);
    }

    #[test]
    fn the_ramp_counts_nowhere() {
        let mut collector = Collector::new(1);
        let mut ramp = interval(0, 10, 100);
        ramp.second = None;
        collector.add(&ramp);
        let collected = collector.finish();
        assert_eq!(collected.latency[0].count(), 0);
        assert!(collected.series.is_empty());
    }

    #[test]
    fn a_direction_without_samples_is_absent() {
        let mut collector = Collector::new(1);
        collector.add(&interval(0, 0, 0));
        assert_eq!(collector.last_second().unwrap().read, None);
    }
}

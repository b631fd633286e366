//! The few slowest I/Os of a reactor, kept without allocation.

use crate::request::Io;

/// One of the slowest I/Os.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slow {
    /// Latency, or the age it had reached when it was abandoned.
    pub latency_ns: u64,
    /// Completion, nanoseconds into the window.
    pub at_ns: u64,
    /// What it was.
    pub io: Io,
    /// Its stream, by number in the step.
    pub stream: u32,
    /// Still in flight when the run gave up.
    pub abandoned: bool,
}

/// A list of the slowest, slowest first, of fixed length.
#[derive(Debug, Clone)]
pub struct Slowest {
    list: Vec<Slow>,
    floor_ns: u64,
}

impl Slowest {
    /// How many are kept.
    pub const KEPT_COUNT: usize = 16;
}

impl Default for Slowest {
    fn default() -> Self {
        Self {
            list: Vec::with_capacity(Self::KEPT_COUNT + 1),
            floor_ns: 0,
        }
    }
}

impl Slowest {
    /// Whether an I/O of this latency would be kept. One compare: this is all the hot loop pays.
    #[inline]
    #[must_use]
    pub fn wants(&self, latency_ns: u64) -> bool {
        latency_ns > self.floor_ns
    }

    /// Keeps an I/O if it belongs to the slowest.
    #[cold]
    pub fn insert(&mut self, slow: Slow) {
        let place = self
            .list
            .partition_point(|kept| kept.latency_ns >= slow.latency_ns);
        if place >= Self::KEPT_COUNT {
            return;
        }
        self.list.insert(place, slow);
        self.list.truncate(Self::KEPT_COUNT);
        if self.list.len() == Self::KEPT_COUNT {
            self.floor_ns = self.list.last().map_or(0, |last| last.latency_ns);
        }
    }

    /// Slowest first.
    #[must_use]
    pub fn list(&self) -> &[Slow] {
        &self.list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_stay_in_order() {
        let mut slowest = Slowest::default();
        for latency_ns in (1..=1000).rev().step_by(3).chain(1..=1000) {
            if slowest.wants(latency_ns) {
                slowest.insert(Slow {
                    latency_ns,
                    at_ns: 0,
                    io: Io::FLUSH,
                    stream: 0,
                    abandoned: false,
                });
            }
        }
        assert_eq!(slowest.list().len(), Slowest::KEPT_COUNT);
        assert_eq!(slowest.list()[0].latency_ns, 1000);
        assert!(
            slowest
                .list()
                .is_sorted_by(|a, b| a.latency_ns >= b.latency_ns)
        );
        assert!(!slowest.wants(slowest.list()[Slowest::KEPT_COUNT - 1].latency_ns));
    }
}

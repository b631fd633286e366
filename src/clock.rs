//! Time as the engine sees it: ticks of one clock, and their length in nanoseconds.

use std::cell::Cell;
use std::rc::Rc;

/// A moment, in ticks of the clock that gave it. Ticks of different clocks do not compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Tick(pub u64);

impl Tick {
    /// Ticks from `earlier` to here; 0 where `earlier` is later (two cores may differ by a few ticks).
    #[must_use]
    #[inline]
    pub const fn since(self, earlier: Tick) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// The moment `ticks` later; saturates.
    #[must_use]
    #[inline]
    pub const fn plus(self, ticks: u64) -> Tick {
        Tick(self.0.saturating_add(ticks))
    }
}

/// A monotonic clock. Cheap to read and to clone; every reactor has its own copy.
pub trait Clock: Clone {
    /// The present moment.
    fn now(&self) -> Tick;
    /// The length of `ticks` in nanoseconds.
    fn to_ns(&self, ticks: u64) -> u64;
    /// The ticks in `ns` nanoseconds; saturates.
    fn to_ticks(&self, ns: u64) -> u64;
}

/// A clock that stands still until somebody moves it. One tick is one nanosecond. Copies share the time.
#[derive(Debug, Clone, Default)]
pub struct VirtualClock(Rc<Cell<u64>>);

impl VirtualClock {
    /// A clock at 0.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Moves the time forward to `to`; a moment in the past changes nothing.
    pub fn advance_to(&self, to: Tick) {
        self.0.set(self.0.get().max(to.0));
    }
}

impl Clock for VirtualClock {
    #[inline]
    fn now(&self) -> Tick {
        Tick(self.0.get())
    }
    #[inline]
    fn to_ns(&self, ticks: u64) -> u64 {
        ticks
    }
    #[inline]
    fn to_ticks(&self, ns: u64) -> u64 {
        ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn virtual_time_is_shared_and_never_goes_back() {
        let clock = VirtualClock::new();
        let copy = clock.clone();
        clock.advance_to(Tick(50));
        copy.advance_to(Tick(10));
        assert_eq!(copy.now(), Tick(50));
        assert_eq!(Tick(3).since(Tick(9)), 0);
    }
}

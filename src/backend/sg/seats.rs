//! What the queues of one device share: how much of its depth each may take, and what they have counted.

use super::outcome::Tally;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Shared by a device and its queues.
#[derive(Debug, Default)]
pub(super) struct Shared {
    seats_count: AtomicU32,
    tally: Mutex<Tally>,
}

impl Shared {
    /// A seat for one more queue.
    pub(super) fn seat(shared: &Arc<Self>, depth: Option<u32>) -> Seat {
        // Relaxed: a hint that all read again in each poll; queues are opened before any of them runs.
        let index = shared.seats_count.fetch_add(1, Ordering::Relaxed);
        if index == 0 {
            // The first of a step: what earlier ones counted is in their record.
            shared.with(|tally| *tally = Tally::default());
        }
        Seat {
            shared: Arc::clone(shared),
            index,
            depth,
        }
    }

    /// Adds what a queue counted.
    pub(super) fn add(&self, tally: &Tally) {
        self.with(|sum| sum.merge(tally));
    }

    /// Looks at the sum.
    pub(super) fn with<T>(&self, look: impl FnOnce(&mut Tally) -> T) -> T {
        // A panic while adding leaves sums all the same.
        look(&mut self.tally.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// One queue's place. The device's depth is split evenly among those that are open, so that none that reaps
/// first takes it all.
#[derive(Debug)]
pub(super) struct Seat {
    shared: Arc<Shared>,
    index: u32,
    depth: Option<u32>,
}

impl Seat {
    /// Commands that this queue may have in the device; at least one.
    #[inline]
    pub(super) fn share(&self) -> u32 {
        let Some(depth) = self.depth else {
            return u32::MAX;
        };
        let seats = self.shared.seats_count.load(Ordering::Relaxed).max(1);
        if seats == 1 {
            return depth;
        }
        let one_more = u32::from(self.index % seats < depth % seats);
        (depth / seats + one_more).max(1)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.shared.seats_count.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_depth_is_split_evenly_and_each_has_one() {
        let shared = Arc::new(Shared::default());
        let one = Shared::seat(&shared, Some(4));
        assert_eq!(one.share(), 4);
        let two = Shared::seat(&shared, Some(4));
        let three = Shared::seat(&shared, Some(4));
        assert_eq!([&one, &two, &three].map(Seat::share), [2, 1, 1]);
        let more: Vec<_> = (0..5).map(|_| Shared::seat(&shared, Some(4))).collect();
        assert!(more.iter().chain([&one]).all(|seat| seat.share() == 1));
        drop((more, two, three));
        assert_eq!(one.share(), 4);
        assert_eq!(Shared::seat(&shared, None).share(), u32::MAX);
    }

    #[test]
    fn the_first_queue_of_a_step_begins_a_new_sum() {
        let shared = Arc::new(Shared::default());
        let mut count = Tally::new();
        count.ios_count = 5;
        let one = Shared::seat(&shared, None);
        shared.add(&count);
        let two = Shared::seat(&shared, None);
        shared.add(&count);
        assert_eq!(shared.with(|sum| sum.ios_count), 10);
        drop((one, two));
        let _next = Shared::seat(&shared, None);
        assert_eq!(shared.with(|sum| sum.ios_count), 0);
    }
}

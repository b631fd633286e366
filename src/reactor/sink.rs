//! What happens at a completion: it is booked, and the next I/O of its stream takes its slot.

use super::account::Account;
use super::slots::SlotTable;
use super::stream::Stream;
use crate::backend::Sink;
use crate::clock::Clock;
use crate::request::{Io, Slot, Status};

/// What the sink of one poll may touch.
pub(super) struct PollSink<'a, C> {
    pub account: &'a mut Account<C>,
    pub streams: &'a mut [Stream],
    pub slots: &'a mut SlotTable,
}

impl<C: Clock> Sink for PollSink<'_, C> {
    // The body of the hot loop: a call for each I/O would be felt.
    #[inline(always)]
    fn complete(&mut self, slot: Slot, status: Status, buffer: &mut [u8]) -> Option<Io> {
        let now = self.account.stamp();
        let entry = self.slots.entry(slot);
        debug_assert!(
            entry.busy,
            "a completion for slot {} with nothing in flight",
            slot.0
        );
        let stream = &mut self.streams[entry.stream as usize];
        let booked = self.account.complete(
            now,
            entry,
            status,
            stream.setup.block_bytes,
            stream.is_open_loop(),
        );
        if let Some(latency_ns) = booked {
            stream.tally.record(entry.io, latency_ns);
            if self.account.slowest.wants(latency_ns) {
                self.account
                    .keep_slow(now, entry, latency_ns, stream.setup.index);
            }
        }
        if self.account.issuing()
            && let Some((io, scheduled)) = stream.next(now, &self.account.clock)
        {
            entry.submitted = if stream.fill(&io, buffer) && self.account.exact {
                self.account.clock.now()
            } else {
                now
            };
            entry.scheduled = scheduled;
            entry.io = io;
            self.account.submitted_count += 1;
            return Some(io);
        }
        entry.busy = false;
        stream.free.push(slot.0);
        stream.note_end(now);
        self.account.in_flight -= 1;
        None
    }
}

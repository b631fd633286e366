//! The fixed table of what is in flight in one queue.

use crate::clock::Tick;
use crate::request::{Io, Slot};

/// One place of the table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    /// What is in flight; the last one where nothing is.
    pub io: Io,
    /// When it was built.
    pub submitted: Tick,
    /// When it should have been issued; equals `submitted` in the closed loop.
    pub scheduled: Tick,
    /// Place of its stream in the reactor's list. A slot never changes its stream.
    pub stream: u32,
    /// Whether it is in flight.
    pub busy: bool,
}

/// All places of one queue; a stream owns a run of them.
#[derive(Debug, Default)]
pub(super) struct SlotTable {
    entries: Vec<Entry>,
}

impl SlotTable {
    /// Gives `count` new slots to a stream; the number of the first.
    #[allow(clippy::cast_possible_truncation)]
    pub fn add_stream(&mut self, stream: u32, count: u32) -> u32 {
        let first = self.entries.len() as u32;
        let entry = Entry {
            io: Io::FLUSH,
            submitted: Tick(0),
            scheduled: Tick(0),
            stream,
            busy: false,
        };
        self.entries.extend((0..count).map(|_| entry));
        first
    }

    /// One place.
    #[inline]
    pub fn entry(&mut self, slot: Slot) -> &mut Entry {
        &mut self.entries[slot.index()]
    }

    /// Slots in all.
    #[allow(clippy::cast_possible_truncation)]
    pub fn len(&self) -> u32 {
        self.entries.len() as u32
    }

    /// What is still in flight.
    pub fn busy(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|entry| entry.busy)
    }
}

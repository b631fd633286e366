//! Commands in flight over several files of one sg node, and the buffers that they move.

use super::buffers::{Arena, PageKind};
use super::sg::{COMMANDS_PER_FILE, Command, CommandFile, Done, InLane, PollSlot};
use crate::errno::Errno;
use crate::sysfs::Sysfs;

/// Why a command was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotSent {
    /// Every file has all it takes.
    Full,
    /// The kernel refused it.
    Errno(Errno),
}

/// What a command in flight was.
#[derive(Debug, Clone, Copy, Default)]
struct Sent {
    is_busy: bool,
    slot: u32,
    length_bytes: u32,
}

/// One file and what is in flight in it.
#[derive(Debug, Clone, Copy, Default)]
struct Places {
    sent: [Sent; COMMANDS_PER_FILE],
    count: u8,
}

/// A command that has ended.
#[derive(Debug, Clone, Copy)]
pub struct Ended {
    /// Whose buffer it moved.
    pub slot: u32,
    /// Bytes it was to move.
    pub length_bytes: u32,
    /// How it ended.
    pub done: Done,
}

/// Commands over several files. Files are filled in order, so that few files have to be looked at where few
/// commands are in flight.
#[derive(Debug)]
pub struct SgLane<F> {
    // Dropped first: what the kernel knows of the buffers ends with the files.
    files: Vec<F>,
    places: Vec<Places>,
    ready: Vec<PollSlot>,
    /// Commands in flight by slot.
    in_slot: Vec<u32>,
    in_flight: u32,
    /// Files up to this one have been used.
    used_count: usize,
    /// The file that is reaped first: turns, so that none is always last.
    turn: usize,
    buffers: Arena,
}

impl<F: CommandFile> SgLane<F> {
    /// A lane over open files, with buffers for `slots_count` slots.
    ///
    /// # Errors
    /// ENOMEM.
    pub fn new(
        sysfs: &Sysfs,
        files: Vec<F>,
        slots_count: u32,
        slot_bytes: u32,
    ) -> Result<Self, Errno> {
        Ok(Self {
            places: vec![Places::default(); files.len()],
            ready: vec![PollSlot::default(); files.len()],
            in_slot: vec![0; slots_count as usize],
            in_flight: 0,
            used_count: 0,
            turn: 0,
            buffers: Arena::new(sysfs, slots_count, slot_bytes)?,
            files,
        })
    }

    /// Commands in flight.
    #[must_use]
    #[inline]
    pub const fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// What the buffers sit on.
    #[must_use]
    pub const fn pages(&self) -> PageKind {
        self.buffers.pages()
    }

    /// The buffer of a slot.
    ///
    /// # Panics
    /// Where a command is in flight in the slot, or there is no such slot.
    #[inline]
    pub fn buffer(&mut self, slot: u32) -> &mut [u8] {
        let busy = self.in_slot[slot as usize];
        assert!(busy == 0, "slot {slot} has {busy} commands in flight");
        self.buffers.slot(slot as usize)
    }

    /// Hands a command to the first file that takes one.
    ///
    /// # Errors
    /// [`NotSent`]; nothing is in flight then.
    #[inline]
    pub fn send(&mut self, command: &Command) -> Result<(), NotSent> {
        let free = |places: &Places| usize::from(places.count) < COMMANDS_PER_FILE;
        let Some(index) = self.places.iter().position(free) else {
            return Err(NotSent::Full);
        };
        let places = &mut self.places[index];
        let place = places.sent.iter().position(|sent| !sent.is_busy);
        let place = place.expect("a file with fewer than it takes has a free place");
        let file = &mut self.files[index];
        file.send(place as u8, command, &mut self.buffers, InLane(()))
            .map_err(NotSent::Errno)?;
        places.sent[place] = Sent {
            is_busy: true,
            slot: command.slot,
            length_bytes: command.payload.length_bytes(),
        };
        places.count += 1;
        self.in_slot[command.slot as usize] += 1;
        self.in_flight += 1;
        self.used_count = self.used_count.max(index + 1);
        Ok(())
    }

    /// Finds out which files have something to reap: with one file in use this costs nothing, and reaping it
    /// is the look. Waits for something up to `timeout_ms`.
    ///
    /// # Errors
    /// ENODEV where the device is gone.
    #[inline]
    pub fn look(&mut self, timeout_ms: u32) -> Result<(), Errno> {
        let used = self.used_count;
        if used == 1 && timeout_ms == 0 {
            self.ready[0].mark(true);
            return Ok(());
        }
        self.turn = if self.turn + 1 < used {
            self.turn + 1
        } else {
            0
        };
        F::look(&mut self.files[..used], &mut self.ready[..used], timeout_ms)
    }

    /// The next command that has ended in the files found by [`Self::look`].
    ///
    /// # Errors
    /// The kernel's, which leave a file of no use.
    #[inline]
    pub fn reap(&mut self) -> Result<Option<Ended>, Errno> {
        let used = self.used_count;
        for step in 0..used {
            let index = (self.turn + step) % used;
            if !self.ready[index].is_ready() {
                continue;
            }
            if self.places[index].count == 0 {
                self.ready[index].mark(false);
                continue;
            }
            match self.files[index].reap(&mut self.buffers, InLane(()))? {
                Some(done) => return Ok(Some(self.ended(index, done))),
                None => self.ready[index].mark(false),
            }
        }
        Ok(None)
    }

    #[inline]
    fn ended(&mut self, index: usize, done: Done) -> Ended {
        let places = &mut self.places[index];
        let sent = std::mem::take(&mut places.sent[usize::from(done.place)]);
        assert!(sent.is_busy, "a command ended that is not in flight");
        places.count -= 1;
        self.in_slot[sent.slot as usize] -= 1;
        self.in_flight -= 1;
        Ended {
            slot: sent.slot,
            length_bytes: sent.length_bytes,
            done,
        }
    }
}

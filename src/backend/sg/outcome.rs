//! How a command ended, and what of it the record shall tell.

use crate::errno::Errno;
use crate::proto::scsi::{Sense, SenseKey, host, sam};
use crate::request::{Io, Op, Status};
use crate::sys::sg_lane::Ended;

/// Kinds of sense that are told with their block.
const KINDS_COUNT: usize = 8;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Ok,
    /// It did what was asked, with some recovery by the device.
    Recovered,
    Failed(Status),
}

/// Judges a command. Sense counts before the host byte, which often only repeats that something was wrong.
#[inline]
pub(super) fn judge(ended: &Ended) -> Outcome {
    let done = &ended.done;
    let plain = done.status == sam::GOOD && done.host == 0 && driver_is_well(done.driver);
    if plain && done.residual_bytes == 0 {
        return Outcome::Ok;
    }
    judge_trouble(ended, plain)
}

#[cold]
fn judge_trouble(ended: &Ended, plain: bool) -> Outcome {
    let done = &ended.done;
    let short = Outcome::Failed(Status::Short {
        got_bytes: ended.length_bytes.saturating_sub(done.residual_bytes),
    });
    if plain {
        return short;
    }
    if done.status != sam::GOOD {
        let sense = done.sense;
        // A deferred error is an earlier command's; the one that brings the word of it was not carried out.
        let recovered =
            sense.is_some_and(|sense| sense.key == SenseKey::RECOVERED_ERROR && !sense.is_deferred);
        if done.status == sam::CHECK_CONDITION && recovered && done.host == 0 {
            return if done.residual_bytes > 0 {
                short
            } else {
                Outcome::Recovered
            };
        }
        return Outcome::Failed(Status::Scsi {
            status: done.status,
            key: sense.map_or(0, |sense| sense.key.0),
            asc: sense.map_or(0, |sense| sense.asc),
            ascq: sense.map_or(0, |sense| sense.ascq),
        });
    }
    if done.host != 0 {
        return Outcome::Failed(Status::Host { host: done.host });
    }
    Outcome::Failed(Status::Errno(Errno(libc::EIO)))
}

/// The low nibble; 08h only says that sense data came.
const fn driver_is_well(driver: u8) -> bool {
    matches!(driver & 0x0f, 0x00 | 0x08)
}

/// Whether a failure may mean that the device is not there any more: the kernel's state of it decides.
pub(super) const fn casts_doubt(status: Status) -> bool {
    matches!(
        status,
        Status::Host {
            host: host::NO_CONNECT
                | host::TIME_OUT
                | host::BAD_TARGET
                | host::TRANSPORT_FAILFAST
                | 0x07
                | 0x0e
        }
    )
}

/// One kind of sense, with the first place it came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Kind {
    op: Op,
    sense: Sense,
    io: Io,
    count: u64,
}

/// What the queues of a step counted.
#[derive(Debug, Clone, Default)]
pub(super) struct Tally {
    pub(super) ios_count: u64,
    pub(super) commands_count: u64,
    /// Commands whose data were copied, of those that moved any.
    pub(super) copied_count: u64,
    pub(super) moved_count: u64,
    pub(super) recovered_count: u64,
    kinds: Vec<Kind>,
}

impl Tally {
    /// With room for all it will ever keep: it never allocates later.
    pub(super) fn new() -> Self {
        Self {
            kinds: Vec::with_capacity(KINDS_COUNT),
            ..Self::default()
        }
    }

    /// Keeps the first of each kind of sense.
    #[cold]
    pub(super) fn note(&mut self, io: Io, sense: Option<Sense>) {
        let Some(sense) = sense else { return };
        self.add(Kind {
            op: io.op,
            sense,
            io,
            count: 1,
        });
    }

    fn add(&mut self, new: Kind) {
        let code = |kind: &Kind| (kind.op, kind.sense.key, kind.sense.asc, kind.sense.ascq);
        match self.kinds.iter().position(|kind| code(kind) == code(&new)) {
            Some(place) => self.kinds[place].count += new.count,
            None if self.kinds.len() < KINDS_COUNT => self.kinds.push(new),
            None => {}
        }
    }

    /// Adds what another queue counted.
    pub(super) fn merge(&mut self, other: &Self) {
        self.ios_count += other.ios_count;
        self.commands_count += other.commands_count;
        self.copied_count += other.copied_count;
        self.moved_count += other.moved_count;
        self.recovered_count += other.recovered_count;
        for kind in &other.kinds {
            self.add(*kind);
        }
    }

    /// Lines for the record.
    pub(super) fn lines(&self, asked_direct: bool) -> Vec<String> {
        let mut lines = Vec::new();
        if self.commands_count != self.ios_count {
            lines.push(format!(
                "{} commands for {} I/Os",
                self.commands_count, self.ios_count
            ));
        }
        if asked_direct && self.copied_count > 0 {
            lines.push(format!(
                "data of {} of {} commands were copied all the same: the device cannot take their alignment",
                self.copied_count, self.moved_count
            ));
        }
        for kind in &self.kinds {
            lines.push(format!(
                "sense of {} {}s, the first of {} blocks at LBA {}: {}",
                kind.count,
                kind.op.name(),
                kind.io.blocks,
                kind.io.lba,
                kind.sense
            ));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::sys::sg::Done;

    fn ended() -> Ended {
        Ended {
            slot: 0,
            length_bytes: 4096,
            done: Done {
                place: 0,
                status: 0,
                host: 0,
                driver: 0,
                residual_bytes: 0,
                sense: None,
                was_direct: false,
            },
        }
    }

    fn with(change: impl FnOnce(&mut Done)) -> Outcome {
        let mut ended = ended();
        change(&mut ended.done);
        judge(&ended)
    }

    fn sense(code: u8, key: u8, asc: u8) -> Option<Sense> {
        let mut bytes = [0; 18];
        (bytes[0], bytes[2], bytes[12]) = (code, key, asc);
        Sense::decode(&bytes)
    }

    #[test]
    fn what_is_short_or_failed_is_never_taken_for_success() {
        assert_eq!(judge(&ended()), Outcome::Ok);
        let short = Outcome::Failed(Status::Short { got_bytes: 3584 });
        assert_eq!(with(|done| done.residual_bytes = 512), short);
        let all = Outcome::Failed(Status::Short { got_bytes: 0 });
        assert_eq!(with(|done| done.residual_bytes = u32::MAX), all);
        let host = Outcome::Failed(Status::Host { host: 3 });
        assert_eq!(with(|done| done.host = 3), host);
        let eio = Outcome::Failed(Status::Errno(Errno(libc::EIO)));
        assert_eq!(with(|done| done.driver = 6), eio);
        let busy = with(|done| done.status = 0x08);
        assert!(matches!(
            busy,
            Outcome::Failed(Status::Scsi {
                status: 8,
                key: 0,
                ..
            })
        ));
    }

    #[test]
    fn a_recovered_error_is_a_success_that_is_counted_and_a_deferred_one_is_none() {
        let check = |code, key, asc| {
            with(|done| {
                (done.status, done.driver) = (2, 8);
                done.sense = sense(code, key, asc);
            })
        };
        assert_eq!(check(0x70, 1, 0x17), Outcome::Recovered);
        assert!(matches!(
            check(0x71, 1, 0x17),
            Outcome::Failed(Status::Scsi { key: 1, .. })
        ));
        let medium = Status::Scsi {
            status: 2,
            key: 3,
            asc: 0x11,
            ascq: 0,
        };
        assert_eq!(check(0xf0, 3, 0x11), Outcome::Failed(medium));
        let short = with(|done| {
            (done.status, done.residual_bytes) = (2, 512);
            done.sense = sense(0x70, 1, 0x17);
        });
        assert_eq!(short, Outcome::Failed(Status::Short { got_bytes: 3584 }));
    }

    #[test]
    fn the_first_of_each_kind_is_told_with_its_block() {
        let (mut one, mut other) = (Tally::new(), Tally::new());
        let io = |lba| Io {
            lba,
            blocks: 8,
            op: Op::Read,
        };
        for lba in [4656, 9] {
            one.note(
                io(lba),
                Sense::decode(&[0xf0, 0, 3, 0, 0, 0x12, 0x34, 10, 0, 0, 0, 0, 0x11, 0]),
            );
        }
        other.note(io(1), sense(0x70, 5, 0x21));
        other.note(io(2), None);
        (other.ios_count, other.commands_count) = (2, 8);
        one.merge(&other);
        let lines = one.lines(false);
        assert_eq!(lines[0], "8 commands for 2 I/Os");
        assert_eq!(
            lines[1],
            "sense of 2 reads, the first of 8 blocks at LBA 4656: medium error, unrecovered read error (3/11/00) at LBA 4660"
        );
        assert!(lines[2].contains("out of range") && lines.len() == 3);
        for asc in 0..100 {
            one.note(io(0), sense(0x70, 4, asc));
        }
        assert_eq!(one.kinds.len(), KINDS_COUNT);
    }
}

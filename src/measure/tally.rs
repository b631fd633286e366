//! Counts per stream, and failures by status.

use crate::request::{Io, Op, Status};

/// Successes of one operation of one stream inside the window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OpTally {
    /// I/Os.
    pub ios_count: u64,
    /// Logical blocks they moved.
    pub blocks_count: u64,
    /// Sum of latencies.
    pub sum_ns: u64,
    /// Largest latency.
    pub max_ns: u64,
}

/// What one stream did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamTally {
    /// By `Op as usize`.
    pub ops: [OpTally; Op::COUNT],
    /// Lowest block touched; `u64::MAX` where none was.
    pub first_lba: u64,
    /// The block after the highest touched; 0 where none was.
    pub end_lba: u64,
}

impl Default for StreamTally {
    fn default() -> Self {
        Self {
            ops: Default::default(),
            first_lba: u64::MAX,
            end_lba: 0,
        }
    }
}

impl StreamTally {
    /// Counts one success.
    #[inline]
    pub fn record(&mut self, io: Io, latency_ns: u64) {
        let tally = &mut self.ops[io.op as usize];
        tally.ios_count += 1;
        tally.blocks_count += u64::from(io.blocks);
        tally.sum_ns = tally.sum_ns.saturating_add(latency_ns);
        tally.max_ns = tally.max_ns.max(latency_ns);
        // Flushes and probes have no place.
        if io.blocks > 0 {
            self.first_lba = self.first_lba.min(io.lba);
            self.end_lba = self.end_lba.max(io.lba + u64::from(io.blocks));
        }
    }
}

/// One kind of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorCount {
    /// How it ended.
    pub status: Status,
    /// What it was.
    pub op: Op,
    /// How often.
    pub count: u64,
    /// First block of the first one.
    pub first_lba: u64,
}

/// Failures by status and operation. Of fixed size: past it, further kinds are counted together.
#[derive(Debug, Clone)]
pub struct ErrorTable {
    kinds: Vec<ErrorCount>,
    other_count: u64,
}

impl ErrorTable {
    const KINDS_COUNT: usize = 32;

    /// Counts one failure.
    #[cold]
    pub fn record(&mut self, io: Io, status: Status) {
        match self
            .kinds
            .iter()
            .position(|kind| kind.status == status && kind.op == io.op)
        {
            Some(place) => self.kinds[place].count += 1,
            None if self.kinds.len() < Self::KINDS_COUNT => {
                self.kinds.push(ErrorCount {
                    status,
                    op: io.op,
                    count: 1,
                    first_lba: io.lba,
                });
            }
            None => self.other_count += 1,
        }
    }

    /// Adds the failures of another table.
    pub fn merge(&mut self, other: &Self) {
        for theirs in &other.kinds {
            let mine = self
                .kinds
                .iter_mut()
                .find(|kind| kind.status == theirs.status && kind.op == theirs.op);
            match mine {
                Some(kind) => kind.count += theirs.count,
                None => self.kinds.push(*theirs),
            }
        }
        self.other_count += other.other_count;
    }

    /// All failures.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.kinds.iter().map(|kind| kind.count).sum::<u64>() + self.other_count
    }

    /// As a record shows them, most frequent first.
    #[must_use]
    pub fn tallies(&self) -> Vec<crate::record::ErrorTally> {
        let mut list: Vec<_> = self
            .kinds
            .iter()
            .map(|kind| crate::record::ErrorTally {
                status: status_name(kind.status),
                op: kind.op.name().to_owned(),
                count: kind.count,
                first_lba: kind.first_lba,
            })
            .collect();
        if self.other_count > 0 {
            list.push(crate::record::ErrorTally {
                status: "further kinds of failure".to_owned(),
                op: "any".to_owned(),
                count: self.other_count,
                first_lba: 0,
            });
        }
        list.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.status.cmp(&b.status)));
        list
    }
}

impl Default for ErrorTable {
    fn default() -> Self {
        Self {
            kinds: Vec::with_capacity(Self::KINDS_COUNT),
            other_count: 0,
        }
    }
}

/// A status in words.
#[must_use]
pub fn status_name(status: Status) -> String {
    match status {
        Status::Ok => "success".to_owned(),
        Status::Errno(errno) => errno.to_string(),
        Status::Short { got_bytes } => format!("short transfer ({got_bytes} bytes moved)"),
        Status::Nvme { sct, sc } => {
            format!("NVMe {}", crate::proto::nvme::NvmeStatus::new(sct, sc))
        }
        Status::Scsi {
            status,
            key,
            asc,
            ascq,
        } => {
            format!(
                "SCSI {}",
                crate::proto::scsi::in_words(status, key, asc, ascq)
            )
        }
        Status::Host { host } => {
            let name = crate::proto::scsi::host_name(host);
            format!("host adapter: {name} ({host:02x}h)")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::errno::Errno;

    #[test]
    fn the_span_of_what_was_touched_is_kept_and_a_flush_has_no_place() {
        let mut tally = StreamTally::default();
        tally.record(Io::FLUSH, 1);
        assert_eq!((tally.first_lba, tally.end_lba), (u64::MAX, 0));
        for lba in [70, 16, 40] {
            let io = Io {
                lba,
                blocks: 8,
                op: Op::Read,
            };
            tally.record(io, 1);
        }
        assert_eq!((tally.first_lba, tally.end_lba), (16, 78));
    }

    #[test]
    fn failures_are_tallied_by_status_and_op_with_their_first_block() {
        let mut table = ErrorTable::default();
        let read = Io {
            lba: 7,
            blocks: 1,
            op: Op::Read,
        };
        table.record(read, Status::Errno(Errno(libc::EIO)));
        table.record(Io { lba: 9, ..read }, Status::Errno(Errno(libc::EIO)));
        table.record(
            Io {
                op: Op::Write,
                ..read
            },
            Status::Errno(Errno(libc::EIO)),
        );
        let tallies = table.tallies();
        assert_eq!(tallies.len(), 2);
        assert_eq!((tallies[0].count, tallies[0].first_lba), (2, 7));
        assert!(tallies[0].status.starts_with("EIO"));
    }

    #[test]
    fn a_full_table_still_counts_every_failure() {
        let mut table = ErrorTable::default();
        for number in 0..100 {
            table.record(Io::FLUSH, Status::Errno(Errno(number)));
        }
        assert_eq!(table.count(), 100);
        assert_eq!(
            table.tallies().iter().map(|tally| tally.count).sum::<u64>(),
            100
        );
    }
}

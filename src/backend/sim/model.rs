//! The arithmetic of the simulated device.

use super::hop::Hop;
use super::spec::{LatencyModel, SimSpec};
use crate::clock::Tick;
use crate::errno::Errno;
use crate::request::{Io, Op, Status};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::rc::Rc;

/// State of the device, shared by its queues.
#[derive(Debug)]
pub(super) struct Model {
    spec: SimSpec,
    /// What it shares with others.
    hop: Option<Rc<Hop>>,
    /// When each server is free again.
    servers: BinaryHeap<Reverse<u64>>,
    /// Earliest next start under the IOPS cap, in picoseconds so that odd caps do not drift.
    cap_free_ps: u128,
    /// Earliest next start under the bandwidth cap, in picoseconds.
    band_free_ps: u128,
    served_count: u64,
    /// Blocks of the device, at least 1.
    blocks: u64,
    /// Where the last I/O ended: the next one seeks unless it follows on.
    head_lba: u64,
    rng: Xoshiro256PlusPlus,
}

impl Model {
    pub(super) fn new(spec: &SimSpec, hop: Option<Rc<Hop>>) -> Self {
        let mut servers = BinaryHeap::with_capacity(spec.parallelism as usize + 1);
        servers.extend((0..spec.parallelism).map(|_| Reverse(0)));
        Self {
            hop,
            servers,
            cap_free_ps: 0,
            band_free_ps: 0,
            served_count: 0,
            blocks: (spec.capacity_bytes / u64::from(spec.logical_block.bytes())).max(1),
            head_lba: 0,
            rng: Xoshiro256PlusPlus::seed_from_u64(spec.seed),
            spec: spec.clone(),
        }
    }

    /// When an I/O that arrives now completes, and how; `None`: never.
    pub(super) fn serve(&mut self, now: Tick, io: Io, bytes: u64) -> Option<(Tick, Status)> {
        self.served_count += 1;
        if self
            .spec
            .stuck_after
            .is_some_and(|after| self.served_count > after)
        {
            return None;
        }
        // Trims and zeros are commands without data.
        let carried_bytes = match io.op {
            Op::Trim | Op::WriteZeroes => 0,
            _ => bytes,
        };
        let now = (self.hop.as_ref()).map_or(now, |hop| hop.pass(now, carried_bytes));
        let Reverse(free_ns) = self.servers.pop().unwrap_or(Reverse(0));
        let mut start_ns = now.0.max(free_ns);
        start_ns = start_ns.max(self.pass_cap(start_ns));
        start_ns = start_ns.max(self.pass_band(start_ns, io.lba, carried_bytes));
        start_ns = self.after_stall(start_ns);
        let done_ns = start_ns.saturating_add(self.service_ns(io));
        self.servers.push(Reverse(done_ns));
        Some((Tick(done_ns), self.outcome()))
    }

    /// The start that the IOPS cap allows, and the next one after it.
    fn pass_cap(&mut self, wish_ns: u64) -> u64 {
        let Some(cap_iops) = self.spec.cap_iops else {
            return wish_ns;
        };
        let start_ps = (u128::from(wish_ns) * 1000).max(self.cap_free_ps);
        self.cap_free_ps = start_ps + 1_000_000_000_000 / u128::from(cap_iops);
        ns_after(start_ps)
    }

    /// The start that the bandwidth cap allows: the link carries one transfer after another.
    fn pass_band(&mut self, wish_ns: u64, lba: u64, bytes: u64) -> u64 {
        let Some((first, last)) = self.spec.cap_bytes_per_s else {
            return wish_ns;
        };
        let cap = between(first, last, lba, self.blocks).max(1);
        let start_ps = (u128::from(wish_ns) * 1000).max(self.band_free_ps);
        self.band_free_ps = start_ps + u128::from(bytes) * 1_000_000_000_000 / u128::from(cap);
        ns_after(start_ps)
    }

    /// Nothing starts during a stall.
    fn after_stall(&self, start_ns: u64) -> u64 {
        match self.spec.stall {
            Some((at_ns, length_ns)) if (at_ns..at_ns + length_ns).contains(&start_ns) => {
                at_ns + length_ns
            }
            _ => start_ns,
        }
    }

    fn service_ns(&mut self, io: Io) -> u64 {
        let base = match (io.op, self.spec.write_latency) {
            (Op::Write | Op::WriteZeroes, Some(write)) => write,
            _ => self.spec.latency,
        };
        let drawn_ns = match base {
            LatencyModel::Fixed { ns } => ns,
            LatencyModel::Uniform { low_ns, high_ns } => low_ns + self.below(high_ns - low_ns + 1),
        };
        let service_ns = drawn_ns.saturating_mul(self.slowness(io.lba));
        service_ns.saturating_add(self.seek_ns(io))
    }

    /// How many times longer the position takes.
    #[allow(clippy::cast_precision_loss)]
    fn slowness(&self, lba: u64) -> u64 {
        let Some(part) = self.spec.slow else {
            return 1;
        };
        let at_pct = lba as f64 * 100.0 / self.blocks as f64;
        let is_inside = (part.from_pct..part.to_pct).contains(&at_pct);
        if is_inside { u64::from(part.factor) } else { 1 }
    }

    /// The way from where the last I/O ended.
    fn seek_ns(&mut self, io: Io) -> u64 {
        let distance = io.lba.abs_diff(self.head_lba);
        self.head_lba = io.lba + u64::from(io.blocks);
        match self.spec.seek_ns {
            Some((short_ns, long_ns)) if distance > 0 => {
                between(short_ns, long_ns, distance, self.blocks)
            }
            _ => 0,
        }
    }

    fn outcome(&mut self) -> Status {
        if self
            .spec
            .gone_after
            .is_some_and(|after| self.served_count > after)
        {
            return Status::Errno(Errno(libc::ENODEV));
        }
        if self.spec.errors_pct > 0.0 && self.unit() * 100.0 < self.spec.errors_pct {
            return Status::Errno(Errno(libc::EIO));
        }
        Status::Ok
    }

    /// Uniform below `bound`; the bias of a 128-bit product is under 2^-64.
    fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.rng.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// Uniform in [0, 1).
    #[allow(clippy::cast_precision_loss)]
    fn unit(&mut self) -> f64 {
        (self.rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// A value that goes from `first` to `last` while `at` goes from 0 to `end`.
#[allow(clippy::cast_possible_truncation)]
fn between(first: u64, last: u64, at: u64, end: u64) -> u64 {
    let (at, end) = (u128::from(at.min(end)), u128::from(end));
    // Between two numbers of 64 bits.
    ((u128::from(first) * (end - at) + u128::from(last) * at) / end) as u64
}

/// The first whole nanosecond not before this moment.
#[allow(clippy::cast_possible_truncation)]
fn ns_after(ps: u128) -> u64 {
    ps.div_ceil(1000) as u64
}

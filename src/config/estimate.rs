//! How long a plan takes and how much it writes, before anything starts. What a device's speed decides is
//! estimated at a pace that is told along with it.

use super::echo::bytes_of;
use super::plan::{PlannedDevice, StepPlan};
use super::rounds::Rounds;
use crate::backend::{DeviceFacts, DeviceKind};
use crate::units::Nanos;
use crate::workload::{Access, Arrival, OpMix, StreamSpec};
use std::fmt;

/// What a device is taken to do where its own speed is not known yet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pace {
    /// Bytes a second.
    pub bytes_per_s: f64,
    /// Random I/Os a second.
    pub random_iops: f64,
}

impl Pace {
    /// A usual device of its kind: a disk of 7200 rpm, a SATA SSD, an NVMe SSD.
    #[must_use]
    pub fn of(facts: &[DeviceFacts]) -> Self {
        let is_nvme =
            |facts: &DeviceFacts| facts.kind == DeviceKind::Nvme || facts.path.contains("nvme");
        let (bytes_per_s, random_iops) = if facts.iter().any(|one| one.rotational == Some(true)) {
            (200e6, 200.0)
        } else if facts.iter().all(is_nvme) {
            (3e9, 500e3)
        } else {
            (500e6, 90e3)
        };
        Self {
            bytes_per_s,
            random_iops,
        }
    }
}

/// What a plan will take.
#[derive(Debug, Clone, PartialEq)]
pub struct Estimate {
    /// Each step of one round, in order, cooling down included.
    pub steps_s: Vec<f64>,
    /// All of it; with rounds, the fewest there can be.
    pub least_s: f64,
    /// All of it; with rounds, all there can be.
    pub most_s: f64,
    /// Bytes written; with rounds, in the fewest there can be.
    pub least_written_bytes: f64,
    /// Bytes written; with rounds, in all there can be.
    pub most_written_bytes: f64,
    /// Whether the amounts follow from the plan alone.
    pub is_exact: bool,
    /// What was assumed otherwise.
    pub pace: Pace,
}

/// Estimates the steps of a plan for these devices.
#[must_use]
#[allow(clippy::cast_precision_loss)]
pub fn estimate(
    steps: &[StepPlan],
    rounds: Option<&Rounds>,
    devices: &[PlannedDevice],
    pace: Pace,
) -> Estimate {
    let mut all = Estimate {
        steps_s: Vec::with_capacity(steps.len()),
        least_s: 0.0,
        most_s: 0.0,
        least_written_bytes: 0.0,
        most_written_bytes: 0.0,
        is_exact: true,
        pace,
    };
    let (least, most) = rounds.map_or((1.0, 1.0), |rounds| {
        let window_count = rounds.window_count.min(rounds.most_count);
        (window_count as f64, rounds.most_count as f64)
    });
    for step in steps {
        let one = of_step(devices, step, pace);
        let (least, most) = if step.origin.is_precondition {
            (1.0, 1.0)
        } else {
            (least, most)
        };
        all.steps_s.push(one.time_s);
        all.least_s += one.time_s * least;
        all.most_s += one.time_s * most;
        all.least_written_bytes += one.written_bytes * least;
        all.most_written_bytes += one.written_bytes * most;
        all.is_exact &= one.is_exact;
    }
    all
}

struct OfStep {
    time_s: f64,
    written_bytes: f64,
    is_exact: bool,
}

#[allow(clippy::cast_precision_loss)]
fn of_step(devices: &[PlannedDevice], step: &StepPlan, pace: Pace) -> OfStep {
    let limits = &step.limits;
    let streams: Vec<OfStream> = step
        .streams
        .iter()
        .map(|stream| of_stream(devices, step, stream, pace))
        .collect();
    // Streams share the pace; a step without a time ends with the slowest of its amounts.
    let demand_s: f64 = streams
        .iter()
        .map(|stream| stream.amount_s.unwrap_or(0.0))
        .sum();
    let has_amounts = streams.iter().all(|stream| stream.amount_s.is_some());
    let window_s = match limits.runtime {
        Some(time) if has_amounts => time.as_s().min(demand_s),
        Some(time) => time.as_s(),
        None => demand_s,
    };
    let mut written_bytes = 0.0;
    let mut is_exact = streams.iter().all(|stream| stream.amount_s.is_none());
    for stream in &streams {
        if stream.write_share > 0.0 {
            let by_time = stream.rate_bytes_per_s * (window_s + limits.ramp.as_s());
            let bytes = stream
                .amount_bytes
                .map_or(by_time, |amount| match limits.runtime {
                    Some(_) => amount.min(by_time),
                    None => amount,
                });
            written_bytes += bytes * stream.write_share;
            is_exact &= stream.is_rated;
        }
    }
    OfStep {
        time_s: window_s + Nanos::as_s(limits.ramp) + step.cool_down.as_s(),
        written_bytes,
        is_exact,
    }
}

struct OfStream {
    /// Time for its amount alone, at the pace; absent without one.
    amount_s: Option<f64>,
    amount_bytes: Option<f64>,
    rate_bytes_per_s: f64,
    write_share: f64,
    is_rated: bool,
}

#[allow(clippy::cast_precision_loss)]
fn of_stream(
    devices: &[PlannedDevice],
    step: &StepPlan,
    stream: &StreamSpec,
    pace: Pace,
) -> OfStream {
    let block = devices[stream.device_index as usize].logical_block;
    let sizes = stream.sizes.iter();
    let mean_bytes: f64 = sizes
        .map(|size| bytes_of(block, u64::from(size.blocks)) as f64 * size.share_pct / 100.0)
        .sum();
    let is_random = matches!(stream.access, Access::Random { .. });
    let by_bandwidth = pace.bytes_per_s / mean_bytes;
    let alone_iops = if is_random {
        pace.random_iops.min(by_bandwidth)
    } else {
        by_bandwidth
    };
    let (iops, is_rated) = match stream.arrival {
        Arrival::Closed => (alone_iops / step.streams.len() as f64, false),
        Arrival::Fixed { iops } | Arrival::Poisson { iops } => (iops, true),
    };
    let by_ios = stream.quota.ios.map(|ios| ios as f64 * mean_bytes);
    let by_blocks = stream
        .quota
        .blocks
        .map(|blocks| bytes_of(block, blocks) as f64);
    let amount_bytes = match (by_ios, by_blocks) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    };
    OfStream {
        amount_s: amount_bytes.map(|bytes| bytes / mean_bytes / alone_iops),
        amount_bytes,
        rate_bytes_per_s: iops * mean_bytes,
        write_share: match stream.ops {
            OpMix::Write | OpMix::WriteZeroes => 1.0,
            OpMix::ReadWrite { read_pct } => 1.0 - read_pct / 100.0,
            OpMix::Read | OpMix::Trim | OpMix::Probe | OpMix::ProbeRead => 0.0,
        },
        is_rated,
    }
}

impl Estimate {
    /// The time it takes, in words.
    #[must_use]
    pub fn times(&self) -> String {
        range(&time_text(self.least_s), &time_text(self.most_s))
    }
}

/// `about 12 min, writes about 85 GB (at 0.5 GB/s and 90000 random IOPS)`.
impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let about = if self.is_exact { "" } else { "about " };
        write!(f, "{about}{}; ", self.times())?;
        if self.most_written_bytes > 0.0 {
            let bytes = range(
                &bytes_text(self.least_written_bytes),
                &bytes_text(self.most_written_bytes),
            );
            write!(f, "writes {about}{bytes}")?;
        } else {
            f.write_str("writes nothing")?;
        }
        if !self.is_exact {
            write!(
                f,
                " (at {:.1} GB/s and {} random IOPS)",
                self.pace.bytes_per_s / 1e9,
                self.pace.random_iops
            )?;
        }
        Ok(())
    }
}

fn range(least: &str, most: &str) -> String {
    if least == most {
        least.to_owned()
    } else {
        format!("{least} to {most}")
    }
}

/// `45 s`, `12 min`, `3 h 20 min`.
#[must_use]
pub fn time_text(time_s: f64) -> String {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let whole = time_s.ceil() as u64;
    match whole {
        0..=119 => format!("{whole} s"),
        120..=7199 => format!("{} min", whole.div_ceil(60)),
        _ => format!("{} h {} min", whole / 3600, whole % 3600 / 60),
    }
}

fn bytes_text(bytes: f64) -> String {
    match bytes {
        bytes if bytes < 1e6 => format!("{:.0} kB", bytes / 1e3),
        bytes if bytes < 1e9 => format!("{:.0} MB", bytes / 1e6),
        bytes if bytes < 1e12 => format!("{:.1} GB", bytes / 1e9),
        bytes => format!("{:.1} TB", bytes / 1e12),
    }
}

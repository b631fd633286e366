//! The plan as text and as JSON, every value resolved, in bytes and in blocks.

use super::plan::{Plan, PlannedDevice, StampChoice, StepPlan};
use crate::units::{BlockSize, Blocks, Bytes, CpuList};
use crate::workload::{Access, Arrival, DataPattern, Distribution, OpMix, StreamSpec};
use std::fmt::Write as _;

/// fio's name of what a stream does.
pub(super) const fn rw_name(stream: &StreamSpec) -> &'static str {
    match (&stream.access, stream.ops) {
        (_, OpMix::Probe) => "probe",
        (_, OpMix::ProbeRead) => "probe-read",
        (Access::Sequential, OpMix::Read) => "read",
        (Access::Sequential, OpMix::Write) => "write",
        (Access::Sequential, OpMix::Trim) => "trim",
        (Access::Sequential, OpMix::WriteZeroes) => "writezeroes",
        (Access::Sequential, OpMix::ReadWrite { .. }) => "rw",
        (Access::Random { .. }, OpMix::Read) => "randread",
        (Access::Random { .. }, OpMix::Write) => "randwrite",
        (Access::Random { .. }, OpMix::Trim) => "randtrim",
        (Access::Random { .. }, OpMix::WriteZeroes) => "randwritezeroes",
        (Access::Random { .. }, OpMix::ReadWrite { .. }) => "randrw",
    }
}

/// `stamp` as a job would say it.
pub(super) const fn stamp_name(stamp: StampChoice) -> &'static str {
    match stamp {
        StampChoice::Auto => "auto",
        StampChoice::Exact => "exact",
        StampChoice::Batch => "batch",
    }
}

/// Blocks in bytes. A region lies within its device, whose capacity in bytes is 64 bits; what a quota
/// asks for may be more, and is then shown as the most there is.
pub(super) fn bytes_of(block: BlockSize, blocks: u64) -> u64 {
    block
        .bytes_of(Blocks(blocks))
        .map_or(u64::MAX, |bytes| bytes.0)
}

/// `distribution` as a job would say it.
pub(super) fn distribution_text(distribution: &Distribution) -> String {
    match distribution {
        Distribution::Uniform => "uniform".to_owned(),
        Distribution::Zipf(theta) => format!("zipf:{theta}"),
        Distribution::Pareto(h) => format!("pareto:{h}"),
        Distribution::Normal(sigma_pct) => format!("normal:{sigma_pct}"),
        Distribution::Zoned(zones) => {
            let list: Vec<String> = zones
                .iter()
                .map(|zone| format!("{}/{}", zone.access_pct, zone.size_pct))
                .collect();
            format!("zoned:{}", list.join(":"))
        }
    }
}

/// `data` as a job would say it.
pub(super) fn data_text(data: DataPattern) -> String {
    match data {
        DataPattern::Random => "random".to_owned(),
        DataPattern::Zero => "zero".to_owned(),
        DataPattern::Fixed(bytes) => format!("fixed:{:08X}", u32::from_be_bytes(bytes)),
        DataPattern::Compressible(share_pct) => format!("compressible:{share_pct}%"),
    }
}

/// `randrw 70 % reads, 4 KiB`.
fn work_text(stream: &StreamSpec, block: BlockSize) -> String {
    let mut text = rw_name(stream).to_owned();
    if let OpMix::ReadWrite { read_pct } = stream.ops {
        // Writing to a String cannot fail.
        let _ = write!(text, " {read_pct} % reads,");
    }
    let sizes: Vec<String> = stream
        .sizes
        .iter()
        .map(|size| {
            let bytes = Bytes(bytes_of(block, u64::from(size.blocks)));
            if stream.sizes.len() == 1 {
                bytes.to_string()
            } else {
                format!("{bytes} {:.4} %", size.share_pct)
            }
        })
        .collect();
    if stream.ops != OpMix::Probe {
        let _ = write!(text, " {}", sizes.join(", "));
    }
    text
}

/// One line on what a step does. `blocks` are the logical blocks of its devices.
pub(super) fn summary(step: &StepPlan, blocks: impl Iterator<Item = BlockSize>) -> String {
    let blocks: Vec<BlockSize> = blocks.collect();
    let mut kinds: Vec<(String, u64)> = Vec::new();
    for stream in step
        .streams
        .iter()
        .filter(|stream| stream.device_index == 0)
    {
        let text = format!("{}, depth {}", work_text(stream, blocks[0]), stream.depth);
        match kinds.last_mut() {
            Some((last, count)) if *last == text => *count += 1,
            _ => kinds.push((text, 1)),
        }
    }
    let kinds: Vec<String> = kinds
        .into_iter()
        .map(|(text, count)| {
            format!(
                "{}{text}",
                if count == 1 {
                    String::new()
                } else {
                    format!("{count} × ")
                }
            )
        })
        .collect();
    let devices = match blocks.len() {
        1 => String::new(),
        count => format!(" on each of {count} devices"),
    };
    format!(
        "{}{devices}; {} in flight over {}; {}",
        kinds.join(" + "),
        step.in_flight_count,
        counted(u64::from(step.reactors_count), "reactor"),
        window_text(step)
    )
}

fn counted(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

fn window_text(step: &StepPlan) -> String {
    let quota = step
        .streams
        .iter()
        .all(|stream| stream.quota.ios.is_some() || stream.quota.blocks.is_some());
    let length = match (step.limits.runtime, quota) {
        (Some(runtime), true) => format!("until the amount is done, at most {runtime}"),
        (Some(runtime), false) => runtime.to_string(),
        (None, _) => "until the amount is done".to_owned(),
    };
    match step.limits.ramp.0 {
        0 => format!("{length}, no ramp"),
        _ => format!("{length} after a ramp of {}", step.limits.ramp),
    }
}

/// The whole plan for people: what `--dry-run` prints.
#[must_use]
pub fn describe(plan: &Plan) -> String {
    let mut text = format!("job {}, seed {}\n", plan.name, plan.seed);
    for device in &plan.devices {
        let _ = writeln!(
            text,
            "device {}: {} bytes = {} blocks of {} bytes",
            device.path,
            bytes_of(device.logical_block, device.blocks),
            device.blocks,
            device.logical_block.bytes()
        );
    }
    for (number, step) in (1..).zip(&plan.steps) {
        let count = plan.steps.len();
        let _ = writeln!(
            text,
            "\nstep {number} of {count}, {}: {}",
            step.name, step.summary
        );
        describe_step(&mut text, step, &plan.devices);
    }
    for left in &plan.left_out {
        let _ = writeln!(text, "\nleft out, {}: {}", left.step, left.why);
    }
    if let Some(rounds) = &plan.rounds {
        let _ = writeln!(
            text,
            "\nrounds: until the {} of {} is steady over {} rounds (range {} %, slope {} %), at most {}",
            rounds.of.name(),
            rounds.track.join(", "),
            rounds.window_count,
            rounds.range_pct,
            rounds.slope_pct,
            rounds.most_count
        );
    }
    let _ = writeln!(text, "\nestimate: {}", plan.estimate);
    for note in &plan.notes {
        let _ = writeln!(text, "\nwarning: {}\n  {}", note.text, note.next_step);
    }
    text
}

fn describe_step(text: &mut String, step: &StepPlan, devices: &[PlannedDevice]) {
    let limits = &step.limits;
    let cpus = if step.cpus.is_empty() {
        "CPUs chosen at the start".to_owned()
    } else {
        let plural = if step.cpus.len() == 1 { "" } else { "s" };
        format!("CPU{plural} {}", CpuList(step.cpus.clone()))
    };
    let errors = match limits.max_errors {
        None => "no error limit".to_owned(),
        Some(count) => format!("stops after {}", counted(count, "error")),
    };
    let _ = writeln!(
        text,
        "  {} on {cpus}; grace {}; {errors}; stamp {}",
        counted(u64::from(step.reactors_count), "reactor"),
        limits.grace,
        stamp_name(step.stamp)
    );
    if step.cool_down.0 > 0 {
        let _ = writeln!(text, "  nothing is sent for {} after it", step.cool_down);
    }
    if let Some(steady) = &step.steady {
        let limit = &steady.limit;
        let _ = writeln!(
            text,
            "  ends early once the {} of {} s of {} is below {}{}",
            if limit.is_slope { "slope" } else { "deviation" },
            steady.window_count,
            limit.of.name(),
            limit.value,
            if limit.is_pct { " %" } else { "" }
        );
    }
    if !step.expect.is_empty() {
        let all: Vec<&str> = step.expect.iter().map(|one| one.text.as_str()).collect();
        let _ = writeln!(text, "  expects {}", all.join(", "));
    }
    let batch = step.batch;
    let _ = writeln!(
        text,
        "  batch: submit {}, complete_min {}, complete_max {}",
        batch.submit, batch.complete_min, batch.complete_max
    );
    for (index, (stream, reactor)) in step.streams.iter().zip(&step.reactor_of).enumerate() {
        let device = &devices[stream.device_index as usize];
        let _ = writeln!(
            text,
            "  stream {index} on {}, reactor {reactor}: {}",
            device.path,
            stream_text(stream, device.logical_block)
        );
    }
}

fn stream_text(stream: &StreamSpec, block: BlockSize) -> String {
    let region = stream.region;
    let sizes: Vec<String> = stream
        .sizes
        .iter()
        .map(|size| {
            let bytes = bytes_of(block, u64::from(size.blocks));
            let mut text = format!("{bytes} bytes = {} blocks", size.blocks);
            if stream.sizes.len() > 1 {
                let _ = write!(text, " ({:.4} %)", size.share_pct);
            }
            text
        })
        .collect();
    if stream.ops == OpMix::Probe {
        let mut text = format!("probe, a command without media, depth {}", stream.depth);
        stream_limits(&mut text, stream, block);
        return text;
    }
    let mut text = format!("{}, {}", rw_name(stream), sizes.join(", "));
    if let OpMix::ReadWrite { read_pct } = stream.ops {
        let _ = write!(text, ", {read_pct} % reads");
    }
    if let Access::Random {
        distribution,
        random_pct,
    } = &stream.access
    {
        let _ = write!(
            text,
            ", {random_pct} % random, {}, aligned to {} bytes = {} blocks",
            distribution_text(distribution),
            bytes_of(block, u64::from(stream.align_blocks)),
            stream.align_blocks
        );
    }
    let _ = write!(
        text,
        ", from byte {} = block {} for {} bytes = {} blocks, depth {}",
        bytes_of(block, region.first_lba),
        region.first_lba,
        bytes_of(block, region.blocks),
        region.blocks,
        stream.depth
    );
    stream_limits(&mut text, stream, block);
    text
}

fn stream_limits(text: &mut String, stream: &StreamSpec, block: BlockSize) {
    match stream.arrival {
        Arrival::Closed => text.push_str(", closed loop"),
        Arrival::Fixed { iops } => {
            let _ = write!(text, ", {iops} arrivals a second, evenly spaced");
        }
        Arrival::Poisson { iops } => {
            let _ = write!(text, ", {iops} arrivals a second, exponential gaps");
        }
    }
    if let Some(ios) = stream.quota.ios {
        let _ = write!(text, ", at most {ios} I/Os");
    }
    if let Some(blocks) = stream.quota.blocks {
        let _ = write!(
            text,
            ", at most {} bytes = {blocks} blocks",
            bytes_of(block, blocks)
        );
    }
    if let Some(writes) = stream.flush_every {
        let _ = write!(text, ", a flush after every {writes} writes");
    }
    if matches!(stream.ops, OpMix::Write | OpMix::ReadWrite { .. }) {
        let _ = write!(text, ", data {}", data_text(stream.data));
    }
    let _ = write!(text, ", seed {}", stream.seed);
}

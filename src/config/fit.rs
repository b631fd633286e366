//! One stream on one device: bytes and percentages become blocks, or are refused. Nothing is rounded
//! but percentages of the device, which round down.

use super::error::ConfigError;
use super::intent::{Sizes, StreamIntent};
use super::place::{Given, Place};
use super::target::Target;
use super::value::ByteShare;
use crate::backend::DeviceKind;
use crate::record::Warning;
use crate::units::{Blocks, Bytes, SizeSpec};
use crate::workload::{Access, OpMix, Region, SizeShare};

/// The most one read or write may carry: buffers are sized in 32 bits. Trims and writezeroes carry nothing.
const MAX_TRANSFER_BYTES: u64 = u32::MAX as u64;

/// What is said of a region that does not fit.
pub const PAST_THE_DEVICE: &str = "past the device";

/// A stream's sizes and region in blocks of one device.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Fitted {
    pub(super) sizes: Vec<SizeShare>,
    pub(super) align_blocks: u32,
    pub(super) region: Region,
}

/// Fits a stream onto a device.
pub(super) fn fit(
    stream: &StreamIntent,
    target: &Target<'_>,
    notes: &mut Vec<Warning>,
) -> Result<Fitted, ConfigError> {
    allowed_ops(stream, target)?;
    if stream.ops.is_probe() {
        return fit_probe(stream, target);
    }
    let sizes = fit_sizes(&stream.sizes, stream.ops, target, notes)?;
    let largest = sizes.iter().map(|size| size.blocks).max().unwrap_or(1);
    let smallest = sizes.iter().map(|size| size.blocks).min().unwrap_or(1);
    let align_blocks = match &stream.blockalign {
        None => smallest,
        Some(given) => align(given, target)?,
    };
    let unit = match stream.access {
        Access::Random { .. } => align_blocks,
        Access::Sequential => largest,
    };
    let region = fit_region(stream, target, u64::from(unit), largest)?;
    if let Some(given) = &stream.blockalign
        && u64::from(align_blocks) > region.blocks
    {
        return Err(target.unfit(
            &given.place,
            format!(
                "{} bytes is larger than the region of {}, so that every I/O would start at the same place; use less",
                given.value.0,
                target.shown(region.blocks)
            ),
        ));
    }
    fits_a_command(largest, stream, target)?;
    note_split(largest, stream, target, notes);
    Ok(Fitted {
        sizes,
        align_blocks,
        region,
    })
}

/// A probe takes one logical block: that at `offset`, or none at all.
fn fit_probe(stream: &StreamIntent, target: &Target<'_>) -> Result<Fitted, ConfigError> {
    let mut region = fit_region(stream, target, 1, 1)?;
    if stream.ops == OpMix::ProbeRead {
        region.blocks = 1;
    }
    Ok(Fitted {
        sizes: vec![SizeShare {
            blocks: 1,
            share_pct: 100.0,
        }],
        align_blocks: 1,
        region,
    })
}

/// Trim, writezeroes, flush and probe only where the device has them.
fn allowed_ops(stream: &StreamIntent, target: &Target<'_>) -> Result<(), ConfigError> {
    if stream.ops == OpMix::Trim
        && let Err(reason) = &target.facts.trim
    {
        return Err(target.unfit(&stream.rw.place, format!("it cannot trim: {reason}")));
    }
    if stream.ops == OpMix::WriteZeroes
        && let Err(reason) = &target.facts.write_zeroes
    {
        return Err(target.unfit(&stream.rw.place, format!("it cannot write zeros: {reason}")));
    }
    if stream.ops == OpMix::Probe
        && let Err(reason) = &target.facts.probe
    {
        return Err(target.unfit(&stream.rw.place, format!("it cannot probe: {reason}")));
    }
    if let (Some(given), Err(reason)) = (&stream.flush_every, &target.facts.flush) {
        return Err(target.unfit(&given.place, format!("it cannot flush: {reason}")));
    }
    Ok(())
}

fn fit_sizes(
    sizes: &Sizes,
    ops: OpMix,
    target: &Target<'_>,
    notes: &mut Vec<Warning>,
) -> Result<Vec<SizeShare>, ConfigError> {
    let place = &sizes.shares.place;
    let is_whole = |share: &&ByteShare| target.block.blocks_exact(share.bytes).is_some();
    let (whole, dropped): (Vec<_>, Vec<_>) = if sizes.is_split {
        sizes.shares.value.iter().partition(is_whole)
    } else {
        (sizes.shares.value.iter().collect(), Vec::new())
    };
    if whole.is_empty() {
        let block = target.block.bytes();
        return Err(target.unfit(
            place,
            format!("none of its sizes is a multiple of the logical block; allowed: multiples of {block} bytes"),
        ));
    }
    let mut fitting = Vec::with_capacity(whole.len());
    for share in whole {
        fitting.push(SizeShare {
            blocks: request_blocks(share.bytes, ops, target, place)?,
            share_pct: share.share_pct,
        });
    }
    if !dropped.is_empty() {
        let left_pct: f64 = fitting.iter().map(|size| size.share_pct).sum();
        for size in &mut fitting {
            size.share_pct *= 100.0 / left_pct;
        }
        note_dropped(&dropped, target, notes);
    }
    Ok(fitting)
}

fn request_blocks(
    bytes: Bytes,
    ops: OpMix,
    target: &Target<'_>,
    place: &Place,
) -> Result<u32, ConfigError> {
    let blocks = target.exact(bytes, place)?;
    u32::try_from(blocks)
        .ok()
        .filter(|_| !ops.carries_data() || bytes.0 <= MAX_TRANSFER_BYTES)
        .ok_or_else(|| {
            target.unfit(
                place,
                format!(
                    "{bytes} is more than one request can be; allowed: up to {MAX_TRANSFER_BYTES} bytes for reads and writes, up to {} blocks for trims and writezeroes",
                    u32::MAX
                ),
            )
        })
}

fn note_dropped(dropped: &[&ByteShare], target: &Target<'_>, notes: &mut Vec<Warning>) {
    let list: Vec<String> = dropped
        .iter()
        .map(|share| format!("{} ({} %)", share.bytes, share.share_pct))
        .collect();
    add_note(
        notes,
        Warning {
            kind: "bssplit-share-dropped".to_owned(),
            text: format!(
                "{}: {} left out of the bssplit: not a multiple of the logical block of {} bytes; the other shares now count as 100 %",
                target.facts.path,
                list.join(", "),
                target.block.bytes()
            ),
            next_step: "do not compare this result with one that has all the sizes".to_owned(),
        },
    );
}

fn align(given: &Given<Bytes>, target: &Target<'_>) -> Result<u32, ConfigError> {
    let blocks = target.exact(given.value, &given.place)?;
    u32::try_from(blocks).map_err(|_| {
        target.unfit(
            &given.place,
            format!(
                "{} is too large; allowed: up to {} blocks",
                given.value,
                u32::MAX
            ),
        )
    })
}

fn fit_region(
    stream: &StreamIntent,
    target: &Target<'_>,
    unit: u64,
    largest: u32,
) -> Result<Region, ConfigError> {
    let first_lba = match stream.offset.value {
        SizeSpec::Bytes(bytes) => target.exact(bytes, &stream.offset.place)?,
        SizeSpec::Percent(share_pct) => target.share(share_pct, unit),
    };
    let Some(rest) = target
        .blocks
        .checked_sub(first_lba)
        .filter(|rest| *rest > 0)
    else {
        return Err(target.unfit(
            &stream.offset.place,
            format!(
                "the offset of block {first_lba} is at or past the end; the device has {}",
                target.shown(target.blocks)
            ),
        ));
    };
    let (blocks, place) = match &stream.size {
        None => (rest, &stream.sizes.shares.place),
        Some(given) => (region_blocks(given, target, unit)?, &given.place),
    };
    if blocks > rest {
        return Err(target.unfit(
            place,
            format!(
                "the region ends {PAST_THE_DEVICE}: {} from block {first_lba}; allowed: up to {}",
                target.shown(blocks),
                target.shown(rest)
            ),
        ));
    }
    if blocks < u64::from(largest) {
        return Err(target.unfit(
            place,
            format!(
                "the region of {} is smaller than the largest request of {}; enlarge the region or shrink the request",
                target.shown(blocks),
                target.shown(u64::from(largest))
            ),
        ));
    }
    Ok(Region { first_lba, blocks })
}

fn region_blocks(
    size: &Given<SizeSpec>,
    target: &Target<'_>,
    unit: u64,
) -> Result<u64, ConfigError> {
    match size.value {
        SizeSpec::Bytes(bytes) => target.exact(bytes, &size.place),
        // All of it is all of it, the last odd blocks too.
        SizeSpec::Percent(share_pct) if share_pct >= 100.0 => Ok(target.blocks),
        SizeSpec::Percent(share_pct) => Ok(target.share(share_pct, unit)),
    }
}

/// Where nothing below us splits, what is larger than a command cannot be sent.
fn fits_a_command(
    largest: u32,
    stream: &StreamIntent,
    target: &Target<'_>,
) -> Result<(), ConfigError> {
    let bytes = target.block.bytes_of(Blocks(u64::from(largest)));
    let most = match (&stream.ops, &target.facts.write_zeroes) {
        (OpMix::WriteZeroes, Ok(most)) => *most,
        (ops, _) if ops.carries_data() => target.facts.max_command,
        _ => None,
    };
    match (bytes, most) {
        (Some(bytes), Some(most)) if bytes > most => Err(target.unfit(
            &stream.sizes.shares.place,
            format!(
                "requests of {bytes} are larger than one command can be, which is {most} here; allowed: up to {most}"
            ),
        )),
        _ => Ok(()),
    }
}

/// What is larger than the queue's limit is split, by the block layer or by a driver in user space: the latency is
/// that of all the parts.
fn note_split(largest: u32, stream: &StreamIntent, target: &Target<'_>, notes: &mut Vec<Warning>) {
    let by = match target.facts.kind {
        DeviceKind::Block | DeviceKind::File => Some("the kernel splits"),
        DeviceKind::Nvme => Some("the driver splits"),
        DeviceKind::Scsi => Some("lanemark sends"),
        DeviceKind::Null | DeviceKind::Sim => None,
    };
    let bytes = target.block.bytes_of(Blocks(u64::from(largest)));
    if let (Some(by), Some(bytes), Some(max_io)) = (by, bytes, target.facts.max_io)
        && bytes > max_io
        && max_io.0 > 0
        && stream.ops.carries_data()
    {
        add_note(
            notes,
            Warning {
                kind: "io-split".to_owned(),
                text: format!(
                    "{}: requests of {bytes} are larger than the device takes at once ({max_io}): {by} each as {} commands, and a latency is that of all of them",
                    target.facts.path,
                    bytes.0.div_ceil(max_io.0)
                ),
                next_step: format!("use a block size of at most {max_io} to see single commands"),
            },
        );
    }
}

/// Adds a note once, however many streams give rise to it.
pub(super) fn add_note(notes: &mut Vec<Warning>, note: Warning) {
    if !notes.contains(&note) {
        notes.push(note);
    }
}

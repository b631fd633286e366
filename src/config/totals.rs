//! Totals of a step (`rate_iops`, `number_ios`, `io_size`) as the share of each stream on each device.

use super::error::ConfigError;
use super::intent::{StepIntent, StreamIntent, Total};
use super::place::Place;
use super::share;
use super::target::Target;

/// The shares of every entry: each stream on each device, in the order of the plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Totals {
    rates: Vec<Option<u64>>,
    ios: Vec<Option<u64>>,
    bytes: Vec<Option<u64>>,
}

impl Totals {
    /// Arrivals a second.
    pub(super) fn rate_iops(&self, index: u64) -> Option<u64> {
        at(&self.rates, index)
    }

    /// I/Os.
    pub(super) fn number_ios(&self, index: u64) -> Option<u64> {
        at(&self.ios, index)
    }

    /// Bytes, a multiple of the entry's logical block.
    pub(super) fn io_bytes(&self, index: u64) -> Option<u64> {
        at(&self.bytes, index)
    }
}

fn at(list: &[Option<u64>], index: u64) -> Option<u64> {
    usize::try_from(index)
        .ok()
        .and_then(|index| list.get(index).copied().flatten())
}

/// Shares all three totals out.
pub(super) fn totals_of(step: &StepIntent, targets: &[Target<'_>]) -> Result<Totals, ConfigError> {
    let devices = targets.len();
    let ones = |_: &Place, _: u64, _: &[usize]| Ok(1);
    Ok(Totals {
        rates: split(&step.streams, devices, |stream| stream.rate.as_ref(), ones)?,
        ios: split(
            &step.streams,
            devices,
            |stream| stream.number_ios.as_ref(),
            ones,
        )?,
        bytes: split(
            &step.streams,
            devices,
            |stream| stream.io_size.as_ref(),
            |place, total, group| byte_unit(step, targets, place, total, group),
        )?,
    })
}

/// Shares one kind of total out. `unit` says in which units a total is dealt to a group of entries.
fn split(
    streams: &[StreamIntent],
    devices: usize,
    pick: fn(&StreamIntent) -> Option<&Total>,
    unit: impl Fn(&Place, u64, &[usize]) -> Result<u64, ConfigError>,
) -> Result<Vec<Option<u64>>, ConfigError> {
    let mut shares = vec![None; streams.len() * devices];
    let mut of_step: Option<(&Place, u64)> = None;
    let mut members = Vec::new();
    for (index, stream) in streams.iter().enumerate() {
        let entries: Vec<usize> = (index * devices..(index + 1) * devices).collect();
        match pick(stream) {
            None => {}
            Some(Total::Stream(given)) => {
                let unit = unit(&given.place, given.value, &entries)?;
                deal(&mut shares, &entries, &given.place, given.value, unit)?;
            }
            // The step's total is the same word for all of them.
            Some(Total::Step(given)) => {
                of_step = Some((&given.place, given.value));
                members.extend(entries);
            }
        }
    }
    if let Some((place, total)) = of_step {
        let unit = unit(place, total, &members)?;
        deal(&mut shares, &members, place, total, unit)?;
    }
    Ok(shares)
}

fn deal(
    shares: &mut [Option<u64>],
    entries: &[usize],
    place: &Place,
    total: u64,
    unit: u64,
) -> Result<(), ConfigError> {
    let count = entries.len() as u64;
    let units = total / unit;
    if units < count {
        let least = unit.saturating_mul(count);
        return Err(ConfigError::Value {
            place: place.clone(),
            why: format!(
                "{total} shared by {count} streams (streams × devices) leaves some with nothing; allowed: at least {least}"
            ),
        });
    }
    for (index, entry) in (0_u64..).zip(entries) {
        shares[*entry] = Some(share::part(units, count, index) * unit);
    }
    Ok(())
}

/// Bytes are dealt in whole requests where all are of one size and the total is a multiple of it;
/// otherwise in whole blocks.
fn byte_unit(
    step: &StepIntent,
    targets: &[Target<'_>],
    place: &Place,
    total: u64,
    entries: &[usize],
) -> Result<u64, ConfigError> {
    let mut block = Some(1_u64);
    let mut request = Some(1_u64);
    for entry in entries {
        let target = &targets[entry % targets.len()];
        let sizes = &step.streams[entry / targets.len()].sizes.shares.value;
        block = block.and_then(|unit| share::lcm(unit, u64::from(target.block.bytes())));
        request = match sizes.as_slice() {
            [one] => request.and_then(|unit| share::lcm(unit, one.bytes.0)),
            _ => None,
        };
    }
    let whole = |unit: &u64| total.is_multiple_of(*unit);
    // A request is itself a multiple of its block, or the stream is refused elsewhere; the common
    // multiple makes sure of it here.
    let request = request
        .zip(block)
        .and_then(|(request, block)| share::lcm(request, block))
        .filter(|unit| whole(unit) && total / unit >= entries.len() as u64);
    if let Some(unit) = request.or(block.filter(whole)) {
        return Ok(unit);
    }
    Err(ConfigError::Value {
        place: place.clone(),
        why: format!(
            "{total} bytes is not a multiple of the logical block; allowed: multiples of {} bytes",
            block.unwrap_or(512)
        ),
    })
}

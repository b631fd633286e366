//! One stream's keys: what it does, in which order, how much of it.

use super::error::ConfigError;
use super::intent::{Sizes, StreamIntent, Total};
use super::key::Key;
use super::lookup::Lookup;
use super::place::Given;
use super::value::{self, ByteShare, Rw, Why};
use crate::units::{Bytes, SizeSpec};
use crate::workload::{Access, DataPattern, Distribution, OpMix};

/// fio's default block size.
const DEFAULT_BS: Bytes = Bytes(4096);
/// fio's default share of reads in a mix, percent.
const DEFAULT_READ_PCT: f64 = 50.0;

/// The layer of a listed stream's own keys; layer 0 holds the flags.
const OWN_LAYER: usize = 1;

/// Reads the keys of one stream. `listed`: it has a layer of its own.
pub(super) fn stream(lookup: &Lookup<'_>, listed: bool) -> Result<StreamIntent, ConfigError> {
    let rw = lookup
        .read(Key::Rw, value::rw)?
        .unwrap_or_else(|| lookup.default_of(Key::Rw, Rw::RandRead));
    let kind = rw.value;
    let (access, blockalign) = access(kind, lookup)?;
    let (flush_every, data) = write_keys(kind, lookup)?;
    let (rate, is_poisson) = arrivals(lookup, listed)?;
    let offset = offset(kind, lookup)?;
    let depth = lookup.read(Key::Iodepth, value::iodepth)?;
    Ok(StreamIntent {
        ops: ops(kind, lookup)?,
        rw,
        access,
        sizes: sizes(kind, lookup)?,
        blockalign,
        offset: offset.unwrap_or_else(|| lookup.default_of(Key::Offset, SizeSpec::Bytes(Bytes(0)))),
        size: of_region(kind, lookup, |lookup| {
            lookup.read(Key::Size, value::region_size)
        })?,
        depth: depth.map_or(1, |given| given.value),
        rate,
        is_poisson,
        number_ios: total(lookup, Key::NumberIos, value::count, listed)?,
        io_size: of_region(kind, lookup, |lookup| {
            total(lookup, Key::IoSize, value::io_size, listed)
        })?,
        passes: of_region(kind, lookup, |lookup| {
            lookup.read(Key::Passes, value::count)
        })?,
        flush_every,
        data,
    })
}

fn ops(rw: Rw, lookup: &Lookup<'_>) -> Result<OpMix, ConfigError> {
    if rw.is_mixed() {
        let read = lookup.read(Key::Rwmixread, value::percent)?;
        return Ok(OpMix::ReadWrite {
            read_pct: read.map_or(DEFAULT_READ_PCT, |given| given.value),
        });
    }
    let why = format!(
        "`rw: {}` mixes no reads and writes; a mix is rw or randrw",
        rw.name()
    );
    lookup.ignore(&[Key::Rwmixread], &why);
    Ok(if rw == Rw::Probe {
        OpMix::Probe
    } else if rw == Rw::ProbeRead {
        OpMix::ProbeRead
    } else if rw.is_trim() {
        OpMix::Trim
    } else if rw.is_write_zeroes() {
        OpMix::WriteZeroes
    } else if rw.writes() {
        OpMix::Write
    } else {
        OpMix::Read
    })
}

fn access(rw: Rw, lookup: &Lookup<'_>) -> Result<(Access, Option<Given<Bytes>>), ConfigError> {
    if !rw.is_random() {
        let why = format!(
            "`rw: {}` is not random; it applies to randread, randwrite, randrw, randtrim, randwritezeroes",
            rw.name()
        );
        let keys = [
            Key::PercentageRandom,
            Key::RandomDistribution,
            Key::Blockalign,
        ];
        lookup.ignore(&keys, &why);
        return Ok((Access::Sequential, None));
    }
    let distribution = lookup.read(Key::RandomDistribution, value::distribution)?;
    let random = lookup.read(Key::PercentageRandom, value::percent)?;
    let access = Access::Random {
        distribution: distribution.map_or(Distribution::Uniform, |given| given.value),
        random_pct: random.map_or(100.0, |given| given.value),
    };
    Ok((access, lookup.read(Key::Blockalign, value::block_size)?))
}

/// Where a stream begins; a command without media has no place.
fn offset(rw: Rw, lookup: &Lookup<'_>) -> Result<Option<Given<SizeSpec>>, ConfigError> {
    if rw == Rw::Probe {
        let why = "`rw: probe` touches no block; `rw: probe-read` reads one";
        lookup.ignore(&[Key::Offset], why);
        return Ok(None);
    }
    lookup.read(Key::Offset, value::size)
}

/// Reads a key of sizes or regions, which a probe does not have.
fn of_region<T>(
    rw: Rw,
    lookup: &Lookup<'_>,
    read: impl FnOnce(&Lookup<'_>) -> Result<Option<T>, ConfigError>,
) -> Result<Option<T>, ConfigError> {
    if !rw.is_probe() {
        return read(lookup);
    }
    let why = match rw {
        Rw::ProbeRead => "`rw: probe-read` reads one logical block at `offset`, over and over",
        _ => "`rw: probe` touches no block; `rw: probe-read` reads one",
    };
    let keys = [Key::Bs, Key::Bssplit, Key::Size, Key::IoSize, Key::Passes];
    lookup.ignore(&keys, why);
    Ok(None)
}

fn sizes(rw: Rw, lookup: &Lookup<'_>) -> Result<Sizes, ConfigError> {
    let whole = |bytes| {
        vec![ByteShare {
            bytes,
            share_pct: 100.0,
        }]
    };
    if rw.is_probe() {
        // The device's own block, once it is known.
        return Ok(Sizes {
            shares: lookup.default_of(Key::Bs, Vec::new()),
            is_split: false,
        });
    }
    if lookup.stronger(Key::Bs, Key::Bssplit) == Some(Key::Bssplit)
        && let Some(shares) = lookup.read(Key::Bssplit, value::bssplit)?
    {
        return Ok(Sizes {
            shares,
            is_split: true,
        });
    }
    let bs = lookup
        .read(Key::Bs, value::block_size)?
        .unwrap_or_else(|| lookup.default_of(Key::Bs, DEFAULT_BS));
    Ok(Sizes {
        shares: Given {
            value: whole(bs.value),
            place: bs.place,
        },
        is_split: false,
    })
}

type WriteKeys = (Option<Given<u32>>, DataPattern);

fn write_keys(rw: Rw, lookup: &Lookup<'_>) -> Result<WriteKeys, ConfigError> {
    if !rw.writes() {
        let does_not = if rw.is_write_zeroes() {
            "sends no data"
        } else {
            "writes nothing"
        };
        let why = format!("`rw: {}` {does_not}", rw.name());
        lookup.ignore(&[Key::Fsync, Key::Data], &why);
        return Ok((None, DataPattern::Random));
    }
    let data = lookup.read(Key::Data, value::data)?;
    Ok((
        lookup.read(Key::Fsync, value::fsync)?,
        data.map_or(DataPattern::Random, |given| given.value),
    ))
}

fn arrivals(lookup: &Lookup<'_>, listed: bool) -> Result<(Option<Total>, bool), ConfigError> {
    let rate = total(lookup, Key::RateIops, value::rate, listed)?;
    if rate.is_none() {
        lookup.ignore(
            &[Key::RateProcess],
            "it spaces arrivals, and there is no `rate_iops`",
        );
        return Ok((None, false));
    }
    let process = lookup.read(Key::RateProcess, value::is_poisson)?;
    Ok((rate, process.is_some_and(|given| given.value)))
}

fn total(
    lookup: &Lookup<'_>,
    key: Key,
    parse: fn(&str) -> Result<u64, Why>,
    listed: bool,
) -> Result<Option<Total>, ConfigError> {
    let read = lookup.read_with_layer(key, parse)?;
    Ok(read.map(|(layer, given)| {
        if listed && layer == OWN_LAYER {
            Total::Stream(given)
        } else {
            Total::Step(given)
        }
    }))
}

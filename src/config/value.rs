//! From the text of a value to the value. Every refusal says what is allowed; nothing here knows a device.

use super::key::Key;
use super::plan::StampChoice;
use super::rounds::{SteadyLimit, StepFigure};
use super::schema::BackendChoice;
use crate::units::{Bytes, CpuList, Nanos, SizeSpec, parse_block_size, parse_duration, parse_size};
use crate::workload::{DataPattern, Distribution, Zone};

/// What went wrong, in words.
pub(super) type Why = String;

/// `rw`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rw {
    Read,
    Write,
    ReadWrite,
    Trim,
    RandRead,
    RandWrite,
    RandReadWrite,
    RandTrim,
    WriteZeroes,
    RandWriteZeroes,
    Probe,
    ProbeRead,
}

impl Rw {
    const NAMES: [(&'static str, Rw); 13] = [
        ("read", Rw::Read),
        ("write", Rw::Write),
        ("randread", Rw::RandRead),
        ("randwrite", Rw::RandWrite),
        ("rw", Rw::ReadWrite),
        ("readwrite", Rw::ReadWrite),
        ("randrw", Rw::RandReadWrite),
        ("trim", Rw::Trim),
        ("randtrim", Rw::RandTrim),
        ("writezeroes", Rw::WriteZeroes),
        ("randwritezeroes", Rw::RandWriteZeroes),
        ("probe", Rw::Probe),
        ("probe-read", Rw::ProbeRead),
    ];

    /// The first of its names.
    pub(super) fn name(self) -> &'static str {
        Self::NAMES
            .iter()
            .find(|(_, rw)| *rw == self)
            .map_or("", |(name, _)| name)
    }

    pub(super) const fn is_random(self) -> bool {
        matches!(
            self,
            Self::RandRead
                | Self::RandWrite
                | Self::RandReadWrite
                | Self::RandTrim
                | Self::RandWriteZeroes
        )
    }

    pub(super) const fn is_mixed(self) -> bool {
        matches!(self, Self::ReadWrite | Self::RandReadWrite)
    }

    pub(super) const fn is_trim(self) -> bool {
        matches!(self, Self::Trim | Self::RandTrim)
    }

    pub(super) const fn is_write_zeroes(self) -> bool {
        matches!(self, Self::WriteZeroes | Self::RandWriteZeroes)
    }

    /// Prices the path instead of the media.
    pub(super) const fn is_probe(self) -> bool {
        matches!(self, Self::Probe | Self::ProbeRead)
    }

    /// Whether it carries data to the device.
    pub(super) const fn writes(self) -> bool {
        self.is_mixed() || matches!(self, Self::Write | Self::RandWrite)
    }
}

/// One size of a mix of sizes, in bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ByteShare {
    pub(super) bytes: Bytes,
    pub(super) share_pct: f64,
}

/// Reads a value only to see whether it can be read.
pub(super) fn check(key: Key, text: &str) -> Result<(), Why> {
    match key {
        Key::Rw => rw(text).map(drop),
        Key::Bs | Key::Blockalign => block_size(text).map(drop),
        Key::Bssplit => bssplit(text).map(drop),
        Key::Rwmixread | Key::PercentageRandom => percent(text).map(drop),
        Key::RandomDistribution => distribution(text).map(drop),
        Key::Offset => size(text).map(drop),
        Key::Size => region_size(text).map(drop),
        Key::Iodepth => iodepth(text).map(drop),
        Key::NumberIos | Key::Passes | Key::MaxErrors => count(text).map(drop),
        Key::IoSize => io_size(text).map(drop),
        Key::RateIops => rate(text).map(drop),
        Key::RateProcess => is_poisson(text).map(drop),
        Key::Fsync => fsync(text).map(drop),
        Key::Data => data(text).map(drop),
        Key::BatchSubmit | Key::BatchCompleteMin | Key::BatchCompleteMax => iodepth(text).map(drop),
        Key::Reactors => reactors(text).map(drop),
        Key::Cpus => cpus(text).map(drop),
        Key::Runtime | Key::Grace => some_time(text).map(drop),
        Key::RampTime | Key::CoolDown | Key::SteadystateRampTime => time(text).map(drop),
        Key::Steadystate => steadystate(text).map(drop),
        Key::SteadystateDuration => whole_seconds(text).map(drop),
        Key::Randseed => seed(text).map(drop),
        Key::Stamp => stamp(text).map(drop),
        Key::Expect => super::expect::parse(text).map(drop),
    }
}

fn present(text: &str, allowed: &str) -> Result<(), Why> {
    if text.is_empty() {
        return Err(format!("it has no value; allowed: {allowed}"));
    }
    Ok(())
}

/// One of a few names.
pub(super) fn one_of<T: Copy>(text: &str, names: &[(&str, T)]) -> Result<T, Why> {
    let list = names
        .iter()
        .map(|(name, _)| *name)
        .collect::<Vec<_>>()
        .join(", ");
    present(text, &list)?;
    names
        .iter()
        .find(|(name, _)| *name == text)
        .map(|(_, choice)| *choice)
        .ok_or_else(|| format!("`{text}` is not known; allowed: {list}"))
}

pub(super) fn rw(text: &str) -> Result<Rw, Why> {
    one_of(text, &Rw::NAMES)
}

pub(super) fn backend(text: &str) -> Result<BackendChoice, Why> {
    one_of(
        text,
        &BackendChoice::ALL.map(|choice| (choice.name(), choice)),
    )
}

pub(super) fn stamp(text: &str) -> Result<StampChoice, Why> {
    one_of(
        text,
        &[
            ("auto", StampChoice::Auto),
            ("exact", StampChoice::Exact),
            ("batch", StampChoice::Batch),
        ],
    )
}

/// `rate_process`: whether gaps are exponential.
pub(super) fn is_poisson(text: &str) -> Result<bool, Why> {
    one_of(text, &[("fixed", false), ("poisson", true)])
}

pub(super) fn block_size(text: &str) -> Result<Bytes, Why> {
    present(text, "a size such as 512, 4k, 128k, 1M")?;
    parse_block_size(text).map_err(|error| error.to_string())
}

pub(super) fn size(text: &str) -> Result<SizeSpec, Why> {
    present(
        text,
        "a size such as 1G, or a share of the device such as 25%",
    )?;
    parse_size(text).map_err(|error| error.to_string())
}

/// `size`: as [`size`], but not nothing.
pub(super) fn region_size(text: &str) -> Result<SizeSpec, Why> {
    match size(text)? {
        SizeSpec::Bytes(Bytes(0)) | SizeSpec::Percent(0.0) => Err(format!(
            "`{text}` leaves nothing to measure; give a size such as 1G or 25%, or leave the key out for all that follows the offset"
        )),
        size => Ok(size),
    }
}

/// `io_size`: bytes, at least 1.
pub(super) fn io_size(text: &str) -> Result<u64, Why> {
    present(text, "a size such as 10G")?;
    parse_block_size(text)
        .map(|bytes| bytes.0)
        .map_err(|error| error.to_string())
}

/// A whole number from `least` to `most`, decimal or `0x` hexadecimal.
fn whole(text: &str, least: u64, most: u64) -> Result<u64, Why> {
    let allowed = if most == u64::MAX {
        format!("whole numbers from {least}")
    } else {
        format!("{least} to {most}")
    };
    present(text, &allowed)?;
    let digits = text.strip_prefix("0x");
    let base = if digits.is_some() { 16 } else { 10 };
    let digits = digits.unwrap_or(text);
    let plain = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    match u64::from_str_radix(digits, base) {
        Ok(number) if plain && (least..=most).contains(&number) => Ok(number),
        Ok(number) if plain && number < least => {
            Err(format!("`{text}` is less than {least}; allowed: {allowed}"))
        }
        Ok(_) if plain => Err(format!("`{text}` is more than {most}; allowed: {allowed}")),
        _ => Err(format!(
            "`{text}` is not a whole number; allowed: {allowed}"
        )),
    }
}

pub(super) fn count(text: &str) -> Result<u64, Why> {
    whole(text, 1, u64::MAX)
}

/// `rate_iops`; the bound keeps the gap between arrivals at a nanosecond or more.
pub(super) fn rate(text: &str) -> Result<u64, Why> {
    whole(text, 1, 1_000_000_000)
}

/// A whole number of 32 bits from 1 to `most`.
fn small(text: &str, most: u32) -> Result<u32, Why> {
    let number = whole(text, 1, u64::from(most))?;
    u32::try_from(number).map_err(|_| format!("`{text}` is more than {most}"))
}

pub(super) fn iodepth(text: &str) -> Result<u32, Why> {
    small(text, 65_536)
}

pub(super) fn fsync(text: &str) -> Result<u32, Why> {
    small(text, u32::MAX)
}

pub(super) fn reactors(text: &str) -> Result<u32, Why> {
    small(text, 1024)
}

pub(super) fn streams(text: &str) -> Result<u32, Why> {
    small(text, 4096)
}

/// `repeat`.
pub(super) fn repeat(text: &str) -> Result<u32, Why> {
    small(text, 1000)
}

pub(super) fn seed(text: &str) -> Result<u64, Why> {
    whole(text, 0, u64::MAX)
}

pub(super) fn cpus(text: &str) -> Result<Vec<u32>, Why> {
    present(text, "CPUs such as 1 or 0-3,8")?;
    text.parse::<CpuList>()
        .map(|list| list.0)
        .map_err(|error| error.to_string())
}

pub(super) fn time(text: &str) -> Result<Nanos, Why> {
    present(text, "a time such as 100ms, 10s, 5m")?;
    parse_duration(text).map_err(|error| error.to_string())
}

/// A time that is not nothing.
pub(super) fn some_time(text: &str) -> Result<Nanos, Why> {
    match time(text)? {
        Nanos(0) => Err(format!(
            "`{text}` is no time at all; give one such as 100ms, 10s, 5m"
        )),
        time => Ok(time),
    }
}

/// A time of whole seconds, at least two: the series has a sample a second.
pub(super) fn whole_seconds(text: &str) -> Result<Nanos, Why> {
    let least = Nanos::from_s(2);
    let time = time(text)?;
    if time < least || time.0 % Nanos::from_s(1).0 != 0 {
        return Err(format!(
            "`{text}` is not a window of whole seconds, 2s at least: there is one sample a second"
        ));
    }
    Ok(time)
}

/// `steadystate`: fio's `iops:2%`, `iops_slope:0.3%`, `bw:…`, `bw_slope:…`; without `%` the limit is in
/// IOPS, or bytes a second.
pub(super) fn steadystate(text: &str) -> Result<SteadyLimit, Why> {
    const ALLOWED: &str = "iops:2%, iops_slope:0.3%, bw:2%, bw_slope:0.3%, or a limit without % in IOPS or bytes a second";
    present(text, ALLOWED)?;
    let refuse = || format!("`{text}` is not a criterion; allowed: {ALLOWED}");
    let (kind, limit) = text.split_once(':').ok_or_else(refuse)?;
    let (of, is_slope) = match kind {
        "iops" => (StepFigure::Iops, false),
        "iops_slope" => (StepFigure::Iops, true),
        "bw" => (StepFigure::BytesPerS, false),
        "bw_slope" => (StepFigure::BytesPerS, true),
        _ => return Err(refuse()),
    };
    let digits = limit.strip_suffix('%');
    let value = number(digits.unwrap_or(limit))
        .filter(|value| *value > 0.0)
        .ok_or_else(refuse)?;
    Ok(SteadyLimit {
        of,
        is_slope,
        value,
        is_pct: digits.is_some(),
    })
}

/// What a figure is taken of.
pub(super) fn figure(text: &str) -> Result<StepFigure, Why> {
    one_of(text, &StepFigure::ALL.map(|figure| (figure.name(), figure)))
}

/// A number as people write it: digits, perhaps a point. (`f64` alone would also take `inf` and `1e9`.)
fn number(text: &str) -> Option<f64> {
    let plain = text
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.');
    if plain { text.parse().ok() } else { None }
}

/// A share of 100, with or without `%`.
pub(super) fn percent(text: &str) -> Result<f64, Why> {
    present(text, "0 to 100")?;
    number(text.strip_suffix('%').unwrap_or(text))
        .filter(|share_pct| (0.0..=100.0).contains(share_pct))
        .ok_or_else(|| format!("`{text}` is not a percentage; allowed: 0 to 100"))
}

/// `bssplit`: fio's `4k/60:64k/40`; sizes without a share divide what is left.
pub(super) fn bssplit(text: &str) -> Result<Vec<ByteShare>, Why> {
    const ALLOWED: &str = "sizes with shares that sum to 100, such as 4k/60:64k/40";
    present(text, ALLOWED)?;
    if text.contains(',') {
        return Err(format!(
            "`{text}` splits by direction, which is not supported; give each direction a stream of its own; allowed: {ALLOWED}"
        ));
    }
    let mut entries: Vec<(Bytes, Option<f64>)> = Vec::new();
    for part in text.split(':') {
        let (bytes, share) = part.split_once('/').unwrap_or((part, ""));
        let bytes = parse_block_size(bytes).map_err(|error| error.to_string())?;
        let share = if share.is_empty() {
            None
        } else {
            Some(percent(share)?)
        };
        if entries.iter().any(|(known, _)| *known == bytes) {
            return Err(format!("{bytes} stands twice; give each size once"));
        }
        entries.push((bytes, share));
    }
    shares(&entries).map_err(|why| format!("`{text}`: {why}; allowed: {ALLOWED}"))
}

fn shares(entries: &[(Bytes, Option<f64>)]) -> Result<Vec<ByteShare>, Why> {
    let sum: f64 = entries.iter().filter_map(|(_, share)| *share).sum();
    let open = entries.iter().filter(|(_, share)| share.is_none()).count();
    if open == 0 && !is_hundred(sum) {
        return Err(format!("the shares sum to {sum}"));
    }
    let rest = (100.0 - sum) / f64::from(u32::try_from(open.max(1)).unwrap_or(u32::MAX));
    let mut list = Vec::with_capacity(entries.len());
    for (bytes, share) in entries {
        let share_pct = share.unwrap_or(rest);
        if share_pct <= 0.0 {
            return Err(format!("nothing is left for {bytes}"));
        }
        list.push(ByteShare {
            bytes: *bytes,
            share_pct,
        });
    }
    Ok(list)
}

/// Whether decimal shares sum to 100 but for what binary fractions lose.
fn is_hundred(sum: f64) -> bool {
    (sum - 100.0).abs() < 1e-6
}

/// `random_distribution`.
pub(super) fn distribution(text: &str) -> Result<Distribution, Why> {
    const ALLOWED: &str = "uniform, zipf:1.2 (above 0, not 1), pareto:0.9 (between 0 and 1), normal:20 (percent, above 0 up to 100), zoned:50/10:30/20:20/70 (access%/size%)";
    present(text, ALLOWED)?;
    let refuse = || format!("`{text}` is not a distribution; allowed: {ALLOWED}");
    let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
    if kind == "zoned" {
        return zones(rest).map_err(|why| format!("`{text}`: {why}; allowed: {ALLOWED}"));
    }
    match (kind, rest, number(rest)) {
        ("uniform" | "random", "", _) => Ok(Distribution::Uniform),
        #[allow(clippy::float_cmp)] // θ = 1 exactly is where the formula divides by zero.
        ("zipf", _, Some(theta)) if theta > 0.0 && theta != 1.0 && theta <= 100.0 => {
            Ok(Distribution::Zipf(theta))
        }
        ("pareto", _, Some(h)) if h > 0.0 && h < 1.0 => Ok(Distribution::Pareto(h)),
        ("normal", _, Some(sigma_pct)) if sigma_pct > 0.0 && sigma_pct <= 100.0 => {
            Ok(Distribution::Normal(sigma_pct))
        }
        _ => Err(refuse()),
    }
}

fn zones(text: &str) -> Result<Distribution, Why> {
    let mut zones = Vec::new();
    for part in text.split(':') {
        let (access, size) = part
            .split_once('/')
            .ok_or_else(|| format!("`{part}` is not access%/size%"))?;
        let zone = Zone {
            access_pct: percent(access)?,
            size_pct: percent(size)?,
        };
        if zone.size_pct <= 0.0 {
            return Err(format!("the zone `{part}` has no size"));
        }
        zones.push(zone);
    }
    let access: f64 = zones.iter().map(|zone| zone.access_pct).sum();
    let size: f64 = zones.iter().map(|zone| zone.size_pct).sum();
    if is_hundred(access) && is_hundred(size) {
        Ok(Distribution::Zoned(zones))
    } else {
        Err(format!(
            "accesses sum to {access} and sizes to {size}; both must be 100"
        ))
    }
}

/// The key of 8 bytes in a block of 512 leaves no more.
const COMPRESSIBLE_MOST_PCT: f64 = 98.0;

/// `data`.
pub(super) fn data(text: &str) -> Result<DataPattern, Why> {
    const ALLOWED: &str = "random, zero, fixed:DEADBEEF (eight hexadecimal digits), compressible:50% (more than 0, at most 98: each block has a key of its own)";
    present(text, ALLOWED)?;
    let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
    let digits = rest.strip_prefix("0x").unwrap_or(rest);
    let is_hex = digits.len() == 8 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    match (kind, rest) {
        ("random", "") => return Ok(DataPattern::Random),
        ("zero", "") => return Ok(DataPattern::Zero),
        ("fixed", _) if is_hex => {
            if let Ok(number) = u32::from_str_radix(digits, 16) {
                return Ok(DataPattern::Fixed(number.to_be_bytes()));
            }
        }
        ("compressible", _) => match percent(rest) {
            Ok(share_pct) if share_pct > 0.0 && share_pct <= COMPRESSIBLE_MOST_PCT => {
                return Ok(DataPattern::Compressible(share_pct));
            }
            _ => {}
        },
        _ => {}
    }
    Err(format!(
        "`{text}` is not a data pattern; allowed: {ALLOWED}"
    ))
}

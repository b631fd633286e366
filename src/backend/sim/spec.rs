//! The description of a simulated device: `sim:latency=100us,parallelism=8,capacity=1T`.

use crate::units::{BlockSize, SizeSpec, parse_block_size, parse_duration, parse_size};

/// How long an I/O is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LatencyModel {
    /// Always the same.
    Fixed {
        /// Service time.
        ns: u64,
    },
    /// Uniform between two bounds, both included; completions then overtake each other.
    Uniform {
        /// Shortest service time.
        low_ns: u64,
        /// Longest service time.
        high_ns: u64,
    },
}

/// A simulated device.
#[derive(Debug, Clone, PartialEq)]
pub struct SimSpec {
    /// Service time of reads, and of everything that has none of its own.
    pub latency: LatencyModel,
    /// Service time of writes.
    pub write_latency: Option<LatencyModel>,
    /// I/Os served at once.
    pub parallelism: u32,
    /// I/Os started a second, at most.
    pub cap_iops: Option<u64>,
    /// Bytes a second, at most: at the first block and at the last, linear between them.
    pub cap_bytes_per_s: Option<(u64, u64)>,
    /// Added to the service of what does not follow on: for the shortest way and for the longest, linear in
    /// the distance, nanoseconds.
    pub seek_ns: Option<(u64, u64)>,
    /// A part of the device that serves slower.
    pub slow: Option<SlowPart>,
    /// Size.
    pub capacity_bytes: u64,
    /// Logical block.
    pub logical_block: BlockSize,
    /// Share of I/Os that fail with EIO, in percent.
    pub errors_pct: f64,
    /// After so many I/Os, none completes any more.
    pub stuck_after: Option<u64>,
    /// After so many I/Os, the device is gone.
    pub gone_after: Option<u64>,
    /// At this time, for so long, nothing starts: `(at_ns, length_ns)`.
    pub stall: Option<(u64, u64)>,
    /// The hop in front of it, which other devices may share.
    pub hop: Option<SimHop>,
    /// Seed of everything random in it.
    pub seed: u64,
}

/// A part of a device that takes longer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SlowPart {
    /// Where it begins, as a share of the device.
    pub from_pct: f64,
    /// Where it ends.
    pub to_pct: f64,
    /// How many times longer.
    pub factor: u32,
}

/// A hop in front of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimHop {
    /// Devices that name the same hop share it.
    pub name: String,
    /// Bytes a second that it carries, reads and writes together.
    pub bytes_per_s: u64,
}

/// Why a text describes no simulated device.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}`: {why}")]
pub struct SimError {
    /// The part that is wrong.
    pub text: String,
    /// What is allowed.
    pub why: String,
}

/// More at once than any queue holds.
const MOST_SERVERS_COUNT: u32 = 1 << 20;

const KEYS: &str = "latency, write_latency, parallelism, cap_iops, cap_bytes_per_s, seek, slow, capacity, block, \
                    errors, stuck_after, gone_after, stall, hop, seed";

impl Default for SimSpec {
    fn default() -> Self {
        Self {
            latency: LatencyModel::Fixed { ns: 100_000 },
            write_latency: None,
            parallelism: 128,
            cap_iops: None,
            cap_bytes_per_s: None,
            seek_ns: None,
            slow: None,
            capacity_bytes: 1 << 40,
            logical_block: BlockSize::new(512).expect("512 is not zero"),
            errors_pct: 0.0,
            stuck_after: None,
            gone_after: None,
            stall: None,
            hop: None,
            seed: 1,
        }
    }
}

impl SimSpec {
    /// Reads what follows `sim:`; nothing at all is the default device (100 µs, 128 at once, 1 TiB).
    ///
    /// # Errors
    /// [`SimError`] naming the key and what is allowed.
    pub fn parse(text: &str) -> Result<Self, SimError> {
        let mut spec = Self::default();
        let mut given: Vec<&str> = Vec::new();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let (key, value) = part
                .split_once('=')
                .ok_or_else(|| error(part, format!("write key=value; keys are {KEYS}")))?;
            spec.set(key, value)?;
            if given.contains(&key) {
                return Err(error(key, "given twice; write it once"));
            }
            given.push(key);
        }
        Ok(spec)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), SimError> {
        match key {
            "latency" => self.latency = latency(value)?,
            "write_latency" => self.write_latency = Some(latency(value)?),
            "parallelism" => self.parallelism = parallelism(value)?,
            "cap_iops" => self.cap_iops = Some(positive(value)?),
            "cap_bytes_per_s" => self.cap_bytes_per_s = Some(over_position(value)?),
            "seek" => self.seek_ns = Some(seek(value)?),
            "slow" => self.slow = Some(slow_part(value)?),
            "capacity" => self.capacity_bytes = bytes(value)?,
            "block" => self.logical_block = block(value)?,
            "errors" => self.errors_pct = percent(value)?,
            "stuck_after" => self.stuck_after = Some(whole(value)?),
            "gone_after" => self.gone_after = Some(whole(value)?),
            "stall" => self.stall = Some(stall(value)?),
            "hop" => self.hop = Some(hop(value)?),
            "seed" => self.seed = whole(value)?,
            _ => return Err(error(key, format!("no such key; keys are {KEYS}"))),
        }
        Ok(())
    }
}

fn error(text: &str, why: impl Into<String>) -> SimError {
    SimError {
        text: text.to_owned(),
        why: why.into(),
    }
}

fn duration_ns(text: &str) -> Result<u64, SimError> {
    parse_duration(text)
        .map(|nanos| nanos.0)
        .map_err(|e| error(text, e.to_string()))
}

/// `100us`, or `50us..150us`.
fn latency(text: &str) -> Result<LatencyModel, SimError> {
    let Some((low, high)) = text.split_once("..") else {
        return Ok(LatencyModel::Fixed {
            ns: service_ns(text)?,
        });
    };
    let (low_ns, high_ns) = (service_ns(low)?, service_ns(high)?);
    if low_ns > high_ns {
        return Err(error(text, "the lower bound comes first"));
    }
    Ok(LatencyModel::Uniform { low_ns, high_ns })
}

/// In virtual time nothing but service moves the clock: without any, a run would never end.
fn service_ns(text: &str) -> Result<u64, SimError> {
    match duration_ns(text)? {
        0 => Err(error(text, "an I/O takes at least 1ns")),
        ns => Ok(ns),
    }
}

fn parallelism(text: &str) -> Result<u32, SimError> {
    match positive::<u32>(text)? {
        servers if servers <= MOST_SERVERS_COUNT => Ok(servers),
        _ => Err(error(
            text,
            format!("at most {MOST_SERVERS_COUNT} at once are simulated"),
        )),
    }
}

/// `1s+100ms`: when and how long.
fn stall(text: &str) -> Result<(u64, u64), SimError> {
    let (at, length) = text
        .split_once('+')
        .ok_or_else(|| error(text, "write when+how long: 1s+100ms"))?;
    Ok((duration_ns(at)?, duration_ns(length)?))
}

fn bytes(text: &str) -> Result<u64, SimError> {
    match parse_size(text) {
        Ok(SizeSpec::Bytes(bytes)) if bytes.0 > 0 => Ok(bytes.0),
        Ok(_) => Err(error(text, "a positive number of bytes is needed")),
        Err(e) => Err(error(text, e.to_string())),
    }
}

/// `200M`, or `200M..100M` from the first block to the last.
fn over_position(text: &str) -> Result<(u64, u64), SimError> {
    match text.split_once("..") {
        None => bytes(text).map(|cap| (cap, cap)),
        Some((first, last)) => Ok((bytes(first)?, bytes(last)?)),
    }
}

/// `1ms..10ms`: the shortest and the longest way.
fn seek(text: &str) -> Result<(u64, u64), SimError> {
    let (short, long) = text
        .split_once("..")
        .ok_or_else(|| error(text, "write shortest..longest: 1ms..10ms"))?;
    match (duration_ns(short)?, duration_ns(long)?) {
        (short_ns, long_ns) if short_ns <= long_ns => Ok((short_ns, long_ns)),
        _ => Err(error(text, "the shortest way comes first")),
    }
}

/// `75%..100%*20`: where, and how many times longer.
fn slow_part(text: &str) -> Result<SlowPart, SimError> {
    let parts = || {
        let (range, factor) = text.split_once('*')?;
        let (from, to) = range.split_once("..")?;
        Some((from, to, factor))
    };
    let (from, to, factor) =
        parts().ok_or_else(|| error(text, "write from..to*factor: 75%..100%*20"))?;
    let part = SlowPart {
        from_pct: percent(from)?,
        to_pct: percent(to)?,
        factor: positive::<u32>(factor)?,
    };
    if part.from_pct >= part.to_pct {
        return Err(error(text, "the part begins before it ends"));
    }
    Ok(part)
}

/// `hba:1200M`: its name, and bytes a second.
fn hop(text: &str) -> Result<SimHop, SimError> {
    let is_name = |name: &str| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        !name.is_empty() && name.chars().all(is_plain)
    };
    let (name, rate) = text
        .split_once(':')
        .filter(|(name, _)| is_name(name))
        .ok_or_else(|| error(text, "write name:bytes a second: hba:1200M"))?;
    Ok(SimHop {
        name: name.to_owned(),
        bytes_per_s: bytes(rate)?,
    })
}

fn block(text: &str) -> Result<BlockSize, SimError> {
    let bytes = parse_block_size(text).map_err(|e| error(text, e.to_string()))?;
    u32::try_from(bytes.0)
        .ok()
        .and_then(BlockSize::new)
        .ok_or_else(|| error(text, "a block is 1 byte to 4 GiB"))
}

fn percent(text: &str) -> Result<f64, SimError> {
    let number = text.strip_suffix('%').unwrap_or(text);
    match number.parse::<f64>() {
        Ok(pct) if (0.0..=100.0).contains(&pct) => Ok(pct),
        _ => Err(error(text, "0 % to 100 % is allowed")),
    }
}

fn whole(text: &str) -> Result<u64, SimError> {
    text.parse()
        .map_err(|_| error(text, "a whole number is needed"))
}

fn positive<T: std::str::FromStr + PartialOrd + From<u8>>(text: &str) -> Result<T, SimError> {
    match text.parse::<T>() {
        Ok(number) if number >= T::from(1) => Ok(number),
        _ => Err(error(text, "a whole number of at least 1 is needed")),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn wrong_keys_and_values_are_named() {
        for text in [
            "latency=0s",
            "latency=1us,latency=2us",
            "parallelism=4294967295",
            "latncy=1us",
            "latency",
            "latency=5",
            "parallelism=0",
            "errors=101%",
            "stall=1s",
            "cap_bytes_per_s=1G..0",
            "seek=1ms",
            "seek=2ms..1ms",
            "slow=75%",
            "slow=75%..50%*2",
            "slow=75%..100%*0",
            "hop=hba",
            "hop=:1G",
            "hop=a b:1G",
            "hop=hba:0",
        ] {
            let error = SimSpec::parse(text).unwrap_err();
            assert!(!error.why.is_empty(), "{text}");
        }
        assert_eq!(SimSpec::parse("").unwrap(), SimSpec::default());
    }
}

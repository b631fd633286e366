//! Rates and latency distributions.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One direction (read, write, trim, writezeroes, flush, probe) of one step: successes inside the window only.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Direction {
    /// I/Os that succeeded inside the window.
    pub ios_count: u64,
    /// Bytes they moved; of trims and writezeroes, the bytes they named.
    pub bytes_count: u64,
    /// `ios_count` divided by the window.
    pub iops: f64,
    /// `bytes_count` divided by the window.
    pub bytes_per_s: f64,
    /// Submit to completion.
    pub latency_ns: Latency,
    /// Scheduled arrival to completion; only with a rate set.
    pub scheduled_latency_ns: Option<Latency>,
    /// `[upper bound of the bucket in ns, count]`, ascending, empty buckets left out.
    pub histogram: Vec<(u64, u64)>,
}

/// A latency distribution in nanoseconds. `min ≤ p50 ≤ … ≤ max` always holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Latency {
    /// Exact smallest.
    pub min: u64,
    /// Exact mean.
    pub mean: f64,
    /// Standard deviation.
    pub stddev: f64,
    /// Median.
    pub p50: u64,
    /// 90th percentile.
    pub p90: u64,
    /// 99th percentile.
    pub p99: u64,
    /// 99.9th percentile.
    pub p99_9: u64,
    /// 99.99th percentile.
    pub p99_99: u64,
    /// Exact largest.
    pub max: u64,
    /// I/Os of this direction abandoned in flight; they count in percentiles and maximum with the age
    /// they had reached, and the fields that this touches are named in `lower_bounds`.
    pub censored_count: u64,
    /// Names of the fields above that are only lower bounds (shown as `≥`).
    pub lower_bounds: Vec<String>,
}

/// One direction within one second of the series.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SecondDirection {
    /// I/Os that succeeded.
    pub ios_count: u64,
    /// I/Os a second over the interval's real length.
    pub iops: f64,
    /// Bytes a second over the interval's real length.
    pub bytes_per_s: f64,
    /// Mean latency.
    pub mean_ns: f64,
    /// Median latency.
    pub p50_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// Exact largest.
    pub max_ns: u64,
}

/// One interval of the series.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Second {
    /// Start, seconds into the window.
    pub start_s: f64,
    /// Real length in seconds; the last interval may be shorter.
    pub length_s: f64,
    /// Reads.
    pub read: Option<SecondDirection>,
    /// Writes.
    pub write: Option<SecondDirection>,
    /// Trims.
    pub trim: Option<SecondDirection>,
    /// Commands that write zeros without sending them.
    #[serde(default)]
    pub writezeroes: Option<SecondDirection>,
    /// Flushes.
    pub flush: Option<SecondDirection>,
    /// Probes: commands without media.
    pub probe: Option<SecondDirection>,
    /// I/Os that failed.
    pub errors_count: u64,
}

impl Second {
    /// What has a place on the medium: reads, writes, trims, writezeroes.
    pub fn on_media(&self) -> impl Iterator<Item = &SecondDirection> {
        [&self.read, &self.write, &self.trim, &self.writezeroes]
            .into_iter()
            .flatten()
    }
}

//! What `lanemark lanes` tells: paths with their ceilings, and what was measured against them.

use super::{DevicePath, Failure, IopsBand, Outcome, RateBand, Step, Warning};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The result of `lanemark lanes`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LanesReport {
    /// [`super::SCHEMA_VERSION`] at the time of writing.
    pub schema_version: u32,
    /// How it ended.
    pub status: Outcome,
    /// Why it did not finish.
    pub error: Option<Failure>,
    /// The devices with their paths.
    pub devices: Vec<LaneDevice>,
    /// Links that several of them share and can fill together.
    pub shared: Vec<SharedLink>,
    /// What was measured; empty without `--measure`.
    pub measurements: Vec<LaneMeasurement>,
    /// Doubts about the measurements as a whole.
    pub warnings: Vec<Warning>,
}

/// One device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LaneDevice {
    /// As it was named, or its node.
    pub name: String,
    /// Model, where it is known.
    pub model: Option<String>,
    /// Size, where it is known.
    pub capacity_bytes: Option<u64>,
    /// `nvme`, `sas`, `sata`, `virtio` …; absent where that is not known.
    pub transport: Option<String>,
    /// Its path.
    pub path: DevicePath,
    /// Most payload toward the host over the whole path; absent where no link is known.
    pub read: Option<RateBand>,
    /// Most payload toward the device.
    pub write: Option<RateBand>,
    /// Most reads of 4 KiB, the cost of commands included, with interrupts.
    pub read_4k: Option<IopsBand>,
    /// Most writes of 4 KiB.
    pub write_4k: Option<IopsBand>,
    /// The datasheet that was matched, of the whole card.
    pub datasheet: Option<String>,
    /// The rating of the controller in between.
    pub controller: Option<String>,
}

/// A link that several devices share.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SharedLink {
    /// The hop, by its name.
    pub at: String,
    /// The devices below it.
    pub devices_count: u64,
    /// What it carries toward the host.
    pub read_ceiling: RateBand,
    /// What the links below it can ask for together.
    pub below: RateBand,
    /// So many devices, each at the most that its own links carry, fill it; absent where all cannot.
    pub full_with_count: Option<u64>,
}

/// One workload over depths.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LaneMeasurement {
    /// `sequential read 128 KiB`.
    pub name: String,
    /// The rates over depth.
    pub curve: Vec<LanePoint>,
    /// The rates with time burnt at each I/O, at the best depth.
    pub burns: Vec<LaneBurn>,
    /// The best depth again, with ceilings and the verdict over all evidence.
    pub step: Step,
}

/// The rate at one depth.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LanePoint {
    /// I/Os in flight per device.
    pub depth_count: u64,
    /// I/Os a second.
    pub iops: f64,
    /// Bytes a second.
    pub bytes_per_s: f64,
}

/// The rate with a burn.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LaneBurn {
    /// Burnt on the reactor at each I/O.
    pub burn_ns: u64,
    /// I/Os a second.
    pub iops: f64,
    /// What the reactor would reach if it were the limit.
    pub host_bound_iops: f64,
}

//! What several devices come to at once: from one alone to all together.

use super::{LaneBurn, RateBand};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The key of `Origin::point` in steps that are rows of a [`Scale`].
pub const DEVICES_KEY: &str = "devices";

/// The result of `lanemark scale`. Its windows are the steps of the record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Scale {
    /// The narrowest hop that all devices share; absent where none can be seen.
    pub shared: Option<SharedHop>,
    /// Why there is no such hop; empty where there is one.
    pub why_not_shared: String,
    /// One device, two, and so on, in the order in which they were named.
    pub rows: Vec<ScaleRow>,
    /// Each device alone, and with all others.
    pub drives: Vec<ScaleDrive>,
    /// Least number of devices that gives 97 % of the most; absent where nothing was moved, and where it ended before all
    /// were run together and nothing held back those that were.
    pub saturation_count: Option<u32>,
    /// Whether all together move less than 97 % of what they move alone: something that they share is full.
    /// Absent where not all were run together.
    pub is_held_back: Option<bool>,
    /// All devices again with less in flight, in parts of the step's depth: whether depth still brings more.
    pub depths: Vec<ScaleDepth>,
    /// All devices again with time burnt at each I/O: whether the reactors are what binds.
    pub burns: Vec<LaneBurn>,
    /// Reactors near the devices against reactors far from them.
    pub nodes: ScaleNodes,
}

/// The narrowest hop that all devices share.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SharedHop {
    /// Its name.
    pub at: String,
    /// What it lets through of this workload, reads and writes together, the cost of commands included where that
    /// is known.
    pub ceiling: RateBand,
}

/// So many devices at once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScaleRow {
    /// How many.
    pub devices_count: u32,
    /// The step of the record.
    pub step: String,
    /// I/Os a second of all together.
    pub sum_iops: f64,
    /// Bytes a second of all together.
    pub sum_bytes_per_s: f64,
    /// Bytes a second of the device that got least.
    pub least_bytes_per_s: f64,
    /// Bytes a second of each on average.
    pub mean_bytes_per_s: f64,
    /// Bytes a second of the device that got most.
    pub most_bytes_per_s: f64,
    /// Jain's index of their rates: 1 where all get the same, 1/n where one gets everything.
    pub jain_ratio: Option<f64>,
    /// The least as a share of the most.
    pub least_to_most_ratio: Option<f64>,
    /// The sum as a share of what the same devices move alone, one by one.
    pub of_alone_ratio: Option<f64>,
    /// The sum in percent of the favourable end of the shared hop's ceiling; absent without one.
    pub of_shared_low_pct: Option<f64>,
    /// In percent of its unfavourable end.
    pub of_shared_high_pct: Option<f64>,
}

/// One device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScaleDrive {
    /// As the user named it.
    pub path: String,
    /// I/Os a second alone.
    pub alone_iops: f64,
    /// Bytes a second alone.
    pub alone_bytes_per_s: f64,
    /// I/Os a second with all others; absent where they were not all run together.
    pub together_iops: Option<f64>,
    /// Bytes a second with all others.
    pub together_bytes_per_s: Option<f64>,
    /// What it keeps of its own rate among all others: a slow device keeps its own, a starved one does not.
    pub kept_ratio: Option<f64>,
}

/// All devices with a part of the depth.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScaleDepth {
    /// I/Os in flight, all devices together.
    pub depth_count: u64,
    /// Bytes a second of all together.
    pub bytes_per_s: f64,
}

/// Reactors on the devices' NUMA node against reactors on another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScaleNodes {
    /// The devices' own node; absent where it is not known, or they are on several.
    pub local_node_index: Option<u32>,
    /// The node of the other reactors; absent where none was tried.
    pub remote_node_index: Option<u32>,
    /// All devices, driven from the other node; absent where none was tried.
    pub remote: Option<ScaleRow>,
    /// Remote divided by local.
    pub remote_ratio: Option<f64>,
    /// Why it was not tried; empty where it was.
    pub why_not: String,
}

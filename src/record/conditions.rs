//! What a step ran under: the device's health, the processor's frequency, and what others did on the device.
//! Read just before the step's first I/O and just after its last: nothing is read in between.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The conditions of one step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Conditions {
    /// Each device, in the order of `Step::devices`.
    pub devices: Vec<DeviceConditions>,
    /// Each reactor's CPU, once.
    pub cpus: Vec<CpuConditions>,
    /// Time that CPU limits of cgroups held threads of this process's cgroups back, summed over CPUs, in nanoseconds;
    /// absent where nothing counts it.
    pub cgroup_held_back_ns: Option<u64>,
    /// Why it is absent.
    pub why_no_cgroup: Option<String>,
}

/// One device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceConditions {
    /// Place in `Step::devices`.
    pub device_index: u32,
    /// Health before the first I/O; absent where it could not be read.
    pub before: Option<Health>,
    /// Why it is absent.
    pub why_not_before: Option<String>,
    /// Health after the last I/O; absent where it could not be read.
    pub after: Option<Health>,
    /// Why it is absent.
    pub why_not_after: Option<String>,
    /// What others did on the device meanwhile; absent where it cannot be told.
    pub others: Option<OthersIo>,
    /// Why it is absent.
    pub why_not_others: Option<String>,
    /// Its write cache before the first I/O; absent where that could not be read.
    pub write_cache: Option<WriteCache>,
    /// Why it is absent.
    pub why_not_write_cache: Option<String>,
}

/// The volatile write cache of a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WriteCache {
    /// How it stands.
    pub state: WriteCacheState,
    /// Where it was read: `feature 06h by /dev/nvme0`, `cache_type of sda`.
    pub source: String,
}

/// How a write cache stands.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum WriteCacheState {
    /// Writes may end before their data are on the medium.
    On,
    /// It is switched off.
    Off,
    /// There is none.
    None,
}

impl WriteCacheState {
    /// Its word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::On => "on",
            Self::Off => "off",
            Self::None => "none",
        }
    }
}

/// What a device says of its own health. A figure that it does not give is absent, never 0.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Health {
    /// Where it was read: `SMART log by /dev/nvme0`, `SCSI log pages of /dev/sg1`, `hwmon drivetemp`.
    pub source: String,
    /// Temperature; of NVMe the composite one.
    pub temperature_celsius: Option<f64>,
    /// The highest at which the device may run for long.
    pub limit_celsius: Option<f64>,
    /// Share of the rated life used; may exceed 100.
    pub used_pct: Option<u8>,
    /// Spare capacity left.
    pub spare_pct: Option<u8>,
    /// The device warns where less spare is left than this.
    pub spare_threshold_pct: Option<u8>,
    /// What the device warns of: NVMe's critical warnings, a failure foreseen (SCSI informational exceptions).
    pub alarms: Vec<Alarm>,
    /// Read by hosts over the device's life.
    pub read_bytes: Option<u64>,
    /// Written by hosts over the device's life.
    pub written_bytes: Option<u64>,
    /// Time powered on over the device's life; devices count whole hours.
    pub power_on_s: Option<u64>,
    /// Power cycles.
    pub power_cycles_count: Option<u64>,
    /// Power losses without notice.
    pub unsafe_shutdowns_count: Option<u64>,
    /// Unrecovered errors of the media.
    pub media_errors_count: Option<u64>,
    /// Entries that its error log has ever had.
    pub error_log_entries_count: Option<u64>,
    /// Time above the warning temperature; devices count whole minutes.
    pub hot_s: Option<u64>,
    /// Time above the critical temperature; devices count whole minutes.
    pub critically_hot_s: Option<u64>,
    /// Times that it slowed down lightly to cool down (NVMe thermal management temperature 1).
    pub light_throttles_count: Option<u64>,
    /// Times that it slowed down heavily (thermal management temperature 2).
    pub heavy_throttles_count: Option<u64>,
    /// Time spent slowed down lightly.
    pub light_throttled_s: Option<u64>,
    /// Time spent slowed down heavily.
    pub heavy_throttled_s: Option<u64>,
    /// Reads that were corrected (SCSI error counters).
    pub read_corrected_count: Option<u64>,
    /// Reads that could not be corrected.
    pub read_uncorrected_count: Option<u64>,
    /// Writes that were corrected.
    pub write_corrected_count: Option<u64>,
    /// Writes that could not be corrected.
    pub write_uncorrected_count: Option<u64>,
}

/// Something that a device warns of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Alarm {
    /// What.
    pub kind: AlarmKind,
    /// In words.
    pub text: String,
}

/// Kinds of alarms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AlarmKind {
    /// Too hot, or too cold.
    Temperature,
    /// Worn out, degraded, read only, or about to fail.
    Wear,
}

/// I/O on a device that was not this step's: a lower bound, from the kernel's counters of its block device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OthersIo {
    /// The block devices whose counters were read: `nvme0n1`, or every path of a multipath device.
    pub counted_on: Vec<String>,
    /// Reads and writes that were not ours; at least 1 where bytes were moved.
    pub ios_count: u64,
    /// Bytes that they moved.
    pub bytes_count: u64,
}

/// One CPU that a reactor ran on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuConditions {
    /// Its number.
    pub cpu: u32,
    /// Its frequency governor; absent where the kernel shows none.
    pub governor: Option<String>,
    /// Its frequency before the first I/O; absent where the kernel does not show it.
    pub before_hz: Option<u64>,
    /// Its frequency after the last I/O.
    pub after_hz: Option<u64>,
    /// Why a frequency is absent.
    pub why_no_frequency: Option<String>,
    /// Times that the core was slowed down for heat during the step; absent where the kernel does not count.
    pub core_throttles_count: Option<u64>,
    /// Times that its package was.
    pub package_throttles_count: Option<u64>,
    /// Why one of these counts is absent.
    pub why_no_throttles: Option<String>,
}

//! One step of a run: its device, its figures, and what they can be trusted for.

use super::{
    Ceilings, Conditions, Criterion, DevicePath, Direction, Failure, Origin, Outcome, Second,
    Steady, Verdict, Warning,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The result of one step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Step {
    /// Its name in the job.
    pub name: String,
    /// Where in the job it comes from.
    #[serde(default)]
    pub origin: Origin,
    /// How it ended.
    pub status: Outcome,
    /// Why it did not finish.
    pub error: Option<Failure>,
    /// The workload in one line, resolved: `randread 4 KiB depth 32 x 1 stream on 1 device`.
    pub summary: String,
    /// The resolved step, echoed: sizes in bytes and blocks, no default left open.
    pub plan: serde_json::Value,
    /// What was measured, in the order of `StreamUse::device_index`.
    pub devices: Vec<DeviceUse>,
    /// How commands reached the device.
    pub backend: BackendUse,
    /// Length of the ramp before the window.
    pub ramp_s: f64,
    /// Measured length of the window: what rates are divided by.
    pub window_s: f64,
    /// Reads, absent where none completed in the window.
    pub read: Option<Direction>,
    /// Writes.
    pub write: Option<Direction>,
    /// Trims.
    pub trim: Option<Direction>,
    /// Commands that write zeros without sending them.
    #[serde(default)]
    pub writezeroes: Option<Direction>,
    /// Flushes.
    pub flush: Option<Direction>,
    /// Probes: commands without media.
    pub probe: Option<Direction>,
    /// I/Os submitted from start to end, ramp and drain included.
    pub submitted_count: u64,
    /// Of these, successes. `submitted = completed + failed + abandoned`.
    pub completed_count: u64,
    /// Of these, failures.
    pub failed_count: u64,
    /// Of these, still in flight when the run gave up on them.
    pub abandoned_count: u64,
    /// Queue depths.
    pub depth: Depth,
    /// Failures by status.
    pub errors: Vec<ErrorTally>,
    /// How latency was stamped.
    pub stamp: Stamp,
    /// Achieved against asked shares; only with mixes.
    pub mix: Vec<MixCheck>,
    /// The reactors' own figures.
    pub reactors: Vec<ReactorUse>,
    /// Each stream apart.
    pub streams: Vec<StreamUse>,
    /// The way to each device, in the order of `devices`.
    pub path: Vec<DevicePath>,
    /// What the step can reach at most.
    pub ceilings: Ceilings,
    /// What bound the result.
    pub verdict: Verdict,
    /// The criteria of `expect`, and whether they were met.
    #[serde(default)]
    pub expect: Vec<Criterion>,
    /// The slowest I/Os, slowest first.
    pub slowest: Vec<SlowIo>,
    /// Gaps between two polls of a spinning reactor.
    pub poll_gaps: Vec<PollGap>,
    /// Doubts about this step.
    pub warnings: Vec<Warning>,
    /// Per second.
    pub series: Vec<Second>,
    /// Whether its seconds were steady by fio's definition; absent where nobody asked.
    #[serde(default)]
    pub steady: Option<Steady>,
    /// What it ran under; absent in simulated time, and in records of older versions.
    #[serde(default)]
    pub conditions: Option<Conditions>,
}

impl Step {
    /// What has a place on the medium: reads, writes, trims, writezeroes.
    pub fn on_media(&self) -> impl Iterator<Item = &Direction> {
        [&self.read, &self.write, &self.trim, &self.writezeroes]
            .into_iter()
            .flatten()
    }
}

/// The device as it was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceUse {
    /// As the user named it.
    pub path: String,
    /// World-wide identity (NGUID, EUI-64, VPD 83h, UUID), or serial number and namespace of an NVMe namespace
    /// without one (`S123 ns:2`); absent where the device has none.
    pub identity: Option<String>,
    /// Model.
    pub model: Option<String>,
    /// Serial number.
    pub serial: Option<String>,
    /// Firmware revision.
    pub firmware: Option<String>,
    /// `block`, `file`, `nvme`, `scsi`, `null`, `sim`.
    pub kind: String,
    /// Size.
    pub capacity_bytes: u64,
    /// Logical block.
    pub logical_block_bytes: u32,
    /// Physical block, where known.
    pub physical_block_bytes: Option<u32>,
    /// Mounts, holders and the like that were found; reading is allowed all the same.
    pub in_use: Vec<String>,
}

/// The backend and why it was taken.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BackendUse {
    /// `null`, `sim`, `uring`, `uring-cmd`, `sg`, `spdk`.
    pub name: String,
    /// Why this one.
    pub reason: String,
    /// How it was set up: `single issuer, deferred task work`, `polled: no, the queue has no poll support`.
    pub features: Vec<String>,
}

/// Depth asked, in the device, and queued above it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Depth {
    /// I/Os kept in flight by request: sum over streams and devices.
    pub asked_count: u64,
    /// The most the device itself holds; absent where it cannot be known.
    pub device_count: Option<u64>,
    /// Asked beyond that, queued in software above the device; absent with `device_count`.
    pub queued_count: Option<u64>,
    /// Average in flight over the window.
    pub in_flight_mean: f64,
}

/// One kind of failure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorTally {
    /// Status in words.
    pub status: String,
    /// `read`, `write`, `trim`, `writezeroes`, `flush`, `probe`.
    pub op: String,
    /// How often.
    pub count: u64,
    /// First block of the first one.
    pub first_lba: u64,
}

/// Exact (per I/O) or per batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum StampMode {
    /// A clock reading for every I/O.
    Exact,
    /// A clock reading for every poll that found completions.
    Batch,
}

/// How latency was stamped, and the most that this can have added to it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stamp {
    /// The mode in the window.
    pub mode: StampMode,
    /// 99th percentile of the time between a stamp and the bell or the find it stands for.
    pub bound_ns: u64,
}

/// One share of a mix.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MixCheck {
    /// `read`, `random`, `bs 4 KiB`.
    pub share: String,
    /// Asked, in percent.
    pub asked_pct: f64,
    /// Achieved over all submissions, in percent.
    pub achieved_pct: f64,
}

/// One reactor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReactorUse {
    /// The CPU it was pinned to; absent in simulated time.
    pub cpu: Option<u32>,
    /// Share of the window spent in work: polls that found completions, and submissions. Absent in
    /// simulated time, where work takes none.
    pub busy_ratio: Option<f64>,
    /// That time per completed I/O; absent where none completed, where the thread also waits for arrivals in it
    /// (`rate_iops`), and where workers were not seen.
    pub busy_ns_per_io: Option<f64>,
    /// How busy time was taken: `polls` (spinning), `thread-cpu-time` (the reactor sleeps in the kernel),
    /// `thread-and-worker-cpu-time` (io_uring's workers carried I/Os out on its core), `thread-cpu-time-alone`
    /// (the window was too short to see what workers did), `none` (simulated).
    pub busy_source: String,
    /// Polls in the window.
    pub polls_count: u64,
    /// I/Os completed in the window.
    pub ios_count: u64,
}

/// One stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StreamUse {
    /// Place in the step's list of streams.
    pub index: u32,
    /// Place in `Step::devices`.
    pub device_index: u32,
    /// Place in `Step::reactors`.
    pub reactor_index: u32,
    /// First block of its region.
    pub first_lba: u64,
    /// Blocks in its region.
    pub region_blocks: u64,
    /// I/Os that succeeded in the window.
    pub ios_count: u64,
    /// Bytes they moved.
    pub bytes_count: u64,
    /// I/Os a second, over the window or until it ran out of I/Os.
    pub iops: f64,
    /// Bytes a second, likewise.
    pub bytes_per_s: f64,
    /// Mean latency; absent without samples.
    pub mean_ns: Option<f64>,
    /// Largest latency; absent without samples.
    pub max_ns: Option<u64>,
}

/// One of the slowest I/Os.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SlowIo {
    /// Completion, seconds into the window.
    pub at_s: f64,
    /// Latency; for an abandoned I/O the age it had reached.
    pub latency_ns: u64,
    /// Operation.
    pub op: String,
    /// First block.
    pub lba: u64,
    /// Size.
    pub bytes_count: u64,
    /// CPU of the reactor.
    pub cpu: Option<u32>,
    /// Stream.
    pub stream: u32,
    /// Still in flight when the run gave up.
    pub abandoned: bool,
}

/// One bucket of the gaps between polls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PollGap {
    /// Gaps from half of this up to this, in nanoseconds.
    pub up_to_ns: u64,
    /// How many.
    pub count: u64,
}

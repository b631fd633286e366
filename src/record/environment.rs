//! Who measured, and on what machine.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The program that made a record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tool {
    /// Release version.
    pub version: String,
    /// Commit it was built from, with `-dirty` where the tree had changes; `unknown` outside git.
    pub git_commit: String,
    /// SPDK it is linked with; absent where built without.
    pub spdk_version: Option<String>,
    /// Cost of the engine itself on this machine, null backend at depth 128; absent where not measured.
    pub cost_ns_per_io: Option<f64>,
}

/// The machine as far as it matters to a figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Environment {
    /// `uname -r`.
    pub kernel: String,
    /// Model name of the processor.
    pub cpu: String,
    /// Logical CPUs this process may use.
    pub cpus_allowed: String,
    /// Frequency governor of the reactors' CPUs; absent where the kernel shows none.
    pub governor: Option<String>,
    /// The kernel's clocksource.
    pub clocksource: Option<String>,
    /// The clock that stamped the I/Os: `tsc`, `monotonic_raw`, `virtual`.
    pub clock: String,
    /// Clock ticks a second.
    pub clock_hz: f64,
    /// Whether simultaneous multithreading is on; absent where the kernel does not say.
    pub smt: Option<bool>,
    /// Seconds since the epoch when the run began.
    pub started_unix_s: u64,
}

//! What was seen: histograms with exact bounds beside them, per-second intervals, tallies, self-checks.

mod check;
mod collector;
mod gaps;
mod histogram;
mod interval;
mod slowest;
mod stamp;
mod tally;

pub use check::{CheckInput, self_checks};
pub use collector::{Collected, Collector};
pub use gaps::Gaps;
pub use histogram::{LatencyHistogram, bucket_start_ns};
pub use interval::{Interval, IntervalPort};
pub use slowest::{Slow, Slowest};
pub use stamp::{StampBound, StampChoice};
pub use tally::{ErrorTable, OpTally, StreamTally, status_name};

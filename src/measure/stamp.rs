//! How latency is stamped, and how far a stamp can lie from what it stands for.

use hdrhistogram::Histogram;

/// The user's word on stamping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StampChoice {
    /// Exact, unless the batch bound is under 1 % of p50 at the end of the ramp.
    Auto,
    /// A clock reading per I/O.
    Exact,
    /// A clock reading per poll.
    Batch,
}

impl StampChoice {
    /// The name in job files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Exact => "exact",
            Self::Batch => "batch",
        }
    }
}

/// Sampled spans from the first stamp of a poll until everything built in it has been handed over. A
/// stamp is read before the bell and after the find, so latency can only be overstated, by at most this.
#[derive(Debug, Clone)]
pub struct StampBound {
    spans: Histogram<u64>,
}

impl StampBound {
    /// Longest span told apart: ten seconds.
    const HIGHEST_NS: u64 = 10_000_000_000;

    /// One poll in so many is sampled: handing over apart from the look costs a system call where the
    /// backend has one.
    pub const SAMPLE_EVERY: u64 = 64;

    /// Counts one span.
    pub fn record(&mut self, span_ns: u64) {
        self.spans.saturating_record(span_ns);
    }

    /// Adds another reactor's.
    pub fn merge(&mut self, other: &Self) {
        self.spans
            .add(&other.spans)
            .expect("both have the same bounds");
    }

    /// The bound: the 99th percentile of the spans; 0 without samples.
    #[must_use]
    pub fn bound_ns(&self) -> u64 {
        if self.spans.is_empty() {
            0
        } else {
            self.spans.value_at_percentile(99.0)
        }
    }
}

impl Default for StampBound {
    fn default() -> Self {
        let spans = Histogram::new_with_bounds(1, Self::HIGHEST_NS, 2)
            .expect("constant bounds that the crate documents as valid");
        Self { spans }
    }
}

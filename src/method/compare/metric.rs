//! The figures of a step that are compared, and how each is to be read.

use super::judge::Scale;
use crate::record::{Direction, Latency, Step};

/// Width of a histogram's bucket, relative to the value: 3 significant digits make 1,024 buckets or more in
/// every power of two. A percentile is known to one of them.
const BUCKET_RATIO: f64 = 1.0 / 1024.0;

/// One figure of a step, by name. The order is that of tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Metric {
    /// Place of the direction in [`DIRECTIONS`].
    direction: u8,
    /// Place in [`NAMES`].
    name: u8,
}

/// Directions, the step as a whole last.
const DIRECTIONS: [&str; 6] = ["read", "write", "trim", "writezeroes", "flush", ""];
/// The metrics.
const NAMES: [&str; 11] = [
    "iops",
    "bandwidth",
    "mean",
    "p50",
    "p99",
    "p99_9",
    "scheduled_mean",
    "scheduled_p50",
    "scheduled_p99",
    "scheduled_p99_9",
    "busy",
];

impl Metric {
    /// The metric of these names, as a record has them.
    #[must_use]
    pub fn named(direction: &str, name: &str) -> Option<Self> {
        let place = |list: &[&str], word| list.iter().position(|each| *each == word);
        Some(Self {
            direction: u8::try_from(place(&DIRECTIONS, direction)?).ok()?,
            name: u8::try_from(place(&NAMES, name)?).ok()?,
        })
    }

    /// `read`, `write`, `trim`, `writezeroes`, `flush`, or nothing for the step as a whole.
    #[must_use]
    pub fn direction(self) -> &'static str {
        DIRECTIONS[usize::from(self.direction)]
    }

    /// `iops`, `p99_9` …
    #[must_use]
    pub fn name(self) -> &'static str {
        NAMES[usize::from(self.name)]
    }

    /// The unit as records name it.
    #[must_use]
    pub fn unit(self) -> &'static str {
        match self.name() {
            "iops" => "iops",
            "bandwidth" => "bytes_per_s",
            "busy" => "ns_per_io",
            _ => "ns",
        }
    }

    /// How it is to be judged.
    #[must_use]
    pub fn scale(self) -> Scale {
        let is_percentile = self.name().contains("p50") || self.name().contains("p99");
        Scale {
            more_is_better: matches!(self.name(), "iops" | "bandwidth"),
            resolution_ratio: if is_percentile { BUCKET_RATIO } else { 0.0 },
        }
    }

    /// Whether its interval has to be narrow before the rounds end: tails vary too much to be waited for.
    #[must_use]
    pub fn is_waited_for(self) -> bool {
        matches!(self.name(), "iops" | "mean" | "p50") && self.direction() != "flush"
    }
}

/// Every name that [`Metric::named`] knows.
#[must_use]
pub const fn names() -> &'static [&'static str] {
    &NAMES
}

/// The directions of a step with a sample, as they are named.
pub fn directions(step: &Step) -> impl Iterator<Item = (&'static str, &Direction)> {
    let all = [
        &step.read,
        &step.write,
        &step.trim,
        &step.writezeroes,
        &step.flush,
    ];
    DIRECTIONS
        .into_iter()
        .zip(all)
        .filter_map(|(name, direction)| Some((name, direction.as_ref()?)))
}

/// Every figure that a step has.
#[must_use]
pub fn figures(step: &Step) -> Vec<(Metric, f64)> {
    let mut all = Vec::new();
    for (direction, figures) in directions(step) {
        let mut add = |name: &str, value: f64| {
            all.extend(Metric::named(direction, name).map(|metric| (metric, value)));
        };
        add("iops", figures.iops);
        if direction != "flush" {
            add("bandwidth", figures.bytes_per_s);
        }
        latency("", &figures.latency_ns, &mut add);
        if let Some(scheduled) = &figures.scheduled_latency_ns {
            latency("scheduled_", scheduled, &mut add);
        }
    }
    if let Some(busy) = busy_ns_per_io(step) {
        all.extend(Metric::named("", "busy").map(|metric| (metric, busy)));
    }
    all
}

#[allow(clippy::cast_precision_loss)]
fn latency(prefix: &str, latency: &Latency, add: &mut impl FnMut(&str, f64)) {
    add(&format!("{prefix}mean"), latency.mean);
    add(&format!("{prefix}p50"), latency.p50 as f64);
    add(&format!("{prefix}p99"), latency.p99 as f64);
    add(&format!("{prefix}p99_9"), latency.p99_9 as f64);
}

/// Busy time of all reactors for each I/O; absent in simulated time.
#[allow(clippy::cast_precision_loss)]
fn busy_ns_per_io(step: &Step) -> Option<f64> {
    let (mut busy_ns, mut ios_count) = (0.0, 0);
    for reactor in step.reactors.iter().filter(|reactor| reactor.ios_count > 0) {
        busy_ns += reactor.busy_ns_per_io? * reactor.ios_count as f64;
        ios_count += reactor.ios_count;
    }
    (ios_count > 0).then(|| busy_ns / ios_count as f64)
}

/// I/Os a second of a step, flushes left out.
#[must_use]
pub fn total_iops(step: &Step) -> f64 {
    let all = directions(step).filter(|(name, _)| *name != "flush");
    all.map(|(_, direction)| direction.iops).sum()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn names_lead_to_metrics_and_back() {
        for direction in DIRECTIONS {
            for name in NAMES {
                let metric = Metric::named(direction, name).unwrap();
                assert_eq!((metric.direction(), metric.name()), (direction, name));
            }
        }
        assert_eq!(Metric::named("read", "p42"), None);
        let p99 = Metric::named("read", "p99").unwrap();
        assert!(p99.scale().resolution_ratio > 0.0 && !p99.scale().more_is_better);
        assert!(!p99.is_waited_for());
        assert_eq!(Metric::named("", "busy").unwrap().unit(), "ns_per_io");
    }
}

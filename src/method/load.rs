//! Latency against load: a peak, then arrivals at shares of it, and the highest rate whose tail is still good
//! enough.

use super::outcome::outcome;
use crate::record::{Outcome, Step};
use crate::session::SessionError;

/// Shares of the peak that are measured unless told otherwise.
pub const DEFAULT_LOADS_PCT: [f64; 7] = [10.0, 25.0, 50.0, 70.0, 80.0, 90.0, 95.0];
/// The highest rate is searched to this share of the peak.
const SEARCH_RATIO: f64 = 0.01;
/// Probes of the search at most.
const PROBES_MAX: u32 = 12;

/// One step to run.
#[derive(Debug, Clone, PartialEq)]
pub struct Ask {
    /// Its name in the record.
    pub name: String,
    /// Arrivals a second; absent: the closed loop.
    pub rate_iops: Option<u64>,
}

/// What can be loaded: a device, or a model of one in tests.
pub trait Loaded {
    /// Runs one step.
    ///
    /// # Errors
    /// [`SessionError`] where it could not start.
    fn run(&mut self, ask: &Ask) -> Result<Step, SessionError>;
}

/// What to find out.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadPlan {
    /// Shares of the peak, ascending.
    pub loads_pct: Vec<f64>,
    /// The 99th percentile of scheduled latency that must hold; absent: no search.
    pub p99_at_most_ns: Option<u64>,
}

/// What was found.
#[derive(Debug, Default)]
pub struct LoadResult {
    /// Every step, the closed loop first.
    pub steps: Vec<Step>,
    /// I/Os a second of the closed loop.
    pub peak_iops: f64,
    /// The rate and share of each point of the sweep, in the order of its steps after the first.
    pub points: Vec<(f64, u64)>,
    /// The highest rate that kept the percentile, as far as the search came; absent where none did, or none was
    /// searched.
    pub highest_iops: Option<u64>,
    /// Why it ended before its end; absent where it did not.
    pub error: Option<SessionError>,
}

impl LoadResult {
    /// How the whole ended.
    #[must_use]
    pub fn status(&self) -> Outcome {
        outcome(&self.steps, self.error.as_ref())
    }

    /// Runs a step and keeps it; `None` where nothing may follow.
    fn add(&mut self, device: &mut dyn Loaded, ask: &Ask) -> Option<&Step> {
        match device.run(ask) {
            Ok(step) => {
                let is_whole = step.status == Outcome::Finished;
                self.steps.push(step);
                self.steps.last().filter(|_| is_whole)
            }
            Err(error) => {
                self.error = Some(error);
                None
            }
        }
    }
}

/// The closed loop, the sweep, and the search.
pub fn measure(plan: &LoadPlan, device: &mut dyn Loaded) -> LoadResult {
    let mut result = LoadResult::default();
    let closed = Ask {
        name: "closed loop".to_owned(),
        rate_iops: None,
    };
    let Some(peak_iops) = result.add(device, &closed).map(total_iops) else {
        return result;
    };
    result.peak_iops = peak_iops;
    for &load_pct in &plan.loads_pct {
        let rate_iops = share(peak_iops, load_pct / 100.0);
        result.points.push((load_pct, rate_iops));
        let ask = Ask {
            name: format!("{load_pct} % of peak"),
            rate_iops: Some(rate_iops),
        };
        if result.add(device, &ask).is_none() {
            return result;
        }
    }
    if let Some(limit_ns) = plan.p99_at_most_ns {
        result.highest_iops = search(limit_ns, &mut result, device);
    }
    result
}

/// The highest rate that keeps the percentile: by halving between the best that is known to keep it and the
/// least that is known not to.
fn search(limit_ns: u64, result: &mut LoadResult, device: &mut dyn Loaded) -> Option<u64> {
    let (mut good, mut bad) = (None, None);
    for ((_, rate_iops), step) in result.points.iter().zip(&result.steps[1..]) {
        if keeps(step, limit_ns) {
            good = Some(*rate_iops);
        } else {
            bad = Some(*rate_iops);
            break;
        }
    }
    // The peak of the closed loop is the most that can be kept up with.
    let mut bad = bad.unwrap_or_else(|| share(result.peak_iops, 1.0));
    for probe in 1..=PROBES_MAX {
        let from = good.unwrap_or(0);
        #[allow(clippy::cast_precision_loss)]
        let gap = bad.saturating_sub(from) as f64;
        if gap <= (SEARCH_RATIO * result.peak_iops).max(1.0) {
            break;
        }
        let rate_iops = from.midpoint(bad);
        let ask = Ask {
            name: format!("search {probe}: {rate_iops} IOPS"),
            rate_iops: Some(rate_iops.max(1)),
        };
        // What was found before an end stays found.
        let Some(step) = result.add(device, &ask) else {
            return good;
        };
        if keeps(step, limit_ns) {
            good = Some(rate_iops);
        } else {
            bad = rate_iops;
        }
    }
    good
}

/// Whether the tail of every direction is good enough, waiting included, and the device kept up.
#[must_use]
pub fn keeps(step: &Step, limit_ns: u64) -> bool {
    let mut tails = step
        .on_media()
        .filter_map(|d| d.scheduled_latency_ns.as_ref())
        .peekable();
    let has_any = tails.peek().is_some();
    let overloaded = step
        .warnings
        .iter()
        .any(|warning| warning.kind == "overload");
    has_any && !overloaded && tails.all(|latency| latency.p99 <= limit_ns)
}

fn total_iops(step: &Step) -> f64 {
    step.on_media().map(|direction| direction.iops).sum()
}

/// A share of a rate, at least one arrival a second.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn share(iops: f64, ratio: f64) -> u64 {
    ((iops * ratio) as u64).max(1)
}

#[cfg(test)]
#[path = "load_tests.rs"]
mod tests;

//! What was measured of one side of a step, round by round, reduced to what a comparison keeps.

use super::metric::{Metric, directions, figures, total_iops};
use super::stats::mean;
use crate::record::{MergedHistogram, Step};
use std::collections::{BTreeMap, BTreeSet};

/// One side of a step.
#[derive(Debug, Clone, Default)]
pub struct SideRuns {
    /// The first window, in full.
    pub first: Option<Step>,
    /// Windows so far.
    pub runs_count: u32,
    /// Rounds so far.
    rounds_count: usize,
    values: BTreeMap<Metric, Vec<Option<f64>>>,
    total_iops: Vec<f64>,
    /// IOPS of each device, round by round.
    member_iops: Vec<Vec<f64>>,
    histograms: BTreeMap<&'static str, BTreeMap<u64, u64>>,
    warnings: BTreeSet<String>,
}

impl SideRuns {
    /// A round: the windows of this side in it, one at least.
    pub fn add(&mut self, windows: &[Step]) {
        let mut sums: BTreeMap<Metric, Vec<f64>> = BTreeMap::new();
        for step in windows {
            for (metric, value) in figures(step) {
                sums.entry(metric).or_default().push(value);
            }
            self.merge(step);
        }
        for (metric, values) in &sums {
            let rounds = self.values.entry(*metric).or_default();
            // A metric that turns up late was absent before.
            rounds.resize(self.rounds_count, None);
            let is_whole = values.len() == windows.len();
            rounds.push(mean(values).filter(|_| is_whole));
        }
        self.rounds_count += 1;
        for rounds in self.values.values_mut() {
            rounds.resize(self.rounds_count, None);
        }
        let totals: Vec<f64> = windows.iter().map(total_iops).collect();
        self.total_iops.extend(mean(&totals));
        self.member_iops.push(members(windows));
        if self.first.is_none() {
            self.first = windows.first().cloned();
        }
    }

    fn merge(&mut self, step: &Step) {
        self.runs_count += 1;
        for (name, direction) in directions(step) {
            let merged = self.histograms.entry(name).or_default();
            for (upper_ns, count) in &direction.histogram {
                *merged.entry(*upper_ns).or_default() += count;
            }
        }
        self.warnings
            .extend(step.warnings.iter().map(|warning| warning.kind.clone()));
    }

    /// The metrics with at least one value.
    pub fn metrics(&self) -> impl Iterator<Item = Metric> {
        self.values.keys().copied()
    }

    /// A value for each round; empty where the metric was never seen.
    #[must_use]
    pub fn rounds(&self, metric: Metric) -> Vec<Option<f64>> {
        self.values
            .get(&metric)
            .cloned()
            .unwrap_or_else(|| vec![None; self.rounds_count])
    }

    /// Rounds so far.
    #[must_use]
    pub const fn rounds_count(&self) -> usize {
        self.rounds_count
    }

    /// IOPS of all directions, round by round.
    #[must_use]
    pub fn total_iops(&self) -> &[f64] {
        &self.total_iops
    }

    /// IOPS of each device, round by round.
    #[must_use]
    pub fn member_iops(&self) -> &[Vec<f64>] {
        &self.member_iops
    }

    /// All windows' latencies together, by direction.
    #[must_use]
    pub fn histograms(&self) -> Vec<MergedHistogram> {
        let merged = |(name, histogram): (&&'static str, &BTreeMap<u64, u64>)| MergedHistogram {
            direction: (*name).to_owned(),
            histogram: histogram
                .iter()
                .map(|(upper, count)| (*upper, *count))
                .collect(),
        };
        self.histograms.iter().map(merged).collect()
    }

    /// Kinds of warnings of any window.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        self.warnings.iter().cloned().collect()
    }
}

/// Mean IOPS of each device over some windows.
#[allow(clippy::cast_precision_loss)]
fn members(windows: &[Step]) -> Vec<f64> {
    let devices_count = windows.first().map_or(0, |step| step.devices.len());
    let of = |index: usize, step: &Step| -> f64 {
        let own = step
            .streams
            .iter()
            .filter(|stream| stream.device_index as usize == index);
        own.map(|stream| stream.iops).sum()
    };
    (0..devices_count)
        .map(|index| {
            let sum: f64 = windows.iter().map(|step| of(index, step)).sum();
            sum / windows.len() as f64
        })
        .collect()
}

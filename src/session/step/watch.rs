//! Turns what the collector has into snapshots for the observer, on the collector's thread.

use crate::config::StepPlan;
use crate::measure::Collector;
use crate::reactor::{Control, StopCause};
use crate::record::Second;
use crate::session::{Observer, Phase, Snapshot};
use std::time::{Duration, Instant};

/// Snapshots come at least this often.
const EVERY: Duration = Duration::from_millis(500);

/// Looks at one step.
pub(in crate::session) struct Watch<'a> {
    plan: &'a StepPlan,
    numbers: (usize, usize),
    control: &'a Control,
    observer: &'a mut dyn Observer,
    started: Instant,
    told: Option<Instant>,
    seconds_told: usize,
}

impl<'a> Watch<'a> {
    pub fn new(
        plan: &'a StepPlan,
        numbers: (usize, usize),
        control: &'a Control,
        observer: &'a mut dyn Observer,
    ) -> Self {
        let started = Instant::now();
        Self {
            plan,
            numbers,
            control,
            observer,
            started,
            told: None,
            seconds_told: 0,
        }
    }

    /// Tells the observer when a second is complete, or half a second has passed.
    pub fn look(&mut self, collector: &Collector) {
        let fresh = collector.seconds_count() != self.seconds_told;
        let due = self.told.is_none_or(|told| told.elapsed() >= EVERY);
        if !fresh && !due {
            return;
        }
        self.told = Some(Instant::now());
        self.seconds_told = collector.seconds_count();
        let snapshot = self.snapshot(collector.last_second());
        self.observer.snapshot(&snapshot);
    }

    fn snapshot(&self, second: Option<&Second>) -> Snapshot {
        let elapsed_s = self.started.elapsed().as_secs_f64();
        let limits = &self.plan.limits;
        let total_s = limits
            .runtime
            .map(|runtime| limits.ramp.as_s() + runtime.as_s());
        let stopping = self.control.cause() != StopCause::None;
        let phase = match total_s {
            _ if stopping => Phase::Drain,
            Some(total_s) if elapsed_s > total_s => Phase::Drain,
            _ if elapsed_s < limits.ramp.as_s() => Phase::Ramp,
            _ => Phase::Measure,
        };
        let directions = || {
            second
                .into_iter()
                .flat_map(|s| s.on_media().chain(&s.probe))
        };
        Snapshot {
            step: self.plan.name.clone(),
            step_number: self.numbers.0,
            steps_count: self.numbers.1,
            phase,
            elapsed_s,
            total_s,
            intervals_count: self.seconds_told,
            // Not `sum`: that of nothing is -0.0.
            iops: second.map(|_| directions().fold(0.0, |sum, d| sum + d.iops)),
            bytes_per_s: second.map(|_| directions().fold(0.0, |sum, d| sum + d.bytes_per_s)),
            p50_ns: directions().max_by_key(|d| d.ios_count).map(|d| d.p50_ns),
            p99_ns: directions().max_by_key(|d| d.ios_count).map(|d| d.p99_ns),
            in_flight_count: self.plan.streams.iter().map(|s| u64::from(s.depth)).sum(),
            errors_count: self.control.errors_count(),
        }
    }
}

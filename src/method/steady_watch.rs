//! Ends a step early once its seconds are steady by fio's definition.

use super::steady::fio_met;
use crate::config::{SteadySeconds, StepFigure};
use crate::reactor::{Control, StopCause};
use crate::record::Step;
use crate::session::{Observer, Snapshot};

/// Looks at every second on its way to another observer.
pub(super) struct SteadyWatch<'a> {
    steady: SteadySeconds,
    control: &'a Control,
    inner: &'a mut dyn Observer,
    intervals_count: usize,
    samples: Vec<f64>,
}

impl<'a> SteadyWatch<'a> {
    pub(super) fn new(
        steady: SteadySeconds,
        control: &'a Control,
        inner: &'a mut dyn Observer,
    ) -> Self {
        Self {
            steady,
            control,
            inner,
            intervals_count: 0,
            samples: Vec::new(),
        }
    }

    fn take(&mut self, now: &Snapshot) {
        let fresh_count = now.intervals_count.saturating_sub(self.intervals_count);
        self.intervals_count = now.intervals_count;
        let value = match self.steady.limit.of {
            StepFigure::BytesPerS => now.bytes_per_s,
            _ => now.iops,
        };
        let Some(value) = value.filter(|_| fresh_count > 0) else {
            return;
        };
        if fresh_count > 1 {
            // A second was missed: what is left is no series of one-second samples. The record has them
            // all, and is judged on its own.
            self.samples.clear();
        }
        if self.intervals_count > self.steady.skip_count {
            self.samples.push(value);
        }
        if fio_met(&self.samples, &self.steady) {
            self.control.stop(StopCause::Steady);
        }
    }
}

impl Observer for SteadyWatch<'_> {
    fn snapshot(&mut self, now: &Snapshot) {
        self.take(now);
        self.inner.snapshot(now);
    }

    fn step_done(&mut self, step: &Step) {
        self.inner.step_done(step);
    }

    fn planned(&mut self, steps_s: &[f64]) {
        self.inner.planned(steps_s);
    }
}

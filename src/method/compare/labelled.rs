//! Progress of a comparison: which side and round a window belongs to.

use crate::record::Step;
use crate::session::{Observer, Snapshot};

/// Puts the side and the round before the name of each step.
pub struct Labelled<'a> {
    /// `A, round 3`.
    pub label: String,
    /// Who is told.
    pub inner: &'a mut dyn Observer,
}

impl Observer for Labelled<'_> {
    fn snapshot(&mut self, now: &Snapshot) {
        let mut now = now.clone();
        now.step = format!("{}: {}", self.label, now.step);
        self.inner.snapshot(&now);
    }

    fn step_done(&mut self, step: &Step) {
        let mut step = step.clone();
        step.name = format!("{}: {}", self.label, step.name);
        self.inner.step_done(&step);
    }
}

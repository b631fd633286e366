//! The pause between two steps, in which nothing is sent.

use crate::clock::{Clock, Tick};
use crate::config::StepPlan;
use crate::reactor::StopCause;
use crate::session::open::Opened;
use crate::session::{Observer, Phase, Session, Snapshot};
use std::time::{Duration, Instant};

/// A signal ends the pause within this.
const SLICE: Duration = Duration::from_millis(50);
/// The observer is told this often.
const TELL_EVERY: Duration = Duration::from_millis(500);

impl Session {
    /// Lets the devices cool down after a step, for as long as it says.
    pub fn idle(
        &self,
        opened: &Opened,
        step: &StepPlan,
        numbers: (usize, usize),
        observer: &mut dyn Observer,
    ) {
        let pause = Duration::from_nanos(step.cool_down.0);
        if let Opened::Sim { clock, .. } = opened {
            let now = clock.now();
            clock.advance_to(Tick(now.0.saturating_add(step.cool_down.0)));
            return;
        }
        let began = Instant::now();
        let mut told = None;
        while began.elapsed() < pause && self.control.cause() < StopCause::Signal {
            if told.is_none_or(|told: Instant| told.elapsed() >= TELL_EVERY) {
                told = Some(Instant::now());
                observer.snapshot(&snapshot(step, numbers, began.elapsed(), pause));
            }
            std::thread::sleep(SLICE.min(pause.saturating_sub(began.elapsed())));
        }
    }
}

fn snapshot(
    step: &StepPlan,
    numbers: (usize, usize),
    elapsed: Duration,
    pause: Duration,
) -> Snapshot {
    Snapshot {
        step: step.name.clone(),
        step_number: numbers.0,
        steps_count: numbers.1,
        phase: Phase::CoolDown,
        elapsed_s: elapsed.as_secs_f64(),
        total_s: Some(pause.as_secs_f64()),
        intervals_count: 0,
        iops: None,
        bytes_per_s: None,
        p50_ns: None,
        p99_ns: None,
        in_flight_count: 0,
        errors_count: 0,
    }
}

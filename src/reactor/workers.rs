//! CPU time that the kernel's io_uring workers spend on a reactor's behalf, seen from the collector.
//!
//! A worker has the affinity of the reactor it works for, so this time is taken from the same core; left
//! out, a full core would look idle.

use crate::sys::workers::worker_time;
use crate::sysfs::Sysfs;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Samples are at least this far apart: a look costs tens of microseconds.
const EVERY: Duration = Duration::from_millis(200);

/// Threads of the reactors, told by themselves.
#[derive(Debug)]
pub(super) struct Threads(Vec<AtomicU32>);

impl Threads {
    pub fn new(count: usize) -> Self {
        Self((0..count).map(|_| AtomicU32::new(0)).collect())
    }

    /// Called by reactor `index` on its own thread.
    pub fn tell(&self, index: u32) {
        if let Some(thread) = self.0.get(index as usize) {
            thread.store(crate::sys::workers::thread_id(), Ordering::Relaxed);
        }
    }

    fn of(&self, index: usize) -> u32 {
        self.0[index].load(Ordering::Relaxed)
    }
}

/// First and last look at one reactor's workers inside its window.
#[derive(Debug, Clone, Copy)]
struct Looks {
    first: (Instant, u64),
    last: (Instant, u64),
}

/// Watches the workers of all reactors.
#[derive(Debug)]
pub(super) struct WorkerWatch {
    sysfs: Sysfs,
    looks: Vec<Option<Looks>>,
}

impl WorkerWatch {
    pub fn new(count: usize) -> Self {
        Self {
            sysfs: Sysfs::host(),
            looks: vec![None; count],
        }
    }

    /// Looks at reactor `index`, whose window has begun.
    pub fn look(&mut self, index: usize, threads: &Threads) {
        let now = Instant::now();
        let early = |looks: &Looks| now - looks.last.0 < EVERY;
        if self.looks[index].as_ref().is_some_and(early) {
            return;
        }
        let cpu_ns = worker_time(&self.sysfs, threads.of(index)).cpu_ns;
        match &mut self.looks[index] {
            // An idle worker ends after some seconds and takes its time with it.
            Some(looks) if cpu_ns >= looks.last.1 => looks.last = (now, cpu_ns),
            Some(_) => {}
            None => {
                self.looks[index] = Some(Looks {
                    first: (now, cpu_ns),
                    last: (now, cpu_ns),
                })
            }
        }
    }

    /// Worker time of reactor `index` over a window of this length, from the rate between the looks; 0
    /// where the window was too short for two.
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss
    )]
    pub fn over(&self, index: usize, window_ns: u64) -> u64 {
        let Some(looks) = self.looks[index] else {
            return 0;
        };
        let span_ns = (looks.last.0 - looks.first.0).as_nanos();
        if span_ns == 0 {
            return 0;
        }
        let rate = (looks.last.1 - looks.first.1) as f64 / span_ns as f64;
        (rate * window_ns as f64) as u64
    }
}

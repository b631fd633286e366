//! CPU time that the kernel's io_uring workers spend on a reactor's behalf, seen from the collector.
//!
//! A worker has the affinity of the reactor it works for, so this time is taken from the same core; left
//! out, a full core would look idle.

use crate::sys::workers::worker_time;
use crate::sysfs::Sysfs;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Samples are at least this far apart: a look costs tens of microseconds. In the beginning every chance to look
/// is taken, so that a short window has two.
const EVERY: Duration = Duration::from_millis(200);
const BEGINNING: Duration = Duration::from_secs(1);
/// Looks have to span this part of the window to speak for it.
const LEAST_SPAN_RATIO: f64 = 0.25;

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
    /// There were workers at some look.
    has_workers: bool,
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
    pub fn look(&mut self, index: usize, threads: &Threads, now: Instant) {
        let early = |looks: &Looks| now - looks.first.0 > BEGINNING && now - looks.last.0 < EVERY;
        if self.looks[index].as_ref().is_some_and(early) {
            return;
        }
        let seen = worker_time(&self.sysfs, threads.of(index));
        let looks = self.looks[index].get_or_insert(Looks {
            first: (now, seen.cpu_ns),
            last: (now, seen.cpu_ns),
            has_workers: false,
        });
        looks.has_workers |= seen.workers_count > 0;
        // An idle worker ends after some seconds and takes its time with it.
        if seen.cpu_ns >= looks.last.1 {
            looks.last = (now, seen.cpu_ns);
        }
    }

    /// Worker time of reactor `index` over a window of this length, from the rate between the looks; `None`
    /// where there are workers, or nobody looked, and the looks are too near each other to tell.
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss
    )]
    pub fn over(&self, index: usize, window_ns: u64) -> Option<u64> {
        let looks = self.looks[index]?;
        if !looks.has_workers {
            return Some(0);
        }
        let span_ns = (looks.last.0 - looks.first.0).as_nanos() as f64;
        if span_ns == 0.0 || span_ns < LEAST_SPAN_RATIO * window_ns as f64 {
            return None;
        }
        let rate = (looks.last.1 - looks.first.1) as f64 / span_ns;
        Some((rate * window_ns as f64) as u64)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// A window of 200 ms is looked at every 50 ms: its workers' time is told, and where it cannot be told it is
    /// not taken for none.
    #[test]
    fn short_windows_know_their_workers_or_say_that_they_do_not() {
        let root = tempfile::tempdir().unwrap();
        let task = root.path().join("proc/self/task/7");
        std::fs::create_dir_all(&task).unwrap();
        let worker = |cpu_ns: u64| {
            std::fs::write(task.join("comm"), "iou-wrk-5\n").unwrap();
            std::fs::write(task.join("schedstat"), format!("{cpu_ns} 1 1\n")).unwrap();
        };
        let threads = Threads(vec![AtomicU32::new(5)]);
        let mut watch = WorkerWatch {
            sysfs: Sysfs::at(root.path()),
            looks: vec![None],
        };
        let window_ns = 200_000_000;
        assert_eq!(watch.over(0, window_ns), None, "nobody looked");
        let start = Instant::now();
        watch.look(0, &threads, start);
        assert_eq!(watch.over(0, window_ns), Some(0), "there are no workers");
        worker(10_000_000);
        watch.look(0, &threads, start);
        assert_eq!(watch.over(0, window_ns), None, "one moment is no span");
        worker(60_000_000);
        watch.look(0, &threads, start + Duration::from_millis(100));
        assert_eq!(watch.over(0, window_ns), Some(120_000_000));
        assert_eq!(watch.over(0, 10 * window_ns), None, "a twentieth");
    }
}

//! The kernel's worker threads behind io_uring.
//!
//! A request whose driver does not take `NOWAIT` (zram and other bio-based drivers), that finds no free
//! tag, or that is a flush, is carried out by a worker thread of this process, which has the affinity of
//! the thread that submitted. Its CPU time belongs to the I/O but not to the reactor's thread.

use crate::sysfs::{Sysfs, read_text};

/// The calling thread's number, as `/proc/self/task` has it.
#[must_use]
pub fn thread_id() -> u32 {
    // SAFETY: takes nothing, touches no memory, cannot fail. Thread numbers are positive.
    unsafe { libc::gettid() as u32 }
}

/// What the workers of one thread have used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WorkerTime {
    /// Workers alive now. An idle one ends after some seconds, and its time is lost to us.
    pub workers_count: u32,
    /// Their CPU time so far, nanoseconds.
    pub cpu_ns: u64,
}

/// Looks for the workers of a thread: named `iou-wrk-` and its number (io_uring/io-wq.c); the first
/// figure of their `schedstat` is CPU time in nanoseconds (Documentation/scheduler/sched-stats.rst).
/// Takes tens of microseconds: not for a hot loop.
#[must_use]
pub fn worker_time(sysfs: &Sysfs, thread: u32) -> WorkerTime {
    let mut total = WorkerTime::default();
    let Ok(tasks) = std::fs::read_dir(sysfs.proc("self/task")) else {
        return total;
    };
    // `comm` is cut at 15 characters.
    let name: String = format!("iou-wrk-{thread}").chars().take(15).collect();
    for task in tasks.flatten().map(|task| task.path()) {
        if read_text(&task.join("comm")).is_ok_and(|comm| comm == name) {
            total.workers_count += 1;
            let spent = read_text(&task.join("schedstat")).ok();
            let spent = spent.and_then(|text| text.split(' ').next()?.parse::<u64>().ok());
            total.cpu_ns += spent.unwrap_or(0);
        }
    }
    total
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn workers_are_told_by_their_name() {
        let root = tempfile::tempdir().unwrap();
        for (task, comm, spent) in [
            (10, "lanemark", "900 1 1"),
            (11, "iou-wrk-10", "30 5 2"),
            (12, "iou-wrk-10", "12 5 2"),
            (13, "iou-wrk-101", "77 5 2"),
        ] {
            let dir = root.path().join(format!("proc/self/task/{task}"));
            std::fs::create_dir_all(&dir).unwrap();
            std::fs::write(dir.join("comm"), format!("{comm}\n")).unwrap();
            std::fs::write(dir.join("schedstat"), format!("{spent}\n")).unwrap();
        }
        let sysfs = Sysfs::at(root.path());
        let expected = WorkerTime {
            workers_count: 2,
            cpu_ns: 42,
        };
        assert_eq!(worker_time(&sysfs, 10), expected);
        assert_eq!(worker_time(&sysfs, 99), WorkerTime::default());
        assert!(thread_id() > 0);
    }
}

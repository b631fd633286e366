//! What a backend's queue costs per I/O, apart from the engine: handing commands over, and reaping them.

use super::random_reads;
use crate::backend::{BackendError, Batch, Device, Queue, QueueSpec, Sink, Wait};
use crate::clock::Clock;
use crate::measure::LatencyHistogram;
use crate::request::{Io, Slot, Status};
use crate::session::{Opened, SessionError};
use crate::sys::clock::MachineClock;
use crate::sys::cpu::thread_cpu_ns;
use crate::workload::Generator;
use std::time::{Duration, Instant};

/// One measurement takes this long.
const BUDGET: Duration = Duration::from_millis(80);
/// A device that answers nothing for so long is given up.
const PATIENCE: Duration = Duration::from_secs(10);
/// A waiting poll looks up this often.
const LONGEST_SLEEP_NS: u64 = 100_000_000;
const READ_BYTES: u32 = 4096;
const CLOSE_LIMIT: Duration = Duration::from_millis(500);

/// Cost of a queue.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QueueCost {
    /// Building the commands and ringing the bell, nanoseconds per I/O: the median batch, so that being
    /// preempted amid one does not show.
    pub submit_ns: f64,
    /// Finding completions, nanoseconds per I/O: the rest of the thread's CPU time where polls sleep,
    /// otherwise the time of the polls that found something. Absent where nothing is left over.
    pub reap_ns: Option<f64>,
    /// Median time from the first command to the last completion of a batch; the device's latency at
    /// depth 1 where a batch is one command.
    pub p50_ns: u64,
    /// I/Os in all.
    pub ios_count: u64,
}

impl Opened {
    /// Prices a queue to the first device with reads of 4 KiB (one block where blocks are larger) at
    /// random places, `batch` at a time. Run it on a pinned thread.
    ///
    /// # Errors
    /// [`SessionError`] for a simulated device, whose time is made up, and for a device that fails or does
    /// not answer.
    pub fn queue_cost(&self, clock: &MachineClock, batch: u32) -> Result<QueueCost, SessionError> {
        Ok(match self {
            Self::Null(devices) => price(&devices[0], clock, batch)?,
            Self::Uring { devices, .. } => price(&devices[0], clock, batch)?,
            Self::UringCmd { devices, .. } => price(&devices[0], clock, batch)?,
            Self::Sg { devices, .. } => price(&devices[0], clock, batch)?,
            Self::Spdk { devices, .. } => price(&devices[0], clock, batch)?,
            Self::Sim { devices, .. } => {
                return Err(SessionError::WrongBackend {
                    device: devices[0].facts().path.clone(),
                    backend: "sim",
                    why: "its time is virtual: there is nothing to price".to_owned(),
                });
            }
        })
    }
}

/// Counts completions, and keeps the first failure.
#[derive(Default)]
struct Count {
    done_count: u32,
    failed: Option<Status>,
}

impl Sink for Count {
    #[inline]
    fn complete(&mut self, _slot: Slot, status: Status, _buffer: &mut [u8]) -> Option<Io> {
        self.done_count += 1;
        if !status.is_ok() {
            self.failed = self.failed.or(Some(status));
        }
        None
    }
}

#[derive(Default)]
struct Spans {
    /// Of handing a batch over.
    submit: LatencyHistogram,
    /// From a batch's first command to its last completion.
    whole: LatencyHistogram,
    /// In polls that found something.
    found_ticks: u64,
    ios_count: u64,
}

fn price<D: Device>(
    device: &D,
    clock: &MachineClock,
    batch: u32,
) -> Result<QueueCost, BackendError> {
    let facts = device.facts();
    let block_bytes = facts.logical_block.bytes();
    let blocks = (READ_BYTES / block_bytes).max(1);
    let device_blocks = facts.capacity.0 / u64::from(block_bytes);
    let wrong = |why: &str| BackendError::Unsuitable {
        path: facts.path.clone(),
        why: why.to_owned(),
    };
    if device_blocks < u64::from(blocks) {
        return Err(wrong("is smaller than one read of 4 KiB"));
    }
    let mut generator = Generator::new(&random_reads(blocks, device_blocks, batch));
    let mut queue = device.open_queue(QueueSpec {
        reactor_index: 0,
        reactors_count: 1,
        slots_count: batch,
        slot_bytes: blocks * block_bytes,
        batch: Batch {
            submit: batch,
            complete_min: batch,
            complete_max: batch,
        },
        writes: false,
    })?;
    let mut spans = Spans::default();
    let (started, cpu_ns) = (Instant::now(), thread_cpu_ns());
    let outcome = loop {
        let ios: Vec<Io> = generator.by_ref().take(batch as usize).collect();
        if let Err(why) = one_batch(&mut queue, clock, &ios, &mut spans) {
            break Err(wrong(&why));
        }
        if started.elapsed() >= BUDGET {
            break Ok(());
        }
    };
    let cpu_ns = thread_cpu_ns().saturating_sub(cpu_ns);
    queue.close(CLOSE_LIMIT);
    outcome?;
    Ok(cost::<D>(clock, &spans, cpu_ns))
}

#[allow(clippy::cast_precision_loss)]
fn cost<D: Device>(clock: &MachineClock, spans: &Spans, cpu_ns: u64) -> QueueCost {
    let median_ns = |spans: &LatencyHistogram| spans.percentile_ns(5_000).unwrap_or(0);
    let submit_ns = median_ns(&spans.submit) * spans.submit.count();
    let reap_ns = if D::Queue::SLEEPS {
        cpu_ns.saturating_sub(submit_ns)
    } else {
        clock.to_ns(spans.found_ticks)
    };
    let per_io = |ns: u64| ns as f64 / spans.ios_count as f64;
    QueueCost {
        submit_ns: per_io(submit_ns),
        reap_ns: (reap_ns > 0).then(|| per_io(reap_ns)),
        p50_ns: median_ns(&spans.whole),
        ios_count: spans.ios_count,
    }
}

/// Hands a batch over and waits for all of it.
fn one_batch<Q: Queue>(
    queue: &mut Q,
    clock: &MachineClock,
    ios: &[Io],
    spans: &mut Spans,
) -> Result<(), String> {
    let start = clock.now();
    for (slot, io) in (0..).map(Slot).zip(ios) {
        let taken = queue.submit(slot, *io);
        taken.map_err(|_| "takes fewer commands than its queue should hold".to_owned())?;
    }
    let gone = |gone: crate::backend::Gone| format!("is gone: {:?}", gone.0);
    queue.flush().map_err(gone)?;
    spans.submit.record(clock.to_ns(clock.now().since(start)));
    let mut sink = Count::default();
    let patience = Instant::now();
    while (sink.done_count as usize) < ios.len() {
        let before = clock.now();
        let found = queue.poll(&mut sink, Wait::AtMostNs(LONGEST_SLEEP_NS));
        if found.map_err(gone)? > 0 {
            spans.found_ticks += clock.now().since(before);
        } else if patience.elapsed() > PATIENCE {
            return Err("did not answer a read for 10 s".to_owned());
        }
    }
    spans.whole.record(clock.to_ns(clock.now().since(start)));
    spans.ios_count += ios.len() as u64;
    match sink.failed {
        Some(status) => Err(format!("failed a read: {status:?}")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::config::BackendChoice;
    use crate::reactor::Control;
    use crate::session::{Setup, Silent};
    use crate::sysfs::Sysfs;

    fn open(name: &str) -> Opened {
        let mut setup = Setup {
            control: &Control::default(),
            observer: &mut Silent,
            dry_run: false,
        };
        Opened::open(&[name], BackendChoice::Auto, &Sysfs::host(), &mut setup).unwrap()
    }

    #[test]
    fn real_queues_have_a_price_and_simulated_ones_have_none() {
        let clock = MachineClock::new(&Sysfs::host());
        let dir = tempfile::tempdir().unwrap();
        let file = format!("scratch:size=4M,dir={}", dir.path().display());
        for name in ["null", file.as_str()] {
            for batch in [1, 32] {
                let cost = open(name).queue_cost(&clock, batch).unwrap();
                assert!(cost.submit_ns > 0.0, "{cost:?}");
                assert!(cost.reap_ns.is_none_or(|ns| ns > 0.0), "{cost:?}");
                assert!(cost.ios_count >= u64::from(batch) && cost.p50_ns > 0);
            }
        }
        assert!(matches!(
            open("sim").queue_cost(&clock, 1),
            Err(SessionError::WrongBackend { .. })
        ));
    }
}

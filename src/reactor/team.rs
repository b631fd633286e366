//! Reactors on threads of their own: pinned, started together, joined.

use super::control::{Control, StopCause};
use super::outcome::ReactorOutcome;
use super::poll::Reactor;
use super::setup::{ReactorError, ReactorSetup};
use super::workers::{Threads, WorkerWatch};
use crate::backend::{Device, Queue, QueueSpec};
use crate::clock::{Clock, Tick};
use crate::measure::{Collected, Collector, IntervalPort};
use crate::request::Op;
use std::ops::Range;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// Everything a step left behind.
#[derive(Debug)]
pub struct TeamEnd {
    /// One per reactor, in order.
    pub outcomes: Vec<ReactorOutcome>,
    /// Histograms and series over all of them.
    pub collected: Collected,
    /// Nanoseconds of the window for which nothing of this process ran, as far as its collector can tell: what stopped it
    /// (a signal, a debugger, a limit of its cgroup, a pause of the whole machine) stopped the reactors too.
    pub held_ns: u64,
}

/// How often the collector looks for full intervals, and calls `watch`.
const COLLECT_EVERY: Duration = Duration::from_millis(50);
/// A nap that is over so much too late was no nap: a busy CPU delays the collector by far less.
const HELD_FROM: Duration = Duration::from_millis(100);
/// From the last reactor's being ready to the common start.
const START_DELAY_NS: u64 = 200_000;

/// Runs one step: a thread per setup, pinned to its CPU. Gathers intervals on the calling thread, which
/// also calls `watch` now and then.
///
/// # Errors
/// The first reactor that could not start; then none has issued anything.
pub fn run_team<D, C>(
    devices: &[D],
    setups: &[ReactorSetup],
    clock: &C,
    control: &Arc<Control>,
    watch: &mut dyn FnMut(&Collector),
) -> Result<TeamEnd, ReactorError>
where
    D: Device + Sync,
    C: Clock + Send + Sync,
{
    let gate = Gate::new(setups.len());
    let ports: Vec<_> = setups
        .iter()
        .map(|setup| IntervalPort::new(setup.ops(), setup.open_loop()))
        .collect();
    let mut collector = Collector::new(setups.len());
    let threads_ids = Threads::new(setups.len());
    let mut workers = WorkerWatch::new(setups.len());
    let mut held: Vec<Range<u64>> = Vec::new();
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let threads: Vec<_> = setups
            .iter()
            .zip(&ports)
            .enumerate()
            .map(|(place, (setup, port))| {
                let (gate, port, clock) = (&gate, port.clone(), clock.clone());
                let ids = &threads_ids;
                let (control, sender) = (Arc::clone(control), sender.clone());
                scope.spawn(move || {
                    ids.tell(setup.index);
                    let team = (setups, place);
                    let work = || reactor_thread(devices, team, clock, &control, port, gate);
                    let result = std::panic::catch_unwind(AssertUnwindSafe(work))
                        .unwrap_or(Err(ReactorError::Panicked { index: setup.index }));
                    // The receiver lives until every thread has finished.
                    let _ = sender.send((setup.index, result));
                })
            })
            .collect();
        while threads.iter().any(|thread| !thread.is_finished()) {
            held.extend(nap(clock));
            drain_ports(&ports, &mut collector);
            if D::Queue::SLEEPS {
                let measuring = (0..ports.len()).filter(|index| ports[*index].was_swapped());
                let now = std::time::Instant::now();
                measuring.for_each(|index| workers.look(index, &threads_ids, now));
            }
            watch(&collector);
        }
        // Not joined: where I/Os were abandoned the kernel may hold the thread at its exit until the
        // device answers (see `sys::standin`). Its work is done, and the scope asks for no more.
    });
    let mut results: Vec<_> = receiver.try_iter().collect();
    results.sort_by_key(|(index, _)| *index);
    let results = results.into_iter().map(|(_, result)| result).collect();
    drain_ports(&ports, &mut collector);
    let mut outcomes = first_error(results)?;
    for (index, outcome) in outcomes.iter_mut().enumerate().filter(|_| D::Queue::SLEEPS) {
        let window_ns = outcome.window_end_ns - outcome.window_start_ns;
        outcome.worker_ns = workers.over(index, window_ns);
    }
    outcomes
        .iter()
        .for_each(|outcome| collector.add(&outcome.last_interval));
    Ok(TeamEnd {
        held_ns: within_window(&outcomes, &held),
        outcomes,
        collected: collector.finish(),
    })
}

/// Waits until it is time to look again. The time by which that ended too late, where that was no accident, in
/// nanoseconds of the clock.
fn nap<C: Clock>(clock: &C) -> Option<Range<u64>> {
    let begun = std::time::Instant::now();
    std::thread::park_timeout(COLLECT_EVERY);
    let late = begun.elapsed().saturating_sub(COLLECT_EVERY);
    (late >= HELD_FROM).then(|| {
        let end_ns = clock.to_ns(clock.now().0);
        let late_ns = u64::try_from(late.as_nanos()).unwrap_or(u64::MAX);
        end_ns.saturating_sub(late_ns)..end_ns
    })
}

/// How much of these times lies in the window.
fn within_window(outcomes: &[ReactorOutcome], times: &[Range<u64>]) -> u64 {
    let start_ns = outcomes
        .iter()
        .map(|o| o.window_start_ns)
        .min()
        .unwrap_or(0);
    let end_ns = outcomes.iter().map(|o| o.window_end_ns).max().unwrap_or(0);
    let inside = |time: &Range<u64>| {
        let end_ns = time.end.min(end_ns);
        end_ns.saturating_sub(time.start.max(start_ns))
    };
    times.iter().map(inside).sum()
}

/// Takes what is full and gives it back empty.
pub(super) fn drain_ports(ports: &[IntervalPort], collector: &mut Collector) {
    for port in ports {
        while let Some(interval) = port.take() {
            collector.add(&interval);
            port.give_back(interval);
        }
    }
}

/// What the reactor at `index` of `setups` asks of a device's queue.
pub(super) fn queue_spec(
    setups: &[ReactorSetup],
    index: usize,
    (device, slots_count, slot_bytes): (u32, u32, u32),
) -> QueueSpec {
    let setup = &setups[index];
    let ops = setup.ops();
    let names_it = |setup: &&ReactorSetup| {
        let mut streams = setup.streams.iter();
        streams.any(|stream| stream.spec.device_index == device)
    };
    QueueSpec {
        reactor_index: setup.index,
        reactors_count: u32::try_from(setups.iter().filter(names_it).count()).unwrap_or(u32::MAX),
        slots_count,
        slot_bytes,
        batch: setup.batch,
        writes: Op::ALL
            .into_iter()
            .any(|op| ops[op as usize] && (op.changes_data() || op == Op::Flush)),
    }
}

fn reactor_thread<D: Device, C: Clock>(
    devices: &[D],
    (setups, index): (&[ReactorSetup], usize),
    clock: C,
    control: &Arc<Control>,
    port: IntervalPort,
    gate: &Gate,
) -> Result<ReactorOutcome, ReactorError> {
    let pass = gate.pass();
    let setup = &setups[index];
    if let Some(cpu) = setup.cpu {
        crate::sys::cpu::pin_current_thread(cpu).map_err(|error| ReactorError::Pin {
            cpu,
            why: error.to_string(),
        })?;
    }
    crate::sys::cpu::tighten_timers();
    let mut reactor = Reactor::new(
        setup,
        clock.clone(),
        Arc::clone(control),
        port,
        |device, slots, bytes| {
            let asked = (device, slots, bytes);
            devices[device as usize].open_queue(queue_spec(setups, index, asked))
        },
    )?;
    pass.ready();
    if !gate.wait_all() {
        return Err(ReactorError::Team);
    }
    if setup.index == 0 {
        control.set_start(clock.now().plus(clock.to_ticks(START_DELAY_NS)).0);
    }
    let start = await_start(control, &clock);
    let _guard = StopOnPanic(control);
    reactor.start(start);
    reactor.run();
    Ok(reactor.finish())
}

fn await_start<C: Clock>(control: &Control, clock: &C) -> Tick {
    while control.start() == 0 {
        std::thread::yield_now();
    }
    let start = Tick(control.start());
    while clock.now() < start {
        std::hint::spin_loop();
    }
    start
}

fn first_error(
    results: Vec<Result<ReactorOutcome, ReactorError>>,
) -> Result<Vec<ReactorOutcome>, ReactorError> {
    // The reactor that failed says more than those that waited for it.
    let is_team = |result: &Result<_, ReactorError>| matches!(result, Err(ReactorError::Team));
    let (waited, mut rest): (Vec<_>, Vec<_>) = results.into_iter().partition(is_team);
    rest.extend(waited);
    rest.into_iter().collect()
}

/// Lets reactors through when all are ready, or turns all away when one has failed or panicked.
struct Gate {
    wanted_count: usize,
    ready_count: AtomicUsize,
    failed: AtomicBool,
}

/// A thread's way through the gate: dropped before it was ready, it turns all away.
struct GatePass<'a>(&'a Gate);

impl Gate {
    const fn new(wanted_count: usize) -> Self {
        Self {
            wanted_count,
            ready_count: AtomicUsize::new(0),
            failed: AtomicBool::new(false),
        }
    }

    const fn pass(&self) -> GatePass<'_> {
        GatePass(self)
    }

    fn wait_all(&self) -> bool {
        // Acquire pairs with the release of `ready`: what the others set up has happened before.
        while self.ready_count.load(Ordering::Acquire) < self.wanted_count {
            if self.failed.load(Ordering::Acquire) {
                return false;
            }
            std::thread::yield_now();
        }
        true
    }
}

impl GatePass<'_> {
    fn ready(self) {
        self.0.ready_count.fetch_add(1, Ordering::Release);
        std::mem::forget(self);
    }
}

impl Drop for GatePass<'_> {
    fn drop(&mut self) {
        self.0.failed.store(true, Ordering::Release);
    }
}

/// A reactor that panics takes the others with it, or the step would run on with a part of its load.
struct StopOnPanic<'a>(&'a Control);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop(StopCause::Gone);
        }
    }
}

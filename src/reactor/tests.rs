//! The loop against devices whose truth is known.
#![allow(clippy::unwrap_used)]

use super::{Control, Reactor, ReactorSetup, StopCause, StreamSetup, TeamEnd, run_virtual_team};
use crate::backend::sim::{SimDevice, SimQueue, SimSpec, VirtualQueue};
use crate::backend::{Batch, Closed, Device, Full, Gone, Queue, Sink, Wait};
use crate::clock::{Clock, VirtualClock};
use crate::measure::{Collector, IntervalPort, StampChoice};
use crate::request::{Io, Slot};
use crate::workload::{
    Access, Arrival, DataPattern, Distribution, OpMix, Quota, Region, SizeShare, StreamSpec,
};
use std::sync::Arc;
use std::time::Duration;

pub(super) fn spec(depth: u32, seed: u64) -> StreamSpec {
    StreamSpec {
        device_index: 0,
        ops: OpMix::Read,
        access: Access::Random {
            distribution: Distribution::Uniform,
            random_pct: 100.0,
        },
        sizes: vec![SizeShare {
            blocks: 8,
            share_pct: 100.0,
        }],
        align_blocks: 8,
        region: Region {
            first_lba: 0,
            blocks: 1 << 30,
        },
        depth,
        arrival: Arrival::Closed,
        flush_every: None,
        quota: Quota::default(),
        data: DataPattern::Random,
        seed,
    }
}

pub(super) fn setup(index: u32, streams: Vec<StreamSpec>) -> ReactorSetup {
    let depth = streams.iter().map(|stream| stream.depth).sum();
    let setups = (0..).zip(streams).map(|(number, spec)| StreamSetup {
        spec,
        index: index + number,
        step_streams_count: 8,
        block_bytes: 512,
    });
    ReactorSetup {
        index,
        cpu: None,
        streams: setups.collect(),
        batch: Batch {
            submit: depth,
            complete_min: 1,
            complete_max: depth,
        },
        ramp_ns: 1_000_000,
        runtime_ns: Some(1_000_000_000),
        grace_ns: 5_000_000_000,
        max_errors: None,
        stamp: StampChoice::Exact,
    }
}

fn run(device: &str, setups: &[ReactorSetup]) -> TeamEnd {
    let clock = VirtualClock::new();
    let device = SimDevice::new("sim", &SimSpec::parse(device).unwrap(), clock.clone());
    let devices = [device];
    assert!(devices[0].facts().blocks().0 > 0);
    let control = Arc::new(Control::default());
    run_virtual_team(&devices, setups, &clock, &control, &mut |_| {}).unwrap()
}

fn iops(end: &TeamEnd) -> f64 {
    let window = end.outcomes[0].window_end_ns - end.outcomes[0].window_start_ns;
    end.collected.latency.iter().map(|l| l.count()).sum::<u64>() as f64 * 1e9 / window as f64
}

#[test]
fn fixed_latency_and_depth_give_the_rate_they_must() {
    let end = run("latency=100us", &[setup(0, vec![spec(8, 1)])]);
    assert!((iops(&end) - 80_000.0).abs() < 80.0, "{}", iops(&end));
    let latency = end.collected.latency[0].summary().unwrap();
    assert_eq!(
        (latency.p50, latency.p99_9, latency.max),
        (100_000, 100_000, 100_000)
    );
    let outcome = &end.outcomes[0];
    let area = outcome.in_flight_area_ns as f64 / 1e9;
    assert!((area - 8.0).abs() < 0.01, "{area}");
    assert_eq!(
        outcome.submitted_count,
        outcome.completed_count + outcome.failed_count + outcome.abandoned.len() as u64
    );
    assert_eq!(end.collected.series.len(), 1);
}

#[test]
fn parallelism_and_cap_bind_exactly() {
    let four = run(
        "latency=100us,parallelism=4",
        &[setup(0, vec![spec(16, 1)])],
    );
    assert!((iops(&four) - 40_000.0).abs() < 40.0);
    let capped = run(
        "latency=100us,cap_iops=25000",
        &[setup(0, vec![spec(64, 1)])],
    );
    assert!((iops(&capped) - 25_000.0).abs() < 25.0);
    let latency = capped.collected.latency[0].mean_ns().unwrap();
    assert!((latency - 64.0 * 40_000.0).abs() < 2_000.0, "{latency}");
}

#[test]
fn failures_are_never_iops() {
    let end = run("latency=100us,errors=1%", &[setup(0, vec![spec(8, 1)])]);
    let failed = end.outcomes[0].window_failed_count as f64;
    assert!((iops(&end) + failed - 80_000.0).abs() < 80.0);
    assert!((failed - 800.0).abs() < 120.0, "{failed}");
    assert_eq!(
        end.outcomes[0].errors.tallies()[0].status,
        "EIO (Input/output error)"
    );
}

#[test]
fn several_reactors_repeat_bit_for_bit() {
    let device = "latency=50us..150us,parallelism=6";
    let team = || {
        let setups = [
            setup(0, vec![spec(4, 1)]),
            setup(1, vec![spec(4, 2), spec(3, 3)]),
        ];
        let end = run(device, &setups);
        (
            end.collected.latency[0].buckets(),
            end.collected.latency[0].summary(),
        )
    };
    assert_eq!(team(), team());
}

#[test]
fn a_device_that_never_completes_ends_within_its_deadline() {
    let end = run(
        "latency=100us,stuck_after=1000",
        &[setup(0, vec![spec(8, 1)])],
    );
    let outcome = &end.outcomes[0];
    assert!(outcome.stuck);
    assert_eq!(outcome.abandoned.len(), 8);
    assert!(outcome.abandoned.iter().all(|io| io.age_ns > 5_900_000_000));
    assert_eq!(outcome.submitted_count, outcome.completed_count + 8);
    let mut counted = setup(0, vec![spec(8, 1)]);
    counted.runtime_ns = None;
    counted.streams[0].spec.quota.ios = Some(1_000_000);
    let end = run("latency=100us,stuck_after=1000", &[counted]);
    assert!(end.outcomes[0].stuck);
    assert_eq!(end.outcomes[0].abandoned.len(), 8);
}

/// Completions come at 0, 0.5, 1 … s: a window of two seconds holds four of them, whatever ends it.
#[test]
fn a_window_that_ends_early_holds_one_edge_only() {
    let clock = VirtualClock::new();
    let spec_text = "latency=500ms,parallelism=1000";
    let device = SimDevice::new("sim", &SimSpec::parse(spec_text).unwrap(), clock.clone());
    let mut long = setup(0, vec![spec(1000, 1)]);
    long.ramp_ns = 1_000_000_000;
    long.runtime_ns = Some(100_000_000_000);
    let control = Arc::new(Control::default());
    let mut stop = |collector: &Collector| {
        if collector.seconds_count() == 2 {
            control.stop(StopCause::Steady);
        }
    };
    let end = run_virtual_team(&[device], &[long], &clock, &control, &mut stop).unwrap();
    assert_eq!(end.collected.latency[0].count(), 4_000);
    assert_eq!(iops(&end), 2_000.0);
    let gone = run(
        "latency=100us,parallelism=4,gone_after=3001",
        &[setup(0, vec![spec(4, 1)])],
    );
    assert!(iops(&gone) <= 40_000.0, "{}", iops(&gone));
}

#[test]
fn a_gone_device_ends_the_run_at_once() {
    let end = run(
        "latency=100us,gone_after=1000",
        &[setup(0, vec![spec(8, 1)])],
    );
    let outcome = &end.outcomes[0];
    assert!(outcome.gone.is_some());
    let length = outcome.window_end_ns - outcome.window_start_ns;
    assert!(length < 20_000_000, "{length}");
}

#[test]
fn a_count_ends_the_window_at_its_last_completion() {
    let mut counted = setup(0, vec![spec(8, 1)]);
    counted.ramp_ns = 0;
    counted.runtime_ns = None;
    counted.streams[0].spec.quota.ios = Some(8_000);
    let end = run("latency=100us", &[counted]);
    let outcome = &end.outcomes[0];
    assert_eq!(end.collected.latency[0].count(), 8_000);
    assert_eq!(outcome.window_end_ns - outcome.window_start_ns, 100_000_000);
}

#[test]
fn a_stall_shows_in_scheduled_latency() {
    let mut open = setup(
        0,
        vec![StreamSpec {
            arrival: Arrival::Fixed { iops: 1000.0 },
            ..spec(1, 1)
        }],
    );
    open.ramp_ns = 0;
    open.runtime_ns = Some(5_000_000_000);
    let end = run("latency=100us,stall=2s+100ms", &[open]);
    assert_eq!(end.collected.latency[0].count(), 5_000);
    let service = end.collected.latency[0].summary().unwrap();
    let scheduled = end.collected.scheduled[0].summary().unwrap();
    // The largest value of the bucket: 3 significant digits.
    assert!(service.p99_9.abs_diff(100_000) <= 100, "{}", service.p99_9);
    assert!(
        (scheduled.p99 as f64 - 56e6).abs() < 0.04 * 56e6,
        "{}",
        scheduled.p99
    );
    assert!(
        (scheduled.p99_9 as f64 - 96e6).abs() < 0.04 * 96e6,
        "{}",
        scheduled.p99_9
    );
    assert_eq!(end.collected.series.len(), 5);
}

/// A queue that sleeps in its poll, as io_uring does, over a simulated device.
struct Sleepy(SimQueue, VirtualClock);

impl Queue for Sleepy {
    const SLEEPS: bool = true;
    const FOUND_TOGETHER: bool = true;

    fn submit(&mut self, slot: Slot, io: Io) -> Result<(), Full> {
        self.0.submit(slot, io)
    }
    fn flush(&mut self) -> Result<(), Gone> {
        self.0.flush()
    }
    fn poll<S: Sink>(&mut self, sink: &mut S, wait: Wait) -> Result<usize, Gone> {
        self.0.flush()?;
        let now = self.1.now();
        let until = match wait {
            Wait::Never => now.plus(100),
            Wait::AtMostNs(ns) => now.plus(ns),
        };
        self.1
            .advance_to(self.0.next_event().unwrap_or(until).min(until));
        self.0.poll(sink, wait)
    }
    fn buffer(&mut self, slot: Slot) -> &mut [u8] {
        self.0.buffer(slot)
    }
    fn close(self, limit: Duration) -> Closed {
        self.0.close(limit)
    }
}

#[test]
fn sleeping_in_a_poll_is_no_part_of_a_stamp_or_its_bound() {
    for (stamp, arrival) in [
        (StampChoice::Exact, Arrival::Fixed { iops: 200.0 }),
        (StampChoice::Batch, Arrival::Fixed { iops: 200.0 }),
        (StampChoice::Batch, Arrival::Closed),
    ] {
        let clock = VirtualClock::new();
        let device = SimDevice::new(
            "sim",
            &SimSpec::parse("latency=100us").unwrap(),
            clock.clone(),
        );
        let mut setup = setup(
            0,
            vec![StreamSpec {
                arrival,
                ..spec(4, 1)
            }],
        );
        setup.stamp = stamp;
        let port = IntervalPort::new(setup.ops(), setup.open_loop());
        let control = Arc::new(Control::default());
        let open = |place, slots, bytes| {
            let setups = std::slice::from_ref(&setup);
            let spec = super::team::queue_spec(setups, 0, (place, slots, bytes));
            assert_eq!(spec.reactors_count, 1);
            device
                .open_queue(spec)
                .map(|queue| Sleepy(queue, clock.clone()))
        };
        let mut reactor = Reactor::new(&setup, clock.clone(), control, port.clone(), open).unwrap();
        reactor.start(clock.now());
        reactor.run();
        let outcome = reactor.finish();
        assert_eq!(outcome.stamp_bound.bound_ns(), 0);
        let mut collector = Collector::new(1);
        while let Some(interval) = port.take() {
            collector.add(&interval);
        }
        collector.add(&outcome.last_interval);
        let latency = collector.finish().latency[0].summary().unwrap();
        // An arrival that falls due between two looks waits for the second.
        assert!(
            latency.min >= 100_000 && latency.p50 <= 100_200,
            "{latency:?}"
        );
        let window_ns = (outcome.window_end_ns - outcome.window_start_ns) as f64;
        let in_flight = outcome.in_flight_area_ns as f64 / window_ns;
        let expected = if arrival == Arrival::Closed {
            4.0
        } else {
            0.02
        };
        assert!((in_flight / expected - 1.0).abs() < 0.02, "{in_flight}");
    }
}

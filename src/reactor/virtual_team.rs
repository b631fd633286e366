//! Reactors in virtual time: all in one thread, in the order of time, so that every run repeats exactly.

use super::control::Control;
use super::poll::Reactor;
use super::setup::{ReactorError, ReactorSetup};
use super::team::{TeamEnd, drain_ports, queue_spec};
use crate::backend::Device;
use crate::backend::sim::VirtualQueue;
use crate::clock::{Clock, Tick, VirtualClock};
use crate::measure::{Collector, IntervalPort};
use std::sync::Arc;

/// Runs one step in virtual time.
///
/// # Errors
/// A queue that could not be opened.
pub fn run_virtual_team<D>(
    devices: &[D],
    setups: &[ReactorSetup],
    clock: &VirtualClock,
    control: &Arc<Control>,
    watch: &mut dyn FnMut(&Collector),
) -> Result<TeamEnd, ReactorError>
where
    D: Device,
    D::Queue: VirtualQueue,
{
    let mut collector = Collector::new(setups.len());
    let ports: Vec<_> = setups
        .iter()
        .map(|setup| IntervalPort::new(setup.ops(), setup.open_loop()))
        .collect();
    let mut reactors = Vec::new();
    for (place, (setup, port)) in setups.iter().zip(&ports).enumerate() {
        let control = Arc::clone(control);
        let open = |device: u32, slots, bytes| {
            devices[device as usize].open_queue(queue_spec(setups, place, (device, slots, bytes)))
        };
        reactors.push(Reactor::new(
            setup,
            clock.clone(),
            control,
            port.clone(),
            open,
        )?);
    }
    let start = clock.now();
    reactors.iter_mut().for_each(|reactor| reactor.start(start));
    let mut over = vec![false; reactors.len()];
    let mut seconds_seen = 0;
    while over.contains(&false) {
        let mut worked = false;
        for (reactor, over) in reactors
            .iter_mut()
            .zip(&mut over)
            .filter(|(_, over)| !**over)
        {
            worked |= reactor.pass();
            *over = reactor.finished();
            worked |= *over;
        }
        drain_ports(&ports, &mut collector);
        if collector.seconds_count() != seconds_seen {
            seconds_seen = collector.seconds_count();
            watch(&collector);
        }
        if !worked {
            let next = reactors
                .iter()
                .zip(&over)
                .filter(|(_, over)| !**over)
                .map(|(r, _)| wake(r));
            clock.advance_to(next.min().unwrap_or(clock.now()).max(clock.now().plus(1)));
        }
    }
    let outcomes: Vec<_> = reactors.into_iter().map(Reactor::finish).collect();
    outcomes
        .iter()
        .for_each(|outcome| collector.add(&outcome.last_interval));
    Ok(TeamEnd {
        outcomes,
        collected: collector.finish(),
        held_ns: 0,
    })
}

/// The next moment at which this reactor has something to do.
fn wake<Q: VirtualQueue>(reactor: &Reactor<Q, VirtualClock>) -> Tick {
    let events = reactor.queues().filter_map(VirtualQueue::next_event);
    events
        .min()
        .unwrap_or(Tick(u64::MAX))
        .min(reactor.next_wake())
}

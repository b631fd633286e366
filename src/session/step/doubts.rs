//! What speaks against a step: why it failed, and doubts that only its outcome can raise.

use super::assemble::{StepFacts, Totals, ios_of};
use crate::config::StepPlan;
use crate::reactor::{ReactorOutcome, StopCause, TeamEnd};
use crate::record::{Failure, Warning};

/// The warning that arrivals were not kept up with.
pub(in crate::session) const OVERLOAD: &str = "overload";

/// Streams that run out of I/Os at different times leave the step at part of its load for the rest.
#[allow(clippy::cast_precision_loss)]
pub(in crate::session) fn uneven_end_warning(
    plan: &StepPlan,
    outcomes: &[ReactorOutcome],
) -> Option<Warning> {
    let start_ns = outcomes.iter().map(|o| o.window_start_ns).min()?;
    let end_ns = outcomes.iter().map(|o| o.window_end_ns).max()?;
    let streams = outcomes.iter().flat_map(|o| &o.streams);
    let ended = streams.filter_map(|s| s.ended_ns.map(|ended| (ended, s.index)));
    let (first_ns, index) = ended.min()?;
    let (alone_ns, length_ns) = (
        end_ns.saturating_sub(first_ns),
        end_ns.saturating_sub(start_ns),
    );
    if alone_ns * 20 <= length_ns {
        return None;
    }
    let depth: u64 = plan
        .streams
        .iter()
        .map(|stream| u64::from(stream.depth))
        .sum();
    Some(Warning {
        kind: "uneven-end".to_owned(),
        text: format!(
            "stream {index} had no more I/Os after {:.1} of {:.1} ms: all {depth} were in flight for {:.0} % of the window",
            (first_ns.saturating_sub(start_ns)) as f64 / 1e6,
            length_ns as f64 / 1e6,
            (length_ns - alone_ns) as f64 * 100.0 / length_ns as f64
        ),
        next_step: "end the step by runtime, or give every stream the same depth and amount"
            .to_owned(),
    })
}

pub(in crate::session) fn backlog_warning(
    outcomes: &[ReactorOutcome],
    window_ns: u64,
) -> Option<Warning> {
    let streams = || outcomes.iter().flat_map(|o| &o.streams);
    let count: u64 = streams().map(|stream| stream.backlog_count).sum();
    let oldest_ns = streams()
        .filter(|stream| stream.backlog_count > 0)
        .map(|stream| stream.backlog_oldest_ns)
        .max()?;
    // Arrivals cluster, and a core can be taken away for a while: what waits at the end is an overload only
    // where it has waited for a good part of the window.
    if oldest_ns < 1_000_000.max(window_ns / 100) {
        return None;
    }
    #[allow(clippy::cast_precision_loss)]
    let oldest_ms = oldest_ns as f64 / 1e6;
    Some(Warning {
        kind: OVERLOAD.to_owned(),
        text: format!(
            "{count} arrivals were still waiting at the end, the oldest for {oldest_ms:.1} ms: the device does not keep up with the rate"
        ),
        next_step: "lower rate_iops, or raise iodepth if the device can take more at once"
            .to_owned(),
    })
}

/// A gap between polls of this length is none of the device's nor of the loop's: 2^23 ns, a bound of a bucket.
const LONG_GAP_NS: u64 = 1 << 23;

/// Reactors that were stopped, or whose CPUs were taken away, for a hundredth of the window or more. What sleeps in
/// the kernel shows no gaps: there only what stopped the whole process is seen. `is_simulated` devices leap in time.
#[allow(clippy::cast_precision_loss)]
pub(in crate::session) fn stalled_warning(
    end: &TeamEnd,
    window_ns: u64,
    is_simulated: bool,
) -> Option<Warning> {
    if is_simulated {
        return None;
    }
    let gaps = end.outcomes.iter().map(|o| o.gaps.at_least_ns(LONG_GAP_NS));
    let stalled_ns = gaps.max().unwrap_or(0).max(end.held_ns);
    if stalled_ns == 0 || stalled_ns < window_ns / 100 {
        return None;
    }
    Some(Warning {
        kind: "stalled".to_owned(),
        text: format!(
            "this process was kept from running for at least {:.0} ms of a window of {:.0} ms: rates are too low and latencies too long by that",
            stalled_ns as f64 / 1e6,
            window_ns as f64 / 1e6
        ),
        next_step: "measure on CPUs of its own: no CPU limit (cgroup, container, virtual machine), no debugger, no other work"
            .to_owned(),
    })
}

/// The devices of these streams, each once, in the order of the step.
fn of_streams(facts: &StepFacts<'_>, streams: impl Iterator<Item = u32>) -> String {
    let mut places: Vec<u32> = streams
        .map(|stream| facts.plan.streams[stream as usize].device_index)
        .collect();
    places.sort_unstable();
    places.dedup();
    let paths = places
        .into_iter()
        .map(|place| facts.devices[place as usize].path.as_str());
    paths.collect::<Vec<_>>().join(", ")
}

pub(in crate::session) fn failure(
    outcomes: &[ReactorOutcome],
    totals: &Totals,
    facts: &StepFacts<'_>,
    failed_count: u64,
) -> Option<Failure> {
    let streams = || outcomes.iter().flat_map(|o| &o.streams);
    let all = || of_streams(facts, streams().map(|stream| stream.index));
    let failing = || {
        let streams = streams().filter(|stream| stream.failed_count > 0);
        of_streams(facts, streams.map(|stream| stream.index))
    };
    let make = |kind: &str, text: String, next_step: &str| {
        Some(Failure {
            kind: kind.to_owned(),
            text,
            next_step: next_step.to_owned(),
            exit_code: 1,
        })
    };
    if let Some((_, status)) = outcomes.iter().find_map(|o| o.gone) {
        let gone = outcomes.iter().filter_map(|o| o.gone);
        let device = of_streams(facts, gone.map(|(stream, _)| stream));
        let status = crate::measure::status_name(status);
        return make(
            "gone",
            format!("{device} is gone: {status}"),
            "look at the kernel's log",
        );
    }
    if outcomes.iter().any(|o| o.stuck) {
        let oldest = totals.abandoned.first()?;
        let device = of_streams(facts, totals.abandoned.iter().map(|io| io.stream));
        #[allow(clippy::cast_precision_loss)]
        let age_s = oldest.age_ns as f64 / 1e9;
        let text = format!(
            "{device}: {} I/Os did not complete within the grace; the oldest is a {} at LBA {}, {age_s:.1} s old",
            totals.abandoned.len(),
            oldest.io.op.name(),
            oldest.io.lba
        );
        return make(
            "stuck",
            text,
            "look at the kernel's log; raise grace if the device is merely slow",
        );
    }
    if outcomes.iter().any(|o| o.cause == StopCause::ErrorLimit) {
        let device = failing();
        let text = format!("{device}: stopped after {failed_count} failed I/Os (max_errors)");
        return make("error-limit", text, "see the list of errors");
    }
    let counted = |o: &ReactorOutcome| o.streams.iter().map(ios_of).sum::<u64>();
    let signalled = outcomes.iter().any(|o| o.cause >= StopCause::Signal);
    if failed_count == 0 && !signalled && outcomes.iter().map(counted).sum::<u64>() == 0 {
        let device = all();
        let text = format!("{device}: no I/O completed inside the window: nothing was measured");
        return make(
            "no-samples",
            text,
            "run longer than one I/O of this device takes",
        );
    }
    if failed_count > 0 {
        let device = failing();
        let text = format!("{device}: {failed_count} I/Os failed; they are in no figure");
        return make("io-errors", text, "see the list of errors");
    }
    None
}

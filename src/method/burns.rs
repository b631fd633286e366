//! Burning a known time at each I/O, to see whether the reactors are what binds.

use crate::ceiling::host::{self, BurnPoint, HostEvidence};
use crate::config::StepPlan;
use crate::record::{LaneBurn, Outcome, Step};
use crate::session::Opened;

/// Parts of the reactor's time per I/O that are burnt.
const BURN_PARTS: [f64; 3] = [0.25, 0.5, 1.0];
/// The largest burn is this at least: smaller ones drown in the clock's own cost.
const LEAST_BURN_NS: f64 = 400.0;
/// With fewer I/Os in flight on a reactor the device waits while the reactor burns: then the rate falls whatever binds.
/// With so many a device that binds loses less than half of what a reactor that binds would.
const LEAST_IN_FLIGHT_COUNT: u64 = 4;
/// Windows that [`burns`] takes.
pub const BURNS_COUNT: usize = BURN_PARTS.len() + 1;

/// I/Os and bytes a second of a step, both ways together.
#[must_use]
pub fn rate(step: &Step) -> (f64, f64) {
    let both = [&step.read, &step.write].into_iter().flatten();
    both.fold((0.0, 0.0), |(iops, bytes), direction| {
        (iops + direction.iops, bytes + direction.bytes_per_s)
    })
}

/// Simulated reactors share one line of time: a burn of one holds up all.
#[must_use]
pub const fn reactors_that_run_at_once(opened: &Opened, step: &StepPlan) -> u32 {
    match opened {
        Opened::Sim { .. } => 1,
        _ => step.reactors_count,
    }
}

/// Runs a step of `base_iops` again with growing burns; `run` is told how much to burn, in nanoseconds. The first burns nothing:
/// the wrapper that burns costs something by itself, and what it is held against passes through it too. Ends early
/// where a window is not whole.
///
/// # Errors
/// Those of `run`.
pub fn burns<E>(
    base_iops: f64,
    reactors_count: u32,
    mut run: impl FnMut(u64) -> Result<Step, E>,
) -> Result<Vec<LaneBurn>, E> {
    let mut burns = Vec::new();
    if base_iops <= 0.0 {
        return Ok(burns);
    }
    let reactors = f64::from(reactors_count);
    let mut period_ns = reactors * 1e9 / base_iops;
    for part in std::iter::once(0.0).chain(BURN_PARTS) {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let burn_ns = (part * period_ns.max(LEAST_BURN_NS)).round() as u64;
        let step = run(burn_ns)?;
        if step.status != Outcome::Finished {
            break;
        }
        if burn_ns == 0 && rate(&step).0 > 0.0 {
            period_ns = reactors * 1e9 / rate(&step).0;
        }
        #[allow(clippy::cast_precision_loss)]
        let host_bound_iops = reactors * 1e9 / (period_ns + burn_ns as f64);
        burns.push(LaneBurn {
            burn_ns,
            iops: rate(&step).0,
            host_bound_iops,
        });
    }
    Ok(burns)
}

/// What the burns show, and the I/Os a second that the reactors can drive, where they show that. `in_flight_count` is
/// that of all reactors.
#[must_use]
pub fn judge(
    base_iops: f64,
    burns: &[LaneBurn],
    reactors_count: u32,
    in_flight_count: u64,
) -> (HostEvidence, Option<f64>) {
    #[allow(clippy::cast_precision_loss)]
    let burnt: Vec<BurnPoint> = burns
        .iter()
        .skip(1)
        .map(|burn| BurnPoint {
            burn_ns: burn.burn_ns as f64,
            iops: burn.iops,
        })
        .collect();
    let base_iops = burns.first().map_or(base_iops, |unburnt| unburnt.iops);
    let reachable = (!burnt.is_empty())
        .then(|| host::reachable_iops(base_iops, reactors_count, &burnt))
        .flatten();
    let is_shallow = in_flight_count < LEAST_IN_FLIGHT_COUNT * u64::from(reactors_count);
    match host::judge(base_iops, reactors_count, &burnt) {
        HostEvidence::Proven if is_shallow => (HostEvidence::Unclear, reachable),
        evidence => (evidence, reachable),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One I/O in flight: what is burnt before the next is issued costs the rate just that, whatever binds.
    #[test]
    #[allow(clippy::cast_precision_loss)]
    fn a_device_that_waits_for_its_reactor_proves_nothing() {
        let at = |burn_ns: u64| LaneBurn {
            burn_ns,
            iops: 1e9 / (1e5 + burn_ns as f64),
            host_bound_iops: 1e9 / (1e5 + burn_ns as f64),
        };
        let burns = [0, 25_000, 50_000, 100_000].map(at);
        let evidence = |reactors_count, in_flight| judge(1e4, &burns, reactors_count, in_flight).0;
        assert_eq!(evidence(1, 1), HostEvidence::Unclear);
        assert_eq!(evidence(1, 4), HostEvidence::Proven);
    }
}

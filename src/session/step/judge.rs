//! Adds path, ceilings and verdict to the record of a step.

use super::doubts::OVERLOAD;
use crate::ceiling::evidence::{Between, Evidence, Members, Peer};
use crate::ceiling::host::HostEvidence;
use crate::ceiling::plateau::Plateau;
use crate::ceiling::share::{LinkLoad, Measured};
use crate::ceiling::verdict::judge;
use crate::config::StepPlan;
use crate::record::{Direction, LinkChange, Step, Unseen};
use crate::session::path::{Moved, SeenPath, Workload, ceilings, loads};
use crate::workload::{Arrival, OpMix};

/// Evidence that one step by itself does not give.
#[derive(Debug, Clone, Default)]
pub struct Proofs {
    /// What a curve over depth shows.
    pub plateau: Option<Plateau>,
    /// What burning time shows.
    pub host: HostEvidence,
    /// What the reactors can drive, where burning has shown it.
    pub host_iops: Option<f64>,
    /// The devices alone and together.
    pub members: Option<Members>,
    /// Unlike devices of one platform, each alone.
    pub peers: Vec<Peer>,
}

/// Fills in paths, ceilings and verdict of a step.
pub fn add_verdict(step: &mut Step, plan: &StepPlan, paths: &[SeenPath], proofs: &Proofs) {
    step.path = (0..)
        .zip(paths)
        .map(|(index, path)| {
            let mut record = path.record.clone();
            record.device_index = index;
            record
        })
        .collect();
    let workload = workload(step, plan, proofs);
    if let Some(workload) = &workload {
        step.ceilings = ceilings(paths, workload);
    }
    let links = workload.map_or_else(Vec::new, |workload| {
        loads(paths, &moved(step, plan, &workload), &workload)
    });
    let parts = parts(step, paths, links);
    step.verdict = judge(&evidence_of(step, plan, proofs, &parts));
}

/// What of the paths speaks against any verdict, over all devices.
struct Parts {
    device: String,
    links: Vec<LinkLoad>,
    between: Vec<Between>,
    unseen: Vec<Unseen>,
    changes: Vec<LinkChange>,
}

fn parts(step: &Step, paths: &[SeenPath], links: Vec<LinkLoad>) -> Parts {
    let mut unseen: Vec<Unseen> = Vec::new();
    for part in step.path.iter().flat_map(|path| &path.unseen) {
        if !unseen.contains(part) {
            unseen.push(part.clone());
        }
    }
    let names: Vec<&str> = step.devices.iter().map(|one| one.path.as_str()).collect();
    Parts {
        device: names.join(", "),
        links,
        between: between(paths),
        unseen,
        changes: step
            .path
            .iter()
            .flat_map(|path| path.changes.clone())
            .collect(),
    }
}

fn evidence_of<'a>(
    step: &'a Step,
    plan: &StepPlan,
    proofs: &'a Proofs,
    parts: &'a Parts,
) -> Evidence<'a> {
    let measured = |direction: &Direction| Measured {
        bytes_per_s: direction.bytes_per_s,
        iops: direction.iops,
    };
    Evidence {
        device: &parts.device,
        devices_count: step.devices.len(),
        read: step.read.as_ref().map(measured),
        write: step.write.as_ref().map(measured),
        ceilings: Some(&step.ceilings),
        links: &parts.links,
        in_flight_ratio: in_flight_ratio(step),
        between: &parts.between,
        unseen: &parts.unseen,
        changes: &parts.changes,
        errors: step
            .path
            .iter()
            .flat_map(|path| &path.counters)
            .find(|counter| counter.grown_count != Some(0)),
        plateau: proofs.plateau,
        host: proofs.host,
        members: proofs.members.as_ref(),
        peers: &proofs.peers,
        has_rate: has_rate(plan),
        is_overloaded: step.warnings.iter().any(|one| one.kind == OVERLOAD),
    }
}

/// What was in flight of what ended in the window. Nothing that ended: nothing is certain.
#[allow(clippy::cast_precision_loss)]
fn in_flight_ratio(step: &Step) -> f64 {
    let directions = [&step.read, &step.write].into_iter().flatten();
    let ios_count: u64 = directions.map(|direction| direction.ios_count).sum();
    step.depth.in_flight_mean / ios_count.max(1) as f64
}

/// Whether arrivals limit what the reactors do.
pub(in crate::session) fn has_rate(plan: &StepPlan) -> bool {
    let mut streams = plan.streams.iter();
    streams.any(|stream| stream.arrival != Arrival::Closed)
}

/// The controllers that are not the device itself.
fn between(paths: &[SeenPath]) -> Vec<Between> {
    let mut found: Vec<Between> = Vec::new();
    for name in paths.iter().filter_map(SeenPath::hba) {
        match found.iter_mut().find(|known| known.name == name) {
            Some(known) => known.devices_count += 1,
            None => found.push(Between {
                name: name.to_owned(),
                devices_count: 1,
            }),
        }
    }
    found
}

/// What each device moved in the window, by its streams; a stream that mixes has the step's shares.
#[allow(clippy::cast_precision_loss)] // Bytes of a step are far below 2^53.
fn moved(step: &Step, plan: &StepPlan, workload: &Workload) -> Vec<Moved> {
    let both = || [&step.read, &step.write].into_iter().flatten();
    let rate: f64 = both().map(|direction| direction.bytes_per_s).sum();
    let bytes: u64 = both().map(|direction| direction.bytes_count).sum();
    let per_byte = rate / bytes as f64;
    let mut moved = vec![Moved::default(); step.devices.len()];
    for (stream, planned) in step.streams.iter().zip(&plan.streams) {
        let read_ratio = match planned.ops {
            OpMix::Read | OpMix::ProbeRead => 1.0,
            OpMix::Write => 0.0,
            OpMix::ReadWrite { .. } => workload.read_ratio,
            OpMix::Trim | OpMix::WriteZeroes | OpMix::Probe => continue,
        };
        if let Some(own) = moved.get_mut(stream.device_index as usize) {
            let rate = stream.bytes_count as f64 * per_byte;
            own.read_bytes_per_s += rate * read_ratio;
            own.write_bytes_per_s += rate * (1.0 - read_ratio);
        }
    }
    moved
}

/// What the step did, as ceilings take it; `None` where it moved nothing.
#[must_use]
pub fn workload_of(step: &Step, plan: &StepPlan) -> Option<Workload> {
    workload(step, plan, &Proofs::default())
}

#[allow(clippy::cast_precision_loss)] // Bytes of a step are far below 2^53.
fn workload(step: &Step, plan: &StepPlan, proofs: &Proofs) -> Option<Workload> {
    let bytes = |direction: &Option<Direction>| direction.as_ref().map_or(0, |d| d.bytes_count);
    let (read, write) = (bytes(&step.read), bytes(&step.write));
    if read + write == 0 {
        return None;
    }
    let mut sizes: Vec<u64> = Vec::new();
    for stream in &plan.streams {
        let device = step.devices.get(stream.device_index as usize)?;
        let moves = !matches!(stream.ops, OpMix::Trim | OpMix::WriteZeroes | OpMix::Probe);
        for size in stream.sizes.iter().filter(|_| moves) {
            let bytes = u64::from(size.blocks) * u64::from(device.logical_block_bytes);
            if !sizes.contains(&bytes) {
                sizes.push(bytes);
            }
        }
    }
    let block_bytes = match sizes.as_slice() {
        [only] => Some(*only),
        _ => None,
    };
    Some(Workload {
        read_ratio: read as f64 / (read + write) as f64,
        block_bytes,
        is_polled: is_polled(step),
        host_iops: at_least_done(proofs.host_iops.or_else(|| host_iops(step, plan)), step),
    })
}

/// Whether nobody waits for an interrupt.
fn is_polled(step: &Step) -> bool {
    step.backend.name == "spdk" || polls_in_kernel(step)
}

fn polls_in_kernel(step: &Step) -> bool {
    let features = &step.backend.features;
    features
        .iter()
        .any(|feature| feature.starts_with("polled: yes") || feature == "polled")
}

/// Reactors can do no less than what the step did, whatever burns or workers beside them cost.
fn at_least_done(host_iops: Option<f64>, step: &Step) -> Option<f64> {
    let both = [&step.read, &step.write].into_iter().flatten();
    let done_iops = both.map(|direction| direction.iops).sum();
    host_iops.map(|most| most.max(done_iops))
}

/// What the reactors could drive at the busy time that they had for each I/O. Not where polls spin in the
/// kernel, or reactors for the next arrival: those look busy and are not, and the load would be its own ceiling.
fn host_iops(step: &Step, plan: &StepPlan) -> Option<f64> {
    if polls_in_kernel(step) || has_rate(plan) || step.reactors.is_empty() {
        return None;
    }
    let rates = step
        .reactors
        .iter()
        .map(|reactor| Some(1e9 / reactor.busy_ns_per_io.filter(|ns| *ns > 0.0)?));
    rates.sum()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_host_is_never_slower_than_what_it_did() {
        let text = include_str!("../../../tests/fixtures/records/normal_read.json");
        let record: crate::record::Record = serde_json::from_str(text).unwrap();
        let step = &record.steps[0];
        let done_iops = step.read.as_ref().unwrap().iops;
        assert_eq!(at_least_done(Some(done_iops / 1.27), step), Some(done_iops));
        assert_eq!(
            at_least_done(Some(done_iops * 2.0), step),
            Some(done_iops * 2.0)
        );
        assert_eq!(at_least_done(None, step), None);
    }
}

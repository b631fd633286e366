//! Adds path, ceilings and verdict to the record of a step.

use super::path::{SeenPath, Workload, ceilings};
use crate::ceiling::host::HostEvidence;
use crate::ceiling::plateau::Plateau;
use crate::ceiling::share::Measured;
use crate::ceiling::verdict::{Evidence, Members, Peer, judge};
use crate::config::StepPlan;
use crate::record::{Direction, LinkChange, Step, Unseen};
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
    /// Devices behind one controller, alone and together.
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
    step.verdict = judge(&evidence_of(step, plan, proofs, &parts(step)));
}

/// What of the paths speaks against any verdict, over all devices.
struct Parts {
    device: String,
    unseen: Vec<Unseen>,
    changes: Vec<LinkChange>,
}

fn parts(step: &Step) -> Parts {
    let mut unseen: Vec<Unseen> = Vec::new();
    for part in step.path.iter().flat_map(|path| &path.unseen) {
        if !unseen.contains(part) {
            unseen.push(part.clone());
        }
    }
    let names: Vec<&str> = step.devices.iter().map(|one| one.path.as_str()).collect();
    Parts {
        device: names.join(", "),
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
        read: step.read.as_ref().map(measured),
        write: step.write.as_ref().map(measured),
        ceilings: Some(&step.ceilings),
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
        has_rate: plan.streams.iter().any(|s| s.arrival != Arrival::Closed),
    }
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
        host_iops: proofs.host_iops.or_else(|| host_iops(step)),
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

/// What the reactors could drive at the busy time that they had for each I/O. Not where polls spin in the
/// kernel: those look busy and are not.
fn host_iops(step: &Step) -> Option<f64> {
    if polls_in_kernel(step) || step.reactors.is_empty() {
        return None;
    }
    let rates = step
        .reactors
        .iter()
        .map(|reactor| Some(1e9 / reactor.busy_ns_per_io.filter(|ns| *ns > 0.0)?));
    rates.sum()
}

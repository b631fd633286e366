//! Paths with their ceilings, and what is measured against them.

mod measure;

pub use measure::{Asked, Lane, LanesError, Workloads, measure};

use crate::ceiling::shared::{Limit, together};
use crate::record::{
    Failure, IopsBand, LaneDevice, LanesReport, Outcome, RateBand, SCHEMA_VERSION, SharedLink,
};
use crate::session::path::{LookedAt, SeenPath, Workload, ceilings};

/// The report on devices without any I/O.
#[must_use]
pub fn report(devices: &[LookedAt]) -> LanesReport {
    let paths: Vec<&SeenPath> = devices.iter().map(|device| &device.path).collect();
    LanesReport {
        schema_version: SCHEMA_VERSION,
        status: Outcome::Finished,
        error: None::<Failure>,
        devices: (0..)
            .zip(devices)
            .map(|(index, device)| lane_device(index, device))
            .collect(),
        shared: shared(&paths),
        measurements: Vec::new(),
        warnings: Vec::new(),
    }
}

fn lane_device(index: u32, device: &LookedAt) -> LaneDevice {
    let path = &device.path;
    let mut record = path.record.clone();
    record.device_index = index;
    let at = |read_ratio: f64, block_bytes: Option<u64>| {
        let workload = Workload {
            read_ratio,
            block_bytes,
            is_polled: false,
            host_iops: None,
        };
        let found = ceilings(std::slice::from_ref(path), &workload);
        let side = if read_ratio > 0.5 {
            found.read
        } else {
            found.write
        };
        side.and_then(|side| side.link)
    };
    let rate = |ratio| at(ratio, None).and_then(|link| link.rate);
    let io = |ratio| -> Option<IopsBand> { at(ratio, Some(4096)).and_then(|link| link.io) };
    LaneDevice {
        name: device.name.clone(),
        model: device.model.clone(),
        capacity_bytes: device.capacity_bytes,
        transport: path.transport.map(|transport| transport.name().to_owned()),
        path: record,
        read: rate(1.0),
        write: rate(0.0),
        read_4k: io(1.0),
        write_4k: io(0.0),
        datasheet: path.drive.map(|drive| drive.name.clone()),
        controller: path.controller.map(|(known, bdf)| {
            format!(
                "{} at {bdf}, rated {:.0} IOPS",
                known.name,
                known.kiops * 1e3
            )
        }),
    }
}

/// Links that several devices share, where those can ask for more than it carries.
#[must_use]
pub fn shared(paths: &[&SeenPath]) -> Vec<SharedLink> {
    let limits: Vec<Vec<Limit>> = paths.iter().map(|path| read_limits(path)).collect();
    let mut found: Vec<SharedLink> = Vec::new();
    for limit in limits.iter().flatten() {
        if found.iter().any(|link| link.at == limit.name) {
            continue;
        }
        let below: Vec<&[Limit]> = limits
            .iter()
            .filter_map(|path| {
                let at = path.iter().position(|other| other.name == limit.name)?;
                Some(&path[at + 1..])
            })
            .collect();
        found.extend(
            limit
                .band
                .and_then(|band| oversubscribed(&limit.name, band, &below)),
        );
    }
    found
}

fn read_limits(path: &SeenPath) -> Vec<Limit> {
    path.links
        .iter()
        .map(|link| Limit {
            name: link.name.clone(),
            band: link.carrier.map(|carrier| carrier.read_ceiling()),
        })
        .collect()
}

fn oversubscribed(name: &str, own: RateBand, below: &[&[Limit]]) -> Option<SharedLink> {
    if below.len() < 2 {
        return None;
    }
    let (all, _) = together(below)?;
    if all.high_bytes_per_s <= own.high_bytes_per_s {
        return None;
    }
    let mut each: Vec<f64> = below
        .iter()
        .filter_map(|path| together(&[path]).map(|(band, _)| band.high_bytes_per_s))
        .collect();
    each.sort_by(|one, other| other.total_cmp(one));
    Some(SharedLink {
        at: name.to_owned(),
        devices_count: below.len() as u64,
        read_ceiling: own,
        below: all,
        full_with_count: full_with(own.high_bytes_per_s, &each),
    })
}

/// How many of these, the largest first, fill a link.
#[must_use]
pub fn full_with(ceiling_bytes_per_s: f64, each_bytes_per_s: &[f64]) -> Option<u64> {
    let mut sum = 0.0;
    (1..).zip(each_bytes_per_s).find_map(|(count, each)| {
        sum += each;
        (sum >= ceiling_bytes_per_s).then_some(count)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// methods.md, 3: PCIe 1.0 x4 is full with two saturated SAS-2 lanes, or with six disks of 150 MB/s.
    #[test]
    fn pcie_1_x4_is_full_with_two_lanes_or_six_disks() {
        let pcie = crate::ceiling::pcie::PcieLink {
            mega_transfers_per_s: 2_500,
            lanes_count: 4,
            is_flit: false,
        };
        let sizes = crate::ceiling::pcie::PacketSizes::new(Some(128), Some(512), None);
        let ceiling = pcie.read_ceiling(&sizes).high_bytes_per_s;
        let lane = crate::ceiling::sas::SasLink {
            gbit_per_s: 6.0,
            phys_count: 1,
        };
        let lane = lane.ssp_ceiling().high_bytes_per_s;
        assert_eq!(full_with(ceiling, &[lane; 8]), Some(2));
        assert_eq!(full_with(ceiling, &[150e6; 8]), Some(6));
        assert_eq!(full_with(ceiling, &[150e6; 5]), None);
    }
}

//! What a workload can reach at most over given paths.

use super::{Carrier, SeenPath};
use crate::ceiling::pcie::ASSUMED_MPS_BYTES;
use crate::ceiling::shared::{Limit, together, widest};
use crate::ceiling::{exact, iops_of, mix, nvme, times};
use crate::record::{
    Ceiling, CeilingKind, Ceilings, DirectionCeilings, IopsBand, Predicted, RateBand,
};
use crate::sysfs::attach::Transport;

/// A workload as far as ceilings depend on it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Workload {
    /// Share of the bytes that are read.
    pub read_ratio: f64,
    /// Size of every I/O; absent where there are several.
    pub block_bytes: Option<u64>,
    /// Completions are polled: no interrupts.
    pub is_polled: bool,
    /// What the host's reactors can drive, where that is known.
    pub host_iops: Option<f64>,
}

/// The ceilings of a step over all its devices. A direction that has no share has none.
#[must_use]
pub fn ceilings(paths: &[SeenPath], workload: &Workload) -> Ceilings {
    let side = |share: f64, is_read: bool| {
        (share > 0.0).then(|| direction(paths, workload, share, is_read))
    };
    Ceilings {
        read: side(workload.read_ratio, true),
        write: side(1.0 - workload.read_ratio, false),
    }
}

fn direction(
    paths: &[SeenPath],
    workload: &Workload,
    share: f64,
    is_read: bool,
) -> DirectionCeilings {
    let mut found = DirectionCeilings {
        link: link(paths, workload, share),
        datasheet: datasheet(paths, workload, share, is_read),
        controller: controller(paths, share),
        host: workload.host_iops.map(|iops| Ceiling {
            rate: workload
                .block_bytes
                .map(|bytes| exact(iops * share * as_f64(bytes))),
            io: Some(exactly(iops * share)),
            at: "reactors".to_owned(),
            source: "busy time per I/O, as measured".to_owned(),
        }),
        predicted: None,
    };
    found.predicted = predicted(&found, workload.block_bytes);
    found
}

#[allow(clippy::cast_precision_loss)] // Blocks are far below 2^53 bytes.
const fn as_f64(bytes: u64) -> f64 {
    bytes as f64
}

const fn exactly(iops: f64) -> IopsBand {
    IopsBand {
        low_iops: iops,
        high_iops: iops,
    }
}

/// The links: payload, and with the cost of commands where those are NVMe's.
fn link(paths: &[SeenPath], workload: &Workload, share: f64) -> Option<Ceiling> {
    let all = |with_commands: bool| {
        let limits: Vec<Vec<Limit>> = paths
            .iter()
            .map(|path| limits(path, workload, with_commands))
            .collect();
        let limits: Vec<&[Limit]> = limits.iter().map(Vec::as_slice).collect();
        together(&limits)
    };
    let (payload, at) = all(false)?;
    let io = workload.block_bytes.and_then(|bytes| {
        let (with_commands, _) = all(true)?;
        Some(iops_of(times(with_commands, share), bytes))
    });
    Some(Ceiling {
        rate: Some(times(payload, share)),
        io,
        source: source(paths, &at),
        at,
    })
}

/// What a link carries of this workload, reads and writes together; with the cost of commands where `is_nvme`.
pub(super) fn carried(carrier: &Carrier, workload: &Workload, is_nvme: bool) -> RateBand {
    if let (Carrier::Pcie(link, sizes), Some(bytes)) = (carrier, workload.block_bytes)
        && is_nvme
    {
        let read = nvme::read_cost(link, sizes, bytes, workload.is_polled);
        let write = nvme::write_cost(link, sizes, bytes, workload.is_polled);
        let cost = nvme::CostBand {
            least: read.least.mixed(workload.read_ratio, write.least),
            most: read.most.mixed(workload.read_ratio, write.most),
        };
        let iops = nvme::iops(link, &cost);
        return RateBand {
            low_bytes_per_s: iops.low_iops * as_f64(bytes),
            high_bytes_per_s: iops.high_iops * as_f64(bytes),
        };
    }
    let is_half_duplex = match carrier {
        Carrier::Pcie(..) => false,
        Carrier::Sas { is_stp, .. } => *is_stp,
        Carrier::Sata(_) | Carrier::Simulated(_) => true,
    };
    let (read, write) = (carrier.read_ceiling(), carrier.write_ceiling());
    mix::total(read, write, workload.read_ratio, is_half_duplex)
}

/// What each link of a path lets through of this workload.
fn limits(path: &SeenPath, workload: &Workload, with_commands: bool) -> Vec<Limit> {
    let is_nvme = with_commands && path.transport == Some(Transport::Nvme);
    let limit = |carrier: &Carrier| carried(carrier, workload, is_nvme);
    let links = path.links.iter().map(|link| Limit {
        name: link.name.clone(),
        band: link.carrier.as_ref().map(limit),
    });
    links.collect()
}

/// The narrowest link that all of these paths go through, and what it lets through of this workload, commands
/// included where they are known; `None` where no link that can be seen is common to all, and where one of them
/// carries nobody knows what: it may be the narrowest. What a link carries may depend on the device (a slow one holds
/// a wide port): the widest band holds for all, whatever the order of devices.
#[must_use]
pub fn narrowest_shared(paths: &[SeenPath], workload: &Workload) -> Option<(String, RateBand)> {
    let limits = |path: &SeenPath| limits(path, workload, true);
    let all: Vec<Vec<Limit>> = paths.iter().map(limits).collect();
    let mut narrowest: Option<(String, RateBand)> = None;
    for link in all.first()? {
        let same = |path: &Vec<Limit>| path.iter().find(|limit| limit.name == link.name).cloned();
        let Some(same) = all.iter().map(same).collect::<Option<Vec<Limit>>>() else {
            continue;
        };
        let band = same.iter().filter_map(|limit| limit.band).reduce(widest)?;
        let is_narrower = narrowest
            .as_ref()
            .is_none_or(|(_, least)| band.high_bytes_per_s < least.high_bytes_per_s);
        if is_narrower {
            narrowest = Some((link.name.clone(), band));
        }
    }
    narrowest
}

/// `16 GT/s x4, MPS 256`; `8 GT/s x4, MPS assumed 128 to 512 (not root)`.
pub(super) fn source(paths: &[SeenPath], at: &str) -> String {
    let first = at.split(" + ").next().unwrap_or(at);
    let hop = paths
        .iter()
        .flat_map(|path| path.record.hops.iter().zip(&path.links))
        .find(|(hop, _)| hop.name == first);
    let Some((hop, link)) = hop else {
        return "the links of the path".to_owned();
    };
    let mut text = hop
        .now
        .as_ref()
        .map_or_else(String::new, |now| now.text.clone());
    if let Some(Carrier::Pcie(_, sizes)) = &link.carrier {
        let (least, most) = sizes.payload_bytes;
        if (least, most) == ASSUMED_MPS_BYTES {
            text += &format!(", MPS assumed {least} to {most}");
        } else {
            text += &format!(", MPS {least}");
        }
    }
    text
}

/// The sum of what the makers promise; only for pure reads or writes: datasheets know no mixes.
fn datasheet(
    paths: &[SeenPath],
    workload: &Workload,
    share: f64,
    is_read: bool,
) -> Option<Ceiling> {
    if share < 1.0 || paths.is_empty() {
        return None;
    }
    let (mut rate, mut io) = (Some(0.0), Some(0.0));
    let mut names: Vec<String> = Vec::new();
    for path in paths {
        let drive = path.drive?;
        let part = 1.0 / f64::from(drive.controllers);
        let (mb_per_s, kiops) = if is_read {
            (drive.read_mb_per_s, drive.read_kiops)
        } else {
            (drive.write_mb_per_s, drive.write_kiops)
        };
        rate = rate.zip(mb_per_s).map(|(sum, mb)| sum + mb * 1e6 * part);
        io = io.zip(kiops).map(|(sum, kiops)| sum + kiops * 1e3 * part);
        let name = if drive.controllers > 1 {
            format!("{} (one of {} controllers)", drive.name, drive.controllers)
        } else {
            drive.name.clone()
        };
        if !names.contains(&name) {
            names.push(name);
        }
    }
    // The figures are for 4 KiB; other sizes have the data rate alone.
    let io = io.filter(|_| workload.block_bytes == Some(4096));
    (rate.is_some() || io.is_some()).then(|| Ceiling {
        rate: rate.map(exact),
        io: io.map(exactly),
        at: names.join(", "),
        source: "datasheet".to_owned(),
    })
}

/// The rating of the one controller that all devices hang on.
fn controller(paths: &[SeenPath], share: f64) -> Option<Ceiling> {
    let (known, bdf) = paths.first()?.controller?;
    let is_same = |path: &SeenPath| path.controller.is_some_and(|(_, other)| other == bdf);
    paths.iter().all(is_same).then(|| Ceiling {
        rate: None,
        io: Some(exactly(known.kiops * 1e3 * share)),
        at: format!("{} at {bdf}", known.name),
        source: "its maker's rating".to_owned(),
    })
}

/// The lowest of the four at their favourable ends.
fn predicted(found: &DirectionCeilings, block_bytes: Option<u64>) -> Option<Predicted> {
    let bytes = |ceiling: &Ceiling| {
        let rate = ceiling.rate.map(|band| band.high_bytes_per_s);
        let io = ceiling.io.zip(block_bytes);
        let io = io.map(|(band, bytes)| band.high_iops * as_f64(bytes));
        [rate, io].into_iter().flatten().min_by(f64::total_cmp)
    };
    let known = CeilingKind::ALL
        .into_iter()
        .filter_map(|kind| Some((kind, bytes(found.of(kind)?)?)));
    let (kind, bytes_per_s) = known.min_by(|one, other| one.1.total_cmp(&other.1))?;
    Some(Predicted {
        kind,
        bytes_per_s,
        iops: block_bytes.map(|bytes| bytes_per_s / as_f64(bytes)),
    })
}

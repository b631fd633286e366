//! What goes over each link of all devices of a step.

use super::ceilings::{Workload, carried, source};
use super::{Carrier, SeenPath};
use crate::ceiling::share::LinkLoad;
use crate::ceiling::shared::widest;
use crate::record::RateBand;
use crate::sysfs::attach::Transport;

/// Bytes a second that a device moved.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Moved {
    /// Toward the host.
    pub read_bytes_per_s: f64,
    /// Toward the device.
    pub write_bytes_per_s: f64,
}

/// The load of every link whose ceiling is known, host side first. A sum over several devices hides a link that is
/// full beside one that is not: each is held against what went over it. `moved` is by device, as `paths` are.
#[must_use]
pub fn loads(paths: &[SeenPath], moved: &[Moved], workload: &Workload) -> Vec<LinkLoad> {
    let mut loads: Vec<LinkLoad> = Vec::new();
    for link in paths.iter().flat_map(|path| &path.links) {
        if loads.iter().all(|known| known.at != link.name) {
            loads.extend(load(paths, moved, workload, &link.name));
        }
    }
    loads
}

fn load(paths: &[SeenPath], moved: &[Moved], workload: &Workload, name: &str) -> Option<LinkLoad> {
    let behind: Vec<(usize, &SeenPath, Option<&Carrier>)> = (0..)
        .zip(paths)
        .filter_map(|(index, path)| {
            let link = path.links.iter().find(|link| link.name == name)?;
            Some((index, path, link.carrier.as_ref()))
        })
        .collect();
    let mut sum = Moved::default();
    for (index, ..) in &behind {
        let own = moved.get(*index)?;
        sum.read_bytes_per_s += own.read_bytes_per_s;
        sum.write_bytes_per_s += own.write_bytes_per_s;
    }
    let total = sum.read_bytes_per_s + sum.write_bytes_per_s;
    if total <= 0.0 {
        return None;
    }
    let own = Workload {
        read_ratio: sum.read_bytes_per_s / total,
        ..*workload
    };
    let band = |with_commands: bool| -> Option<RateBand> {
        let bands = behind.iter().map(|(_, path, carrier)| {
            let is_nvme = with_commands && path.transport == Some(Transport::Nvme);
            Some(carried((*carrier)?, &own, is_nvme))
        });
        bands
            .collect::<Option<Vec<_>>>()?
            .into_iter()
            .reduce(widest)
    };
    let payload = band(false)?;
    let whole = band(true)?;
    let pct = |of: f64| total / of * 100.0;
    let low_pct = pct(payload.high_bytes_per_s.min(whole.high_bytes_per_s));
    Some(LinkLoad {
        at: name.to_owned(),
        source: source(paths, name),
        low_pct,
        high_pct: pct(payload.low_bytes_per_s.min(whole.low_bytes_per_s)),
        least_pct: low_pct / short_header_ratio(&behind, sum),
        devices: behind.iter().map(|(index, ..)| *index).collect(),
    })
}

/// How much more the link may carry with the shortest headers; only the device's writes, which are the host's reads, have
/// addresses.
fn short_header_ratio(behind: &[(usize, &SeenPath, Option<&Carrier>)], sum: Moved) -> f64 {
    let ratios = behind.iter().filter_map(|(_, _, carrier)| match carrier {
        Some(Carrier::Pcie(link, sizes)) if sum.read_bytes_per_s > 0.0 => {
            Some(link.short_header_ratio(sizes))
        }
        _ => None,
    });
    ratios.fold(1.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::super::{Look, SeenLink};
    use super::*;
    use crate::ceiling::pcie::{PacketSizes, PcieLink};

    /// 8 GT/s x4 with packets of 128 bytes: 3,938.5 MB/s of packets; 3,316.6 of them reads.
    fn path(names: &[&str]) -> SeenPath {
        let link = PcieLink {
            mega_transfers_per_s: 8000,
            lanes_count: 4,
            is_flit: false,
        };
        let carrier = Carrier::Pcie(link, PacketSizes::new(Some(128), Some(512), Some(64)));
        let mut path = SeenPath::empty();
        path.transport = Some(Transport::Nvme);
        path.links = names
            .iter()
            .map(|name| SeenLink {
                name: (*name).to_owned(),
                carrier: Some(carrier),
                look: Look::Fixed,
            })
            .collect();
        path
    }

    const fn moved(read_mb_per_s: f64, write_mb_per_s: f64) -> Moved {
        Moved {
            read_bytes_per_s: read_mb_per_s * 1e6,
            write_bytes_per_s: write_mb_per_s * 1e6,
        }
    }

    const WORKLOAD: Workload = Workload {
        read_ratio: 0.5,
        block_bytes: None,
        is_polled: true,
        host_iops: None,
    };

    fn at<'a>(loads: &'a [LinkLoad], name: &str) -> &'a LinkLoad {
        let found = loads.iter().find(|load| load.at == name);
        found.expect("the link is there")
    }

    /// One reads, one writes: the step is half and half, each link is not.
    #[test]
    fn every_link_is_held_against_its_own_mix() {
        let paths = [path(&["up", "a"]), path(&["up", "b"])];
        let found = loads(&paths, &[moved(3000.0, 0.0), moved(0.0, 1000.0)], &WORKLOAD);
        let (up, a, b) = (at(&found, "up"), at(&found, "a"), at(&found, "b"));
        assert!((a.low_pct - 3000.0 / 3316.6 * 100.0).abs() < 0.01, "{a:?}");
        // 128 bytes a completion: 128 of 148.
        let down = 3938.46 * 128.0 / 148.0;
        assert!((b.low_pct - 1000.0 / down * 100.0).abs() < 0.01, "{b:?}");
        // Both ways at once: the reads are what fills it.
        assert!((up.low_pct - a.low_pct).abs() < 0.01, "{up:?}");
        assert_eq!((&*up.devices, &*b.devices), (&[0, 1][..], &[1][..]));
    }

    /// Packets of 128 bytes with a header of 12: 128 of 148 instead of 152.
    #[test]
    fn the_best_case_has_the_shortest_headers() {
        let found = loads(&[path(&["a"])], &[moved(3400.0, 0.0)], &WORKLOAD);
        let best = 3938.46 * 128.0 / 148.0;
        assert!((found[0].low_pct - 3400.0 / 3316.6 * 100.0).abs() < 0.01);
        assert!((found[0].least_pct - 3400.0 / best * 100.0).abs() < 0.01);
        // The host's writes come as completions, which have that header anyway.
        let found = loads(&[path(&["a"])], &[moved(0.0, 3400.0)], &WORKLOAD);
        assert!((found[0].least_pct - found[0].low_pct).abs() < 1e-9);
    }

    #[test]
    fn a_link_of_which_nothing_is_known_has_no_load() {
        let mut one = path(&["a", "b"]);
        one.links[0].carrier = None;
        let found = loads(&[one], &[moved(100.0, 0.0)], &WORKLOAD);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].at, "b");
        assert!(loads(&[path(&["a"])], &[moved(0.0, 0.0)], &WORKLOAD).is_empty());
    }
}

//! Whether the way lets through what the maker promises.

use super::SeenPath;
use crate::record::{PathFindingKind, RateBand};

/// Adds a finding where even the best case of a link is below the datasheet. Of a card with several
/// controllers only the links above its own switch carry all of it. Links that are made up refuse nobody.
pub(super) fn check(path: &mut SeenPath) {
    let Some(drive) = path.drive else { return };
    if path.record.unseen.iter().any(|unseen| unseen.is_invented) {
        return;
    }
    let count = path.links.len();
    let shared = if drive.controllers > 1 {
        count.saturating_sub(1)
    } else {
        count
    };
    let narrowest = |read: bool| -> Option<(String, f64)> {
        let links = path.links[..shared].iter().filter_map(|link| {
            let carrier = link.carrier?;
            let band: RateBand = if read {
                carrier.read_ceiling()
            } else {
                carrier.write_ceiling()
            };
            Some((link.name.clone(), band.high_bytes_per_s))
        });
        links.min_by(|one, other| one.1.total_cmp(&other.1))
    };
    // A band's favourable end would hide a promise that the assumed sizes just reach: it is the bound.
    let promised = [
        ("read", drive.read_mb_per_s),
        ("write", drive.write_mb_per_s),
    ];
    for (direction, mb_per_s) in promised {
        let Some((mb_per_s, (at, most))) = mb_per_s.zip(narrowest(direction == "read")) else {
            continue;
        };
        if mb_per_s * 1e6 > most {
            let card = if drive.controllers > 1 {
                " as a card"
            } else {
                ""
            };
            let text = format!(
                "the datasheet of {}{card} cannot be reached here: {direction} {mb_per_s:.0} MB/s, and this link carries {:.0} at most",
                drive.name,
                most / 1e6
            );
            let next_step = "a faster or wider slot, or a larger payload size (MPS) where machine and device allow it";
            path.find(PathFindingKind::DatasheetUnreachable, &at, text, next_step);
            return;
        }
    }
}

//! Several devices behind common links: what all of them together can move.

use super::{lesser, sum};
use crate::record::RateBand;

/// One link of a device's way, host side first.
#[derive(Debug, Clone, PartialEq)]
pub struct Limit {
    /// Name of the hop; equal names are one link.
    pub name: String,
    /// What it carries; `None` where that cannot be told.
    pub band: Option<RateBand>,
}

/// What a set of devices can move at most, and the link that says so: at every link no more than it carries,
/// below it no more than the links behind it carry together. `None` where a device has no known limit at all.
#[must_use]
pub fn together(paths: &[&[Limit]]) -> Option<(RateBand, String)> {
    let mut all: Option<(RateBand, String)> = None;
    let mut seen: Vec<&str> = Vec::new();
    for path in paths {
        let first = path.first()?;
        if seen.contains(&first.name.as_str()) {
            continue;
        }
        seen.push(&first.name);
        let same: Vec<(&Limit, &[Limit])> = paths
            .iter()
            .filter_map(|other| other.split_first())
            .filter(|(limit, _)| limit.name == first.name)
            .collect();
        let behind: Vec<&[Limit]> = same.iter().map(|(_, rest)| *rest).collect();
        let link = Limit {
            name: first.name.clone(),
            band: same
                .iter()
                .filter_map(|(limit, _)| limit.band)
                .reduce(widest),
        };
        let own = branch(&link, &behind)?;
        all = Some(match all {
            None => own,
            Some((band, at)) => {
                let name = if at == own.1 {
                    at
                } else {
                    format!("{at} + {}", own.1)
                };
                (sum(band, own.0), name)
            }
        });
    }
    all
}

/// What a link carries may depend on the device (slow ones hold a wide port): the widest band holds for all.
#[must_use]
pub const fn widest(one: RateBand, other: RateBand) -> RateBand {
    RateBand {
        low_bytes_per_s: one.low_bytes_per_s.min(other.low_bytes_per_s),
        high_bytes_per_s: one.high_bytes_per_s.max(other.high_bytes_per_s),
    }
}

/// A link and what is behind it.
fn branch(link: &Limit, behind: &[&[Limit]]) -> Option<(RateBand, String)> {
    // A device directly at the link: nothing below limits it.
    let below = if behind.iter().any(|path| path.is_empty()) {
        None
    } else {
        together(behind)
    };
    match (link.band, below) {
        (Some(own), Some((sum, at))) => {
            let is_below = sum.high_bytes_per_s < own.high_bytes_per_s;
            let name = if is_below { at } else { link.name.clone() };
            Some((lesser(own, sum), name))
        }
        (Some(own), None) => Some((own, link.name.clone())),
        (None, below) => below,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::exact;
    use super::*;

    fn path(limits: &[(&str, f64)]) -> Vec<Limit> {
        let limit = |(name, rate): &(&str, f64)| Limit {
            name: (*name).to_owned(),
            band: (*rate > 0.0).then(|| exact(*rate)),
        };
        limits.iter().map(limit).collect()
    }

    fn at(paths: &[Vec<Limit>]) -> Option<(f64, String)> {
        let paths: Vec<&[Limit]> = paths.iter().map(Vec::as_slice).collect();
        together(&paths).map(|(band, at)| (band.high_bytes_per_s, at))
    }

    #[test]
    fn a_single_path_is_as_wide_as_its_narrowest_link() {
        let one = path(&[("root", 8.0), ("switch", 2.0), ("end", 4.0)]);
        assert_eq!(at(&[one]), Some((2.0, "switch".to_owned())));
        assert_eq!(at(&[path(&[("root", 0.0)])]), None);
        assert_eq!(at(&[Vec::new()]), None);
    }

    #[test]
    fn a_shared_link_binds_once_its_devices_can_fill_it() {
        let disk = |name: &'static str| path(&[("root", 8.0), ("up", 6.0), (name, 2.5)]);
        assert_eq!(at(&[disk("a"), disk("b")]), Some((5.0, "a + b".to_owned())));
        let three = [disk("a"), disk("b"), disk("c")];
        assert_eq!(at(&three), Some((6.0, "up".to_owned())));
    }

    #[test]
    fn a_link_that_devices_see_differently_has_the_widest_band() {
        let slow = Limit {
            name: "wide".to_owned(),
            band: Some(RateBand {
                low_bytes_per_s: 2.0,
                high_bytes_per_s: 4.0,
            }),
        };
        let fast = path(&[("wide", 3.0), ("a", 9.0)]);
        let slow = vec![slow, path(&[("b", 9.0)]).remove(0)];
        let (band, at) = together(&[&fast, &slow]).unwrap();
        assert_eq!((band.low_bytes_per_s, band.high_bytes_per_s), (2.0, 4.0));
        assert_eq!(at, "wide");
    }

    #[test]
    fn links_apart_add_up() {
        let two = [path(&[("one", 3.0)]), path(&[("two", 4.0)])];
        assert_eq!(at(&two), Some((7.0, "one + two".to_owned())));
        // One of them unknown: the sum is not known either.
        assert_eq!(at(&[path(&[("one", 3.0)]), path(&[("two", 0.0)])]), None);
    }
}

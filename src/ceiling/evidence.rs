//! All that is known of a result, for the rules that judge it.

use super::host::HostEvidence;
use super::plateau::Plateau;
use super::share::{LinkLoad, Measured};
use crate::record::{Ceilings, CounterDelta, LinkChange, Unseen};

/// From here on a link is suspected.
pub(super) const LIKELY_PCT: f64 = 75.0;

/// Several devices, alone and all at once.
#[derive(Debug, Clone, PartialEq)]
pub struct Members {
    /// The one controller that they all hang on; absent where there is none, or several.
    pub controller: Option<String>,
    /// Data rate of each by itself.
    pub alone_bytes_per_s: Vec<f64>,
    /// Data rate of all at once.
    pub together_bytes_per_s: f64,
}

impl Members {
    /// What they do together of what they do one by one.
    pub(super) fn kept_ratio(&self) -> Option<f64> {
        let alone: f64 = self.alone_bytes_per_s.iter().sum();
        let several = self.alone_bytes_per_s.len() > 1 && alone > 0.0;
        several.then(|| self.together_bytes_per_s / alone)
    }
}

/// A controller between the links and devices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Between {
    /// Its address.
    pub name: String,
    /// Devices of the step that hang on it.
    pub devices_count: usize,
}

/// A device that was measured by itself in the same way.
#[derive(Debug, Clone, PartialEq)]
pub struct Peer {
    /// The device.
    pub name: String,
    /// What its medium is said to be: `rotating`, `flash`, a model.
    pub medium: String,
    /// Data rate.
    pub bytes_per_s: f64,
}

/// All that is known.
#[derive(Debug, Clone, Default)]
pub struct Evidence<'a> {
    /// The device or devices, as a verdict names them.
    pub device: &'a str,
    /// Reads.
    pub read: Option<Measured>,
    /// Writes.
    pub write: Option<Measured>,
    /// Devices of the step.
    pub devices_count: usize,
    /// What could be reached.
    pub ceilings: Option<&'a Ceilings>,
    /// The load of each link, host side first.
    pub links: &'a [LinkLoad],
    /// What was in flight, of all that ended in the window: so much of the load may have crossed the links before.
    pub in_flight_ratio: f64,
    /// Controllers that are not the device itself.
    pub between: &'a [Between],
    /// Parts of the way that cannot be seen.
    pub unseen: &'a [Unseen],
    /// Links that changed.
    pub changes: &'a [LinkChange],
    /// A counter of link errors that grew, or cannot be trusted.
    pub errors: Option<&'a CounterDelta>,
    /// What the curve over depth shows.
    pub plateau: Option<Plateau>,
    /// What burning time shows.
    pub host: HostEvidence,
    /// The devices alone and together.
    pub members: Option<&'a Members>,
    /// Unlike devices of one platform, this one included.
    pub peers: &'a [Peer],
    /// Arrivals were limited by a rate: the load binds, not the hardware.
    pub has_rate: bool,
    /// That rate was not kept: arrivals waited longer and longer.
    pub is_overloaded: bool,
}

/// The link that is nearest to its ceiling.
pub(super) fn fullest<'a>(evidence: &Evidence<'a>) -> Option<&'a LinkLoad> {
    // Of equals the one nearest to the host.
    let links = evidence.links.iter().rev();
    links.max_by(|one, other| one.low_pct.total_cmp(&other.low_pct))
}

/// The fullest link of each device's way, each once.
pub(super) fn fullest_of_each<'a>(evidence: &Evidence<'a>) -> Vec<&'a LinkLoad> {
    let mut found: Vec<&LinkLoad> = Vec::new();
    for device in 0..evidence.devices_count {
        let own = evidence.links.iter().rev();
        let own = own.filter(|link| link.devices.contains(&device));
        let full = own.max_by(|one, other| one.low_pct.total_cmp(&other.low_pct));
        found.extend(full.filter(|link| !found.contains(link)));
    }
    found
}

/// The word for what was done.
pub(super) const fn done(evidence: &Evidence<'_>) -> &'static str {
    match (evidence.read, evidence.write) {
        (Some(_), Some(_)) => "moved",
        (None, Some(_)) => "written",
        _ => "read",
    }
}

/// What curve and burns leave open.
pub(super) fn curve_and_host(evidence: &Evidence<'_>) -> Vec<String> {
    let curve = match evidence.plateau {
        Some(Plateau::Flat) => None,
        Some(Plateau::Rising) => Some("the rate still changes with depth"),
        Some(Plateau::Falling) => Some("more depth lowers the rate"),
        Some(Plateau::NotMeasured) | None => Some("one depth shows no plateau"),
    };
    let host = match evidence.host {
        HostEvidence::Excluded | HostEvidence::Proven => None,
        HostEvidence::NotTried => Some("the host is not excluded"),
        HostEvidence::Unclear => Some("the host is near its own limit"),
    };
    [curve, host]
        .into_iter()
        .flatten()
        .map(str::to_owned)
        .collect()
}

/// `4 devices reach 60 % together of what they do one by one`.
pub(super) fn kept(members: &Members) -> Option<String> {
    Some(format!(
        "{} devices reach {:.0} % together of what they do one by one",
        members.alone_bytes_per_s.len(),
        members.kept_ratio()? * 100.0
    ))
}

/// Well below the ceiling of the links, even at its unfavourable end; false where there is none.
pub(super) fn is_below_links(evidence: &Evidence<'_>) -> bool {
    let links = evidence.links;
    !links.is_empty() && links.iter().all(|link| link.high_pct < LIKELY_PCT)
}

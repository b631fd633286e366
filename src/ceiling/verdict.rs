//! What bound a result. The rules are documented in README, under "Lanes"; they are tried in that order.

use super::host::HostEvidence;
use super::plateau::Plateau;
use super::share::{Measured, nearest, pct, shares};
use crate::record::{
    Ceiling, CeilingKind, Ceilings, CounterDelta, DirectionCeilings, LinkChange, ShareOfCeiling,
    Unseen, Verdict, VerdictKind,
};

/// From here on a limit counts as reached.
pub const BOUND_PCT: f64 = 90.0;
/// From here on a link is suspected.
pub const LIKELY_PCT: f64 = 75.0;
/// Above this a link carries more than it can.
pub const IMPOSSIBLE_PCT: f64 = 100.5;
/// Members of a controller together below this share of what they do alone hold each other up.
const TOGETHER_RATIO: f64 = 0.85;
/// Rates of unlike media within this share of their mean are alike.
const ALIKE_RATIO: f64 = 0.1;

/// Devices behind one controller, alone and all at once.
#[derive(Debug, Clone, PartialEq)]
pub struct Members {
    /// The controller.
    pub controller: String,
    /// Data rate of each by itself.
    pub alone_bytes_per_s: Vec<f64>,
    /// Data rate of all at once.
    pub together_bytes_per_s: f64,
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
    /// What could be reached.
    pub ceilings: Option<&'a Ceilings>,
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
    /// Devices behind one controller.
    pub members: Option<&'a Members>,
    /// Unlike devices of one platform, this one included.
    pub peers: &'a [Peer],
    /// Arrivals were limited by a rate: the load binds, not the hardware.
    pub has_rate: bool,
}

/// A rule: a verdict where it applies.
type Rule = fn(&Evidence<'_>, &[ShareOfCeiling]) -> Option<Verdict>;

/// The rules, in the order in which they are tried.
const RULES: [Rule; 9] = [
    nothing_to_judge,
    distrusted,
    limited_load,
    host_bound,
    platform_capped,
    by_link,
    controller_bound,
    device_bound,
    datasheet_unreachable,
];

/// Judges.
#[must_use]
pub fn judge(evidence: &Evidence<'_>) -> Verdict {
    let shares = shares(evidence.read, evidence.write, evidence.ceilings);
    let found = RULES.iter().find_map(|rule| rule(evidence, &shares));
    let mut verdict = found.unwrap_or_else(|| undecided(evidence, &shares));
    verdict.shares = shares;
    verdict
}

fn ceiling_of<'a>(evidence: &'a Evidence<'_>, share: &ShareOfCeiling) -> Option<&'a Ceiling> {
    direction(evidence, &share.direction)?.of(share.of)
}

fn direction<'a>(evidence: &'a Evidence<'_>, name: &str) -> Option<&'a DirectionCeilings> {
    let ceilings = evidence.ceilings?;
    let side = if name == "read" {
        &ceilings.read
    } else {
        &ceilings.write
    };
    side.as_ref()
}

fn verdict(kind: VerdictKind, at: Option<&str>, why: String, next_step: &str) -> Verdict {
    Verdict {
        kind,
        at: at.map(str::to_owned),
        why,
        next_step: next_step.to_owned(),
        shares: Vec::new(),
    }
}

fn nothing_to_judge(evidence: &Evidence<'_>, _: &[ShareOfCeiling]) -> Option<Verdict> {
    if evidence.read.is_none() && evidence.write.is_none() {
        return Some(Verdict::undecided("nothing was read or written"));
    }
    if let Some(error) = evidence.errors {
        return Some(link_errors(error));
    }
    let change = evidence.changes.first()?;
    let why = format!(
        "{} changed from {} to {} while it was measured: the verdict is void",
        change.at, change.before, change.after
    );
    let next_step =
        "find out why the link retrains (power saving, errors, heat), then measure again";
    Some(verdict(VerdictKind::Undecided, None, why, next_step))
}

fn link_errors(error: &CounterDelta) -> Verdict {
    let (when, next_step) = if error.is_unread {
        ("after", "find out why it does not answer any more")
    } else {
        ("while", "look for a bad contact, cable or riser")
    };
    let why = format!(
        "{} of {} {} {when} it was measured: the verdict is void",
        error.counter,
        error.at,
        error.words()
    );
    let next_step = format!("{next_step}, then measure again");
    verdict(VerdictKind::Undecided, None, why, &next_step)
}

fn distrusted(evidence: &Evidence<'_>, shares: &[ShareOfCeiling]) -> Option<Verdict> {
    let share =
        nearest(shares, CeilingKind::Link).filter(|share| share.low_pct > IMPOSSIBLE_PCT)?;
    let link = ceiling_of(evidence, share)?;
    let why = format!(
        "{} {:.0} % of the most that {} can carry ({}): what is told of this link is wrong",
        done(&share.direction),
        share.low_pct,
        link.at,
        link.source
    );
    let next_step = "compare with lspci -vv as root; an emulated or virtual link may run faster than it says, a cache above the device may have answered";
    Some(verdict(
        VerdictKind::LinkDataDistrusted,
        Some(&link.at),
        why,
        next_step,
    ))
}

fn done(direction: &str) -> &'static str {
    if direction == "read" {
        "read"
    } else {
        "written"
    }
}

fn limited_load(evidence: &Evidence<'_>, _: &[ShareOfCeiling]) -> Option<Verdict> {
    evidence.has_rate.then(|| {
        let why = "the load was limited by rate_iops: what the hardware can do was not tried";
        verdict(
            VerdictKind::Undecided,
            None,
            why.to_owned(),
            "measure without rate_iops",
        )
    })
}

fn host_bound(evidence: &Evidence<'_>, _: &[ShareOfCeiling]) -> Option<Verdict> {
    // Where more depth still brings more, completions in bursts can make a burn look like a limit.
    let is_deep_enough = matches!(evidence.plateau, Some(Plateau::Flat | Plateau::Falling));
    (evidence.host == HostEvidence::Proven && is_deep_enough).then(|| {
        let why = "time burnt for each I/O lowered the rate by just that time: the reactors bind";
        let next_step = "more reactors, larger batches, a cheaper backend";
        verdict(VerdictKind::HostBound, None, why.to_owned(), next_step)
    })
}

fn platform_capped(evidence: &Evidence<'_>, shares: &[ShareOfCeiling]) -> Option<Verdict> {
    let rates: Vec<f64> = evidence.peers.iter().map(|peer| peer.bytes_per_s).collect();
    let mut media: Vec<&str> = evidence
        .peers
        .iter()
        .map(|peer| peer.medium.as_str())
        .collect();
    media.sort_unstable();
    media.dedup();
    let is_at_link = nearest(shares, CeilingKind::Link).is_some_and(|s| s.high_pct >= LIKELY_PCT);
    if media.len() < 2 || is_at_link || !are_alike(&rates) {
        return None;
    }
    let names: Vec<&str> = evidence
        .peers
        .iter()
        .map(|peer| peer.name.as_str())
        .collect();
    let why = format!(
        "{} differ in kind ({}) and give like rates: the platform caps them",
        names.join(", "),
        media.join(", ")
    );
    let next_step = "look up what the platform sells for this volume or machine size";
    Some(verdict(VerdictKind::PlatformCapped, None, why, next_step))
}

#[allow(clippy::cast_precision_loss)]
fn are_alike(rates: &[f64]) -> bool {
    let mean = rates.iter().sum::<f64>() / rates.len() as f64;
    let most = rates.iter().copied().fold(f64::MIN, f64::max);
    let least = rates.iter().copied().fold(f64::MAX, f64::min);
    most - least <= ALIKE_RATIO * mean
}

/// What keeps a suspected link from being proven.
fn doubts(evidence: &Evidence<'_>, shares: &[ShareOfCeiling]) -> Vec<String> {
    let mut doubts = curve_and_host(evidence);
    for kind in [CeilingKind::Datasheet, CeilingKind::Controller] {
        if let Some(share) = nearest(shares, kind).filter(|share| share.low_pct >= BOUND_PCT) {
            let text = format!("the {} is reached as well ({})", kind.name(), pct(share));
            doubts.push(text);
        }
    }
    doubts
}

fn curve_and_host(evidence: &Evidence<'_>) -> Vec<String> {
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

/// What time that was burnt says where the way cannot be seen; nothing where none was.
fn tried_burns(evidence: &Evidence<'_>) -> Option<String> {
    let text = match evidence.host {
        HostEvidence::NotTried => return None,
        HostEvidence::Excluded => "the host is excluded".to_owned(),
        HostEvidence::Proven | HostEvidence::Unclear => curve_and_host(evidence).join(", "),
    };
    Some(text).filter(|text| !text.is_empty())
}

const MEASURE: &str = "lanemark lanes --measure on this device";

fn by_link(evidence: &Evidence<'_>, shares: &[ShareOfCeiling]) -> Option<Verdict> {
    if !evidence.unseen.is_empty() {
        return None;
    }
    let share = nearest(shares, CeilingKind::Link).filter(|share| share.low_pct >= LIKELY_PCT)?;
    let link = ceiling_of(evidence, share)?;
    let of = format!(
        "{} {} of the ceiling of {}",
        done(&share.direction),
        pct(share),
        link.at
    );
    let doubts = doubts(evidence, shares);
    if share.low_pct >= BOUND_PCT && doubts.is_empty() {
        let why = format!("{of} ({}), flat over depth, host excluded", link.source);
        return Some(verdict(VerdictKind::LinkBound, Some(&link.at), why, ""));
    }
    // The device does what its maker promises: no need to suspect the link.
    let promised = nearest(shares, CeilingKind::Datasheet);
    if share.low_pct < BOUND_PCT && promised.is_some_and(|share| share.low_pct >= BOUND_PCT) {
        return None;
    }
    let mut why = format!("{of} ({})", link.source);
    if share.low_pct < BOUND_PCT {
        why += "; not proven: below 90 %";
    } else {
        why += &format!("; not proven: {}", doubts.join(", "));
    }
    if let Some(text) = unreachable(evidence, &share.direction) {
        why += &format!("; {text}");
    }
    Some(verdict(
        VerdictKind::LinkLimitedLikely,
        Some(&link.at),
        why,
        MEASURE,
    ))
}

fn controller_bound(evidence: &Evidence<'_>, shares: &[ShareOfCeiling]) -> Option<Verdict> {
    if !evidence.unseen.is_empty()
        || !curve_and_host(evidence).is_empty()
        || !is_below_links(shares)
    {
        return None;
    }
    let rated = nearest(shares, CeilingKind::Controller).filter(|s| s.low_pct >= BOUND_PCT);
    if let Some(share) = rated {
        let rating = ceiling_of(evidence, share)?;
        let why = format!(
            "{} of what {} is rated for ({})",
            pct(share),
            rating.at,
            rating.source
        );
        return Some(verdict(
            VerdictKind::ControllerBound,
            Some(&rating.at),
            why,
            "",
        ));
    }
    let members = evidence
        .members
        .filter(|members| members.alone_bytes_per_s.len() > 1)?;
    let alone: f64 = members.alone_bytes_per_s.iter().sum();
    if members.together_bytes_per_s > TOGETHER_RATIO * alone {
        return None;
    }
    let why = format!(
        "{} devices reach {:.0} % together of what they do one by one, below every link",
        members.alone_bytes_per_s.len(),
        members.together_bytes_per_s / alone * 100.0
    );
    Some(verdict(
        VerdictKind::ControllerBound,
        Some(&members.controller),
        why,
        "",
    ))
}

/// Well below the ceiling of the links, even at its unfavourable end; false where there is none.
fn is_below_links(shares: &[ShareOfCeiling]) -> bool {
    let mut links = shares
        .iter()
        .filter(|share| share.of == CeilingKind::Link)
        .peekable();
    links.peek().is_some() && links.all(|share| share.high_pct < LIKELY_PCT)
}

fn device_bound(evidence: &Evidence<'_>, shares: &[ShareOfCeiling]) -> Option<Verdict> {
    if !evidence.unseen.is_empty() || !curve_and_host(evidence).is_empty() {
        return None;
    }
    let link = nearest(shares, CeilingKind::Link)?;
    let promised = nearest(shares, CeilingKind::Datasheet).filter(|s| s.low_pct >= BOUND_PCT);
    let is_promised = promised.is_some() && link.high_pct < BOUND_PCT;
    if !is_promised && !is_below_links(shares) {
        return None;
    }
    let mut why = format!(
        "{} of the links' ceiling, flat over depth, host excluded",
        pct(link)
    );
    if let Some(share) = promised {
        why += &format!("; {} of its datasheet", pct(share));
    }
    Some(verdict(
        VerdictKind::DeviceBound,
        Some(evidence.device),
        why,
        "",
    ))
}

/// The text where a direction's datasheet lies above the best case of the links.
#[must_use]
pub fn unreachable(evidence: &Evidence<'_>, name: &str) -> Option<String> {
    let ceilings = direction(evidence, name)?;
    let (link, sheet) = (ceilings.link.as_ref()?, ceilings.datasheet.as_ref()?);
    let (most, promised) = (link.rate?.high_bytes_per_s, sheet.rate?.low_bytes_per_s);
    (promised > most).then(|| {
        format!(
            "the datasheet cannot be reached here: {:.0} MB/s is more than the {:.0} MB/s of {}",
            promised / 1e6,
            most / 1e6,
            link.at
        )
    })
}

fn datasheet_unreachable(evidence: &Evidence<'_>, _: &[ShareOfCeiling]) -> Option<Verdict> {
    let measured = [("read", evidence.read), ("write", evidence.write)];
    let (name, _) = measured
        .into_iter()
        .find(|(name, measured)| measured.is_some() && unreachable(evidence, name).is_some())?;
    let link = direction(evidence, name)?.link.as_ref()?;
    let why = unreachable(evidence, name)?;
    let next_step = "a faster or wider slot";
    Some(verdict(
        VerdictKind::DatasheetUnreachable,
        Some(&link.at),
        why,
        next_step,
    ))
}

fn undecided(evidence: &Evidence<'_>, shares: &[ShareOfCeiling]) -> Verdict {
    let mut missing: Vec<String> = evidence
        .unseen
        .iter()
        .map(|unseen| format!("{}: {}", unseen.name, unseen.why))
        .collect();
    let link = nearest(shares, CeilingKind::Link);
    if missing.is_empty() {
        match link {
            None => missing.push("no ceiling of the links is known".to_owned()),
            Some(share) => {
                missing.push(format!("{} of the links' ceiling", pct(share)));
                if share.low_pct < LIKELY_PCT && share.high_pct >= LIKELY_PCT {
                    missing.push("packet sizes are not known well enough".to_owned());
                }
                missing.extend(curve_and_host(evidence));
            }
        }
    } else {
        missing.extend(tried_burns(evidence));
    }
    let next_step = if evidence.unseen.is_empty() && link.is_some() {
        MEASURE
    } else {
        ""
    };
    verdict(VerdictKind::Undecided, None, missing.join("; "), next_step)
}

//! What bound a result. The rules are documented in README.md of this folder; they are tried in that order.

use super::evidence::{
    Evidence, LIKELY_PCT, Members, curve_and_host, done, fullest, fullest_of_each, is_below_links,
    kept,
};
use super::host::HostEvidence;
use super::plateau::Plateau;
use super::share::{nearest, pct, shares};
use crate::record::{
    Ceiling, CeilingKind, CounterDelta, DirectionCeilings, ShareOfCeiling, Verdict, VerdictKind,
};

/// From here on a limit counts as reached.
pub const BOUND_PCT: f64 = 90.0;
/// Above this a link carries more than it can.
pub const IMPOSSIBLE_PCT: f64 = 100.5;
/// Members together below this share of what they do alone hold each other up: what is between binds.
const TOGETHER_RATIO: f64 = 0.85;
/// From this share on they do not, and what is between them is excluded.
const APART_RATIO: f64 = 0.97;
/// Rates of unlike media within this share of their mean are alike.
const ALIKE_RATIO: f64 = 0.1;

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

fn distrusted(evidence: &Evidence<'_>, _: &[ShareOfCeiling]) -> Option<Verdict> {
    // What waited below the link when the window began came on top of what the link carried in it.
    let certain = 1.0 - evidence.in_flight_ratio.clamp(0.0, 1.0);
    let link = evidence
        .links
        .iter()
        .find(|link| link.least_pct * certain > IMPOSSIBLE_PCT)?;
    let why = format!(
        "{} {:.0} % of the most that {} can carry ({}): what is told of this link is wrong",
        done(evidence),
        link.low_pct,
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

fn limited_load(evidence: &Evidence<'_>, _: &[ShareOfCeiling]) -> Option<Verdict> {
    let why = match (evidence.has_rate, evidence.is_overloaded) {
        (false, _) => return None,
        (true, false) => {
            "the load was limited by rate_iops: what the hardware can do was not tried"
        }
        (true, true) => {
            "the rate of rate_iops was not kept up with; what bound it shows without a rate only"
        }
    };
    let next_step = "measure without rate_iops";
    Some(verdict(
        VerdictKind::Undecided,
        None,
        why.to_owned(),
        next_step,
    ))
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

/// Only where a platform hides the way: on a machine that shows all of it, unlike devices may well be as fast by chance.
fn platform_capped(evidence: &Evidence<'_>, _: &[ShareOfCeiling]) -> Option<Verdict> {
    let rates: Vec<f64> = evidence.peers.iter().map(|peer| peer.bytes_per_s).collect();
    let mut media: Vec<&str> = evidence
        .peers
        .iter()
        .map(|peer| peer.medium.as_str())
        .collect();
    media.sort_unstable();
    media.dedup();
    let is_at_link = evidence
        .links
        .iter()
        .any(|link| link.high_pct >= LIKELY_PCT);
    let is_shown = evidence.unseen.is_empty() || !curve_and_host(evidence).is_empty();
    if media.len() < 2 || is_shown || is_at_link || !are_alike(&rates) {
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
            let reached = pct(share.low_pct, share.high_pct);
            let text = format!("the {} is reached as well ({reached})", kind.name());
            doubts.push(text);
        }
    }
    doubts
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

const APART: &str = "measure the devices behind it by themselves";
const BETWEEN: &str = "measure several of its devices together: lanemark lanes D1 D2 --measure; a controller's rating belongs in drives.yaml";
const MEASURE: &str = "lanemark lanes --measure on this device";

fn by_link(evidence: &Evidence<'_>, shares: &[ShareOfCeiling]) -> Option<Verdict> {
    if !evidence.unseen.is_empty() {
        return None;
    }
    let link = fullest(evidence).filter(|link| link.low_pct >= LIKELY_PCT)?;
    let of = format!(
        "{} {} of the ceiling of {} ({})",
        done(evidence),
        pct(link.low_pct, link.high_pct),
        link.at,
        link.source
    );
    let all = fullest_of_each(evidence);
    let mut doubts = doubts(evidence, shares);
    let next_step = if doubts.is_empty() { APART } else { MEASURE };
    if all.iter().any(|link| link.low_pct < BOUND_PCT) {
        doubts.push("other devices are not at the limit of a link".to_owned());
    }
    if link.low_pct >= BOUND_PCT && doubts.is_empty() {
        let names: Vec<&str> = all.iter().map(|link| link.at.as_str()).collect();
        let mut why = format!("{of}, flat over depth, host excluded");
        if link.low_pct > IMPOSSIBLE_PCT {
            why += "; above 100 %: addresses below 4 GiB have shorter headers than the ceiling reckons with";
        }
        if nearest(shares, CeilingKind::Datasheet).is_none() {
            why += "; what the device could do without it is not known: no datasheet";
        }
        let at = names.join(" + ");
        return Some(verdict(VerdictKind::LinkBound, Some(&at), why, ""));
    }
    // The device does what its maker promises: no need to suspect the link.
    let promised = nearest(shares, CeilingKind::Datasheet);
    if link.low_pct < BOUND_PCT && promised.is_some_and(|share| share.low_pct >= BOUND_PCT) {
        return None;
    }
    let mut why = of;
    if link.low_pct < BOUND_PCT {
        why += "; not proven: below 90 %";
    } else {
        why += &format!("; not proven: {}", doubts.join(", "));
    }
    let read_or_written = ["read", "write"].into_iter();
    if let Some(text) = read_or_written
        .filter_map(|way| unreachable(evidence, way))
        .next()
    {
        why += &format!("; {text}");
    }
    Some(verdict(
        VerdictKind::LinkLimitedLikely,
        Some(&link.at),
        why,
        next_step,
    ))
}

fn controller_bound(evidence: &Evidence<'_>, shares: &[ShareOfCeiling]) -> Option<Verdict> {
    if !evidence.unseen.is_empty()
        || !curve_and_host(evidence).is_empty()
        || !is_below_links(evidence)
    {
        return None;
    }
    let rated = nearest(shares, CeilingKind::Controller).filter(|s| s.low_pct >= BOUND_PCT);
    if let Some(share) = rated {
        let rating = ceiling_of(evidence, share)?;
        let why = format!(
            "{} of what {} is rated for ({})",
            pct(share.low_pct, share.high_pct),
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
    let members = evidence.members?;
    let controller = members.controller.as_ref()?;
    if members.kept_ratio()? > TOGETHER_RATIO {
        return None;
    }
    let why = format!("{}, below every link", kept(members)?);
    let at = Some(controller.as_str());
    Some(verdict(VerdictKind::ControllerBound, at, why, ""))
}

/// What stands between links and devices and is not excluded.
fn between(evidence: &Evidence<'_>, shares: &[ShareOfCeiling]) -> Vec<String> {
    let mut found = Vec::new();
    let kept_ratio = evidence.members.and_then(Members::kept_ratio);
    match kept_ratio {
        None if evidence.devices_count > 1 => {
            let text = "whether the devices hold each other up was not tried";
            found.push(text.to_owned());
        }
        Some(ratio) if ratio < APART_RATIO => {
            found.extend(evidence.members.and_then(kept));
        }
        _ => {}
    }
    let rated = nearest(shares, CeilingKind::Controller);
    let is_far = rated.is_some_and(|share| share.high_pct < LIKELY_PCT);
    for one in evidence.between.iter().filter(|_| !is_far) {
        // Two that do as much together as alone have half a controller each.
        let scales = kept_ratio.is_some_and(|ratio| ratio >= APART_RATIO) && one.devices_count > 1;
        if !scales {
            found.push(format!("the controller at {} is not excluded", one.name));
        }
    }
    found
}

fn device_bound(evidence: &Evidence<'_>, shares: &[ShareOfCeiling]) -> Option<Verdict> {
    if !evidence.unseen.is_empty() || !curve_and_host(evidence).is_empty() {
        return None;
    }
    let link = fullest(evidence)?;
    let promised = nearest(shares, CeilingKind::Datasheet).filter(|s| s.low_pct >= BOUND_PCT);
    let is_promised = promised.is_some() && link.high_pct < BOUND_PCT;
    let is_left = is_below_links(evidence) && between(evidence, shares).is_empty();
    if !is_promised && !is_left {
        return None;
    }
    let mut why = format!(
        "{} of the links' ceiling, flat over depth, host excluded",
        pct(link.low_pct, link.high_pct)
    );
    if let Some(share) = promised {
        let reached = pct(share.low_pct, share.high_pct);
        why += &format!("; {reached} of its datasheet");
    }
    Some(verdict(
        VerdictKind::DeviceBound,
        Some(evidence.device),
        why,
        "",
    ))
}

/// The text where a direction's datasheet lies above the best case of the links, and these are real ones.
#[must_use]
pub fn unreachable(evidence: &Evidence<'_>, name: &str) -> Option<String> {
    if evidence.unseen.iter().any(|unseen| unseen.is_invented) {
        return None;
    }
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
    let link = fullest(evidence);
    if missing.is_empty() {
        match link {
            None => missing.push("no ceiling of the links is known".to_owned()),
            Some(link) => {
                let pct = pct(link.low_pct, link.high_pct);
                missing.push(format!("{pct} of the links' ceiling"));
                if link.low_pct < LIKELY_PCT && link.high_pct >= LIKELY_PCT {
                    missing.push("packet sizes are not known well enough".to_owned());
                }
                missing.extend(curve_and_host(evidence));
                missing.extend(between(evidence, shares));
            }
        }
    } else {
        missing.extend(tried_burns(evidence));
    }
    let next_step = match link {
        Some(_) if !evidence.unseen.is_empty() => "",
        Some(_) if curve_and_host(evidence).is_empty() => BETWEEN,
        Some(_) => MEASURE,
        None => "",
    };
    verdict(VerdictKind::Undecided, None, missing.join("; "), next_step)
}

//! The way to each device, what it lets through, what is wrong with it, and the verdict.

use super::super::figures::{self as show, GB_BYTES};
use super::super::printable;
use super::layout::{Row, Tone};
use crate::record::{
    Ceiling, CeilingKind, Criterion, DevicePath, DirectionCeilings, Hop, LinkState, RateBand, Step,
};

/// Paths, ceilings and what is wrong with the links.
pub fn rows(step: &Step) -> Vec<Row> {
    let mut rows = Vec::new();
    for path in &step.path {
        rows.extend(path_rows(path));
    }
    let mut label = "ceiling";
    for (name, ceilings) in [
        ("read", &step.ceilings.read),
        ("write", &step.ceilings.write),
    ] {
        if let Some(text) = ceilings.as_ref().and_then(ceilings_text) {
            let text = printable(&format!("{name} {text}"));
            rows.push(Row::new(std::mem::take(&mut label), text));
        }
    }
    rows
}

/// One path: a row for each hop, then what cannot be seen, what is wrong and what changed.
pub fn path_rows(path: &DevicePath) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut label = "path";
    for (index, hop) in (0..).zip(&path.hops) {
        let is_narrowest = path.narrowest_index == Some(index) && path.hops.len() > 1;
        let mark = if is_narrowest { " <- narrowest" } else { "" };
        let text = printable(&(hop_text(hop) + mark));
        rows.push(Row::new(std::mem::take(&mut label), text));
    }
    for unseen in &path.unseen {
        let text = printable(&format!("{}: unseen: {}", unseen.name, unseen.why));
        rows.push(Row::new(std::mem::take(&mut label), text));
    }
    for finding in &path.findings {
        let text = printable(&format!("{}: {}", finding.at, finding.text));
        rows.push(Row::toned("", text, Tone::Caution));
        if !finding.next_step.is_empty() {
            let text = printable(&format!("-> {}", finding.next_step));
            rows.push(Row::new("", text));
        }
    }
    for change in &path.changes {
        let text = format!(
            "{}: was {}, then {} ({} into the step)",
            change.at,
            change.before,
            change.after,
            show::seconds(change.at_s)
        );
        rows.push(Row::toned("", printable(&text), Tone::Caution));
    }
    for counter in &path.counters {
        if counter.grown_count == Some(0) {
            continue;
        }
        let text = format!(
            "{}: {} {}",
            counter.at,
            counter.counter,
            show::growth(counter)
        );
        rows.push(Row::toned("", printable(&text), Tone::Caution));
    }
    for unseen in &path.counters_unseen {
        let text = format!("{}: unseen: {}", unseen.name, unseen.why);
        rows.push(Row::toned("", printable(&text), Tone::Quiet));
    }
    rows
}

fn hop_text(hop: &Hop) -> String {
    let mut text = format!("{} > {}, {}: ", hop.name, hop.to, hop.what);
    text += &state_text(hop.now.as_ref(), hop.most.as_ref());
    if let Some(bytes) = hop.mps_bytes {
        text += &format!(", MPS {bytes}");
    }
    if let Some(bytes) = hop.mrrs_bytes {
        text += &format!(", MRRS {bytes}");
    }
    if let Some(driver) = &hop.driver {
        text += &format!(", driver {driver}");
    }
    let ceilings = [("read", hop.read_ceiling), ("write", hop.write_ceiling)];
    for (name, band) in ceilings {
        if let Some(band) = band {
            text += &format!(", {name} {}", rate_text(band));
        }
    }
    text
}

/// `8 GT/s x2 (can do 16 GT/s x4)`.
fn state_text(now: Option<&LinkState>, most: Option<&LinkState>) -> String {
    let now_text = now.map_or("link not seen", |state| &state.text);
    match most {
        Some(most) if Some(&most.text) != now.map(|state| &state.text) => {
            format!("{now_text} (can do {})", most.text)
        }
        _ => now_text.to_owned(),
    }
}

/// `1.55 to 1.68 GB/s`, or one figure where both ends show the same.
pub fn rate_text(band: RateBand) -> String {
    let low = show::rate(band.low_bytes_per_s, GB_BYTES);
    let high = show::rate(band.high_bytes_per_s, GB_BYTES);
    if low == high {
        format!("{high} GB/s")
    } else {
        format!("{low} to {high} GB/s")
    }
}

fn ceilings_text(ceilings: &DirectionCeilings) -> Option<String> {
    let known = CeilingKind::ALL.into_iter().filter_map(|kind| {
        let text = ceiling_text(ceilings.of(kind)?)?;
        Some(format!("{} {text}", kind.name()))
    });
    let mut text = known.collect::<Vec<_>>().join("; ");
    if text.is_empty() {
        return None;
    }
    if let Some(predicted) = &ceilings.predicted {
        text += &format!("; lowest: {}", predicted.kind.name());
    }
    Some(text)
}

fn ceiling_text(ceiling: &Ceiling) -> Option<String> {
    let rate = ceiling.rate.map(rate_text);
    let io = ceiling
        .io
        .map(|band| format!("{} IOPS", show::compact(band.high_iops)));
    let figures: Vec<String> = [rate, io].into_iter().flatten().collect();
    let at = Some(&ceiling.at).filter(|at| !at.is_empty());
    let at = at.map_or(String::new(), |at| format!(" ({at})"));
    (!figures.is_empty()).then(|| figures.join(", ") + &at)
}

/// The verdict, and the criteria that were asked for.
pub fn verdict(step: &Step) -> Vec<Row> {
    let verdict = &step.verdict;
    let mut text = verdict.kind.words().to_owned();
    if let Some(at) = &verdict.at {
        text += &format!(" at {at}");
    }
    if !verdict.why.is_empty() {
        text += &format!(": {}", verdict.why);
    }
    let mut rows = vec![Row::toned("verdict", printable(&text), Tone::Heading)];
    if !verdict.next_step.is_empty() {
        let text = printable(&format!("-> {}", verdict.next_step));
        rows.push(Row::new("", text));
    }
    let mut label = "expect";
    for criterion in &step.expect {
        let tone = if criterion.is_met {
            Tone::Plain
        } else {
            Tone::Bad
        };
        let text = printable(&criterion_text(criterion));
        rows.push(Row::toned(std::mem::take(&mut label), text, tone));
    }
    rows
}

/// `read_iops>=1000k: missed, 912,000`.
pub fn criterion_text(criterion: &Criterion) -> String {
    let word = if criterion.is_met { "met" } else { "missed" };
    let measured = criterion.measured.map_or_else(
        || "nothing was measured".to_owned(),
        |value| match criterion.unit.as_str() {
            "ns" => show::time(value),
            "bytes_per_s" => format!("{} GB/s", show::rate(value, GB_BYTES)),
            _ => show::iops(value),
        },
    );
    format!("{}: {word}, {measured}", criterion.text)
}

/// Measured against each limit, and the verdict; for `lanes`, where the path stands above.
pub fn measured_rows(step: &Step) -> Vec<Row> {
    let mut rows = Vec::new();
    let sides = [
        ("read", &step.read, &step.ceilings.read),
        ("write", &step.write, &step.ceilings.write),
    ];
    for (name, direction, ceilings) in sides {
        let Some(direction) = direction else { continue };
        let text = format!(
            "{name} {} GB/s, {} IOPS at depth {}",
            show::rate(direction.bytes_per_s, GB_BYTES),
            show::iops(direction.iops),
            show::count(step.depth.asked_count)
        );
        rows.push(Row::new("measured", text));
        for kind in CeilingKind::ALL {
            let known = ceilings.as_ref().and_then(|ceilings| ceilings.of(kind));
            let Some(text) = known.and_then(ceiling_text) else {
                continue;
            };
            let share = step
                .verdict
                .shares
                .iter()
                .find(|share| share.direction == name && share.of == kind);
            let share = share.map_or(String::new(), |share| {
                let (low, high) = (
                    show::percent(share.low_pct, 3),
                    show::percent(share.high_pct, 3),
                );
                if low == high {
                    format!(": {high} of it")
                } else {
                    format!(": {low} to {high} of it")
                }
            });
            rows.push(Row::new(kind.name(), printable(&(text + &share))));
        }
    }
    rows.extend(verdict(step));
    rows
}

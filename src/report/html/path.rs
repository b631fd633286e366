//! The path from host to device, hop by hop, with what each link lets through.

use super::super::text::path::rate_text;
use super::super::{figures as show, html_escaped, printable};
use super::table::{Cell, Row, Table, heads};
use crate::record::{CeilingKind, DevicePath, DirectionCeilings, Hop, RateBand, Record, Step};

/// One path.
pub struct PathView {
    /// To which device.
    pub heading: String,
    /// As HTML.
    pub drawing: String,
}

/// Every different path of a record.
pub fn views(record: &Record) -> Vec<PathView> {
    let mut out: Vec<PathView> = Vec::new();
    for step in &record.steps {
        for view in of_step(step) {
            if out
                .iter()
                .all(|known| (&known.heading, &known.drawing) != (&view.heading, &view.drawing))
            {
                out.push(view);
            }
        }
    }
    out
}

/// The paths of one step.
pub fn of_step(step: &Step) -> Vec<PathView> {
    let view = |path: &DevicePath| {
        let device = step.devices.get(path.device_index as usize);
        let name = device.map_or("the device", |device| &device.path);
        PathView {
            heading: printable(&format!("Path to {name}")),
            drawing: drawing(path, name),
        }
    };
    step.path.iter().map(view).collect()
}

fn drawing(path: &DevicePath, device: &str) -> String {
    let mut items = item("", &[("b", "host")], false);
    for (index, hop) in (0..).zip(&path.hops) {
        items += &hop_item(
            hop,
            path.narrowest_index == Some(index) && path.hops.len() > 1,
        );
    }
    for unseen in &path.unseen {
        items += &item(
            "?",
            &[
                ("b", &unseen.name),
                ("small", &format!("unseen: {}", unseen.why)),
            ],
            false,
        );
    }
    // A device that is itself what cannot be seen stands there already.
    if path
        .unseen
        .last()
        .is_none_or(|unseen| unseen.name != device)
    {
        items += &item("", &[("b", device)], false);
    }
    let mut out = format!("<ol class=\"path\">{items}</ol>");
    let findings = path
        .findings
        .iter()
        .map(|finding| format!("{}: {} ({})", finding.at, finding.text, finding.next_step));
    let changes = path.changes.iter().map(|change| {
        format!(
            "{} was {}, then {}, {} into the step",
            change.at,
            change.before,
            change.after,
            show::seconds(change.at_s)
        )
    });
    let counters = path
        .counters
        .iter()
        .filter(|counter| counter.grown_count != Some(0))
        .map(|counter| {
            format!(
                "{}: {} {}",
                counter.at,
                counter.counter,
                show::growth(counter)
            )
        });
    let unseen = (path.counters_unseen.iter())
        .map(|unseen| format!("{}: unseen: {}", unseen.name, unseen.why));
    let said: String = findings
        .chain(changes)
        .chain(counters)
        .chain(unseen)
        .map(|text| format!("<li class=\"care\">{}</li>", html_escaped(&text)))
        .collect();
    if !said.is_empty() {
        out += &format!("<ul class=\"warnings\">{said}</ul>");
    }
    out
}

fn hop_item(hop: &Hop, is_narrowest: bool) -> String {
    let link = match (&hop.now, &hop.most) {
        (Some(now), Some(most)) if now.text != most.text => {
            format!("{} (can do {})", now.text, most.text)
        }
        (Some(now), _) => now.text.clone(),
        (None, _) => "link not seen".to_owned(),
    };
    let band = |name: &str, band: Option<RateBand>| {
        band.map(|band| format!("{name} at most {}", rate_text(band)))
    };
    let sizes = [("MPS", hop.mps_bytes), ("MRRS", hop.mrrs_bytes)];
    let sizes: Vec<String> = sizes
        .iter()
        .filter_map(|(name, bytes)| bytes.map(|bytes| format!("{name} {bytes} B")))
        .collect();
    let mut lines = vec![
        ("b", format!("{} → {}", hop.name, hop.to)),
        ("span", link),
        ("small", hop.what.clone()),
        ("small", sizes.join(", ")),
    ];
    lines.extend(band("read", hop.read_ceiling).map(|text| ("small", text)));
    lines.extend(band("write", hop.write_ceiling).map(|text| ("small", text)));
    if is_narrowest {
        lines.push(("small", "the narrowest".to_owned()));
    }
    let lines: Vec<(&str, &str)> = lines
        .iter()
        .filter(|(_, text)| !text.is_empty())
        .map(|(tag, text)| (*tag, text.as_str()))
        .collect();
    item("", &lines, is_narrowest)
}

/// A box with its lines; `mark` stands on the arrow that leads to it.
fn item(mark: &str, lines: &[(&str, &str)], is_narrowest: bool) -> String {
    let class = if is_narrowest {
        " class=\"narrow\""
    } else {
        ""
    };
    let lines: String = lines
        .iter()
        .map(|(tag, text)| format!("<{tag}>{}</{tag}>", html_escaped(text)))
        .collect();
    format!(
        "<li{class}><span class=\"arrow\" aria-hidden=\"true\">{}→</span><span class=\"box\">{lines}</span></li>",
        html_escaped(mark)
    )
}

/// What each step is held against: the four limits and the measurement, by direction.
pub fn ceilings(record: &Record) -> Option<Table> {
    let rows: Vec<Row> = record
        .steps
        .iter()
        .enumerate()
        .flat_map(|(index, step)| rows(index, step))
        .collect();
    if rows.is_empty() {
        return None;
    }
    let names = [
        ("step", true),
        ("direction", true),
        ("measured", false),
        ("link", false),
        ("datasheet", false),
        ("controller", false),
        ("host", false),
        ("predicted limit", true),
    ];
    Some(Table {
        caption: "Measured against its limits".to_owned(),
        heads: heads(&names),
        rows,
    })
}

fn rows(index: usize, step: &Step) -> Vec<Row> {
    let directions = [
        ("read", &step.ceilings.read, &step.read),
        ("write", &step.ceilings.write, &step.write),
    ];
    let mut out = Vec::new();
    for (name, ceilings, measured) in directions {
        let Some(ceilings) = ceilings.as_ref().filter(|known| known.predicted.is_some()) else {
            continue;
        };
        let mut cells = vec![Cell::text(&step.name), Cell::text(name)];
        let measured = measured.as_ref().map(|found| {
            format!(
                "{} GB/s, {} IOPS",
                show::rate(found.bytes_per_s, show::GB_BYTES),
                show::iops(found.iops)
            )
        });
        cells.push(Cell::shown(
            measured.unwrap_or_else(|| show::NOT_AVAILABLE.to_owned()),
        ));
        for kind in CeilingKind::ALL {
            cells.push(Cell::shown(limit(ceilings, kind)));
        }
        let predicted = ceilings.predicted.as_ref();
        cells.push(Cell::text(
            predicted.map_or(show::NOT_AVAILABLE, |found| found.kind.name()),
        ));
        out.push(Row {
            step: index,
            direction: name,
            cells,
        });
    }
    out
}

fn limit(ceilings: &DirectionCeilings, kind: CeilingKind) -> String {
    let Some(ceiling) = ceilings.of(kind) else {
        return show::NOT_AVAILABLE.to_owned();
    };
    let rate = ceiling.rate.map(rate_text);
    let io = ceiling
        .io
        .map(|band| format!("{} IOPS", show::iops(band.high_iops)));
    let both: Vec<String> = [rate, io].into_iter().flatten().collect();
    printable(&format!("{} ({})", both.join(", "), ceiling.at))
}

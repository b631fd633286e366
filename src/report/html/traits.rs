//! What a step varied, read from its resolved plan: the axes that curves are drawn over.

use crate::record::{DEVICES_KEY, Step};
use serde_json::Value;
use std::collections::BTreeMap;

/// Something that steps of a sweep differ in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trait {
    /// I/Os in flight of each stream.
    Depth,
    /// Size of one I/O.
    BlockSize,
    /// Share of reads.
    ReadShare,
    /// Where the region begins.
    Position,
    /// How large the region is.
    Region,
    /// Rate asked for.
    Rate,
    /// Reactors.
    Reactors,
    /// Streams.
    Streams,
    /// Devices at once.
    Devices,
    /// `read`, `randwrite` …
    Access,
    /// Which sizes are mixed.
    Sizes,
    /// What was measured, and through which backend.
    Device,
}

/// A value of a trait: a number where it has one, and always a text.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The number, for axes.
    pub number: Option<f64>,
    /// The text, for legends.
    pub text: String,
}

impl Found {
    fn number(value: f64, text: String) -> Self {
        Self {
            number: Some(value),
            text,
        }
    }

    fn text(text: String) -> Self {
        Self { number: None, text }
    }
}

/// The traits of a step. A trait that its streams do not share is left out.
pub fn of(step: &Step) -> BTreeMap<Trait, Found> {
    let mut found = BTreeMap::new();
    let none = Vec::new();
    let streams = step
        .plan
        .get("streams")
        .and_then(Value::as_array)
        .unwrap_or(&none);
    for (which, read) in NUMBERS {
        if let Some(number) = shared(streams, read) {
            found.insert(*which, Found::number(number, text(*which, number)));
        }
    }
    if let Some(sizes) = shared(streams, |stream| stream.get("sizes").cloned()) {
        sizes_of(&sizes, &mut found);
    }
    if let Some(access) = shared(streams, |stream| word(stream, "rw")) {
        found.insert(Trait::Access, Found::text(access));
    }
    if let Some(count) = step.plan.get("reactors_count").and_then(Value::as_f64) {
        found.insert(
            Trait::Reactors,
            Found::number(count, format!("{count} reactors")),
        );
    }
    let count = streams.len();
    #[allow(clippy::cast_precision_loss)]
    found.insert(
        Trait::Streams,
        Found::number(count as f64, format!("{count} streams")),
    );
    let at_once = step.origin.point.iter().find(|at| at.key == DEVICES_KEY);
    if let Some(count) = at_once.and_then(|at| at.value.parse().ok()) {
        let text = format!("{count} devices");
        found.insert(Trait::Devices, Found::number(count, text));
    }
    let devices: Vec<&str> = step
        .devices
        .iter()
        .map(|device| device.path.as_str())
        .collect();
    let device = format!("{} by {}", devices.join(" + "), step.backend.name);
    found.insert(Trait::Device, Found::text(device));
    found
}

type Reader = fn(&Value) -> Option<f64>;

const NUMBERS: &[(Trait, Reader)] = &[
    (Trait::Depth, |stream| stream.get("iodepth_count")?.as_f64()),
    (Trait::ReadShare, |stream| stream.get("read_pct")?.as_f64()),
    (Trait::Position, |stream| {
        stream.get("offset")?.get("bytes")?.as_f64()
    }),
    (Trait::Region, |stream| {
        stream.get("size")?.get("bytes")?.as_f64()
    }),
    (Trait::Rate, |stream| stream.get("rate_iops")?.as_f64()),
];

fn text(which: Trait, number: f64) -> String {
    use super::chart::Quantity;
    match which {
        Trait::Depth => format!("depth {number}"),
        Trait::ReadShare => format!("{} reads", Quantity::Percent.text(number)),
        Trait::Position => format!("from {}", Quantity::Place.text(number)),
        Trait::Region => format!("over {}", Quantity::Place.text(number)),
        _ => format!("{} a second", Quantity::Count.text(number)),
    }
}

fn word(stream: &Value, key: &str) -> Option<String> {
    stream.get(key)?.as_str().map(str::to_owned)
}

/// What all streams have in common; `None` where they differ or have none.
fn shared<T: PartialEq>(streams: &[Value], read: impl Fn(&Value) -> Option<T>) -> Option<T> {
    let mut values = streams.iter().map(read);
    let first = values.next()??;
    values
        .all(|value| value.as_ref() == Some(&first))
        .then_some(first)
}

fn sizes_of(sizes: &Value, found: &mut BTreeMap<Trait, Found>) {
    let bytes: Vec<f64> = sizes
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|size| size.get("bytes")?.as_f64())
        .collect();
    match bytes.as_slice() {
        [] => {}
        [one] => {
            let text = super::chart::Quantity::Size.text(*one);
            found.insert(Trait::BlockSize, Found::number(*one, text));
        }
        many => {
            found.insert(Trait::Sizes, Found::text(format!("{} sizes", many.len())));
        }
    }
}

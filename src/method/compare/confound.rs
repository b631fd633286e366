//! What differs between the sides besides what is compared.

use super::ways::{Facts, OF_DEVICE};
use crate::record::{Confounder, DevicePath, DeviceUse, Step};

/// Every fact of these steps and of their ways, one for each side, that is not the same on all sides. Sides with
/// different numbers of devices are held against each other as wholes, in what all of them have.
#[must_use]
pub fn confounders(sides: &[&Step], ways: &[Facts]) -> Vec<Confounder> {
    let steps: Vec<Facts> = sides.iter().map(|step| facts(step)).collect();
    let counts = || sides.iter().map(|step| step.devices.len());
    if counts().min() == counts().max() {
        return [differing(&steps), differing(ways)].concat();
    }
    let mut all = Vec::new();
    for facts in [&steps[..], ways] {
        let wholes: Vec<Facts> = facts.iter().map(together).collect();
        all.extend(differing(&wholes));
    }
    all.retain(|fact| fact.values.iter().all(Option::is_some));
    all
}

/// One fact for all devices of a side: each value once.
fn together(facts: &Facts) -> Facts {
    let mut whole: Facts = Vec::new();
    for (name, value) in facts {
        let name = name.split(OF_DEVICE).next().unwrap_or(name);
        let place = whole.iter().position(|(known, _)| known == name);
        let place = place.unwrap_or_else(|| {
            whole.push((name.to_owned(), None));
            whole.len() - 1
        });
        let Some(value) = value else { continue };
        match &mut whole[place].1 {
            Some(known) if known.split(" + ").any(|one| one == value) => {}
            Some(known) => *known += &format!(" + {value}"),
            none => *none = Some(value.clone()),
        }
    }
    whole
}

/// Every fact that is not the same on all sides, in the order in which the sides have them.
#[must_use]
pub fn differing(facts: &[Facts]) -> Vec<Confounder> {
    let mut names: Vec<&String> = Vec::new();
    for (name, _) in facts.iter().flatten() {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let value = |facts: &Facts, name: &String| {
        let found = facts.iter().find(|(known, _)| known == name);
        found.and_then(|(_, value)| value.clone())
    };
    names
        .into_iter()
        .map(|name| Confounder {
            values: facts.iter().map(|facts| value(facts, name)).collect(),
            name: name.clone(),
            forbids: false,
        })
        .filter(|confounder| {
            confounder
                .values
                .iter()
                .any(|value| *value != confounder.values[0])
        })
        .collect()
}

/// Whether all sides measured the same drives: then the difference is that of the way to them.
#[must_use]
pub fn is_same_drive(a: &Step, b: &Step) -> bool {
    a.devices.len() == b.devices.len()
        && !a.devices.is_empty()
        && a.devices
            .iter()
            .zip(&b.devices)
            .all(|(a, b)| is_same_device(a, b))
}

/// By world-wide identity, else by model, serial number and size, else by name. The kernel passes over identities
/// of drives that are known to make them up, and then names another kind than SPDK does: those decide nothing.
#[must_use]
pub fn is_same_device(a: &DeviceUse, b: &DeviceUse) -> bool {
    let kind = |identity: &str| {
        let known = ["uuid.", "eui.", "naa.", "dm.", "md."];
        known.iter().position(|prefix| identity.starts_with(prefix))
    };
    if let (Some(one), Some(other)) = (&a.identity, &b.identity)
        && (one == other || kind(one) == kind(other))
    {
        return one == other;
    }
    if let (Some(one), Some(other)) = (&a.serial, &b.serial) {
        let is_alike = a.model == b.model && a.capacity_bytes == b.capacity_bytes;
        return one.trim() == other.trim() && is_alike;
    }
    a.path == b.path
}

/// What is known of the way to the devices, in words.
fn facts(step: &Step) -> Vec<(String, Option<String>)> {
    let mut facts = vec![
        ("backend".to_owned(), Some(step.backend.name.clone())),
        (
            "backend set-up".to_owned(),
            Some(step.backend.features.join(", ")),
        ),
        ("devices".to_owned(), Some(step.devices.len().to_string())),
    ];
    for (index, device) in step.devices.iter().enumerate() {
        let of = |name: &str| {
            if step.devices.len() == 1 {
                name.to_owned()
            } else {
                format!("{name}{OF_DEVICE}{}", index + 1)
            }
        };
        let text = |value: Option<&String>| value.cloned();
        facts.extend([
            (of("device"), Some(device.path.clone())),
            (of("kind"), Some(device.kind.clone())),
            (of("identity"), text(device.identity.as_ref())),
            (of("model"), text(device.model.as_ref())),
            (of("serial"), text(device.serial.as_ref())),
            (of("firmware"), text(device.firmware.as_ref())),
            (
                of("capacity in bytes"),
                Some(device.capacity_bytes.to_string()),
            ),
            (
                of("logical block"),
                Some(format!("{} B", device.logical_block_bytes)),
            ),
            (
                of("physical block"),
                device
                    .physical_block_bytes
                    .map(|bytes| format!("{bytes} B")),
            ),
            (
                of("in use"),
                Some(device.in_use.join(", ")).filter(|uses| !uses.is_empty()),
            ),
        ]);
        let path = step
            .path
            .iter()
            .find(|path| path.device_index as usize == index);
        facts.extend(
            path.into_iter()
                .flat_map(path_facts)
                .map(|(name, value)| (of(&name), value)),
        );
    }
    let cpus = step
        .reactors
        .iter()
        .filter_map(|reactor| reactor.cpu.map(|cpu| cpu.to_string()));
    facts.extend([
        ("reactors".to_owned(), Some(step.reactors.len().to_string())),
        (
            "CPUs".to_owned(),
            Some(cpus.collect::<Vec<_>>().join(",")).filter(|cpus| !cpus.is_empty()),
        ),
        (
            "depth the device holds".to_owned(),
            step.depth.device_count.map(|depth| depth.to_string()),
        ),
        (
            "stamps".to_owned(),
            Some(format!("{:?}", step.stamp.mode).to_lowercase()),
        ),
    ]);
    facts
}

/// The links, narrowest first, and who drives them.
fn path_facts(path: &DevicePath) -> Vec<(String, Option<String>)> {
    let narrowest = path
        .narrowest_index
        .and_then(|index| path.hops.get(index as usize));
    let link = narrowest.map(|hop| {
        let now = hop.now.as_ref().map_or("unknown", |now| &now.text);
        format!("{now} at {}", hop.name)
    });
    let ways: Vec<&str> = path.hops.iter().map(|hop| hop.what.as_str()).collect();
    let drivers: Vec<&str> = path
        .hops
        .iter()
        .filter_map(|hop| hop.driver.as_deref())
        .collect();
    let unseen: Vec<&str> = path
        .unseen
        .iter()
        .map(|unseen| unseen.name.as_str())
        .collect();
    let listed =
        |words: Vec<&str>, between: &str| Some(words.join(between)).filter(|text| !text.is_empty());
    let mut facts = vec![
        ("way".to_owned(), listed(ways, " > ")),
        ("narrowest link".to_owned(), link),
        ("drivers".to_owned(), listed(drivers, " > ")),
        ("unseen part of the way".to_owned(), listed(unseen, ", ")),
    ];
    for (number, hop) in (1..).zip(&path.hops) {
        facts.push((
            format!("link {number}"),
            hop.now.as_ref().map(|now| now.text.clone()),
        ));
        facts.push((
            format!("payload of link {number}"),
            hop.mps_bytes.map(|bytes| format!("{bytes} B")),
        ));
    }
    facts
}

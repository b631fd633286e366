//! The controllers that the sides' commands pass: what a record does not hold.

use crate::sysfs::Sysfs;
use crate::sysfs::attach::Attachment;
use crate::sysfs::pci::Function;

/// Facts of one side, by name.
pub type Facts = Vec<(String, Option<String>)>;

/// Between a fact and the number of its device, on a side of several.
pub const OF_DEVICE: &str = " of device ";

/// Controller, its driver and firmware, and NUMA node of every device; nothing where a device has none, or
/// nothing can be seen of it.
#[must_use]
pub fn facts(sysfs: &Sysfs, devices: &[String]) -> Facts {
    let mut facts = Facts::new();
    for (index, device) in devices.iter().enumerate() {
        let of = |name: &str| {
            if devices.len() == 1 {
                name.to_owned()
            } else {
                format!("{name}{OF_DEVICE}{}", index + 1)
            }
        };
        if let Ok(found) = Attachment::of(sysfs, device) {
            facts.extend(
                of_attachment(sysfs, &found)
                    .into_iter()
                    .map(|(name, value)| (of(name), value)),
            );
        }
    }
    facts
}

fn of_attachment(sysfs: &Sysfs, found: &Attachment) -> Vec<(&'static str, Option<String>)> {
    let functions: Vec<Function> = found
        .functions
        .iter()
        .filter_map(|bdf| Function::read(sysfs, *bdf).ok())
        .collect();
    let listed = |words: Vec<String>| Some(words.join(" and ")).filter(|text| !text.is_empty());
    let id = |function: &Function| match (&function.vendor, &function.device) {
        (Ok(vendor), Ok(device)) => format!("{vendor:04x}:{device:04x}"),
        _ => function.bdf.to_string(),
    };
    let board = found.host.as_ref().and_then(|host| host.board.clone());
    let controllers = functions.iter().map(|function| match &board {
        Some(board) => format!("{board} ({})", id(function)),
        None => id(function),
    });
    let drivers = functions.iter().filter_map(|function| {
        let driver = function.driver.as_ref()?;
        Some(match &driver.version {
            Some(version) => format!("{} {version}", driver.name),
            None => driver.name.clone(),
        })
    });
    let nodes = functions.iter().filter_map(|function| {
        let node = function.numa_node.as_ref().ok().copied().flatten();
        node.map(|node| node.to_string())
    });
    let firmware = found.host.as_ref().and_then(|host| host.firmware.clone());
    vec![
        (
            "transport",
            found.transport.map(|transport| transport.name().to_owned()),
        ),
        ("controller", listed(controllers.collect())),
        (
            "controller's PCI address",
            listed(found.functions.iter().map(ToString::to_string).collect()),
        ),
        ("controller's driver", listed(drivers.collect())),
        ("controller's firmware", firmware),
        ("NUMA node", listed(nodes.collect())),
    ]
}

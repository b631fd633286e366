//! `lanemark devices`: what is here, behind which link, who drives it, what uses it, and whether SPDK could.

pub(in crate::cli) mod details;

use crate::cli::listing::{LIST_SCHEMA_VERSION, ListFormat, table, text_of};
use crate::session::scan::{DeviceEntry, Inventory, LinkEntry, SpdkState, scan};
use crate::sysfs::pci::Bdf;
use crate::sysfs::{Node, Sysfs, SysfsError};
use crate::units::Bytes;
use comfy_table::ColumnConstraint;
use details::details;
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt::Write;
use std::path::Path;

const HEADER: [&str; 7] = [
    "DEVICE", "MODEL", "SIZE", "LINK", "DRIVER", "IN USE", "SPDK",
];

/// Why there is no list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DevicesError {
    /// The machine shows no list of block devices.
    #[error(transparent)]
    Sysfs(#[from] SysfsError),
    /// Nothing of this name is in it.
    #[error("{0}: no such device")]
    Unknown(String),
}

/// The list, ready to print, with a newline at its end. With `only`, that device (any of its paths, its PCI
/// address, its serial number) with all its details.
///
/// # Errors
/// [`DevicesError`].
pub fn devices(
    sysfs: &Sysfs,
    format: ListFormat,
    only: Option<&str>,
) -> Result<String, DevicesError> {
    let mut inventory = scan(sysfs)?;
    if let Some(name) = only {
        select(&mut inventory, sysfs, name)?;
    }
    Ok(match (format, only) {
        (ListFormat::Json, _) => json(&inventory),
        (ListFormat::Text, None) => text(&inventory),
        (ListFormat::Text, Some(_)) => details(&inventory),
    })
}

/// Keeps what the name means: one disk, or every namespace of a controller.
fn select(inventory: &mut Inventory, sysfs: &Sysfs, name: &str) -> Result<(), DevicesError> {
    let bdf = Bdf::parse_typed(name).map(|bdf| bdf.to_string());
    // A symbolic link, as those of /dev/disk are.
    let real = Node::inspect(sysfs, Path::new(name)).ok();
    let real = real.map(|node| node.path.display().to_string());
    let is_it = |device: &DeviceEntry| {
        let is_path = |path: &String| path == name || Some(path) == real.as_ref();
        let own = [&device.path, &device.name];
        own.into_iter().chain(&device.other_paths).any(is_path)
            || device.parts.iter().any(|part| is_path(&part.path))
            || device
                .controllers
                .iter()
                .any(|one| one.pci.is_some() && one.pci == bdf)
            || device.controllers.iter().any(|one| one.name == name)
            || device.serial.as_deref() == Some(name)
    };
    inventory.devices.retain(is_it);
    if inventory.devices.is_empty() {
        return Err(DevicesError::Unknown(name.chars().take(200).collect()));
    }
    Ok(())
}

/// The list as JSON.
#[derive(Serialize, JsonSchema)]
pub(in crate::cli) struct DevicesList<'a> {
    /// Version of the layout.
    schema_version: u32,
    /// The kernel.
    kernel: Option<&'a str>,
    /// The devices.
    devices: &'a [DeviceEntry],
    /// What could not be read of the machine.
    problems: &'a [String],
}

fn json(inventory: &Inventory) -> String {
    let list = DevicesList {
        schema_version: LIST_SCHEMA_VERSION,
        kernel: inventory.kernel.as_deref(),
        devices: &inventory.devices,
        problems: &inventory.problems,
    };
    let document = serde_json::json!(list);
    format!("{document:#}\n")
}

fn text(inventory: &Inventory) -> String {
    let shown = inventory
        .devices
        .iter()
        .filter(|device| !device.is_idle_virtual());
    let mut rows = table(&HEADER);
    // A path that is broken in two cannot be copied.
    if let Some(paths) = rows.column_mut(0) {
        paths.set_constraint(ColumnConstraint::ContentWidth);
    }
    let mut rows_count = 0;
    for device in shown {
        rows.add_row(row(device));
        rows_count += 1;
    }
    let mut text = if rows_count == 0 {
        "no block devices\n".to_owned()
    } else {
        text_of(&rows)
    };
    let idle_count = inventory.devices.len() - rows_count;
    if idle_count > 0 {
        let _ = writeln!(text, "and {idle_count} idle loop, zram, ram or nbd devices");
    }
    let of_devices = inventory.devices.iter().flat_map(|device| {
        device
            .problems
            .iter()
            .map(move |problem| format!("{}: {problem}", device.name))
    });
    for problem in inventory.problems.iter().cloned().chain(of_devices) {
        let _ = writeln!(text, "problem: {problem}");
    }
    if rows_count > 0 {
        text.push_str("lanemark devices DEVICE tells all of one; --format json of all\n");
    }
    text
}

fn row(device: &DeviceEntry) -> Vec<String> {
    let paths = std::iter::once(&device.path).chain(&device.other_paths);
    // A transport ID is as wide as the rest together: the details have it.
    let paths: Vec<&str> = paths
        .map(String::as_str)
        .filter(|path| !path.starts_with("trtype:"))
        .collect();
    let uses = match device.in_use.as_deref() {
        None => "unknown".to_owned(),
        Some([]) => "no".to_owned(),
        Some(uses) => uses.join("\n"),
    };
    vec![
        paths.join("\n"),
        lines([Some(name_of_model(device)), device.serial.clone()]),
        sizes(device),
        link(device),
        driver(device),
        uses,
        spdk(device),
    ]
}

/// Size, blocks and medium; nothing is known of a device that the kernel has not looked at.
fn sizes(device: &DeviceEntry) -> String {
    if device.size_bytes.is_none() && device.logical_block_bytes.is_none() {
        return "?".to_owned();
    }
    lines([
        Some(device.size_bytes.map_or_else(|| "?".to_owned(), size)),
        Some(blocks(device)),
        Some(medium(device)),
    ])
}

fn lines<const N: usize>(parts: [Option<String>; N]) -> String {
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    parts.join("\n")
}

/// Its model; for a PCI function that nobody has asked, its numbers.
pub(in crate::cli) fn name_of_model(device: &DeviceEntry) -> String {
    let id = || {
        let id = device.controllers.iter().find_map(|one| one.pci_id.clone());
        id.filter(|_| device.size_bytes.is_none())
    };
    let model = device.model.clone().or_else(id);
    model.unwrap_or_else(|| "-".to_owned())
}

/// Transport and nearest link, and whether it or one above it runs below what it could.
fn link(device: &DeviceEntry) -> String {
    let mut parts = vec![device.transport.clone().unwrap_or_else(|| "-".to_owned())];
    if let Some(near) = device.links.first() {
        parts.push(near.now().unwrap_or_else(|| "unknown".to_owned()));
    }
    let or = |text: Option<String>| text.unwrap_or_else(|| "?".to_owned());
    for (index, link) in device.links.iter().enumerate() {
        match link.degraded {
            Some(true) if index == 0 => {
                parts.push(format!("DEGRADED from {}", or(link.at_most())));
            }
            Some(true) => parts.push(format!(
                "DEGRADED above: {} of {}",
                or(link.now()),
                or(link.at_most())
            )),
            _ => {}
        }
    }
    parts.join("\n")
}

/// `0000:00:01.0 to 0000:01:00.0 at 16 GT/s x4 of 16 GT/s x16`.
pub(in crate::cli) fn degraded(link: &LinkEntry) -> String {
    let or = |text: Option<String>| text.unwrap_or_else(|| "?".to_owned());
    format!(
        "{} at {} of {}",
        link.at,
        or(link.now()),
        or(link.at_most())
    )
}

/// The controller's driver with its version (`mpt3sas 48.100.00.00`); for virtio the disk's, which says more.
fn driver(device: &DeviceEntry) -> String {
    let mut names: Vec<String> = Vec::new();
    for controller in &device.controllers {
        let version = controller.driver_version.as_ref();
        if let Some(name) = controller.driver.as_ref().filter(|_| !is_virtio(device)) {
            let words = version.map_or_else(|| name.clone(), |version| format!("{name} {version}"));
            if !names.contains(&words) {
                names.push(words);
            }
        }
    }
    if names.is_empty() {
        names.push(device.driver.clone().unwrap_or_else(|| "-".to_owned()));
    }
    names.extend(device.numa_node.map(|node| format!("NUMA {node}")));
    names.join("\n")
}

fn is_virtio(device: &DeviceEntry) -> bool {
    device.driver.as_deref() == Some("virtio_blk")
}

fn spdk(device: &DeviceEntry) -> String {
    match &device.spdk {
        None => "-".to_owned(),
        Some(spdk) => match spdk.state {
            SpdkState::Ready => "ready".to_owned(),
            SpdkState::Claimable => "claimable".to_owned(),
            SpdkState::No => format!("no: {}", spdk.why),
        },
    }
}

/// `512/4096`: logical and physical block in bytes; `512+8`: with metadata.
pub(in crate::cli) fn blocks(device: &DeviceEntry) -> String {
    let word = |bytes: Option<u32>| bytes.map_or_else(|| "?".to_owned(), |bytes| bytes.to_string());
    let metadata = device.metadata_bytes.filter(|bytes| *bytes > 0);
    format!(
        "{}{}/{}",
        word(device.logical_block_bytes),
        metadata.map_or_else(String::new, |bytes| format!("+{bytes}")),
        word(device.physical_block_bytes)
    )
}

pub(in crate::cli) fn medium(device: &DeviceEntry) -> String {
    let kind = match device.rotational {
        Some(true) => "rotating",
        Some(false) => "flash",
        None => "?",
    };
    // Loop and RAM devices call themselves non-rotating; that makes them no flash.
    let is_virtual =
        device.driver.is_none() && device.model.is_none() && device.rotational == Some(false);
    let kind = if is_virtual { "virtual" } else { kind };
    if device.read_only == Some(true) {
        format!("{kind}, ro")
    } else {
        kind.to_owned()
    }
}

/// Capacity the way drives are sold (decimal), which is not always exact, with the exact figure in JSON.
pub(in crate::cli) fn size(bytes: u64) -> String {
    const UNITS: [(&str, u64); 4] = [
        ("PB", 1_000_000_000_000_000),
        ("TB", 1_000_000_000_000),
        ("GB", 1_000_000_000),
        ("MB", 1_000_000),
    ];
    for (name, unit) in UNITS {
        if bytes >= unit {
            let tenths = bytes / (unit / 10);
            return format!("{}.{} {name}", tenths / 10, tenths % 10);
        }
    }
    Bytes(bytes).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_decimal_and_never_rounded_up() {
        assert_eq!(size(480_103_981_056), "480.1 GB");
        assert_eq!(size(999_999_999_999), "999.9 GB");
        assert_eq!(size(8 << 40), "8.7 TB");
        assert_eq!(size(4096), "4 KiB");
        assert_eq!(size(0), "0 B");
        assert_eq!(size(u64::MAX), "18446.7 PB");
    }
}

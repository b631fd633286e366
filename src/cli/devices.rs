//! `lanemark devices`: what block devices are here, and what each is used for.

use super::listing::{LIST_SCHEMA_VERSION, ListFormat, table, text_of};
use crate::session::scan::{DeviceEntry, Inventory, scan};
use crate::sysfs::{Sysfs, SysfsError};
use crate::units::Bytes;
use std::fmt::Write;

/// The list, ready to print, with a newline at its end.
///
/// # Errors
/// [`SysfsError::Read`] where the machine shows no list of block devices.
pub fn devices(sysfs: &Sysfs, format: ListFormat) -> Result<String, SysfsError> {
    let inventory = scan(sysfs)?;
    Ok(match format {
        ListFormat::Json => json(&inventory),
        ListFormat::Text => text(&inventory),
    })
}

fn json(inventory: &Inventory) -> String {
    let document = serde_json::json!({
        "schema_version": LIST_SCHEMA_VERSION,
        "devices": inventory.devices,
        "problems": inventory.problems,
    });
    format!("{document:#}\n")
}

fn text(inventory: &Inventory) -> String {
    let shown = inventory
        .devices
        .iter()
        .filter(|device| !device.is_idle_virtual());
    let mut rows = table(&[
        "DEVICE",
        "MODEL",
        "SERIAL",
        "SIZE",
        "BLOCK",
        "MEDIUM",
        "SCHEDULER",
        "DRIVER",
        "IN USE",
    ]);
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
    text
}

fn row(device: &DeviceEntry) -> Vec<String> {
    let or_dash = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    let paths = std::iter::once(&device.path).chain(&device.other_paths);
    let uses = match device.in_use.as_deref() {
        None => "unknown".to_owned(),
        Some([]) => "no".to_owned(),
        Some(uses) => uses.join("\n"),
    };
    vec![
        paths.cloned().collect::<Vec<_>>().join("\n"),
        or_dash(&device.model),
        or_dash(&device.serial),
        device.size_bytes.map_or_else(|| "?".to_owned(), size),
        blocks(device),
        medium(device),
        or_dash(&device.scheduler),
        or_dash(&device.driver),
        uses,
    ]
}

/// `512/4096`: logical and physical block in bytes.
fn blocks(device: &DeviceEntry) -> String {
    let word = |bytes: Option<u32>| bytes.map_or_else(|| "?".to_owned(), |bytes| bytes.to_string());
    format!(
        "{}/{}",
        word(device.logical_block_bytes),
        word(device.physical_block_bytes)
    )
}

fn medium(device: &DeviceEntry) -> String {
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
fn size(bytes: u64) -> String {
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

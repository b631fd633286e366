//! `lanemark devices DEVICE`: everything that is known of it, a line each.

use super::{blocks, degraded, medium, name_of_model, size};
use crate::session::scan::{ControllerEntry, DeviceEntry, Inventory, LinkEntry, SpdkState};

/// Lines of one device: name and value.
type Lines = Vec<(&'static str, String)>;

/// Every device of the inventory in full.
pub(in crate::cli) fn details(inventory: &Inventory) -> String {
    let kernel = inventory.kernel.as_deref();
    let devices = inventory.devices.iter();
    let texts: Vec<String> = devices.map(|device| of_device(device, kernel)).collect();
    let mut text = texts.join("\n");
    for problem in &inventory.problems {
        text += &format!("problem: {problem}\n");
    }
    text
}

fn of_device(device: &DeviceEntry, kernel: Option<&str>) -> String {
    let mut lines: Lines = Vec::new();
    who(device, &mut lines);
    what(device, &mut lines);
    for controller in &device.controllers {
        lines.push(("controller", of_controller(controller, kernel)));
    }
    for link in &device.links {
        lines.push(("link", of_link(link)));
    }
    if device.controllers.is_empty() {
        lines.extend(device.driver.clone().map(|driver| ("driver", driver)));
    }
    lines.extend(device.numa_node.map(|node| ("NUMA node", node.to_string())));
    let uses = match device.in_use.as_deref() {
        None => "cannot be told".to_owned(),
        Some([]) => "no".to_owned(),
        Some(uses) => uses.join("; "),
    };
    lines.push(("in use", uses));
    if let Some(spdk) = &device.spdk {
        let state = match spdk.state {
            SpdkState::Ready => "ready",
            SpdkState::Claimable => "claimable",
            SpdkState::No => "no",
        };
        lines.push(("SPDK", format!("{state}: {}", spdk.why)));
        if !spdk.next_step.is_empty() {
            lines.push(("next step", spdk.next_step.clone()));
        }
    }
    for problem in &device.problems {
        lines.push(("problem", problem.clone()));
    }
    let mut text = format!("{}\n", device.path);
    for (name, value) in lines {
        text += &format!("  {name:<11} {value}\n");
    }
    text
}

fn who(device: &DeviceEntry, lines: &mut Lines) {
    for path in &device.other_paths {
        lines.push(("also", path.clone()));
    }
    lines.push(("model", name_of_model(device)));
    let mut put = |name, value: &Option<String>| {
        if let Some(value) = value {
            lines.push((name, value.clone()));
        }
    };
    put("serial", &device.serial);
    put("firmware", &device.firmware);
    put("identity", &device.identity);
    put("transport", &device.transport);
}

fn what(device: &DeviceEntry, lines: &mut Lines) {
    if let Some(bytes) = device.size_bytes {
        lines.push(("size", format!("{} ({bytes} bytes)", size(bytes))));
        let words = format!(
            "{} bytes, logical/physical; {}",
            blocks(device),
            medium(device)
        );
        lines.push(("blocks", words));
    }
    if let Some(bytes) = device.metadata_bytes.filter(|bytes| *bytes > 0) {
        let kind = device
            .integrity
            .as_deref()
            .unwrap_or("not handled by the kernel");
        lines.push((
            "metadata",
            format!("{bytes} bytes beside each block ({kind})"),
        ));
    } else if let Some(kind) = &device.integrity {
        lines.push(("integrity", kind.clone()));
    }
    for format in device.formats.iter().flatten() {
        let now = if format.in_use { ", in use" } else { "" };
        let words = format!(
            "{}: {} bytes + {} of metadata, relative performance {} (0 is best, 3 worst){now}",
            format.index, format.block_bytes, format.metadata_bytes, format.relative_performance
        );
        lines.push(("format", words));
    }
    if let Some(scheduler) = &device.scheduler {
        lines.push(("scheduler", scheduler.clone()));
    }
    match device.polls {
        Some(true) => lines.push(("polled", "the kernel's queue polls".to_owned())),
        Some(false) => lines.push((
            "polled",
            "no poll queues: completions by interrupt".to_owned(),
        )),
        None => {}
    }
    for part in &device.parts {
        let bytes = part.size_bytes.map_or_else(|| "?".to_owned(), size);
        lines.push(("partition", format!("{} {bytes}", part.path)));
    }
}

fn of_controller(controller: &ControllerEntry, kernel: Option<&str>) -> String {
    let mut words = vec![controller.name.clone()];
    let mut put = |label: &str, value: Option<String>| {
        if let Some(value) = value {
            words.push(format!("{label}{value}"));
        }
    };
    put("", controller.board.clone());
    put(
        "",
        controller.pci.clone().filter(|pci| *pci != controller.name),
    );
    put("id ", controller.pci_id.clone());
    put("", controller.address.clone());
    put("firmware ", controller.firmware.clone());
    if let Some(driver) = &controller.driver {
        let version = controller.driver_version.clone();
        let version = version
            .map(|version| format!(" {version}"))
            .unwrap_or_default();
        let kernel = kernel
            .map(|kernel| format!(" of kernel {kernel}"))
            .unwrap_or_default();
        put("driver ", Some(format!("{driver}{version}{kernel}")));
    }
    put("state ", controller.state.clone());
    put("path ", controller.path.clone());
    put(
        "takes commands: ",
        controller.commands_count.map(|count| count.to_string()),
    );
    put(
        "IOMMU group ",
        controller.iommu_group.map(|group| group.to_string()),
    );
    put("NUMA ", controller.numa_node.map(|node| node.to_string()));
    words.join(", ")
}

fn of_link(link: &LinkEntry) -> String {
    let kind = match link.kind {
        "pcie" => "PCIe",
        "sas" => "SAS",
        _ => "SATA",
    };
    if link.degraded == Some(true) {
        return format!("{kind} {}: DEGRADED", degraded(link));
    }
    match (link.now(), &link.unknown) {
        (Some(now), _) => {
            let most = link.at_most().filter(|most| *most != now);
            let most = most
                .map(|most| format!(" (at most {most})"))
                .unwrap_or_default();
            format!("{kind} {} at {now}{most}", link.at)
        }
        (None, Some(why)) => format!("{kind} {}: not known, {why}", link.at),
        (None, None) => format!("{kind} {}: not known", link.at),
    }
}

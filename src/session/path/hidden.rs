//! Parts of a PCI Express path that show no link.

use super::SeenPath;
use crate::sysfs::pci::{Function, PciPath, PortKind};

const INTEL: u16 = 0x8086;
/// Root ports of Intel's chipsets (ICH6 to the 800 series) are functions of these devices; the processor's own are
/// elsewhere (datasheets of the chipsets, "PCI devices and functions").
const INTEL_CHIPSET_DEVICES: std::ops::RangeInclusive<u8> = 0x1a..=0x1d;
/// "800 Series Chipset Family PCIe Root Port" in pci.ids (2026-08): these are on bus 80h.
const INTEL_800_SERIES: std::ops::RangeInclusive<u16> = 0x7f30..=0x7f47;

impl SeenPath {
    /// Says which parts of the way show no link.
    pub(super) fn hide_pcie(&mut self, pci: &PciPath) {
        let Some(first) = pci.functions.first() else {
            return;
        };
        let name = first.bdf.to_string();
        match pci.kind(0) {
            Some(PortKind::RootIntegrated) => {
                self.hide(
                    &name,
                    "an on-chip controller: its way to the processor shows no link",
                );
            }
            Some(PortKind::RootPort) if is_of_a_chipset(pci, first) => {
                self.hide(
                    &name,
                    "a port of the chipset, whose own link to the processor shows no speed",
                );
            }
            Some(PortKind::RootPort) => {}
            // The bus below it is said below.
            Some(PortKind::Bridge) if pci.functions.len() > 1 => {}
            _ => self.hide(
                &name,
                "no port is shown above it: a virtual machine may hide the way",
            ),
        }
        self.hide_buses(pci);
    }

    /// Buses that are no link: all but those below a port that faces down, and the one inside a switch. To users
    /// without root a bridge to conventional PCI looks like a switch's upstream port, but then no downstream port is
    /// below it.
    fn hide_buses(&mut self, pci: &PciPath) {
        for (index, bridge) in pci.functions.iter().enumerate() {
            let (above, below) = (pci.kind(index), pci.kind(index + 1));
            let is_link = above.is_some_and(PortKind::faces_down);
            let is_in_switch =
                (above, below) == (Some(PortKind::Upstream), Some(PortKind::Downstream));
            if below.is_some() && !is_link && !is_in_switch {
                let why = "a PCI bus below it, whose speed is not shown";
                self.hide(&bridge.bdf.to_string(), why);
            }
        }
    }
}

fn is_of_a_chipset(pci: &PciPath, port: &Function) -> bool {
    if port.vendor != Ok(INTEL) {
        return false;
    }
    let is_800_series = (port.device.as_ref()).is_ok_and(|id| INTEL_800_SERIES.contains(id));
    // VMD takes ports of the processor or of the chipset into a domain of its own, where they keep their devices.
    let is_where_they_are = pci.behind.is_some() || (port.bdf.domain, port.bdf.bus) == (0, 0);
    is_800_series || (is_where_they_are && INTEL_CHIPSET_DEVICES.contains(&port.bdf.device))
}

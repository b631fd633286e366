//! Parts of a PCI Express path that show no link.

use super::SeenPath;
use crate::sysfs::pci::{Function, PciPath, PortKind};

const INTEL: u16 = 0x8086;
const AMD: u16 = 0x1022;
/// Makes AMD's designs of family 17h under its own vendor ID.
const HYGON: u16 = 0x1d94;
/// Makers of chipsets whose root ports are all in chipsets: ATI (and AMD after it), SiS, VIA, ServerWorks.
const CHIPSET_MAKERS: [u16; 4] = [0x1002, 0x1039, 0x1106, 0x1166];
/// "Hudson PCI to PCI bridge (PCIE port 0)" and the next three in pci.ids (2026-08).
const AMD_CHIPSET_PORTS: std::ops::RangeInclusive<u16> = 0x43a0..=0x43a3;
/// "Internal PCIe GPP Bridge", "Internal GPP Bridge to Bus" in pci.ids (2026-08), of AMD and of Hygon: what is below
/// them is in the processor, and they show a link of 16 lanes that is none.
const AMD_INTERNAL_BRIDGES: [u16; 20] = [
    0x1110, 0x1111, 0x1112, 0x13e5, 0x13e6, 0x1454, 0x1484, 0x14a7, 0x14b9, 0x14dd, 0x14eb, 0x150c,
    0x1555, 0x15db, 0x15dc, 0x15fd, 0x15fe, 0x162a, 0x1635, 0x1648,
];
/// "FCH SATA Controller" in pci.ids (2026-08): in the processor or in the X570's switch, never in a slot.
const FCH_SATA: std::ops::RangeInclusive<u16> = 0x7900..=0x7904;
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
        self.hide_internal(pci);
    }

    /// Bridges inside a chip whose link is none, whatever speed it shows.
    fn hide_internal(&mut self, pci: &PciPath) {
        for pair in pci.functions.windows(2) {
            let [bridge, below] = pair else { continue };
            let is_internal = has_id(bridge, |id| AMD_INTERNAL_BRIDGES.contains(&id));
            if is_internal || has_id(below, |id| FCH_SATA.contains(&id)) {
                let why = "a bridge inside a chip: the link that it shows is none";
                self.hide(&bridge.bdf.to_string(), why);
            }
        }
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

/// Whether a function is AMD's or Hygon's, with such a device ID.
fn has_id(function: &Function, is_it: impl Fn(u16) -> bool) -> bool {
    let is_theirs = matches!(function.vendor, Ok(AMD | HYGON));
    is_theirs && function.device.as_ref().is_ok_and(|id| is_it(*id))
}

/// Not told apart: ports of NVIDIA's chipsets, and of Intel's northbridges before the processors had ports.
fn is_of_a_chipset(pci: &PciPath, port: &Function) -> bool {
    match port.vendor {
        Ok(INTEL) => is_of_intels_chipset(pci, port),
        Ok(AMD | HYGON) => has_id(port, |id| AMD_CHIPSET_PORTS.contains(&id)),
        Ok(vendor) => CHIPSET_MAKERS.contains(&vendor),
        Err(_) => false,
    }
}

fn is_of_intels_chipset(pci: &PciPath, port: &Function) -> bool {
    let is_800_series = (port.device.as_ref()).is_ok_and(|id| INTEL_800_SERIES.contains(id));
    // VMD takes ports of the processor or of the chipset into a domain of its own, where they keep their devices.
    let is_where_they_are = pci.behind.is_some() || (port.bdf.domain, port.bdf.bus) == (0, 0);
    is_800_series || (is_where_they_are && INTEL_CHIPSET_DEVICES.contains(&port.bdf.device))
}

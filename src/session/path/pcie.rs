//! Hops of PCI Express.

use super::{Carrier, Look, SeenLink, SeenPath, by_one_end, state};
use crate::ceiling::datasheet;
use crate::ceiling::pcie::{PacketSizes, PcieLink};
use crate::record::{Hop, LinkKind, LinkState, PathFindingKind};
use crate::sysfs::absent::{Fact, fault};
use crate::sysfs::pci::{
    Function, Hop as PciHop, LinkState as PciState, PciPath, PciSpeed, PortKind,
};

impl SeenPath {
    /// Adds the links above a function, and what hides others.
    pub(super) fn add_pcie(&mut self, pci: &PciPath, is_device: bool) {
        let functions = &pci.functions;
        self.functions = functions
            .iter()
            .map(|function| (function.bdf.to_string(), function.dir().to_owned()))
            .collect();
        let node = |function: &Function| function.numa_node.as_ref().ok().copied().flatten();
        self.numa_node = functions.last().and_then(node);
        self.hide_pcie(pci);
        let sizes = packet_sizes(functions);
        for hop in pci.hops() {
            let upper = hop
                .upper
                .and_then(|bdf| functions.iter().find(|f| f.bdf == bdf));
            let Some(lower) = functions.iter().find(|f| f.bdf == hop.lower) else {
                continue;
            };
            self.add_hop(pci, &hop, upper, lower, sizes);
        }
        let Some(device) = functions.last() else {
            return;
        };
        let (Ok(vendor), Ok(id)) = (&device.vendor, &device.device) else {
            return;
        };
        if is_device {
            self.own_id = Some((*vendor, *id));
        } else {
            let known = datasheet::controller(*vendor, *id);
            self.controller = known.map(|known| (known, device.bdf));
        }
    }

    fn add_hop(
        &mut self,
        pci: &PciPath,
        hop: &PciHop,
        upper: Option<&Function>,
        lower: &Function,
        sizes: PacketSizes,
    ) {
        let name = hop.upper.unwrap_or(hop.lower).to_string();
        let kind = |function: &Function| {
            let index = pci.functions.iter().position(|f| f.bdf == function.bdf);
            let kind = index.and_then(|index| pci.kind(index));
            kind.map_or("function", PortKind::name)
        };
        let above = upper.map_or("unseen port", kind);
        let ends = [upper, Some(lower)].into_iter().flatten();
        let mps = ends
            .clone()
            .filter_map(|f| f.express.as_ref().ok()?.payload_bytes);
        let device = pci.device().and_then(|device| device.express.as_ref().ok());
        let carrier = carrier(hop, ends.clone(), sizes);
        let record = Hop {
            name: name.clone(),
            to: hop.lower.to_string(),
            kind: LinkKind::Pcie,
            what: format!("{above} to {}", kind(lower)),
            driver: lower.driver.as_ref().map(|driver| driver.name.clone()),
            now: Some(link_state(&hop.speed, &hop.width_count)),
            most: most_state(hop),
            mps_bytes: mps.min(),
            mrrs_bytes: device.and_then(|express| express.read_request_bytes),
            read_ceiling: None,
            write_ceiling: None,
        };
        self.findings_of_hop(&name, hop, upper, lower);
        self.push(
            record,
            SeenLink {
                name,
                carrier,
                look: Look::Pcie {
                    upper: upper.map(|function| function.dir().to_owned()),
                    lower: lower.dir().to_owned(),
                },
            },
        );
    }

    fn findings_of_hop(
        &mut self,
        name: &str,
        hop: &PciHop,
        upper: Option<&Function>,
        lower: &Function,
    ) {
        for (what, why) in [
            (
                "speed",
                hop.speed
                    .as_ref()
                    .err()
                    .map(|e| (e.to_string(), fault(&hop.speed))),
            ),
            (
                "width",
                hop.width_count
                    .as_ref()
                    .err()
                    .map(|e| (e.to_string(), fault(&hop.width_count))),
            ),
        ] {
            let Some((why, fault)) = why else { continue };
            let kind = if fault.is_some() {
                PathFindingKind::Garbled
            } else {
                PathFindingKind::UnknownLink
            };
            let text = format!("its {what} is not known: {why}");
            let next_step =
                "lspci -vv as root may know it (LnkSta); without it there is no ceiling";
            self.find(kind, name, text, next_step);
            self.hide(name, &format!("its {what} is not known"));
        }
        if let (Ok(now), Some(most)) = (&hop.speed, &hop.both_max_speed)
            && now < most
        {
            let text = format!("runs at {now}, both ends can do {most}");
            let next_step = "read it again under load (power saving lowers it on some machines); then reseat the device, change riser or cable, look for errors in AER, and for a limit in firmware setup";
            self.find(PathFindingKind::SpeedDegraded, name, text, next_step);
        }
        if let (Ok(now), Some(most)) = (&hop.width_count, &hop.both_max_width_count)
            && now < most
        {
            let text = format!("trained at x{now}, both ends can do x{most}");
            let next_step = "reseat the device, look at its contacts; the slot may be wired or split (bifurcation) for fewer lanes: see the board's manual and firmware setup";
            self.find(PathFindingKind::WidthDegraded, name, text, next_step);
        }
        let Some(upper) = upper else { return };
        if let (Ok(port), Ok(device)) = (&upper.link.max_speed, &lower.link.max_speed)
            && port < device
        {
            let text = format!("the port can do {port}, what is below it {device}");
            self.find(
                PathFindingKind::SlowerPort,
                name,
                text,
                "move it to a faster slot",
            );
        }
        if let (Ok(port), Ok(device)) = (&upper.link.max_width_count, &lower.link.max_width_count)
            && port < device
        {
            let text = format!("the port has {port} lanes, what is below it {device}");
            self.find(
                PathFindingKind::NarrowerPort,
                name,
                text,
                "move it to a wider slot",
            );
        }
    }
}

/// Payload and request sizes that hold all the way: the smallest payload of all, the device's requests, the
/// root port's completion boundary.
fn packet_sizes(functions: &[Function]) -> PacketSizes {
    let express = |function: &Function| function.express.clone().ok();
    let all: Vec<_> = functions.iter().filter_map(express).collect();
    let whole = all.len() == functions.len();
    let mps = all.iter().filter_map(|express| express.payload_bytes).min();
    let device = functions.last().and_then(express);
    let root = functions.first().and_then(express);
    let boundary = root
        .filter(|express| express.kind == PortKind::RootPort)
        .map(|express| express.completion_boundary_bytes);
    PacketSizes::new(
        mps.filter(|_| whole),
        device.and_then(|express| express.read_request_bytes),
        boundary,
    )
}

fn carrier<'a>(
    hop: &PciHop,
    mut ends: impl Iterator<Item = &'a Function>,
    sizes: PacketSizes,
) -> Option<Carrier> {
    let link = PcieLink {
        mega_transfers_per_s: hop.speed.as_ref().ok()?.mega_transfers_per_s(),
        lanes_count: u32::from(*hop.width_count.as_ref().ok()?),
        is_flit: ends.any(|end| end.express.as_ref().is_ok_and(|express| express.flit)),
    };
    Some(Carrier::Pcie(link, sizes))
}

/// What the ends could do; absent where neither tells.
fn most_state(hop: &PciHop) -> Option<LinkState> {
    let is_known = hop.max_speed.is_ok() || hop.max_width_count.is_ok();
    let most = is_known.then(|| link_state(&hop.max_speed, &hop.max_width_count))?;
    Some(if hop.has_one_ends_word() {
        by_one_end(most)
    } else {
        most
    })
}

fn link_state(speed: &Fact<PciSpeed>, width: &Fact<u8>) -> LinkState {
    let gbit_per_s = |speed: &PciSpeed| f64::from(speed.mega_transfers_per_s()) / 1e3;
    let speed_text = speed
        .as_ref()
        .map_or("unknown speed".to_owned(), ToString::to_string);
    let width_text = width
        .as_ref()
        .map_or("unknown width".to_owned(), |width| format!("x{width}"));
    state(
        format!("{speed_text} {width_text}"),
        speed.as_ref().ok().map(gbit_per_s),
        width.as_ref().ok().map(|width| u32::from(*width)),
    )
}

/// Speed and width as the ends of a link show them now: the lower's word, else the upper's.
pub(super) fn text_now(upper: Option<&std::path::Path>, lower: &std::path::Path) -> String {
    let below = PciState::read(lower);
    let above = upper.map(PciState::read);
    let speed = match (below.speed, &above) {
        (Err(_), Some(above)) => above.speed.clone(),
        (speed, _) => speed,
    };
    let width = match (below.width_count, &above) {
        (Err(_), Some(above)) => above.width_count.clone(),
        (width, _) => width,
    };
    link_state(&speed, &width).text
}

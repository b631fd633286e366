//! Hops of SAS and SATA.

use super::{Carrier, Look, SeenLink, SeenPath, by_one_end, state};
use crate::ceiling::sas as ceiling;
use crate::ceiling::sata::SataLink;
use crate::record::{Hop, LinkKind, LinkState, PathFindingKind};
use crate::sysfs::absent::fault;
use crate::sysfs::ata::AtaLink;
use crate::sysfs::attach::Attachment;
use crate::sysfs::read_text;
use crate::sysfs::sas::{Expander, Phy, SasPort, SasRate, SasWay};

impl SeenPath {
    /// Adds what lies between the controller's PCI function and a disk.
    pub(super) fn add_disk(&mut self, name: &str, found: &Attachment) {
        if let Some(way) = &found.sas {
            self.add_sas(way);
        } else if let Some(link) = &found.ata {
            self.add_ata(name, link);
        }
    }

    fn add_sas(&mut self, way: &SasWay) {
        let is_stp = way.end.is_sata();
        for (index, port) in way.ports.iter().enumerate() {
            let expander = way.expanders.get(index);
            let to = expander
                .map_or(&way.end.name, |expander| &expander.name)
                .clone();
            let above = if index == 0 {
                "HBA port"
            } else {
                "expander port"
            };
            let below = match (expander, is_stp) {
                (Some(_), _) => "expander",
                (None, true) => "SATA drive",
                (None, false) => "SAS drive",
            };
            let rates: Vec<SasRate> = known_rates(&port.phys, |phy| phy.rate.as_ref().ok());
            let slowest = way.ports[index..]
                .iter()
                .flat_map(|port| known_rates(&port.phys, |phy| phy.rate.as_ref().ok()))
                .min();
            let carrier = carrier(&rates, slowest, is_stp).filter(|_| is_whole(port, &rates));
            if carrier.is_none() {
                self.find_unknown_phys(port);
            }
            self.find_slow_phys(port, &rates, expander);
            let hop = Hop {
                name: port.name.clone(),
                to,
                kind: LinkKind::Sas,
                what: format!("{above} to {below}"),
                driver: None,
                now: sas_state(&rates),
                most: sas_most(port, &rates, expander),
                mps_bytes: None,
                mrrs_bytes: None,
                read_ceiling: None,
                write_ceiling: None,
            };
            self.push(
                hop,
                SeenLink {
                    name: port.name.clone(),
                    carrier,
                    look: Look::Sas(port.phys.clone()),
                },
            );
        }
    }

    fn find_unknown_phys(&mut self, port: &SasPort) {
        let unknown = port.phys.iter().find_map(|phy| phy.rate.as_ref().err());
        let why = unknown.map_or("it shows no phys".to_owned(), ToString::to_string);
        let garbled = port.phys.iter().find_map(|phy| fault(&phy.rate));
        let kind = if garbled.is_some() {
            PathFindingKind::Garbled
        } else {
            PathFindingKind::UnknownLink
        };
        let text = format!("the rate of its phys is not known: {why}");
        self.find(kind, &port.name, text, "without it there is no ceiling");
        self.hide(&port.name, "the rate of its phys is not known");
    }

    /// Phys of one port that run at different rates, that a setting holds back, or that lead to an expander which
    /// could do more as well. (What a drive could do nobody tells: a slow one may be made for no more.)
    fn find_slow_phys(&mut self, port: &SasPort, rates: &[SasRate], below: Option<&Expander>) {
        let (Some(least), Some(most)) = (rates.iter().min(), rates.iter().max()) else {
            return;
        };
        if least < most {
            let text = format!("its phys run at {least} to {most}");
            let next_step = "a bad cable or connector slows single phys: change it";
            self.find(PathFindingKind::SpeedDegraded, &port.name, text, next_step);
        }
        let held = port.phys.iter().find_map(|phy| {
            let (set, can) = (
                phy.max_rate.as_ref().ok()?,
                phy.hardware_max_rate.as_ref().ok()?,
            );
            (set < can).then_some((phy, set, can))
        });
        if let Some((phy, set, can)) = held {
            let text = format!("{} is set to {set} at most and could do {can}", phy.name);
            let next_step = "raise it in the HBA's setup, or in sysfs: maximum_linkrate of the phy";
            self.find(PathFindingKind::SpeedDegraded, &port.name, text, next_step);
        }
        let own = |phy: &Phy| phy.max_rate.as_ref().ok().copied();
        let own: Option<Vec<SasRate>> = port.phys.iter().map(own).collect();
        let ends = (own.and_then(|own| own.into_iter().min()))
            .zip(below.and_then(|expander| expander.max_rate));
        if let Some(both) = ends.map(|(port, expander)| port.min(expander))
            && *most < both
        {
            let text = format!("runs at {most}, both ends can do {both}");
            let next_step = "change the cable, look at the phys' error counters, and for a limit in the setup of HBA and expander";
            self.find(PathFindingKind::SpeedDegraded, &port.name, text, next_step);
        }
    }

    fn add_ata(&mut self, name: &str, link: &AtaLink) {
        let rate = link.rate.as_ref().ok().copied();
        let (port, drive) = (link.port_max.as_ref().ok(), link.drive_max.as_ref().ok());
        let both = link.most_of_both();
        let most = match (both, link.most_of_either()) {
            (Some(both), _) => Some(sata_state(both)),
            (None, one) => one.map(|one| by_one_end(sata_state(one))),
        };
        match (rate, both) {
            (None, _) => {
                let why = link.rate.as_ref().err().map(ToString::to_string);
                let text = format!("its speed is not known: {}", why.unwrap_or_default());
                let kind = if fault(&link.rate).is_some() {
                    PathFindingKind::Garbled
                } else {
                    PathFindingKind::UnknownLink
                };
                self.find(kind, &link.port, text, "without it there is no ceiling");
                self.hide(&link.port, "its speed is not known");
            }
            (Some(now), Some(most)) if now < most => {
                let slowed = link.slowed_count.as_ref().ok().filter(|count| **count > 0);
                let slowed = slowed.map_or(String::new(), |count| {
                    format!("; the kernel lowered it {count} times after errors")
                });
                let text = format!("runs at {now}, both ends can do {most}{slowed}");
                let next_step = "change the cable, look for errors in the kernel's log, and for a limit in firmware setup";
                self.find(PathFindingKind::SpeedDegraded, &link.port, text, next_step);
            }
            _ => {}
        }
        if let (Some(port), Some(drive)) = (port, drive)
            && port < drive
        {
            let text = format!("the port can do {port}, the drive {drive}");
            self.find(
                PathFindingKind::SlowerPort,
                &link.port,
                text,
                "move it to a faster port",
            );
        }
        let hop = Hop {
            name: link.port.clone(),
            to: name.to_owned(),
            kind: LinkKind::Sata,
            what: "SATA port to drive".to_owned(),
            driver: None,
            now: rate.map(sata_state),
            most,
            mps_bytes: None,
            mrrs_bytes: None,
            read_ceiling: None,
            write_ceiling: None,
        };
        let carrier = rate.map(|rate| {
            Carrier::Sata(SataLink {
                gbit_per_s: gbit_per_s(rate),
            })
        });
        self.push(
            hop,
            SeenLink {
                name: link.port.clone(),
                carrier,
                look: Look::Ata(Box::new(link.clone())),
            },
        );
    }
}

fn known_rates<'a>(phys: &'a [Phy], rate: impl Fn(&'a Phy) -> Option<&'a SasRate>) -> Vec<SasRate> {
    phys.iter().filter_map(|phy| rate(phy).copied()).collect()
}

/// Whether every phy that the kernel counts has a rate.
fn is_whole(port: &SasPort, rates: &[SasRate]) -> bool {
    let counted = port
        .phys_count
        .as_ref()
        .map_or(port.phys.len() as u64, |count| *count);
    !rates.is_empty() && rates.len() as u64 == counted
}

/// All phys together, each at its own rate.
fn carrier(rates: &[SasRate], slowest: Option<SasRate>, is_stp: bool) -> Option<Carrier> {
    let least = *rates.iter().min()?;
    let all: Vec<f64> = rates.iter().map(|rate| gbit_per_s(*rate)).collect();
    Some(Carrier::Sas {
        port: ceiling::SasPort::of(&all),
        slowest_gbit_per_s: gbit_per_s(slowest.unwrap_or(least)),
        is_stp,
    })
}

fn gbit_per_s(rate: SasRate) -> f64 {
    f64::from(rate.megabits_per_s()) / 1e3
}

fn sas_state(rates: &[SasRate]) -> Option<LinkState> {
    let (least, most) = (rates.iter().min()?, rates.iter().max()?);
    let count = u32::try_from(rates.len()).unwrap_or(u32::MAX);
    let text = if least == most {
        format!("{least} x{count}")
    } else {
        format!("{least} to {most} x{count}")
    };
    Some(state(text, Some(gbit_per_s(*least)), Some(count)))
}

/// The most of the port's phys, and of the expander below; without its word, or below a drive's port, of one end.
fn sas_most(port: &SasPort, rates: &[SasRate], below: Option<&Expander>) -> Option<LinkState> {
    let own = known_rates(&port.phys, |phy| phy.max_rate.as_ref().ok());
    if let Some(expander) = below.and_then(|expander| expander.max_rate) {
        let both: Vec<SasRate> = own.into_iter().map(|rate| rate.min(expander)).collect();
        return sas_state(&both);
    }
    let most = sas_state(&own)?;
    let runs_at_it = rates.iter().min() >= own.iter().min();
    Some(if runs_at_it { most } else { by_one_end(most) })
}

fn sata_state(rate: SasRate) -> LinkState {
    state(rate.to_string(), Some(gbit_per_s(rate)), Some(1))
}

/// Rates of a port's phys now, as [`sas_state`] writes them.
pub(super) fn phys_now(phys: &[Phy]) -> String {
    let now = |phy: &Phy| SasRate::parse(&read_text(&phy.dir().join("negotiated_linkrate")).ok()?);
    let rates: Vec<SasRate> = phys.iter().filter_map(now).collect();
    sas_state(&rates).map_or_else(|| "no rate".to_owned(), |state| state.text)
}

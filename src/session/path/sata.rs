//! Hops of SATA, with and without a port multiplier.

use super::disk::gbit_per_s;
use super::{Carrier, Look, SeenLink, SeenPath, by_one_end, state};
use crate::ceiling::sata::SataLink;
use crate::record::{Hop, LinkKind, LinkState, PathFindingKind};
use crate::sysfs::absent::{Fact, fault};
use crate::sysfs::ata::{AtaLink, SharedLink};
use crate::sysfs::sas::SasRate;

impl SeenPath {
    /// The link to a SATA drive, below the one to its port multiplier where there is one.
    pub(super) fn add_ata(&mut self, name: &str, link: &AtaLink) {
        if let Some(shared) = &link.shared {
            self.add_shared(&link.port, shared);
        }
        let rate = link.rate.as_ref().ok().copied();
        let (port, drive) = (link.port_max.as_ref().ok(), link.drive_max.as_ref().ok());
        let both = link.most_of_both();
        let most = match (both, link.most_of_either()) {
            (Some(both), _) => Some(sata_state(both)),
            (None, one) => one.map(|one| by_one_end(sata_state(one))),
        };
        self.find_unknown(&link.name, &link.rate);
        if let (Some(now), Some(most)) = (rate, both)
            && now < most
        {
            let slowed = link.slowed_count.as_ref().ok().filter(|count| **count > 0);
            let slowed = slowed.map_or(String::new(), |count| {
                format!("; the kernel lowered it {count} times after errors")
            });
            let text = format!("runs at {now}, both ends can do {most}{slowed}");
            let next_step = "change the cable, look for errors in the kernel's log, and for a limit in firmware setup";
            self.find(PathFindingKind::SpeedDegraded, &link.name, text, next_step);
        }
        if let (Some(port), Some(drive)) = (port, drive)
            && port < drive
        {
            let text = format!("the port can do {port}, the drive {drive}");
            self.find(
                PathFindingKind::SlowerPort,
                &link.name,
                text,
                "move it to a faster port",
            );
        }
        let what = if link.shared.is_some() {
            "multiplier port to drive"
        } else {
            "SATA port to drive"
        };
        let look = Look::Ata(Box::new(link.clone()));
        self.push_sata((&link.name, name, what), rate, most, look);
    }

    /// The link that all drives behind a port multiplier share.
    fn add_shared(&mut self, name: &str, link: &SharedLink) {
        let rate = link.rate.as_ref().ok().copied();
        self.find_unknown(name, &link.rate);
        // What the multiplier could do nobody tells; where the link runs at the port's most, as much.
        let most = link.port_max.as_ref().ok().map(|most| {
            let most_state = sata_state(*most);
            if rate.is_some_and(|rate| rate >= *most) {
                most_state
            } else {
                by_one_end(most_state)
            }
        });
        let what = (name, "port multiplier", "SATA port to port multiplier");
        self.push_sata(what, rate, most, Look::AtaShared(link.clone()));
    }

    fn find_unknown(&mut self, name: &str, rate: &Fact<SasRate>) {
        let Err(why) = rate else { return };
        let text = format!("its speed is not known: {why}");
        let kind = if fault(rate).is_some() {
            PathFindingKind::Garbled
        } else {
            PathFindingKind::UnknownLink
        };
        self.find(kind, name, text, "without it there is no ceiling");
        self.hide(name, "its speed is not known");
    }

    fn push_sata(
        &mut self,
        (name, to, what): (&str, &str, &str),
        rate: Option<SasRate>,
        most: Option<LinkState>,
        look: Look,
    ) {
        let hop = Hop {
            name: name.to_owned(),
            to: to.to_owned(),
            kind: LinkKind::Sata,
            what: what.to_owned(),
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
                name: name.to_owned(),
                carrier,
                look,
            },
        );
    }
}

fn sata_state(rate: SasRate) -> LinkState {
    state(rate.to_string(), Some(gbit_per_s(rate)), Some(1))
}

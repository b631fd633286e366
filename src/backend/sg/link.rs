//! What a SATA drive counts of errors on its link, asked by way of its sg node.

use super::ask::{Asker, NoAnswer};
use crate::proto::ata::{self, BadPage, Keeps};
use crate::proto::scsi::Cdb;
use crate::sys::sg::{CommandFile, CommandNode, SgNode};
use crate::sysfs::{Sysfs, scsi};
use std::path::Path;

/// The log of phy event counters (Serial ATA 3.x).
const PHY_EVENTS_LOG: u8 = 0x11;

/// Why there are no counters.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoCounters {
    /// The drive keeps none.
    #[error("the drive keeps none that are known (no phy event counters, SMART off or absent)")]
    NotKept,
    /// There is no way to ask.
    #[error("{0}")]
    NoNode(String),
    /// It was asked and did not answer.
    #[error("{0}")]
    NoAnswer(String),
}

impl From<NoAnswer> for NoCounters {
    fn from(error: NoAnswer) -> Self {
        Self::NoAnswer(error.to_string())
    }
}

impl From<BadPage> for NoCounters {
    fn from(error: BadPage) -> Self {
        Self::NoAnswer(error.to_string())
    }
}

/// The error counters of the link of a SATA drive, with their names, by the folder of its SCSI device. Which it keeps
/// the drive itself is asked where that is not known: behind a SAS HBA the kernel does not show it.
///
/// # Errors
/// [`NoCounters`] with the reason.
pub fn ata_link_errors(
    sysfs: &Sysfs,
    device_dir: &Path,
    keeps: Option<Keeps>,
) -> Result<Vec<(&'static str, u64)>, NoCounters> {
    if keeps.is_some_and(|keeps| !keeps.events && !keeps.smart) {
        return Err(NoCounters::NotKept);
    }
    let node = scsi::generic_node(device_dir)
        .map_err(|error| NoCounters::NoNode(error.to_string()))?
        .ok_or_else(|| NoCounters::NoNode("no sg node to ask by (modprobe sg)".to_owned()))?;
    let node = SgNode::at(&sysfs.dev(node.0));
    let file = node.open(0).map_err(|errno| {
        let path = node.path().display();
        let hint = match errno.0 {
            libc::EACCES | libc::EPERM => ": root may ask",
            _ => "",
        };
        NoCounters::NoNode(format!("{path}: {errno}{hint}"))
    })?;
    asked(sysfs, file, keeps)
}

/// Asks for both; one that fails does not hide the other.
fn asked<F: CommandFile>(
    sysfs: &Sysfs,
    file: F,
    keeps: Option<Keeps>,
) -> Result<Vec<(&'static str, u64)>, NoCounters> {
    let mut asker =
        Asker::new(sysfs, file).map_err(|errno| NoCounters::NoNode(errno.to_string()))?;
    let mut sector =
        |cdb: Cdb| -> Result<Vec<u8>, NoCounters> { Ok(asker.ask(cdb, ata::PAGE_BYTES as u32)?) };
    let keeps = match keeps {
        Some(keeps) => keeps,
        None => Keeps::of(&ata::identify_words(&sector(Cdb::ata_identify())?)?),
    };
    let mut found = Vec::new();
    let mut failed = None;
    if keeps.events {
        let page = sector(Cdb::ata_log(PHY_EVENTS_LOG));
        match page.and_then(|page| Ok(ata::phy_events(&page)?)) {
            Ok(events) => found.extend(events),
            Err(error) => failed = Some(error),
        }
    }
    if keeps.smart {
        let page = sector(Cdb::ata_smart_data());
        match page.and_then(|page| Ok(ata::crc_errors(&page)?)) {
            Ok(count) => found.push(("udma crc errors", count)),
            Err(error) => failed = Some(error),
        }
    }
    match failed {
        Some(error) if found.is_empty() => Err(error),
        _ if found.is_empty() => Err(NoCounters::NotKept),
        _ => Ok(found),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::fake::FakeNode;
    use super::*;

    const SMART: u8 = 0xb0;
    const LOG: u8 = 0x2f;

    /// A sector whose bytes add up to 0.
    fn sector(parts: &[u8]) -> Vec<u8> {
        let mut page = parts.to_vec();
        page.resize(ata::PAGE_BYTES, 0);
        let sum = page.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
        *page.last_mut().unwrap() = sum.wrapping_neg();
        page
    }

    fn smart(count: u8) -> Vec<u8> {
        sector(&[0x10, 0, 199, 0x3e, 0, 200, 200, count, 0, 0, 0, 0, 0, 0])
    }

    fn events(count: u8) -> Vec<u8> {
        sector(&[0, 0, 0, 0, 0x01, 0x10, count, 0])
    }

    fn ask(
        node: &FakeNode,
        events: bool,
        smart: bool,
    ) -> Result<Vec<(&'static str, u64)>, NoCounters> {
        asked(
            &Sysfs::host(),
            node.open(0).unwrap(),
            Some(Keeps { events, smart }),
        )
    }

    #[test]
    fn both_are_asked_by_the_commands_that_only_read() {
        let node = FakeNode::new(512, 8);
        node.disk().ata = [(SMART, smart(3)), (LOG, events(9))].into();
        let found = ask(&node, true, true).unwrap();
        assert_eq!(
            found,
            [
                ("commands failed by interface CRC", 9),
                ("udma crc errors", 3)
            ]
        );
        let codes: Vec<(u8, u8)> = node
            .disk()
            .sent
            .iter()
            .map(|cdb| (cdb[0], cdb[14]))
            .collect();
        assert_eq!(codes, [(0x85, LOG), (0x85, SMART)]);
        // What the drive does not keep is not asked for.
        node.disk().sent.clear();
        assert_eq!(ask(&node, false, true).unwrap(), [("udma crc errors", 3)]);
        assert_eq!(node.disk().sent.len(), 1);
    }

    /// Behind a SAS HBA: the drive says what it keeps, and nothing else is asked for.
    #[test]
    fn a_drive_that_is_not_known_is_asked_what_it_keeps() {
        const IDENTIFY: u8 = 0xec;
        let node = FakeNode::new(512, 8);
        let ask = || asked(&Sysfs::host(), node.open(0).unwrap(), None);
        let mut words = vec![0_u16; 256];
        words[76] = 1 << 10;
        let page = |words: &[u16]| words.iter().flat_map(|word| word.to_le_bytes()).collect();
        node.disk().ata = [(LOG, events(9)), (IDENTIFY, page(&words))].into();
        let wanted = [("commands failed by interface CRC", 9)];
        assert_eq!(ask().unwrap(), wanted);
        let codes: Vec<u8> = node.disk().sent.iter().map(|cdb| cdb[14]).collect();
        assert_eq!(codes, [IDENTIFY, LOG]);
        words[76] = 0;
        node.disk().ata.insert(IDENTIFY, page(&words));
        assert_eq!(ask(), Err(NoCounters::NotKept));
        // An HBA that does not pass ATA commands on.
        node.disk().ata.clear();
        assert!(matches!(ask(), Err(NoCounters::NoAnswer(_))));
    }

    #[test]
    fn one_that_fails_hides_nothing_and_none_has_a_reason() {
        let node = FakeNode::new(512, 8);
        node.disk().ata = [(SMART, smart(3))].into();
        assert_eq!(ask(&node, true, true).unwrap(), [("udma crc errors", 3)]);
        node.disk().ata = [(SMART, sector(&[0x10]))].into();
        assert!(matches!(
            ask(&node, false, true),
            Err(NoCounters::NoAnswer(_))
        ));
        node.disk().ata.clear();
        assert!(matches!(
            ask(&node, true, true),
            Err(NoCounters::NoAnswer(_))
        ));
        let nowhere = std::path::Path::new("no/such/device");
        let none = Keeps {
            events: false,
            smart: false,
        };
        let host = Sysfs::host();
        assert_eq!(
            ata_link_errors(&host, nowhere, Some(none)),
            Err(NoCounters::NotKept)
        );
        let smart = Keeps {
            smart: true,
            ..none
        };
        let asked = ata_link_errors(&host, nowhere, Some(smart));
        assert!(matches!(asked, Err(NoCounters::NoNode(_))), "{asked:?}");
    }
}

//! The log pages of a SCSI device: temperature, informational exceptions, error counters.

use super::ask::{Asker, NoAnswer};
use crate::backend::health::{Pages, of_pages};
use crate::proto::scsi::{Cdb, ErrorCounters, Exceptions, LogPage, Temperature, page};
use crate::record::Health;
use crate::sys::sg::{CommandFile, CommandNode, SgNode};
use crate::sysfs::Sysfs;
use std::path::Path;

const PAGE_BYTES: u16 = 252;

/// Asks the device behind an sg node. Reading its logs changes nothing in it.
///
/// # Errors
/// Why it does not tell, in words.
pub(in crate::backend) fn of_node(sysfs: &Sysfs, path: &Path) -> Result<Health, String> {
    let node = SgNode::at(path);
    ask(sysfs, &node, &path.display().to_string())
}

/// The same for any node; `name` is what the device is called.
pub(super) fn ask<N: CommandNode>(sysfs: &Sysfs, node: &N, name: &str) -> Result<Health, String> {
    let opened = |errno| format!("its sg node cannot be opened: {errno}");
    let asker = Asker::new(sysfs, node.open(0).map_err(opened)?).map_err(opened)?;
    let pages = asker
        .pages()
        .map_err(|error| format!("LOG SENSE failed: {error}"))?;
    if pages.is_empty() {
        return Err("it has no log page of temperature, exceptions or errors".to_owned());
    }
    Ok(of_pages(&pages, format!("SCSI log pages of {name}")))
}

impl<F: CommandFile> Asker<F> {
    /// Those of the pages that the device says it has; one that is garbled is left out.
    fn pages(mut self) -> Result<Pages, NoAnswer> {
        let listed = self.log(page::SUPPORTED)?;
        // After the header of 4 bytes: one code a byte (SPC-5, "Supported Log Pages log page").
        let listed = match listed.split_first_chunk() {
            Some(([0, _, high, low], codes)) => {
                let told = usize::from(u16::from_be_bytes([*high, *low]));
                codes[..told.min(codes.len())].to_vec()
            }
            _ => Vec::new(),
        };
        let mut read = |code: u8| match listed.contains(&code) {
            true => self.log(code).ok(),
            false => None,
        };
        let temperature = read(page::TEMPERATURE);
        let exceptions = read(page::EXCEPTIONS);
        let (reads, writes) = (read(page::READ_ERRORS), read(page::WRITE_ERRORS));
        Ok(Pages {
            temperature: temperature.and_then(|data| Temperature::decode(&data).ok()),
            exceptions: exceptions.and_then(|data| Exceptions::decode(&data).ok().flatten()),
            reads: reads.and_then(|data| counters(&data, page::READ_ERRORS)),
            writes: writes.and_then(|data| counters(&data, page::WRITE_ERRORS)),
        })
    }

    fn log(&mut self, code: u8) -> Result<Vec<u8>, NoAnswer> {
        self.ask(Cdb::log_sense(code, PAGE_BYTES), PAGE_BYTES.into())
    }
}

/// The counters of this page and of no other: those of writes look the same.
fn counters(data: &[u8], code: u8) -> Option<ErrorCounters> {
    LogPage::decode(data)
        .ok()
        .filter(|page| page.code == code)?;
    ErrorCounters::decode(data).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::fake::FakeNode;
    use super::*;
    use crate::record::AlarmKind;

    #[test]
    fn pages_that_the_device_has_are_read_and_garbled_ones_left_out() {
        let node = FakeNode::new(512, 64);
        let found = ask(&Sysfs::host(), &node, "here").unwrap();
        assert_eq!(found.source, "SCSI log pages of here");
        assert_eq!(
            (found.temperature_celsius, found.limit_celsius),
            (Some(38.0), Some(65.0))
        );
        let reads = (found.read_corrected_count, found.read_uncorrected_count);
        assert_eq!(reads, (Some(300), Some(2)));
        assert_eq!(
            found.write_uncorrected_count, None,
            "a page of another code"
        );
        assert_eq!(found.alarms[0].kind, AlarmKind::Wear);
        assert_eq!((found.used_pct, found.media_errors_count), (None, None));
        // Nothing but questions went to the device.
        assert!(node.disk().sent.iter().all(|cdb| cdb[0] == 0x4d));
    }

    #[test]
    fn a_page_that_is_not_listed_is_not_asked_for() {
        let node = FakeNode::new(512, 64);
        node.disk().logs = [0x00, 0x2f, 0x2f, 0x2f, 0x2f];
        let found = ask(&Sysfs::host(), &node, "here").unwrap();
        assert_eq!(
            found.temperature_celsius,
            Some(39.0),
            "of the exceptions page"
        );
        assert_eq!(
            (found.limit_celsius, found.read_corrected_count),
            (None, None)
        );
        assert_eq!(node.disk().sent.len(), 2);
    }

    #[test]
    fn a_device_without_log_pages_says_so() {
        let node = FakeNode::new(512, 64);
        node.disk().is_modern = false;
        let why = ask(&Sysfs::host(), &node, "here").unwrap_err();
        assert!(why.starts_with("LOG SENSE failed: "), "{why}");
        node.disk().is_modern = true;
        node.disk().logs = [0; 5];
        let why = ask(&Sysfs::host(), &node, "here").unwrap_err();
        assert!(why.contains("no log page"), "{why}");
    }
}

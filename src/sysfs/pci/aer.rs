//! Counters of Advanced Error Reporting (Linux `Documentation/ABI/testing/sysfs-bus-pci-devices-aer`).

use crate::sysfs::absent::{Absent, Fact};
use crate::sysfs::{SysfsError, read_text};
use std::path::Path;

/// One class of errors: each counter by the kernel's name for it, the total apart.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AerClass {
    /// Counters: `RxErr`, `BadTLP`, `Timeout`, in the kernel's order.
    pub counters: Vec<(String, u64)>,
    /// Sum of all.
    pub total_count: u64,
}

/// The counters of one function since it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Aer {
    /// Errors that the link corrected: each cost a replay, and some latency.
    pub correctable: Fact<AerClass>,
    /// Errors that cost a transaction.
    pub nonfatal: Fact<AerClass>,
    /// Errors that cost the link.
    pub fatal: Fact<AerClass>,
}

impl Aer {
    /// Reads the three files of a function's folder; absent without AER, or where firmware keeps it to itself.
    #[must_use]
    pub fn read(dir: &Path) -> Self {
        Self {
            correctable: class(&dir.join("aer_dev_correctable")),
            nonfatal: class(&dir.join("aer_dev_nonfatal")),
            fatal: class(&dir.join("aer_dev_fatal")),
        }
    }

    /// The three totals together; `None` where no class is known.
    #[must_use]
    pub fn total_count(&self) -> Option<u64> {
        let classes = [&self.correctable, &self.nonfatal, &self.fatal];
        let known = classes.into_iter().filter_map(|class| class.as_ref().ok());
        known
            .map(|class| class.total_count)
            .reduce(u64::saturating_add)
    }

    /// What was counted since `earlier`, by class and name: `correctable BadTLP`; a class of which nothing grew by
    /// its own name. A class that can be read only now counts from 0: some kernels show it with its first error.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Vec<(String, Growth)> {
        let mut grown = Vec::new();
        for ((class, now), (_, before)) in self.classes().into_iter().zip(earlier.classes()) {
            match (now, before) {
                (Ok(now), Ok(before)) => grown.extend(now.since(class, before)),
                (Ok(now), Err(_)) => grown.extend(now.since(class, &AerClass::default())),
                (Err(_), Ok(_)) => grown.push((class.to_owned(), Growth::Unread)),
                (Err(_), Err(_)) => {}
            }
        }
        grown
    }

    fn classes(&self) -> [(&'static str, &Fact<AerClass>); 3] {
        [
            ("correctable", &self.correctable),
            ("nonfatal", &self.nonfatal),
            ("fatal", &self.fatal),
        ]
    }
}

/// What became of a counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Growth {
    /// It grew by this; 0: it did not.
    By(u64),
    /// It is less than it was: it was reset, or wrapped.
    Backwards,
    /// It could be read then and not now.
    Unread,
}

impl AerClass {
    fn since(&self, class: &str, before: &Self) -> Vec<(String, Growth)> {
        let then = |name: &str| {
            let known = before.counters.iter().find(|(other, _)| other == name);
            known.map_or(0, |(_, count)| *count)
        };
        let whole = |growth| vec![(class.to_owned(), growth)];
        let is_less = |(name, count): &(String, u64)| *count < then(name);
        let Some(total_count) = self.total_count.checked_sub(before.total_count) else {
            return whole(Growth::Backwards);
        };
        if self.counters.iter().any(is_less) {
            return whole(Growth::Backwards);
        }
        let added = self
            .counters
            .iter()
            .map(|(name, count)| (name, count - then(name)));
        let named: Vec<(String, Growth)> = added
            .filter(|(_, added)| *added > 0)
            .map(|(name, added)| (format!("{class} {name}"), Growth::By(added)))
            .collect();
        if named.is_empty() {
            return whole(Growth::By(total_count));
        }
        named
    }
}

fn class(path: &Path) -> Fact<AerClass> {
    let text = read_text(path)?;
    parse(&text).ok_or_else(|| {
        let wanted = "a list of error names with their counts";
        Absent::from(SysfsError::garbled(path, &text, wanted))
    })
}

/// `Bad TLP 0` to Linux 5.7, `BadTLP 0` since: the count is the last word, the name all before it.
fn parse(text: &str) -> Option<AerClass> {
    let (mut counters, mut total) = (Vec::new(), None);
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (name, count) = line.rsplit_once(char::is_whitespace)?;
        if !count.chars().all(|c| c.is_ascii_digit()) {
            return None;
        }
        let count = count.parse().ok()?;
        if name.starts_with("TOTAL_ERR_") {
            total = Some(count);
        } else {
            counters.push((name.trim().to_owned(), count));
        }
    }
    if counters.is_empty() {
        return None;
    }
    let sum = || {
        counters
            .iter()
            .fold(0, |sum: u64, (_, count)| sum.saturating_add(*count))
    };
    Some(AerClass {
        total_count: total.unwrap_or_else(sum),
        counters,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn read(correctable: &str) -> Aer {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("aer_dev_correctable"), correctable).unwrap();
        std::fs::write(
            folder.path().join("aer_dev_fatal"),
            "DLP 0\nTOTAL_ERR_FATAL 0\n",
        )
        .unwrap();
        Aer::read(folder.path())
    }

    #[test]
    fn both_spellings_are_read_and_what_grew_is_named() {
        let old = read("Receiver Error 2\nBad TLP 1\nTOTAL_ERR_COR 3\n");
        assert_eq!(
            old.correctable.as_ref().unwrap().counters[0],
            ("Receiver Error".to_owned(), 2)
        );
        assert_eq!(old.total_count(), Some(3));
        assert!(matches!(old.nonfatal, Err(Absent::NotShown { .. })));
        let now = read("Receiver Error 2\nBad TLP 7\nTOTAL_ERR_COR 9\n");
        let word = |name: &str, growth| (name.to_owned(), growth);
        let quiet = word("fatal", Growth::By(0));
        assert_eq!(
            now.since(&old),
            [word("correctable Bad TLP", Growth::By(6)), quiet.clone()]
        );
        assert_eq!(
            old.since(&old),
            [word("correctable", Growth::By(0)), quiet.clone()]
        );
        assert_eq!(
            old.since(&now),
            [word("correctable", Growth::Backwards), quiet.clone()]
        );
        // One that was reset while another grew, so that their sum did not shrink.
        let mixed = read("Receiver Error 9\nBad TLP 0\nTOTAL_ERR_COR 9\n");
        assert_eq!(mixed.since(&old)[0], word("correctable", Growth::Backwards));
        let gone = Aer::read(Path::new("nowhere"));
        assert_eq!(
            gone.since(&old),
            [
                word("correctable", Growth::Unread),
                word("fatal", Growth::Unread)
            ]
        );
        assert_eq!(
            old.since(&gone),
            [
                word("correctable Receiver Error", Growth::By(2)),
                word("correctable Bad TLP", Growth::By(1)),
                quiet
            ]
        );
        let new = read("RxErr 4\nBadTLP 0\n");
        assert_eq!(new.total_count(), Some(4), "no total: the sum");
    }

    #[test]
    fn garbled_counters_are_no_zeros() {
        for text in [
            "",
            "RxErr",
            "RxErr many\n",
            "RxErr -1\n",
            "RxErr 99999999999999999999\n",
        ] {
            let aer = read(text);
            assert!(
                matches!(
                    aer.correctable,
                    Err(Absent::Unreadable(SysfsError::Garbled { .. }))
                ),
                "{text:?}"
            );
        }
    }
}

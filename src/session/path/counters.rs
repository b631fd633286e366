//! Error counters of a path at one moment, and what became of them since.

use super::{Look, SeenPath};
use crate::backend::sg::ata_link_errors;
use crate::proto::ata::Keeps;
use crate::record::{CounterDelta, CounterTotal, Unseen};
use crate::sysfs::Sysfs;
use crate::sysfs::pci::{Aer, Growth};

/// What a drive has counted, by name, or why that is not known.
type Own = Result<Vec<(&'static str, u64)>, String>;
/// Asks the drive on a link what it has counted; nothing where there is none that counts.
pub(super) type Ask = fn(&Sysfs, &Look) -> Option<Own>;

/// All counters of a path at one moment, and those that could not be read.
#[derive(Debug, Default)]
pub(super) struct Counts {
    read: Vec<CounterTotal>,
    /// Of the PCI functions, by address.
    aer: Vec<(String, Aer)>,
    pub(super) unseen: Vec<Unseen>,
}

impl Counts {
    /// What the kernel has counted, and what the drives say when they are asked.
    pub(super) fn all(ask: Ask, sysfs: &Sysfs, path: &SeenPath) -> Self {
        let mut all = Self::kernels(path);
        for link in &path.links {
            if let Some(told) = ask(sysfs, &link.look) {
                all.add_drives_own(&link.name, told);
            }
        }
        all
    }

    /// What the kernel has counted, which no device is asked for.
    pub(super) fn kernels(path: &SeenPath) -> Self {
        let mut all = Self::default();
        for (name, dir) in &path.functions {
            all.aer.push((name.clone(), Aer::read(dir)));
        }
        for link in &path.links {
            match &link.look {
                Look::Pcie { .. } | Look::AtaShared(_) | Look::Fixed => {}
                Look::Sas(phys, _) => {
                    for phy in phys {
                        let errors = phy.errors();
                        for (name, count) in [
                            ("invalid dwords", &errors.invalid_dword_count),
                            ("running disparity errors", &errors.running_disparity_count),
                            ("losses of sync", &errors.loss_of_sync_count),
                            ("reset problems", &errors.reset_problem_count),
                        ] {
                            all.add(&phy.name, name, count.as_ref().ok().copied());
                        }
                    }
                }
                Look::Ata(link) => {
                    let (slowed, errors) = link.errors_now();
                    all.add(&link.name, "times slowed after errors", slowed.ok());
                    all.add(&link.name, "recent errors", errors.ok());
                }
            }
        }
        all
    }

    fn add(&mut self, at: &str, counter: &str, count: Option<u64>) {
        if let Some(total_count) = count {
            self.read.push(total(at, counter, total_count));
        }
    }

    /// What the drive itself has counted.
    fn add_drives_own(&mut self, at: &str, told: Own) {
        match told {
            Ok(found) => {
                for (name, count) in found {
                    self.add(at, name, Some(count));
                }
            }
            Err(why) => self.unseen.push(Unseen {
                name: format!("the drive's link error counters at {at}"),
                why,
                is_invented: false,
            }),
        }
    }

    /// What each stands at.
    pub(super) fn totals(&self) -> Vec<CounterTotal> {
        let of_function = |(at, aer): &(String, Aer)| -> Vec<CounterTotal> {
            let totals = aer.totals().into_iter();
            totals
                .map(|(name, count)| total(at, &format!("aer {name}"), count))
                .collect()
        };
        let mut all: Vec<CounterTotal> = self.aer.iter().flat_map(of_function).collect();
        all.extend(self.read.iter().cloned());
        all
    }

    /// What became of each since then.
    pub(super) fn since(&self, before: &Self) -> Vec<CounterDelta> {
        let mut grown = Vec::new();
        for (at, now) in &self.aer {
            let Some((_, then)) = before.aer.iter().find(|(other, _)| other == at) else {
                continue;
            };
            for (name, growth) in now.since(then) {
                grown.push(delta(at, &format!("aer {name}"), growth));
            }
        }
        for then in &before.read {
            let mut same = (self.read.iter())
                .filter(|now| (&now.at, &now.counter) == (&then.at, &then.counter));
            let growth = same.next().map_or(Growth::Unread, |now| {
                let added = now.total_count.checked_sub(then.total_count);
                added.map_or(Growth::Backwards, Growth::By)
            });
            grown.push(delta(&then.at, &then.counter, growth));
        }
        grown
    }
}

/// Asks a SATA drive. What it keeps the kernel shows for those on ATA ports; others say it themselves.
pub(super) fn drives_own(sysfs: &Sysfs, look: &Look) -> Option<Own> {
    let (drive, keeps) = match look {
        Look::Ata(link) => match link.identify_words() {
            Ok(words) => (&link.scsi_dir, Some(Keeps::of(&words))),
            Err(why) => return Some(Err(why.to_string())),
        },
        Look::Sas(_, Some(drive)) => (drive, None),
        Look::Sas(_, None) | Look::AtaShared(_) | Look::Pcie { .. } | Look::Fixed => return None,
    };
    Some(ata_link_errors(sysfs, drive, keeps).map_err(|error| error.to_string()))
}

fn total(at: &str, counter: &str, total_count: u64) -> CounterTotal {
    CounterTotal {
        at: at.to_owned(),
        counter: counter.to_owned(),
        total_count,
    }
}

fn delta(at: &str, counter: &str, growth: Growth) -> CounterDelta {
    CounterDelta {
        at: at.to_owned(),
        counter: counter.to_owned(),
        grown_count: match growth {
            Growth::By(count) => Some(count),
            Growth::Backwards | Growth::Unread => None,
        },
        is_unread: growth == Growth::Unread,
    }
}

//! Error counters of a path at one moment, and what became of them since.

use super::{Look, SeenPath};
use crate::backend::sg::ata_link_errors;
use crate::proto::ata::Keeps;
use crate::record::{CounterDelta, Unseen};
use crate::sysfs::Sysfs;
use crate::sysfs::ata::AtaLink;
use crate::sysfs::pci::{Aer, Growth};

/// Asks the drive on a link what it has counted: names and counts, or why not.
pub(super) type Ask = fn(&Sysfs, &AtaLink) -> Result<Vec<(&'static str, u64)>, String>;

/// A counter at one moment.
#[derive(Debug)]
struct Count {
    at: String,
    counter: String,
    count: u64,
}

/// All counters of a path at one moment, and those that could not be read.
#[derive(Debug, Default)]
pub(super) struct Counts {
    read: Vec<Count>,
    /// Of the PCI functions, by address.
    aer: Vec<(String, Aer)>,
    pub(super) unseen: Vec<Unseen>,
}

impl Counts {
    /// What the kernel has counted, and what the drives say when they are asked.
    pub(super) fn all(ask: Ask, sysfs: &Sysfs, path: &SeenPath) -> Self {
        let mut all = Self::kernels(path);
        for link in &path.links {
            if let Look::Ata(link) = &link.look {
                all.add_drives_own(link, ask(sysfs, link));
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
                Look::Pcie { .. } | Look::Fixed => {}
                Look::Sas(phys) => {
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
                    all.add(&link.port, "times slowed after errors", slowed.ok());
                    all.add(&link.port, "recent errors", errors.ok());
                }
            }
        }
        all
    }

    fn add(&mut self, at: &str, counter: &str, count: Option<u64>) {
        if let Some(count) = count {
            self.read.push(Count {
                at: at.to_owned(),
                counter: counter.to_owned(),
                count,
            });
        }
    }

    /// What the drive itself has counted.
    fn add_drives_own(&mut self, link: &AtaLink, told: Result<Vec<(&'static str, u64)>, String>) {
        match told {
            Ok(found) => {
                for (name, count) in found {
                    self.add(&link.port, name, Some(count));
                }
            }
            Err(why) => self.unseen.push(Unseen {
                name: format!("the drive's link error counters at {}", link.port),
                why,
            }),
        }
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
                let added = now.count.checked_sub(then.count);
                added.map_or(Growth::Backwards, Growth::By)
            });
            grown.push(delta(&then.at, &then.counter, growth));
        }
        grown
    }
}

/// Asks the drive itself.
pub(super) fn drives_own(
    sysfs: &Sysfs,
    link: &AtaLink,
) -> Result<Vec<(&'static str, u64)>, String> {
    let words = link.identify_words().map_err(|error| error.to_string())?;
    ata_link_errors(sysfs, &link.scsi_dir, Keeps::of(&words)).map_err(|error| error.to_string())
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

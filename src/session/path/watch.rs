//! Looks at links and error counters before, during and after a window, on the collector's thread.

use super::{Look, SeenPath, disk, pcie};
use crate::backend::sg::ata_link_errors;
use crate::proto::ata::Keeps;
use crate::record::{CounterDelta, LinkChange, Unseen};
use crate::sysfs::Sysfs;
use crate::sysfs::absent::Fact;
use crate::sysfs::ata::AtaLink;
use crate::sysfs::pci::{Aer, AerClass};
use std::path::Path;
use std::time::{Duration, Instant};

/// Speed and width are looked at this often.
const EVERY: Duration = Duration::from_secs(1);

/// A counter at one moment.
#[derive(Debug)]
struct Count {
    at: String,
    counter: String,
    count: u64,
}

/// All counters of a path at one moment, and those that could not be read.
#[derive(Debug, Default)]
struct Counts {
    read: Vec<Count>,
    unseen: Vec<Unseen>,
}

/// Asks the drive on a link what it has counted: names and counts, or why not.
type Ask = fn(&Sysfs, &AtaLink) -> Result<Vec<(&'static str, u64)>, String>;

/// The looks at the paths of one step.
#[derive(Debug)]
pub struct PathWatch {
    ask: Ask,
    paths: Vec<SeenPath>,
    /// The state of each link of each path at the start.
    before: Vec<Vec<String>>,
    counts: Vec<Counts>,
    sysfs: Sysfs,
    started: Instant,
    looked: Instant,
}

impl PathWatch {
    /// Takes the first look.
    #[must_use]
    pub fn new(sysfs: &Sysfs, paths: Vec<SeenPath>) -> Self {
        Self::asking(drives_own, sysfs, paths)
    }

    fn asking(ask: Ask, sysfs: &Sysfs, paths: Vec<SeenPath>) -> Self {
        let before = paths.iter().map(states).collect();
        let counts = paths.iter().map(|path| counts(ask, sysfs, path)).collect();
        let now = Instant::now();
        let mut watch = Self {
            ask,
            paths,
            before,
            counts,
            sysfs: sysfs.clone(),
            started: now,
            looked: now,
        };
        for path in watch.paths.iter_mut().filter(|path| !path.links.is_empty()) {
            path.record.samples_count = 1;
        }
        watch
    }

    /// Looks again where a second has passed.
    pub fn look(&mut self) {
        if self.looked.elapsed() >= EVERY {
            self.looked = Instant::now();
            self.compare();
        }
    }

    /// Takes the last look, at counters too, and gives the paths back with what was seen. A drive that does not
    /// answer (`answers` is false) is not asked what it has counted: that would wait for it once more, and the
    /// kernel's recovery would add errors of its own.
    #[must_use]
    pub fn finish(mut self, answers: bool) -> Vec<SeenPath> {
        self.compare();
        for (path, before) in self.paths.iter_mut().zip(self.counts) {
            let now = if answers {
                counts(self.ask, &self.sysfs, path)
            } else {
                kernels_counts(path)
            };
            let grown_of = |before| grown(before, &now.read);
            path.record.counters = before.read.iter().map(grown_of).collect();
            for late in now
                .read
                .iter()
                .filter(|now| now.counter.starts_with("aer "))
                .filter(|now| !before.read.iter().any(|then| is_same(then, now)))
            {
                // A class that shows only once it counts.
                path.record.counters.push(CounterDelta {
                    at: late.at.clone(),
                    counter: late.counter.clone(),
                    grown_count: Some(late.count),
                });
            }
            path.record.counters_unseen = before.unseen;
        }
        self.paths
    }

    fn compare(&mut self) {
        let at_s = self.started.elapsed().as_secs_f64();
        for (path, before) in self.paths.iter_mut().zip(&self.before) {
            if path.links.is_empty() {
                continue;
            }
            path.record.samples_count += 1;
            let now = states(path);
            for ((link, before), now) in path.links.iter().zip(before).zip(now) {
                let changes = &mut path.record.changes;
                let is_told = changes.iter().any(|change| change.at == link.name);
                if *before != now && !is_told {
                    changes.push(LinkChange {
                        at: link.name.clone(),
                        before: before.clone(),
                        after: now,
                        at_s,
                    });
                }
            }
        }
    }
}

fn states(path: &SeenPath) -> Vec<String> {
    let state = |look: &Look| match look {
        Look::Pcie { upper, lower } => pcie::text_now(upper.as_deref(), lower),
        Look::Sas(phys) => disk::phys_now(phys),
        Look::Ata(link) => link
            .rate_now()
            .map_or_else(|error| error.to_string(), |rate| rate.to_string()),
        Look::Fixed => String::new(),
    };
    path.links.iter().map(|link| state(&link.look)).collect()
}

fn is_same(one: &Count, other: &Count) -> bool {
    one.at == other.at && one.counter == other.counter
}

fn grown(before: &Count, now: &[Count]) -> CounterDelta {
    let after = now.iter().find(|now| is_same(before, now));
    CounterDelta {
        at: before.at.clone(),
        counter: before.counter.clone(),
        // One that went backwards, or cannot be read any more, tells nothing.
        grown_count: after.and_then(|after| after.count.checked_sub(before.count)),
    }
}

fn counts(ask: Ask, sysfs: &Sysfs, path: &SeenPath) -> Counts {
    let mut all = kernels_counts(path);
    for link in &path.links {
        if let Look::Ata(link) = &link.look {
            all.add_drives_own(link, ask(sysfs, link));
        }
    }
    all
}

/// What the kernel has counted, which no device is asked for.
fn kernels_counts(path: &SeenPath) -> Counts {
    let mut all = Counts::default();
    let mut add = |at: &str, counter: &str, count: Option<u64>| {
        if let Some(count) = count {
            all.read.push(Count {
                at: at.to_owned(),
                counter: counter.to_owned(),
                count,
            });
        }
    };
    for (name, dir) in &path.functions {
        for (class, total) in aer(dir) {
            add(name, &format!("aer {class}"), total);
        }
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
                        add(&phy.name, name, count.as_ref().ok().copied());
                    }
                }
            }
            Look::Ata(link) => {
                let slowed = link.slowed_count.as_ref().ok().copied();
                add(&link.port, "times slowed after errors", slowed);
                let errors = link.recent_errors_count.as_ref().ok().copied();
                add(&link.port, "recent errors", errors);
            }
        }
    }
    all
}

/// What the drive itself has counted.
fn drives_own(sysfs: &Sysfs, link: &AtaLink) -> Result<Vec<(&'static str, u64)>, String> {
    let words = link.identify_words().map_err(|error| error.to_string())?;
    ata_link_errors(sysfs, &link.scsi_dir, Keeps::of(&words)).map_err(|error| error.to_string())
}

impl Counts {
    fn add_drives_own(&mut self, link: &AtaLink, told: Result<Vec<(&'static str, u64)>, String>) {
        match told {
            Ok(found) => self
                .read
                .extend(found.into_iter().map(|(name, count)| Count {
                    at: link.port.clone(),
                    counter: name.to_owned(),
                    count,
                })),
            Err(why) => self.unseen.push(Unseen {
                name: format!("the drive's link error counters at {}", link.port),
                why,
            }),
        }
    }
}

fn aer(dir: &Path) -> [(&'static str, Option<u64>); 3] {
    let aer = Aer::read(dir);
    let total = |class: &Fact<AerClass>| class.as_ref().ok().map(|class| class.total_count);
    [
        ("correctable", total(&aer.correctable)),
        ("nonfatal", total(&aer.nonfatal)),
        ("fatal", total(&aer.fatal)),
    ]
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::SeenLink;
    use super::*;
    use std::cell::Cell;

    thread_local! {
        static ASKED_COUNT: Cell<u64> = const { Cell::new(0) };
    }

    /// A drive that counts how often it is asked.
    fn counted(_: &Sysfs, _: &AtaLink) -> Result<Vec<(&'static str, u64)>, String> {
        ASKED_COUNT.set(ASKED_COUNT.get() + 1);
        Ok(vec![("R_ERR", ASKED_COUNT.get())])
    }

    fn on_sata() -> (tempfile::TempDir, PathWatch) {
        let root = tempfile::tempdir().unwrap();
        let sysfs = Sysfs::at(root.path());
        let drive = Path::new("/ata1/host0/target0:0:0/0:0:0:0");
        let mut path = SeenPath::unseen("D", "made by hand");
        path.links = vec![SeenLink {
            name: "ata1".to_owned(),
            carrier: None,
            look: Look::Ata(Box::new(AtaLink::of(&sysfs, drive).unwrap())),
        }];
        let watch = PathWatch::asking(counted, &sysfs, vec![path]);
        (root, watch)
    }

    #[test]
    fn a_drive_is_asked_for_its_link_errors_before_and_after() {
        let (_root, watch) = on_sata();
        let paths = watch.finish(true);
        assert_eq!(ASKED_COUNT.get(), 2);
        let counters = &paths[0].record.counters;
        assert_eq!(counters.len(), 1);
        assert_eq!(counters[0].grown_count, Some(1));
    }

    #[test]
    fn a_drive_that_is_gone_is_not_asked_for_its_link_errors() {
        let (_root, watch) = on_sata();
        let paths = watch.finish(false);
        assert_eq!(ASKED_COUNT.get(), 1, "before the step only");
        let counters = &paths[0].record.counters;
        // Unknown, and not 0.
        assert_eq!(counters.len(), 1);
        assert_eq!(counters[0].grown_count, None);
    }
}

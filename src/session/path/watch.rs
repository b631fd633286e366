//! Looks at links and error counters before, during and after a window, on the collector's thread.

use super::counters::{Ask, Counts, drives_own};
use super::{Look, SeenPath, disk, pcie};
use crate::record::LinkChange;
use crate::sysfs::Sysfs;
use std::time::{Duration, Instant};

/// Speed and width are looked at this often.
const EVERY: Duration = Duration::from_secs(1);

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
        let counts = paths
            .iter()
            .map(|path| Counts::all(ask, sysfs, path))
            .collect();
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
                Counts::all(self.ask, &self.sysfs, path)
            } else {
                Counts::kernels(path)
            };
            path.record.counters = now.since(&before);
            path.record.counters_unseen = before.unseen;
            for late in now.unseen {
                if !path.record.counters_unseen.contains(&late) {
                    path.record.counters_unseen.push(late);
                }
            }
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::SeenLink;
    use super::*;
    use crate::sysfs::ata::AtaLink;
    use std::cell::Cell;
    use std::path::Path;

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

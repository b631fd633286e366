//! Looks at links and error counters before, during and after a window, on the collector's thread.

use super::counters::Counts;
use super::{Look, SeenPath, disk, pcie};
use crate::record::LinkChange;
use crate::sysfs::Sysfs;
use crate::sysfs::absent::Fact;
use crate::sysfs::sas::SasRate;
use std::time::{Duration, Instant};

/// Speed and width are looked at this often.
const EVERY: Duration = Duration::from_secs(1);

/// The looks at the paths of one step.
#[derive(Debug)]
pub struct PathWatch {
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
        let before = paths.iter().map(states).collect();
        let counts = paths.iter().map(|path| Counts::all(sysfs, path)).collect();
        let now = Instant::now();
        let mut watch = Self {
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
                Counts::all(&self.sysfs, path)
            } else {
                Counts::kernels(path)
            };
            path.record.counters_before = before.totals();
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
        Look::Sas(phys, _) => disk::phys_now(phys),
        Look::Ata(link) => rate_text(&link.rate_now()),
        Look::AtaShared(link) => rate_text(&link.rate_now()),
        Look::Fixed => String::new(),
    };
    path.links.iter().map(|link| state(&link.look)).collect()
}

fn rate_text(rate: &Fact<SasRate>) -> String {
    rate.as_ref()
        .map_or_else(ToString::to_string, ToString::to_string)
}

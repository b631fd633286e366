//! What a step runs under: health of devices, frequency of CPUs, I/O of others. Everything is read before the first
//! I/O and after the last; while a step runs, nothing is.

mod others;
mod own;
mod warn;

pub(super) use own::OwnIo;

use super::machine::Machine;
use super::open::Opened;
use crate::backend::{DeviceFacts, DeviceKind};
use crate::record::{Conditions, CpuConditions, DeviceConditions, Health, Step, WriteCache};
use crate::sysfs::Sysfs;
use crate::sysfs::absent::Fact;
use crate::sysfs::cgroup::CpuLimits;
use crate::sysfs::cpufreq::CpuFiles;
use others::Counted;

/// A CPU at one moment.
#[derive(Debug)]
struct CpuLook {
    hz: Fact<u64>,
    core_throttles_count: Fact<u64>,
    package_throttles_count: Fact<u64>,
}

impl CpuLook {
    fn at(files: &CpuFiles) -> Self {
        Self {
            hz: files.hz(),
            core_throttles_count: files.core_throttles_count(),
            package_throttles_count: files.package_throttles_count(),
        }
    }
}

/// The looks at one step.
#[derive(Debug)]
pub(super) struct HealthWatch {
    /// Where each device stands among all that are open.
    places: Vec<usize>,
    before: Vec<Result<Health, String>>,
    write_caches: Vec<Result<WriteCache, String>>,
    counted: Vec<Result<Counted, String>>,
    cpus: Vec<(u32, CpuFiles, CpuLook, Option<CpuLook>)>,
    limits: Fact<CpuLimits>,
    held_back_ns: (Fact<u64>, Option<Fact<u64>>),
}

impl HealthWatch {
    /// Looks before the first I/O, at those of the open devices that are at `chosen` (at all of them without). The
    /// device is asked first: the answer itself is I/O.
    pub(super) fn begin(
        sysfs: &Sysfs,
        opened: &Opened,
        (facts, chosen): (&[DeviceFacts], Option<&[usize]>),
        cpus: &[u32],
    ) -> Self {
        let places = chosen.map_or_else(|| (0..facts.len()).collect(), <[usize]>::to_vec);
        let before = places.iter().map(|&place| opened.health(place)).collect();
        let caches = places.iter().map(|&place| opened.write_cache(place));
        let write_caches = caches.collect();
        let needs_machine = facts.iter().any(|one| others::why_not(one).is_none());
        let machine = needs_machine.then(|| Machine::read(sysfs));
        let counted = facts.iter().map(|one| match &machine {
            Some(Ok(machine)) => Counted::begin(machine, one),
            Some(Err(error)) => Err(error.to_string()),
            None => Err(others::why_not(one).unwrap_or_default()),
        });
        let counted = counted.collect();
        let mut numbers = cpus.to_vec();
        numbers.sort_unstable();
        numbers.dedup();
        let limits = CpuLimits::of_self(sysfs);
        let look = |cpu: u32| {
            let files = CpuFiles::of(sysfs, cpu);
            let now = CpuLook::at(&files);
            (cpu, files, now, None)
        };
        Self {
            places,
            before,
            write_caches,
            counted,
            cpus: numbers.into_iter().map(look).collect(),
            held_back_ns: (held_back(&limits), None),
            limits,
        }
    }

    /// Looks at once after the last I/O at what changes soonest.
    pub(super) fn ended(&mut self) {
        self.held_back_ns.1 = Some(held_back(&self.limits));
        for (_, files, _, after) in &mut self.cpus {
            *after = Some(CpuLook::at(files));
        }
        for counted in self.counted.iter_mut().flatten() {
            counted.end();
        }
    }

    /// Asks the devices again, and adds all of it to the step with the doubts that it raises.
    pub(super) fn finish(self, opened: &Opened, step: &mut Step, own: &[OwnIo]) {
        // What does not answer I/Os would let the question wait as well.
        let lost = lost(step);
        let asked = self.before.into_iter().zip(self.write_caches);
        let devices = (0..).zip(asked).zip(&self.counted);
        let devices = devices.map(|((device_index, (before, write_cache)), counted)| {
            let index = device_index as usize;
            let after = match lost {
                Some(what) => Err(format!("the device is {what}: it was not asked again")),
                None => opened.health(self.places[index]),
            };
            let others = match counted {
                Ok(counted) => counted.others(&others::shared(&self.counted, index, own)),
                Err(why) => Err(why.clone()),
            };
            let (before, why_not_before) = parts(before);
            let (after, why_not_after) = parts(after);
            let (others, why_not_others) = parts(others);
            let (write_cache, why_not_write_cache) = parts(write_cache);
            DeviceConditions {
                device_index,
                before,
                why_not_before,
                after,
                why_not_after,
                others,
                why_not_others,
                write_cache,
                why_not_write_cache,
            }
        });
        let (before, after) = self.held_back_ns;
        let after = after.unwrap_or_else(|| held_back(&self.limits));
        let why_no_cgroup = reason(&[&before, &after]);
        let conditions = Conditions {
            cgroup_held_back_ns: grown(before, after),
            why_no_cgroup,
            devices: devices.collect(),
            cpus: self.cpus.into_iter().map(cpu).collect(),
        };
        step.warnings.extend(warn::warnings(step, &conditions));
        step.conditions = Some(conditions);
    }
}

/// Whether a device of the step is `gone` or `stuck`.
pub(super) fn lost(step: &Step) -> Option<&'static str> {
    match step.error.as_ref().map(|error| error.kind.as_str()) {
        Some("gone") => Some("gone"),
        Some("stuck") => Some("stuck"),
        _ if step.abandoned_count > 0 => Some("stuck"),
        _ => None,
    }
}

fn parts<T>(fact: Result<T, String>) -> (Option<T>, Option<String>) {
    match fact {
        Ok(fact) => (Some(fact), None),
        Err(why) => (None, Some(why)),
    }
}

fn cpu((cpu, files, before, after): (u32, CpuFiles, CpuLook, Option<CpuLook>)) -> CpuConditions {
    let after = after.unwrap_or_else(|| CpuLook::at(&files));
    let why_no_throttles = reason(&[
        &before.core_throttles_count,
        &before.package_throttles_count,
        &after.core_throttles_count,
        &after.package_throttles_count,
    ]);
    let why_no_frequency = reason(&[&before.hz, &after.hz]);
    CpuConditions {
        cpu,
        governor: files.governor().ok(),
        why_no_frequency,
        before_hz: before.hz.ok(),
        after_hz: after.hz.ok(),
        core_throttles_count: grown(before.core_throttles_count, after.core_throttles_count),
        package_throttles_count: grown(
            before.package_throttles_count,
            after.package_throttles_count,
        ),
        why_no_throttles,
    }
}

fn held_back(limits: &Fact<CpuLimits>) -> Fact<u64> {
    limits.as_ref().map_err(Clone::clone)?.held_back_ns()
}

/// How much a counter grew; `None` where it is not told at both ends, or went back.
fn grown(before: Fact<u64>, after: Fact<u64>) -> Option<u64> {
    after.ok()?.checked_sub(before.ok()?)
}

/// Why the first of them is not known that is not.
fn reason(facts: &[&Fact<u64>]) -> Option<String> {
    let missing = facts.iter().find_map(|fact| fact.as_ref().err());
    missing.map(ToString::to_string)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::record::{Failure, Record};

    #[test]
    fn a_step_says_whether_its_devices_still_answer() {
        let text = include_str!("../../../tests/fixtures/records/normal_read.json");
        let record: Record = serde_json::from_str(text).unwrap();
        let mut step = record.steps[0].clone();
        assert_eq!((step.error.is_none(), step.abandoned_count), (true, 0));
        assert_eq!(lost(&step), None);
        for (kind, what) in [
            ("gone", Some("gone")),
            ("stuck", Some("stuck")),
            ("io-errors", None),
        ] {
            step.error = Some(Failure {
                kind: kind.to_owned(),
                text: String::new(),
                next_step: String::new(),
                exit_code: 1,
            });
            assert_eq!(lost(&step), what, "{kind}");
        }
        // A signal ended the run while it did not answer.
        step.abandoned_count = 1;
        assert_eq!(lost(&step), Some("stuck"));
    }
}

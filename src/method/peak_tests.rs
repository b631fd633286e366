//! The search on a model whose peak and knee are known.
#![allow(clippy::unwrap_used)]
use super::*;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A device that serves so many at once, each in 100 µs, driven by reactors that each give so much at most;
/// every figure is off by a little.
struct Model {
    parallelism: u64,
    most_of_reactor_iops: f64,
    noise_ratio: f64,
    /// What the last round was told.
    proofs: Proofs,
    random: Xoshiro256PlusPlus,
}

impl Model {
    fn new(parallelism: u64, most_of_reactor_iops: f64, noise_ratio: f64, seed: u64) -> Self {
        Self {
            parallelism,
            most_of_reactor_iops,
            noise_ratio,
            proofs: Proofs::default(),
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
        }
    }

    #[allow(clippy::cast_precision_loss)]
    fn true_iops(&self, setting: Setting) -> f64 {
        let device = setting.depth_count.min(self.parallelism) as f64 * 1e4;
        device.min(self.host_iops(setting))
    }

    fn host_iops(&self, setting: Setting) -> f64 {
        let batched = if setting.complete_min_count >= 8 {
            1.2
        } else {
            1.0
        };
        f64::from(setting.reactors_count) * self.most_of_reactor_iops * batched
    }

    #[allow(clippy::cast_precision_loss)]
    fn step(&mut self, setting: Setting) -> Step {
        let on_each = setting.depth_count / u64::from(setting.reactors_count);
        assert!(
            u64::from(setting.complete_min_count) <= on_each,
            "the planner would refuse {setting:?}"
        );
        let even = (self.random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
        let off = 1.0 + self.noise_ratio * (2.0 * even - 1.0);
        let text = include_str!("../../tests/fixtures/records/normal_read.json");
        let record: crate::record::Record = serde_json::from_str(text).unwrap();
        let mut step = record.steps[0].clone();
        step.write = None;
        step.trim = None;
        step.depth.asked_count = setting.depth_count;
        step.depth.device_count = None;
        let read = step.read.as_mut().unwrap();
        read.iops = self.true_iops(setting) * off;
        read.bytes_per_s = read.iops * 4096.0;
        step
    }
}

impl Probed for Model {
    fn probe(&mut self, setting: Setting, _name: &str) -> Result<Step, SessionError> {
        Ok(self.step(setting))
    }

    #[allow(clippy::cast_precision_loss)]
    fn burn(&mut self, setting: Setting, _name: &str, burn_ns: u64) -> Result<Step, SessionError> {
        let reactors = f64::from(setting.reactors_count);
        let own_ns = reactors * 1e9 / self.host_iops(setting) + burn_ns as f64;
        // Of what is in flight, what the device does not serve waits for it: only that hides a burn.
        let queued_count = setting.depth_count.saturating_sub(self.parallelism);
        let device_ns = 1e5
            + if queued_count == 0 {
                burn_ns as f64
            } else {
                0.0
            };
        let served = setting.depth_count.min(self.parallelism) as f64;
        let mut step = self.step(setting);
        step.read.as_mut().unwrap().iops = (reactors * 1e9 / own_ns).min(served * 1e9 / device_ns);
        Ok(step)
    }

    fn confirm(
        &mut self,
        setting: Setting,
        _name: &str,
        proofs: &Proofs,
    ) -> Result<Step, SessionError> {
        self.proofs = proofs.clone();
        Ok(self.step(setting))
    }
}

const PLAN: PeakPlan = PeakPlan {
    depth_most_count: 1024,
    devices_count: 1,
    reactors_most_count: 8,
    reactors_at_once_count: u32::MAX,
    precision_ratio: 0.01,
};

#[test]
fn the_peak_is_within_a_percent_and_the_knee_exact_whatever_the_parallelism() {
    for parallelism in [1_u64, 2, 5, 8, 16, 31, 64, 100, 128, 500, 1024] {
        for seed in 0..20 {
            let mut model = Model::new(parallelism, 1e12, 0.004, seed);
            let found = search(&PLAN, &mut model);
            #[allow(clippy::cast_precision_loss)]
            let peak_iops = parallelism as f64 * 1e4;
            let off = found.peak_iops.unwrap() / peak_iops - 1.0;
            assert!(off.abs() < 0.01, "{parallelism}: {off}");
            let knee = (0..=10)
                .map(|power| 1 << power)
                .find(|depth: &u64| (*depth).min(parallelism) * 100 >= 97 * parallelism);
            assert_eq!(found.knee_depth_count, knee, "{parallelism}");
            assert!(found.is_knee_exact, "{parallelism}");
            assert!(found.steps.len() <= PROBES_MOST_COUNT);
            assert_eq!(found.ended_by, "precision");
        }
    }
}

#[test]
fn reactors_are_added_as_long_as_they_bring_something() {
    for (most, wanted) in [(4e5, 4), (8e5, 2), (2e6, 1), (1.3e5, 8)] {
        let mut model = Model::new(128, most, 0.002, 7);
        let found = search(&PLAN, &mut model);
        assert_eq!(found.best.unwrap().reactors_count, wanted, "{most}");
        let reached = found.peak_iops.unwrap() / model.true_iops(found.best.unwrap());
        assert!((reached - 1.0).abs() < 0.01, "{most}: {reached}");
        assert!(found.steps.len() <= PROBES_MOST_COUNT);
    }
}

#[test]
fn the_knee_of_a_large_batch_on_several_reactors_is_looked_for_where_it_can_be() {
    // Bound by the host with any number of reactors, so that larger batches are taken.
    let mut model = Model::new(1024, 1e6, 0.002, 5);
    let found = search(&PLAN, &mut model);
    let best = found.best.unwrap();
    assert!(
        best.reactors_count > 1 && best.complete_min_count >= 8,
        "{best:?}"
    );
    assert_eq!(found.ended_by, "precision");
}

/// Many reactors that each bring something take many probes: some are kept for the knee.
#[test]
fn the_knee_is_found_on_large_machines_too() {
    for (parallelism, most_iops) in [(128, 4e5), (512, 5e5), (1024, 7e5), (1024, 1e5)] {
        let mut model = Model::new(parallelism, most_iops, 0.002, 21);
        let plan = PeakPlan {
            reactors_most_count: 64,
            ..PLAN
        };
        let found = search(&plan, &mut model);
        let best = found.best.unwrap();
        assert!(found.is_knee_exact, "{parallelism} {most_iops}: {best:?}");
        assert!(found.steps.len() <= PROBES_MOST_COUNT);
        let reached = found.peak_iops.unwrap() / model.true_iops(best);
        assert!(
            (reached - 1.0).abs() < 0.01,
            "{parallelism} {most_iops}: {reached}"
        );
    }
}

/// What completes at once gives nothing for depth; it has to be given depth for batches to be tried.
#[test]
fn batches_are_tried_where_depth_alone_brings_nothing() {
    let mut model = Model::new(1024, 1e4, 0.002, 9);
    let plan = PeakPlan {
        reactors_most_count: 1,
        ..PLAN
    };
    let found = search(&plan, &mut model);
    assert_eq!(found.best.unwrap().complete_min_count, 8);
    assert!((found.peak_iops.unwrap() / 1.2e4 - 1.0).abs() < 0.01);
    // Not beyond the depth that is allowed.
    let shallow = PeakPlan {
        depth_most_count: 8,
        ..plan
    };
    let found = search(&shallow, &mut model);
    assert_eq!(found.best.unwrap().complete_min_count, 1);
}

/// A device that serves one at a time falls by just the burn where one is in flight: that proves nothing.
#[test]
fn rounds_are_told_whether_the_host_binds() {
    use crate::ceiling::host::HostEvidence;
    use crate::ceiling::plateau::Plateau;
    for (parallelism, most_iops, wanted) in [
        (1, 1e12, HostEvidence::Excluded),
        (2, 1e12, HostEvidence::Excluded),
        (64, 1e12, HostEvidence::Excluded),
        (1024, 5e5, HostEvidence::Proven),
        (1024, 1e4, HostEvidence::Proven),
    ] {
        let mut model = Model::new(parallelism, most_iops, 0.002, 11);
        let plan = PeakPlan {
            reactors_most_count: 2,
            ..PLAN
        };
        let found = search(&plan, &mut model);
        assert_eq!(model.proofs.host, wanted, "{parallelism} {most_iops}");
        assert_eq!(model.proofs.plateau, Some(Plateau::Flat), "{parallelism}");
        assert_eq!(found.burns.len(), BURNS_COUNT);
    }
}

#[test]
fn a_noisy_device_ends_by_the_limit_and_says_so() {
    let mut model = Model::new(16, 1e12, 0.2, 3);
    let found = search(&PLAN, &mut model);
    assert_eq!(found.ended_by, "rounds");
    assert_eq!(found.steps.len(), PROBES_MOST_COUNT);
    assert!(found.half_width_iops.unwrap() > 0.01 * found.peak_iops.unwrap());
}

#[test]
fn the_interval_is_students() {
    let (mean, half) = interval(&[1.0, 2.0, 3.0]).unwrap();
    assert!((mean - 2.0).abs() < 1e-12);
    assert!((half - 4.303 / 3.0_f64.sqrt()).abs() < 1e-3, "{half}");
    assert_eq!(interval(&[1.0]), None);
}

#[test]
fn the_ends_of_the_search_hold_what_it_may_come_to() {
    let ends = |depth_most_count, reactors_most_count| {
        let plan = PeakPlan {
            depth_most_count,
            devices_count: 1,
            reactors_most_count,
            reactors_at_once_count: u32::MAX,
            precision_ratio: 0.01,
        };
        let ends = plan.ends();
        let triple = |one: &Setting| {
            let Setting {
                depth_count,
                reactors_count,
                complete_min_count,
            } = *one;
            (depth_count, reactors_count, complete_min_count)
        };
        ends.iter().map(triple).collect::<Vec<_>>()
    };
    // Reactors are doubled: 6 of them are never tried.
    assert_eq!(
        ends(1024, 6),
        [
            (1, 1, 1),
            (1024, 1, 1),
            (1024, 1, 32),
            (4, 4, 1),
            (1024, 4, 1),
            (1024, 4, 32)
        ]
    );
    // Batches that no depth is left for are not tried; each reactor has a depth of 1.
    assert_eq!(ends(16, 1), [(1, 1, 1), (16, 1, 1), (16, 1, 8)]);
    assert_eq!(ends(2, 4), [(1, 1, 1), (2, 1, 1), (4, 4, 1)]);
}

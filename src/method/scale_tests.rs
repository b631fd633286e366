//! Scaling on a model whose truth is known.
#![allow(clippy::unwrap_used)]
use super::*;
use crate::ceiling::exact;
use crate::ceiling::host::HostEvidence;
use crate::ceiling::plateau::Plateau;
use crate::record::Record;

/// Devices with a most of their own behind a hop that is shared evenly, driven by a host with a most of its own.
struct Model {
    own_bytes_per_s: Vec<f64>,
    hop_bytes_per_s: f64,
    host_iops: f64,
    /// Windows after which one fails.
    fails_at: Option<usize>,
    asked: Vec<Ask>,
    proofs: Vec<Proofs>,
}

impl Model {
    fn new(own: &[f64], hop: f64) -> Self {
        Self {
            own_bytes_per_s: own.to_vec(),
            hop_bytes_per_s: hop,
            host_iops: 1e12,
            fails_at: None,
            asked: Vec::new(),
            proofs: Vec::new(),
        }
    }

    /// What each gets: all the same, but none more than its own most (water filling).
    fn rates(&self, ask: &Ask) -> Vec<f64> {
        let own: Vec<f64> = ask
            .devices
            .iter()
            .map(|at| self.own_bytes_per_s[*at])
            .collect();
        #[allow(clippy::cast_precision_loss)]
        let burn_ns = ask.burn_ns.unwrap_or(0) as f64;
        let host = 1e9 / (1e9 / self.host_iops + burn_ns) * 4096.0;
        let most = self.hop_bytes_per_s.min(host) * if ask.is_remote { 0.5 } else { 1.0 };
        let (mut left, mut rates) = (most, vec![0.0; own.len()]);
        let mut order: Vec<usize> = (0..own.len()).collect();
        order.sort_by(|one, other| own[*one].total_cmp(&own[*other]));
        for (done, at) in order.iter().enumerate() {
            #[allow(clippy::cast_precision_loss)]
            let share = left / (own.len() - done) as f64;
            rates[*at] = own[*at].min(share);
            left -= rates[*at];
        }
        rates
    }
}

impl Scaled for Model {
    type Kept = ();

    fn run(&mut self, ask: &Ask) -> Result<(Step, ()), SessionError> {
        self.asked.push(ask.clone());
        if self.fails_at == Some(self.asked.len()) {
            return Err(SessionError::Interrupted);
        }
        let text = include_str!("../../tests/fixtures/records/normal_read.json");
        let record: Record = serde_json::from_str(text).unwrap();
        let mut step = record.steps[0].clone();
        let (device, stream) = (step.devices[0].clone(), step.streams[0].clone());
        (step.devices, step.streams) = (Vec::new(), Vec::new());
        let rates = self.rates(ask);
        for (index, rate) in (0_u32..).zip(&rates) {
            step.devices.push(device.clone());
            let mut own = stream.clone();
            (own.device_index, own.bytes_per_s, own.iops) = (index, *rate, rate / 4096.0);
            step.streams.push(own);
        }
        let sum: f64 = rates.iter().sum();
        let read = step.read.as_mut().unwrap();
        (read.iops, read.bytes_per_s) = (sum / 4096.0, sum);
        (step.write, step.trim) = (None, None);
        step.name.clone_from(&ask.name);
        step.depth.asked_count = 32 * rates.len() as u64 / u64::from(ask.depth_divisor);
        Ok((step, ()))
    }

    fn judge(&mut self, _step: &mut Step, (): &(), proofs: &Proofs) {
        self.proofs.push(proofs.clone());
    }

    fn shared(&self, _step: &Step, (): &()) -> Result<(String, RateBand), String> {
        Ok(("hba".to_owned(), exact(self.hop_bytes_per_s)))
    }

    fn controller(&self, (): &()) -> Option<String> {
        Some("0000:01:00.0".to_owned())
    }
}

fn plan_of(count: u32) -> ScalePlan {
    ScalePlan {
        devices: (0..count).map(|at| format!("/dev/sd{at}")).collect(),
        counts: ScalePlan::usual_counts(count),
        depth_count: 32,
        depth_least_count: 1,
        reactors_count: 1,
        nodes: Err("one node".to_owned()),
    }
}

#[test]
fn a_shared_hop_holds_four_back_from_the_third_on() {
    let mut model = Model::new(&[100e6; 4], 250e6);
    let plan = plan_of(4);
    let result = measure(&plan, &mut model);
    assert_eq!(result.status(), Outcome::Finished);
    assert_eq!(model.asked.len(), plan.windows_count());
    let scale = &result.scale;
    let sums: Vec<f64> = scale.rows.iter().map(|row| row.sum_bytes_per_s).collect();
    for (sum, wanted) in sums.iter().zip([100e6, 200e6, 250e6, 250e6]) {
        assert!((sum / wanted - 1.0).abs() < 1e-9, "{sums:?}");
    }
    assert_eq!(scale.saturation_count, Some(3));
    assert_eq!(scale.is_held_back, Some(true));
    let last = &scale.rows[3];
    assert!((last.of_alone_ratio.unwrap() - 0.625).abs() < 1e-9);
    assert!((last.of_shared_low_pct.unwrap() - 100.0).abs() < 1e-9);
    assert!((last.jain_ratio.unwrap() - 1.0).abs() < 1e-9);
    let kept = |one: &ScaleDrive| (one.kept_ratio.unwrap() - 0.625).abs() < 1e-9;
    assert!(scale.drives.iter().all(kept));
    // The verdict over all devices has every proof; the others none.
    let top = model
        .proofs
        .iter()
        .filter(|proofs| proofs.plateau.is_some());
    let top: Vec<&Proofs> = top.collect();
    assert_eq!(top.len(), 1);
    assert_eq!(top[0].plateau, Some(Plateau::Flat));
    assert_eq!(top[0].host, HostEvidence::Excluded);
    let members = top[0].members.as_ref().unwrap();
    assert_eq!(members.alone_bytes_per_s, [100e6; 4]);
    // Four alone, two to four: the first alone is the row of one.
    assert_eq!(result.steps.len(), 7);
    let points = result.steps.iter().filter(|s| !s.origin.point.is_empty());
    assert_eq!(points.count(), 4);
}

/// The least N that gives 97 % of the most: a slow drive at the end is no full hop.
#[test]
fn a_slow_device_is_unfair_and_holds_nobody_back() {
    let mut model = Model::new(&[100e6, 100e6, 100e6, 2e6], 1e12);
    let scale = measure(&plan_of(4), &mut model).scale;
    assert_eq!(scale.is_held_back, Some(false));
    assert_eq!(scale.saturation_count, Some(3));
    let last = &scale.rows[3];
    assert_eq!(last.least_to_most_ratio, Some(0.02));
    assert!(last.jain_ratio.unwrap() < 0.8, "{last:?}");
    assert_eq!(last.of_alone_ratio, Some(1.0));
    assert!(scale.drives.iter().all(|one| one.kept_ratio == Some(1.0)));
}

#[test]
fn a_host_that_binds_is_proven_by_burning() {
    let mut model = Model::new(&[100e6; 2], 1e12);
    model.host_iops = 120e6 / 4096.0;
    let scale = measure(&plan_of(2), &mut model).scale;
    assert!(scale.is_held_back.unwrap());
    assert_eq!(scale.burns.len(), BURNS_COUNT);
    let proofs = model.proofs.iter().find(|proofs| proofs.plateau.is_some());
    assert_eq!(proofs.unwrap().host, HostEvidence::Proven);
}

#[test]
fn another_node_is_held_against_the_own() {
    let mut model = Model::new(&[100e6; 2], 200e6);
    let plan = ScalePlan {
        nodes: Ok((1, 0)),
        ..plan_of(2)
    };
    let scale = measure(&plan, &mut model).scale;
    assert_eq!(scale.nodes.remote_ratio, Some(0.5));
    let remote = scale.nodes.remote.unwrap();
    assert_eq!(
        (remote.devices_count, remote.of_shared_low_pct),
        (2, Some(50.0))
    );
    assert_eq!(scale.nodes.local_node_index, Some(1));
}

/// Wherever it ends, what was whole before is there and nothing is claimed of the rest.
#[test]
fn what_was_measured_before_an_end_is_kept() {
    let plan = plan_of(3);
    for fails_at in 1..=plan.windows_count() {
        let mut model = Model::new(&[100e6; 3], 250e6);
        model.fails_at = Some(fails_at);
        let result = measure(&plan, &mut model);
        assert_eq!(result.status(), Outcome::Interrupted, "{fails_at}");
        assert_eq!(model.asked.len(), fails_at);
        let whole = fails_at > 5;
        assert_eq!(result.scale.is_held_back.is_some(), whole, "{fails_at}");
        assert_eq!(result.scale.shared.is_some(), whole, "{fails_at}");
        assert_eq!(result.scale.saturation_count, whole.then_some(3));
        assert_eq!(result.steps.len(), (fails_at - 1).min(5), "{fails_at}");
    }
}

/// A curve that is flat already when it is cut off has its point; one that still rose has none.
#[test]
fn the_saturation_point_of_a_part_is_said_only_where_the_top_is_held_back() {
    let plan = plan_of(4);
    for (hop, fails_at, wanted) in [(150e6, 6, Some(2)), (250e6, 6, None), (250e6, 7, Some(3))] {
        let mut model = Model::new(&[100e6; 4], hop);
        model.fails_at = Some(fails_at);
        let scale = measure(&plan, &mut model).scale;
        assert_eq!(scale.saturation_count, wanted, "{hop} {fails_at}");
        assert_eq!(scale.is_held_back, None);
    }
}

#[test]
fn many_devices_are_doubled_and_shallow_ones_not_halved() {
    assert_eq!(ScalePlan::usual_counts(3), [2, 3]);
    let counts = ScalePlan::usual_counts(40);
    assert_eq!(counts[..2], [2, 3]);
    assert_eq!(counts[14..], [16, 32, 40]);
    assert_eq!(ScalePlan::usual_counts(32).last(), Some(&32));
    assert_eq!(ScalePlan::usual_counts(17)[14..], [16, 17]);
    let shallow = ScalePlan {
        depth_count: 2,
        ..plan_of(2)
    };
    assert_eq!(plan_of(2).windows_count() - shallow.windows_count(), 2);
}

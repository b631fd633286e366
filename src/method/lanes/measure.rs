//! Measures a device against its ceilings: a curve over depth, then the best depth again, then time burnt at each I/O,
//! as deep as gives as much.

use crate::ceiling::evidence::{Members, Peer};
use crate::ceiling::plateau::{self, CurvePoint};
use crate::config::{ConfigError, Job, Key, Plan, StepPlan, Word, plan, step_json};
use crate::method::burns::{self, BURNS_COUNT, burns, rate, reactors_that_run_at_once};
use crate::method::curve::{self, burn_place};
use crate::reactor::StopCause;
use crate::record::{LaneBurn, LaneMeasurement, LanePoint, Outcome, Step};
use crate::session::path::SeenPath;
use crate::session::{Observer, Opened, Probe, Proofs, Session, SessionError, add_verdict};

/// Depths of small random I/O, and of large sequential I/O: the last three span a factor of four.
const RANDOM_DEPTHS: [u32; 4] = [8, 32, 64, 128];
const SEQUENTIAL_DEPTHS: [u32; 4] = [2, 8, 16, 32];

/// Why a measurement could not be made.
#[derive(Debug, thiserror::Error)]
pub enum LanesError {
    /// The workload does not fit the device.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A run could not start.
    #[error(transparent)]
    Session(#[from] SessionError),
}

/// What is asked for.
#[derive(Debug, Clone, Default)]
pub struct Asked {
    /// The devices, as they were opened.
    pub devices: Vec<String>,
    /// Length of each probe, as a job has it.
    pub runtime: String,
    /// CPUs of the reactors.
    pub cpus: Option<String>,
    /// Number of reactors.
    pub reactors: Option<String>,
    /// Writes as well.
    pub writes: bool,
    /// What each device is sold as, where the user says so.
    pub media: Vec<String>,
}

/// One workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lane {
    /// `sequential read 128 KiB`.
    pub name: String,
    rw: &'static str,
    bs: &'static str,
    depths: [u32; 4],
}

/// The workloads, each with a plan for each depth.
#[derive(Debug)]
pub struct Workloads {
    lanes: Vec<(Lane, Vec<Plan>)>,
    media: Vec<String>,
}

impl Workloads {
    /// Sequential 128 KiB and 1 MiB, random 4 KiB; reads, then writes where asked for.
    ///
    /// # Errors
    /// [`LanesError::Config`] where a workload does not fit a device.
    pub fn new(asked: &Asked, opened: &Opened, seed: u64) -> Result<Self, LanesError> {
        let mut lanes = Vec::new();
        let directions: &[bool] = if asked.writes {
            &[false, true]
        } else {
            &[false]
        };
        for writes in directions {
            for lane in lanes_of(*writes) {
                let mut plans = Vec::new();
                for depth in lane.depths {
                    plans.push(plan(&job(asked, &lane, depth)?, &opened.facts(), seed)?);
                }
                lanes.push((lane, plans));
            }
        }
        Ok(Self {
            lanes,
            media: asked.media.clone(),
        })
    }

    /// Every plan, for whoever has to permit it.
    pub fn plans(&self) -> impl Iterator<Item = &Plan> {
        self.lanes.iter().flat_map(|(_, plans)| plans)
    }

    /// Probes in all, without those of single devices.
    #[must_use]
    pub fn probes_count(&self) -> usize {
        self.lanes.len() * (RANDOM_DEPTHS.len() + 1 + BURNS_COUNT)
    }
}

fn lanes_of(writes: bool) -> Vec<Lane> {
    let words = if writes {
        ("write", "randwrite", "write")
    } else {
        ("read", "randread", "read")
    };
    let lane = |kind: &str, rw, bs, shown: &str, depths| Lane {
        name: format!("{kind} {} {shown}", words.2),
        rw,
        bs,
        depths,
    };
    vec![
        lane("sequential", words.0, "128k", "128 KiB", SEQUENTIAL_DEPTHS),
        lane("sequential", words.0, "1m", "1 MiB", SEQUENTIAL_DEPTHS),
        lane("random", words.1, "4k", "4 KiB", RANDOM_DEPTHS),
    ]
}

fn job(asked: &Asked, lane: &Lane, depth: u32) -> Result<Job, ConfigError> {
    let mut job = Job::of_flags();
    job.name = Some(Word::flag(&lane.name));
    job.devices = asked.devices.iter().map(Word::flag).collect();
    let keys = &mut job.flags.keys;
    for (key, text) in [
        (Key::Rw, lane.rw.to_owned()),
        (Key::Bs, lane.bs.to_owned()),
        (Key::Iodepth, depth.to_string()),
        (Key::Runtime, asked.runtime.clone()),
    ] {
        keys.insert(key, Word::flag(text));
    }
    for (key, text) in [(Key::Cpus, &asked.cpus), (Key::Reactors, &asked.reactors)] {
        if let Some(text) = text {
            keys.insert(key, Word::flag(text));
        }
    }
    job.check()?;
    Ok(job)
}

/// Measures every workload. Ends early, with what there is, at a signal or a failed run.
///
/// # Errors
/// [`LanesError::Session`] where a run could not start.
pub fn measure(
    session: &Session,
    opened: &Opened,
    workloads: &Workloads,
    observer: &mut dyn Observer,
) -> Result<Vec<LaneMeasurement>, LanesError> {
    let mut bench = Bench {
        session,
        opened,
        media: &workloads.media,
        observer,
        done_count: 0,
        all_count: workloads.probes_count(),
    };
    let mut found = Vec::new();
    for (lane, plans) in &workloads.lanes {
        let measured = bench.lane(lane, plans)?;
        let is_over = measured.step.status != Outcome::Finished;
        found.push(measured);
        if is_over {
            break;
        }
    }
    Ok(found)
}

/// Runs probes in turn.
struct Bench<'a> {
    session: &'a Session,
    opened: &'a Opened,
    media: &'a [String],
    observer: &'a mut dyn Observer,
    done_count: usize,
    all_count: usize,
}

impl Bench<'_> {
    fn lane(&mut self, lane: &Lane, plans: &[Plan]) -> Result<LaneMeasurement, LanesError> {
        let mut curve: Vec<LanePoint> = Vec::new();
        let mut points: Vec<CurvePoint> = Vec::new();
        let mut best = 0;
        for (index, (plan, depth)) in plans.iter().zip(lane.depths).enumerate() {
            let (step, paths) = self.probe(plan, &plan.steps[0], None)?;
            curve.push(point(depth, &step));
            points.push(curve::point(&step));
            if curve[index].bytes_per_s > curve[best].bytes_per_s {
                best = index;
            }
            if step.status != Outcome::Finished {
                return Ok(finished(
                    lane,
                    curve,
                    Vec::new(),
                    step,
                    &plan.steps[0],
                    &paths,
                    Proofs::default(),
                ));
            }
        }
        let plan = &plans[best];
        let own = &plan.steps[0];
        let (step, paths) = self.probe(plan, own, None)?;
        let deepest = burn_place(&points).unwrap_or(best);
        let burns = if step.status == Outcome::Finished {
            self.burns(&plans[deepest], &step)?
        } else {
            Vec::new()
        };
        let mut proofs = self.proofs(&points, &step, &burns, &plans[deepest].steps[0]);
        if own_devices(own) > 1 && self.session.control.cause() < StopCause::Signal {
            self.compare(plan, own, &step, &paths, &mut proofs)?;
        }
        Ok(finished(lane, curve, burns, step, own, &paths, proofs))
    }

    fn probe(
        &mut self,
        plan: &Plan,
        step: &StepPlan,
        burn_ns: Option<u64>,
    ) -> Result<(Step, Vec<SeenPath>), LanesError> {
        self.done_count += 1;
        let probe = Probe {
            plan: step,
            plan_json: step_json(step, &plan.devices),
            numbers: (self.done_count, self.all_count.max(self.done_count)),
            burn_ns,
            devices: None,
        };
        Ok(self.session.probe(self.opened, probe, self.observer)?)
    }

    fn burns(&mut self, plan: &Plan, base: &Step) -> Result<Vec<LaneBurn>, LanesError> {
        let own = &plan.steps[0];
        let reactors_count = reactors_that_run_at_once(self.opened, own);
        burns(rate(base).0, reactors_count, |burn_ns| {
            Ok(self.probe(plan, own, Some(burn_ns))?.0)
        })
    }

    /// What the curve and the burns show.
    fn proofs(
        &self,
        curve: &[CurvePoint],
        base: &Step,
        burns: &[LaneBurn],
        burnt: &StepPlan,
    ) -> Proofs {
        let reactors_count = reactors_that_run_at_once(self.opened, burnt);
        let in_flight_count = burnt.in_flight_count;
        let (host, host_iops) = burns::judge(rate(base).0, burns, reactors_count, in_flight_count);
        Proofs {
            plateau: Some(plateau::judge(curve)),
            host,
            host_iops,
            ..Proofs::default()
        }
    }

    /// Each device alone, at the same depth.
    fn compare(
        &mut self,
        plan: &Plan,
        own: &StepPlan,
        together: &Step,
        paths: &[SeenPath],
        proofs: &mut Proofs,
    ) -> Result<(), LanesError> {
        let facts = self.opened.facts();
        let mut alone = Vec::new();
        for (index, device) in (0..).zip(&facts) {
            let (step, _) = self.probe(plan, &restricted(own, index), None)?;
            if step.status != Outcome::Finished {
                return Ok(());
            }
            let bytes_per_s = rate(&step).1;
            alone.push(bytes_per_s);
            let told = self.media.get(index as usize).cloned();
            let shown = device.rotational.map(|is_rotating| {
                let medium = if is_rotating {
                    "rotating"
                } else {
                    "solid state"
                };
                medium.to_owned()
            });
            proofs.peers.extend(told.or(shown).map(|medium| Peer {
                name: device.path.clone(),
                medium,
                bytes_per_s,
            }));
        }
        if proofs.peers.len() < facts.len() {
            proofs.peers.clear();
        }
        proofs.members = Some(Members {
            controller: SeenPath::common_hba(paths).map(str::to_owned),
            alone_bytes_per_s: alone,
            together_bytes_per_s: rate(together).1,
        });
        Ok(())
    }
}

fn finished(
    lane: &Lane,
    curve: Vec<LanePoint>,
    burns: Vec<LaneBurn>,
    mut step: Step,
    plan: &StepPlan,
    paths: &[SeenPath],
    proofs: Proofs,
) -> LaneMeasurement {
    add_verdict(&mut step, plan, paths, &proofs);
    LaneMeasurement {
        name: lane.name.clone(),
        curve,
        burns,
        step,
    }
}

fn point(depth: u32, step: &Step) -> LanePoint {
    let (iops, bytes_per_s) = rate(step);
    LanePoint {
        depth_count: u64::from(depth),
        iops,
        bytes_per_s,
    }
}

fn own_devices(step: &StepPlan) -> usize {
    let mut devices: Vec<u32> = step.streams.iter().map(|s| s.device_index).collect();
    devices.sort_unstable();
    devices.dedup();
    devices.len()
}

/// The same step with the streams of one device.
fn restricted(step: &StepPlan, device_index: u32) -> StepPlan {
    let mut own = step.clone();
    let kept: Vec<bool> = step
        .streams
        .iter()
        .map(|stream| stream.device_index == device_index)
        .collect();
    let mut keep = kept.iter();
    own.streams.retain(|_| *keep.next().unwrap_or(&false));
    let mut keep = kept.iter();
    own.reactor_of.retain(|_| *keep.next().unwrap_or(&false));
    // Reactors without a stream would have nothing to do: those that are left move up.
    let mut used: Vec<u32> = own.reactor_of.clone();
    used.sort_unstable();
    used.dedup();
    for reactor in &mut own.reactor_of {
        let place = used.iter().position(|index| index == reactor).unwrap_or(0);
        *reactor = u32::try_from(place).unwrap_or(0);
    }
    own.reactors_count = u32::try_from(used.len()).unwrap_or(1).max(1);
    if !own.cpus.is_empty() {
        own.cpus = used
            .iter()
            .filter_map(|index| step.cpus.get(*index as usize).copied())
            .collect();
    }
    own.in_flight_count = own.streams.iter().map(|s| u64::from(s.depth)).sum();
    own
}

//! One step: reactors from the plan, a team run over them, a record from what they leave behind.

pub(in crate::session) mod assemble;
pub(in crate::session) mod doubts;
pub(in crate::session) mod idle;
pub(in crate::session) mod judge;
pub(in crate::session) mod mix;
pub(in crate::session) mod place;
pub(in crate::session) mod watch;

use crate::backend::burn::{Burn, BurningDevice, Skip, Spin};
use crate::backend::{Device, DeviceFacts};
use crate::config::StepPlan;
use crate::measure::{Collector, StampChoice};
use crate::reactor::{
    Control, ReactorError, ReactorSetup, StreamSetup, TeamEnd, run_team, run_virtual_team,
};
use crate::record::{BackendUse, Step};
use crate::session::health::{HealthWatch, OwnIo, lost};
use crate::session::open::Opened;
use crate::session::path::{PathWatch, SeenPath};
use crate::session::spdk::step as spdk_step;
use crate::session::{Observer, SessionError};
use crate::sys::clock::MachineClock;
use crate::sys::cpu::AllowedCpus;
use crate::sysfs::Sysfs;
use assemble::{StepFacts, assemble};
use judge::{Proofs, add_verdict};
use place::place;
use std::borrow::Cow;
use std::sync::Arc;
use watch::Watch;

/// What all steps of a session share.
#[derive(Debug)]
pub struct Session {
    /// Where the machine's facts are read.
    pub sysfs: Sysfs,
    /// CPUs that may be used.
    pub allowed: AllowedCpus,
    /// The clock of everything but `sim`.
    pub clock: MachineClock,
    /// Stops reactors; shared with signal handlers.
    pub control: Arc<Control>,
    /// Cost of the engine itself per I/O.
    pub tool_cost_ns: Option<f64>,
}

/// One run of a step for a proof.
#[derive(Debug)]
pub struct Probe<'a> {
    /// What to run.
    pub plan: &'a StepPlan,
    /// Its echo.
    pub plan_json: serde_json::Value,
    /// Its place, counted from 1, and how many there are.
    pub numbers: (usize, usize),
    /// Burnt on the reactor at each completion, to see whether the rate falls.
    pub burn_ns: Option<u64>,
    /// Which of the opened devices the plan's devices are, in its order; absent: all of them. The others are left
    /// alone, and the record knows nothing of them.
    pub devices: Option<&'a [usize]>,
}

impl Session {
    /// Runs one step. `numbers` are its place, counted from 1, and how many there are.
    ///
    /// # Errors
    /// [`SessionError`] where it could not start; then nothing was issued.
    pub fn run_step(
        &self,
        opened: &Opened,
        plan: &StepPlan,
        plan_json: serde_json::Value,
        numbers: (usize, usize),
        observer: &mut dyn Observer,
    ) -> Result<Step, SessionError> {
        let probe = Probe {
            plan,
            plan_json,
            numbers,
            burn_ns: None,
            devices: None,
        };
        let (mut step, paths) = self.probe(opened, probe, observer)?;
        add_verdict(&mut step, plan, &paths, &Proofs::default());
        observer.step_done(&step);
        Ok(step)
    }

    /// Runs one step without a verdict, and hands over the paths with what was seen of them.
    ///
    /// # Errors
    /// As [`Self::run_step`].
    pub fn probe(
        &self,
        opened: &Opened,
        probe: Probe<'_>,
        observer: &mut dyn Observer,
    ) -> Result<(Step, Vec<SeenPath>), SessionError> {
        let plan = probe.plan;
        let of_all = on_all(plan, probe.devices);
        self.control.next_step();
        stamp_fits(opened, plan)?;
        if let Opened::Spdk { devices, .. } = opened {
            spdk_step::fits(devices, &of_all, &self.sysfs)?;
        }
        let cpus = match opened {
            Opened::Sim { .. } => Vec::new(),
            _ => place(plan, &self.allowed, &self.sysfs)?,
        };
        let all_facts = opened.facts();
        let setups = setups(&of_all, &all_facts, &cpus);
        let facts = chosen(all_facts, probe.devices);
        let mut links = PathWatch::new(&self.sysfs, self.paths(&facts));
        let is_real = !matches!(opened, Opened::Sim { .. });
        let mut health = is_real
            .then(|| HealthWatch::begin(&self.sysfs, opened, (&facts, probe.devices), &cpus));
        let mut watch = Watch::new(plan, probe.numbers, &self.control, observer);
        let end = self.run(opened, &setups, probe.burn_ns, &mut |collector| {
            watch.look(collector);
            links.look();
        })?;
        if let Some(health) = &mut health {
            health.ended();
        }
        let own = OwnIo::of(plan, &end.outcomes, &facts);
        let mut step = assemble(
            StepFacts {
                plan,
                plan_json: probe.plan_json,
                devices: facts,
                backend: backend_use(opened, &of_all),
                tool_cost_ns: self.tool_cost_ns.filter(|_| is_real && !opened.is_null()),
                clock_drift_ppm: if is_real {
                    self.clock.drift_check().ppm
                } else {
                    0.0
                },
            },
            end,
        );
        step.warnings.extend(opened.warnings());
        let paths = links.finish(lost(&step).is_none());
        if let Some(health) = health {
            health.finish(opened, &mut step, &own);
        }
        Ok((step, paths))
    }

    fn paths(&self, facts: &[DeviceFacts]) -> Vec<SeenPath> {
        let read = |facts| SeenPath::read(&self.sysfs, facts);
        facts.iter().map(read).collect()
    }

    /// The only place that goes from kinds of backends to the generic loop. `burn_ns` is burnt at each completion.
    fn run(
        &self,
        opened: &Opened,
        setups: &[ReactorSetup],
        burn_ns: Option<u64>,
        watch: &mut dyn FnMut(&Collector),
    ) -> Result<TeamEnd, SessionError> {
        Ok(match opened {
            Opened::Null(devices) => self.team(devices, setups, burn_ns, watch)?,
            Opened::Uring { devices, .. } => self.team(devices, setups, burn_ns, watch)?,
            Opened::UringCmd { devices, .. } => self.team(devices, setups, burn_ns, watch)?,
            Opened::Sg { devices, .. } => self.team(devices, setups, burn_ns, watch)?,
            Opened::Spdk { devices, .. } => self.team(devices, setups, burn_ns, watch)?,
            Opened::Sim { devices, clock } => {
                let control = &self.control;
                match burn_ns {
                    None => run_virtual_team(devices, setups, clock, control, watch)?,
                    Some(ns) => {
                        let devices = burning(devices, &Skip(clock.clone()), ns);
                        run_virtual_team(&devices, setups, clock, control, watch)?
                    }
                }
            }
        })
    }

    fn team<D: Device + Sync>(
        &self,
        devices: &[D],
        setups: &[ReactorSetup],
        burn_ns: Option<u64>,
        watch: &mut dyn FnMut(&Collector),
    ) -> Result<TeamEnd, ReactorError> {
        let (clock, control) = (&self.clock, &self.control);
        match burn_ns {
            None => run_team(devices, setups, clock, control, watch),
            Some(ns) => {
                let devices = burning(devices, &Spin(*clock), ns);
                run_team(&devices, setups, clock, control, watch)
            }
        }
    }
}

/// The plan with the places that its devices have among all that are open.
fn on_all<'a>(plan: &'a StepPlan, devices: Option<&[usize]>) -> Cow<'a, StepPlan> {
    let Some(devices) = devices else {
        return Cow::Borrowed(plan);
    };
    let mut plan = plan.clone();
    for stream in &mut plan.streams {
        let place = devices[stream.device_index as usize];
        stream.device_index = u32::try_from(place).unwrap_or(u32::MAX);
    }
    Cow::Owned(plan)
}

/// The facts of these devices, in this order.
fn chosen(all: Vec<DeviceFacts>, devices: Option<&[usize]>) -> Vec<DeviceFacts> {
    match devices {
        None => all,
        Some(devices) => devices.iter().map(|place| all[*place].clone()).collect(),
    }
}

/// The backend as the record names it, with what is peculiar to the step.
fn backend_use(opened: &Opened, plan: &StepPlan) -> BackendUse {
    let mut backend = opened.backend_use();
    if let Opened::Spdk { devices, .. } = opened {
        backend
            .features
            .extend(spdk_step::commands_per_io(devices, plan));
    }
    backend
}

fn burning<'a, D, B: Burn>(devices: &'a [D], burn: &B, ns: u64) -> Vec<BurningDevice<'a, D, B>> {
    let around = |device| BurningDevice::new(device, burn.clone(), ns);
    devices.iter().map(around).collect()
}

/// SPDK and sg find completions one by one: a reading at the first of a poll would be too early for the rest.
fn stamp_fits(opened: &Opened, plan: &StepPlan) -> Result<(), SessionError> {
    let backend = match opened {
        Opened::Spdk { .. } => "spdk",
        Opened::Sg { .. } => "sg",
        _ => return Ok(()),
    };
    if plan.stamp == StampChoice::Batch {
        return Err(SessionError::WrongBackend {
            device: plan.name.clone(),
            backend,
            why: "stamp: batch would stamp completions before they are found; use exact or auto"
                .to_owned(),
        });
    }
    Ok(())
}

/// The reactors of a step.
pub(in crate::session) fn setups(
    plan: &StepPlan,
    devices: &[DeviceFacts],
    cpus: &[u32],
) -> Vec<ReactorSetup> {
    let streams_count = u32::try_from(plan.streams.len()).unwrap_or(u32::MAX);
    (0..plan.reactors_count)
        .map(|index| {
            let own = (0_u32..).zip(&plan.streams).zip(&plan.reactor_of);
            let streams =
                own.filter(|(_, reactor)| **reactor == index)
                    .map(|((number, spec), _)| StreamSetup {
                        spec: spec.clone(),
                        index: number,
                        step_streams_count: streams_count,
                        block_bytes: devices[spec.device_index as usize].logical_block.bytes(),
                    });
            ReactorSetup {
                index,
                cpu: cpus.get(index as usize).copied(),
                streams: streams.collect(),
                batch: plan.batch,
                ramp_ns: plan.limits.ramp.0,
                runtime_ns: plan.limits.runtime.map(|runtime| runtime.0),
                grace_ns: plan.limits.grace.0,
                max_errors: plan.limits.max_errors,
                stamp: plan.stamp,
            }
        })
        .collect()
}

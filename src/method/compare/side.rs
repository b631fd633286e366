//! The two sides as devices: opened, guarded, and measured window by window.

use super::claims::{functions, leased};
use super::labelled::Labelled;
use super::level::level;
use super::live::{Bench, Stop, Window};
use super::order;
use crate::backend::DeviceFacts;
use crate::config::{BackendChoice, Choices, ConfigError, Job, Plan, plan_chosen, step_json};
use crate::reactor::StopCause;
use crate::record::{Failure, Step, Warning};
use crate::session::claim::{ClaimError, Claimer, Lease};
use crate::session::guard::{Consent, Permit};
use crate::session::{
    Observer, Opened, Session, SessionError, Setup, may_prepare, never_written, permits, prepare,
};
use crate::sysfs::pci::Bdf;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// A signal is looked for this often while devices cool down.
const SIGNAL_EVERY: Duration = Duration::from_millis(50);

/// Rounds whose time is told beforehand, at most.
const ROUNDS_ANNOUNCED_COUNT: u32 = 10_000;

/// What the user named as one side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SideSpec {
    /// `A` or `B`.
    pub label: &'static str,
    /// Its devices.
    pub devices: Vec<String>,
    /// How to reach them.
    pub backend: BackendChoice,
}

impl SideSpec {
    /// As tables name it: devices, and the backend where one was asked for.
    #[must_use]
    pub fn name(&self) -> String {
        let devices = self.devices.join(" + ");
        match self.backend {
            BackendChoice::Auto => devices,
            backend => format!("{devices}@{}", backend.name()),
        }
    }

    fn names(&self) -> Vec<&str> {
        self.devices.iter().map(String::as_str).collect()
    }
}

/// What a comparison may do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Leave {
    /// Consent to write.
    pub consent: Consent,
    /// Refuse where a warning would do.
    pub strict: bool,
    /// Fill what is read, first.
    pub prepare: bool,
    /// Which steps are run. What one side leaves out, both do.
    pub choices: Choices,
}

/// Why the sides cannot be measured.
#[derive(Debug, thiserror::Error)]
pub enum SideError {
    /// The job does not fit the side.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A side cannot be opened, or must not be.
    #[error("{label}: {source}")]
    Session {
        /// The side.
        label: &'static str,
        /// Why.
        source: SessionError,
    },
    /// Its devices cannot be claimed.
    #[error("{label}: {source}")]
    Claim {
        /// The side.
        label: &'static str,
        /// Why.
        source: ClaimError,
    },
    /// No step fits both.
    #[error("no step can be run on both sides")]
    NothingCommon,
}

/// One side, ready.
pub(super) struct Side {
    pub(super) spec: SideSpec,
    pub(super) plan: Plan,
    /// Absent between windows where the sides must not be open at once.
    opened: Option<Opened>,
    permits: HashMap<String, Permit>,
    /// What permits are made of anew where devices change hands.
    consent: Consent,
    pub(super) doubts: Vec<Vec<Warning>>,
    /// About how long each step takes.
    pub(super) steps_s: Vec<f64>,
    /// The devices as the plan was made for them.
    facts: Vec<DeviceFacts>,
    /// What is taken from the kernel for each of its windows, and given back after it.
    functions: Vec<Bdf>,
}

/// Two sides on real (or simulated) devices.
pub struct Devices<'a> {
    session: &'a Session,
    claimer: Option<&'a Claimer<'a>>,
    sides: Vec<Side>,
    cool_down: Duration,
    in_turn: bool,
    observer: &'a mut dyn Observer,
    windows_count: usize,
    /// Doubts about the sides as a whole.
    pub warnings: Vec<Warning>,
}

impl<'a> Devices<'a> {
    /// Opens both sides and asks for every leave that the job needs. With a `claimer` the devices of sides that SPDK
    /// drives are the kernel's between their windows.
    ///
    /// # Errors
    /// [`SideError`]; nothing has been measured.
    pub fn open(
        session: &'a Session,
        job: &Job,
        (specs, claimer): ([SideSpec; 2], Option<&'a Claimer<'a>>),
        leave: &Leave,
        cool_down: Duration,
        seed: u64,
        observer: &'a mut dyn Observer,
    ) -> Result<Self, SideError> {
        let mut sides = Vec::new();
        let mut warnings = Vec::new();
        for spec in specs {
            let functions = functions(session, claimer, &spec)?;
            let label = spec.label;
            let unclaimed = |source| SideError::Claim { label, source };
            let lease = leased(claimer, &functions).map_err(unclaimed)?;
            let opened = open_side(session, job, spec, leave, seed, observer);
            let opened = opened.and_then(|mut side| {
                if claimer.is_some() {
                    warnings.extend(ready(&mut side, session, leave, observer)?);
                    // Let go of before it is given back.
                    side.opened = None;
                }
                side.functions = functions;
                Ok(side)
            });
            let back = lease.map_or(Ok(Vec::new()), Lease::give_back);
            let side = opened?;
            back.map_err(unclaimed)?;
            sides.push(side);
        }
        // Once both have been judged: what one side is filled for, the other must not be refused after.
        for side in sides.iter_mut().filter(|_| claimer.is_none()) {
            warnings.extend(ready(side, session, leave, observer)?);
        }
        warnings.extend(level(&mut sides));
        if sides[0].plan.steps.is_empty() {
            return Err(SideError::NothingCommon);
        }
        let in_turn = claimer.is_some() || writes_to_the_same(&sides);
        for side in &mut sides {
            let label = side.spec.label;
            let named = |source| SideError::Session { label, source };
            if in_turn {
                // Both sides may not hold one device for writing: each opens it for its own windows.
                side.opened = None;
            } else if let Some(opened) = side.opened.take() {
                side.opened = Some(writable(opened, &side.permits, session).map_err(named)?);
            }
        }
        Ok(Self {
            session,
            claimer,
            sides,
            cool_down,
            in_turn,
            observer,
            windows_count: 0,
            warnings,
        })
    }

    /// The resolved job of a side.
    #[must_use]
    pub fn plan(&self, side: usize) -> &Plan {
        &self.sides[side].plan
    }

    /// About how long one round takes, in seconds: two windows of each side and step, and what goes before them.
    #[must_use]
    pub fn round_s(&self) -> f64 {
        let side_s = |side: usize| -> f64 {
            let steps = 0..self.sides[side].plan.steps.len();
            2.0 * steps.map(|step| self.window_s(side, step)).sum::<f64>()
        };
        (0..self.sides.len()).map(side_s).sum()
    }

    /// About how long one window takes, in seconds, and what goes before it.
    fn window_s(&self, side: usize, step: usize) -> f64 {
        let pause_s = if self.is_simulated(side) {
            0.0
        } else {
            self.cool_down.as_secs_f64()
        };
        let Side { plan, steps_s, .. } = &self.sides[side];
        let own_s = steps_s.get(step).copied().unwrap_or(0.0);
        // The estimate of a step holds its own pause.
        own_s + (pause_s - plan.steps[step].cool_down.as_s()).max(0.0)
    }

    /// Tells whoever watches how many windows there are at most, and about how long each takes.
    pub fn announce(&mut self, rounds_max: u32) {
        let steps_count = self.sides[0].plan.steps.len();
        let mut windows_s = Vec::new();
        // Nobody waits for the end of more.
        for round in 0..rounds_max.min(ROUNDS_ANNOUNCED_COUNT) {
            for step in 0..steps_count {
                let sides = order(round).map(usize::from);
                windows_s.extend(sides.map(|side| self.window_s(side, step)));
            }
        }
        self.windows_count = windows_s.len();
        self.observer.planned(&windows_s);
    }

    /// Whether the devices are simulated: then there is nothing to cool down.
    fn is_simulated(&self, side: usize) -> bool {
        matches!(self.sides[side].opened, Some(Opened::Sim { .. }))
    }

    fn rest(&self, window: Window) -> Result<(), Stop> {
        let own = self.sides[window.side].plan.steps[window.step].cool_down;
        let ends = Instant::now() + self.cool_down.max(Duration::from_nanos(own.0));
        loop {
            if self.session.control.cause() >= StopCause::Signal {
                return Err(Stop::Interrupted);
            }
            let left = ends.saturating_duration_since(Instant::now());
            if left.is_zero() || window.number == 0 || self.is_simulated(window.side) {
                return Ok(());
            }
            std::thread::sleep(left.min(SIGNAL_EVERY));
        }
    }
}

impl Bench for Devices<'_> {
    fn steps(&self) -> Vec<String> {
        self.sides[0]
            .plan
            .steps
            .iter()
            .map(|step| step.name.clone())
            .collect()
    }

    fn label(&self, side: usize) -> String {
        self.sides[side].spec.label.to_owned()
    }

    fn window(&mut self, window: Window) -> Result<Step, Stop> {
        self.rest(window)?;
        let unclaimed = |error: ClaimError| {
            Stop::Unclaimed(Failure {
                kind: error.kind().to_owned(),
                text: error.to_string(),
                next_step: error.next_step(),
                exit_code: error.exit_code(),
            })
        };
        let lease = leased(self.claimer, &self.sides[window.side].functions).map_err(unclaimed)?;
        let done = self.run(window);
        if self.in_turn {
            self.sides[window.side].opened = None;
        }
        let back = lease.map_or(Ok(Vec::new()), Lease::give_back);
        let done = done?;
        back.map_err(unclaimed)?;
        Ok(done)
    }
}

impl Devices<'_> {
    fn run(&mut self, window: Window) -> Result<Step, Stop> {
        let side = &mut self.sides[window.side];
        if side.opened.is_none() {
            let is_handed = self.claimer.is_some();
            let opened = reopen(side, self.session, is_handed, self.observer);
            side.opened = Some(opened.map_err(Stop::Failed)?);
        }
        let mut step = side.plan.steps[window.step].clone();
        for stream in &mut step.streams {
            // Other places in every window: the same ones again would be answered by a cache.
            stream.seed = mixed(stream.seed, window.number);
        }
        let json = step_json(&step, &side.plan.devices);
        let number = usize::try_from(window.number).unwrap_or(usize::MAX - 1) + 1;
        let numbers = (number, self.windows_count.max(number));
        let mut observer = Labelled {
            label: format!("{}, round {}", side.spec.label, window.round + 1),
            inner: &mut *self.observer,
        };
        let opened = side.opened.as_ref().expect("opened above");
        let done = self
            .session
            .run_step(opened, &step, json, numbers, &mut observer);
        let mut done = done.map_err(Stop::Failed)?;
        done.warnings
            .extend(side.doubts.get(window.step).into_iter().flatten().cloned());
        Ok(done)
    }
}

fn open_side(
    session: &Session,
    job: &Job,
    spec: SideSpec,
    leave: &Leave,
    seed: u64,
    observer: &mut dyn Observer,
) -> Result<Side, SideError> {
    let label = spec.label;
    let named = |source| SideError::Session { label, source };
    let mut setup = Setup {
        control: &session.control,
        observer,
        dry_run: false,
    };
    let opened =
        Opened::open(&spec.names(), spec.backend, &session.sysfs, &mut setup).map_err(named)?;
    let plan = plan_chosen(job, &opened.facts(), seed, &leave.choices)?;
    let permits = permits(&plan, &opened, &leave.consent, &session.sysfs).map_err(named)?;
    if leave.prepare {
        may_prepare(&plan, &opened, &leave.consent, &session.sysfs).map_err(named)?;
    }
    let steps_s = plan.estimate.steps_s.clone();
    let facts = opened.facts();
    Ok(Side {
        spec,
        plan,
        opened: Some(opened),
        permits,
        consent: leave.consent.clone(),
        doubts: Vec::new(),
        steps_s,
        facts,
        functions: Vec::new(),
    })
}

/// Fills what an opened side reads, where asked to, and looks for what was never written; what is to be told of it.
fn ready(
    side: &mut Side,
    session: &Session,
    leave: &Leave,
    observer: &mut dyn Observer,
) -> Result<Vec<Warning>, SideError> {
    let label = side.spec.label;
    let named = |source| SideError::Session { label, source };
    let (plan, control) = (&side.plan, &session.control);
    let opened = side.opened.as_ref().expect("it has just been opened");
    let mut notes = [plan.notes.clone(), opened.notes()].concat();
    if leave.prepare {
        let filled = prepare(
            plan,
            opened,
            &leave.consent,
            &session.sysfs,
            control,
            observer,
        );
        notes.extend(filled.map_err(named)?);
    }
    side.doubts = never_written(plan, opened, leave.strict, control).map_err(named)?;
    for note in &mut notes {
        note.text = format!("{label}: {}", note.text);
    }
    Ok(notes)
}

/// Opens a side for its next window. Where the devices were handed over since, the guard judges them anew: the kernel
/// counts a disk that comes back as another, and what the other side did, or anybody, is on it now.
fn reopen(
    side: &Side,
    session: &Session,
    is_handed: bool,
    observer: &mut dyn Observer,
) -> Result<Opened, SessionError> {
    let mut setup = Setup {
        control: &session.control,
        observer,
        dry_run: false,
    };
    let opened = Opened::open(
        &side.spec.names(),
        side.spec.backend,
        &session.sysfs,
        &mut setup,
    )?;
    still_the_same(&side.facts, &opened.facts())?;
    if !is_handed {
        return writable(opened, &side.permits, session);
    }
    let anew = permits(&side.plan, &opened, &side.consent, &session.sysfs)?;
    writable(opened, &anew, session)
}

/// Whether these are the devices that the plan was made for. The kernel may give the namespaces of a controller that
/// comes back other names than before.
fn still_the_same(planned: &[DeviceFacts], now: &[DeviceFacts]) -> Result<(), SessionError> {
    for (planned, now) in planned.iter().zip(now) {
        let is_same = planned.identity == now.identity
            && planned.serial == now.serial
            && planned.path == now.path
            && (planned.capacity, planned.logical_block) == (now.capacity, now.logical_block);
        if !is_same {
            let name = |facts: &DeviceFacts| {
                let identity = facts.identity.as_ref().or(facts.serial.as_ref());
                format!(
                    "{} ({})",
                    facts.path,
                    identity.map_or("unnamed", String::as_str)
                )
            };
            return Err(SessionError::Unclear {
                device: planned.path.clone(),
                why: format!(
                    "it was {} and is {} now, since its names were given anew; name it by its address and namespace: 0000:01:00.0 ns:1",
                    name(planned),
                    name(now)
                ),
            });
        }
    }
    Ok(())
}

fn writable(
    opened: Opened,
    permits: &HashMap<String, Permit>,
    session: &Session,
) -> Result<Opened, SessionError> {
    if permits.is_empty() {
        return Ok(opened);
    }
    opened.permit_writes(permits, &session.sysfs)
}

/// Whether both sides write, to one device. Writers hold their device alone.
fn writes_to_the_same(sides: &[Side]) -> bool {
    let facts = |side: &Side| side.opened.as_ref().map(Opened::facts).unwrap_or_default();
    let others = facts(&sides[1]);
    let shares = facts(&sides[0]).iter().any(|one| {
        others.iter().any(|other| {
            let same = |a: &Option<String>, b: &Option<String>| a.is_some() && a == b;
            let is_real = !one.own_scratch && !other.own_scratch;
            is_real
                && (one.path == other.path
                    || same(&one.identity, &other.identity)
                    || same(&one.serial, &other.serial))
        })
    });
    shares && sides.iter().any(|side| !side.permits.is_empty())
}

/// The seed of a stream in a window of its own (`SplitMix64`'s finisher).
const fn mixed(seed: u64, number: u64) -> u64 {
    let mut z = seed.wrapping_add((number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
#[path = "side_tests.rs"]
mod tests;

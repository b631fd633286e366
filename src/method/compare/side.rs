//! The two sides as devices: opened, guarded, and measured window by window.

use super::live::{Bench, Stop, Window};
use crate::config::{BackendChoice, ConfigError, Job, Plan, plan, step_json};
use crate::reactor::StopCause;
use crate::record::{Step, Warning};
use crate::session::guard::{Consent, Permit};
use crate::session::{
    Observer, Opened, Session, SessionError, Setup, Snapshot, never_written, permits, prepare,
};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// A signal is looked for this often while devices cool down.
const SIGNAL_EVERY: Duration = Duration::from_millis(50);

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
}

/// One side, ready.
struct Side {
    spec: SideSpec,
    plan: Plan,
    /// Absent between windows where the sides must not be open at once.
    opened: Option<Opened>,
    permits: HashMap<String, Permit>,
    doubts: Vec<Vec<Warning>>,
}

/// Two sides on real (or simulated) devices.
pub struct Devices<'a> {
    session: &'a Session,
    sides: Vec<Side>,
    cool_down: Duration,
    in_turn: bool,
    observer: &'a mut dyn Observer,
    /// Doubts about the sides as a whole.
    pub warnings: Vec<Warning>,
}

impl<'a> Devices<'a> {
    /// Opens both sides and asks for every leave that the job needs.
    ///
    /// # Errors
    /// [`SideError`]; nothing has been measured.
    pub fn open(
        session: &'a Session,
        job: &Job,
        specs: [SideSpec; 2],
        leave: &Leave,
        cool_down: Duration,
        seed: u64,
        observer: &'a mut dyn Observer,
    ) -> Result<Self, SideError> {
        let mut sides = Vec::new();
        let mut warnings = Vec::new();
        for spec in specs {
            let (side, notes) = open_side(session, job, spec, leave, seed, observer)?;
            warnings.extend(notes);
            sides.push(side);
        }
        let in_turn = writes_to_the_same(&sides);
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
            sides,
            cool_down,
            in_turn,
            observer,
            warnings,
        })
    }

    /// The resolved job of a side.
    #[must_use]
    pub fn plan(&self, side: usize) -> &Plan {
        &self.sides[side].plan
    }

    /// Whether the devices are simulated: then there is nothing to cool down.
    fn is_simulated(&self, side: usize) -> bool {
        matches!(self.sides[side].opened, Some(Opened::Sim { .. }))
    }

    fn rest(&self, window: Window) -> Result<(), Stop> {
        let ends = Instant::now() + self.cool_down;
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
        let side = &mut self.sides[window.side];
        if side.opened.is_none() {
            let opened = reopen(side, self.session, self.observer).map_err(Stop::Failed)?;
            side.opened = Some(opened);
        }
        let mut step = side.plan.steps[window.step].clone();
        for stream in &mut step.streams {
            // Other places in every window: the same ones again would be answered by a cache.
            stream.seed = mixed(stream.seed, window.number);
        }
        let json = step_json(&step, &side.plan.devices);
        let numbers = (window.step + 1, side.plan.steps.len());
        let mut observer = Labelled {
            label: format!("{}, round {}", side.spec.label, window.round + 1),
            inner: &mut *self.observer,
        };
        let opened = side.opened.as_ref().expect("opened above");
        let done = self
            .session
            .run_step(opened, &step, json, numbers, &mut observer);
        if self.in_turn {
            side.opened = None;
        }
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
) -> Result<(Side, Vec<Warning>), SideError> {
    let label = spec.label;
    let named = |source| SideError::Session { label, source };
    let mut setup = Setup {
        control: &session.control,
        observer,
        dry_run: false,
    };
    let opened =
        Opened::open(&spec.names(), spec.backend, &session.sysfs, &mut setup).map_err(named)?;
    let plan = plan(job, &opened.facts(), seed)?;
    let permits = permits(&plan, &opened, &leave.consent, &session.sysfs).map_err(named)?;
    let mut notes = [plan.notes.clone(), opened.notes()].concat();
    if leave.prepare {
        let (sysfs, control) = (&session.sysfs, &session.control);
        let filled = prepare(&plan, &opened, &leave.consent, sysfs, control, observer);
        notes.extend(filled.map_err(named)?);
    }
    let doubts = never_written(&plan, &opened, leave.strict, &session.control).map_err(named)?;
    for note in &mut notes {
        note.text = format!("{label}: {}", note.text);
    }
    let side = Side {
        spec,
        plan,
        opened: Some(opened),
        permits,
        doubts,
    };
    Ok((side, notes))
}

fn reopen(
    side: &Side,
    session: &Session,
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
    writable(opened, &side.permits, session)
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

/// Says which side and round a snapshot belongs to.
struct Labelled<'a> {
    label: String,
    inner: &'a mut dyn Observer,
}

impl Observer for Labelled<'_> {
    fn snapshot(&mut self, now: &Snapshot) {
        let mut now = now.clone();
        now.step = format!("{}: {}", self.label, now.step);
        self.inner.snapshot(&now);
    }

    fn step_done(&mut self, step: &Step) {
        self.inner.step_done(step);
    }
}

//! Takes NVMe controllers from the kernel for SPDK, and gives them back to the driver they came from.
//!
//! Nothing is moved before everything has been looked at: what each namespace of each controller is used for,
//! its IOMMU group, the driver and its modules. What is claimed is written to a file first (see [`state`]), so
//! that [`Claimer::release`] can undo a claim whose process was killed at any point.

mod busy;
mod controller;
mod huge;
mod lease;
mod name;
mod obstacle;
mod plan;
mod state;

pub(in crate::session) use busy::{seen_driving, sees_all};
pub use controller::disks_of as namespace_disks;
pub use huge::{HugeChange, HugeError};
pub use lease::Lease;
pub use name::{BadName, claimable, function_of};
pub use obstacle::Obstacle;
pub use plan::{Claim, UserDriver};
pub use state::{Entry, Former, State, StateError, Store};

use super::guard::content::{Contents, HostContents};
use super::machine::Machine;
use crate::sysfs::bind::{BindError, Binder, HostKernel, Kernel};
use crate::sysfs::pci::{Bdf, Function};
use crate::sysfs::{Sysfs, SysfsError};
use serde::Serialize;
use std::time::{Duration, Instant};

const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Why something was not claimed or not given back.
#[derive(Debug, thiserror::Error)]
pub enum ClaimError {
    /// The name leads to no PCI function.
    #[error(transparent)]
    Name(#[from] BadName),
    /// The guard, the IOMMU or the machine is against it. Nothing was changed.
    #[error("refused to {verb} {bdf}: {reasons}", reasons = listed(obstacles))]
    Refused {
        /// `claim` or `release`.
        verb: &'static str,
        /// The device.
        bdf: Bdf,
        /// Everything that was found; never empty.
        obstacles: Vec<Obstacle>,
    },
    /// Only root can bind drivers.
    #[error("only root may {0} devices: nothing was changed; run it with sudo")]
    NotRoot(&'static str),
    /// SPDK could not drive it anyhow.
    #[error("{0}; nothing was claimed")]
    Unready(String),
    /// What is claimed cannot be remembered.
    #[error(transparent)]
    State(#[from] StateError),
    /// The kernel did not do it.
    #[error("{error}; {left}")]
    Bind {
        /// What it said.
        error: BindError,
        /// How things were left, and what to do.
        left: String,
    },
    /// Huge pages.
    #[error(transparent)]
    Huge(#[from] HugeError),
    /// The machine cannot be read.
    #[error(transparent)]
    Sysfs(#[from] SysfsError),
}

fn listed(obstacles: &[Obstacle]) -> String {
    let texts: Vec<String> = obstacles.iter().map(ToString::to_string).collect();
    texts.join("; ")
}

impl ClaimError {
    /// The exit code: 1 it failed, 2 not usable, 3 refused.
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Refused { .. } => 3,
            Self::Name(_) | Self::NotRoot(_) | Self::Unready(_) => 2,
            Self::State(_) | Self::Bind { .. } | Self::Huge(_) | Self::Sysfs(_) => 1,
        }
    }

    /// Short kind for records.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Refused { .. } => "guard",
            Self::Name(_) => "usage",
            Self::NotRoot(_) => "permission",
            Self::Unready(_) => "device",
            Self::State(_) => "claim-state",
            Self::Bind { .. } => "bind",
            Self::Huge(_) => "hugepages",
            Self::Sysfs(_) => "sysfs",
        }
    }

    /// What to do about it.
    #[must_use]
    pub fn next_step(&self) -> String {
        match self {
            Self::Refused { obstacles, .. } => {
                let mut steps: Vec<String> = obstacles.iter().map(Obstacle::next_step).collect();
                steps.dedup();
                steps.join("; ")
            }
            _ => String::new(),
        }
    }
}

/// What became of one device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Moved {
    /// Its address.
    pub bdf: String,
    /// Whether anything was, or would be, changed.
    pub changed: bool,
    /// The driver it was on.
    pub driver_before: Option<String>,
    /// The driver it is on now, or would be.
    pub driver: Option<String>,
    /// Nodes that went, or came back.
    pub nodes: Vec<String>,
    /// What else there is to know.
    pub notes: Vec<String>,
}

/// Claims and gives back.
pub struct Claimer<'a> {
    sysfs: &'a Sysfs,
    kernel: &'a dyn Kernel,
    contents: &'a dyn Contents,
    allowed: Option<String>,
    blocked: Option<String>,
}

impl<'a> Claimer<'a> {
    /// For the running machine. SPDK's `PCI_ALLOWED` and `PCI_BLOCKED` are honoured.
    #[must_use]
    pub fn new(sysfs: &'a Sysfs) -> Self {
        let word = |name: &str| {
            std::env::var(name)
                .ok()
                .filter(|text| !text.trim().is_empty())
        };
        Self {
            sysfs,
            kernel: &HostKernel,
            contents: &HostContents,
            allowed: word("PCI_ALLOWED"),
            blocked: word("PCI_BLOCKED"),
        }
    }

    /// For a machine of a test, with its kernel played and its words of the environment given.
    #[must_use]
    pub const fn played(
        sysfs: &'a Sysfs,
        kernel: &'a dyn Kernel,
        contents: &'a dyn Contents,
        allowed: Option<String>,
        blocked: Option<String>,
    ) -> Self {
        Self {
            sysfs,
            kernel,
            contents,
            allowed,
            blocked,
        }
    }

    fn binder(&self) -> Binder<'a> {
        Binder::new(self.sysfs, self.kernel)
    }

    fn must_be_root(&self, verb: &'static str) -> Result<(), ClaimError> {
        let user = crate::sysfs::host::effective_user(self.sysfs);
        if user.is_some_and(|user| user != 0) {
            return Err(ClaimError::NotRoot(verb));
        }
        Ok(())
    }

    /// Looks at everything and changes nothing: what a claim of these functions would do. `for_run`: a process
    /// that already drives one of them is in the way.
    ///
    /// # Errors
    /// [`ClaimError::Refused`] for the first function that must not be claimed.
    pub fn plan(&self, wanted: &[Bdf], for_run: bool) -> Result<Vec<Claim>, ClaimError> {
        let machine = Machine::read(self.sysfs)?;
        let state = State::peek(self.sysfs);
        let mut claims: Vec<Claim> = Vec::new();
        for bdf in wanted {
            if claims.iter().any(|claim| claim.bdf == *bdf) {
                continue;
            }
            let function =
                Function::read(self.sysfs, *bdf).map_err(|_| BadName::NoFunction { bdf: *bdf })?;
            claims.push(self.judge(&machine, &state, &function, wanted, for_run)?);
        }
        Ok(claims)
    }

    /// Claims what [`Claimer::plan`] finds fit. All are looked at before the first is moved; where one of them
    /// then fails to move, the others go back. `for_run_of`: the process that gives them back by itself.
    ///
    /// # Errors
    /// [`ClaimError`]. After anything but [`ClaimError::Bind`] nothing was changed.
    pub fn claim(&self, wanted: &[Bdf], for_run_of: Option<u32>) -> Result<Vec<Moved>, ClaimError> {
        self.must_be_root("claim")?;
        // Another lanemark that claims waits here, and then sees what we have done.
        let mut store = Store::open(self.sysfs)?;
        let claims = self.plan(wanted, for_run_of.is_some())?;
        let mut moved: Vec<Moved> = Vec::new();
        for claim in &claims {
            match self.take(&mut store, claim, for_run_of) {
                Ok(done) => moved.push(done),
                Err(error) => {
                    let mut left = Vec::new();
                    for bdf in claims.iter().map(|claim| claim.bdf) {
                        if store.state.of(bdf).is_some()
                            && let Err(error) = self.give_back(&mut store, bdf)
                        {
                            left.push(format!("{bdf} was not given back ({error})"));
                        }
                    }
                    return Err(match error {
                        ClaimError::Bind { error, .. } => ClaimError::Bind {
                            error,
                            left: if left.is_empty() {
                                "everything was given back".to_owned()
                            } else {
                                left.join("; ")
                            },
                        },
                        other => other,
                    });
                }
            }
        }
        Ok(moved)
    }

    fn take(
        &self,
        store: &mut Store,
        claim: &Claim,
        for_run_of: Option<u32>,
    ) -> Result<Moved, ClaimError> {
        let mut notes = claim.notes.clone();
        if !claim.is_new {
            notes.extend(self.adopt(store, claim.bdf, for_run_of)?);
            return Ok(claim.moved(false, notes));
        }
        let binder = self.binder();
        let failed = |error: BindError| ClaimError::Bind {
            error,
            left: String::new(),
        };
        // Remembered before it is done: whoever is killed in between can be cleaned up after.
        store.state.forget(claim.bdf);
        store.state.claims.push(Entry {
            bdf: claim.bdf.to_string(),
            driver_before: claim.driver_before.clone(),
            override_before: claim.override_before.clone(),
            driver: claim.driver.name().to_owned(),
            boot: state::boot(self.sysfs),
            for_run_of,
            namespaces: claim.namespaces.clone(),
        });
        store.save()?;
        for module in claim.driver.modules() {
            if !binder.has_module(module) {
                binder.load_module(module).map_err(|why| {
                    store.state.forget(claim.bdf);
                    // Nothing was moved: what cannot be written now is stale at the next look.
                    let _ = store.save();
                    ClaimError::Refused {
                        verb: "claim",
                        bdf: claim.bdf,
                        obstacles: vec![Obstacle::Module { name: module, why }],
                    }
                })?;
                notes.push(format!("loaded module {module}"));
            }
        }
        binder
            .move_to(claim.bdf, claim.driver.name())
            .map_err(failed)?;
        Ok(claim.moved(true, notes))
    }

    /// A function that is on a user-space driver already. What a killed run has left is ours to give back now.
    fn adopt(
        &self,
        store: &mut Store,
        bdf: Bdf,
        for_run_of: Option<u32>,
    ) -> Result<Option<String>, ClaimError> {
        let sysfs = self.sysfs;
        let known = |entry: &&mut Entry| entry.address() == Some(bdf);
        let Some(entry) = store.state.claims.iter_mut().find(known) else {
            return Ok(Some(
                "lanemark did not bind it, and does not give it back by itself".to_owned(),
            ));
        };
        let Some(owner) = entry
            .for_run_of
            .filter(|owner| !busy::is_alive(sysfs, *owner))
        else {
            return Ok(None);
        };
        entry.for_run_of = for_run_of;
        store.save()?;
        Ok(Some(format!(
            "process {owner} had claimed it for a run and was killed"
        )))
    }

    /// Gives functions back to the drivers they came from; all that are remembered where `wanted` is `None`.
    ///
    /// # Errors
    /// [`ClaimError`]: the first that could not be given back. Those before it were, those after it were not
    /// tried where names were given; with `None` all are tried.
    pub fn release(&self, wanted: Option<&[Bdf]>) -> Result<Vec<Moved>, ClaimError> {
        self.must_be_root("release")?;
        let mut store = Store::open(self.sysfs)?;
        let all = match wanted {
            Some(wanted) => wanted.to_vec(),
            None => store
                .state
                .claims
                .iter()
                .filter_map(Entry::address)
                .collect(),
        };
        let mut moved = Vec::new();
        let mut failed = None;
        for bdf in all {
            match self.give_back(&mut store, bdf) {
                Ok(done) => moved.push(done),
                Err(error) if wanted.is_some() => return Err(error),
                Err(error) => {
                    failed.get_or_insert(error);
                }
            }
        }
        failed.map_or(Ok(moved), Err)
    }

    /// What [`Claimer::release`] would do, without doing it.
    ///
    /// # Errors
    /// [`ClaimError`].
    pub fn plan_release(&self, wanted: Option<&[Bdf]>) -> Result<Vec<Moved>, ClaimError> {
        let state = State::peek(self.sysfs);
        let all = match wanted {
            Some(wanted) => wanted.to_vec(),
            None => state.claims.iter().filter_map(Entry::address).collect(),
        };
        all.into_iter()
            .map(|bdf| self.look_back(&state, bdf))
            .collect()
    }

    /// How a function stands, and where it would go.
    fn look_back(&self, state: &State, bdf: Bdf) -> Result<Moved, ClaimError> {
        let binder = self.binder();
        let entry = state.of(bdf);
        let now = binder.driver(bdf);
        let mut moved = Moved {
            bdf: bdf.to_string(),
            changed: false,
            driver_before: now.clone(),
            driver: now.clone(),
            nodes: Vec::new(),
            notes: Vec::new(),
        };
        if Function::read(self.sysfs, bdf).is_err() {
            if entry.is_none() {
                return Err(BadName::NoFunction { bdf }.into());
            }
            moved
                .notes
                .push("it is not there any more: forgotten".to_owned());
            return Ok(moved);
        }
        let is_user_space = now.as_deref().is_some_and(UserDriver::is_name);
        match (entry, is_user_space) {
            (None, false) => moved
                .notes
                .push("it is not claimed: nothing to do".to_owned()),
            (Some(_), false) if now.is_some() && now.as_deref() != entry_driver(entry) => {
                moved.notes.push(format!(
                    "it is on {} already",
                    now.as_deref().unwrap_or_default()
                ));
            }
            (entry, _) => {
                if let Some(obstacle) = busy::driven(self.sysfs, bdf) {
                    return Err(ClaimError::Refused {
                        verb: "release",
                        bdf,
                        obstacles: vec![obstacle],
                    });
                }
                moved.changed = true;
                moved.driver = entry.and_then(|entry| entry.driver_before.clone());
                if entry.is_none() {
                    moved
                        .notes
                        .push("lanemark did not bind it: the kernel chooses its driver".to_owned());
                }
            }
        }
        Ok(moved)
    }

    fn give_back(&self, store: &mut Store, bdf: Bdf) -> Result<Moved, ClaimError> {
        let mut moved = self.look_back(&store.state, bdf)?;
        let binder = self.binder();
        let entry = store.state.of(bdf).cloned();
        let is_there = Function::read(self.sysfs, bdf).is_ok();
        if moved.changed {
            self.bind_back(bdf, entry.as_ref(), &mut moved)
                .map_err(|error| ClaimError::Bind {
                    error,
                    left: format!("{bdf} is still remembered as claimed: try again"),
                })?;
        } else if let Some(entry) = entry.as_ref().filter(|_| is_there) {
            // Somebody has moved it already: only what we reserved it for is ours to undo.
            let reserved = binder.reserved_for(bdf).ok().flatten();
            let ours = [Some(entry.driver.as_str()), entry.driver_before.as_deref()];
            if reserved.is_some() && ours.contains(&reserved.as_deref()) {
                let _ = binder.reserve_for(bdf, entry.override_before.as_deref());
            }
        }
        if entry.is_some() {
            store.state.forget(bdf);
            store.save()?;
        }
        if store.state.claims.is_empty() {
            moved
                .notes
                .extend(huge::give_back(self.sysfs, &binder, store)?);
        }
        Ok(moved)
    }

    fn bind_back(
        &self,
        bdf: Bdf,
        entry: Option<&Entry>,
        moved: &mut Moved,
    ) -> Result<(), BindError> {
        let binder = self.binder();
        let before = entry.and_then(|entry| entry.override_before.as_deref());
        match entry.and_then(|entry| entry.driver_before.as_deref()) {
            Some(driver) => {
                if !binder.is_loaded(driver) && binder.load_module(driver).is_ok() {
                    moved.notes.push(format!("loaded module {driver}"));
                }
                binder.move_to(bdf, driver)?;
                binder.reserve_for(bdf, before)?;
            }
            // It came from no driver.
            None if entry.is_some() => {
                binder.unbind(bdf)?;
                binder.reserve_for(bdf, before)?;
            }
            None => {
                binder.reserve_for(bdf, None)?;
                binder.unbind(bdf)?;
                binder.probe(bdf)?;
            }
        }
        moved.driver = binder.driver(bdf);
        let asked: Vec<String> = entry
            .iter()
            .flat_map(|entry| &entry.namespaces)
            .filter_map(|former| Some(former.paths.first()?.display().to_string()))
            .collect();
        if moved.driver.as_deref() == Some("nvme") {
            moved.nodes = self.wait_for_nodes(bdf, asked.len());
            if moved.nodes.len() < asked.len() {
                moved.notes.push(format!(
                    "{} of its {} namespaces came back within {} s: see dmesg",
                    moved.nodes.len(),
                    asked.len(),
                    self.kernel.patience().as_secs()
                ));
            }
        }
        Ok(())
    }

    /// The nodes of a function, once there are as many as there were.
    fn wait_for_nodes(&self, bdf: Bdf, count: usize) -> Vec<String> {
        let deadline = Instant::now() + self.kernel.patience();
        loop {
            let nodes = self.nodes(bdf).unwrap_or_default();
            if nodes.len() >= count || Instant::now() >= deadline {
                return nodes;
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    fn nodes(&self, bdf: Bdf) -> Result<Vec<String>, SysfsError> {
        let machine = Machine::read(self.sysfs)?;
        let function = Function::read(self.sysfs, bdf)?;
        let disks = controller::disks_of(&machine, &function);
        Ok(disks
            .iter()
            .filter(|disk| disk.dev.is_some())
            .map(|disk| machine.node_path(&disk.name))
            .filter(|node| self.sysfs.locate(node).exists())
            .map(|node| node.display().to_string())
            .collect())
    }
}

fn entry_driver(entry: Option<&Entry>) -> Option<&str> {
    entry.map(|entry| entry.driver.as_str())
}

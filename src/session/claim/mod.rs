//! Takes NVMe controllers from the kernel for SPDK, and gives them back to the driver they came from.
//!
//! Nothing is moved before everything has been looked at: what each namespace of each controller is used for,
//! its IOMMU group, the driver and its modules. What is claimed is written to a file first (see `state`), so
//! that [`Claimer::release`] can undo a claim whose process was killed at any point.

mod busy;
mod controller;
mod host_kernel;
mod huge;
mod lease;
mod name;
mod obstacle;
mod plan;
mod release;
mod renamed;
mod state;

pub(in crate::session) use busy::{seen_driving, sees_all};
pub use controller::disks_of as namespace_disks;
pub use huge::{HugeChange, HugeError};
pub use lease::Lease;
pub use name::{BadName, claimable, function_of};
pub use obstacle::Obstacle;
pub use plan::{Claim, UserDriver};
pub use renamed::Renamed;
pub use state::{Entry, Former, State, StateError, Store, Told};

use super::guard::content::{Contents, HostContents};
use super::machine::Machine;
use crate::sysfs::bind::{BindError, Binder, Kernel};
use crate::sysfs::pci::{Bdf, Function};
use crate::sysfs::{Sysfs, SysfsError};
use host_kernel::HostKernel;
use serde::Serialize;

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
    /// Namespaces that have come back under another name, or whose name another device has now.
    pub renamed: Vec<Renamed>,
    /// What else there is to know.
    pub notes: Vec<String>,
    /// Its namespaces as they were before the claim, once it was given back.
    #[serde(skip)]
    former: Vec<Former>,
}

/// Claims and gives back.
pub struct Claimer<'a> {
    sysfs: &'a Sysfs,
    kernel: &'a dyn Kernel,
    contents: &'a dyn Contents,
    allowed: Option<String>,
    blocked: Option<String>,
    told: Told<'a>,
}

impl<'a> Claimer<'a> {
    /// For the running machine. SPDK's `PCI_ALLOWED` and `PCI_BLOCKED` are honoured. Of a wait for others who claim
    /// or give back it is `told`.
    #[must_use]
    pub fn new(sysfs: &'a Sysfs, told: Told<'a>) -> Self {
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
            told,
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
            told: &|_| (),
        }
    }

    /// With another who is told of waits.
    #[must_use]
    pub fn telling(self, told: Told<'a>) -> Self {
        Self { told, ..self }
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
        let mut store = Store::open(self.sysfs, self.told)?;
        let claims = self.plan(wanted, for_run_of.is_some())?;
        let mut moved: Vec<Moved> = Vec::new();
        for claim in &claims {
            match self.take(&mut store, claim, for_run_of) {
                Ok(done) => moved.push(done),
                Err(error) => return Err(self.undo(&mut store, &claims, claim.bdf, error)),
            }
        }
        Ok(moved)
    }

    /// Gives back what was claimed before `failed` failed.
    fn undo(
        &self,
        store: &mut Store,
        claims: &[Claim],
        failed: Bdf,
        error: ClaimError,
    ) -> ClaimError {
        let is_stuck = matches!(
            error,
            ClaimError::Bind {
                error: BindError::Stuck { .. },
                ..
            }
        );
        let (mut left, mut back) = (Vec::new(), Vec::new());
        for bdf in claims.iter().map(|claim| claim.bdf) {
            if store.state.of(bdf).is_none() {
                continue;
            }
            if is_stuck && bdf == failed {
                // Where it will end nobody knows yet.
                left.push(format!(
                    "{bdf} is still remembered as claimed: lanemark release {bdf} once the kernel is done"
                ));
            } else {
                match self.give_back(store, bdf) {
                    Ok(moved) => back.push(moved),
                    Err(error) => left.push(format!("{bdf} was not given back ({error})")),
                }
            }
        }
        if left.is_empty() {
            left.push("everything was given back".to_owned());
        }
        self.look_for_names(&mut back);
        let renamed = back.iter().flat_map(|moved| &moved.renamed);
        left.extend(renamed.filter_map(|one| one.danger().or_else(|| one.line())));
        match error {
            ClaimError::Bind { error, .. } => ClaimError::Bind {
                error,
                left: left.join("; "),
            },
            other => other,
        }
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
        let earlier = store.state.of(claim.bdf).cloned();
        store.state.forget(claim.bdf);
        let entry = self.entry_of(claim, for_run_of, earlier.as_ref());
        store.state.claims.push(entry);
        store.save()?;
        for module in claim.driver.modules() {
            if !binder.has_module(module) {
                binder.load_module(module).map_err(|why| {
                    store.state.forget(claim.bdf);
                    store.state.claims.extend(earlier.clone());
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

    /// What is to be remembered of a claim. What an earlier one has remembered and never finished stands: the
    /// device may be on no driver since, and reserved for ours.
    fn entry_of(&self, claim: &Claim, for_run_of: Option<u32>, earlier: Option<&Entry>) -> Entry {
        let mut entry = Entry {
            bdf: claim.bdf.to_string(),
            driver_before: claim.driver_before.clone(),
            override_before: claim.override_before.clone(),
            driver: claim.driver.name().to_owned(),
            boot: state::boot(self.sysfs),
            for_run_of,
            namespaces: claim.namespaces.clone(),
        };
        let Some(earlier) = earlier else {
            return entry;
        };
        entry.override_before.clone_from(&earlier.override_before);
        if earlier.driver_before.is_some() {
            entry.driver_before.clone_from(&earlier.driver_before);
        }
        // A driver that lets go takes them away one by one.
        if entry.namespaces.len() < earlier.namespaces.len() {
            entry.namespaces.clone_from(&earlier.namespaces);
        }
        entry
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
}

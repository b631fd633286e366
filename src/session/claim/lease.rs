//! Claims for the time of one run.

use super::{ClaimError, Claimer, Entry, Moved, State, busy};
use crate::spdk::preflight;
use crate::sysfs::pci::Bdf;
use std::time::{Duration, Instant};

/// The process that used a device has let go of it within this.
const LET_GO: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// What was claimed for one run. Given back when dropped, if not before.
#[must_use]
pub struct Lease<'c> {
    claimer: &'c Claimer<'c>,
    moved: Vec<Moved>,
    owned: Vec<Bdf>,
}

impl std::fmt::Debug for Lease<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lease")
            .field("owned", &self.owned)
            .finish_non_exhaustive()
    }
}

impl Claimer<'_> {
    /// Claims functions for a run of this process. Those that were claimed before stay so when it ends.
    ///
    /// # Errors
    /// [`ClaimError::Unready`] where SPDK could not drive them anyhow, before anything is moved, and those of
    /// [`Claimer::claim`].
    pub fn lease(&self, wanted: &[Bdf]) -> Result<Lease<'_>, ClaimError> {
        // What must not be comes before what could be helped.
        self.plan(wanted, true)?;
        if let Some(why) = crate::spdk::absent() {
            return Err(ClaimError::Unready(format!("built without SPDK: {why}")));
        }
        preflight::check_hugepages(self.sysfs, 0)
            .map_err(|error| ClaimError::Unready(error.to_string()))?;
        let own = std::process::id();
        let moved = self.claim(wanted, Some(own))?;
        let state = State::peek(self.sysfs);
        let is_ours =
            |bdf: &&Bdf| (state.of(**bdf)).is_some_and(|entry| entry.for_run_of == Some(own));
        Ok(Lease {
            claimer: self,
            moved,
            owned: wanted.iter().filter(is_ours).copied().collect(),
        })
    }
}

impl Claimer<'_> {
    /// Gives back what a process that can no longer do so has claimed for its run, one after the other; nothing
    /// where it has left nothing.
    ///
    /// # Errors
    /// [`ClaimError`] of the first that could not be given back; the others were.
    pub fn release_of(&self, owner: u32) -> Result<Vec<Moved>, ClaimError> {
        let state = State::peek(self.sysfs);
        let left = state.claims.iter().filter(|entry| entry.is_of(owner));
        let left: Vec<Bdf> = left.filter_map(Entry::address).collect();
        let mut moved = each(left, |bdf| {
            self.wait_until_let_go(bdf);
            self.release_if(bdf, |entry| entry.is_of(owner))
        })?;
        self.look_for_names(&mut moved);
        Ok(moved)
    }

    fn wait_until_let_go(&self, bdf: Bdf) {
        let deadline = Instant::now() + LET_GO;
        while busy::driven(self.sysfs, bdf).is_some() && Instant::now() < deadline {
            std::thread::sleep(LOOK_EVERY);
        }
    }
}

/// All of them, whatever becomes of one; the first error, if there was one.
fn each(
    devices: Vec<Bdf>,
    back: impl Fn(Bdf) -> Result<Vec<Moved>, ClaimError>,
) -> Result<Vec<Moved>, ClaimError> {
    let mut moved = Vec::new();
    let mut failed = None;
    for bdf in devices {
        match back(bdf) {
            Ok(done) => moved.extend(done),
            Err(error) => {
                failed.get_or_insert(error);
            }
        }
    }
    failed.map_or(Ok(moved), Err)
}

impl<'c> Lease<'c> {
    /// Nothing.
    pub const fn none(claimer: &'c Claimer<'c>) -> Self {
        Self {
            claimer,
            moved: Vec::new(),
            owned: Vec::new(),
        }
    }

    /// What was done.
    #[must_use]
    pub fn moved(&self) -> &[Moved] {
        &self.moved
    }

    /// Whether there is nothing to give back.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.owned.is_empty()
    }

    /// Gives everything back.
    ///
    /// # Errors
    /// [`ClaimError`] of the first that could not be given back; the others were.
    pub fn give_back(mut self) -> Result<Vec<Moved>, ClaimError> {
        self.back()
    }

    fn back(&mut self) -> Result<Vec<Moved>, ClaimError> {
        let mut moved = each(std::mem::take(&mut self.owned), |bdf| {
            self.claimer.wait_until_let_go(bdf);
            self.claimer.release(Some(&[bdf]))
        })?;
        self.claimer.look_for_names(&mut moved);
        Ok(moved)
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        // A panic is on its way out; what cannot be given back stays in the state file.
        let _ = self.back();
    }
}

//! Giving devices back to the drivers they came from.

use super::busy;
use super::controller;
use super::huge;
use super::name::BadName;
use super::plan::UserDriver;
use super::state::{Entry, State, Store};
use super::{ClaimError, Claimer, Moved};
use crate::sysfs::bind::BindError;
use crate::sysfs::pci::{Bdf, Function};
use crate::sysfs::{BlockDev, SysfsError};
use std::time::{Duration, Instant};

const LOOK_EVERY: Duration = Duration::from_millis(20);

impl Claimer<'_> {
    /// Gives functions back to the drivers they came from; all that are remembered where `wanted` is `None`.
    ///
    /// # Errors
    /// [`ClaimError`]: the first that could not be given back. Those before it were, those after it were not
    /// tried where names were given; with `None` all are tried.
    pub fn release(&self, wanted: Option<&[Bdf]>) -> Result<Vec<Moved>, ClaimError> {
        self.must_be_root("release")?;
        let mut store = Store::open_to_give_back(self.sysfs, self.told)?;
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
        self.look_for_names(&mut moved);
        failed.map_or(Ok(moved), Err)
    }

    /// Gives one back if its entry is still such a one, which others may change until the state is held.
    pub(super) fn release_if(
        &self,
        bdf: Bdf,
        is_wanted: impl FnOnce(&Entry) -> bool,
    ) -> Result<Vec<Moved>, ClaimError> {
        self.must_be_root("release")?;
        let mut store = Store::open_to_give_back(self.sysfs, self.told)?;
        if store.state.of(bdf).is_some_and(is_wanted) {
            return Ok(vec![self.give_back(&mut store, bdf)?]);
        }
        Ok(Vec::new())
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
            renamed: Vec::new(),
            notes: Vec::new(),
            former: Vec::new(),
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

    pub(super) fn give_back(&self, store: &mut Store, bdf: Bdf) -> Result<Moved, ClaimError> {
        let mut moved = self.look_back(&store.state, bdf)?;
        let binder = self.binder();
        let entry = store.state.of(bdf).cloned();
        let is_there = Function::read(self.sysfs, bdf).is_ok();
        let kept = |error| ClaimError::Bind {
            error,
            left: format!("{bdf} is still remembered as claimed: try again"),
        };
        if moved.changed {
            self.bind_back(bdf, entry.as_ref(), &mut moved)
                .map_err(kept)?;
        } else if let Some(entry) = entry.as_ref().filter(|_| is_there) {
            // Somebody has moved it already: only what we reserved it for is ours to undo.
            let reserved = binder.reserved_for(bdf).map_err(kept)?;
            let ours = [Some(entry.driver.as_str()), entry.driver_before.as_deref()];
            if reserved.is_some() && ours.contains(&reserved.as_deref()) {
                // A claim whose unbinding has hung: it may still be taken from the driver that has it.
                binder
                    .reserve_for(bdf, entry.override_before.as_deref())
                    .map_err(kept)?;
            }
            // That has waited for the driver if it was still at work: it may have let go, or failed to start.
            moved = self.look_back(&store.state, bdf)?;
            if moved.changed {
                self.bind_back(bdf, Some(entry), &mut moved).map_err(kept)?;
            }
        }
        if let Some(entry) = entry {
            store.state.forget(bdf);
            store.save()?;
            moved.former = entry.namespaces;
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
        // Asked again and again: not the whole machine.
        let (blocks, _) = BlockDev::all(self.sysfs)?;
        let function = Function::read(self.sysfs, bdf)?;
        let disks = controller::disks_among(&blocks, &function);
        Ok(disks
            .iter()
            .filter(|disk| disk.dev.is_some())
            .map(|disk| self.sysfs.dev(&disk.name))
            .filter(|node| node.exists())
            .map(|node| self.sysfs.shown(&node).display().to_string())
            .collect())
    }
}

fn entry_driver(entry: Option<&Entry>) -> Option<&str> {
    entry.map(|entry| entry.driver.as_str())
}

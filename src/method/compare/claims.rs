//! What a side takes from the kernel for its windows, and gives back.

use super::side::{SideError, SideSpec};
use crate::config::BackendChoice;
use crate::session::Session;
use crate::session::claim::{ClaimError, Claimer, Lease, State, function_of};
use crate::session::machine::Machine;
use crate::sysfs::pci::Bdf;

/// The functions of the devices that SPDK drives on this side; none where nothing is claimed.
pub(super) fn functions(
    session: &Session,
    claimer: Option<&Claimer<'_>>,
    spec: &SideSpec,
) -> Result<Vec<Bdf>, SideError> {
    if claimer.is_none() || spec.backend != BackendChoice::Spdk {
        return Ok(Vec::new());
    }
    let label = spec.label;
    let failed = |source| SideError::Claim { label, source };
    let machine = Machine::read(&session.sysfs).map_err(|error| failed(error.into()))?;
    let state = State::peek(&session.sysfs);
    let of = |name: &String| function_of(&machine, &state, name);
    let all: Result<Vec<Bdf>, _> = spec.devices.iter().map(of).collect();
    all.map_err(|error| failed(error.into()))
}

/// Takes these functions from the kernel.
pub(super) fn leased<'c>(
    claimer: Option<&'c Claimer<'c>>,
    functions: &[Bdf],
) -> Result<Option<Lease<'c>>, ClaimError> {
    match claimer.filter(|_| !functions.is_empty()) {
        Some(claimer) => claimer.lease(functions).map(Some),
        None => Ok(None),
    }
}

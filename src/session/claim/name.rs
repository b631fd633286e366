//! From what a user calls a device to its PCI function: the address itself, a transport ID, any node or link, and
//! the nodes that a claimed device had before.

use super::state::State;
use crate::session::device::identity::{IdentityError, Target, pci_address, resolve};
use crate::session::machine::Machine;
use crate::spdk::TransportId;
use crate::sysfs::pci::Bdf;
use std::path::Path;

/// Why a name leads to no PCI function that could be claimed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadName {
    /// No such function.
    #[error("{bdf}: no such PCI device; lanemark devices lists them")]
    NoFunction {
        /// The address.
        bdf: Bdf,
    },
    /// It is reached otherwise.
    #[error("{name}: {what} needs no claim; name a PCI address or an NVMe device's node")]
    NoNeed {
        /// The name.
        name: String,
        /// What it is.
        what: &'static str,
    },
    /// It hangs on no PCI function.
    #[error(
        "{name}: it hangs on no PCI device; only NVMe controllers on PCI Express can be claimed"
    )]
    NoPci {
        /// The name.
        name: String,
    },
    /// A multipath head over several controllers.
    #[error("{name}: it is reached through {functions}: name the one to claim")]
    Several {
        /// The name.
        name: String,
        /// Their addresses.
        functions: String,
    },
    /// It leads nowhere.
    #[error(transparent)]
    Path(#[from] IdentityError),
}

/// Whether a device's name may be one that can be claimed, by its form: an address or a path, and not `null`,
/// `scratch` or a network's transport ID.
#[must_use]
pub fn claimable(name: &str) -> bool {
    if TransportId::looks_like_one(name) {
        return name
            .parse::<TransportId>()
            .is_ok_and(|id| id.bdf().is_some());
    }
    name.starts_with('/')
}

/// What no kernel's driver holds, by its name.
fn without_driver(name: &str) -> Option<&'static str> {
    let word = name.split(':').next()?;
    Some(match word {
        "null" => "the null device",
        "sim" => "a simulated device",
        "scratch" => "a scratch file",
        _ => return None,
    })
}

/// The function that a name means.
///
/// # Errors
/// [`BadName`].
pub fn function_of(machine: &Machine<'_>, state: &State, name: &str) -> Result<Bdf, BadName> {
    if let Some(bdf) = Bdf::parse_typed(name) {
        return Ok(bdf);
    }
    if TransportId::looks_like_one(name) {
        let id = name.parse::<TransportId>().ok();
        let bdf = id.and_then(|id| Bdf::parse(&id.address));
        return bdf.ok_or(BadName::NoNeed {
            name: name.to_owned(),
            what: "a device of the network",
        });
    }
    if let Some(what) = without_driver(name) {
        let name = name.to_owned();
        return Err(BadName::NoNeed { name, what });
    }
    let path = Path::new(name);
    let device = match resolve(machine, path) {
        Ok(Target::Device(device)) => device,
        Ok(Target::File(_)) => {
            return Err(BadName::NoNeed {
                name: name.to_owned(),
                what: "a file",
            });
        }
        // Claimed already, its nodes are gone.
        Err(error) => {
            return match state.by_former_path(path) {
                Some((bdf, _)) => Ok(bdf),
                None => Err(error.into()),
            };
        }
    };
    let mut functions: Vec<String> = device.disks.iter().filter_map(pci_address).collect();
    functions.sort();
    functions.dedup();
    match functions.as_slice() {
        [only] => Bdf::parse(only).ok_or(BadName::NoPci {
            name: name.to_owned(),
        }),
        [] => Err(BadName::NoPci {
            name: name.to_owned(),
        }),
        several => Err(BadName::Several {
            name: name.to_owned(),
            functions: several.join(" and "),
        }),
    }
}

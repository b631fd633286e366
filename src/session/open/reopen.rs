//! What is written past its block node is opened again with the guard's leave, while the block node is held.

use super::hold::hold;
use crate::backend::Device;
use crate::session::SessionError;
use crate::session::guard::{Guard, Permit};
use crate::sysfs::Sysfs;
use std::collections::HashMap;
use std::fs::File;
use std::path::Path;

/// Puts in the place of each device that has a permit what `open` makes of its name, its path and the held block
/// nodes.
///
/// # Errors
/// [`SessionError`] naming the device: the guard has changed its mind, or somebody holds the node.
pub(in crate::session) fn reopen<D: Device>(
    devices: &mut [D],
    permits: &HashMap<String, Permit>,
    sysfs: &Sysfs,
    open: impl Fn(&str, &Path, Vec<File>) -> Result<D, SessionError>,
) -> Result<(), SessionError> {
    for device in devices {
        let name = device.facts().path.clone();
        let Some(permit) = permits.get(&name) else {
            continue;
        };
        // Held first: what begins to use it after the second look is kept out.
        let held = hold(permit, sysfs)?;
        Guard::new(sysfs).again(permit)?;
        *device = open(&name, permit.path(), held)?;
    }
    Ok(())
}

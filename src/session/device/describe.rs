//! What the session knows of a device beyond its node: its identity, and what uses it.

use super::identity::{Device, Identity, Target};
use super::overlap::share_bytes;
use crate::backend::DeviceFacts;
use crate::session::guard::in_use_as_seen;
use crate::session::machine::Seen;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Whether two paths lead to one file, one node, two nodes of the same identity, or to the same bytes by way of a
/// partition or a loop device.
pub(in crate::session) fn same_device(seen: &Seen<'_>, one: &str, other: &str) -> bool {
    let node = |path: &str| {
        let meta = std::fs::metadata(path).ok()?;
        let is_file = meta.is_file();
        Some(if is_file {
            (true, meta.dev(), meta.ino())
        } else {
            (false, 0, meta.rdev())
        })
    };
    if node(one).is_some_and(|id| node(other) == Some(id)) {
        return true;
    }
    if share_bytes(seen, one, other) {
        return true;
    }
    let device = |path: &str| match seen.target(Path::new(path)) {
        Ok(Target::Device(device)) => Some(device),
        _ => None,
    };
    let (Some(one), Some(other)) = (device(one), device(other)) else {
        return false;
    };
    // Partitions of one disk share its identity but not their blocks, which were compared above.
    let whole = one.part.is_none() && other.part.is_none();
    let disk = |device: &Device| device.disks.first().map(|disk| disk.name.clone());
    let same_disk = disk(&one).is_some() && disk(&one) == disk(&other);
    whole && (same_disk || one.identity.is_surely(&other.identity))
}

/// Adds what the session knows beyond the node: its name, identity, and what uses it.
pub(in crate::session) fn describe(facts: &mut DeviceFacts, name: &str, seen: &Seen<'_>) {
    let path = Path::new(name);
    let identity = match seen.target(path) {
        Ok(Target::Device(device)) => device.identity,
        // A file, or what has no world-wide identity.
        _ => Identity::default(),
    };
    name.clone_into(&mut facts.path);
    facts.in_use = in_use_as_seen(seen, path);
    // A serial number alone is told as such; one with a namespace ID names a device.
    facts.identity = match identity.nsid {
        Some(_) => identity.best(),
        None => identity.world_wide_name().map(str::to_owned),
    };
    facts.model = identity.model.or(facts.model.take());
    facts.serial = identity.serial.or(facts.serial.take());
    facts.firmware = identity.firmware.or(facts.firmware.take());
}

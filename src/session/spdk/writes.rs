//! Leave to write to a namespace that SPDK drives: consent by name, signatures read through SPDK itself, and the
//! kernel's word where it has the same namespace too.

use super::blocks::Content;
use crate::backend::spdk::SpdkDevice;
use crate::backend::{Device, DeviceFacts};
use crate::session::SessionError;
use crate::session::device::identity::Identity;
use crate::session::guard::{Consent, Guard, Intent, Permit};
use crate::session::machine::Machine;
use crate::spdk::{NamespaceChoice, TransportId};
use crate::sysfs::Sysfs;

/// The guard's word on one of the devices of a run.
///
/// # Errors
/// [`SessionError::Guard`] with everything that was found; [`SessionError::Refused`] where the kernel drives the
/// same namespace.
pub(in crate::session) fn permit(
    devices: &[SpdkDevice],
    index: usize,
    consent: &Consent,
    intent: Intent,
    sysfs: &Sysfs,
) -> Result<Permit, SessionError> {
    let device = &devices[index];
    let facts = device.facts();
    if let Some(twin) = kernel_twin(facts, sysfs) {
        return Err(SessionError::Refused {
            device: facts.path.clone(),
            why: format!(
                "the kernel has the same namespace as {twin}, which may be in use: name that node instead, \
                 or disconnect it"
            ),
        });
    }
    let same_serial = devices
        .iter()
        .filter(|other| other.facts().serial == facts.serial);
    let serial = facts.serial.as_deref().filter(|_| same_serial.count() == 1);
    let alone = devices
        .iter()
        .filter(|other| other.controller().name() == device.controller().name())
        .count()
        == 1;
    let consent = Consent {
        allow_write: consent
            .allow_write
            .iter()
            .map(|word| full_name(&known_now(word, sysfs), &facts.path, alone))
            .collect(),
        ..consent.clone()
    };
    let content = Content::open(device)?;
    let word = Guard::check_unlisted(&facts.path, serial, &content, &consent, intent);
    content.close();
    Ok(word?)
}

/// The node that a claimed device had before is gone; it still names the device.
fn known_now(word: &str, sysfs: &Sysfs) -> String {
    crate::session::device::auto::claimed(std::path::Path::new(word), sysfs)
        .unwrap_or_else(|| word.to_owned())
}

/// A word of consent as the device's own name, where it is another spelling of it.
fn full_name(word: &str, path: &str, alone: bool) -> String {
    let same = || {
        let (given, device) = (
            word.parse::<TransportId>().ok()?,
            path.parse::<TransportId>().ok()?,
        );
        let namespace = match given.namespace {
            NamespaceChoice::Only => alone,
            NamespaceChoice::All => true,
            chosen @ NamespaceChoice::Id(_) => chosen == device.namespace,
        };
        (namespace && given.controller_text() == device.controller_text()).then(|| path.to_owned())
    };
    same().unwrap_or_else(|| word.to_owned())
}

/// A disk of the kernel's with the same world-wide name.
fn kernel_twin(facts: &DeviceFacts, sysfs: &Sysfs) -> Option<String> {
    let own = facts.identity.as_deref()?;
    let machine = Machine::read(sysfs).ok()?;
    let is_twin = |identity: &Identity| {
        identity
            .world_wide_name()
            .is_some_and(|name| name.eq_ignore_ascii_case(own))
    };
    let twin = machine
        .disks()
        .find(|disk| Identity::of_disk(disk).is_ok_and(|identity| is_twin(&identity)))?;
    Some(machine.node_path(&twin.name).display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consent_may_spell_the_same_controller_in_another_way_and_never_another_namespace() {
        let path = "trtype:TCP adrfam:IPv4 traddr:127.0.0.1 trsvcid:4420 subnqn:x ns:1";
        let short = "trtype:tcp traddr:127.0.0.1 trsvcid:4420 subnqn:x";
        assert_eq!(full_name(short, path, true), path);
        assert_eq!(full_name(short, path, false), short);
        assert_eq!(full_name(&format!("{short} ns:1"), path, false), path);
        assert_eq!(full_name(&format!("{short} ns:all"), path, false), path);
        assert_ne!(full_name(&format!("{short} ns:2"), path, true), path);
        assert_ne!(full_name(&short.replace("4420", "4421"), path, true), path);
        assert_eq!(full_name("SERIAL", path, true), "SERIAL");
        assert_eq!(
            full_name("01:00.0", "0000:01:00.0 ns:1", true),
            "0000:01:00.0 ns:1"
        );
    }
}

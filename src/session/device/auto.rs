//! What a device's name means, and why a backend drives it: one device named by any of its paths is the same
//! device, and is driven in the same way.

use super::identity::{Device, Target, pci_address};
use crate::config::BackendChoice;
use crate::session::SessionError;
use crate::session::claim::{State, namespace_disks};
use crate::session::machine::Seen;
use crate::spdk::{NamespaceChoice, TransportId};
use crate::sysfs::host::huge_pools;
use crate::sysfs::pci::{Bdf, Function};
use crate::sysfs::{Sysfs, nvme};
use std::path::{Path, PathBuf};

/// The name by which the backend opens the device. A PCI address on the kernel's driver becomes the node of its
/// namespace; the node that a claimed device had becomes its address and namespace.
///
/// # Errors
/// [`SessionError::Unclear`] where an address leads to no node, or to several;
/// [`SessionError::WrongBackend`] where SPDK is asked for what it cannot drive as things are.
pub(in crate::session) fn settle(
    name: &str,
    choice: BackendChoice,
    seen: &Seen<'_>,
) -> Result<String, SessionError> {
    let sysfs = seen.sysfs;
    if TransportId::looks_like_one(name) {
        let id = name.parse::<TransportId>().ok();
        let function = id
            .as_ref()
            .and_then(|id| Function::read(sysfs, Bdf::parse(&id.address)?).ok());
        return match (id, function) {
            (Some(id), Some(function)) if choice != BackendChoice::Spdk => {
                of_address(name, &id, &function, seen)
            }
            // What is wrong with it the driver says best.
            _ => Ok(name.to_owned()),
        };
    }
    let path = Path::new(name);
    if !path.is_absolute() {
        return Ok(name.to_owned());
    }
    if sysfs.locate(path).exists() {
        return match choice {
            BackendChoice::Spdk => Err(SessionError::WrongBackend {
                device: name.to_owned(),
                backend: choice.name(),
                why: why_not_spdk_as_seen(path, &[], seen),
            }),
            _ => Ok(name.to_owned()),
        };
    }
    Ok(claimed(path, sysfs).unwrap_or_else(|| name.to_owned()))
}

/// The name by which `auto` opens the device.
///
/// # Errors
/// [`SessionError::Unclear`] where an address leads to no node, or to several.
pub fn settled(name: &str, sysfs: &Sysfs) -> Result<String, SessionError> {
    settle(name, BackendChoice::Auto, &Seen::new(sysfs))
}

/// The address and namespace that a path led to before its device was claimed.
pub(in crate::session) fn claimed(path: &Path, sysfs: &Sysfs) -> Option<String> {
    let (bdf, nsid) = State::peek(sysfs).by_former_path(path)?;
    let function = Function::read(sysfs, bdf).ok()?;
    let namespace = nsid.map_or_else(String::new, |nsid| format!(" ns:{nsid}"));
    function
        .is_in_user_space()
        .then(|| format!("{bdf}{namespace}"))
}

/// Where an address leads: to itself on a user-space driver, to the node of its disk on the kernel's.
fn of_address(
    name: &str,
    id: &TransportId,
    function: &Function,
    seen: &Seen<'_>,
) -> Result<String, SessionError> {
    let Some(driver) = function
        .driver
        .as_ref()
        .filter(|_| !function.is_in_user_space())
    else {
        return Ok(name.to_owned());
    };
    let unclear = |why: String| SessionError::Unclear {
        device: name.to_owned(),
        why,
    };
    let machine = (seen.machine()).map_err(|error| unclear(error.to_string()))?;
    let wanted = match id.namespace {
        NamespaceChoice::Id(nsid) => Some(u64::from(nsid)),
        NamespaceChoice::Only | NamespaceChoice::All => None,
    };
    let nsid = |dir: &Path| nvme::Namespace::read(dir).ok().and_then(|found| found.nsid);
    let nodes: Vec<PathBuf> = namespace_disks(machine, function)
        .into_iter()
        .filter(|disk| disk.dev.is_some() && (wanted.is_none() || nsid(disk.dir()) == wanted))
        .map(|disk| machine.node_path(&disk.name))
        .collect();
    let listed = || {
        let texts: Vec<String> = nodes
            .iter()
            .map(|node| node.display().to_string())
            .collect();
        texts.join(", ")
    };
    match nodes.as_slice() {
        [node] => Ok(node.display().to_string()),
        [] => Err(unclear(format!(
            "on the kernel's {} driver, which shows no block device for it; lanemark devices lists what is here",
            driver.name
        ))),
        _ => Err(unclear(format!(
            "on the kernel's {} driver, with {} block devices: name one of {}",
            driver.name,
            nodes.len(),
            listed()
        ))),
    }
}

/// Two names of one namespace, as far as the names tell. What is not said may be the same.
pub(in crate::session) fn is_same_spdk(one: &str, other: &str) -> bool {
    let (Ok(one), Ok(other)) = (one.parse::<TransportId>(), other.parse::<TransportId>()) else {
        return false;
    };
    let apart = matches!(
        (one.namespace, other.namespace),
        (NamespaceChoice::Id(a), NamespaceChoice::Id(b)) if a != b
    );
    one.controller_text() == other.controller_text() && !apart
}

/// Why SPDK was taken.
pub(in crate::session) fn why_spdk(name: &str, choice: BackendChoice, sysfs: &Sysfs) -> String {
    if choice == BackendChoice::Spdk {
        return "asked for".to_owned();
    }
    let bdf = name
        .parse::<TransportId>()
        .ok()
        .and_then(|id| Bdf::parse(&id.address));
    let driver = bdf
        .and_then(|bdf| Function::read(sysfs, bdf).ok())
        .and_then(|function| function.driver);
    let for_run = bdf.is_some_and(|bdf| {
        let state = State::peek(sysfs);
        state
            .of(bdf)
            .is_some_and(|entry| entry.for_run_of.is_some())
    });
    match driver {
        Some(driver) if for_run => format!("auto: claimed for this run, on {}", driver.name),
        Some(driver) => format!("auto: bound to {}", driver.name),
        None => "auto: named by a transport ID".to_owned(),
    }
}

/// Why SPDK was not taken for a node, in a few words.
#[must_use]
pub fn why_not_spdk(path: &Path, in_use: &[String], sysfs: &Sysfs) -> String {
    why_not_spdk_as_seen(path, in_use, &Seen::new(sysfs))
}

pub(in crate::session) fn why_not_spdk_as_seen(
    path: &Path,
    in_use: &[String],
    seen: &Seen<'_>,
) -> String {
    let sysfs = seen.sysfs;
    let device = match seen.target(path) {
        Ok(Target::Device(device)) => device,
        Ok(Target::File(_)) => return "a regular file".to_owned(),
        Err(_) => return "what it is cannot be told".to_owned(),
    };
    let function = device
        .disks
        .iter()
        .find_map(pci_address)
        .and_then(|address| Function::read(sysfs, Bdf::parse(&address)?).ok());
    match function {
        Some(function) if function.is_nvme() => nvme_reason(&function, in_use, sysfs),
        function => other_reason(&device, function.as_ref()),
    }
}

fn nvme_reason(function: &Function, in_use: &[String], sysfs: &Sysfs) -> String {
    if let Some(used) = in_use.first() {
        return format!("in use: {used}");
    }
    if crate::spdk::absent().is_some() {
        return "built without SPDK".to_owned();
    }
    let driver = function
        .driver
        .as_ref()
        .map_or("nvme", |driver| driver.name.as_str());
    let claim = format!(
        "on the kernel's {driver} driver: run lanemark claim {}",
        function.bdf
    );
    let pools = huge_pools(sysfs).unwrap_or_default();
    if pools.iter().any(|pool| pool.free_count > 0) {
        claim
    } else {
        format!("no free hugepages, and {claim} --hugepages 512M")
    }
}

fn other_reason(device: &Device, function: Option<&Function>) -> String {
    let disk = device.disks.first();
    let dir = disk.map(|disk| disk.dir().to_string_lossy().into_owned());
    let dir = dir.unwrap_or_default();
    let name = disk.map_or("", |disk| disk.name.as_str());
    let driver = function.and_then(|function| function.driver.as_ref());
    let driver = driver.map_or("", |driver| driver.name.as_str());
    let is_ata = device.identity.vendor.as_deref() == Some("ATA");
    if nvme::is_nvme(name) {
        let transport = device.identity.transport.as_deref().unwrap_or("nvme");
        return format!("NVMe over {transport} by the kernel: SPDK wants its transport ID");
    }
    if dir.contains("/usb") {
        return "USB: no SPDK driver".to_owned();
    }
    let raid = [
        "megaraid_sas",
        "smartpqi",
        "hpsa",
        "aacraid",
        "arcmsr",
        "mpi3mr",
    ];
    if raid.contains(&driver) {
        return format!("not NVMe: vendor driver {driver}");
    }
    if is_ata || dir.contains("/ata") {
        return "SATA: no SPDK driver".to_owned();
    }
    if dir.contains("/end_device-") {
        return "SAS: no SPDK driver".to_owned();
    }
    match (device.identity.transport.as_deref(), driver) {
        (Some("scsi"), _) => "SCSI: no SPDK driver".to_owned(),
        (Some("virtio"), _) => "virtio: driven by the kernel".to_owned(),
        (_, "") => format!("no NVMe controller: {name} is a device of the kernel's own"),
        (_, driver) => format!("not NVMe: vendor driver {driver}"),
    }
}

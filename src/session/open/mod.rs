//! From device strings to opened devices. The only match on kinds of backends besides `Session::run`.

pub(in crate::session) mod hold;
pub(in crate::session) mod leave;
pub(in crate::session) mod reopen;
pub(in crate::session) mod scratch;
pub(in crate::session) mod scratch_fs;
pub(in crate::session) mod sg;
pub(in crate::session) mod uring_cmd;

use crate::backend::sg::SgDevice;
use crate::backend::sim::{Hops, SimDevice, SimSpec};
use crate::backend::spdk::SpdkDevice;
use crate::backend::uring::{UringDevice, UringOptions};
use crate::backend::uring_cmd::UringCmdDevice;
use crate::backend::{Device, DeviceFacts, NullDevice};
use crate::clock::VirtualClock;
use crate::config::BackendChoice;
use crate::record::{BackendUse, Health, Warning, WriteCache};
use crate::session::SessionError;
use crate::session::device::auto;
use crate::session::device::describe::{describe, same_device};
use crate::session::device::named::{Named, backend_for};
use crate::session::guard::{Guard, Permit};
use crate::session::machine::Seen;
use crate::sysfs::Sysfs;
use crate::units::{Bytes, SizeSpec, parse_size};
use scratch::{Scratch, Setup};
use std::collections::HashMap;
use std::path::Path;

/// Devices of one kind, ready to make queues.
#[derive(Debug)]
pub enum Opened {
    /// `null`
    Null(Vec<NullDevice>),
    /// `sim`
    Sim {
        /// The devices.
        devices: Vec<SimDevice>,
        /// Their time.
        clock: VirtualClock,
    },
    /// `uring`
    Uring {
        /// The devices.
        devices: Vec<UringDevice>,
        /// Why this backend.
        reason: String,
        /// Scratch files, which vanish with this.
        scratch: Vec<Scratch>,
    },
    /// `uring-cmd`
    UringCmd {
        /// The namespaces.
        devices: Vec<UringCmdDevice>,
        /// Why this backend.
        reason: String,
    },
    /// `sg`
    Sg {
        /// The devices.
        devices: Vec<SgDevice>,
        /// Why this backend.
        reason: String,
    },
    /// `spdk`
    Spdk {
        /// The namespaces, with their controllers attached.
        devices: Vec<SpdkDevice>,
        /// Why this backend.
        reason: String,
    },
}

impl Opened {
    /// Opens devices by name, for reading; scratch files also for writing, they are ours. `setup`
    /// follows their making.
    ///
    /// # Errors
    /// [`SessionError`] naming the device.
    pub fn open(
        names: &[&str],
        choice: BackendChoice,
        sysfs: &Sysfs,
        setup: &mut Setup<'_>,
    ) -> Result<Self, SessionError> {
        let seen = &Seen::new(sysfs);
        let mut settled = Vec::new();
        for name in names {
            settled.push(auto::settle(name, choice, seen)?);
        }
        let names: Vec<&str> = settled.iter().map(String::as_str).collect();
        let names = names.as_slice();
        let mut kinds: Vec<BackendChoice> = Vec::new();
        for name in names {
            kinds.push(backend_for(name, choice, sysfs)?);
        }
        if let Some(other) = kinds.iter().position(|kind| *kind != kinds[0]) {
            return Err(SessionError::WrongBackend {
                device: names[other].to_owned(),
                backend: kinds[0].name(),
                why: "all devices of a job are driven by one backend; make two jobs".to_owned(),
            });
        }
        named_once(names, seen)?;
        match kinds.first() {
            Some(BackendChoice::Null) => open_null(names, sysfs),
            Some(BackendChoice::Sim) => open_sim(names, sysfs),
            Some(BackendChoice::UringCmd) => uring_cmd::open(names, choice, seen),
            Some(BackendChoice::Sg) => sg::open(names, choice, seen),
            Some(BackendChoice::Spdk) => open_spdk(names, choice, sysfs),
            _ => open_uring(names, choice, seen, setup),
        }
    }

    /// Opens again for writing what the guard has permitted, after its second look.
    ///
    /// # Errors
    /// [`SessionError`] naming the device: the guard has changed its mind, or somebody holds the node.
    pub fn permit_writes(
        mut self,
        permits: &HashMap<String, Permit>,
        sysfs: &Sysfs,
    ) -> Result<Self, SessionError> {
        if let Self::Sg { devices, .. } = &mut self {
            sg::permit_writes(devices, permits, sysfs)?;
        }
        if let Self::UringCmd { devices, .. } = &mut self {
            uring_cmd::permit_writes(devices, permits, sysfs)?;
        }
        let seen = Seen::new(sysfs);
        if let Self::Uring { devices, .. } = &mut self {
            for device in devices
                .iter_mut()
                .filter(|device| !device.facts().own_scratch)
            {
                let name = device.facts().path.clone();
                let Some(permit) = permits.get(&name) else {
                    continue;
                };
                Guard::new(sysfs).again(permit)?;
                let options = UringOptions {
                    writes: true,
                    ..UringOptions::default()
                };
                let writable = UringDevice::open_at(sysfs, permit.path(), options)?;
                *device = writable.with_facts(|facts| describe(facts, &name, &seen));
            }
        }
        Ok(self)
    }

    /// Facts of every device.
    #[must_use]
    pub fn facts(&self) -> Vec<DeviceFacts> {
        match self {
            Self::Null(devices) => facts_of(devices),
            Self::Sim { devices, .. } => facts_of(devices),
            Self::Uring { devices, .. } => facts_of(devices),
            Self::UringCmd { devices, .. } => facts_of(devices),
            Self::Sg { devices, .. } => facts_of(devices),
            Self::Spdk { devices, .. } => facts_of(devices),
        }
    }

    /// The backend as records name it. Complete after the first queue was opened.
    #[must_use]
    pub fn backend_use(&self) -> BackendUse {
        let (name, reason, features) = match self {
            Self::Null(devices) => (
                "null",
                "named by the device".to_owned(),
                features_of(devices),
            ),
            Self::Sim { devices, .. } => (
                "sim",
                "named by the device".to_owned(),
                features_of(devices),
            ),
            Self::Uring {
                devices, reason, ..
            } => ("uring", reason.clone(), features_of(devices)),
            Self::UringCmd { devices, reason } => {
                ("uring-cmd", reason.clone(), features_of(devices))
            }
            Self::Sg { devices, reason } => ("sg", reason.clone(), features_of(devices)),
            Self::Spdk { devices, reason } => ("spdk", reason.clone(), features_of(devices)),
        };
        BackendUse {
            name: name.to_owned(),
            reason,
            features,
        }
    }

    /// What a reader of the result has to know of the devices.
    #[must_use]
    pub fn notes(&self) -> Vec<Warning> {
        match self {
            Self::Uring { scratch, .. } => scratch.iter().map(Scratch::note).collect(),
            _ => Vec::new(),
        }
    }

    /// Doubts that only the devices can raise, about the step that has just ended.
    #[must_use]
    pub fn warnings(&self) -> Vec<Warning> {
        match self {
            Self::Sg { devices, .. } => devices.iter().flat_map(Device::warnings).collect(),
            _ => Vec::new(),
        }
    }

    /// What the device at `index` says of its own health now.
    ///
    /// # Errors
    /// Why it cannot be told, in words.
    pub fn health(&self, index: usize) -> Result<Health, String> {
        match self {
            Self::Null(devices) => devices[index].health(),
            Self::Sim { devices, .. } => devices[index].health(),
            Self::Uring { devices, .. } => devices[index].health(),
            Self::UringCmd { devices, .. } => devices[index].health(),
            Self::Sg { devices, .. } => devices[index].health(),
            Self::Spdk { devices, .. } => devices[index].health(),
        }
    }

    /// How the write cache of the device at `index` stands.
    ///
    /// # Errors
    /// Why it cannot be told, in words.
    pub fn write_cache(&self, index: usize) -> Result<WriteCache, String> {
        match self {
            Self::Null(devices) => devices[index].write_cache(),
            Self::Sim { devices, .. } => devices[index].write_cache(),
            Self::Uring { devices, .. } => devices[index].write_cache(),
            Self::UringCmd { devices, .. } => devices[index].write_cache(),
            Self::Sg { devices, .. } => devices[index].write_cache(),
            Self::Spdk { devices, .. } => devices[index].write_cache(),
        }
    }

    /// Whether it is the device that prices the engine.
    #[must_use]
    pub const fn is_null(&self) -> bool {
        matches!(self, Self::Null(_))
    }
}

/// One device under two names would be taken for two: twice the load, half the figures.
fn named_once(names: &[&str], seen: &Seen<'_>) -> Result<(), SessionError> {
    for (index, one) in names.iter().enumerate() {
        let same = (names[..index].iter()).find(|other| auto::is_same_spdk(one, other));
        if let Some(other) = same {
            return Err(SessionError::SameDevice {
                device: (*one).to_owned(),
                other: (*other).to_owned(),
            });
        }
    }
    let is_path = |name: &&&str| Named::of(name, seen.sysfs).is_path();
    let paths: Vec<&str> = names.iter().filter(is_path).copied().collect();
    if paths.len() < 2 {
        return Ok(());
    }
    for (index, one) in paths.iter().enumerate() {
        let same = paths[..index]
            .iter()
            .find(|other| same_device(seen, one, other));
        if let Some(other) = same {
            return Err(SessionError::SameDevice {
                device: (*one).to_owned(),
                other: (*other).to_owned(),
            });
        }
    }
    Ok(())
}

fn facts_of<D: Device>(devices: &[D]) -> Vec<DeviceFacts> {
    devices
        .iter()
        .map(|device| device.facts().clone())
        .collect()
}

fn features_of<D: Device>(devices: &[D]) -> Vec<String> {
    let mut features: Vec<String> = Vec::new();
    for feature in devices.iter().flat_map(Device::features) {
        if !features.contains(&feature) {
            features.push(feature);
        }
    }
    features
}

fn open_null(names: &[&str], sysfs: &Sysfs) -> Result<Opened, SessionError> {
    let mut devices = Vec::new();
    for name in names {
        let capacity = match Named::of(name, sysfs) {
            Named::Null(rest) if !rest.is_empty() => null_capacity(name, rest)?,
            _ => Bytes(1 << 40),
        };
        devices.push(NullDevice::new(name, capacity));
    }
    Ok(Opened::Null(devices))
}

fn null_capacity(name: &str, rest: &str) -> Result<Bytes, SessionError> {
    let size = rest.strip_prefix("capacity=").map(parse_size);
    match size {
        Some(Ok(SizeSpec::Bytes(bytes))) if bytes.0 >= 512 => Ok(bytes),
        _ => Err(SessionError::WrongBackend {
            device: name.to_owned(),
            backend: "null",
            why: "write null or null:capacity=1T (512 bytes at least)".to_owned(),
        }),
    }
}

fn open_sim(names: &[&str], sysfs: &Sysfs) -> Result<Opened, SessionError> {
    let clock = VirtualClock::new();
    let (mut devices, mut hops) = (Vec::new(), Hops::default());
    for name in names {
        let spec = SimSpec::parse(match Named::of(name, sysfs) {
            Named::Sim(rest) => rest,
            _ => "",
        })?;
        let hop = hops.of(&spec)?;
        devices.push(SimDevice::behind(name, &spec, clock.clone(), hop));
    }
    Ok(Opened::Sim { devices, clock })
}

fn open_uring(
    names: &[&str],
    choice: BackendChoice,
    seen: &Seen<'_>,
    setup: &mut Setup<'_>,
) -> Result<Opened, SessionError> {
    let sysfs = seen.sysfs;
    let (mut devices, mut scratch) = (Vec::new(), Vec::new());
    for name in names {
        if let Named::Scratch(rest) = Named::of(name, sysfs) {
            let file = Scratch::parse(rest)?.make(sysfs, setup)?;
            let options = UringOptions {
                writes: true,
                ..UringOptions::default()
            };
            let device = UringDevice::open_at(sysfs, file.path(), options)?;
            devices.push(device.with_facts(|facts| {
                (*name).clone_into(&mut facts.path);
                facts.own_scratch = true;
            }));
            scratch.push(file);
        } else {
            let device = UringDevice::open_at(sysfs, Path::new(name), UringOptions::default())?;
            devices.push(device.with_facts(|facts| describe(facts, name, seen)));
        }
    }
    let reason = if choice == BackendChoice::Uring {
        "asked for".to_owned()
    } else if devices
        .iter()
        .all(|device| device.facts().kind == crate::backend::DeviceKind::File)
    {
        "auto: a regular file".to_owned()
    } else {
        format!("auto: {}", not_spdk(&devices, seen))
    };
    Ok(Opened::Uring {
        devices,
        reason,
        scratch,
    })
}

fn open_spdk(names: &[&str], choice: BackendChoice, sysfs: &Sysfs) -> Result<Opened, SessionError> {
    let devices = SpdkDevice::open_all(sysfs, names)?;
    let reason = auto::why_spdk(names.first().copied().unwrap_or_default(), choice, sysfs);
    Ok(Opened::Spdk { devices, reason })
}

/// Why SPDK was not taken, for each kind of device once.
fn not_spdk(devices: &[UringDevice], seen: &Seen<'_>) -> String {
    let mut reasons: Vec<String> = Vec::new();
    for facts in devices.iter().map(Device::facts) {
        let reason = auto::why_not_spdk_as_seen(Path::new(&facts.path), &facts.in_use, seen);
        if !reasons.contains(&reason) {
            reasons.push(reason);
        }
    }
    reasons.join("; ")
}

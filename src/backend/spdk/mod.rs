//! `spdk`: NVMe driven from user space by SPDK. One queue pair per reactor and namespace; the callback resubmits
//! through the sink, and the doorbell rings once per poll.
//!
//! Commands are built by `proto::nvme` and sent raw. Only an I/O larger than one command may carry goes through
//! the driver's own read and write calls, which split it.

mod probe;
mod queue;

pub use crate::proto::nvme::Layout;
use crate::proto::nvme::max_zeroes_bytes;
pub use queue::SpdkQueue;

use super::health::of_smart;
use super::write_cache::of_feature;
use super::{BackendError, Device, DeviceFacts, DeviceKind, QueueSpec};
use crate::spdk::{
    AttachOptions, Controller, Env, EnvOptions, Namespace, NamespaceChoice, TransportId, iommu,
    preflight, versions,
};
use crate::sysfs::Sysfs;
use crate::units::{BlockSize, Bytes};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Queues to ask a controller for: it grants fewer where it has fewer, and how many reactors there will be is not
/// known before its facts are.
const IO_QUEUES_COUNT: u32 = 128;
/// The smallest memory page, in which a controller counts its limits.
const PAGE_BYTES: u64 = 4096;

/// One namespace of an attached controller.
#[derive(Debug)]
pub struct SpdkDevice {
    controller: Arc<Controller>,
    namespace: Namespace,
    layout: Layout,
    facts: DeviceFacts,
    /// How the last queue rings.
    rings_once_per_poll: AtomicBool,
}

impl SpdkDevice {
    /// Attaches to every controller that `names` (transport IDs or PCI addresses) point at, once each, and gives
    /// their namespaces in the order of the names.
    ///
    /// # Errors
    /// [`BackendError`] naming the device: what the machine lacks, what did not answer, which namespaces there
    /// are to choose from, or a format that cannot be driven.
    pub fn open_all(sysfs: &Sysfs, names: &[&str]) -> Result<Vec<Self>, BackendError> {
        let mut ids = Vec::new();
        for name in names {
            ids.push(
                name.parse::<TransportId>()
                    .map_err(crate::spdk::SpdkError::from)?,
            );
        }
        let pci: Vec<_> = ids.iter().filter_map(TransportId::bdf).collect();
        if crate::spdk::absent().is_none() {
            for bdf in &pci {
                preflight::check_pci(sysfs, *bdf).map_err(crate::spdk::SpdkError::from)?;
            }
        }
        let options = EnvOptions {
            pci: !pci.is_empty(),
            iommu_bits: iommu::narrowest_bits(sysfs),
        };
        let env = Env::start(sysfs, &options)?;
        let mut controllers: Vec<Arc<Controller>> = Vec::new();
        let mut devices: Vec<Self> = Vec::new();
        for id in &ids {
            let known = controllers
                .iter()
                .find(|known| known.name() == id.controller_text());
            let controller = match known {
                Some(known) => Arc::clone(known),
                None => {
                    let options = AttachOptions {
                        io_queues_count: IO_QUEUES_COUNT,
                        ..AttachOptions::default()
                    };
                    let new = Controller::attach(env, id, options)?;
                    controllers.push(Arc::clone(&new));
                    new
                }
            };
            for namespace in chosen(id, controller.namespaces()?)? {
                devices.push(Self::new(id, Arc::clone(&controller), namespace)?);
            }
        }
        Ok(devices)
    }

    fn new(
        id: &TransportId,
        controller: Arc<Controller>,
        namespace: Namespace,
    ) -> Result<Self, BackendError> {
        let id = TransportId {
            namespace: NamespaceChoice::Id(namespace.nsid),
            ..id.clone()
        };
        let path = id.to_string();
        let unsuitable = |why: String| BackendError::Unsuitable {
            path: path.clone(),
            why,
        };
        let layout = Layout::of(&namespace.identify).map_err(unsuitable)?;
        let size = namespace
            .identify
            .size_bytes()
            .ok_or_else(|| unsuitable("reports an absurd size".to_owned()))?;
        let logical_block = BlockSize::new(layout.block_bytes)
            .ok_or_else(|| unsuitable("has no blocks".to_owned()))?;
        let identify = controller.identify();
        let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let no_trim = || "the controller has no Dataset Management command".to_owned();
        let facts = DeviceFacts {
            path: path.clone(),
            kind: DeviceKind::Nvme,
            identity: namespace.ids.wwid(),
            model: text(&identify.model),
            serial: text(&identify.serial),
            firmware: text(&identify.firmware),
            capacity: Bytes(size),
            logical_block,
            physical_block: None,
            rotational: Some(false),
            max_io: Some(Bytes(u64::from(controller.max_transfer_bytes()))),
            max_command: None,
            block_path: None,
            device_depth: Some(controller.queue_entries() - 1),
            trim: identify
                .dataset_management
                .then_some(())
                .ok_or_else(no_trim),
            write_zeroes: if identify.write_zeroes {
                Ok(Some(Bytes(max_zeroes_bytes(
                    controller.zeroes_shift(),
                    PAGE_BYTES,
                    u64::from(controller.max_transfer_bytes()),
                    layout.block_bytes,
                ))))
            } else {
                Err("the controller has no Write Zeroes command (ONCS)".to_owned())
            },
            flush: Ok(()),
            probe: Err(
                "the spdk backend sends none; use rw: probe-read, or backend: uring-cmd".to_owned(),
            ),
            in_use: Vec::new(),
            own_scratch: false,
        };
        let device = Self {
            controller,
            namespace,
            layout,
            facts,
            rings_once_per_poll: AtomicBool::new(true),
        };
        // Over a network the controller may well be a program that leaves the action bit alone.
        if layout.is_stripped()
            && let Some(status) = probe::refusal(&device)?
        {
            return Err(unsuitable(format!(
                "is formatted with protection information, and its controller does not strip it (PRACT: {status}); \
                 use a format without"
            )));
        }
        Ok(device)
    }

    /// The controller.
    #[must_use]
    pub fn controller(&self) -> &Arc<Controller> {
        &self.controller
    }

    /// The namespace.
    #[must_use]
    pub fn namespace(&self) -> &Namespace {
        &self.namespace
    }
}

/// The namespaces that an ID means.
fn chosen(id: &TransportId, there: Vec<Namespace>) -> Result<Vec<Namespace>, BackendError> {
    let listed = there
        .iter()
        .map(|ns| format!("ns:{}", ns.nsid))
        .collect::<Vec<_>>()
        .join(", ");
    let unsuitable = |why| BackendError::Unsuitable {
        path: id.controller_text(),
        why,
    };
    if there.is_empty() {
        return Err(unsuitable("has no active namespace".to_owned()));
    }
    match id.namespace {
        NamespaceChoice::All => Ok(there),
        NamespaceChoice::Only if there.len() == 1 => Ok(there),
        NamespaceChoice::Only => {
            let why = format!(
                "has {} namespaces ({listed}): add one of them, or ns:all, to its name",
                there.len()
            );
            Err(unsuitable(why))
        }
        NamespaceChoice::Id(nsid) => {
            let found: Vec<_> = there.into_iter().filter(|ns| ns.nsid == nsid).collect();
            if found.is_empty() {
                Err(unsuitable(format!(
                    "has no active namespace {nsid}; there are {listed}"
                )))
            } else {
                Ok(found)
            }
        }
    }
}

impl Device for SpdkDevice {
    type Queue = SpdkQueue;

    fn facts(&self) -> &DeviceFacts {
        &self.facts
    }

    fn features(&self) -> Vec<String> {
        let mut features = Vec::new();
        if let Some((spdk, dpdk)) = versions() {
            features.push(format!("SPDK {spdk}, DPDK {dpdk}"));
        }
        let controller = &self.controller;
        features.push(format!(
            "{} I/O queues granted, {} entries each",
            controller.io_queues_count(),
            controller.queue_entries()
        ));
        features.push(format!(
            "commands up to {} KiB, larger I/O is split by the driver",
            controller.max_transfer_bytes() >> 10
        ));
        if controller.id().transport.has_doorbells() {
            let once = self.rings_once_per_poll.load(Ordering::Relaxed);
            let rings = if once { "once per poll" } else { "per command" };
            features.push(format!("doorbell {rings}"));
        }
        features.push("driver retries off".to_owned());
        features.push(self.layout.describe());
        features
    }

    fn health(&self) -> Result<crate::record::Health, String> {
        if self.controller.is_gone() {
            return Err("the controller is gone".to_owned());
        }
        let log = self.controller.smart().map_err(|error| error.to_string())?;
        Ok(of_smart(&log, "SMART log by SPDK's admin queue".to_owned()))
    }

    fn write_cache(&self) -> Result<crate::record::WriteCache, String> {
        if self.controller.is_gone() {
            return Err("the controller is gone".to_owned());
        }
        let is_on = self.controller.write_cache();
        let is_on = is_on.map_err(|error| error.to_string())?;
        Ok(of_feature(is_on, "SPDK's admin queue"))
    }

    fn open_queue(&self, spec: QueueSpec) -> Result<SpdkQueue, BackendError> {
        let once = queue::rings_once_per_poll(spec.batch, spec.slots_count);
        self.rings_once_per_poll.store(once, Ordering::Relaxed);
        let most = self.facts.write_zeroes.as_ref().ok().copied().flatten();
        let block_bytes = u64::from(self.layout.block_bytes);
        // At most 65,536: the command can say no more.
        let zeroes_blocks = most.map_or(0, |most| (most.0 / block_bytes) as u32);
        let format = (self.layout, zeroes_blocks);
        SpdkQueue::open(&self.controller, self.namespace.nsid, format, spec)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::proto::nvme::{IDENTIFY_BYTES, IdentifyNamespace, NamespaceIds};

    fn namespaces(ids: &[u32]) -> Vec<Namespace> {
        let identify = IdentifyNamespace::decode(&[0; IDENTIFY_BYTES]).unwrap();
        ids.iter()
            .map(|nsid| Namespace {
                nsid: *nsid,
                identify: identify.clone(),
                ids: NamespaceIds::default(),
            })
            .collect()
    }

    fn choose(id: &str, ids: &[u32]) -> Result<Vec<u32>, String> {
        let chosen =
            chosen(&id.parse().unwrap(), namespaces(ids)).map_err(|error| error.to_string())?;
        Ok(chosen.iter().map(|ns| ns.nsid).collect())
    }

    #[test]
    fn namespaces_are_never_guessed() {
        assert_eq!(choose("01:00.0", &[5]), Ok(vec![5]));
        assert_eq!(choose("01:00.0 ns:all", &[1, 5]), Ok(vec![1, 5]));
        assert_eq!(choose("01:00.0 ns:5", &[1, 5]), Ok(vec![5]));
        let ask = choose("01:00.0", &[1, 5]).unwrap_err();
        assert!(
            ask.contains("has 2 namespaces (ns:1, ns:5): add one of them, or ns:all"),
            "{ask}"
        );
        assert!(
            choose("01:00.0 ns:2", &[1, 5])
                .unwrap_err()
                .contains("no active namespace 2; there are ns:1, ns:5")
        );
        assert!(
            choose("01:00.0", &[])
                .unwrap_err()
                .contains("no active namespace")
        );
    }
}

//! A controller: attached once, shared by the reactors, detached when the last of them lets go.

use super::bounded;
use super::env::Env;
use super::keeper::{Health, Keeper};
use super::qpair::Closing;
use super::spec::{AttachOptions, Namespace};
use super::trid::{Transport, TransportId};
use super::{SpdkError, log};
use crate::proto::nvme::{
    ControllerKind, IDENTIFY_BYTES, IdentifyController, IdentifyNamespace, Truncated,
};
use std::ffi::{CString, c_void};
use std::mem::{MaybeUninit, size_of};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long detaching may take before the controller is left behind.
const DETACH_LIMIT: Duration = Duration::from_secs(5);
/// Between two looks at an operation that is under way.
const LOOK_EVERY: Duration = Duration::from_micros(200);
/// NVMe keep alive; the keeper polls far more often.
const KEEP_ALIVE_MS: u32 = 10_000;

/// The driver's handle. SPDK guards its administrative side with a lock of its own; I/O queues are per thread.
#[derive(Debug, Clone, Copy)]
pub(super) struct Raw(pub(super) NonNull<spdk_sys::spdk_nvme_ctrlr>);

// SAFETY: the functions that are called through a `Raw` from several threads (admin commands and completions,
// allocation and release of I/O queues, the getters) take the controller's own mutex or read what no longer
// changes after attaching (nvme.h: "This function is thread safe"). Who holds a `Raw` holds the `Controller`.
unsafe impl Send for Raw {}
// SAFETY: as above.
unsafe impl Sync for Raw {}

impl Raw {
    pub(super) fn ptr(self) -> *mut spdk_sys::spdk_nvme_ctrlr {
        self.0.as_ptr()
    }
}

/// What the controller grants and is.
#[derive(Debug, Clone)]
struct Facts {
    identify: IdentifyController,
    max_transfer_bytes: u32,
    numa_node: i32,
    io_queues_count: u32,
    queue_entries: u32,
}

/// An attached controller.
#[derive(Debug)]
pub struct Controller {
    pub(super) env: &'static Env,
    pub(super) raw: Raw,
    pub(super) limit: Duration,
    pub(super) health: Arc<Health>,
    id: TransportId,
    facts: Facts,
    keeper: Option<Keeper>,
    /// Queues whose commands were abandoned. They keep their numbers, which the controller still holds for taken,
    /// until it is let go.
    abandoned: Mutex<Vec<Closing>>,
}

impl Controller {
    /// Attaches to the controller at `id` (its namespace choice is not looked at). From here on its
    /// asynchronous events and keep alive are served by a thread of its own.
    ///
    /// # Errors
    /// [`SpdkError`] that names the device: the transport is missing, nothing answers there or not in time, it is
    /// a discovery controller.
    pub fn attach(
        env: &'static Env,
        id: &TransportId,
        options: AttachOptions,
    ) -> Result<Arc<Self>, SpdkError> {
        let device = id.controller_text();
        check_transport(&device, id.transport)?;
        log::clear();
        let text = device.clone();
        // A limit within, so that a slow controller is given up in order, and one around it for one that blocks.
        let answer = bounded::run(options.limit + Duration::from_secs(1), move || {
            connect(&text, options)
        });
        let timeout = || SpdkError::AttachTimeout {
            device: device.clone(),
            limit_s: options.limit.as_secs(),
            said: log::said(),
        };
        let raw = answer
            .unwrap_or(Err(Failed::Timeout))
            .map_err(|failed| match failed {
                Failed::Timeout => timeout(),
                Failed::Refused => SpdkError::Attach {
                    device: device.clone(),
                    said: log::said(),
                    hint: hint(id),
                },
            })?;
        // From here on dropping detaches.
        let health = Arc::new(Health::default());
        let mut controller = Self {
            env,
            raw,
            limit: options.limit,
            health: Arc::clone(&health),
            id: id.clone(),
            facts: facts(&device, raw)?,
            keeper: None,
            abandoned: Mutex::default(),
        };
        // SAFETY: the controller is attached; the function only reads.
        let discovery = unsafe { spdk_sys::spdk_nvme_ctrlr_is_discovery(raw.ptr()) };
        if discovery || controller.facts.identify.kind == ControllerKind::Discovery {
            return Err(SpdkError::Discovery { device });
        }
        controller.keeper = Some(Keeper::start(raw, health, id.transport != Transport::Pcie));
        Ok(Arc::new(controller))
    }

    /// Where it is.
    #[must_use]
    pub fn id(&self) -> &TransportId {
        &self.id
    }

    /// Its name in messages.
    #[must_use]
    pub fn name(&self) -> String {
        self.id.controller_text()
    }

    /// Its Identify structure.
    #[must_use]
    pub fn identify(&self) -> &IdentifyController {
        &self.facts.identify
    }

    /// Largest transfer of one command in bytes: MDTS and the driver's own limit.
    #[must_use]
    pub fn max_transfer_bytes(&self) -> u32 {
        self.facts.max_transfer_bytes
    }

    /// Its NUMA node; negative: none.
    #[must_use]
    pub fn numa_node(&self) -> i32 {
        self.facts.numa_node
    }

    /// I/O queues that it granted.
    #[must_use]
    pub fn io_queues_count(&self) -> u32 {
        self.facts.io_queues_count
    }

    /// Entries per I/O queue that it grants; such a queue holds one command less.
    #[must_use]
    pub fn queue_entries(&self) -> u32 {
        self.facts.queue_entries
    }

    /// Whether the controller was found dead or silent.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.health.is_gone()
    }

    /// Every active namespace, in order of its identifier.
    ///
    /// # Errors
    /// [`SpdkError::Short`] where the driver has no Identify structure of one.
    pub fn namespaces(&self) -> Result<Vec<Namespace>, SpdkError> {
        let mut found = Vec::new();
        // SAFETY: the controller is attached as long as `self` lives; the functions only read.
        let mut nsid = unsafe { spdk_sys::spdk_nvme_ctrlr_get_first_active_ns(self.raw.ptr()) };
        while nsid != 0 {
            let mut bytes = vec![0; IDENTIFY_BYTES];
            // SAFETY: as above; the data belong to the controller and are one Identify structure long (asserted
            // in spdk-sys), and they are copied before anything else is called.
            unsafe {
                let ns = spdk_sys::spdk_nvme_ctrlr_get_ns(self.raw.ptr(), nsid);
                let data = if ns.is_null() {
                    std::ptr::null()
                } else {
                    spdk_sys::spdk_nvme_ns_get_data(ns)
                };
                if !data.is_null() {
                    std::ptr::copy_nonoverlapping(data.cast(), bytes.as_mut_ptr(), IDENTIFY_BYTES);
                }
            }
            let identify = IdentifyNamespace::decode(&bytes).map_err(|cut| self.short(cut))?;
            found.push(Namespace {
                nsid,
                identify,
                ids: self.namespace_ids(nsid).unwrap_or_default(),
            });
            // SAFETY: as above.
            nsid = unsafe { spdk_sys::spdk_nvme_ctrlr_get_next_active_ns(self.raw.ptr(), nsid) };
        }
        Ok(found)
    }

    /// Keeps a queue to be given back with the controller.
    pub(super) fn give_back_later(&self, queue: Closing) {
        self.abandoned
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(queue);
    }

    pub(super) fn short(&self, cut: Truncated) -> SpdkError {
        SpdkError::Short {
            device: self.name(),
            cut,
        }
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        let quiet = self.keeper.take().is_none_or(Keeper::stop);
        if !quiet || self.health.is_silent() {
            tracing::warn!("{}: left attached, it does not answer", self.name());
            return;
        }
        let queues = std::mem::take(
            self.abandoned
                .get_mut()
                .unwrap_or_else(PoisonError::into_inner),
        );
        if !queues
            .into_iter()
            .all(|queue| queue.give_back(&self.name()))
        {
            return;
        }
        let raw = self.raw;
        if bounded::run(DETACH_LIMIT, move || detach(raw)).is_none() {
            tracing::warn!(
                "{}: did not detach within {} s, left behind",
                self.id.controller_text(),
                DETACH_LIMIT.as_secs()
            );
        }
    }
}

fn check_transport(device: &str, transport: Transport) -> Result<(), SpdkError> {
    let there = super::has(transport);
    if there {
        Ok(())
    } else {
        Err(SpdkError::Transport {
            device: device.to_owned(),
            transport: transport.name(),
        })
    }
}

fn hint(id: &TransportId) -> String {
    match id.transport {
        Transport::Pcie => {
            "; is another process using it? lanemark check looks at its driver and IOMMU group"
                .to_owned()
        }
        Transport::Tcp | Transport::Rdma => {
            "; is the target listening there, with this subnqn?".to_owned()
        }
        Transport::VfioUser => {
            "; is the target running, with its listener at this folder and with this subnqn?"
                .to_owned()
        }
    }
}

/// Why connecting failed.
enum Failed {
    Timeout,
    Refused,
}

/// The options come first: SPDK hands their address to the callback as its context.
#[repr(C)]
struct Connecting {
    opts: spdk_sys::spdk_nvme_ctrlr_opts,
    found: *mut spdk_sys::spdk_nvme_ctrlr,
}

/// Connects, within `options.limit` as far as SPDK lets us.
fn connect(text: &str, options: AttachOptions) -> Result<Raw, Failed> {
    let text = CString::new(text).map_err(|_| Failed::Refused)?;
    let mut id = MaybeUninit::<spdk_sys::spdk_nvme_transport_id>::zeroed();
    let connecting =
        Box::into_raw(Box::new(MaybeUninit::<Connecting>::zeroed())).cast::<Connecting>();
    let deadline = Instant::now() + options.limit;
    // SAFETY: both structs are plain old data (integers, arrays, pointers), valid as all zeros. SPDK fills in the
    // options' defaults, told their size. `connecting` stays at its address until SPDK is done with it: until the
    // probe has ended, or for ever where we give up.
    unsafe {
        if spdk_sys::spdk_nvme_transport_id_parse(id.as_mut_ptr(), text.as_ptr()) != 0 {
            drop(Box::from_raw(connecting));
            return Err(Failed::Refused);
        }
        let opts = &raw mut (*connecting).opts;
        spdk_sys::spdk_nvme_ctrlr_get_default_ctrlr_opts(
            opts,
            size_of::<spdk_sys::spdk_nvme_ctrlr_opts>(),
        );
        (*opts).num_io_queues = options.io_queues_count;
        (*opts).io_queue_size = options.queue_entries;
        (*opts).keep_alive_timeout_ms = KEEP_ALIVE_MS;
        // No retries: a retry would show up as one slow success.
        (*opts).transport_retry_count = 0;
        (*opts).admin_timeout_ms = u32::try_from(options.limit.as_millis()).unwrap_or(u32::MAX);
        // Failed commands are counted by us; the driver would print each.
        (*opts).disable_error_logging = true;
        let probe = spdk_sys::spdk_nvme_connect_async(id.as_ptr(), opts, Some(attached));
        let mut result = -libc::EAGAIN;
        while !probe.is_null() && result == -libc::EAGAIN {
            result = spdk_sys::spdk_nvme_probe_poll_async(probe);
            if result == -libc::EAGAIN {
                if Instant::now() > deadline {
                    return Err(Failed::Timeout);
                }
                std::thread::sleep(LOOK_EVERY);
            }
        }
        let found = Box::from_raw(connecting).found;
        NonNull::new(found).map(Raw).ok_or(Failed::Refused)
    }
}

unsafe extern "C" fn attached(
    context: *mut c_void,
    _id: *const spdk_sys::spdk_nvme_transport_id,
    controller: *mut spdk_sys::spdk_nvme_ctrlr,
    _opts: *const spdk_sys::spdk_nvme_ctrlr_opts,
) {
    // SAFETY: the context is the address of the options given to spdk_nvme_connect_async, which is that of the
    // `Connecting` around them (repr(C), first field), alive until the probe has ended.
    unsafe { (*context.cast::<Connecting>()).found = controller };
}

fn facts(device: &str, raw: Raw) -> Result<Facts, SpdkError> {
    let mut bytes = vec![0; IDENTIFY_BYTES];
    // SAFETY: the controller is attached; its data are one Identify structure long (asserted in spdk-sys) and are
    // copied; its options are valid as long as it is attached.
    let (max_transfer_bytes, numa_node, io_queues_count, entries) = unsafe {
        let data = spdk_sys::spdk_nvme_ctrlr_get_data(raw.ptr());
        std::ptr::copy_nonoverlapping(data.cast(), bytes.as_mut_ptr(), IDENTIFY_BYTES);
        let opts = spdk_sys::spdk_nvme_ctrlr_get_opts(raw.ptr());
        let entries = (*opts)
            .io_queue_size
            .min(spdk_sys::lanemark_cap_max_queue_entries(raw.ptr()));
        (
            spdk_sys::spdk_nvme_ctrlr_get_max_xfer_size(raw.ptr()),
            spdk_sys::spdk_nvme_ctrlr_get_numa_id(raw.ptr()),
            (*opts).num_io_queues,
            entries,
        )
    };
    let identify = IdentifyController::decode(&bytes).map_err(|cut| SpdkError::Short {
        device: device.to_owned(),
        cut,
    })?;
    Ok(Facts {
        identify,
        max_transfer_bytes,
        numa_node,
        io_queues_count,
        queue_entries: entries.max(2),
    })
}

fn detach(raw: Raw) {
    let mut context = std::ptr::null_mut();
    // SAFETY: called once, by the last owner (Drop); no queue pair is open any more, since each holds the
    // controller; the context is SPDK's until the poll says done.
    unsafe {
        if spdk_sys::spdk_nvme_detach_async(raw.ptr(), &raw mut context) != 0 || context.is_null() {
            return;
        }
        while spdk_sys::spdk_nvme_detach_poll_async(context) == -libc::EAGAIN {
            std::thread::sleep(LOOK_EVERY);
        }
    }
}

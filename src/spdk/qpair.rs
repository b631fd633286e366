//! A queue pair with its slots and buffers, owned by the reactor thread that opened it.

use super::bounded;
use super::controller::Controller;
use super::dma::{ALIGN_BYTES, Dma};
use super::inner::{Inner, Lane, SlotState, handle};
use super::spec::{Completions, QpairSpec};
use super::{SpdkError, log};
use std::cell::Cell;
use std::ffi::c_void;
use std::marker::PhantomData;
use std::mem::{MaybeUninit, size_of};
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long giving a queue back may take before it is left behind.
const FREE_LIMIT: Duration = Duration::from_secs(2);

/// An I/O queue pair of one namespace, owned by the thread that opened it.
pub struct Qpair {
    inner: NonNull<Inner>,
    controller: Arc<Controller>,
    /// Neither `Send` nor `Sync`.
    _thread: PhantomData<*const ()>,
}

impl std::fmt::Debug for Qpair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Qpair")
            .field("controller", &self.controller.id())
            .finish_non_exhaustive()
    }
}

impl Qpair {
    /// Opens a queue pair with its buffers on the controller's NUMA node.
    ///
    /// # Errors
    /// [`SpdkError::NoQueue`] where the controller has none left, [`SpdkError::NoMemory`], [`SpdkError::AdminLost`]
    /// where it is gone.
    pub fn open(controller: &Arc<Controller>, spec: &QpairSpec) -> Result<Self, SpdkError> {
        let slots = spec.slots_count as usize;
        let stride = (spec.slot_bytes as usize).next_multiple_of(ALIGN_BYTES);
        let device = controller.name();
        let node = controller.numa_node();
        let data = Dma::zeroed(controller.env, &device, stride.saturating_mul(slots), node)?;
        let extra_bytes = (spec.extra_bytes as usize).next_multiple_of(64);
        let extra = match extra_bytes {
            0 => None,
            bytes => Some(Dma::zeroed(
                controller.env,
                &device,
                bytes.saturating_mul(slots),
                node,
            )?),
        };
        log::clear();
        let raw = allocate(controller, spec)?.ok_or_else(|| SpdkError::NoQueue {
            device: device.clone(),
            granted_count: controller.io_queues_count(),
            asked_count: spec.queues_asked_count,
            said: log::said(),
        })?;
        // SAFETY: the controller is attached as long as `controller` lives.
        let namespace =
            unsafe { spdk_sys::spdk_nvme_ctrlr_get_ns(controller.raw.ptr(), spec.nsid) };
        let mut inner = Box::new(Inner {
            raw,
            controller: controller.raw.ptr(),
            namespace,
            slots: Vec::with_capacity(slots),
            data,
            extra,
            slot_bytes: spec.slot_bytes as usize,
            slot_stride: stride,
            extra_bytes,
            in_flight: Cell::new(0),
            kept_count: Cell::new(0),
            handler: Cell::new(None),
            context: Cell::new(std::ptr::null_mut()),
        });
        let owner: *const Inner = &raw const *inner;
        inner
            .slots
            .extend((0..spec.slots_count).map(|index| SlotState {
                owner,
                index,
                busy: Cell::new(false),
                kept: Cell::new(None),
            }));
        let inner = NonNull::from(Box::leak(inner));
        Ok(Self {
            inner,
            controller: Arc::clone(controller),
            _thread: PhantomData,
        })
    }

    #[inline]
    fn inner(&self) -> &Inner {
        // SAFETY: leaked from a box in `open`, freed in `close` only, which takes `self`; never behind a `&mut`.
        unsafe { self.inner.as_ref() }
    }

    /// To send commands and use buffers outside a poll.
    #[inline]
    pub fn lane(&mut self) -> Lane<'_> {
        Lane {
            inner: self.inner(),
        }
    }

    /// The buffer of a slot; empty where a command is in flight in it, or there is no such slot.
    #[inline]
    pub fn buffer(&mut self, slot: u32) -> &mut [u8] {
        // SAFETY: the borrow of the queue pair keeps everybody from sending in the slot or borrowing its bytes.
        unsafe { self.inner().buffer(slot) }
    }

    /// Looks for at most `most` completions (0: as many as the driver takes at once), hands each to `receiver`
    /// as it is found, and rings once at the end for what was sent meanwhile and before. How many there were.
    ///
    /// # Errors
    /// The driver's errno, positive, where the queue or controller is dead.
    #[inline]
    pub fn poll<C: Completions>(&mut self, receiver: &mut C, most: u32) -> Result<usize, i32> {
        let inner = self.inner();
        let context: *mut c_void = (&raw mut *receiver).cast();
        let mut kept = 0;
        if inner.kept_count.get() > 0 {
            kept = inner.deliver_kept(handle::<C>, context);
        }
        inner.context.set(context);
        inner.handler.set(Some(handle::<C>));
        // SAFETY: the queue pair is open and this thread's own. Callbacks use `context`, which is `receiver`:
        // borrowed by us for the whole call and not touched here meanwhile.
        let found = unsafe { spdk_sys::spdk_nvme_qpair_process_completions(inner.raw, most) };
        inner.handler.set(None);
        match usize::try_from(found) {
            // Looked at only when there is nothing else to do.
            Ok(0) if self.controller.is_gone() => Err(if self.controller.health.is_silent() {
                libc::ETIMEDOUT
            } else {
                libc::ENODEV
            }),
            Ok(found) => Ok(found + kept as usize),
            Err(_) => Err(-found),
        }
    }

    /// Whether the controller still lists the namespace.
    #[must_use]
    pub fn namespace_is_active(&self) -> bool {
        self.inner().namespace_is_active()
    }

    /// Waits up to `limit` for what is in flight, then gives the queue back. How many commands were abandoned.
    pub fn close(self, limit: Duration) -> u32 {
        let deadline = Instant::now() + limit;
        let waiting = |inner: &Inner| inner.in_flight.get() - inner.kept_count.get();
        loop {
            let inner = self.inner();
            if waiting(inner) == 0 {
                break;
            }
            // SAFETY: as in `poll`; nobody listens, so statuses are kept.
            let found = unsafe { spdk_sys::spdk_nvme_qpair_process_completions(inner.raw, 0) };
            if found < 0 || self.controller.is_gone() || Instant::now() > deadline {
                break;
            }
        }
        let abandoned = waiting(self.inner());
        if self.controller.health.is_silent() {
            // Giving the queue back would wait for an answer. Everything stays where it is, for good.
            return abandoned;
        }
        let queue = Closing {
            raw: self.inner().raw,
            inner: self.inner,
        };
        if abandoned > 0 && !self.controller.is_gone() {
            // The controller will not let its number go before the commands have ended: a new queue, which would
            // be given the same number, could not be opened.
            self.controller.give_back_later(queue);
        } else {
            queue.give_back(&self.controller.name());
        }
        abandoned
    }
}

/// A queue pair that nobody uses any more.
#[derive(Debug)]
pub(super) struct Closing {
    raw: *mut spdk_sys::spdk_nvme_qpair,
    inner: NonNull<Inner>,
}

// SAFETY: made by `Qpair::close`, which consumes the only handle; whoever holds it does nothing but give it back.
unsafe impl Send for Closing {}

impl Closing {
    /// Gives it back to the controller `name`, which is attached. False: that blocked, and it is left behind.
    pub(super) fn give_back(self, name: &str) -> bool {
        let freed = bounded::run(FREE_LIMIT, move || self.free());
        if freed.is_none() {
            let limit_s = FREE_LIMIT.as_secs();
            tracing::warn!("{name}: a queue did not close within {limit_s} s, left behind");
        }
        freed.is_some()
    }

    fn free(self) {
        // SAFETY: the queue pair is open and no other thread uses it now. SPDK calls back for everything
        // outstanding (kept) before it returns; after that nobody has the address of `inner`, and the
        // controller no longer knows the queue, so no device writes to the buffers.
        unsafe {
            spdk_sys::spdk_nvme_ctrlr_free_io_qpair(self.raw);
            drop(Box::from_raw(self.inner.as_ptr()));
        }
    }
}

/// A queue on its way from the thread that made it. Nobody else has its address.
struct Made(*mut spdk_sys::spdk_nvme_qpair);

// SAFETY: handed from one thread to another once, before it is used; SPDK binds a queue to no thread.
unsafe impl Send for Made {}

/// A new queue; `None` where the driver gives none. Making one waits for the controller's answer, for ever where that
/// is dead: so not where it is known to be, and not for longer than any of its commands may take.
fn allocate(
    controller: &Controller,
    spec: &QpairSpec,
) -> Result<Option<*mut spdk_sys::spdk_nvme_qpair>, SpdkError> {
    let lost = || SpdkError::AdminLost {
        device: controller.name(),
        what: "creating an I/O queue",
    };
    if controller.is_gone() {
        return Err(lost());
    }
    let size = size_of::<spdk_sys::spdk_nvme_io_qpair_opts>();
    let entries = spec
        .depth
        .saturating_add(1)
        .next_power_of_two()
        .clamp(2, controller.queue_entries());
    let requests_count = spec.requests_count.max(entries);
    let is_deferred = spec.deferred && controller.id().transport.has_doorbells();
    let raw = controller.raw;
    let made = bounded::run(controller.limit, move || {
        let mut opts = MaybeUninit::<spdk_sys::spdk_nvme_io_qpair_opts>::zeroed();
        // SAFETY: plain old data, valid as all zeros; SPDK fills in the defaults, told the size, and copies the
        // options in the call. The controller is attached as long as its `Arc` lives, and where this call is left
        // behind it stays attached for good (its health says silent); allocation takes its lock.
        Made(unsafe {
            let start = opts.as_mut_ptr();
            spdk_sys::spdk_nvme_ctrlr_get_default_io_qpair_opts(raw.ptr(), start, size);
            let opts = opts.assume_init_mut();
            opts.io_queue_size = entries;
            opts.io_queue_requests = requests_count;
            opts.__bindgen_anon_1.delay_cmd_submit = is_deferred;
            spdk_sys::spdk_nvme_ctrlr_alloc_io_qpair(raw.ptr(), opts, size)
        })
    });
    let Some(Made(raw)) = made else {
        controller.health.fell_silent();
        return Err(lost());
    };
    Ok((!raw.is_null()).then_some(raw))
}

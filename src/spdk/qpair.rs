//! A queue pair with its slots and buffers, and the trampoline from SPDK's completion callback to the caller's
//! [`Completions`].
//!
//! What the callback reaches (`Inner`) is behind `Cell`s and raw addresses and never behind a `&mut`, since SPDK
//! calls back while the owner is inside `poll`. Buffers are lent out only for slots with nothing in flight.

use super::bounded::{self, Moved};
use super::controller::Controller;
use super::dma::{ALIGN_BYTES, Dma};
use super::spec::{Completions, Payload, QpairSpec, Refused};
use super::{SpdkError, log};
use crate::proto::nvme::{Command, NvmeStatus};
use std::cell::Cell;
use std::ffi::c_void;
use std::marker::PhantomData;
use std::mem::{MaybeUninit, align_of, size_of};
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::{Duration, Instant};

const _: () = assert!(size_of::<Command>() == size_of::<spdk_sys::spdk_nvme_cmd>());
const _: () = assert!(align_of::<Command>() == align_of::<spdk_sys::spdk_nvme_cmd>());

/// How long giving a queue back may take before it is left behind.
const FREE_LIMIT: Duration = Duration::from_secs(2);
/// Where the status field stands in a completion (tested in spdk-sys against its C twin).
const STATUS_OFFSET: usize = 14;

/// The status field of a completion, phase tag in bit 0.
///
/// # Safety
/// `completion` points to a live completion.
#[inline]
pub(super) unsafe fn status_field(completion: *const spdk_sys::spdk_nvme_cpl) -> u16 {
    // SAFETY: 16 bytes are readable (the caller); the field is aligned within them.
    unsafe { completion.cast::<u8>().add(STATUS_OFFSET).cast::<u16>().read() }
}

/// How a completion reaches the caller of `poll`.
type Handler = unsafe fn(*mut c_void, &Inner, u32, NvmeStatus);

/// One slot, and what its command carries around as its context.
struct SlotState {
    owner: *const Inner,
    index: u32,
    busy: Cell<bool>,
    /// A status that came while nobody was listening.
    kept: Cell<Option<NvmeStatus>>,
}

/// Everything that the callback may touch. Lives in a box whose address SPDK's requests hold.
struct Inner {
    raw: *mut spdk_sys::spdk_nvme_qpair,
    controller: *mut spdk_sys::spdk_nvme_ctrlr,
    namespace: *mut spdk_sys::spdk_nvme_ns,
    slots: Vec<SlotState>,
    data: Dma,
    extra: Option<Dma>,
    slot_bytes: usize,
    slot_stride: usize,
    extra_bytes: usize,
    in_flight: Cell<u32>,
    kept_count: Cell<u32>,
    handler: Cell<Option<Handler>>,
    context: Cell<*mut c_void>,
}

impl Inner {
    /// First byte of a slot's buffer.
    #[inline]
    fn data_at(&self, slot: usize) -> *mut u8 {
        // SAFETY: callers have looked the slot up in `slots`; the block holds a stride for each.
        unsafe { self.data.start().as_ptr().add(slot * self.slot_stride) }
    }

    /// First byte of a slot's metadata.
    #[inline]
    fn extra_at(&self, slot: usize) -> *mut u8 {
        match &self.extra {
            // SAFETY: as in `data_at`.
            Some(extra) => unsafe { extra.start().as_ptr().add(slot * self.extra_bytes) },
            None => std::ptr::null_mut(),
        }
    }

    #[inline]
    fn submit(&self, index: u32, command: &Command, payload: Payload) -> Result<(), Refused> {
        let slot = index as usize;
        let Some(state) = self.slots.get(slot).filter(|state| !state.busy.get()) else { return Err(Refused::Misuse) };
        let mut sqe = *command;
        let (sqe, context) = ((&raw mut sqe).cast(), (&raw const *state).cast_mut().cast());
        let fits = |bytes: u32| bytes as usize <= self.slot_bytes;
        // SAFETY: the queue pair is open and used by this thread alone (`Qpair` is !Send). SPDK copies the
        // command. The buffers are `slot`'s own, long enough (checked), DMA memory, and lent to nobody while
        // `busy`. The context is the slot's state, which outlives the command: `Qpair::close` waits for every
        // callback or leaks.
        let result = unsafe {
            match payload {
                Payload::None => {
                    spdk_sys::spdk_nvme_ctrlr_cmd_io_raw(self.controller, self.raw, sqe, std::ptr::null_mut(), 0, Some(completed), context)
                }
                Payload::Data(bytes) if fits(bytes) => {
                    let data = self.data_at(slot).cast();
                    spdk_sys::spdk_nvme_ctrlr_cmd_io_raw(self.controller, self.raw, sqe, data, bytes, Some(completed), context)
                }
                Payload::Extra(bytes) if bytes as usize <= self.extra_bytes => {
                    let data = self.extra_at(slot).cast();
                    spdk_sys::spdk_nvme_ctrlr_cmd_io_raw(self.controller, self.raw, sqe, data, bytes, Some(completed), context)
                }
                Payload::DataAndExtra { bytes, extra_bytes } if fits(bytes) && extra_bytes as usize <= self.extra_bytes => {
                    let (data, extra) = (self.data_at(slot).cast(), self.extra_at(slot).cast());
                    spdk_sys::spdk_nvme_ctrlr_cmd_io_raw_with_md(
                        self.controller, self.raw, sqe, data, bytes, extra, Some(completed), context,
                    )
                }
                // The driver's split divides by a limit that it clears when the namespace is removed.
                Payload::Split { .. } if !self.namespace_is_active() => return Err(Refused::Dead),
                Payload::Split { write, lba, blocks, bytes, extra_bytes, flags }
                    if fits(bytes) && extra_bytes as usize <= self.extra_bytes =>
                {
                    let (data, extra) = (self.data_at(slot).cast(), if extra_bytes > 0 { self.extra_at(slot) } else { std::ptr::null_mut() });
                    let call = if write { spdk_sys::spdk_nvme_ns_cmd_write_with_md } else { spdk_sys::spdk_nvme_ns_cmd_read_with_md };
                    call(self.namespace, self.raw, data, extra.cast(), lba, blocks, Some(completed), context, flags, 0, 0)
                }
                _ => return Err(Refused::Misuse),
            }
        };
        match -result {
            0 => {
                state.busy.set(true);
                self.in_flight.set(self.in_flight.get() + 1);
                Ok(())
            }
            libc::ENOMEM | libc::EAGAIN => Err(Refused::Full),
            libc::EINVAL => Err(Refused::Misuse),
            _ => Err(Refused::Dead),
        }
    }

    fn namespace_is_active(&self) -> bool {
        // SAFETY: the driver keeps a namespace's struct as long as the controller is attached, which `Qpair`
        // sees to; the function reads one flag.
        !self.namespace.is_null() && unsafe { spdk_sys::spdk_nvme_ns_is_active(self.namespace) }
    }

    /// Hands over what came while nobody was listening.
    #[cold]
    fn deliver_kept(&self, handler: Handler, context: *mut c_void) -> u32 {
        let mut count = 0;
        for state in &self.slots {
            if let Some(status) = state.kept.take() {
                self.kept_count.set(self.kept_count.get() - 1);
                self.release(state);
                count += 1;
                // SAFETY: as in `completed`.
                unsafe { handler(context, self, state.index, status) };
            }
        }
        count
    }

    /// The buffer of a slot; empty where a command is in flight in it, or there is no such slot.
    ///
    /// # Safety
    /// While the slice lives nobody sends in the slot, or asks for its buffer again.
    #[inline]
    #[allow(clippy::mut_from_ref)] // the memory is the devices' and the slots', not this struct's
    unsafe fn buffer(&self, slot: u32) -> &mut [u8] {
        match self.slots.get(slot as usize) {
            // SAFETY: the bytes are the slot's own; no command is in flight in it, so no device writes them; the
            // caller sees to the rest.
            Some(state) if !state.busy.get() => unsafe {
                std::slice::from_raw_parts_mut(self.data_at(slot as usize), self.slot_bytes)
            },
            _ => &mut [],
        }
    }

    #[inline]
    fn release(&self, state: &SlotState) {
        state.busy.set(false);
        self.in_flight.set(self.in_flight.get() - 1);
    }
}

/// SPDK's callback.
unsafe extern "C" fn completed(context: *mut c_void, completion: *const spdk_sys::spdk_nvme_cpl) {
    // SAFETY: the context is the `SlotState` given at submission, inside the `Inner` it points back to; both
    // stay in place until `Qpair::close` has seen every callback, or for ever. SPDK calls on the thread that
    // polls (or frees) the queue pair, and passes a completion that lives during the call.
    let (state, inner, field) = unsafe {
        let state = &*context.cast_const().cast::<SlotState>();
        (state, &*state.owner, status_field(completion))
    };
    let status = NvmeStatus::from_field(field);
    // The handler is taken out while it runs: a completion inside it (from a failing submission) is kept.
    match inner.handler.take() {
        Some(handler) => {
            inner.release(state);
            // SAFETY: `poll` has set handler and context together and is below us on this thread's stack, so
            // that the context is alive and nobody else uses it.
            unsafe { handler(inner.context.get(), inner, state.index, status) };
            inner.handler.set(Some(handler));
        }
        None => {
            state.kept.set(Some(status));
            inner.kept_count.set(inner.kept_count.get() + 1);
        }
    }
}

/// # Safety
/// `context` is a `C` that nobody else uses during the call.
unsafe fn handle<C: Completions>(context: *mut c_void, inner: &Inner, slot: u32, status: NvmeStatus) {
    // SAFETY: the caller.
    let receiver = unsafe { &mut *context.cast::<C>() };
    receiver.completed(&mut Lane { inner }, slot, status);
}

/// The part of a queue pair that may be used while completions are handed over.
pub struct Lane<'a> {
    inner: &'a Inner,
}

impl Lane<'_> {
    /// Sends `command` in a free slot.
    ///
    /// # Errors
    /// [`Refused`]; nothing was sent.
    #[inline]
    pub fn submit(&mut self, slot: u32, command: &Command, payload: Payload) -> Result<(), Refused> {
        self.inner.submit(slot, command, payload)
    }

    /// Commands in flight.
    #[inline]
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.inner.in_flight.get()
    }

    /// The buffer of a slot; empty where a command is in flight in it, or there is no such slot.
    #[inline]
    pub fn buffer(&mut self, slot: u32) -> &mut [u8] {
        // SAFETY: the borrow of the lane keeps anybody else from sending in the slot or borrowing its bytes.
        unsafe { self.inner.buffer(slot) }
    }

    /// The second buffer of a slot (metadata, ranges), on the same terms.
    #[inline]
    pub fn extra(&mut self, slot: u32) -> &mut [u8] {
        match self.inner.slots.get(slot as usize) {
            // SAFETY: as in `buffer`.
            Some(state) if !state.busy.get() && self.inner.extra.is_some() => unsafe {
                std::slice::from_raw_parts_mut(self.inner.extra_at(slot as usize), self.inner.extra_bytes)
            },
            _ => &mut [],
        }
    }
}

/// An I/O queue pair of one namespace, owned by the thread that opened it.
pub struct Qpair {
    inner: NonNull<Inner>,
    controller: Arc<Controller>,
    /// Neither `Send` nor `Sync`.
    _thread: PhantomData<*const ()>,
}

impl std::fmt::Debug for Qpair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Qpair").field("controller", &self.controller.id()).finish_non_exhaustive()
    }
}

impl Qpair {
    /// Opens a queue pair with its buffers on the controller's NUMA node.
    ///
    /// # Errors
    /// [`SpdkError::NoQueue`] where the controller has none left, [`SpdkError::NoMemory`].
    pub fn open(controller: &Arc<Controller>, spec: &QpairSpec) -> Result<Self, SpdkError> {
        let slots = spec.slots_count as usize;
        let stride = (spec.slot_bytes as usize).next_multiple_of(ALIGN_BYTES);
        let device = controller.name();
        let node = controller.numa_node();
        let data = Dma::zeroed(controller.env, &device, stride.saturating_mul(slots), node)?;
        let extra_bytes = (spec.extra_bytes as usize).next_multiple_of(64);
        let extra = match extra_bytes {
            0 => None,
            bytes => Some(Dma::zeroed(controller.env, &device, bytes.saturating_mul(slots), node)?),
        };
        log::clear();
        let raw = allocate(controller, spec).ok_or_else(|| SpdkError::NoQueue {
            device: device.clone(),
            granted_count: controller.io_queues_count(),
            asked_count: spec.queues_asked_count,
            said: log::said(),
        })?;
        // SAFETY: the controller is attached as long as `controller` lives.
        let namespace = unsafe { spdk_sys::spdk_nvme_ctrlr_get_ns(controller.raw.ptr(), spec.nsid) };
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
        inner.slots.extend((0..spec.slots_count).map(|index| SlotState { owner, index, busy: Cell::new(false), kept: Cell::new(None) }));
        let inner = NonNull::from(Box::leak(inner));
        Ok(Self { inner, controller: Arc::clone(controller), _thread: PhantomData })
    }

    #[inline]
    fn inner(&self) -> &Inner {
        // SAFETY: leaked from a box in `open`, freed in `close` only, which takes `self`; never behind a `&mut`.
        unsafe { self.inner.as_ref() }
    }

    /// To send commands and use buffers outside a poll.
    #[inline]
    pub fn lane(&mut self) -> Lane<'_> {
        Lane { inner: self.inner() }
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
            Ok(0) if self.controller.is_gone() => Err(if self.controller.health.is_silent() { libc::ETIMEDOUT } else { libc::ENODEV }),
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
        let (raw, inner) = (self.inner().raw, self.inner);
        // SAFETY: this thread does nothing but wait; where the call does not come back, `inner` is never used or
        // freed again by anybody here.
        let moved = unsafe { Moved::new((raw, inner)) };
        let freed = bounded::run(FREE_LIMIT, move || {
            let (raw, inner) = moved.take();
            // SAFETY: the queue pair is open and no other thread uses it now. SPDK calls back for everything
            // outstanding (kept) before it returns; after that nobody has the address of `inner`, and the
            // controller no longer knows the queue, so no device writes to the buffers.
            unsafe {
                spdk_sys::spdk_nvme_ctrlr_free_io_qpair(raw);
                drop(Box::from_raw(inner.as_ptr()));
            }
        });
        if freed.is_none() {
            tracing::warn!("{}: a queue did not close within {} s, left behind", self.controller.name(), FREE_LIMIT.as_secs());
        }
        abandoned
    }
}

fn allocate(controller: &Controller, spec: &QpairSpec) -> Option<*mut spdk_sys::spdk_nvme_qpair> {
    let size = size_of::<spdk_sys::spdk_nvme_io_qpair_opts>();
    let entries = spec.depth.saturating_add(1).next_power_of_two().clamp(2, controller.queue_entries());
    let mut opts = MaybeUninit::<spdk_sys::spdk_nvme_io_qpair_opts>::zeroed();
    // SAFETY: plain old data, valid as all zeros; SPDK fills in the defaults, told the size, and copies the
    // options in the call. The controller is attached as long as its `Arc` lives; allocation takes its lock.
    let raw = unsafe {
        spdk_sys::spdk_nvme_ctrlr_get_default_io_qpair_opts(controller.raw.ptr(), opts.as_mut_ptr(), size);
        let opts = opts.assume_init_mut();
        opts.io_queue_size = entries;
        opts.io_queue_requests = spec.requests_count.max(entries);
        opts.__bindgen_anon_1.delay_cmd_submit = spec.deferred && controller.id().transport.has_doorbells();
        spdk_sys::spdk_nvme_ctrlr_alloc_io_qpair(controller.raw.ptr(), opts, size)
    };
    (!raw.is_null()).then_some(raw)
}

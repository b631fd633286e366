//! What SPDK's callbacks reach of a queue pair, and the trampoline to the caller's [`Completions`].
//!
//! It is behind `Cell`s and raw addresses and never behind a `&mut`, since SPDK calls back while the owner is
//! inside `poll`. Buffers are lent out only for slots with nothing in flight.

use super::dma::Dma;
use super::spec::{Completions, Payload, Refused, Split};
use crate::proto::nvme::{Command, NvmeStatus};
use std::cell::Cell;
use std::ffi::c_void;
use std::mem::{align_of, size_of};

const _: () = assert!(size_of::<Command>() == size_of::<spdk_sys::spdk_nvme_cmd>());
const _: () = assert!(align_of::<Command>() == align_of::<spdk_sys::spdk_nvme_cmd>());

/// Where the status field stands in a completion (tested in spdk-sys against its C twin).
const STATUS_OFFSET: usize = 14;

/// The status field of a completion, phase tag in bit 0.
///
/// # Safety
/// `completion` points to a live completion.
#[inline]
pub(super) unsafe fn status_field(completion: *const spdk_sys::spdk_nvme_cpl) -> u16 {
    // SAFETY: 16 bytes are readable (the caller); the field is aligned within them.
    unsafe {
        completion
            .cast::<u8>()
            .add(STATUS_OFFSET)
            .cast::<u16>()
            .read()
    }
}

/// How a completion reaches the caller of `poll`.
pub(super) type Handler = unsafe fn(*mut c_void, &Inner, u32, NvmeStatus);

/// One slot, and what its command carries around as its context.
pub(super) struct SlotState {
    pub(super) owner: *const Inner,
    pub(super) index: u32,
    pub(super) busy: Cell<bool>,
    /// A status that came while nobody was listening.
    pub(super) kept: Cell<Option<NvmeStatus>>,
}

/// Everything that the callback may touch. Lives in a box whose address SPDK's requests hold.
pub(super) struct Inner {
    pub(super) raw: *mut spdk_sys::spdk_nvme_qpair,
    pub(super) controller: *mut spdk_sys::spdk_nvme_ctrlr,
    pub(super) namespace: *mut spdk_sys::spdk_nvme_ns,
    pub(super) slots: Vec<SlotState>,
    pub(super) data: Dma,
    pub(super) extra: Option<Dma>,
    pub(super) slot_bytes: usize,
    pub(super) slot_stride: usize,
    pub(super) extra_bytes: usize,
    pub(super) in_flight: Cell<u32>,
    pub(super) kept_count: Cell<u32>,
    pub(super) handler: Cell<Option<Handler>>,
    pub(super) context: Cell<*mut c_void>,
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
    fn submit(&self, slot: u32, command: &Command, payload: Payload) -> Result<(), Refused> {
        let Some(state) = self
            .slots
            .get(slot as usize)
            .filter(|state| !state.busy.get())
        else {
            return Err(Refused::Misuse);
        };
        let result = match payload {
            Payload::Split(part) => self.send_split(state, part)?,
            whole => self.send_raw(state, command, whole)?,
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

    /// One command. The driver's answer: 0, or a negative errno.
    #[inline]
    fn send_raw(
        &self,
        state: &SlotState,
        command: &Command,
        payload: Payload,
    ) -> Result<i32, Refused> {
        let slot = state.index as usize;
        let fits = |bytes: u32, room: usize| {
            if bytes as usize <= room {
                Ok(bytes)
            } else {
                Err(Refused::Misuse)
            }
        };
        let null = std::ptr::null_mut();
        let (data, bytes, metadata) = match payload {
            Payload::Data(bytes) => (self.data_at(slot), fits(bytes, self.slot_bytes)?, null),
            Payload::Extra(bytes) => (self.extra_at(slot), fits(bytes, self.extra_bytes)?, null),
            Payload::DataAndExtra { bytes, extra_bytes } => {
                fits(extra_bytes, self.extra_bytes)?;
                (
                    self.data_at(slot),
                    fits(bytes, self.slot_bytes)?,
                    self.extra_at(slot),
                )
            }
            Payload::None | Payload::Split(_) => (null, 0, null),
        };
        // SPDK takes a pointer to mutable, and only copies from it.
        let sqe = (&raw const *command).cast_mut().cast();
        let context = (&raw const *state).cast_mut().cast();
        // SAFETY: the queue pair is open and used by this thread alone (`Qpair` is !Send). SPDK copies the
        // command. The buffers are the slot's own, long enough (checked), DMA memory, and lent to nobody while
        // `busy`. The context is the slot's state, which outlives the command: `Qpair::close` waits for every
        // callback or leaks.
        Ok(unsafe {
            if metadata.is_null() {
                spdk_sys::spdk_nvme_ctrlr_cmd_io_raw(
                    self.controller,
                    self.raw,
                    sqe,
                    data.cast(),
                    bytes,
                    Some(completed),
                    context,
                )
            } else {
                spdk_sys::spdk_nvme_ctrlr_cmd_io_raw_with_md(
                    self.controller,
                    self.raw,
                    sqe,
                    data.cast(),
                    bytes,
                    metadata.cast(),
                    Some(completed),
                    context,
                )
            }
        })
    }

    /// Several commands of the driver's making. Its answer: 0, or a negative errno.
    fn send_split(&self, state: &SlotState, part: Split) -> Result<i32, Refused> {
        let slot = state.index as usize;
        if part.bytes as usize > self.slot_bytes || part.extra_bytes as usize > self.extra_bytes {
            return Err(Refused::Misuse);
        }
        // The driver's split divides by a limit that it clears when the namespace is removed.
        if !self.namespace_is_active() {
            return Err(Refused::Dead);
        }
        let extra = if part.extra_bytes > 0 {
            self.extra_at(slot)
        } else {
            std::ptr::null_mut()
        };
        let call = if part.write {
            spdk_sys::spdk_nvme_ns_cmd_write_with_md
        } else {
            spdk_sys::spdk_nvme_ns_cmd_read_with_md
        };
        // SAFETY: as in `send_raw`; the namespace lives as long as the controller is attached.
        Ok(unsafe {
            call(
                self.namespace,
                self.raw,
                self.data_at(slot).cast(),
                extra.cast(),
                part.lba,
                part.blocks,
                Some(completed),
                (&raw const *state).cast_mut().cast(),
                part.flags,
                0,
                0,
            )
        })
    }

    pub(super) fn namespace_is_active(&self) -> bool {
        // SAFETY: the driver keeps a namespace's struct as long as the controller is attached, which `Qpair`
        // sees to; the function reads one flag.
        !self.namespace.is_null() && unsafe { spdk_sys::spdk_nvme_ns_is_active(self.namespace) }
    }

    /// Hands over what came while nobody was listening.
    #[cold]
    pub(super) fn deliver_kept(&self, handler: Handler, context: *mut c_void) -> u32 {
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
    pub(super) unsafe fn buffer(&self, slot: u32) -> &mut [u8] {
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
pub(super) unsafe fn handle<C: Completions>(
    context: *mut c_void,
    inner: &Inner,
    slot: u32,
    status: NvmeStatus,
) {
    // SAFETY: the caller.
    let receiver = unsafe { &mut *context.cast::<C>() };
    receiver.completed(&mut Lane { inner }, slot, status);
}

/// The part of a queue pair that may be used while completions are handed over.
pub struct Lane<'a> {
    pub(super) inner: &'a Inner,
}

impl Lane<'_> {
    /// Sends `command` in a free slot.
    ///
    /// # Errors
    /// [`Refused`]; nothing was sent.
    #[inline]
    pub fn submit(
        &mut self,
        slot: u32,
        command: &Command,
        payload: Payload,
    ) -> Result<(), Refused> {
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
                std::slice::from_raw_parts_mut(
                    self.inner.extra_at(slot as usize),
                    self.inner.extra_bytes,
                )
            },
            _ => &mut [],
        }
    }
}

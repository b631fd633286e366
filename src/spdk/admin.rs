//! Admin commands, one at a time, each within the controller's limit.

use super::SpdkError;
use super::controller::Controller;
use super::dma::Dma;
use crate::proto::nvme::{
    CNS_COMMAND_SET_CONTROLLER, Command, IDENTIFY_BYTES, NamespaceIds, NvmeStatus, SMART_BYTES,
    SMART_LOG_ID, SmartLog, VOLATILE_WRITE_CACHE, has_command_set_controller, is_write_cache_on,
    zeroes_shift,
};
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Namespace identifier that stands for the whole controller.
const ALL_NAMESPACES: u32 = 0xffff_ffff;
/// Identify structure: namespace identification descriptors.
const CNS_DESCRIPTORS: u8 = 0x03;

/// Where the answer arrives. The callback may run on this thread or on the keeper's.
#[derive(Default)]
pub(super) struct Answer {
    done: AtomicBool,
    field: AtomicU16,
    dword_0: AtomicU32,
}

impl Controller {
    /// The identifiers of a namespace.
    pub(super) fn namespace_ids(&self, nsid: u32) -> Result<NamespaceIds, SpdkError> {
        let mut list = vec![0; IDENTIFY_BYTES];
        self.admin(
            "Identify",
            &Command::identify(CNS_DESCRIPTORS, nsid),
            &mut list,
        )?;
        Ok(NamespaceIds::decode(&list))
    }

    /// WZSL: the controller's own limit of a Write Zeroes, as a power of two of a page; absent: it tells none.
    #[must_use]
    pub fn zeroes_shift(&self) -> Option<u8> {
        if !has_command_set_controller(self.identify().version) {
            return None;
        }
        let mut bytes = vec![0; IDENTIFY_BYTES];
        let command = Command::identify(CNS_COMMAND_SET_CONTROLLER, 0);
        self.admin("Identify", &command, &mut bytes).ok()?;
        zeroes_shift(&bytes).ok().flatten()
    }

    /// The controller's SMART / Health log.
    ///
    /// # Errors
    /// [`SpdkError::Admin`] or [`SpdkError::AdminLost`].
    pub fn smart(&self) -> Result<SmartLog, SpdkError> {
        let mut log = vec![0; SMART_BYTES];
        let bytes = u32::try_from(SMART_BYTES).unwrap_or_default();
        self.admin(
            "Get Log Page (SMART)",
            &Command::get_log_page(SMART_LOG_ID, ALL_NAMESPACES, bytes),
            &mut log,
        )?;
        SmartLog::decode(&log).map_err(|cut| self.short(cut))
    }

    /// Whether its volatile write cache is on; `None` where it has none.
    ///
    /// # Errors
    /// [`SpdkError::Admin`] or [`SpdkError::AdminLost`].
    pub fn write_cache(&self) -> Result<Option<bool>, SpdkError> {
        if !self.identify().volatile_write_cache {
            return Ok(None);
        }
        let command = Command::get_features(VOLATILE_WRITE_CACHE);
        let dword_0 = self.admin("Get Features (Volatile Write Cache)", &command, &mut [])?;
        Ok(Some(is_write_cache_on(dword_0)))
    }

    /// Sends a command that reads `out.len()` bytes, and waits for its end. Says dword 0 of its completion.
    fn admin(
        &self,
        what: &'static str,
        command: &Command,
        out: &mut [u8],
    ) -> Result<u32, SpdkError> {
        let buffer = Dma::zeroed(self.env, &self.name(), out.len(), self.numa_node())?;
        let answer = Box::into_raw(Box::new(Answer::default()));
        let lost = || SpdkError::AdminLost {
            device: self.name(),
            what,
        };
        let mut sqe = *command;
        // SAFETY: `Command` is the 64 bytes of spdk_nvme_cmd with its alignment (asserted in qpair.rs) and is
        // copied by the call. Buffer and answer live until the callback has run; where it never does they are
        // leaked below. The controller is attached as long as `self` lives.
        let sent = unsafe {
            spdk_sys::spdk_nvme_ctrlr_cmd_admin_raw(
                self.raw.ptr(),
                (&raw mut sqe).cast(),
                buffer.start().as_ptr().cast(),
                u32::try_from(out.len()).unwrap_or(u32::MAX),
                Some(answered),
                answer.cast(),
            )
        };
        if sent != 0 {
            // SAFETY: the command was not taken, so nobody else has the address.
            drop(unsafe { Box::from_raw(answer) });
            return Err(lost());
        }
        let deadline = Instant::now() + self.limit;
        // SAFETY: the answer is alive: it is freed below only, and written through atomics only.
        while !unsafe { (*answer).is_done() } {
            // SAFETY: the controller is attached; the function is thread safe (nvme.h).
            let result =
                unsafe { spdk_sys::spdk_nvme_ctrlr_process_admin_completions(self.raw.ptr()) };
            if Instant::now() > deadline || result < 0 || self.health.is_silent() {
                // The callback may still come: what it would touch stays for good.
                std::mem::forget(buffer);
                return Err(lost());
            }
            std::thread::sleep(Duration::from_micros(50));
        }
        // SAFETY: done: SPDK is through with the answer.
        let answer = unsafe { Box::from_raw(answer) };
        let status = NvmeStatus::from_field(answer.field.load(Ordering::Relaxed));
        if !status.is_ok() {
            return Err(SpdkError::Admin {
                device: self.name(),
                what,
                status,
            });
        }
        buffer.copy_to(out);
        Ok(answer.dword_0.load(Ordering::Relaxed))
    }
}

impl Answer {
    /// Whether it has arrived; whoever sent the command may then free it.
    pub(super) fn is_done(&self) -> bool {
        self.done.load(Ordering::Acquire)
    }
}

/// The callback of admin commands; its context is an [`Answer`].
pub(super) unsafe extern "C" fn answered(
    context: *mut c_void,
    completion: *const spdk_sys::spdk_nvme_cpl,
) {
    // SAFETY: the context is the `Answer` given with the command, alive until `done` is seen; SPDK passes a
    // completion that lives during the call.
    unsafe {
        let answer = &*context.cast::<Answer>();
        answer
            .field
            .store(super::inner::status_field(completion), Ordering::Relaxed);
        // Dword 0 comes first in a completion.
        let dword_0 = completion.cast::<u32>().read();
        answer.dword_0.store(dword_0, Ordering::Relaxed);
        answer.done.store(true, Ordering::Release);
    }
}

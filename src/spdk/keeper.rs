//! Serves a controller's admin queue: keep alive, asynchronous events, and whether it still answers. Never on a
//! reactor.

use super::admin::{Answer, answered};
use super::bounded;
use super::controller::Raw;
use crate::proto::nvme::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Between two looks. Keep alive is due every few seconds.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Between two questions to a controller in another process or machine.
const ASK_EVERY: Duration = Duration::from_secs(1);
/// Such a controller that leaves a question unanswered for this long is taken for dead.
const SILENT_AFTER: Duration = Duration::from_secs(3);
/// How long the thread may take to stop.
const STOP_LIMIT: Duration = Duration::from_secs(2);
/// The feature that is asked for: Number of Queues, which every controller has.
const ASKED_FEATURE: u8 = 0x07;

/// What is known of a controller's life. Shared with the reactors.
#[derive(Debug, Default)]
pub(super) struct Health {
    gone: AtomicBool,
    silent: AtomicBool,
}

impl Health {
    /// Its admin queue is dead, or it does not answer.
    #[inline]
    pub(super) fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Relaxed)
    }

    /// It does not answer, so that no call may be made that waits for it.
    pub(super) fn is_silent(&self) -> bool {
        self.silent.load(Ordering::Relaxed)
    }

    fn lost(&self) {
        self.gone.store(true, Ordering::Relaxed);
    }

    /// It will not answer any more.
    pub(super) fn fell_silent(&self) {
        self.silent.store(true, Ordering::Relaxed);
        self.lost();
        bounded::note_left_behind();
    }
}

/// The thread that polls the admin queue of one controller.
#[derive(Debug)]
pub(super) struct Keeper {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    /// Polls `raw` until stopped or until it is dead. With `ask` it puts a small question every second: a stopped
    /// or killed process on the other side of shared memory shows in no other way. The caller keeps the
    /// controller attached until [`Keeper::stop`] says yes.
    pub(super) fn start(raw: Raw, health: Arc<Health>, ask: bool) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let thread = std::thread::Builder::new()
            .name("spdk-admin".to_owned())
            .spawn(move || {
                let mut question = Question {
                    raw,
                    pending: None,
                    due: Instant::now() + ASK_EVERY,
                };
                while !told.load(Ordering::Relaxed) {
                    // SAFETY: the controller is attached (see above); the function is thread safe (nvme.h).
                    let result =
                        unsafe { spdk_sys::spdk_nvme_ctrlr_process_admin_completions(raw.ptr()) };
                    if result < 0 && !health.is_gone() {
                        tracing::debug!("the admin queue is dead: errno {}", -result);
                        health.lost();
                    }
                    if !health.is_gone() && is_called_back(raw) {
                        tracing::debug!("the kernel wants the device back");
                        health.lost();
                    }
                    if ask && !health.is_gone() && !question.answered_in_time() {
                        health.fell_silent();
                        return;
                    }
                    std::thread::park_timeout(LOOK_EVERY);
                }
                question.finish();
            });
        Self {
            stop,
            thread: thread.ok(),
        }
    }

    /// Stops polling. False: the thread is stuck in the driver.
    pub(super) fn stop(self) -> bool {
        self.stop.store(true, Ordering::Relaxed);
        let Some(thread) = self.thread else {
            return true;
        };
        let deadline = Instant::now() + STOP_LIMIT;
        while !thread.is_finished() {
            if Instant::now() > deadline {
                bounded::note_left_behind();
                return false;
            }
            thread.thread().unpark();
            std::thread::sleep(Duration::from_micros(200));
        }
        thread.join().is_ok()
    }
}

/// Whether the kernel asks for a PCI device that it has given to VFIO: it is about to be removed, or its driver
/// to be unbound. It waits until we let go, so nothing else would ever tell.
fn is_called_back(raw: Raw) -> bool {
    // SAFETY: the controller is attached (see `Keeper::start`), and with it its PCI device, if it has one; both
    // functions only read.
    unsafe {
        let device = spdk_sys::spdk_nvme_ctrlr_get_pci_device(raw.ptr());
        !device.is_null() && spdk_sys::spdk_pci_device_is_removed(device)
    }
}

/// At most one question under way.
struct Question {
    raw: Raw,
    pending: Option<(*mut Answer, Instant)>,
    due: Instant,
}

impl Question {
    /// Takes the answer, or asks. False: unanswered for too long.
    fn answered_in_time(&mut self) -> bool {
        let now = Instant::now();
        match self.pending {
            Some((answer, asked)) => {
                // SAFETY: the answer lives until it is done, see below.
                if unsafe { (*answer).is_done() } {
                    // SAFETY: done: SPDK is through with it, and it was boxed by `ask`.
                    drop(unsafe { Box::from_raw(answer) });
                    self.pending = None;
                    self.due = asked + ASK_EVERY;
                } else if now.duration_since(asked) > SILENT_AFTER {
                    return false; // the answer is leaked: it may still be written
                }
            }
            None if now >= self.due => self.ask(now),
            None => {}
        }
        true
    }

    fn ask(&mut self, now: Instant) {
        let answer = Box::into_raw(Box::<Answer>::default());
        let mut command = Command::get_features(ASKED_FEATURE);
        // SAFETY: the controller is attached; the command is copied; no data move; the answer lives until the
        // callback has run or for ever.
        let sent = unsafe {
            spdk_sys::spdk_nvme_ctrlr_cmd_admin_raw(
                self.raw.ptr(),
                (&raw mut command).cast(),
                std::ptr::null_mut(),
                0,
                Some(answered),
                answer.cast(),
            )
        };
        if sent == 0 {
            self.pending = Some((answer, now));
        } else {
            // SAFETY: not taken, so nobody else has the address.
            drop(unsafe { Box::from_raw(answer) });
            self.due = now + ASK_EVERY;
        }
    }

    /// What is under way at the end is aborted by detaching, which runs its callback: it stays.
    fn finish(self) {
        if let Some((answer, _)) = self.pending {
            // SAFETY: as in `answered_in_time`.
            if unsafe { (*answer).is_done() } {
                // SAFETY: as in `answered_in_time`.
                drop(unsafe { Box::from_raw(answer) });
            }
        }
    }
}

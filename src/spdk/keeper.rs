//! Serves a controller's admin queue: keep alive, asynchronous events, death. Never on a reactor.

use super::controller::Raw;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Between two looks. Keep alive is due every few seconds.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How long the thread may take to stop.
const STOP_LIMIT: Duration = Duration::from_secs(2);

/// The thread that polls the admin queue of one controller.
#[derive(Debug)]
pub struct Keeper {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    /// Polls `raw` until stopped; sets `gone` when the admin queue is dead. The caller keeps the controller
    /// attached until [`Keeper::stop`] says yes.
    pub(super) fn start(raw: Raw, gone: Arc<AtomicBool>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let thread = std::thread::Builder::new()
            .name("spdk-admin".to_owned())
            .spawn(move || {
                while !told.load(Ordering::Relaxed) {
                    // SAFETY: the controller is attached (see above); the function is thread safe (nvme.h).
                    let result =
                        unsafe { spdk_sys::spdk_nvme_ctrlr_process_admin_completions(raw.ptr()) };
                    if result < 0 && !gone.swap(true, Ordering::Relaxed) {
                        tracing::debug!("the admin queue is dead: errno {}", -result);
                    }
                    std::thread::park_timeout(LOOK_EVERY);
                }
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
                super::bounded::note_left_behind();
                return false;
            }
            thread.thread().unpark();
            std::thread::sleep(Duration::from_micros(200));
        }
        thread.join().is_ok()
    }
}

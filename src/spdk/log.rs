//! SPDK's and DPDK's log, redirected to `tracing`; the last complaint is kept for the error that follows it.

use std::ffi::{CStr, c_char, c_int};
use std::sync::{Mutex, Once, PoisonError};

/// Number of complaints kept.
const KEPT_COUNT: usize = 2;
static COMPLAINTS: Mutex<Vec<String>> = Mutex::new(Vec::new());
static REDIRECT: Once = Once::new();

/// Sends both logs to `tracing` (targets `spdk` and `dpdk`). Does so once.
pub(super) fn redirect() {
    REDIRECT.call_once(|| {
        // SAFETY: `on_line` has the type that the shim declares and lives as long as the program.
        let result = unsafe { spdk_sys::lanemark_log_redirect(Some(on_line)) };
        if result != 0 {
            tracing::warn!("SPDK's log could not be redirected: errno {}", -result);
        }
    });
}

/// Forgets earlier complaints.
pub(super) fn clear() {
    COMPLAINTS
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clear();
}

/// The complaints since [`clear`], first one first, as the end of a message: `: …; …`, or nothing.
pub(super) fn said() -> String {
    let complaints = COMPLAINTS.lock().unwrap_or_else(PoisonError::into_inner);
    if complaints.is_empty() {
        String::new()
    } else {
        format!(": {}", complaints.join("; "))
    }
}

/// Without the driver's own words in brackets at its start, which name queues and states.
fn core(text: &str) -> &str {
    let mut rest = text;
    while let Some((_, after)) = rest
        .strip_prefix('[')
        .and_then(|inner| inner.split_once(']'))
    {
        rest = after.trim_start();
    }
    if rest.is_empty() { text } else { rest }
}

fn keep(text: &str) {
    let text = core(text);
    let mut complaints = COMPLAINTS.lock().unwrap_or_else(PoisonError::into_inner);
    if complaints.len() < KEPT_COUNT && !complaints.iter().any(|known| known == text) {
        complaints.push(text.to_owned());
    }
}

/// A line of either log. Runs on whatever thread logs; must not unwind.
unsafe extern "C" fn on_line(
    source: c_int,
    level: c_int,
    _file: *const c_char,
    _line: c_int,
    text: *const c_char,
) {
    // SAFETY: the shim passes a zero-terminated buffer that lives during this call (shim.c: spdk_line, dpdk_write).
    let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
    let text = text.trim();
    if text.is_empty() {
        return;
    }
    if level <= spdk_sys::SPDK_LOG_WARN as c_int {
        keep(text);
    }
    let level = i64::from(level);
    match (source, level) {
        (0, ..=0) => tracing::error!(target: "spdk", "{text}"),
        (0, 1) => tracing::warn!(target: "spdk", "{text}"),
        (0, 2) => tracing::info!(target: "spdk", "{text}"),
        (0, _) => tracing::debug!(target: "spdk", "{text}"),
        (_, ..=0) => tracing::error!(target: "dpdk", "{text}"),
        (_, 1) => tracing::warn!(target: "dpdk", "{text}"),
        (_, 2) => tracing::info!(target: "dpdk", "{text}"),
        (_, _) => tracing::debug!(target: "dpdk", "{text}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_drivers_brackets_are_no_part_of_a_complaint() {
        assert_eq!(
            core("[nqn.x,cntlid:0] [CONNECTING] connect failed"),
            "connect failed"
        );
        assert_eq!(core("plain [1]"), "plain [1]");
        assert_eq!(core("[only]"), "[only]");
    }
}

//! How a test says that it cannot run here: `SKIPPED: reason [test]` on a line of its own.
#![allow(dead_code)]

use std::io::Write;

/// Written past libtest, which keeps what passing tests print to itself; `scripts/test` counts these lines.
/// One write, begun with a line break: libtest may have left a line open.
pub fn skipped(reason: &str) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or_default();
    let _ = std::io::stderr().write_all(format!("\nSKIPPED: {reason} [{test}]\n").as_bytes());
}

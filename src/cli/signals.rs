//! SIGINT, SIGTERM, SIGHUP: the first asks the run to end, the second ends it without waiting.

use crate::reactor::{Control, StopCause};
use crate::sys::standin;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::sync::Arc;
use std::time::Duration;

/// After the second signal the partial record has this long to get out.
const LAST_WORDS: Duration = Duration::from_secs(3);

/// Listens from now on.
///
/// # Errors
/// The kernel refused the handlers.
pub fn listen(control: &Arc<Control>) -> std::io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    standin::release_signals();
    let control = Arc::clone(control);
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            for (number, _signal) in signals.forever().enumerate() {
                if number == 0 {
                    control.stop(StopCause::Signal);
                    continue;
                }
                control.stop(StopCause::Abort);
                std::thread::sleep(LAST_WORDS);
                std::process::exit(i32::from(super::exit::Exit::Interrupted.code()));
            }
        })?;
    Ok(())
}

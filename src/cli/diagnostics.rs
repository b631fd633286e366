//! Diagnostics on stderr: what SPDK, DPDK and lanemark's own parts say of themselves.

use std::str::FromStr;
use tracing::level_filters::LevelFilter;

/// The variable that asks for them: `error`, `warn`, `info`, `debug`, `trace`. Without it there are none:
/// what matters to the user is in the record and in one error.
pub const VARIABLE: &str = "LANEMARK_LOG";

/// Sends diagnostics to stderr, if they are asked for. A word that is no level asks for everything from
/// `info` up.
pub fn listen() {
    let Ok(word) = std::env::var(VARIABLE) else {
        return;
    };
    let level = LevelFilter::from_str(&word).unwrap_or(LevelFilter::INFO);
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(std::io::stderr)
        .finish();
    // It can be set once; in tests of the library somebody may have.
    let _ = tracing::subscriber::set_global_default(subscriber);
}

//! Where this program comes from.

use std::sync::LazyLock;

/// The release.
pub const SHORT: &str = env!("CARGO_PKG_VERSION");

/// The release, the commit, the compiler, the target, and what it was built with.
#[must_use]
pub fn long() -> &'static str {
    static LONG: LazyLock<String> = LazyLock::new(text);
    &LONG
}

fn text() -> String {
    let spdk = match (crate::spdk::versions(), crate::spdk::absent()) {
        (Some((spdk, dpdk)), _) => format!(
            "SPDK {spdk}, DPDK {dpdk}, transports {}",
            crate::spdk::transports().join(", ")
        ),
        (None, why) => format!("without SPDK: {}", why.unwrap_or("unknown why")),
    };
    format!(
        "{SHORT}\ncommit {}\n{}\ntarget {}\n{spdk}",
        option_env!("LANEMARK_GIT_COMMIT").unwrap_or("unknown"),
        option_env!("LANEMARK_RUSTC").unwrap_or("rustc unknown"),
        option_env!("LANEMARK_TARGET").unwrap_or("unknown"),
    )
}

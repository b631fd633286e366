//! The safe layer over `spdk-sys`: one of the two places where `unsafe` is allowed, and the only one that names
//! that crate. Everything public here is safe to call; each unsafe block says who guarantees what.
//!
//! Without SPDK at build time the same types exist, nothing can be opened, and [`absent`] says why.
#![allow(unsafe_code)]

mod error;
pub mod iommu;
pub mod preflight;
mod trid;

pub use error::SpdkError;
pub use trid::{Bdf, NamespaceChoice, Transport, TransportId, TridError};

#[cfg(spdk)]
mod admin;
#[cfg(spdk)]
mod bounded;
#[cfg(spdk)]
mod controller;
#[cfg(spdk)]
mod dma;
#[cfg(spdk)]
mod env;
#[cfg(spdk)]
mod inner;
#[cfg(spdk)]
mod keeper;
#[cfg(spdk)]
mod log;
#[cfg(spdk)]
mod qpair;

#[cfg(spdk)]
pub use controller::Controller;
#[cfg(spdk)]
pub use env::Env;
#[cfg(spdk)]
pub use inner::Lane;
#[cfg(spdk)]
pub use qpair::Qpair;

#[cfg(not(spdk))]
mod stub;
#[cfg(not(spdk))]
pub use stub::{Controller, Env, Lane, Qpair};

mod spec;

pub use spec::{
    AttachOptions, Completions, EnvOptions, Namespace, Payload, QpairSpec, Refused, Split,
};

/// The SPDK and DPDK releases linked into this program; absent without SPDK.
#[must_use]
pub fn versions() -> Option<(&'static str, &'static str)> {
    let (spdk, dpdk) = (env!("LANEMARK_SPDK_VERSION"), env!("LANEMARK_DPDK_VERSION"));
    (!spdk.is_empty()).then_some((spdk, dpdk))
}

/// Why this program was built without SPDK, with the remedy; absent where it has SPDK.
#[must_use]
pub fn absent() -> Option<&'static str> {
    let why = env!("LANEMARK_SPDK_ABSENT");
    if cfg!(spdk) {
        None
    } else if why.is_empty() {
        Some(
            "SPDK was not found when this program was built; run scripts/install-spdk and build again",
        )
    } else {
        Some(why)
    }
}

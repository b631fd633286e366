//! The safe layer over `spdk-sys`: one of the two places where `unsafe` is allowed, and the only one that names
//! that crate. Everything public here is safe to call; each unsafe block says who guarantees what.
//!
//! Without SPDK at build time the same types exist, nothing can be opened, and [`absent`] says why.
#![allow(unsafe_code)]

mod claims;
mod error;
pub mod iommu;
mod lack;
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

/// Transports that every SPDK has; they register in constructors, which a wrong link leaves out.
const EXPECTED: [Transport; 2] = [Transport::Pcie, Transport::Tcp];

/// The transports that have registered with SPDK in this program; none without SPDK.
#[must_use]
pub fn transports() -> Vec<&'static str> {
    let all = [
        Transport::Pcie,
        Transport::Tcp,
        Transport::VfioUser,
        Transport::Rdma,
    ];
    let names = all.into_iter().filter(|transport| has(*transport));
    names.map(Transport::name).collect()
}

/// Looks whether the transports that every SPDK has are there. Nothing is started for it.
///
/// # Errors
/// [`preflight::PreflightError::Unregistered`]; never without SPDK.
pub fn check_transports() -> Result<(), preflight::PreflightError> {
    let missing: Vec<_> = EXPECTED
        .into_iter()
        .filter(|transport| cfg!(spdk) && !has(*transport))
        .map(Transport::name)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(preflight::PreflightError::Unregistered {
        transports: missing.join(", "),
    })
}

/// Whether a transport has registered.
#[cfg(spdk)]
fn has(transport: Transport) -> bool {
    let name = std::ffi::CString::new(transport.name()).unwrap_or_default();
    // SAFETY: a zero-terminated string that outlives the call; it reads a list that constructors have filled.
    unsafe { spdk_sys::spdk_nvme_transport_available_by_name(name.as_ptr()) }
}

/// Without SPDK there is none.
#[cfg(not(spdk))]
const fn has(_transport: Transport) -> bool {
    false
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_transports_are_registered_where_there_is_spdk() {
        assert_eq!(check_transports(), Ok(()));
        let expected: &[&str] = if absent().is_some() {
            &[]
        } else {
            &["PCIE", "TCP"]
        };
        assert!(
            expected.iter().all(|name| transports().contains(name)),
            "{:?}",
            transports()
        );
        assert_eq!(absent().is_some(), transports().is_empty());
    }
}

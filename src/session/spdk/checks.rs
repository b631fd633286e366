//! Rows of `lanemark check` about SPDK: what is built in, rights, and each NVMe controller on the PCI bus.

use crate::session::preflight::{Check, State};
use crate::spdk::preflight::{
    self as lacks, PreflightError, check_pci, nvme_controllers, sees_physical_addresses,
};
use crate::spdk::{absent, check_transports, transports, versions};
use crate::sysfs::Sysfs;

/// The rows, in order.
pub(in crate::session) fn rows(sysfs: &Sysfs) -> Vec<Check> {
    let mut rows = vec![spdk(), rights(sysfs)];
    rows.extend(
        nvme_controllers(sysfs)
            .into_iter()
            .map(|bdf| controller(&bdf.to_string(), check_pci(sysfs, bdf))),
    );
    rows
}

fn row(name: &'static str, state: State, found: String, remedy: String) -> Check {
    Check {
        name,
        state,
        found,
        remedy,
    }
}

fn spdk() -> Check {
    const NAME: &str = "spdk";
    if let Some(why) = absent() {
        let remedy = "run scripts/install-spdk and build again (only SPDK's devices need it)";
        return row(NAME, State::Missing, why.to_owned(), remedy.to_owned());
    }
    if let Err(lack) = check_transports() {
        return row(NAME, State::Missing, lack.finding(), lack.remedy());
    }
    let (spdk, dpdk) = versions().unwrap_or_default();
    let names = transports().join(", ");
    row(
        NAME,
        State::Ok,
        format!("SPDK {spdk}, DPDK {dpdk}; transports {names}"),
        String::new(),
    )
}

fn rights(sysfs: &Sysfs) -> Check {
    const NAME: &str = "spdk-rights";
    if sees_physical_addresses(sysfs) {
        return row(NAME, State::Ok, "those of root".to_owned(), String::new());
    }
    row(
        NAME,
        State::Warn,
        "not root: no devices without an IOMMU, and only those of vfio-pci that this user may open"
            .to_owned(),
        "run as root, or give your user /dev/vfio/GROUP and locked memory".to_owned(),
    )
}

/// What stands between SPDK and one controller.
fn controller(bdf: &str, found: Result<(), PreflightError>) -> Check {
    const NAME: &str = "spdk-device";
    let Err(lack) = found else {
        let found = format!("{bdf}: SPDK can drive it");
        return row(NAME, State::Ok, found, String::new());
    };
    let state = match lack {
        // Nothing is wrong with a disk that the kernel drives.
        PreflightError::KernelDriver { .. } | PreflightError::NoDriver { .. } => State::Warn,
        _ => State::Missing,
    };
    row(NAME, state, lack.finding(), lack.remedy())
}

/// What the driver takes besides buffers, in MiB.
pub(in crate::session) const DRIVER_MIB: u64 = lacks::DRIVER_BYTES >> 20;

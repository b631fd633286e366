//! Facts of the machine that decide how well it can measure: huge pages, limits, clock, CPUs, IOMMU.

use super::{Sysfs, SysfsError, names_in, optional, read_bool, read_text, read_u64, read_word};
use crate::units::Bytes;
use std::collections::BTreeSet;
use std::path::Path;

/// Huge pages of one size on one NUMA node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HugePool {
    /// NUMA node; absent where the kernel shows only the sum.
    pub node: Option<u32>,
    /// Size of a page.
    pub page: Bytes,
    /// Pages reserved.
    pub total_count: u64,
    /// Pages free.
    pub free_count: u64,
}

/// Huge pages, by node where the kernel shows nodes.
///
/// # Errors
/// [`SysfsError`].
pub fn huge_pools(sysfs: &Sysfs) -> Result<Vec<HugePool>, SysfsError> {
    let nodes = sysfs.sys("devices/system/node");
    let mut pools = Vec::new();
    for name in optional(names_in(&nodes))?.unwrap_or_default() {
        if let Some(node) = name.strip_prefix("node").and_then(|n| n.parse().ok()) {
            pools.extend(pools_in(&nodes.join(&name).join("hugepages"), Some(node))?);
        }
    }
    if pools.is_empty() {
        pools = pools_in(&sysfs.sys("kernel/mm/hugepages"), None)?;
    }
    Ok(pools)
}

fn pools_in(folder: &Path, node: Option<u32>) -> Result<Vec<HugePool>, SysfsError> {
    let mut pools = Vec::new();
    for name in optional(names_in(folder))?.unwrap_or_default() {
        let Some(kib) = name
            .strip_prefix("hugepages-")
            .and_then(|rest| rest.strip_suffix("kB"))
        else {
            continue;
        };
        let kib: u64 = kib
            .parse()
            .map_err(|_| SysfsError::garbled(folder, &name, "a folder named hugepages-<N>kB"))?;
        pools.push(HugePool {
            node,
            page: Bytes(kib.saturating_mul(1024)),
            total_count: read_u64(&folder.join(&name).join("nr_hugepages"))?,
            free_count: read_u64(&folder.join(&name).join("free_hugepages"))?,
        });
    }
    Ok(pools)
}

/// A resource limit of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// No limit.
    Unlimited,
    /// At most this.
    At(u64),
}

/// The soft limit of this name in `/proc/self/limits`: `Max locked memory`, `Max open files`.
///
/// # Errors
/// [`SysfsError`]; garbled where the name is not in the list.
pub fn limit(sysfs: &Sysfs, name: &'static str) -> Result<Limit, SysfsError> {
    let path = sysfs.proc("self/limits");
    let text = read_text(&path)?;
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let word = line
        .and_then(|rest| rest.split_whitespace().next())
        .unwrap_or_default();
    if word == "unlimited" {
        return Ok(Limit::Unlimited);
    }
    word.parse()
        .map(Limit::At)
        .map_err(|_| SysfsError::garbled(&path, line.unwrap_or(&text), "a list of limits"))
}

/// The user whose rights this process has; `None` where the kernel does not say.
#[must_use]
pub fn effective_user(sysfs: &Sysfs) -> Option<u32> {
    let text = read_text(&sysfs.proc("self/status")).ok()?;
    // proc_pid_status(5): real, effective, saved, file system.
    let line = text.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// `kernel.io_uring_disabled`: 0 for all, 1 privileged and group only, 2 nobody. Absent before Linux 6.6.
///
/// # Errors
/// [`SysfsError`].
pub fn io_uring_disabled(sysfs: &Sysfs) -> Result<Option<u64>, SysfsError> {
    optional(read_u64(&sysfs.proc("sys/kernel/io_uring_disabled")))
}

/// Parameter of a loaded kernel module; `None` where the module or the parameter is not there.
///
/// # Errors
/// [`SysfsError::Read`] where it exists but cannot be read.
pub fn module_parameter(
    sysfs: &Sysfs,
    module: &str,
    parameter: &str,
) -> Result<Option<String>, SysfsError> {
    read_word(
        &sysfs
            .sys("module")
            .join(module)
            .join("parameters")
            .join(parameter),
    )
}

/// Frequency governors in use, each once; none where the kernel does not scale frequencies.
///
/// # Errors
/// [`SysfsError`].
pub fn governors(sysfs: &Sysfs) -> Result<BTreeSet<String>, SysfsError> {
    let folder = sysfs.sys("devices/system/cpu");
    let mut found = BTreeSet::new();
    for name in names_in(&folder)? {
        let number = name.strip_prefix("cpu").unwrap_or_default();
        if number.parse::<u32>().is_ok() {
            found.extend(read_word(
                &folder.join(&name).join("cpufreq/scaling_governor"),
            )?);
        }
    }
    Ok(found)
}

/// The kernel's clock source and the others it could use.
///
/// # Errors
/// [`SysfsError`].
pub fn clocksource(sysfs: &Sysfs) -> Result<(String, Vec<String>), SysfsError> {
    let folder = sysfs.sys("devices/system/clocksource/clocksource0");
    let current = read_text(&folder.join("current_clocksource"))?;
    let available = read_text(&folder.join("available_clocksource"))?;
    Ok((
        current,
        available.split_whitespace().map(str::to_owned).collect(),
    ))
}

/// Flags of the first CPU: `constant_tsc`, `nonstop_tsc`, `hypervisor`.
///
/// # Errors
/// [`SysfsError`].
pub fn cpu_flags(sysfs: &Sysfs) -> Result<BTreeSet<String>, SysfsError> {
    let text = read_text(&sysfs.proc("cpuinfo"))?;
    let line = text.lines().find(|line| line.starts_with("flags"));
    let (_, flags) = line
        .and_then(|line| line.split_once(':'))
        .unwrap_or_default();
    Ok(flags.split_whitespace().map(str::to_owned).collect())
}

/// Whether SMT siblings are on; absent where the kernel does not say.
///
/// # Errors
/// [`SysfsError`].
pub fn smt_active(sysfs: &Sysfs) -> Result<Option<bool>, SysfsError> {
    optional(read_bool(&sysfs.sys("devices/system/cpu/smt/active")))
}

/// Names of the IOMMUs, and the number of groups.
///
/// # Errors
/// [`SysfsError::Read`] where a folder exists but cannot be listed.
pub fn iommus(sysfs: &Sysfs) -> Result<(Vec<String>, usize), SysfsError> {
    let units = optional(names_in(&sysfs.sys("class/iommu")))?.unwrap_or_default();
    let groups = optional(names_in(&sysfs.sys("kernel/iommu_groups")))?.unwrap_or_default();
    Ok((units, groups.len()))
}

/// What VFIO has to offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vfio {
    /// The container node is there.
    pub node: bool,
    /// The PCI driver is loaded.
    pub pci_driver: bool,
    /// The `uio_pci_generic` driver is loaded.
    pub uio_driver: bool,
    /// Devices bound to `vfio-pci`.
    pub bound_count: usize,
}

/// Looks for VFIO and UIO.
///
/// # Errors
/// [`SysfsError::Read`] where a folder exists but cannot be listed.
pub fn vfio(sysfs: &Sysfs) -> Result<Vfio, SysfsError> {
    let drivers = sysfs.sys("bus/pci/drivers");
    let bound = optional(names_in(&drivers.join("vfio-pci")))?;
    let is_bdf = |name: &&String| name.contains(':');
    Ok(Vfio {
        node: sysfs.dev("vfio/vfio").exists(),
        pci_driver: bound.is_some(),
        uio_driver: drivers.join("uio_pci_generic").exists(),
        bound_count: bound.unwrap_or_default().iter().filter(is_bdf).count(),
    })
}

//! What SPDK needs of the machine, looked at before DPDK is started, so that each lack is one line with its remedy.

pub use super::lack::PreflightError;

use super::claims;
use super::trid::Bdf;
use crate::sysfs::{Sysfs, read_text, read_u64};
use std::fmt::Write as _;
use std::path::Path;

/// What the driver itself needs besides the I/O buffers, in bytes: rings, requests, heap pages.
pub const DRIVER_BYTES: u64 = 32 << 20;
/// Bit of `CapEff` that lifts the limit on locked memory (capability.h: CAP_IPC_LOCK).
const CAP_IPC_LOCK: u32 = 14;
/// Bit of `CapEff` that shows physical addresses (capability.h: CAP_SYS_ADMIN).
const CAP_SYS_ADMIN: u32 = 21;
/// What the heap may still hold free: so much of a lack is not certain.
const HEAP_BYTES: u64 = 2 << 20;
/// Drivers through which SPDK reaches PCI devices.
const USER_DRIVERS: [&str; 3] = ["vfio-pci", "uio_pci_generic", "igb_uio"];

/// The hugepages of one size on one NUMA node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hugepages {
    /// The node.
    pub node: u32,
    /// Size of a page.
    pub page_bytes: u64,
    /// Pages there are.
    pub total_count: u64,
    /// Pages nobody uses.
    pub free_count: u64,
}

/// All hugepages, by node and size; empty where the kernel has none or does not say.
#[must_use]
pub fn hugepages(sysfs: &Sysfs) -> Vec<Hugepages> {
    let mut found = Vec::new();
    for (node, folder) in numbered(&sysfs.sys("devices/system/node"), "node", "") {
        for (page_kib, size) in numbered(&folder.join("hugepages"), "hugepages-", "kB") {
            let counts = (
                read_u64(&size.join("nr_hugepages")),
                read_u64(&size.join("free_hugepages")),
            );
            if let (Ok(total_count), Ok(free_count), Ok(node)) =
                (counts.0, counts.1, u32::try_from(node))
            {
                found.push(Hugepages {
                    node,
                    page_bytes: page_kib << 10,
                    total_count,
                    free_count,
                });
            }
        }
    }
    found.sort_by_key(|pages| (pages.node, pages.page_bytes));
    found
}

/// Entries named `prefixNUMBERsuffix` in a folder.
fn numbered(folder: &Path, prefix: &str, suffix: &str) -> Vec<(u64, std::path::PathBuf)> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let number = |path: &Path| {
        path.file_name()?
            .to_str()?
            .strip_prefix(prefix)?
            .strip_suffix(suffix)?
            .parse()
            .ok()
    };
    entries
        .map(|entry| entry.path())
        .filter_map(|path| Some((number(&path)?, path)))
        .collect()
}

/// Whether `io_bytes` of buffers and the driver fit into free hugepages.
///
/// # Errors
/// [`PreflightError::Hugepages`] with what is free on each node.
pub fn check_hugepages(sysfs: &Sysfs, io_bytes: u64) -> Result<(), PreflightError> {
    enough_hugepages(sysfs, io_bytes.saturating_add(DRIVER_BYTES))
}

/// Whether `io_bytes` of buffers fit into free hugepages where the driver runs already.
///
/// # Errors
/// [`PreflightError::Hugepages`] with what is free on each node.
pub fn check_io_hugepages(sysfs: &Sysfs, io_bytes: u64) -> Result<(), PreflightError> {
    match enough_hugepages(sysfs, io_bytes.saturating_sub(HEAP_BYTES)) {
        Ok(()) => Ok(()),
        // Told in full.
        Err(_) => enough_hugepages(sysfs, io_bytes),
    }
}

fn enough_hugepages(sysfs: &Sysfs, needed: u64) -> Result<(), PreflightError> {
    let pages = hugepages(sysfs);
    let free: u64 = pages
        .iter()
        .map(|pages| pages.free_count.saturating_mul(pages.page_bytes))
        .sum();
    if free >= needed {
        return Ok(());
    }
    let page_bytes = pages
        .iter()
        .map(|pages| pages.page_bytes)
        .min()
        .unwrap_or(2 << 20);
    let total: u64 = pages
        .iter()
        .filter(|pages| pages.page_bytes == page_bytes)
        .map(|pages| pages.total_count)
        .sum();
    let missing = (needed - free).div_ceil(page_bytes);
    let mut text = String::new();
    for pages in &pages {
        let separator = if text.is_empty() { "" } else { ", " };
        let mib = pages.free_count.saturating_mul(pages.page_bytes) >> 20;
        let _ = write!(
            text,
            "{separator}{mib} of {} MiB free on node {}",
            (pages.total_count * pages.page_bytes) >> 20,
            pages.node
        );
    }
    if text.is_empty() {
        text.push_str("none reserved");
    }
    Err(PreflightError::Hugepages {
        needed_mib: needed.div_ceil(1 << 20),
        free: text,
        pages_count: missing,
        target_count: total + missing,
    })
}

/// Whether SPDK can take the PCI device: it exists, is on a user-space driver, its group is ours, and no other
/// process drives it.
///
/// # Errors
/// The first lack found.
pub fn check_pci(sysfs: &Sysfs, bdf: Bdf) -> Result<(), PreflightError> {
    let device = sysfs.sys("bus/pci/devices").join(bdf.to_string());
    if !device.exists() {
        return Err(PreflightError::NoDevice { bdf });
    }
    match driver_of(&device) {
        None => return Err(PreflightError::NoDriver { bdf }),
        Some(driver) if !USER_DRIVERS.contains(&driver.as_str()) => {
            return Err(PreflightError::KernelDriver { bdf, driver });
        }
        Some(driver) if driver != "vfio-pci" => {
            return if has_capability(sysfs, CAP_SYS_ADMIN) {
                unclaimed(bdf)
            } else {
                Err(PreflightError::NeedsRoot { bdf, driver })
            };
        }
        Some(_) => {}
    }
    let Some(group) = link_name(&device.join("iommu_group")) else {
        return unclaimed(bdf);
    };
    let mut others = Vec::new();
    for entry in std::fs::read_dir(device.join("iommu_group/devices"))
        .into_iter()
        .flatten()
        .flatten()
    {
        let name = entry.file_name().to_string_lossy().into_owned();
        // Bridges may stay with the kernel's port driver.
        if let Some(driver) =
            driver_of(&entry.path()).filter(|driver| driver != "vfio-pci" && driver != "pcieport")
        {
            others.push(format!("{name} ({driver})"));
        }
    }
    if !others.is_empty() {
        others.sort();
        return Err(PreflightError::Group {
            bdf,
            group,
            others: others.join(", "),
        });
    }
    let node = sysfs.dev("vfio").join(&group);
    match std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(&node)
    {
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            Err(PreflightError::Permission {
                path: node.display().to_string(),
            })
        }
        _ => unclaimed(bdf),
    }
}

/// Whether no other process has it: a second one would be let in by some drivers, and reset the device.
fn unclaimed(bdf: Bdf) -> Result<(), PreflightError> {
    match claims::holder(Path::new(claims::FOLDER), bdf) {
        Some(claims::Holder { process }) => Err(PreflightError::Busy { bdf, process }),
        None => Ok(()),
    }
}

/// Every NVMe controller on the PCI bus (class 010802h), in order.
#[must_use]
pub fn nvme_controllers(sysfs: &Sysfs) -> Vec<Bdf> {
    const NVME_CLASS: &str = "0x010802";
    let folder = sysfs.sys("bus/pci/devices");
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<Bdf> = entries
        .filter(|entry| {
            read_text(&entry.path().join("class")).is_ok_and(|class| class.trim() == NVME_CLASS)
        })
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    found.sort_unstable();
    found
}

/// Whether this process has a capability.
fn has_capability(sysfs: &Sysfs, bit: u32) -> bool {
    let status = read_text(&sysfs.proc("self/status")).unwrap_or_default();
    let mut lines = status.lines();
    lines
        .find_map(|line| u64::from_str_radix(line.strip_prefix("CapEff:")?.trim(), 16).ok())
        .is_some_and(|caps| caps >> bit & 1 == 1)
}

/// Whether the limit on locked memory does not hold this process.
#[must_use]
pub fn may_lock_all(sysfs: &Sysfs) -> bool {
    has_capability(sysfs, CAP_IPC_LOCK)
}

/// Whether this process may drive devices without an IOMMU, as root may.
#[must_use]
pub fn sees_physical_addresses(sysfs: &Sysfs) -> bool {
    has_capability(sysfs, CAP_SYS_ADMIN)
}

/// Whether the IOMMU reaches the memory that we can place.
///
/// # Errors
/// [`PreflightError::NarrowIommu`].
pub fn check_iommu(bits: Option<u32>) -> Result<(), PreflightError> {
    match bits {
        Some(bits) if bits < super::iommu::LEAST_BITS => Err(PreflightError::NarrowIommu {
            bits,
            least: super::iommu::LEAST_BITS,
        }),
        _ => Ok(()),
    }
}

/// Whether this process may lock `io_bytes` and the driver's memory, as mapping for DMA through vfio does.
///
/// # Errors
/// [`PreflightError::Memlock`].
pub fn check_memlock(sysfs: &Sysfs, io_bytes: u64) -> Result<(), PreflightError> {
    let capable = may_lock_all(sysfs);
    let limits = read_text(&sysfs.proc("self/limits")).unwrap_or_default();
    let limit = limits.lines().find_map(|line| {
        line.strip_prefix("Max locked memory")?
            .split_whitespace()
            .next()?
            .parse::<u64>()
            .ok()
    });
    let needed = io_bytes.saturating_add(DRIVER_BYTES);
    match limit {
        Some(limit) if !capable && limit < needed => Err(PreflightError::Memlock {
            limit_mib: limit >> 20,
            needed_mib: needed >> 20,
        }),
        _ => Ok(()),
    }
}

fn driver_of(device: &Path) -> Option<String> {
    link_name(&device.join("driver"))
}

fn link_name(link: &Path) -> Option<String> {
    Some(
        std::fs::read_link(link)
            .ok()?
            .file_name()?
            .to_str()?
            .to_owned(),
    )
}

#[cfg(test)]
#[path = "preflight_tests.rs"]
mod tests;

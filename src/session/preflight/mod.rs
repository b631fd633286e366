//! What this machine lacks for good measurements, each with its remedy.

pub(in crate::session) mod polling;

use crate::session::spdk::checks;
use crate::spdk::{iommu as widths, preflight as lacks};
use crate::sysfs::host::{self, HugePool, Limit};
use crate::sysfs::nvme::is_nvme;
use crate::sysfs::nvme_controller::generic_nodes_count;
use crate::sysfs::{BlockDev, Sysfs, SysfsError};
use crate::units::Bytes;
use serde::Serialize;

/// How a fact stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// As it should be.
    Ok,
    /// Works, but figures may suffer.
    Warn,
    /// Not there; what needs it will refuse.
    Missing,
    /// Cannot be told.
    Unknown,
}

impl State {
    /// The word in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Missing => "missing",
            Self::Unknown => "unknown",
        }
    }
}

/// One fact of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Stable name.
    pub name: &'static str,
    /// How it stands.
    pub state: State,
    /// What was found.
    pub found: String,
    /// What to do about it; empty where nothing needs doing.
    pub remedy: String,
}

/// Looks at everything. Facts that cannot be read become `unknown` checks, never silence.
#[must_use]
pub fn preflight(sysfs: &Sysfs) -> Vec<Check> {
    let checks: [(&'static str, Result<Check, SysfsError>); 10] = [
        ("hugepages", huge_pages(sysfs)),
        ("memlock", memlock(sysfs)),
        ("open-files", open_files(sysfs)),
        ("io_uring", io_uring(sysfs)),
        ("nvme-passthrough", nvme_passthrough(sysfs)),
        ("governor", governor(sysfs)),
        ("clocksource", clocksource(sysfs)),
        ("smt", smt(sysfs)),
        ("iommu", iommu(sysfs)),
        ("vfio", vfio(sysfs)),
    ];
    let told = |(name, check): (&'static str, Result<Check, SysfsError>)| {
        check.unwrap_or_else(|error| Check {
            name,
            state: State::Unknown,
            found: error.to_string(),
            remedy: "make that file readable, or ignore this check".to_owned(),
        })
    };
    let mut all: Vec<Check> = checks.into_iter().map(told).collect();
    all.extend(polling::rows(sysfs));
    all.extend(checks::rows(sysfs));
    all
}

fn check(
    name: &'static str,
    state: State,
    found: impl Into<String>,
    remedy: impl Into<String>,
) -> Check {
    Check {
        name,
        state,
        found: found.into(),
        remedy: remedy.into(),
    }
}

fn huge_pages(sysfs: &Sysfs) -> Result<Check, SysfsError> {
    const NAME: &str = "hugepages";
    let pools = host::huge_pools(sysfs)?;
    let used: Vec<&HugePool> = pools.iter().filter(|pool| pool.total_count > 0).collect();
    let in_words = |pool: &&HugePool| {
        let node = pool
            .node
            .map_or_else(String::new, |node| format!("node {node}: "));
        format!(
            "{node}{} of {} x {} free",
            pool.free_count, pool.total_count, pool.page
        )
    };
    let remedy = "sysctl vm.nr_hugepages=1024 (2 GiB of 2 MiB pages), or on one NUMA node: echo 1024 > /sys/devices/system/node/nodeN/hugepages/hugepages-2048kB/nr_hugepages";
    if pools.is_empty() {
        return Ok(check(
            NAME,
            State::Missing,
            "the kernel has no huge pages",
            "use a kernel with CONFIG_HUGETLBFS",
        ));
    }
    if used.is_empty() {
        return Ok(check(NAME, State::Missing, "none reserved", remedy));
    }
    let driver_mib = checks::DRIVER_MIB;
    let free = used.iter().map(in_words).collect::<Vec<_>>().join(", ");
    let found = format!(
        "{free}; SPDK needs {driver_mib} MiB + reactors x iodepth x bs, on the device's node"
    );
    let free: u64 = used
        .iter()
        .map(|pool| pool.free_count.saturating_mul(pool.page.0))
        .sum();
    // SPDK's environment and the buffers of one reactor fit into this.
    let enough = free >= 256 << 20;
    let state = if enough { State::Ok } else { State::Warn };
    Ok(check(NAME, state, found, if enough { "" } else { remedy }))
}

fn memlock(sysfs: &Sysfs) -> Result<Check, SysfsError> {
    const NAME: &str = "memlock";
    Ok(match host::limit(sysfs, "Max locked memory")? {
        Limit::Unlimited => check(NAME, State::Ok, "unlimited", ""),
        Limit::At(bytes) if bytes >= 64 << 20 => {
            check(NAME, State::Ok, Bytes(bytes).to_string(), "")
        }
        Limit::At(bytes) if lacks::may_lock_all(sysfs) => check(
            NAME,
            State::Ok,
            format!(
                "{}, which does not bind this user (CAP_IPC_LOCK)",
                Bytes(bytes)
            ),
            "",
        ),
        Limit::At(bytes) => check(
            NAME,
            State::Warn,
            format!(
                "{}: too little for registered buffers and for VFIO",
                Bytes(bytes)
            ),
            "ulimit -l unlimited, or `memlock unlimited` in /etc/security/limits.conf",
        ),
    })
}

fn open_files(sysfs: &Sysfs) -> Result<Check, SysfsError> {
    const NAME: &str = "open-files";
    Ok(match host::limit(sysfs, "Max open files")? {
        Limit::Unlimited => check(NAME, State::Ok, "unlimited", ""),
        Limit::At(count) if count >= 1024 => check(NAME, State::Ok, count.to_string(), ""),
        Limit::At(count) => check(
            NAME,
            State::Warn,
            format!("{count}: sg opens one file for every 16 commands"),
            "ulimit -n 4096",
        ),
    })
}

fn io_uring(sysfs: &Sysfs) -> Result<Check, SysfsError> {
    const NAME: &str = "io_uring";
    Ok(match host::io_uring_disabled(sysfs)? {
        Some(0) => check(NAME, State::Ok, "enabled", ""),
        Some(1) => check(
            NAME,
            State::Warn,
            "only for root and one group (kernel.io_uring_disabled = 1)",
            "run as root, join the group of kernel.io_uring_group, or sysctl kernel.io_uring_disabled=0",
        ),
        Some(value) => check(
            NAME,
            State::Missing,
            format!("switched off (kernel.io_uring_disabled = {value})"),
            "sysctl kernel.io_uring_disabled=0",
        ),
        None => check(NAME, State::Ok, "no switch (kernel before 6.6)", ""),
    })
}

/// What `uring-cmd` needs: generic nodes beside the namespaces.
fn nvme_passthrough(sysfs: &Sysfs) -> Result<Check, SysfsError> {
    const NAME: &str = "nvme-passthrough";
    let generic_count = generic_nodes_count(sysfs)?;
    let is_namespace = |device: &BlockDev| is_nvme(&device.name) && !device.is_partition();
    let namespaces_count = BlockDev::all(sysfs)?
        .0
        .iter()
        .filter(|d| is_namespace(d))
        .count();
    Ok(match (generic_count, namespaces_count) {
        (0, 0) => check(NAME, State::Ok, "no NVMe namespace here", ""),
        (0, _) => check(
            NAME,
            State::Missing,
            "NVMe namespaces without generic nodes (/dev/ngXnY): uring-cmd cannot drive them",
            "use Linux 5.19 or newer, or the backend uring",
        ),
        (count, _) => check(NAME, State::Ok, format!("{count} generic nodes"), ""),
    })
}

fn governor(sysfs: &Sysfs) -> Result<Check, SysfsError> {
    const NAME: &str = "governor";
    let governors = host::governors(sysfs)?;
    let names = governors.iter().cloned().collect::<Vec<_>>().join(", ");
    if governors.is_empty() {
        return Ok(check(
            NAME,
            State::Ok,
            "the kernel does not scale frequencies here",
            "",
        ));
    }
    if names == "performance" {
        return Ok(check(NAME, State::Ok, names, ""));
    }
    Ok(check(
        NAME,
        State::Warn,
        format!("{names}: latencies at low load include waking up the clock"),
        "cpupower frequency-set -g performance",
    ))
}

fn clocksource(sysfs: &Sysfs) -> Result<Check, SysfsError> {
    const NAME: &str = "clocksource";
    let (current, available) = host::clocksource(sysfs)?;
    let flags = host::cpu_flags(sysfs)?;
    let invariant = flags.contains("constant_tsc") && flags.contains("nonstop_tsc");
    let steady = if invariant {
        "invariant TSC"
    } else {
        "TSC not invariant"
    };
    let found = format!("{current}, {steady}");
    if current == "tsc" && invariant {
        return Ok(check(NAME, State::Ok, found, ""));
    }
    if invariant {
        // The engine reads the TSC itself; the kernel's own stamps and timeouts use the slower clock.
        let remedy = if available.iter().any(|name| name == "tsc") {
            "echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource"
        } else {
            "the kernel has found the TSC unfit (see dmesg); nothing to do in a virtual machine"
        };
        let paravirtual = matches!(
            current.as_str(),
            "kvm-clock" | "hyperv_clocksource_tsc_page"
        );
        let state = if paravirtual { State::Ok } else { State::Warn };
        return Ok(check(
            NAME,
            state,
            found,
            if paravirtual { "" } else { remedy },
        ));
    }
    Ok(check(
        NAME,
        State::Warn,
        format!("{found}: stamps come from the kernel's clock and cost more"),
        "measure on hardware, or give the virtual machine an invariant TSC (QEMU: -cpu host,+invtsc)",
    ))
}

fn smt(sysfs: &Sysfs) -> Result<Check, SysfsError> {
    const NAME: &str = "smt";
    Ok(match host::smt_active(sysfs)? {
        Some(true) => check(
            NAME,
            State::Warn,
            "on: two reactors on siblings share one core",
            "nothing, as long as --cpus names no siblings; or echo off > /sys/devices/system/cpu/smt/control",
        ),
        Some(false) => check(NAME, State::Ok, "off", ""),
        None => check(
            NAME,
            State::Unknown,
            "the kernel does not say",
            "look at lscpu -e",
        ),
    })
}

fn iommu(sysfs: &Sysfs) -> Result<Check, SysfsError> {
    const NAME: &str = "iommu";
    let (units, groups_count) = host::iommus(sysfs)?;
    if groups_count > 0 {
        let units_count = units.len();
        let found = format!("{units_count} units, {groups_count} groups");
        let bits = widths::narrowest_bits(sysfs);
        if let Err(lack) = lacks::check_iommu(bits) {
            return Ok(check(NAME, State::Missing, lack.finding(), lack.remedy()));
        }
        // Handled: memory is placed where it reaches.
        let narrow = match (bits, widths::base_for(bits)) {
            (Some(bits), Some(base)) => {
                format!(", {bits} bits wide: SPDK's memory is placed at {base:#x}")
            }
            _ => String::new(),
        };
        return Ok(check(NAME, State::Ok, found + &narrow, ""));
    }
    Ok(check(
        NAME,
        State::Missing,
        "none: vfio-pci cannot isolate devices",
        "switch VT-d or AMD-Vi on in the firmware and boot with intel_iommu=on iommu=pt (AMD: iommu=pt)",
    ))
}

fn vfio(sysfs: &Sysfs) -> Result<Check, SysfsError> {
    const NAME: &str = "vfio";
    let vfio = host::vfio(sysfs)?;
    let bound_count = vfio.bound_count;
    Ok(match (vfio.node, vfio.pci_driver) {
        (true, true) => check(
            NAME,
            State::Ok,
            format!("vfio-pci loaded, {bound_count} devices bound"),
            "",
        ),
        _ if vfio.uio_driver => check(
            NAME,
            State::Warn,
            "no vfio-pci, but uio_pci_generic: devices can write to any memory",
            "modprobe vfio-pci, where there is an IOMMU",
        ),
        _ => check(
            NAME,
            State::Missing,
            "vfio-pci is not loaded",
            "modprobe vfio-pci (only SPDK on PCIe needs it)",
        ),
    })
}

//! Can SPDK drive it, and if not, why and what would help. A judgement from what can be seen without touching the
//! device; `claim` looks again, and closer.

use super::attached::Paths;
use crate::sysfs::attach::{Attachment, Transport};
use crate::sysfs::host::{Vfio, huge_pools};
use crate::sysfs::pci::{Bdf, Function, IommuGroup, PciPath};
use crate::sysfs::{Sysfs, host};
use serde::Serialize;

/// How SPDK stands to a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SpdkState {
    /// It can be driven now.
    Ready,
    /// It can be claimed.
    Claimable,
    /// It cannot be, as things are.
    No,
}

/// The judgement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SpdkEntry {
    /// The verdict.
    pub state: SpdkState,
    /// Why, in a few words.
    pub why: String,
    /// What to do next; empty where nothing would help.
    pub next_step: String,
}

impl SpdkEntry {
    fn no(why: impl Into<String>, next_step: impl Into<String>) -> Self {
        Self {
            state: SpdkState::No,
            why: why.into(),
            next_step: next_step.into(),
        }
    }
}

/// What the judgement needs of the machine, looked at once.
pub(super) struct Spdk<'a> {
    sysfs: &'a Sysfs,
    /// Why this program has no SPDK.
    absent: Option<&'static str>,
    free_huge_pages: bool,
    vfio: Option<Vfio>,
}

impl<'a> Spdk<'a> {
    pub(super) fn look(sysfs: &'a Sysfs, absent: Option<&'static str>) -> Self {
        let pools = huge_pools(sysfs).unwrap_or_default();
        Self {
            sysfs,
            absent,
            free_huge_pages: pools.iter().any(|pool| pool.free_count > 0),
            vfio: host::vfio(sysfs).ok(),
        }
    }

    /// Judges one device. `uses` are those of every namespace of its controller; absent: they cannot be told.
    pub(super) fn judge(
        &self,
        attachment: &Attachment,
        uses: Option<&[String]>,
        paths: &mut Paths<'_>,
    ) -> SpdkEntry {
        let Some(transport) = attachment.transport else {
            return self.without_transport(attachment, paths);
        };
        match transport {
            Transport::Nvme => {}
            Transport::Pcie => return self.without_transport(attachment, paths),
            Transport::NvmeTcp | Transport::NvmeRdma => return self.fabrics(attachment, transport),
            Transport::NvmeFc | Transport::NvmeOther => {
                let why = format!("{}: no SPDK transport for it", transport.name());
                return SpdkEntry::no(why, "");
            }
            Transport::Sata | Transport::Pata => return SpdkEntry::no("SATA: no SPDK driver", ""),
            Transport::Sas | Transport::Raid | Transport::Scsi | Transport::Fc => {
                let words = transport.name().to_uppercase();
                return SpdkEntry::no(format!("{words}: no SPDK driver"), "");
            }
            Transport::Virtio | Transport::Usb | Transport::Iscsi => {
                return SpdkEntry::no(format!("{}: not NVMe", transport.name()), "");
            }
        }
        if let Some(absent) = self.absent {
            return SpdkEntry::no("built without SPDK", absent);
        }
        if attachment.functions.len() > 1 {
            let functions: Vec<String> = attachment
                .functions
                .iter()
                .map(ToString::to_string)
                .collect();
            let why = "reached through several controllers, which only the kernel joins";
            let next = format!("claim all of them ({}), then name one", functions.join(" "));
            return SpdkEntry::no(why, next);
        }
        let path = attachment.functions.first().and_then(|bdf| paths.of(*bdf));
        match path.and_then(|path| Some((path, path.device()?))) {
            Some((path, function)) => self.on_pci(path, function, uses),
            None => SpdkEntry::no("its PCI function cannot be read", ""),
        }
    }

    fn without_transport(&self, attachment: &Attachment, paths: &mut Paths<'_>) -> SpdkEntry {
        let path = attachment.functions.first().and_then(|bdf| paths.of(*bdf));
        let driver = path.and_then(|path| path.device()?.driver.clone());
        match driver {
            // Cards of the years before NVMe have drivers of their own.
            Some(driver) => SpdkEntry::no(format!("not NVMe: vendor driver {}", driver.name), ""),
            None if attachment.functions.is_empty() => SpdkEntry::no("no device of its own", ""),
            None => SpdkEntry::no("not NVMe", ""),
        }
    }

    fn fabrics(&self, attachment: &Attachment, transport: Transport) -> SpdkEntry {
        if let Some(absent) = self.absent {
            return SpdkEntry::no("built without SPDK", absent);
        }
        let why = format!("{}: SPDK connects by itself", transport.name());
        let id = attachment.controllers.first().and_then(transport_id);
        SpdkEntry {
            state: SpdkState::Claimable,
            why,
            next_step: id.map_or_else(String::new, |id| format!("--device '{id}'")),
        }
    }

    fn on_pci(&self, path: &PciPath, function: &Function, uses: Option<&[String]>) -> SpdkEntry {
        let bdf = function.bdf;
        if !function.is_nvme() {
            let why = "its PCI class is not that of NVMe: gone, or not understood";
            return SpdkEntry::no(why, "");
        }
        if function.is_in_user_space() {
            return self.in_user_space(function);
        }
        match uses {
            None => {
                let next = "make the facts named as problems readable (run as root?)";
                return SpdkEntry::no("what uses it cannot be told", next);
            }
            Some([]) => {}
            Some([first, ..]) => {
                let next = "unmount it, stop what uses it, or name another device";
                return SpdkEntry::no(format!("in use: {first}"), next);
            }
        }
        if let Some(vmd) = path.behind {
            let why = format!("behind Intel VMD {vmd}, which holds its interrupts and memory");
            return SpdkEntry::no(why, "switch VMD off in the firmware's setup");
        }
        if let Some(refused) = self.group(function) {
            return refused;
        }
        self.claimable(bdf, function)
    }

    fn in_user_space(&self, function: &Function) -> SpdkEntry {
        let driver = function.driver.as_ref().map_or("", |driver| &driver.name);
        if driver == "vfio-pci"
            && let Some(refused) = self.group(function)
        {
            return refused;
        }
        if !self.free_huge_pages {
            return SpdkEntry::no(format!("on {driver}, but no free hugepages"), HUGE_PAGES);
        }
        SpdkEntry {
            state: SpdkState::Ready,
            why: format!("on {driver}"),
            next_step: format!("lanemark run --device {}", function.bdf),
        }
    }

    fn group(&self, function: &Function) -> Option<SpdkEntry> {
        let group = IommuGroup::read(self.sysfs, function.iommu_group?).ok()?;
        let others: Vec<String> = group
            .blockers(function.bdf)
            .map(|member| {
                let driver = member.driver.as_deref().unwrap_or("no driver");
                format!("{} ({driver})", member.bdf)
            })
            .collect();
        let why = format!(
            "IOMMU group {} is shared with {}",
            group.number,
            others.join(", ")
        );
        let next = "unbind those too, or use a slot of its own, or a port with ACS";
        (!others.is_empty()).then(|| SpdkEntry::no(why, next))
    }

    fn claimable(&self, bdf: Bdf, function: &Function) -> SpdkEntry {
        let mut next = format!("lanemark claim {bdf}");
        if !self.free_huge_pages {
            next.push_str(" --hugepages 512M");
        }
        let on = match &function.driver {
            Some(driver) => format!("on the kernel's {} driver", driver.name),
            None => "no driver is bound".to_owned(),
        };
        let mut why = on;
        if function.iommu_group.is_none() {
            why.push_str("; no IOMMU: only uio_pci_generic, which lets it write to any memory");
        } else if !self.vfio.is_some_and(|vfio| vfio.pci_driver) {
            next = format!("modprobe vfio-pci; {next}");
        }
        if !self.free_huge_pages {
            why.push_str("; no free hugepages");
        }
        SpdkEntry {
            state: SpdkState::Claimable,
            why,
            next_step: next,
        }
    }
}

const HUGE_PAGES: &str = "sysctl vm.nr_hugepages=1024";

/// SPDK's name for a controller on a network: `traddr=…,trsvcid=…` of the kernel, spelled its way.
pub(super) fn transport_id(
    controller: &crate::sysfs::nvme_controller::Controller,
) -> Option<String> {
    let kind = match controller.transport.as_deref()? {
        "tcp" => "TCP",
        "rdma" => "RDMA",
        _ => return None,
    };
    let address = controller.address.as_deref()?;
    let value = |key: &str| {
        let mut pairs = address.split(',');
        pairs.find_map(|pair| pair.trim().strip_prefix(key)?.strip_prefix('='))
    };
    let traddr = value("traddr")?;
    let family = if traddr.contains(':') { "IPv6" } else { "IPv4" };
    let mut id = format!("trtype:{kind} adrfam:{family} traddr:{traddr}");
    if let Some(service) = value("trsvcid") {
        id += &format!(" trsvcid:{service}");
    }
    if let Some(nqn) = &controller.subsystem_nqn {
        id += &format!(" subnqn:{nqn}");
    }
    Some(id)
}

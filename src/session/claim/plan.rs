//! What a claim of one function would do, or why it must not be.

use super::obstacle::Obstacle;
use super::state::{Former, State};
use super::{ClaimError, Claimer, Moved, busy, controller};
use crate::session::machine::Machine;
use crate::sysfs::pci::{Bdf, Function, IommuGroup};

/// A driver that gives PCI functions to user space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UserDriver {
    /// Behind an IOMMU: the device reaches nothing but what it was given.
    Vfio,
    /// Without one: the device reaches all of the memory.
    Uio,
}

impl UserDriver {
    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Vfio => "vfio-pci",
            Self::Uio => "uio_pci_generic",
        }
    }

    /// The modules that it needs. `vfio-pci` binds without the second one, and then nobody can use it.
    #[must_use]
    pub const fn modules(self) -> &'static [&'static str] {
        match self {
            Self::Vfio => &["vfio_pci", "vfio_iommu_type1"],
            Self::Uio => &["uio_pci_generic"],
        }
    }

    /// Whether a driver of this name gives functions to user space.
    #[must_use]
    pub fn is_name(name: &str) -> bool {
        matches!(name, "vfio-pci" | "uio_pci_generic" | "igb_uio")
    }
}

/// A claim that has been looked at and found fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The function.
    pub bdf: Bdf,
    /// Whether there is anything to do.
    pub is_new: bool,
    /// The driver that has it.
    pub driver_before: Option<String>,
    /// What it is reserved for.
    pub override_before: Option<String>,
    /// The driver it goes to.
    pub driver: UserDriver,
    /// Its NUMA node, where there is more than one.
    pub numa_node: Option<u32>,
    /// Its namespaces.
    pub namespaces: Vec<Former>,
    /// What the user has to know.
    pub notes: Vec<String>,
}

impl Claim {
    /// What claiming it would do.
    #[must_use]
    pub fn planned(&self) -> Moved {
        self.moved(self.is_new, self.notes.clone())
    }

    pub(super) fn moved(&self, changed: bool, notes: Vec<String>) -> Moved {
        let nodes = self.namespaces.iter().flat_map(|former| &former.paths);
        let after = if self.is_new {
            Some(self.driver.name().to_owned())
        } else {
            self.driver_before.clone()
        };
        Moved {
            bdf: self.bdf.to_string(),
            changed,
            driver_before: self.driver_before.clone(),
            driver: after,
            nodes: nodes.map(|path| path.display().to_string()).collect(),
            renamed: Vec::new(),
            notes,
            former: Vec::new(),
        }
    }
}

impl Claimer<'_> {
    pub(super) fn judge(
        &self,
        machine: &Machine<'_>,
        state: &State,
        function: &Function,
        wanted: &[Bdf],
        for_run: bool,
    ) -> Result<Claim, ClaimError> {
        let mut obstacles = self.named(function);
        let is_taken = function.is_in_user_space();
        let mut claim = Claim {
            bdf: function.bdf,
            is_new: !is_taken,
            driver_before: function.driver.as_ref().map(|driver| driver.name.clone()),
            override_before: None,
            driver: match function.iommu_group {
                Some(_) => UserDriver::Vfio,
                None => UserDriver::Uio,
            },
            numa_node: function.numa_node.clone().ok().flatten(),
            namespaces: Vec::new(),
            notes: Vec::new(),
        };
        if !function.is_nvme() {
            obstacles.push(not_nvme(function));
        } else if is_taken {
            obstacles.extend(self.taken(state, function, for_run, &mut claim));
        } else {
            obstacles.extend(controller::uses(machine, function, self.contents));
            obstacles.extend(self.group(function, wanted));
            self.describe(machine, function, &mut claim, &mut obstacles);
        }
        if obstacles.is_empty() {
            return Ok(claim);
        }
        Err(ClaimError::Refused {
            verb: "claim",
            bdf: function.bdf,
            obstacles,
        })
    }

    /// On a user-space driver already.
    fn taken(
        &self,
        state: &State,
        function: &Function,
        for_run: bool,
        claim: &mut Claim,
    ) -> Option<Obstacle> {
        let name = function.driver.as_ref().map(|driver| driver.name.as_str());
        claim.notes.push(format!(
            "it is on {} already",
            name.unwrap_or("a user-space driver")
        ));
        if let Some(entry) = state.of(function.bdf) {
            claim.namespaces.clone_from(&entry.namespaces);
            let owner = entry
                .for_run_of
                .filter(|owner| *owner != std::process::id());
            let owner = owner.filter(|owner| busy::is_alive(self.sysfs, *owner));
            if let Some(owner) = owner.filter(|_| for_run) {
                return Some(Obstacle::Driven {
                    process: Some(i64::from(owner)),
                });
            }
        }
        // It would be reset under whoever uses it.
        busy::driven(self.sysfs, function.bdf).filter(|_| for_run)
    }

    /// The user's own lists, in the words of SPDK's set-up script.
    fn named(&self, function: &Function) -> Vec<Obstacle> {
        let names = |list: &str| {
            list.split_whitespace()
                .any(|word| Bdf::parse_typed(word) == Some(function.bdf))
        };
        if self.blocked.as_deref().is_some_and(names) {
            return vec![Obstacle::Blocked];
        }
        match self.allowed.as_deref() {
            Some(list) if !names(list) => vec![Obstacle::NotAllowed],
            _ => Vec::new(),
        }
    }

    /// VFIO gives a group as a whole: every other member must be on a driver that does no DMA of its own, or
    /// come along.
    fn group(&self, function: &Function, wanted: &[Bdf]) -> Option<Obstacle> {
        let number = function.iommu_group?;
        let group = match IommuGroup::read(self.sysfs, number) {
            Ok(group) => group,
            Err(error) => {
                return Some(Obstacle::Unreadable {
                    what: error.to_string(),
                });
            }
        };
        let stays: Vec<_> = group
            .blockers(function.bdf)
            .filter(|member| !wanted.contains(&member.bdf))
            .collect();
        (!stays.is_empty()).then(|| Obstacle::Group {
            number,
            members: stays
                .iter()
                .map(|member| (member.bdf, member.driver.clone().unwrap_or_default()))
                .collect(),
            all_nvme: stays.iter().all(|member| member.class == Some(0x01_0802)),
        })
    }

    fn describe(
        &self,
        machine: &Machine<'_>,
        function: &Function,
        claim: &mut Claim,
        obstacles: &mut Vec<Obstacle>,
    ) {
        claim.namespaces = controller::former(machine, function);
        match self.binder().reserved_for(function.bdf) {
            Ok(reserved) => claim.override_before = reserved,
            Err(error) => obstacles.push(Obstacle::Unreadable {
                what: error.to_string(),
            }),
        }
        if claim.driver == UserDriver::Uio {
            claim.notes.push(
                "no IOMMU: on uio_pci_generic the device can reach all of the machine's memory"
                    .to_owned(),
            );
        }
        if claim.driver_before.is_none() {
            claim
                .notes
                .push("no driver had it: what it holds and who uses it cannot be seen".to_owned());
        }
    }
}

fn not_nvme(function: &Function) -> Obstacle {
    let class = match &function.class {
        Ok(class) => format!("PCI class {class:06x}"),
        Err(absent) => format!("its class is not known: {absent}"),
    };
    Obstacle::NotNvme {
        class,
        driver: function.driver.as_ref().map(|driver| driver.name.clone()),
    }
}

//! What may be written. Read-only is the default; a write needs a [`Permit`], and only [`Guard`] makes one.
//!
//! The guard judges facts it reads itself, at two moments: before a run, and again right before the node is
//! opened for writing ([`Guard::again`]). Between that second look and the open something may still begin to
//! use the device; the exclusive open of the block node (`O_EXCL`, which mounts, swap and holders claim too)
//! closes that gap for all of these. It does not for a loop device set up on the node in just that moment.

mod consent;
pub mod content;
mod detect;
mod finding;
pub mod signature;
mod uses;

pub use consent::Consent;
pub use detect::{Found, find_all};
pub use finding::{Finding, Place, Refusal, Relation};
pub use signature::{Signature, UnknownSignature, parse_overwrite};
pub use uses::{describe, of_device, of_disk};

use super::machine::{Machine, Seen};
use crate::session::device::identity::{self, Alias, Device, Target, Way};
use crate::sysfs::{BlockDev, FileId, Node, NodeKind, Sysfs, SysfsError, filesystems};
use content::{Contents, HostContents, Part, ReadAt};
use std::path::{Path, PathBuf};

/// What is to be done to the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Intent {
    /// Write blocks.
    Write,
    /// Deallocate blocks.
    Trim,
    /// Format it.
    Format,
    /// Fill it before it is read.
    Prepare,
}

impl Intent {
    /// In words: `write to`.
    #[must_use]
    pub const fn verb(self) -> &'static str {
        match self {
            Self::Write => "write to",
            Self::Trim => "trim",
            Self::Format => "format",
            Self::Prepare => "fill",
        }
    }
}

/// The guard's yes to writing one device, as it was when it was judged. Whoever opens a device for writing
/// takes one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permit {
    path: PathBuf,
    kind: Option<NodeKind>,
    disk_sequence: Option<u64>,
    block_nodes: Vec<PathBuf>,
    consent: Consent,
    intent: Intent,
    is_scratch: bool,
}

impl Permit {
    /// The path to open, without symbolic links.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What is there: compare with fstat(2) of what was opened.
    #[must_use]
    pub const fn kind(&self) -> Option<NodeKind> {
        self.kind
    }

    /// The kernel's number of the medium behind a block node, where it tells one.
    #[must_use]
    pub const fn disk_sequence(&self) -> Option<u64> {
        self.disk_sequence
    }

    /// Block nodes of the whole device, to be held open with `O_EXCL` while it is written past them (by its
    /// sg or ng node). Empty for files and for what has no block node.
    #[must_use]
    pub fn block_nodes(&self) -> &[PathBuf] {
        &self.block_nodes
    }
}

/// Decides what may be written.
pub struct Guard<'a> {
    sysfs: &'a Sysfs,
    contents: &'a dyn Contents,
}

impl<'a> Guard<'a> {
    /// A guard over the running machine, or a captured one whose content cannot be read.
    #[must_use]
    pub fn new(sysfs: &'a Sysfs) -> Self {
        Self::with_contents(sysfs, &HostContents)
    }

    /// A guard that reads devices in another way.
    #[must_use]
    pub const fn with_contents(sysfs: &'a Sysfs, contents: &'a dyn Contents) -> Self {
        Self { sysfs, contents }
    }

    /// Whether `path` may be written.
    ///
    /// # Errors
    /// [`Refusal`] with everything that was found.
    pub fn check(&self, path: &Path, consent: &Consent, intent: Intent) -> Result<Permit, Refusal> {
        let refuse = |findings| Refusal {
            target: path.display().to_string(),
            intent: intent.verb(),
            findings,
        };
        let machine =
            Machine::read(self.sysfs).map_err(|error| refuse(vec![unreadable(&error)]))?;
        let target =
            identity::resolve(&machine, path).map_err(|error| refuse(vec![no_target(&error)]))?;
        let (findings, permit) = match &target {
            Target::Device(device) => self.judge_device(&machine, device, consent, intent),
            Target::File(node) => self.judge_file(&machine, node, consent, intent),
        };
        if findings.is_empty() {
            Ok(permit)
        } else {
            Err(refuse(findings))
        }
    }

    /// The second look, right before the open: everything once more, and that the path still leads to the
    /// same device with the same medium.
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn again(&self, permit: &Permit) -> Result<(), Refusal> {
        if permit.is_scratch || permit.kind.is_none() {
            return Ok(());
        }
        let now = self.check(&permit.path, &permit.consent, permit.intent)?;
        if (now.kind, now.disk_sequence) == (permit.kind, permit.disk_sequence) {
            return Ok(());
        }
        Err(Refusal {
            target: permit.path.display().to_string(),
            intent: permit.intent.verb(),
            findings: vec![Finding::Unreadable {
                what: "another device or medium is there now than a moment ago".to_owned(),
            }],
        })
    }

    /// A permit for a scratch file that lanemark made in this run: it needs no consent.
    ///
    /// # Errors
    /// [`Refusal`] where the path is not a regular file.
    pub fn scratch(&self, path: &Path) -> Result<Permit, Refusal> {
        // Not by its real path: a scratch file has no name, only a descriptor of ours leads to it.
        let why = match Node::kind_at(self.sysfs, path) {
            Ok(kind @ NodeKind::File { .. }) => {
                return Ok(Permit {
                    path: path.to_owned(),
                    kind: Some(kind),
                    disk_sequence: None,
                    block_nodes: Vec::new(),
                    consent: Consent::default(),
                    intent: Intent::Write,
                    is_scratch: true,
                });
            }
            Ok(_) => "a scratch file must be a regular file".to_owned(),
            Err(error) => error.to_string(),
        };
        Err(Refusal {
            target: path.display().to_string(),
            intent: Intent::Write.verb(),
            findings: vec![Finding::Unsuitable { why }],
        })
    }

    /// For a device without a node here: a transport ID, a PCI address held by a user-space driver. Its
    /// content is read through that driver. Whether a serial is unique the caller must know.
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn check_unlisted(
        name: &str,
        serial: Option<&str>,
        content: &dyn ReadAt,
        consent: &Consent,
        intent: Intent,
    ) -> Result<Permit, Refusal> {
        let place = Place {
            name: name.to_owned(),
            relation: Relation::Itself,
        };
        let mut findings: Vec<Finding> = consent::for_name(name, serial, consent)
            .into_iter()
            .collect();
        findings.extend(signatures(content, &place));
        findings.retain(|finding| !is_overridden(finding, consent));
        if findings.is_empty() {
            return Ok(Permit {
                path: PathBuf::from(name),
                kind: None,
                disk_sequence: None,
                block_nodes: Vec::new(),
                consent: consent.clone(),
                intent,
                is_scratch: false,
            });
        }
        Err(Refusal {
            target: name.to_owned(),
            intent: intent.verb(),
            findings,
        })
    }

    fn judge_device(
        &self,
        machine: &Machine<'_>,
        device: &Device,
        consent: &Consent,
        intent: Intent,
    ) -> (Vec<Finding>, Permit) {
        let mut findings = match uses::of_device(machine, device) {
            Ok(found) => found,
            Err(error) => vec![unreadable(&error)],
        };
        findings.extend(facts(device));
        findings.extend(consent::for_device(machine, device, consent));
        findings.extend(self.carried(machine, device, consent));
        let block_node = |alias: &&Alias| alias.way == Way::Disk;
        let held = device.aliases.iter().filter(block_node);
        let permit = Permit {
            path: device.node.path.clone(),
            kind: Some(device.node.kind),
            disk_sequence: device
                .disks
                .first()
                .and_then(|disk| disk.disk_sequence().ok().flatten()),
            block_nodes: held.map(|alias| alias.path.clone()).collect(),
            consent: consent.clone(),
            intent,
            is_scratch: false,
        };
        (findings, permit)
    }

    /// Signatures of what would be overwritten: the node named and, in a whole disk, each part.
    fn carried(&self, machine: &Machine<'_>, device: &Device, consent: &Consent) -> Vec<Finding> {
        let target = device.part.as_ref().or(device.disks.first());
        let Some(target) = target else {
            return vec![unjudged(
                "what the device holds: it has no block node to read it through",
            )];
        };
        let path = self.sysfs.locate(&machine.node_path(&target.name));
        let content = match self.contents.open(&path) {
            Ok(content) => content,
            Err(errno) => {
                return vec![unjudged(&format!(
                    "{} cannot be opened: {errno}",
                    path.display()
                ))];
            }
        };
        let place = |node: &BlockDev, relation| Place {
            name: node.name.clone(),
            relation,
        };
        let mut found = signatures(content.as_ref(), &place(target, Relation::Itself));
        if device.part.is_none() {
            for part in machine.parts(&target.name) {
                let (Ok(start), Ok(size)) = (part.start(), part.size()) else {
                    found.push(unjudged(&format!("start or size of {}", part.name)));
                    continue;
                };
                let inside = Part {
                    whole: content.as_ref(),
                    start_bytes: start.0,
                    size_bytes: size.0,
                };
                found.extend(signatures(&inside, &place(part, Relation::Part)));
            }
        }
        let pools = self.imported_pools(&found);
        found.retain(|finding| !is_overridden(finding, consent));
        found.extend(pools);
        found
    }

    /// `--overwrite zfs` is about labels left behind. A pool in use cannot be overridden, and the kernel
    /// shows no holder for it.
    fn imported_pools(&self, found: &[Finding]) -> Option<Finding> {
        let label = found.iter().find_map(|finding| match finding {
            Finding::Signature {
                place,
                signature: Signature::Zfs,
                ..
            } => Some(place.clone()),
            _ => None,
        })?;
        match filesystems::imported_zfs_pools(self.sysfs) {
            Ok(pools) if pools.is_empty() => None,
            Ok(pools) => Some(Finding::ZfsImported {
                place: label,
                pools,
            }),
            Err(error) => Some(unreadable(&error)),
        }
    }

    fn judge_file(
        &self,
        machine: &Machine<'_>,
        node: &Node,
        consent: &Consent,
        intent: Intent,
    ) -> (Vec<Finding>, Permit) {
        let mut findings = Vec::new();
        if let NodeKind::File { id, .. } = node.kind {
            findings = self.file_findings(machine, &node.path, id, consent);
        }
        let permit = Permit {
            path: node.path.clone(),
            kind: Some(node.kind),
            disk_sequence: None,
            block_nodes: Vec::new(),
            consent: consent.clone(),
            intent,
            is_scratch: false,
        };
        (findings, permit)
    }

    fn file_findings(
        &self,
        machine: &Machine<'_>,
        path: &Path,
        id: FileId,
        consent: &Consent,
    ) -> Vec<Finding> {
        let mut findings = match uses::of_file(machine, path, id) {
            Ok(found) => found,
            Err(error) => vec![unreadable(&error)],
        };
        findings.extend(consent::for_file(machine, path, id, consent));
        let place = Place {
            name: path.display().to_string(),
            relation: Relation::Itself,
        };
        match self.contents.open(&self.sysfs.locate(path)) {
            Ok(content) => findings.extend(signatures(content.as_ref(), &place)),
            Err(errno) => findings.push(unjudged(&format!(
                "{} cannot be opened: {errno}",
                path.display()
            ))),
        }
        findings.retain(|finding| !is_overridden(finding, consent));
        findings
    }
}

/// What a read-only look finds in use, in words for records and tables: `mounted at /data (sdb1, ext4)`.
/// Facts that could not be read are told in the same list.
#[must_use]
pub fn in_use(sysfs: &Sysfs, path: &Path) -> Vec<String> {
    in_use_as_seen(&Seen::new(sysfs), path)
}

/// The same in a machine that has been looked at.
#[must_use]
pub fn in_use_as_seen(seen: &Seen<'_>, path: &Path) -> Vec<String> {
    let look = || -> Result<Vec<String>, String> {
        let machine = seen.machine().map_err(|error| error.to_string())?;
        let found = match seen.target(path).map_err(|error| error.to_string())? {
            Target::Device(device) => uses::of_device(machine, &device),
            Target::File(Node {
                path,
                kind: NodeKind::File { id, .. },
            }) => uses::of_file(machine, &path, id),
            Target::File(_) => Ok(Vec::new()),
        };
        let found = found.map_err(|error| error.to_string())?;
        Ok(found
            .iter()
            .filter(|finding| finding.is_use())
            .map(ToString::to_string)
            .collect())
    };
    look().unwrap_or_else(|error| vec![format!("unknown: {error}")])
}

/// Imported ZFS pools that a device may belong to, which no list of the kernel's shows: its labels are read.
#[must_use]
pub fn imported_pools_on(
    machine: &Machine<'_>,
    device: &Device,
    contents: &dyn Contents,
) -> Vec<Finding> {
    if filesystems::imported_zfs_pools(machine.sysfs).is_ok_and(|pools| pools.is_empty()) {
        return Vec::new();
    }
    let decides = |finding: &Finding| {
        matches!(
            finding,
            Finding::ZfsImported { .. } | Finding::Unreadable { .. }
        )
    };
    let guard = Guard::with_contents(machine.sysfs, contents);
    let mut found = guard.carried(machine, device, &Consent::default());
    found.retain(decides);
    found
}

fn signatures(content: &dyn ReadAt, place: &Place) -> Vec<Finding> {
    match find_all(content) {
        Ok(found) => found
            .into_iter()
            .map(|found| Finding::Signature {
                place: place.clone(),
                signature: found.signature,
                at_bytes: found.at_bytes,
            })
            .collect(),
        Err(errno) => vec![unjudged(&format!("what {} holds: {errno}", place.name))],
    }
}

fn is_overridden(finding: &Finding, consent: &Consent) -> bool {
    matches!(finding, Finding::Signature { signature, .. } if consent.overwrite.contains(signature))
}

fn facts(device: &Device) -> Vec<Finding> {
    let mut found = Vec::new();
    for node in device.part.iter().chain(device.disks.first()) {
        match node.read_only() {
            Ok(false) => {}
            Ok(true) => found.push(Finding::ReadOnly {
                place: Place {
                    name: node.name.clone(),
                    relation: Relation::Itself,
                },
            }),
            Err(error) => found.push(unreadable(&error)),
        }
        if let Err(error) = node.size() {
            found.push(unreadable(&error));
        }
    }
    found
}

fn unreadable(error: &SysfsError) -> Finding {
    unjudged(&error.to_string())
}

fn unjudged(what: &str) -> Finding {
    Finding::Unreadable {
        what: what.to_owned(),
    }
}

fn no_target(error: &identity::IdentityError) -> Finding {
    match error {
        identity::IdentityError::Sysfs(error) => unreadable(error),
        identity::IdentityError::Unsuitable { .. } => Finding::Unsuitable {
            why: error.to_string(),
        },
    }
}

//! What speaks against writing to a device, each in words that name the thing found.

use super::signature::Signature;
use crate::record::Failure;
use std::fmt;
use std::path::PathBuf;

/// How a node stands to the device that was named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    /// It is what was named.
    Itself,
    /// A partition of what was named.
    Part,
    /// The whole disk of the partition that was named, or another part of it.
    SameDisk,
    /// Another node of the same device: second path, multipath member, what a loop device stands on.
    SameDevice,
}

/// A node that something was found on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Kernel name, or the path of a file.
    pub name: String,
    /// How it stands to what was named.
    pub relation: Relation,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.name;
        match self.relation {
            Relation::Itself => write!(f, "{name}"),
            Relation::Part => write!(f, "partition {name}"),
            Relation::SameDisk => write!(f, "{name}, on the same disk"),
            Relation::SameDevice => write!(f, "{name}, the same device by another name"),
        }
    }
}

/// One reason why a device is in use, or may not be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// Mounted.
    Mounted {
        /// On what.
        place: Place,
        /// Where.
        at: String,
        /// Type of file system.
        fs_type: String,
        /// Mounted read-only.
        read_only: bool,
        /// A process that sees the mount, where we do not.
        seen_by: Option<u32>,
    },
    /// A mounted file system uses it, and no mount table that may be read shows where.
    MountedElsewhere {
        /// On what.
        place: Place,
        /// Type of file system.
        fs_type: String,
    },
    /// A swap area in use.
    Swap {
        /// On what.
        place: Place,
    },
    /// Something is built on it.
    Holder {
        /// On what.
        place: Place,
        /// Name of the device built on it.
        holder: String,
        /// What that is: `LVM vg/lv`, `md raid1`, `dm-crypt home`, `bcache`.
        what: String,
        /// What the holder itself is used for, where that is known.
        used: Vec<String>,
    },
    /// A loop device stands on it.
    Backing {
        /// On what.
        place: Place,
        /// The loop device.
        loop_name: String,
        /// What the loop device itself is used for.
        used: Vec<String>,
    },
    /// The root file system stands on it.
    Root {
        /// On what.
        place: Place,
    },
    /// It belongs to a ZFS pool while pools are imported here.
    ZfsImported {
        /// On what.
        place: Place,
        /// Names of the imported pools.
        pools: Vec<String>,
    },
    /// It carries a partition table or file system.
    Signature {
        /// On what.
        place: Place,
        /// What.
        signature: Signature,
        /// Where its magic stands.
        at_bytes: u64,
    },
    /// The kernel refuses writes to it.
    ReadOnly {
        /// What.
        place: Place,
    },
    /// Another process holds a lock on the file.
    Locked {
        /// The process; absent where the kernel names none.
        process: Option<i64>,
    },
    /// Nobody allowed it.
    NoConsent {
        /// What to allow it by.
        names: Vec<String>,
    },
    /// Consent names something else.
    OtherConsent {
        /// What it names.
        given: String,
        /// What to name instead.
        names: Vec<String>,
    },
    /// Consent names a part only.
    PartConsent {
        /// The part.
        given: String,
        /// What to name instead.
        names: Vec<String>,
    },
    /// Consent is given by a serial number that several devices have.
    SerialNotUnique {
        /// The serial number.
        serial: String,
        /// The devices that have it.
        devices: Vec<String>,
        /// The path to name instead.
        path: PathBuf,
    },
    /// Consent is given by an empty word, or by a serial number while the device has none.
    NoSerial {
        /// What was given.
        given: String,
        /// The path to name instead.
        path: PathBuf,
    },
    /// A fact that decides is missing or garbled: what cannot be judged is not written.
    Unreadable {
        /// Which fact.
        what: String,
    },
    /// It is nothing that could be written.
    Unsuitable {
        /// What it is.
        why: String,
    },
}

fn then(used: &[String]) -> String {
    if used.is_empty() {
        String::new()
    } else {
        format!(", {}", used.join(", "))
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mounted {
                place,
                at,
                fs_type,
                read_only,
                seen_by,
            } => {
                write!(
                    f,
                    "mounted at {at}{} ({place}, {fs_type}",
                    if *read_only { " (ro)" } else { "" }
                )?;
                if let Some(process) = seen_by {
                    write!(f, ", in the mount namespace of process {process}")?;
                }
                f.write_str(")")
            }
            Self::MountedElsewhere { place, fs_type } => {
                write!(
                    f,
                    "mounted out of sight ({place}, {fs_type}, in a mount namespace that cannot be read)"
                )
            }
            Self::Swap { place } => write!(f, "swap in use ({place})"),
            Self::Holder {
                place,
                holder,
                what,
                used,
            } => {
                write!(
                    f,
                    "held by {holder} ({what}{}), which stands on {place}",
                    then(used)
                )
            }
            Self::Backing {
                place,
                loop_name,
                used,
            } => {
                write!(f, "backs {loop_name} ({place}{})", then(used))
            }
            Self::Root { place } => write!(f, "holds the root file system ({place})"),
            Self::ZfsImported { place, pools } => {
                write!(
                    f,
                    "may belong to the imported ZFS pool {} ({place})",
                    pools.join(" or ")
                )
            }
            Self::Signature {
                place,
                signature,
                at_bytes,
            } => write!(
                f,
                "carries a signature: {signature} ({}, {place}, at byte {at_bytes})",
                signature.what()
            ),
            _ => self.fmt_leave(f),
        }
    }
}

impl Finding {
    /// What is wrong with the leave to write.
    fn fmt_leave(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ReadOnly { place } => write!(f, "read-only ({place})"),
            Self::Locked {
                process: Some(process),
            } => write!(f, "locked by process {process}"),
            Self::Locked { process: None } => f.write_str("locked by another process"),
            Self::NoConsent { .. } => f.write_str("no consent was given"),
            Self::OtherConsent { given, .. } => write!(f, "consent names another device: {given}"),
            Self::PartConsent { given, .. } => {
                write!(f, "consent names a part of it only: {given}")
            }
            Self::SerialNotUnique {
                serial, devices, ..
            } => write!(
                f,
                "consent is given by a serial number that is not unique: {serial} is that of {}",
                devices.join(" and ")
            ),
            Self::NoSerial { given, .. } => {
                write!(
                    f,
                    "consent names `{given}`, but the serial number of the device is empty"
                )
            }
            Self::Unreadable { what } => write!(f, "cannot be judged: {what}"),
            Self::Unsuitable { why } => f.write_str(why),
            _ => f.write_str(self.kind()),
        }
    }

    /// Short kind for records.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Mounted { .. } | Self::MountedElsewhere { .. } => "mounted",
            Self::Swap { .. } => "swap",
            Self::Holder { .. } => "holder",
            Self::Backing { .. } => "loop-backing",
            Self::Root { .. } => "root",
            Self::ZfsImported { .. } => "zfs-pool",
            Self::Signature { .. } => "signature",
            Self::ReadOnly { .. } => "read-only",
            Self::Locked { .. } => "locked",
            Self::NoConsent { .. } => "no-consent",
            Self::OtherConsent { .. } | Self::PartConsent { .. } => "other-consent",
            Self::SerialNotUnique { .. } => "serial-not-unique",
            Self::NoSerial { .. } => "no-serial",
            Self::Unreadable { .. } => "unreadable",
            Self::Unsuitable { .. } => "unsuitable",
        }
    }

    /// What the user can do about it.
    #[must_use]
    pub fn next_step(&self) -> String {
        match self {
            Self::Mounted { at, .. } => format!("unmount {at}, or name another device"),
            Self::MountedElsewhere { .. } => {
                "find who mounted it (a container?) and unmount it there".into()
            }
            Self::Swap { place } => format!("swapoff {}, or name another device", place.name),
            Self::Holder { holder, .. } => format!("stop {holder} first, or name another device"),
            Self::Backing { loop_name, .. } => {
                format!("losetup -d {loop_name}, or name another device")
            }
            Self::Root { .. } => "name another device: this one is never written".into(),
            Self::ZfsImported { .. } => "zpool export it, or name another device".into(),
            Self::Signature { signature, .. } => {
                format!("if it may be destroyed: --overwrite {signature}")
            }
            Self::ReadOnly { .. } => "blockdev --setrw, if the device can be written at all".into(),
            Self::Locked { .. } => "end the process that uses the file".into(),
            Self::NoConsent { names }
            | Self::OtherConsent { names, .. }
            | Self::PartConsent { names, .. } => {
                let flags: Vec<String> = names
                    .iter()
                    .map(|name| format!("--allow-write {name}"))
                    .collect();
                format!("if all of it may be overwritten: {}", flags.join(" or "))
            }
            Self::SerialNotUnique { path, .. } | Self::NoSerial { path, .. } => {
                format!("name the path: --allow-write {}", path.display())
            }
            Self::Unreadable { .. } => {
                "make that fact readable (run as root?), or name another device".into()
            }
            Self::Unsuitable { .. } => {
                "name a block device, its sg or ng node, or a regular file".into()
            }
        }
    }

    /// Whether it is a fact about use, which reports of reads carry too.
    #[must_use]
    pub const fn is_use(&self) -> bool {
        matches!(
            self,
            Self::Mounted { .. }
                | Self::MountedElsewhere { .. }
                | Self::Swap { .. }
                | Self::Holder { .. }
                | Self::Backing { .. }
                | Self::Root { .. }
        )
    }
}

/// The guard's no: everything found, worst first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The device as it was named.
    pub target: String,
    /// What was to be done: `write to`, `trim`.
    pub intent: &'static str,
    /// The reasons; never empty.
    pub findings: Vec<Finding>,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reasons: Vec<String> = self.findings.iter().map(ToString::to_string).collect();
        write!(
            f,
            "refused to {} {}: {}",
            self.intent,
            self.target,
            reasons.join("; ")
        )
    }
}

impl std::error::Error for Refusal {}

impl Refusal {
    /// As records carry it; exit code 3.
    #[must_use]
    pub fn failure(&self) -> Failure {
        Failure {
            kind: "refused".to_owned(),
            text: self.to_string(),
            next_step: self.next_step(),
            exit_code: 3,
        }
    }

    /// What to do: about the use that forbids it, or, where consent is all that is missing, every flag.
    #[must_use]
    pub fn next_step(&self) -> String {
        let hard: Vec<&Finding> = self
            .findings
            .iter()
            .filter(|finding| !finding.is_curable())
            .collect();
        let mut steps: Vec<String> = match hard.as_slice() {
            [] => self.findings.iter().map(Finding::next_step).collect(),
            hard => hard.iter().map(|finding| finding.next_step()).collect(),
        };
        steps.dedup();
        steps.join("; ")
    }
}

impl Finding {
    /// Whether a flag of the user can lift it.
    #[must_use]
    pub const fn is_curable(&self) -> bool {
        matches!(
            self,
            Self::Signature { .. }
                | Self::NoConsent { .. }
                | Self::OtherConsent { .. }
                | Self::PartConsent { .. }
                | Self::SerialNotUnique { .. }
                | Self::NoSerial { .. }
        )
    }
}

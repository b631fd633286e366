//! `lanemark claim` and `lanemark release`: NVMe controllers to SPDK and back to the driver they came from.

pub(in crate::cli) mod claimed;

use crate::cli::exit::Exit;
use crate::cli::listing::{LIST_SCHEMA_VERSION, ListFormat};
use crate::cli::output;
use crate::record::{Failure, Warning};
use crate::session::claim::{
    BadName, Claim, ClaimError, Claimer, HugeChange, Moved, Renamed, State, UserDriver, function_of,
};
use crate::session::machine::Machine;
use crate::sysfs::Sysfs;
use crate::sysfs::pci::Bdf;
use crate::units::{Bytes, SizeSpec, parse_size};
use clap::Args;
use std::fmt::Write;

/// Flags of `lanemark claim`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
#[command(after_help = "Examples:
  lanemark claim 0000:01:00.0 --hugepages 1G
      the controller to SPDK, with 1 GiB of huge pages on its NUMA node
  lanemark claim /dev/nvme1n1 --dry-run
      what would be done, and what is against it
Refused with exit code 3, and nothing changed, where any namespace of the controller is mounted (in any mount
namespace), swap, held (LVM, md, dm, bcache), open in a process, part of an imported ZFS pool or below the root
file system; where other functions of its IOMMU group would stay with the kernel; where PCI_BLOCKED names it, or
PCI_ALLOWED is set and does not.")]
pub struct ClaimArgs {
    /// PCI addresses (0000:01:00.0), or nodes of NVMe devices
    #[arg(required = true, value_name = "DEVICE")]
    pub devices: Vec<String>,

    /// See to it that this much is reserved as huge pages on the NUMA node of each device
    #[arg(long, value_name = "SIZE")]
    pub hugepages: Option<String>,

    /// Say what would be done, and change nothing
    #[arg(long)]
    pub dry_run: bool,

    /// What stdout holds
    #[arg(long, value_enum, default_value_t)]
    pub format: ListFormat,
}

/// Flags of `lanemark release`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct ReleaseArgs {
    /// PCI addresses, or the nodes that the devices had before
    #[arg(
        required_unless_present = "all",
        conflicts_with = "all",
        value_name = "DEVICE"
    )]
    pub devices: Vec<String>,

    /// Everything that lanemark has claimed, also for runs that were killed
    #[arg(long)]
    pub all: bool,

    /// Say what would be done, and change nothing
    #[arg(long)]
    pub dry_run: bool,

    /// What stdout holds
    #[arg(long, value_enum, default_value_t)]
    pub format: ListFormat,
}

/// Why a verb of this file did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum VerbError {
    /// Not claimed, or not given back.
    #[error(transparent)]
    Claim(#[from] ClaimError),
    /// Not a size.
    #[error("--hugepages {given}: {why}")]
    Size {
        /// What was given.
        given: String,
        /// What is wrong with it.
        why: String,
    },
}

impl From<BadName> for VerbError {
    fn from(error: BadName) -> Self {
        Self::Claim(error.into())
    }
}

impl VerbError {
    /// As records carry it.
    #[must_use]
    pub fn failure(&self) -> Failure {
        let (kind, next_step, exit_code) = match self {
            Self::Claim(error) => (error.kind(), error.next_step(), error.exit_code()),
            Self::Size { .. } => ("usage", String::new(), Exit::Usage.code()),
        };
        Failure {
            kind: kind.to_owned(),
            text: self.to_string(),
            next_step,
            exit_code,
        }
    }

    fn findings(&self) -> serde_json::Value {
        let Self::Claim(ClaimError::Refused { obstacles, .. }) = self else {
            return serde_json::json!([]);
        };
        obstacles
            .iter()
            .map(|obstacle| {
                serde_json::json!({
                    "kind": obstacle.kind(),
                    "text": obstacle.to_string(),
                    "next_step": obstacle.next_step(),
                })
            })
            .collect()
    }
}

/// What was done, or would be.
#[derive(Debug, Default)]
struct Doing {
    devices: Vec<Moved>,
    hugepages: Vec<HugeChange>,
}

/// Runs `lanemark claim`; the exit code.
#[must_use]
pub fn claim(args: &ClaimArgs, sysfs: &Sysfs) -> Exit {
    let done = do_claim(args, &Claimer::new(sysfs, &output::note), sysfs);
    told(done, args.format, args.dry_run, "lanemark release")
}

/// Runs `lanemark release`; the exit code.
#[must_use]
pub fn release(args: &ReleaseArgs, sysfs: &Sysfs) -> Exit {
    let done = do_release(args, &Claimer::new(sysfs, &output::note), sysfs);
    if let Ok(doing) = &done {
        warn_of_names(&doing.devices);
    }
    told(done, args.format, args.dry_run, "")
}

fn do_claim(args: &ClaimArgs, claimer: &Claimer<'_>, sysfs: &Sysfs) -> Result<Doing, VerbError> {
    let size = args.hugepages.as_deref().map(size).transpose()?;
    let wanted = functions(sysfs, &args.devices)?;
    let claims = claimer.plan(&wanted, false)?;
    // Before anything is moved: a device without memory to drive it with is of no use.
    let hugepages = match size {
        Some(size) => claimer.reserve(&claims, size, args.dry_run)?,
        None => Vec::new(),
    };
    let devices = if args.dry_run {
        claims.iter().map(Claim::planned).collect()
    } else {
        claimer.claim(&wanted, None)?
    };
    Ok(Doing { devices, hugepages })
}

fn do_release(
    args: &ReleaseArgs,
    claimer: &Claimer<'_>,
    sysfs: &Sysfs,
) -> Result<Doing, VerbError> {
    let wanted = functions(sysfs, &args.devices)?;
    let wanted = (!args.all).then_some(wanted.as_slice());
    let devices = if args.dry_run {
        claimer.plan_release(wanted)?
    } else {
        claimer.release(wanted)?
    };
    Ok(Doing {
        devices,
        hugepages: Vec::new(),
    })
}

fn functions(sysfs: &Sysfs, names: &[String]) -> Result<Vec<Bdf>, VerbError> {
    let machine = Machine::read(sysfs).map_err(ClaimError::from)?;
    let state = State::peek(sysfs);
    let mut found = Vec::new();
    for name in names {
        found.push(function_of(&machine, &state, name)?);
    }
    Ok(found)
}

fn size(text: &str) -> Result<Bytes, VerbError> {
    let wrong = |why: String| VerbError::Size {
        given: text.to_owned(),
        why,
    };
    match parse_size(text) {
        Ok(SizeSpec::Bytes(bytes)) if bytes.0 > 0 => Ok(bytes),
        Ok(_) => Err(wrong("write a size such as 512M or 2G".to_owned())),
        Err(error) => Err(wrong(error.to_string())),
    }
}

fn told(done: Result<Doing, VerbError>, format: ListFormat, dry_run: bool, until: &str) -> Exit {
    let (doing, failure, findings) = match done {
        Ok(doing) => (doing, None, serde_json::json!([])),
        Err(error) => {
            let failure = error.failure();
            output::complain(&failure);
            (Doing::default(), Some(failure), error.findings())
        }
    };
    let text = match format {
        ListFormat::Json => {
            let document = serde_json::json!({
                "schema_version": LIST_SCHEMA_VERSION,
                "dry_run": dry_run,
                "devices": doing.devices,
                "hugepages": doing.hugepages,
                "error": failure,
                "findings": findings,
            });
            format!("{document:#}\n")
        }
        ListFormat::Text => text(&doing, dry_run, until),
    };
    let exit = failure.map_or(Exit::Ok, |failure| Exit::of_code(failure.exit_code));
    match output::to_stdout(&text) {
        Ok(()) => exit,
        Err(error) => {
            output::complain(&error.failure());
            exit.and(error.exit())
        }
    }
}

fn text(doing: &Doing, dry_run: bool, until: &str) -> String {
    let mut text = String::new();
    let would = if dry_run { "would go " } else { "" };
    for moved in &doing.devices {
        text += &line(moved, would, until);
    }
    for change in &doing.hugepages {
        let _ = writeln!(text, "{}{change}", if dry_run { "would set " } else { "" });
    }
    if doing.devices.is_empty() && doing.hugepages.is_empty() {
        return text;
    }
    if !doing.devices.iter().any(|moved| moved.changed) {
        text += "nothing was to be changed\n";
    }
    text
}

fn line(moved: &Moved, would: &str, until: &str) -> String {
    let driver = |name: &Option<String>| name.clone().unwrap_or_else(|| "no driver".to_owned());
    let mut line = format!("{}: ", moved.bdf);
    if moved.changed || !would.is_empty() && moved.driver != moved.driver_before {
        let _ = write!(
            line,
            "{would}{} -> {}",
            driver(&moved.driver_before),
            driver(&moved.driver)
        );
        if !moved.nodes.is_empty() {
            let nodes = moved.nodes.join(" ");
            let taken = moved.driver.as_deref().is_some_and(UserDriver::is_name);
            let _ = if taken {
                write!(line, "; gone until {until}: {nodes}")
            } else {
                write!(line, "; back: {nodes}")
            };
        }
    } else {
        line += &driver(&moved.driver);
    }
    let renamed = moved.renamed.iter().filter_map(Renamed::line);
    for note in renamed.chain(moved.notes.iter().cloned()) {
        let _ = write!(line, "\n  {note}");
    }
    line + "\n"
}

/// Warns where the name that a device had before its claim leads to another now.
pub(in crate::cli) fn warn_of_names(devices: &[Moved]) {
    let renamed = devices.iter().flat_map(|moved| &moved.renamed);
    for text in renamed.filter_map(Renamed::danger) {
        output::warn(&Warning {
            kind: "renamed".to_owned(),
            text,
            next_step: "see to what uses the old name; a link in /dev/disk/by-id or a PCI address means one device"
                .to_owned(),
        });
    }
}

/// For the verbs that claim for the time of one run.
pub(in crate::cli) fn moved_line(moved: &Moved) -> String {
    line(moved, "", "the run ends").trim_end().to_owned()
}

//! `lanemark lanes`: the way to a device, what it lets through, and what limits a measurement.

use super::exit::Exit;
use super::line::one_step::session;
use super::listing::ListFormat;
use super::output::clash::{self, Clash};
use super::output::{self, Output};
use super::progress::{self, Mode};
use super::{run, signals};
use crate::config::{BackendChoice, ConfigError, Plan};
use crate::method::lanes::{Asked, LanesError, Workloads, measure, report};
use crate::reactor::{Control, StopCause};
use crate::record::{Failure, LanesReport, Outcome};
use crate::report::render_lanes;
use crate::session::guard::{Consent, UnknownSignature, parse_overwrite};
use crate::session::path::{all_devices, named_device};
use crate::session::{Observer, Opened, SessionError, Setup, never_written, permits};
use crate::spdk::TransportId;
use crate::sysfs::pci::Function;
use crate::sysfs::{Sysfs, SysfsError};
use clap::Args;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Flags of `lanemark lanes`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct LanesArgs {
    /// The devices: a node, a PCI address, a transport ID. Without any: all that the kernel shows
    #[arg(value_name = "D")]
    pub devices: Vec<String>,

    /// Measure them against their ceilings: sequential 128 KiB and 1 MiB, random 4 KiB, reads
    #[arg(long, requires = "devices")]
    pub measure: bool,

    /// Length of each probe; a workload takes nine of them
    #[arg(long, value_name = "TIME", default_value = "1s", requires = "measure")]
    pub runtime: String,

    /// Polling threads [default: 1, or one per CPU of --cpus]
    #[arg(long, value_name = "N", requires = "measure")]
    pub reactors: Option<String>,

    /// CPUs of the reactors, such as 0-3,8
    #[arg(long, value_name = "LIST", requires = "measure")]
    pub cpus: Option<String>,

    /// What each device is sold as, in their order, such as hdd,ssd: virtual disks do not show it, and unlike ones at
    /// like rates are capped by their platform
    #[arg(long, value_name = "LIST", requires = "measure", value_delimiter = ',')]
    pub media: Vec<String>,

    /// Consent to write to this device, named by its serial number or path, over its whole length: measures
    /// writes as well. Repeatable
    #[arg(long, value_name = "ID", requires = "measure")]
    pub allow_write: Vec<String>,

    /// Consent to overwrite this kind of signature, as a refusal names it. Repeatable
    #[arg(long, value_name = "SIGNATURE", requires = "measure")]
    pub overwrite: Vec<String>,

    /// How to show progress on stderr
    #[arg(long, value_parser = super::line::args::names(&Mode::ALL, Mode::name), default_value = Mode::Auto.name())]
    pub progress: Mode,

    /// What stdout holds
    #[arg(long, value_enum, default_value_t)]
    pub format: ListFormat,

    /// Write the result to this file, not to stdout
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Lanes(#[from] LanesError),
    #[error(transparent)]
    Session(#[from] SessionError),
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Sysfs(#[from] SysfsError),
    #[error("{0}: no such device")]
    Unknown(String),
    #[error("--overwrite: {0}")]
    Overwrite(#[from] UnknownSignature),
    #[error("cannot listen for signals: {0}")]
    Signals(#[from] std::io::Error),
    #[error(transparent)]
    Clash(#[from] Clash),
    #[error(
        "--media names {media_count} kinds for {devices_count} devices: one for each of two or more"
    )]
    Media {
        media_count: usize,
        devices_count: usize,
    },
}

impl Error {
    fn failure(&self) -> Failure {
        let (kind, exit_code, next_step) = match self {
            Self::Lanes(LanesError::Session(error)) | Self::Session(error) => {
                (error.kind(), error.exit_code(), error.next_step())
            }
            Self::Lanes(LanesError::Config(_))
            | Self::Config(_)
            | Self::Overwrite(_)
            | Self::Clash(_)
            | Self::Media { .. } => ("usage", Exit::Usage.code(), String::new()),
            Self::Unknown(_) => {
                let next_step = "lanemark devices lists what is here".to_owned();
                ("no-device", Exit::Usage.code(), next_step)
            }
            Self::Sysfs(_) => {
                let next_step = "run where /sys is mounted".to_owned();
                ("sysfs", Exit::Failed.code(), next_step)
            }
            Self::Signals(_) => ("signals", Exit::Failed.code(), String::new()),
        };
        Failure {
            kind: kind.to_owned(),
            text: self.to_string(),
            next_step,
            exit_code,
        }
    }
}

/// Runs the verb; the exit code.
pub fn run(args: &LanesArgs) -> Exit {
    let sysfs = Sysfs::host();
    let output = match Output::open(args.output.as_deref()) {
        Ok(output) => output,
        Err(error) => return run::refuse(None, args.format.into(), &sysfs, error.failure()),
    };
    let named = args.devices.iter();
    let named = named.map(|name| (Path::new(name), clash::MEASURED));
    let done = clash::judge(&output, named, &sysfs).map_err(Error::from);
    let report = match done.and_then(|()| found(args, &sysfs)) {
        Ok(report) => report,
        Err(error) => return run::refuse(None, args.format.into(), &sysfs, error.failure()),
    };
    let text = match args.format {
        ListFormat::Json => json(&report),
        ListFormat::Text => render_lanes(&report, &output.style()),
    };
    let exit = exit(&report);
    match output.write(&text) {
        Ok(()) => exit,
        Err(error) => {
            output::complain(&error.failure());
            exit.and(error.exit())
        }
    }
}

fn exit(report: &LanesReport) -> Exit {
    let lost = |step: &crate::record::Step| step.failed_count > 0 || step.abandoned_count > 0;
    let any_lost = report.measurements.iter().any(|one| lost(&one.step));
    let status = match report.status {
        Outcome::Finished => Exit::Ok,
        Outcome::Interrupted => Exit::Interrupted,
        Outcome::Failed | Outcome::Refused => Exit::Failed,
    };
    status.and(if any_lost { Exit::Failed } else { Exit::Ok })
}

/// The report as a JSON document with a line break at its end.
#[must_use]
pub fn json(report: &LanesReport) -> String {
    let document = serde_json::to_string_pretty(report);
    document.expect("plain fields always serialise") + "\n"
}

/// Whether a name leads anywhere, as far as that can be told from here.
fn is_there(sysfs: &Sysfs, name: &str) -> bool {
    let head = name.split(':').next().unwrap_or_default();
    if matches!(head, "sim" | "null" | "scratch") {
        return true;
    }
    match name.parse::<TransportId>().map(|id| id.bdf()) {
        Ok(Some(bdf)) => {
            let is_it = |it: &Function| it.bdf.to_string() == bdf.to_string();
            Function::all(sysfs).is_ok_and(|all| all.iter().any(is_it))
        }
        // Over a network, or garbled: whoever connects says so.
        Ok(None) => true,
        Err(_) if TransportId::looks_like_one(name) => true,
        // What may not be looked at is there.
        Err(_) => sysfs.locate(Path::new(name)).try_exists().unwrap_or(true),
    }
}

/// Looks, and measures where asked to.
fn found(args: &LanesArgs, sysfs: &Sysfs) -> Result<LanesReport, Error> {
    let (media_count, devices_count) = (args.media.len(), args.devices.len());
    if media_count > 0 && (media_count != devices_count || devices_count < 2) {
        return Err(Error::Media {
            media_count,
            devices_count,
        });
    }
    if let Some(name) = args.devices.iter().find(|name| !is_there(sysfs, name)) {
        return Err(Error::Unknown(name.clone()));
    }
    let control = Arc::new(Control::default());
    signals::listen(&control)?;
    let devices = if args.devices.is_empty() {
        all_devices(sysfs)?
    } else {
        let named = |name: &String| named_device(sysfs, name);
        args.devices.iter().map(named).collect()
    };
    let mut report = report(&devices);
    if args.measure {
        let mut observer = progress::on_stderr(args.progress);
        measured(args, sysfs, control, observer.as_mut(), &mut report)?;
    }
    Ok(report)
}

fn measured(
    args: &LanesArgs,
    sysfs: &Sysfs,
    control: Arc<Control>,
    observer: &mut dyn Observer,
    report: &mut LanesReport,
) -> Result<(), Error> {
    let names: Vec<&str> = args.devices.iter().map(String::as_str).collect();
    let mut setup = Setup {
        control: &control,
        observer,
        dry_run: false,
    };
    let mut opened = Opened::open(&names, BackendChoice::Auto, sysfs, &mut setup)?;
    let asked = Asked {
        devices: args.devices.clone(),
        runtime: args.runtime.clone(),
        cpus: args.cpus.clone(),
        reactors: args.reactors.clone(),
        writes: !args.allow_write.is_empty(),
        media: args.media.clone(),
    };
    let workloads = Workloads::new(&asked, &opened, 1)?;
    let all = together(&workloads);
    let permits = permits(&all, &opened, &consent(args)?, sysfs)?;
    report.warnings.extend(opened.notes());
    // Never-written blocks are answered without the medium: doubts of the first plans stand for all.
    for doubt in never_written(&all, &opened, false, &control)?
        .into_iter()
        .flatten()
    {
        if !report.warnings.contains(&doubt) {
            report.warnings.push(doubt);
        }
    }
    if !permits.is_empty() {
        opened = opened.permit_writes(&permits, sysfs)?;
    }
    let session = session(matches!(opened, Opened::Sim { .. }), sysfs, control)?;
    report.measurements = measure(&session, &opened, &workloads, observer)?;
    let last = report.measurements.last().map(|one| &one.step);
    // A signal may have cut a window that is evidence only, and no step of the report.
    report.status = match last {
        Some(step) if !is_signalled(session.control.cause()) => step.status,
        _ => Outcome::Interrupted,
    };
    report.error = last.and_then(|step| step.error.clone());
    Ok(())
}

/// A device that is gone ends a measurement as well, and is a failure.
const fn is_signalled(cause: StopCause) -> bool {
    matches!(cause, StopCause::Signal | StopCause::Abort)
}

/// All steps as one plan, for what has to look at them beforehand.
fn together(workloads: &Workloads) -> Plan {
    let mut plans = workloads.plans();
    let mut all = plans.next().expect("there are workloads").clone();
    plans.for_each(|plan| all.steps.extend(plan.steps.clone()));
    all
}

fn consent(args: &LanesArgs) -> Result<Consent, Error> {
    let mut overwrite = Vec::new();
    for word in &args.overwrite {
        overwrite.extend(parse_overwrite(word)?);
    }
    Ok(Consent {
        allow_write: args.allow_write.clone(),
        overwrite,
    })
}

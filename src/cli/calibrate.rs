//! `lanemark calibrate`: what the tool costs on this machine.

use super::listing::{ListFormat, table, text_of};
use super::progress::{self, Mode};
use crate::config::BackendChoice;
use crate::method::calibrate::{Calibration, Stage, calibrate, cpu};
use crate::reactor::Control;
use crate::report::{figures, printable};
use crate::session::{Opened, SessionError, Setup};
use crate::sys::cpu::AllowedCpus;
use crate::sysfs::Sysfs;
use crate::units::CpuList;
use clap::Args;
use std::fmt::Write;

/// The file that prices io_uring: small, since its content is not what is measured.
const SCRATCH: &str = "scratch:size=64M";

/// Flags of `lanemark calibrate`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct CalibrateArgs {
    /// A device whose queue is priced as well, with reads; may be given several times. Without one, a
    /// scratch file in this folder is taken
    #[arg(long, value_name = "DEVICE")]
    pub device: Vec<String>,

    /// The CPU to measure on [default: the one that `run` would take]
    #[arg(long, value_name = "CPU")]
    pub cpus: Option<String>,

    /// What stdout holds
    #[arg(long, value_enum, default_value_t)]
    pub format: ListFormat,
}

/// Why there is no calibration.
#[derive(Debug, thiserror::Error)]
pub enum CalibrateError {
    /// The CPU is not one CPU.
    #[error("--cpus {0}: name one CPU, such as 1; costs are measured on one at a time")]
    Cpus(String),
    /// A device or a CPU cannot be had.
    #[error(transparent)]
    Session(#[from] SessionError),
}

impl CalibrateError {
    /// The kind that records carry.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Cpus(_) => "usage",
            Self::Session(error) => error.kind(),
        }
    }

    /// The exit code.
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Cpus(_) => 2,
            Self::Session(error) => error.exit_code(),
        }
    }
}

/// Measures; the result ready to print, with a newline at its end.
///
/// # Errors
/// [`CalibrateError`].
pub fn run(args: &CalibrateArgs, sysfs: &Sysfs) -> Result<String, CalibrateError> {
    let asked = args.cpus.as_deref().map(one_cpu).transpose()?;
    let allowed = AllowedCpus::at_start().map_err(SessionError::from)?;
    let cpu = cpu(asked, &allowed, sysfs)?;
    let control = Control::default();
    let mut observer = progress::on_stderr(Mode::None);
    let mut names = vec!["null"];
    if args.device.is_empty() {
        names.push(SCRATCH);
    }
    names.extend(args.device.iter().map(String::as_str));
    let mut opened = Vec::new();
    for name in names {
        let mut setup = Setup {
            control: &control,
            observer: observer.as_mut(),
            dry_run: false,
        };
        opened.push(Opened::open(
            &[name],
            BackendChoice::Auto,
            sysfs,
            &mut setup,
        )?);
    }
    let calibration = calibrate(sysfs, &allowed, cpu, &opened)?;
    Ok(match args.format {
        ListFormat::Json => json(&calibration),
        ListFormat::Text => text(&calibration),
    })
}

fn one_cpu(text: &str) -> Result<u32, CalibrateError> {
    match text.parse::<CpuList>().map(|list| list.0).as_deref() {
        Ok([cpu]) => Ok(*cpu),
        _ => Err(CalibrateError::Cpus(text.to_owned())),
    }
}

fn json(calibration: &Calibration) -> String {
    let document = serde_json::to_string_pretty(calibration);
    document.expect("plain fields always serialise") + "\n"
}

fn text(calibration: &Calibration) -> String {
    let mut rows = table(&["STAGE", "BACKEND", "NS PER I/O", "RANGE", "INSTRUCTIONS"]);
    for stage in &calibration.stages {
        rows.add_row(row(stage));
    }
    let mut text = text_of(&rows);
    let _ = writeln!(
        text,
        "\nmedian and range of {} rounds on CPU {}; {}, clock {}",
        calibration.rounds_count,
        calibration.cpu,
        printable(&calibration.environment.cpu),
        calibration.environment.clock
    );
    if let Some(why) = &calibration.instructions_missing {
        let _ = writeln!(text, "instructions: n/a: {why}");
    }
    for latency in &calibration.latencies {
        let _ = writeln!(
            text,
            "p50 of {} at depth 1: {}",
            printable(&latency.device),
            figures::time_ns(latency.p50_ns)
        );
    }
    for warning in &calibration.warnings {
        let _ = writeln!(
            text,
            "warning: {}\n  -> {}",
            warning.text, warning.next_step
        );
    }
    text
}

fn row(stage: &Stage) -> Vec<String> {
    vec![
        stage.stage.clone(),
        stage.backend.clone().unwrap_or_else(|| "-".to_owned()),
        format!("{:.1}", stage.ns_per_io),
        format!("{:.1} to {:.1}", stage.min_ns_per_io, stage.max_ns_per_io),
        stage.instructions_per_io.map_or_else(
            || figures::NOT_AVAILABLE.to_owned(),
            |count| format!("{count:.0}"),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_cpu_is_asked_for() {
        assert!(matches!(one_cpu("3"), Ok(3)));
        for bad in ["0-1", "", "x", "1,2"] {
            assert!(
                matches!(one_cpu(bad), Err(CalibrateError::Cpus(_))),
                "{bad}"
            );
        }
    }
}

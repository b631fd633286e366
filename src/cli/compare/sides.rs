//! The command line of `lanemark compare`, read: which sides, how many rounds, what may be done.

use super::CompareArgs;
use crate::cli::exit::Exit;
use crate::cli::line::flags::SafetyFlags;
use crate::cli::line::operands::{is_device, is_saved, parts};
use crate::cli::output::Output;
use crate::cli::output::clash::{self, Clash};
use crate::cli::output::saved::{self, Saved, load};
use crate::cli::{RunArgs, job_from_flags, run, suites};
use crate::config::{BackendChoice, Choices, ConfigError, Job, Key};
use crate::method::compare::criterion::{Criterion, CriterionError};
use crate::method::compare::live::Design;
use crate::method::compare::saved::{SavedError, SavedSide};
use crate::method::compare::side::{Leave, SideError, SideSpec};
use crate::record::{Failure, Record};
use crate::session::SessionError;
use crate::session::guard::UnknownSignature;
use crate::sys::cpu::AllowedCpus;
use crate::sysfs::Sysfs;
use crate::units::parse_duration;
use std::path::Path;
use std::time::Duration;

/// Why there is no comparison.
#[derive(Debug, thiserror::Error)]
pub(in crate::cli) enum CompareError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Session(#[from] SessionError),
    #[error(transparent)]
    Side(#[from] SideError),
    #[error(transparent)]
    Saved(#[from] SavedError),
    #[error(transparent)]
    Record(#[from] saved::SavedError),
    #[error(transparent)]
    Criterion(#[from] CriterionError),
    #[error("--overwrite: {0}")]
    Overwrite(#[from] UnknownSignature),
    #[error("cannot listen for signals: {0}")]
    Signals(#[from] std::io::Error),
    #[error(transparent)]
    Clash(#[from] Clash),
    /// The command line contradicts itself, or a value is not allowed.
    #[error("{0}")]
    Usage(String),
}

impl CompareError {
    pub(in crate::cli) fn failure(&self) -> Failure {
        let session = match self {
            Self::Session(error) | Self::Side(SideError::Session { source: error, .. }) => {
                Some(error)
            }
            _ => None,
        };
        let (kind, exit) = match (self, session) {
            (_, Some(error)) => (error.kind(), Exit::of_code(error.exit_code())),
            (Self::Side(SideError::Claim { source, .. }), _) => {
                (source.kind(), Exit::of_code(source.exit_code()))
            }
            (Self::Record(error), _) => return error.failure(),
            (Self::Signals(_), _) => ("signals", Exit::Failed),
            (Self::Saved(SavedError::NotComparable { .. }), _) => ("not-comparable", Exit::Usage),
            _ => ("usage", Exit::Usage),
        };
        Failure {
            kind: kind.to_owned(),
            text: self.to_string(),
            next_step: match self {
                Self::Saved(error) => error.next_step(),
                Self::Side(SideError::Claim { source, .. }) => source.next_step(),
                _ => session.map(SessionError::next_step).unwrap_or_default(),
            },
            exit_code: exit.code(),
        }
    }
}

/// The sides as they were understood.
pub(in crate::cli) enum Sides {
    Saved(Vec<SavedSide>),
    Live(Box<Job>, [SideSpec; 2]),
}

/// The command line, read.
pub(in crate::cli) struct Asked {
    pub(in crate::cli) sides: Sides,
    pub(in crate::cli) design: Design,
    pub(in crate::cli) cool_down: Duration,
    pub(in crate::cli) criteria: Vec<Criterion>,
    pub(in crate::cli) leave: Leave,
}

impl Asked {
    pub(in crate::cli) fn of(
        args: &CompareArgs,
        output: &Output,
        sysfs: &Sysfs,
    ) -> Result<Self, CompareError> {
        let criteria: Result<Vec<Criterion>, _> =
            args.fail_if.iter().map(|text| text.parse()).collect();
        let consent = args.safety.consent()?;
        let design = Design {
            rounds_max: args.rounds.as_deref().map_or(Ok(10), rounds)?,
            precision_pct: match args.precision.as_deref() {
                Some("none") => None,
                Some(text) => Some(percent("--precision", text)?),
                None => Some(1.0),
            },
            equal_within_pct: (args.equal_within.as_deref())
                .map_or(Ok(1.0), |text| percent("--equal-within", text))?,
            seed: run::fresh_seed(),
        };
        let cool_down = args.keys.cool_down.as_deref().unwrap_or("1s");
        let cool_down = parse_duration(cool_down)
            .map_err(|error| CompareError::Usage(format!("--cool-down {cool_down}: {error}")))?;
        let asked = Self {
            sides: sides(args)?,
            design,
            cool_down: Duration::from_nanos(cool_down.0),
            criteria: criteria?,
            leave: Leave {
                consent,
                strict: args.safety.strict,
                prepare: args.safety.prepare,
                choices: Choices {
                    only: args.only.clone(),
                    read_only: args.read_only,
                    lenient: args.suite.is_some(),
                    cpus_count: cpus_count(args)?,
                },
            },
        };
        asked.judge_output(output, sysfs)?;
        Ok(asked)
    }

    /// The result goes into nothing that is read, measured or in use.
    fn judge_output(&self, output: &Output, sysfs: &Sysfs) -> Result<(), CompareError> {
        const READ: &str = "it is read by this comparison";
        let mut inputs: Vec<(&Path, &str)> = Vec::new();
        match &self.sides {
            Sides::Saved(sides) => {
                let names = sides.iter().flat_map(|side| side.name.split(','));
                inputs.extend(names.map(|name| (Path::new(name), READ)));
            }
            Sides::Live(job, specs) => {
                inputs.extend(clash::files_of(job));
                let devices = specs.iter().flat_map(|spec| &spec.devices);
                inputs.extend(devices.map(|name| (Path::new(name), clash::MEASURED)));
            }
        }
        Ok(clash::judge(output, inputs, sysfs)?)
    }
}

/// Saved records where every side is a file of JSON, devices otherwise.
fn sides(args: &CompareArgs) -> Result<Sides, CompareError> {
    let operands: Vec<&str> = args
        .baseline
        .iter()
        .chain(&args.sides)
        .map(String::as_str)
        .collect();
    let saved_count = operands.iter().filter(|operand| is_saved(operand)).count();
    let has_flags = !args.a.is_empty() || !args.b.is_empty();
    if args.baseline.is_some() || (saved_count > 0 && saved_count == operands.len() && !has_flags) {
        return saved_sides(args, &operands);
    }
    if saved_count > 0 {
        // Beside a record, what is no device was meant to be one: says what is wrong with it.
        for path in operands.iter().flat_map(|operand| parts(operand)) {
            if !is_device(path) {
                record(Path::new(path))?;
            }
        }
        return Err(CompareError::Usage(
            "saved records and devices cannot be mixed: a record was measured at another time; compare two devices, or two records".to_owned(),
        ));
    }
    let mut specs = live_specs(args)?;
    for (spec, backend) in specs.iter_mut().zip([&args.backend_a, &args.backend_b]) {
        if let Some(name) = backend {
            if spec.backend != BackendChoice::Auto {
                return Err(CompareError::Usage(format!(
                    "side {} has two backends, @{} and --backend-{}: name one",
                    spec.label,
                    spec.backend.name(),
                    spec.label.to_lowercase()
                )));
            }
            spec.backend = backend_named(name).ok_or_else(|| no_such_backend(name))?;
        }
    }
    if !args.accept.is_empty() {
        return Err(CompareError::Usage(
            "--accept is for saved records: live sides run the same job, and what differs is listed".to_owned(),
        ));
    }
    if !args.keys.device.is_empty() {
        return Err(CompareError::Usage(
            "compare takes its devices as A and B (or --a, --b), not by --device".to_owned(),
        ));
    }
    let job = live_job(args)?;
    let common = job.backend_choice()?;
    for spec in specs
        .iter_mut()
        .filter(|spec| spec.backend == BackendChoice::Auto)
    {
        spec.backend = common;
    }
    let is_spdk = |spec: &SideSpec| spec.backend == BackendChoice::Spdk;
    if args.claim && !specs.iter().any(is_spdk) {
        return Err(CompareError::Usage(
            "--claim is for a side that SPDK drives: name it as DEVICE@spdk".to_owned(),
        ));
    }
    if specs[0].devices == specs[1].devices && specs[0].backend == specs[1].backend {
        return Err(CompareError::Usage(format!(
            "A and B are both {}: name another device, or another backend as DEVICE@BACKEND",
            specs[0].name()
        )));
    }
    Ok(Sides::Live(Box::new(job), specs))
}

fn live_job(args: &CompareArgs) -> Result<Job, CompareError> {
    let path = args.job.as_deref().or(args.suite.as_deref());
    let run = RunArgs {
        keys: args.keys.clone(),
        suite: (args.suite.as_ref()).map(|name| name.display().to_string()),
        ..RunArgs::default()
    };
    let mut file = path.map(|path| suites::load(&run, path)).transpose()?;
    if args.quick {
        let job = file.get_or_insert_with(Job::of_flags);
        job.quick = Some(run::QUICK_WINDOW);
    }
    let job = job_from_flags(&run, file)?;
    judge_job(&job)?;
    Ok(job)
}

/// What a comparison in rounds of its own has no place for.
fn judge_job(job: &Job) -> Result<(), CompareError> {
    let has = |key: Key| {
        let mut steps = job.steps.iter().chain([&job.defaults, &job.flags]);
        steps.any(|step| step.keys.contains_key(&key))
    };
    let refused = [
        (
            "steady",
            job.steady.is_some(),
            "rounds end by the width of the intervals; measure each side until steady with `lanemark run`, and compare the records",
        ),
        (
            "steadystate",
            has(Key::Steadystate),
            "windows of unlike lengths cannot be compared; set runtime",
        ),
        (
            "precondition",
            job.precondition.is_some(),
            "it would stand between the rounds; precondition each side before with `lanemark run`",
        ),
        (
            "expect",
            has(Key::Expect),
            "it is judged by runs; use --fail-if",
        ),
    ];
    match refused.iter().find(|(_, is_given, _)| *is_given) {
        None => Ok(()),
        Some((key, _, why)) => Err(CompareError::Usage(format!(
            "compare cannot take {key}: {why}"
        ))),
    }
}

/// CPUs for reactors; simulated ones need none.
fn cpus_count(args: &CompareArgs) -> Result<Option<usize>, CompareError> {
    let mut devices = args.sides.iter().chain(&args.a).chain(&args.b);
    if devices.all(|device| device.starts_with("sim")) {
        return Ok(None);
    }
    let allowed = AllowedCpus::at_start().map_err(SessionError::from)?;
    Ok(Some(allowed.cpus().len()))
}

fn saved_sides(args: &CompareArgs, operands: &[&str]) -> Result<Sides, CompareError> {
    let live_only = !args.keys.is_empty()
        || args.job.is_some()
        || args.rounds.is_some()
        || args.precision.is_some()
        || args.backend_a.is_some()
        || args.backend_b.is_some()
        || args.suite.is_some()
        || !args.only.is_empty()
        || args.read_only
        || args.quick
        || args.claim
        || args.safety != SafetyFlags::default()
        || !args.a.is_empty()
        || !args.b.is_empty();
    if live_only {
        return Err(CompareError::Usage(
            "keys of a job, rounds and consents are for live comparisons; saved records are as they are".to_owned(),
        ));
    }
    if operands.len() < 2 {
        return Err(CompareError::Usage(
            "name at least two records, the baseline first".to_owned(),
        ));
    }
    let mut sides = Vec::new();
    for operand in operands {
        let paths = parts(operand);
        let records: Result<Vec<_>, CompareError> =
            paths.iter().map(|path| record(Path::new(path))).collect();
        let records = records?;
        each_once(&paths, &records)?;
        sides.push(SavedSide {
            name: (*operand).to_owned(),
            records,
        });
    }
    Ok(Sides::Saved(sides))
}

/// One run under several names would pass for several that agree to the last digit.
fn each_once(paths: &[&str], records: &[Record]) -> Result<(), CompareError> {
    let is_same = |one: &Record, other: &Record| {
        one.seed == other.seed && one.steps == other.steps && one.environment == other.environment
    };
    for (index, record) in records.iter().enumerate() {
        let first = records[..index]
            .iter()
            .position(|known| is_same(known, record));
        if let Some(first) = first {
            return Err(CompareError::Usage(format!(
                "{} and {} hold one and the same run: on a side it counts once; name records of different runs",
                paths[first], paths[index]
            )));
        }
    }
    Ok(())
}

/// The record of a run, from its file or the folder that it was kept in.
fn record(path: &Path) -> Result<Record, CompareError> {
    match load(path)? {
        Saved::Run(record) => Ok(*record),
        Saved::Comparison(_) => Err(CompareError::Usage(format!(
            "{} is a comparison; name the records of runs",
            path.display()
        ))),
    }
}

fn live_specs(args: &CompareArgs) -> Result<[SideSpec; 2], CompareError> {
    let by_flags = !args.a.is_empty() || !args.b.is_empty();
    let (a, b) = match (args.sides.as_slice(), by_flags) {
        ([a, b], false) => (vec![a.clone()], vec![b.clone()]),
        ([], true) if !args.a.is_empty() && !args.b.is_empty() => (args.a.clone(), args.b.clone()),
        _ => {
            return Err(CompareError::Usage(
                "name two sides: `compare A B`, or --a and --b, each as often as the side has devices".to_owned(),
            ));
        }
    };
    Ok([spec("A", &a)?, spec("B", &b)?])
}

/// `DEVICE` or `DEVICE@BACKEND`; an @ that no backend follows belongs to the name.
fn spec(label: &'static str, words: &[String]) -> Result<SideSpec, CompareError> {
    let mut side = SideSpec {
        label,
        devices: Vec::new(),
        backend: BackendChoice::Auto,
    };
    for word in words {
        let split = word
            .rsplit_once('@')
            .and_then(|(device, name)| Some((device, backend_named(name)?)));
        let (device, backend) = split.unwrap_or((word, BackendChoice::Auto));
        if side.devices.is_empty() {
            side.backend = backend;
        } else if side.backend != backend {
            return Err(CompareError::Usage(format!(
                "side {label} has devices of two backends: all devices of a side are driven by one"
            )));
        }
        if side.devices.iter().any(|known| known == device) {
            return Err(CompareError::Usage(format!(
                "side {label} names {device} twice"
            )));
        }
        side.devices.push(device.to_owned());
    }
    Ok(side)
}

fn backend_named(name: &str) -> Option<BackendChoice> {
    BackendChoice::ALL
        .into_iter()
        .find(|choice| choice.name() == name)
}

fn no_such_backend(name: &str) -> CompareError {
    let known = BackendChoice::ALL.map(BackendChoice::name).join(", ");
    CompareError::Usage(format!("`{name}` is no backend; backends are {known}"))
}

fn rounds(text: &str) -> Result<u32, CompareError> {
    text.parse()
        .ok()
        .filter(|rounds| (1..=1000).contains(rounds))
        .ok_or_else(|| {
            CompareError::Usage(format!(
                "--rounds {text}: 1 to 1000 are allowed, 6 or more make good intervals"
            ))
        })
}

fn percent(flag: &str, text: &str) -> Result<f64, CompareError> {
    let number = text.strip_suffix('%').unwrap_or(text).trim();
    let pct = number
        .parse::<f64>()
        .ok()
        .filter(|pct| *pct > 0.0 && *pct < 100.0);
    pct.ok_or_else(|| {
        CompareError::Usage(format!(
            "{flag} {text}: a percentage above 0 and below 100 is needed, such as 1%"
        ))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_backend_follows_the_last_at_sign() {
        let side = spec("A", &["/dev/ng0n1@uring-cmd".to_owned()]).unwrap();
        assert_eq!(
            (side.devices[0].as_str(), side.backend),
            ("/dev/ng0n1", BackendChoice::UringCmd)
        );
        let side = spec("A", &["/data/a@b.img".to_owned()]).unwrap();
        assert_eq!(
            (side.devices[0].as_str(), side.backend),
            ("/data/a@b.img", BackendChoice::Auto)
        );
        let mixed = ["/dev/sda@sg", "/dev/sdb@uring"].map(str::to_owned);
        assert!(matches!(spec("A", &mixed), Err(CompareError::Usage(_))));
        let twice = ["x", "x"].map(str::to_owned);
        assert!(matches!(spec("B", &twice), Err(CompareError::Usage(_))));
    }

    #[test]
    fn numbers_out_of_range_are_refused() {
        assert_eq!(rounds("6").unwrap(), 6);
        assert!((percent("--precision", "0.5%").unwrap() - 0.5).abs() < 1e-12);
        for bad in ["0", "-1", "1001", "x", ""] {
            assert!(rounds(bad).is_err(), "{bad}");
        }
        for bad in ["0", "100", "nan", "inf", "-1%", "%"] {
            assert!(percent("--precision", bad).is_err(), "{bad}");
        }
    }
}

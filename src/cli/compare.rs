//! `lanemark compare`: two live sides, or saved records, held against each other.

use super::args::names;
use super::exit::Exit;
use super::output::{self, Output};
use super::progress::{self, Mode};
use super::{JobFlags, RunArgs, job_from_flags, run, signals};
use crate::config::{BackendChoice, ConfigError, Job, plan_json};
use crate::method::compare::build::{Frame, live};
use crate::method::compare::criterion::{Criterion, CriterionError};
use crate::method::compare::live::{Design, measure};
use crate::method::compare::saved::{self, SavedError, SavedRules, SavedSide};
use crate::method::compare::side::{Devices, Leave, SideError, SideSpec};
use crate::reactor::Control;
use crate::record::{Comparison, Failure, Outcome};
use crate::report::{Format, render_comparison};
use crate::session::guard::{Consent, UnknownSignature, in_use, parse_overwrite};
use crate::session::{Session, SessionError, environment, tool, tool_cost_ns};
use crate::sys::clock::MachineClock;
use crate::sys::cpu::AllowedCpus;
use crate::sysfs::Sysfs;
use crate::units::parse_duration;
use clap::Args;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

const EXAMPLES: &str = "Examples:
  lanemark compare /dev/nvme0n1 /dev/sda --job configs/hba-vs-direct.yaml
      two drives, or one drive behind two controllers, in turn: A B B A, B A A B, ...
  lanemark compare /dev/nvme0n1@uring /dev/ng0n1@uring-cmd --rw randread --bs 4k --iodepth 1
      two backends on one device: what the block layer costs
  lanemark compare --a /dev/sda --a /dev/sdb --b /dev/md0 --iodepth 32
      two members against the volume made of them
  lanemark compare before.json after.json --fail-if 'p99>+5%'
      saved records; exit code 5 where p99 rose by more than 5 %
  lanemark compare a1.json,a2.json,a3.json b1.json,b2.json,b3.json
      several runs a side: intervals from run to run";

/// Flags of `lanemark compare`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
#[command(after_help = EXAMPLES)]
pub struct CompareArgs {
    /// Two devices (DEVICE or DEVICE@BACKEND), or the files of saved records, the baseline first
    #[arg(value_name = "A B")]
    pub sides: Vec<String>,
    /// A device of side A; repeat it for a side of several devices
    #[arg(long, value_name = "D", help_heading = "Sides")]
    pub a: Vec<String>,
    /// A device of side B; repeat it for a side of several devices
    #[arg(long, value_name = "D", help_heading = "Sides")]
    pub b: Vec<String>,
    /// The backend of side A: auto, uring, uring-cmd, sg, spdk
    #[arg(long = "backend-a", value_name = "NAME", help_heading = "Sides")]
    pub backend_a: Option<String>,
    /// The backend of side B
    #[arg(long = "backend-b", value_name = "NAME", help_heading = "Sides")]
    pub backend_b: Option<String>,
    /// The saved record that the others are held against
    #[arg(long, value_name = "RECORD", help_heading = "Sides")]
    pub baseline: Option<String>,
    /// The job that both sides run; without one, the flags make a job of one step
    #[arg(long, value_name = "JOB.yaml", help_heading = "Sides")]
    pub job: Option<PathBuf>,

    /// Rounds at most; each measures both sides twice [default: 10]
    #[arg(long, value_name = "N", help_heading = "Rounds")]
    pub rounds: Option<String>,
    /// End where the intervals of IOPS, mean and p50 are within ± this of A; `none` runs all rounds [default: 1%]
    #[arg(long, value_name = "PCT", help_heading = "Rounds")]
    pub precision: Option<String>,
    /// Sides within ± this of each other are called equal where that can be shown [default: 1%]
    #[arg(long, value_name = "PCT", help_heading = "Rounds")]
    pub equal_within: Option<String>,
    /// Pause before every window [default: 1s]
    #[arg(long, value_name = "TIME", help_heading = "Rounds")]
    pub cool_down: Option<String>,

    /// A change against A that must not be: 'p99>+5%', 'read.iops<-3%'. Exit code 5. Repeatable
    #[arg(long, value_name = "CRITERION", help_heading = "Result")]
    pub fail_if: Vec<String>,
    /// Compare saved records although they differ in this, as a refusal names it; `all` for everything
    #[arg(long, value_name = "WHAT", help_heading = "Result")]
    pub accept: Vec<String>,
    /// What stdout holds
    #[arg(long, value_parser = names(&Format::ALL, Format::name), default_value = Format::Text.name(), help_heading = "Result")]
    pub format: Format,
    /// Write the result to this file, not to stdout
    #[arg(short, long, value_name = "FILE", help_heading = "Result")]
    pub output: Option<PathBuf>,
    /// How to show progress on stderr
    #[arg(long, value_parser = names(&Mode::ALL, Mode::name), default_value = Mode::Auto.name(), help_heading = "Result")]
    pub progress: Mode,

    /// Consent to write to this device, named by its serial number or path. Repeatable
    #[arg(long, value_name = "ID", help_heading = "Safety")]
    pub allow_write: Vec<String>,
    /// Consent to overwrite this kind of signature, as a refusal names it. Repeatable
    #[arg(long, value_name = "SIGNATURE", help_heading = "Safety")]
    pub overwrite: Vec<String>,
    /// Refuse where a warning would do, such as reads of never-written blocks
    #[arg(long, help_heading = "Safety")]
    pub strict: bool,
    /// Write the range first on both sides, so that reads meet real data. Needs --allow-write on devices
    #[arg(long, help_heading = "Safety")]
    pub prepare: bool,

    /// The keys of the job.
    #[command(flatten)]
    pub keys: JobFlags,
}

/// Why there is no comparison.
#[derive(Debug, thiserror::Error)]
enum CompareError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Session(#[from] SessionError),
    #[error(transparent)]
    Side(#[from] SideError),
    #[error(transparent)]
    Saved(#[from] SavedError),
    #[error(transparent)]
    Criterion(#[from] CriterionError),
    #[error("--overwrite: {0}")]
    Overwrite(#[from] UnknownSignature),
    #[error("cannot listen for signals: {0}")]
    Signals(#[from] std::io::Error),
    /// The command line contradicts itself, or a value is not allowed.
    #[error("{0}")]
    Usage(String),
}

impl CompareError {
    fn failure(&self) -> Failure {
        let session = match self {
            Self::Session(error) | Self::Side(SideError::Session { source: error, .. }) => {
                Some(error)
            }
            _ => None,
        };
        let (kind, exit) = match (self, session) {
            (_, Some(error)) => (error.kind(), Exit::of_code(error.exit_code())),
            (Self::Signals(_), _) => ("signals", Exit::Failed),
            (Self::Saved(SavedError::NotComparable { .. }), _) => ("not-comparable", Exit::Usage),
            _ => ("usage", Exit::Usage),
        };
        Failure {
            kind: kind.to_owned(),
            text: self.to_string(),
            next_step: match self {
                Self::Saved(error) => error.next_step(),
                _ => session.map(SessionError::next_step).unwrap_or_default(),
            },
            exit_code: exit.code(),
        }
    }
}

/// Runs the verb; the exit code.
pub fn run(args: &CompareArgs) -> Exit {
    let sysfs = Sysfs::host();
    let output = match Output::open(args.output.as_deref()) {
        Ok(output) => output,
        Err(error) => return run::refuse(None, args.format, &sysfs, error.failure()),
    };
    let control = Arc::new(Control::default());
    let asked = signals::listen(&control)
        .map_err(CompareError::from)
        .and_then(|()| Asked::of(args, &output, &sysfs));
    let asked = match asked {
        Ok(asked) => asked,
        Err(error) => return run::refuse(None, args.format, &sysfs, error.failure()),
    };
    let compared = match &asked.sides {
        Sides::Saved(sides) => of_saved(args, &asked, sides, &sysfs),
        Sides::Live(job, specs) => of_live(args, &asked, job, specs, control, &sysfs),
    };
    match compared {
        Ok(mut comparison) => {
            let criteria = asked.criteria.iter();
            comparison.misses = criteria.flat_map(|it| it.misses(&comparison)).collect();
            hand_over(&comparison, output, args.format)
        }
        Err(error) => run::refuse(Some(output), args.format, &sysfs, error.failure()),
    }
}

fn hand_over(comparison: &Comparison, output: Output, format: Format) -> Exit {
    let mut exit = match comparison.status {
        Outcome::Finished => Exit::Ok,
        Outcome::Interrupted => Exit::Interrupted,
        Outcome::Failed | Outcome::Refused => Exit::Failed,
    };
    comparison.error.iter().for_each(output::complain);
    for miss in &comparison.misses {
        output::complain(&Failure {
            kind: "criterion".to_owned(),
            text: miss.clone(),
            next_step: String::new(),
            exit_code: Exit::Criterion.code(),
        });
        exit = exit.and(Exit::Criterion);
    }
    let text = render_comparison(comparison, format, &output.style());
    match output.write(&text) {
        Ok(()) => exit,
        Err(error) => {
            output::complain(&error.failure());
            exit.and(error.exit())
        }
    }
}

/// The sides as they were understood.
enum Sides {
    Saved(Vec<SavedSide>),
    Live(Box<Job>, [SideSpec; 2]),
}

/// The command line, read.
struct Asked {
    sides: Sides,
    design: Design,
    cool_down: Duration,
    criteria: Vec<Criterion>,
    leave: Leave,
}

impl Asked {
    fn of(args: &CompareArgs, output: &Output, sysfs: &Sysfs) -> Result<Self, CompareError> {
        let criteria: Result<Vec<Criterion>, _> =
            args.fail_if.iter().map(|text| text.parse()).collect();
        let mut consent = Consent {
            allow_write: args.allow_write.clone(),
            overwrite: Vec::new(),
        };
        for word in &args.overwrite {
            consent.overwrite.extend(parse_overwrite(word)?);
        }
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
        let cool_down = args.cool_down.as_deref().unwrap_or("1s");
        let cool_down = parse_duration(cool_down)
            .map_err(|error| CompareError::Usage(format!("--cool-down {cool_down}: {error}")))?;
        let asked = Self {
            sides: sides(args)?,
            design,
            cool_down: Duration::from_nanos(cool_down.0),
            criteria: criteria?,
            leave: Leave {
                consent,
                strict: args.strict,
                prepare: args.prepare,
            },
        };
        asked.judge_output(args, output, sysfs)?;
        Ok(asked)
    }

    /// The result goes into nothing that is read, measured or in use.
    fn judge_output(
        &self,
        args: &CompareArgs,
        output: &Output,
        sysfs: &Sysfs,
    ) -> Result<(), CompareError> {
        let mut inputs: Vec<&str> = args.job.iter().filter_map(|job| job.to_str()).collect();
        match &self.sides {
            Sides::Saved(sides) => {
                inputs.extend(sides.iter().flat_map(|side| side.name.split(',')))
            }
            Sides::Live(_, specs) => {
                inputs.extend(
                    specs
                        .iter()
                        .flat_map(|spec| spec.devices.iter().map(String::as_str)),
                );
            }
        }
        let refuse = |path: &str, why: &str| {
            CompareError::Usage(format!(
                "the result cannot go into {path}: {why}; name another file with -o"
            ))
        };
        if let Some(input) = inputs.iter().find(|input| output.is(Path::new(input))) {
            return Err(refuse(input, "it is read by this comparison"));
        }
        if let Some(path) = &args.output
            && let Some(used) = in_use(sysfs, path).first().filter(|_| path.is_file())
        {
            return Err(refuse(&path.display().to_string(), used));
        }
        Ok(())
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
    if specs[0].devices == specs[1].devices && specs[0].backend == specs[1].backend {
        return Err(CompareError::Usage(format!(
            "A and B are both {}: name another device, or another backend as DEVICE@BACKEND",
            specs[0].name()
        )));
    }
    Ok(Sides::Live(Box::new(job), specs))
}

fn live_job(args: &CompareArgs) -> Result<Job, ConfigError> {
    let file = args.job.as_deref().map(Job::load).transpose()?;
    let run = RunArgs {
        keys: args.keys.clone(),
        ..RunArgs::default()
    };
    job_from_flags(&run, file)
}

/// Whether an operand names files, the first of which begins as JSON does.
fn is_saved(operand: &str) -> bool {
    use std::io::Read as _;
    let first = operand.split(',').next().unwrap_or(operand);
    if !Path::new(first).is_file() {
        return false;
    }
    let mut start = [0; 64];
    let read = std::fs::File::open(first).and_then(|mut file| file.read(&mut start));
    let text = &start[..read.unwrap_or(0)];
    text.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{')
}

fn saved_sides(args: &CompareArgs, operands: &[&str]) -> Result<Sides, CompareError> {
    let live_only = !args.keys.is_empty()
        || args.job.is_some()
        || args.rounds.is_some()
        || args.precision.is_some()
        || args.cool_down.is_some()
        || args.backend_a.is_some()
        || args.backend_b.is_some()
        || !args.allow_write.is_empty()
        || !args.overwrite.is_empty()
        || args.strict
        || args.prepare
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
        // A file whose own name holds a comma is one file.
        let paths: Vec<&str> = if Path::new(operand).is_file() {
            vec![operand]
        } else {
            operand.split(',').collect()
        };
        let records: Result<Vec<_>, SavedError> = paths
            .iter()
            .map(|path| saved::load(Path::new(path)))
            .collect();
        sides.push(SavedSide {
            name: (*operand).to_owned(),
            records: records?,
        });
    }
    Ok(Sides::Saved(sides))
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

fn of_saved(
    args: &CompareArgs,
    asked: &Asked,
    sides: &[SavedSide],
    sysfs: &Sysfs,
) -> Result<Comparison, CompareError> {
    let allowed = AllowedCpus::at_start().map_err(SessionError::from)?;
    let frame = Frame {
        tool: tool(None),
        environment: environment(sysfs, &MachineClock::new(sysfs), &allowed),
        job: serde_json::Value::Null,
        // The records are the only thing that is random: the same records give the same intervals.
        seed: 1,
        names: sides.iter().map(|side| side.name.clone()).collect(),
        warnings: Vec::new(),
    };
    let rules = SavedRules {
        equal_within_pct: asked.design.equal_within_pct,
        accepted: args.accept.clone(),
        seed: 1,
    };
    Ok(saved::compare(frame, sides, &rules)?)
}

fn of_live(
    args: &CompareArgs,
    asked: &Asked,
    job: &Job,
    specs: &[SideSpec; 2],
    control: Arc<Control>,
    sysfs: &Sysfs,
) -> Result<Comparison, CompareError> {
    let allowed = AllowedCpus::at_start().map_err(SessionError::from)?;
    let clock = MachineClock::new(sysfs);
    let is_sim = |spec: &SideSpec| spec.devices.iter().all(|device| device.starts_with("sim"));
    let cost_cpu = allowed
        .cpus()
        .last()
        .copied()
        .filter(|_| !specs.iter().all(is_sim));
    let session = Session {
        sysfs: sysfs.clone(),
        tool_cost_ns: cost_cpu.and_then(|cpu| tool_cost_ns(&clock, cpu)),
        allowed,
        clock,
        control,
    };
    let mut observer = progress::on_stderr(args.progress);
    let mut devices = Devices::open(
        &session,
        job,
        specs.clone(),
        &asked.leave,
        asked.cool_down,
        asked.design.seed,
        observer.as_mut(),
    )?;
    let plan = devices.plan(0).clone();
    let frame = Frame {
        tool: tool(session.tool_cost_ns),
        environment: environment(&session.sysfs, &session.clock, &session.allowed),
        job: plan_json(&plan),
        seed: plan.seed,
        names: specs.iter().map(SideSpec::name).collect(),
        warnings: devices.warnings.clone(),
    };
    let design = Design {
        // The seed of the job repeats the whole comparison, resampling included.
        seed: plan.seed,
        ..asked.design
    };
    let measured = measure(&design, &mut devices);
    Ok(live(
        frame,
        &design,
        asked.cool_down.as_secs_f64(),
        measured,
    ))
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

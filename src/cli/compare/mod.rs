//! `lanemark compare`: two live sides, or saved records, held against each other.

pub(in crate::cli) mod sides;

use crate::cli::exit::Exit;
use crate::cli::line::flags::{ResultFlags, SafetyFlags};
use crate::cli::line::one_step::session;
use crate::cli::output::{self, Output};
use crate::cli::progress::{self, Mode};
use crate::cli::{JobFlags, run, signals};
use crate::config::{Job, plan_json, time_text};
use crate::method::compare::build::{Frame, live};
use crate::method::compare::live::{Design, measure};
use crate::method::compare::saved::{self, SavedRules, SavedSide};
use crate::method::compare::side::{Devices, SideSpec};
use crate::method::compare::ways;
use crate::reactor::Control;
use crate::record::{Comparison, Failure};
use crate::report::{Format, render_comparison};
use crate::session::claim::Claimer;
use crate::session::{SessionError, environment, tool};
use crate::sys::clock::MachineClock;
use crate::sys::cpu::AllowedCpus;
use crate::sysfs::Sysfs;
use clap::Args;
use sides::{Asked, CompareError, Sides};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

const EXAMPLES: &str = "Examples:
  lanemark compare /dev/nvme0n1 /dev/sda --job configs/hba-vs-direct.yaml
      two drives, or one drive behind two controllers, in turn: A B B A, B A A B, ...
  lanemark compare /dev/nvme0n1@uring /dev/ng0n1@uring-cmd --rw randread --bs 4k --iodepth 1
      two backends on one device: what the block layer costs
  lanemark compare --claim /dev/nvme0n1@spdk /dev/nvme0n1@uring --iodepth 1
      SPDK and the kernel on one drive, which changes hands between the windows
  lanemark compare --a /dev/sda --a /dev/sdb --b /dev/md0 --iodepth 32
      two members against the volume made of them
  lanemark compare /dev/sda /dev/sdb --suite bsweep --read-only --quick
      a suite, step by step, with the geometric mean over all of them
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
    /// The suite that both sides run, by its name or by the path of a job file. A step that one side cannot do is left
    /// out by name
    #[arg(
        long,
        value_name = "NAME",
        help_heading = "Sides",
        conflicts_with = "job"
    )]
    pub suite: Option<PathBuf>,
    /// Run only the steps of this name. Repeatable
    #[arg(long, value_name = "STEP", help_heading = "Sides")]
    pub only: Vec<String>,
    /// Leave out every step that writes, trims or flushes
    #[arg(long, help_heading = "Sides")]
    pub read_only: bool,
    /// A first look: no window longer than 500ms
    #[arg(long, help_heading = "Sides")]
    pub quick: bool,

    /// Rounds at most; each measures both sides twice [default: 10]
    #[arg(long, value_name = "N", help_heading = "Rounds")]
    pub rounds: Option<String>,
    /// End where the intervals of IOPS, mean and p50 are within ± this of A; `none` runs all rounds [default: 1%]
    #[arg(long, value_name = "PCT", help_heading = "Rounds")]
    pub precision: Option<String>,
    /// Sides within ± this of each other are called equal where that can be shown [default: 1%]
    #[arg(long, value_name = "PCT", help_heading = "Rounds")]
    pub equal_within: Option<String>,

    /// A change against A that must not be: 'p99>+5%', 'read.iops<-3%'. Exit code 5. Repeatable
    #[arg(long, value_name = "CRITERION", help_heading = "Result")]
    pub fail_if: Vec<String>,
    /// Compare saved records although they differ in this, as a refusal names it; `all` for everything
    #[arg(long, value_name = "WHAT", help_heading = "Result")]
    pub accept: Vec<String>,
    /// Where the result goes.
    #[command(flatten)]
    pub result: ResultFlags,

    /// What may be done.
    #[command(flatten)]
    pub safety: SafetyFlags,
    /// Claim the NVMe devices of sides @spdk for SPDK before each of their windows, and give them back after it: so that
    /// the other side can have them in turn by the kernel
    #[arg(long, help_heading = "Safety")]
    pub claim: bool,

    /// The keys of the job.
    #[command(flatten)]
    pub keys: JobFlags,
}

/// Runs the verb; the exit code.
pub fn run(args: &CompareArgs) -> Exit {
    let sysfs = Sysfs::host();
    let output = match Output::open(args.result.output.as_deref()) {
        Ok(output) => output,
        Err(error) => return run::refuse(None, args.result.format, &sysfs, error.failure()),
    };
    let control = Arc::new(Control::default());
    let asked = Asked::of(args, &output, &sysfs).and_then(|asked| {
        signals::listen(&control)
            .map(|()| asked)
            .map_err(Into::into)
    });
    let asked = match asked {
        Ok(asked) => asked,
        Err(error) => return run::refuse(None, args.result.format, &sysfs, error.failure()),
    };
    let compared = match &asked.sides {
        Sides::Saved(sides) => of_saved(args, &asked, sides, &sysfs),
        Sides::Live(job, specs) => of_live(args, &asked, job, specs, control, &sysfs),
    };
    match compared {
        Ok(mut comparison) => {
            let criteria = asked.criteria.iter();
            comparison.misses = criteria.flat_map(|it| it.misses(&comparison)).collect();
            hand_over(&comparison, output, args.result.format)
        }
        Err(error) => run::refuse(Some(output), args.result.format, &sysfs, error.failure()),
    }
}

fn hand_over(comparison: &Comparison, output: Output, format: Format) -> Exit {
    let mut exit = Exit::of_comparison(comparison.status, comparison.error.as_ref());
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
        ways: Vec::new(),
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
    let is_sim = |spec: &SideSpec| spec.devices.iter().all(|device| device.starts_with("sim"));
    let session = session(specs.iter().all(is_sim), sysfs, control)?;
    let mut observer = progress::on_stderr(args.result.progress);
    let claimer = Claimer::new(sysfs, &output::note);
    let mut devices = Devices::open(
        &session,
        job,
        (specs.clone(), args.claim.then_some(&claimer)),
        &asked.leave,
        asked.cool_down,
        asked.design.seed,
        observer.as_mut(),
    )?;
    let plan = devices.plan(0).clone();
    announce(args, asked, &devices);
    devices.announce(asked.design.rounds_max);
    let frame = Frame {
        tool: tool(session.tool_cost_ns),
        environment: environment(&session.sysfs, &session.clock, &session.allowed),
        job: plan_json(&plan),
        seed: plan.seed,
        names: specs.iter().map(SideSpec::name).collect(),
        ways: (specs.iter())
            .map(|spec| ways::facts(&session.sysfs, &spec.devices))
            .collect(),
        warnings: devices.warnings.clone(),
    };
    let design = Design {
        // The seed of the job repeats the whole comparison, resampling included.
        seed: plan.seed,
        ..asked.design
    };
    let measured = measure(&design, &mut devices);
    // Nothing cools down in simulated time.
    let cool_down = if specs.iter().all(is_sim) {
        Duration::ZERO
    } else {
        asked.cool_down
    };
    Ok(live(frame, &design, cool_down.as_secs_f64(), measured))
}

/// Says how many windows there will be and about how long they take.
fn announce(args: &CompareArgs, asked: &Asked, devices: &Devices<'_>) {
    if args.result.progress == Mode::None {
        return;
    }
    let design = &asked.design;
    let least = design.rounds_least();
    let round_s = devices.round_s();
    let time = |rounds: u32| time_text(f64::from(rounds) * round_s);
    let (rounds, times) = if least == design.rounds_max {
        (least.to_string(), time(least))
    } else {
        (
            format!("{least} to {}", design.rounds_max),
            format!("{} to {}", time(least), time(design.rounds_max)),
        )
    };
    let steps = devices.plan(0).steps.len();
    let plural = if steps == 1 { "" } else { "s" };
    output::note(&format!(
        "{steps} step{plural} on two sides, {rounds} rounds of {} windows: about {times}",
        steps * 4
    ));
}

//! The command line as types. Parsing has no side effects; values of job keys stay texts and are read by
//! the code that reads job files, so that messages agree.

use super::endings;
use super::flags::SafetyFlags;
use super::help;
use super::job_flags::JobFlags;
use crate::cli::calibrate::CalibrateArgs;
use crate::cli::claim::{ClaimArgs, ReleaseArgs};
use crate::cli::compare::CompareArgs;
use crate::cli::lanes::LanesArgs;
use crate::cli::listing::ListFormat;
use crate::cli::load::LoadArgs;
use crate::cli::peak::PeakArgs;
use crate::cli::progress::Mode;
use crate::cli::report::ReportArgs;
use crate::cli::scale::ScaleArgs;
use crate::cli::schema::Document;
use crate::report::Format;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, FromArgMatches as _, Parser, Subcommand};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Measure what a block device can really do, and what limits it.
#[derive(Debug, Clone, Parser)]
#[command(
    name = "lanemark",
    version = crate::cli::version::SHORT,
    long_version = crate::cli::version::long(),
    arg_required_else_help = true,
    after_help = "Reading is the default: nothing is written to a device unless --allow-write names it.\nExit codes: 0 ok, 1 I/O or run error, 2 usage or job file, 3 refused by the guard, 4 (kept for data mismatch), 5 criterion not met, 130 interrupted."
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// The verbs.
#[derive(Debug, Clone, Subcommand)]
pub enum Verb {
    /// Run one job: a YAML file, flags, or both
    ///
    /// Every key of a job file is also a flag of the same name; flags override the file in every step and
    /// every stream. Sizes are binary (4k is 4096 bytes), times need a suffix (10s).
    Run(Box<RunArgs>),
    /// Run one of the suites: published methods as data
    #[command(subcommand)]
    Suite(SuiteVerb),
    /// Print the JSON Schema of records, or of what another verb writes
    Schema {
        /// Which document
        #[arg(value_enum, default_value_t)]
        document: Document,
    },
    /// Hold two devices, two backends or saved records against each other
    ///
    /// Live sides run the same job in turn (A B B A, B A A B, ...) until the intervals of the differences are
    /// narrow enough or the limit of rounds is met. Exit code 5 where a --fail-if comes true.
    Compare(Box<CompareArgs>),
    /// Search the peak and the knee over depth, reactors and batch, and tell what limits them
    Peak(Box<PeakArgs>),
    /// Measure latency against load, and the highest rate whose 99th percentile still holds
    ///
    /// A closed loop gives the peak; then arrivals come at shares of it, whether or not the device keeps up, and
    /// their wait counts. With --p99, exit code 5 where no rate keeps it.
    Load(Box<LoadArgs>),
    /// Measure one device, two and so on to all at once, against the hop that they share
    ///
    /// Each device is also measured alone: what all keep of that together, who gets how much, and what binds.
    Scale(Box<ScaleArgs>),
    /// List devices: paths, model, size, link, driver, what uses them, and whether SPDK could drive them
    Devices {
        /// Only this one, with all that is known of it: any of its paths, its PCI address or serial number
        device: Option<String>,
        /// What stdout holds
        #[arg(long, value_enum, default_value_t)]
        format: ListFormat,
    },
    /// Look whether this machine is ready to measure, with a remedy for what is not
    Check {
        /// What stdout holds
        #[arg(long, value_enum, default_value_t)]
        format: ListFormat,
    },
    /// Measure what the tool itself costs on this machine, stage by stage
    Calibrate(CalibrateArgs),
    /// Show the way to devices hop by hop and what it lets through; measure what limits them
    Lanes(LanesArgs),
    /// Take NVMe controllers from the kernel, for SPDK
    Claim(ClaimArgs),
    /// Give claimed controllers back to the driver they came from
    Release(ReleaseArgs),
    /// Make a page of saved records: one HTML file, nothing fetched
    Report(ReportArgs),
    /// Print a completion script for a shell
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
    /// Write the manual pages
    Man {
        /// Into this folder
        dir: PathBuf,
    },
}

/// What can be done with suites.
#[derive(Debug, Clone, Subcommand)]
pub enum SuiteVerb {
    /// List the suites: what each measures, about how long it takes, whether it writes
    List {
        /// What stdout holds
        #[arg(long, value_enum, default_value_t)]
        format: ListFormat,
    },
    /// Print a suite as it is written; save it, change it, and run it by its path
    Show {
        /// Its name
        name: String,
    },
    /// Run a suite on a device. A step that the device cannot do is left out by name
    #[command(
        mut_arg("job", |arg| arg.value_name("NAME").help("The suite, by name, or by the path of a job file")),
        after_help = SUITE_EXAMPLES
    )]
    Run(Box<RunArgs>),
}

const RUN_EXAMPLES: &str = "Examples:
  lanemark run
      the quick job: random and sequential reads and writes of a scratch file here, under a minute
  lanemark run --device /dev/nvme0n1 --rw randread --bs 4k --iodepth 32
      4 KiB random reads, 32 in flight, 10 seconds
  lanemark run configs/latency-depth1.yaml --device /dev/nvme0n1
      a job file on another device
  lanemark run --device /dev/sda --rw read --bs 128k --streams 4 --reactors 2 --cpus 2,3
      four sequential streams over disjoint stripes, two polling cores
  lanemark run --device /dev/nvme0n1 --iodepth 64 --rate_iops 100000 --rate_process poisson
      open loop: latency at a given load, waiting included
  lanemark run --device sim:latency=100us,parallelism=8,capacity=1T --iodepth 8 --dry-run
      print the resolved plan in bytes and blocks, run nothing";

const SUITE_EXAMPLES: &str = "Examples:
  lanemark suite run bsweep --device /dev/nvme0n1 --dry-run
      what it would do and about how long it takes; nothing is run
  lanemark suite run bsweep --device /dev/nvme0n1 --quick
      a first look with short windows
  lanemark suite run crystaldiskmark --device /dev/sdb --allow-write SERIAL -o cdm/
      a suite that writes; each step is kept in the folder as soon as it is finished
  lanemark suite run ./mine.yaml --device /dev/nvme0n1 --only randread
      one step of a suite of your own";

/// Flags of `lanemark run`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
#[command(after_help = RUN_EXAMPLES)]
pub struct RunArgs {
    /// The job file. Without one, the flags make a job of one step; without either, the quick job runs
    #[arg(value_name = "JOB.yaml")]
    pub job: Option<PathBuf>,

    /// The keys of the job.
    #[command(flatten)]
    pub keys: JobFlags,

    /// Print the resolved plan in bytes and blocks, and run nothing
    #[arg(long, help_heading = "Result")]
    pub dry_run: bool,

    /// Set a variable of the job file (${NAME}), a key of its defaults, or STEP.KEY. Repeatable
    #[arg(long, value_name = "NAME=VALUE", help_heading = "Job")]
    pub set: Vec<String>,

    /// Run only the steps of this name. Repeatable
    #[arg(long, value_name = "STEP", help_heading = "Job")]
    pub only: Vec<String>,

    /// Leave out every step that writes, trims or flushes
    #[arg(long, help_heading = "Job")]
    pub read_only: bool,

    /// A first look: no window longer than 500ms, one round, no preconditioning
    #[arg(long, help_heading = "Job")]
    pub quick: bool,

    /// Go on with the run that this folder of --output-dir holds
    #[arg(long, value_name = "DIR", help_heading = "Result")]
    pub resume: Option<PathBuf>,

    /// Keep every step in this folder as soon as it is finished, and the whole at the end
    #[arg(
        long,
        value_name = "DIR",
        help_heading = "Result",
        conflicts_with = "resume"
    )]
    pub output_dir: Option<PathBuf>,

    /// The name of the suite that is run.
    #[arg(skip)]
    pub suite: Option<String>,

    /// The whole command line.
    #[arg(skip)]
    pub words: Vec<String>,

    /// What stdout holds
    #[arg(long, value_parser = names(&Format::ALL, Format::name), default_value = Format::Text.name(), help_heading = "Result")]
    pub format: Format,

    /// Write the result to this file, not to stdout, in the form of its ending; with a `/` at the end it is --output-dir
    #[arg(short, long, value_name = "FILE|DIR/", help_heading = "Result")]
    pub output: Option<PathBuf>,

    /// How to show progress on stderr: auto is a live line on a terminal and plain lines elsewhere
    #[arg(long, value_parser = names(&Mode::ALL, Mode::name), default_value = Mode::Auto.name(), help_heading = "Result")]
    pub progress: Mode,

    /// What may be done.
    #[command(flatten)]
    pub safety: SafetyFlags,

    /// Claim the NVMe devices of the job for SPDK, and give them back at the end of the run
    #[arg(long, help_heading = "Safety")]
    pub claim: bool,
}

impl RunArgs {
    /// The file of `-o`.
    #[must_use]
    pub fn output_file(&self) -> Option<&Path> {
        self.output.as_deref().filter(|path| !is_folder(path))
    }

    /// The folder that finished steps go to.
    #[must_use]
    pub fn folder(&self) -> Option<PathBuf> {
        let by_output = self.output.as_ref().filter(|path| is_folder(path));
        self.output_dir.as_ref().or(by_output).cloned()
    }
}

fn is_folder(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().ends_with(b"/")
}

/// A parser for an enum whose values have names.
pub(in crate::cli) fn names<T: Copy + Send + Sync + 'static>(
    all: &'static [T],
    name: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(all.iter().map(|each| name(*each))).map(move |text| {
        let found = all.iter().find(|each| name(**each) == text);
        *found.expect("clap has checked that the text is one of these names")
    })
}

/// Parses a command line, the program's name first.
///
/// # Errors
/// Usage errors, and `--help` and `--version`, which clap also reports this way.
pub fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Cli, clap::Error> {
    let matches = help::command().try_get_matches_from(args)?;
    let mut cli = Cli::from_arg_matches(&matches)?;
    if !endings::gives_format(&matches) {
        endings::follow(&mut cli.verb);
    }
    Ok(cli)
}

/// Whether a command line asks for JSON, even one that does not parse: its error must then be JSON too.
#[must_use]
pub fn asks_for_json(args: &[OsString]) -> bool {
    let mut args = args.iter().map(|arg| arg.to_string_lossy());
    let mut json = false;
    while let Some(arg) = args.next() {
        if arg == "--" {
            break;
        }
        if arg == "--format" {
            json = args.next().is_some_and(|value| value == "json");
        } else if let Some(value) = arg.strip_prefix("--format=") {
            json = value == "json";
        }
    }
    json
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    fn run(line: &str) -> Result<RunArgs, clap::Error> {
        parse(words(line)).map(|cli| match cli.verb {
            Verb::Run(args) => *args,
            _ => unreachable!("only run is parsed here"),
        })
    }

    #[test]
    fn flags_have_dashes_and_underscores() {
        let with_underscore = run("lanemark run --ramp_time 2s --rate_iops=10").unwrap();
        let with_dash = run("lanemark run --ramp-time 2s --rate-iops=10").unwrap();
        assert_eq!(with_underscore, with_dash);
        assert_eq!(
            run("lanemark run --seed 7").unwrap(),
            run("lanemark run --randseed 7").unwrap()
        );
    }

    #[test]
    fn consents_and_devices_repeat() {
        let args = run("lanemark run --device a --device b --allow-write S1 --allow-write S2 --overwrite ext4 -o x.json --format json").unwrap();
        assert_eq!(args.keys.device, ["a", "b"]);
        assert_eq!(args.safety.allow_write, ["S1", "S2"]);
        assert_eq!(args.safety.overwrite, ["ext4"]);
        assert_eq!(args.format, Format::Json);
        assert_eq!(args.output, Some(PathBuf::from("x.json")));
    }

    #[test]
    fn a_format_that_is_not_given_is_that_of_the_file() {
        let format = |line: &str| run(&format!("lanemark run {line}")).unwrap().format;
        for (name, wanted) in [
            ("x.json", Format::Json),
            ("x.JSON", Format::Json),
            ("x.csv", Format::Csv),
            ("a.b/x.html", Format::Html),
            ("x.txt", Format::Text),
            ("x.out", Format::Text),
            ("x.json/", Format::Text),
            ("json", Format::Text),
        ] {
            assert_eq!(format(&format!("-o {name}")), wanted, "{name}");
            assert_eq!(format(&format!("--format csv -o {name}")), Format::Csv);
            assert_eq!(format(&format!("-o {name} --format=text")), Format::Text);
        }
    }

    #[test]
    fn usage_errors_come_back_and_exit_with_2() {
        for line in [
            "lanemark run --bogus",
            "lanemark bogus",
            "lanemark run --format xml",
            "lanemark run a b",
            "lanemark run --bs",
        ] {
            assert_eq!(run(line).unwrap_err().exit_code(), 2, "{line}");
        }
        assert_eq!(run("lanemark run --help").unwrap_err().exit_code(), 0);
    }

    #[test]
    fn json_is_heard_on_lines_that_do_not_parse() {
        assert!(asks_for_json(&words("lanemark run --bogus --format json")));
        assert!(asks_for_json(&words("lanemark run --format=json --bogus")));
        assert!(!asks_for_json(&words("lanemark run --format text --bogus")));
        assert!(!asks_for_json(&words("lanemark run -- --format json")));
        assert!(!asks_for_json(&words("lanemark run json")));
        assert!(!asks_for_json(&words(
            "lanemark run --format json --format text"
        )));
    }

    #[test]
    fn negative_values_reach_the_reader_that_explains_them() {
        assert_eq!(
            run("lanemark run --offset -5")
                .unwrap()
                .keys
                .offset
                .as_deref(),
            Some("-5")
        );
    }
}

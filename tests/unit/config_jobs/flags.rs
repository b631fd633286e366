//! Flags and job files: the same keys, the same words.

use super::support::disk;
use clap::CommandFactory;
use lanemark::cli::{Cli, RunArgs, Verb, job_from_flags};
use lanemark::config::{ConfigError, JOB_KEYS, Job, Plan, STEP_KEYS, plan};
use std::collections::BTreeSet;

/// Flags of `run` that are not keys of a job.
const TOOL_FLAGS: &[&str] = &[
    "dry-run",
    "format",
    "output",
    "progress",
    "allow-write",
    "overwrite",
    "strict",
    "claim",
    "set",
    "only",
    "read-only",
    "quick",
    "resume",
    "output-dir",
    "prepare",
    "help",
];

fn args(line: &[&str]) -> RunArgs {
    let words = ["lanemark", "run"].iter().chain(line).map(Into::into);
    match lanemark::cli::line::args::parse(words).unwrap().verb {
        Verb::Run(args) => *args,
        other => panic!("{other:?}"),
    }
}

fn job(line: &[&str], file: Option<&str>) -> Result<Job, ConfigError> {
    let file = file.map(|yaml| Job::from_yaml(yaml, "job.yaml").unwrap());
    job_from_flags(&args(line), file)
}

fn planned(line: &[&str], file: Option<&str>) -> Plan {
    plan(&job(line, file).unwrap(), &[disk()], 1).unwrap()
}

#[test]
fn every_job_key_is_a_flag_and_every_flag_a_key() {
    let mut command = Cli::command();
    command.build();
    let run = command.find_subcommand("run").unwrap();
    let flags: BTreeSet<&str> = run
        .get_arguments()
        .filter_map(|arg| arg.get_long())
        .filter(|flag| !TOOL_FLAGS.contains(flag))
        .collect();
    // What only a file can say: its structure, and what is judged over several steps.
    let structure = [
        "defaults",
        "steps",
        "include",
        "about",
        "notes",
        "steady",
        "derive",
        "instead_of",
    ];
    let keys: BTreeSet<&str> = JOB_KEYS
        .iter()
        .chain(STEP_KEYS)
        .copied()
        .filter(|key| !structure.contains(key))
        .collect();
    assert_eq!(flags, keys);
    for arg in run
        .get_arguments()
        .filter(|arg| arg.get_long().is_some_and(|long| long.contains('_')))
    {
        let dashed = arg.get_long().unwrap().replace('_', "-");
        assert!(
            arg.get_all_aliases().unwrap().contains(&dashed.as_str()),
            "{dashed}"
        );
    }
}

/// One allowed value for every key, with what the others need to have an effect.
const VALUES: &[(&str, &str)] = &[
    ("rw", "randrw"),
    ("bs", "8k"),
    ("blockalign", "16k"),
    ("rwmixread", "67"),
    ("percentage_random", "80"),
    ("random_distribution", "zipf:1.2"),
    ("offset", "1M"),
    ("size", "50%"),
    ("iodepth", "32"),
    ("number_ios", "1000"),
    ("io_size", "1G"),
    ("rate_iops", "5000"),
    ("rate_process", "poisson"),
    ("fsync", "16"),
    ("passes", "2"),
    ("data", "zero"),
    ("streams", "2"),
    ("reactors", "2"),
    ("cpus", "3,1"),
    ("runtime", "60s"),
    ("randseed", "7"),
    ("stamp", "exact"),
    ("grace", "5s"),
    ("max_errors", "10"),
    ("repeat", "2"),
    ("cool_down", "3s"),
    ("steadystate", "iops:2%"),
    ("steadystate_duration", "5s"),
    ("steadystate_ramp_time", "1s"),
    ("expect", "read_iops>=1000k,p99<=200us"),
];

#[test]
fn flags_and_file_make_the_same_plan() {
    let mut line = vec![
        "--device",
        "disk",
        "--batch",
        "submit=16,complete_min=4,complete_max=8",
    ];
    let mut yaml =
        "steps:\n  - batch: { submit: 16, complete_min: 4, complete_max: 8 }\n".to_owned();
    let names: Vec<String> = VALUES.iter().map(|(key, _)| format!("--{key}")).collect();
    for ((key, value), name) in VALUES.iter().zip(&names) {
        line.extend([name.as_str(), value]);
        yaml.push_str(&format!("    {key}: {value}\n"));
    }
    let by_flags = planned(&line, None);
    let by_file = planned(&["--randseed", "7", "--name", "run"], Some(&yaml));
    assert_eq!(by_flags, by_file);
    assert_eq!(by_flags.seed, 7);
    let covered: BTreeSet<&str> = VALUES
        .iter()
        .map(|(key, _)| *key)
        .chain([
            "name",
            "batch",
            "bssplit",
            "ramp_time",
            "sweep",
            "instead_of",
        ])
        .collect();
    assert_eq!(covered, STEP_KEYS.iter().copied().collect());
    assert_eq!(
        planned(&["--bssplit", "4k/60:64k/40"], None).steps[0].streams,
        planned(
            &["--name", "run"],
            Some("steps: [{ bssplit: { 4k: 60, 64k: 40 } }]\n")
        )
        .steps[0]
            .streams
    );
    // A ramp goes with a time only.
    assert_eq!(
        planned(&["--ramp_time", "500ms"], None).steps[0].limits,
        planned(&[], Some("steps: [{ ramp_time: 500ms }]\n")).steps[0].limits
    );
}

#[test]
fn the_same_mistake_gets_the_same_words() {
    let by_flag = job(&["--iodepth", "0"], None).unwrap_err();
    assert_eq!(
        by_flag.to_string(),
        "--iodepth: `0` is less than 1; allowed: 1 to 65536"
    );
    let by_file = Job::from_yaml("steps: [{ iodepth: 0 }]\n", "job.yaml").unwrap_err();
    assert_eq!(
        by_file.to_string(),
        "job.yaml:1: iodepth: `0` is less than 1; allowed: 1 to 65536 (column 20)"
    );
    let cases: &[(&[&str], &str)] = &[
        (
            &["--batch", "32"],
            "--batch: `32` is not name=number; allowed: submit=N,complete_min=N,complete_max=N or some of them",
        ),
        (
            &["--batch", "submit=1,submit=2"],
            "--batch: `submit` stands twice; allowed: submit=N,complete_min=N,complete_max=N or some of them",
        ),
        (
            &["--batch", "submit=x"],
            "--batch.submit: `x` is not a whole number; allowed: 1 to 65536",
        ),
        (
            &["--streams", "x"],
            "--streams: `x` is not a whole number; allowed: 1 to 4096",
        ),
        (
            &["--device", ""],
            "--device: it has no value; name a device, such as a block device node, a file, a PCI address, sim or \"null\" (in quotes: a bare null is YAML for nothing)",
        ),
        (
            &["--backend", "x"],
            "--backend: `x` is not known; allowed: auto, null, sim, uring, uring-cmd, sg, spdk",
        ),
        (
            &["--bs", "4k", "--bssplit", "4k"],
            "--bssplit: `bs` and `bssplit` exclude each other; keep one of them",
        ),
        (
            &["--rw", "read", "--rwmixread", "70"],
            "--rwmixread: it has no effect: `rw: read` mixes no reads and writes; a mix is rw or randrw; remove it",
        ),
        (
            &["--offset", "-5"],
            "--offset: `-5` is not a size: a size cannot be negative; use 0 or more",
        ),
    ];
    for (line, message) in cases {
        assert_eq!(job(line, None).unwrap_err().to_string(), *message);
    }
}

const FILE: &str = "
name: from file
device: [a, b]
backend: sim
defaults: { iodepth: 4, randseed: 5 }
steps:
  - { name: one, bs: 8k, iodepth: 8, randseed: 6 }
  - name: two
    streams:
      - { rw: randread, bssplit: 4k/50:8k/50, iodepth: 16 }
      - { rw: randwrite, iodepth: 2 }
";

#[test]
fn flags_override_every_step_and_every_stream() {
    let plan = planned(
        &["--iodepth", "64", "--bs", "16k", "--seed", "9"],
        Some(FILE),
    );
    assert_eq!(plan.seed, 9);
    let streams: Vec<_> = plan.steps.iter().flat_map(|step| &step.streams).collect();
    assert_eq!(streams.len(), 3);
    for stream in streams {
        assert_eq!(stream.depth, 64);
        assert_eq!(stream.sizes.len(), 1);
        assert_eq!(stream.sizes[0].blocks, 32);
    }
    let job = job(
        &["--device", "c", "--backend", "uring", "--name", "mine"],
        Some(FILE),
    )
    .unwrap();
    assert_eq!(job.device_names().unwrap(), ["c"]);
    assert_eq!(job.backend_choice().unwrap().name(), "uring");
    assert_eq!(
        lanemark::config::plan(&job, &[disk()], 1).unwrap().name,
        "mine"
    );
    let counted = planned(&["--streams", "3"], Some(FILE));
    assert_eq!(counted.steps[1].streams.len(), 3);
}

#[test]
fn a_job_of_flags_alone_has_one_step() {
    let plan = planned(&["--device", "x", "--rw", "read"], None);
    assert_eq!(plan.steps.len(), 1);
    assert_eq!(
        (plan.name.as_str(), plan.steps[0].name.as_str()),
        ("run", "read")
    );
    assert!(args(&[]).keys.is_empty());
    assert!(!args(&["--bs", "4k"]).keys.is_empty());
}

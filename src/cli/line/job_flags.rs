//! The keys of a job as flags, and the job they make, alone or over a job file.

use crate::config::{ConfigError, Job, Key, Step, Streams, Word, sweep_from_texts};
use clap::Args;

use super::args::RunArgs;

/// Every key of a job, as a flag of the same name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
#[command(allow_negative_numbers = true)]
pub struct JobFlags {
    /// Name of the job
    #[arg(long, value_name = "TEXT", help_heading = "Job")]
    pub name: Option<String>,
    /// What to measure: a block device, a file, a PCI address, null, sim:latency=100us,... Repeatable
    #[arg(long, value_name = "D", help_heading = "Job")]
    pub device: Vec<String>,
    /// How commands reach it: auto, null, sim, uring, uring-cmd, sg, spdk [default: auto]
    #[arg(long, value_name = "NAME", help_heading = "Job")]
    pub backend: Option<String>,

    /// read, write, randread, randwrite, rw (readwrite), randrw, trim, randtrim, writezeroes, randwritezeroes,
    /// probe (a command without media), probe-read (one block at offset, over and over) [default: randread]
    #[arg(long, value_name = "PATTERN", help_heading = "Access")]
    pub rw: Option<String>,
    /// Size of one request [default: 4k]
    #[arg(long, value_name = "SIZE", help_heading = "Access")]
    pub bs: Option<String>,
    /// A mix of sizes: 4k/60:64k/40
    #[arg(long, value_name = "MIX", help_heading = "Access")]
    pub bssplit: Option<String>,
    /// Random starts are multiples of this [default: bs, or the smallest of bssplit]
    #[arg(long, value_name = "SIZE", help_heading = "Access")]
    pub blockalign: Option<String>,
    /// Share of reads in a mix, percent [default: 50]
    #[arg(long, value_name = "PCT", help_heading = "Access")]
    pub rwmixread: Option<String>,
    /// Share of I/Os at a random place, percent; the rest follow on [default: 100]
    #[arg(
        long = "percentage_random",
        alias = "percentage-random",
        value_name = "PCT",
        help_heading = "Access"
    )]
    pub percentage_random: Option<String>,
    /// uniform, zipf:THETA, pareto:H, normal:SIGMA%, zoned:50/10:30/20:20/70 [default: uniform]
    #[arg(
        long = "random_distribution",
        alias = "random-distribution",
        value_name = "KIND",
        help_heading = "Access"
    )]
    pub random_distribution: Option<String>,
    /// Where the region begins: bytes or % of the device [default: 0]
    #[arg(long, value_name = "SIZE", help_heading = "Access")]
    pub offset: Option<String>,
    /// How long the region is: bytes or % of the device [default: to the end]
    #[arg(long, value_name = "SIZE", help_heading = "Access")]
    pub size: Option<String>,
    /// What writes carry: random, zero, fixed:DEADBEEF, compressible:50% [default: random]
    #[arg(long, value_name = "PATTERN", help_heading = "Access")]
    pub data: Option<String>,
    /// A flush after this many writes
    #[arg(long, value_name = "N", help_heading = "Access")]
    pub fsync: Option<String>,
    /// Seed of everything random; repeats a run [default: a new one, shown in the result]
    #[arg(
        long,
        visible_alias = "seed",
        value_name = "N",
        help_heading = "Access"
    )]
    pub randseed: Option<String>,

    /// I/Os in flight, per stream and device [default: 1]
    #[arg(long, value_name = "N", help_heading = "Load")]
    pub iodepth: Option<String>,
    /// Streams: sequential ones get stripes of their own [default: one per reactor]
    #[arg(long, value_name = "N", help_heading = "Load")]
    pub streams: Option<String>,
    /// Polling threads, each on a core of its own [default: 1, or one per CPU of --cpus]
    #[arg(long, value_name = "N", help_heading = "Load")]
    pub reactors: Option<String>,
    /// CPUs of the reactors, such as 0-3,8 [default: chosen by where the device is]
    #[arg(long, value_name = "LIST", help_heading = "Load")]
    pub cpus: Option<String>,
    /// Commands handed over and reaped at once: submit=32,complete_min=1,complete_max=32
    #[arg(long, value_name = "PARTS", help_heading = "Load")]
    pub batch: Option<String>,
    /// Open loop: arrivals a second of the step, shared evenly by its streams
    #[arg(
        long = "rate_iops",
        alias = "rate-iops",
        value_name = "N",
        help_heading = "Load"
    )]
    pub rate_iops: Option<String>,
    /// Spacing of arrivals: fixed, poisson [default: fixed]
    #[arg(
        long = "rate_process",
        alias = "rate-process",
        value_name = "KIND",
        help_heading = "Load"
    )]
    pub rate_process: Option<String>,

    /// Length of the measured window, such as 60s [default: 10s where no amount ends it]
    #[arg(long, value_name = "TIME", help_heading = "Length")]
    pub runtime: Option<String>,
    /// Not counted at the start [default: a tenth of the runtime, at most 1s; 0s with an amount or a rate]
    #[arg(
        long = "ramp_time",
        alias = "ramp-time",
        value_name = "TIME",
        help_heading = "Length"
    )]
    pub ramp_time: Option<String>,
    /// End after this many I/Os of the step, shared evenly by its streams
    #[arg(
        long = "number_ios",
        alias = "number-ios",
        value_name = "N",
        help_heading = "Length"
    )]
    pub number_ios: Option<String>,
    /// End after this many bytes of the step, shared evenly by its streams
    #[arg(
        long = "io_size",
        alias = "io-size",
        value_name = "SIZE",
        help_heading = "Length"
    )]
    pub io_size: Option<String>,
    /// End after so many times the bytes of the region
    #[arg(long, value_name = "N", help_heading = "Length")]
    pub passes: Option<String>,
    /// How long I/Os in flight are waited for at the end [default: 30s]
    #[arg(long, value_name = "TIME", help_heading = "Length")]
    pub grace: Option<String>,
    /// End the step after this many failed I/Os [default: never]
    #[arg(
        long = "max_errors",
        alias = "max-errors",
        value_name = "N",
        help_heading = "Length"
    )]
    pub max_errors: Option<String>,
    /// Nothing is sent for so long before the next step [default: 0s]
    #[arg(
        long = "cool_down",
        alias = "cool-down",
        value_name = "TIME",
        help_heading = "Length"
    )]
    pub cool_down: Option<String>,
    /// End early once steady, as fio has it: iops:2%, iops_slope:0.3%, bw:2%, bw_slope:0.3%
    #[arg(long, value_name = "LIMIT", help_heading = "Length")]
    pub steadystate: Option<String>,
    /// Window of --steadystate, whole seconds
    #[arg(
        long = "steadystate_duration",
        alias = "steadystate-duration",
        alias = "ss_dur",
        value_name = "TIME",
        help_heading = "Length"
    )]
    pub steadystate_duration: Option<String>,
    /// Seconds of the window's start that --steadystate does not look at [default: 0s]
    #[arg(
        long = "steadystate_ramp_time",
        alias = "steadystate-ramp-time",
        value_name = "TIME",
        help_heading = "Length"
    )]
    pub steadystate_ramp_time: Option<String>,
    /// Run every step for each value of a key: iodepth=1,4,16. Repeatable: all combinations
    #[arg(long, value_name = "KEY=V,V,...", help_heading = "Job")]
    pub sweep: Vec<String>,
    /// Run every step so often, with all of its sweep
    #[arg(long, value_name = "N", help_heading = "Job")]
    pub repeat: Option<String>,
    /// Write the device so often before the first step, 128 KiB sequentially (SNIA: 2)
    #[arg(long, value_name = "PASSES", help_heading = "Job")]
    pub precondition: Option<String>,
    /// How latency is stamped: auto, exact (per I/O), batch (per poll) [default: auto]
    #[arg(long, value_name = "MODE", help_heading = "Length")]
    pub stamp: Option<String>,
    /// Criteria, such as read_iops>=1000k,p99<=200us; exit code 5 where one is missed
    #[arg(long, value_name = "LIST", help_heading = "Result")]
    pub expect: Option<String>,
}

impl JobFlags {
    /// Keys with one value, with what was given.
    fn single(&self) -> [(Key, &Option<String>); 30] {
        [
            (Key::Rw, &self.rw),
            (Key::Bs, &self.bs),
            (Key::Bssplit, &self.bssplit),
            (Key::Blockalign, &self.blockalign),
            (Key::Rwmixread, &self.rwmixread),
            (Key::PercentageRandom, &self.percentage_random),
            (Key::RandomDistribution, &self.random_distribution),
            (Key::Offset, &self.offset),
            (Key::Size, &self.size),
            (Key::Iodepth, &self.iodepth),
            (Key::NumberIos, &self.number_ios),
            (Key::IoSize, &self.io_size),
            (Key::RateIops, &self.rate_iops),
            (Key::RateProcess, &self.rate_process),
            (Key::Fsync, &self.fsync),
            (Key::Passes, &self.passes),
            (Key::Data, &self.data),
            (Key::Reactors, &self.reactors),
            (Key::Cpus, &self.cpus),
            (Key::Runtime, &self.runtime),
            (Key::RampTime, &self.ramp_time),
            (Key::Randseed, &self.randseed),
            (Key::Stamp, &self.stamp),
            (Key::Expect, &self.expect),
            (Key::Grace, &self.grace),
            (Key::MaxErrors, &self.max_errors),
            (Key::CoolDown, &self.cool_down),
            (Key::Steadystate, &self.steadystate),
            (Key::SteadystateDuration, &self.steadystate_duration),
            (Key::SteadystateRampTime, &self.steadystate_ramp_time),
        ]
    }

    /// Whether no key was given at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn step(&self) -> Result<Step, ConfigError> {
        let mut step = Step::default();
        for (key, value) in self.single() {
            if let Some(text) = value {
                step.keys.insert(key, Word::flag(text));
            }
        }
        if let Some(text) = &self.batch {
            step.keys.extend(crate::config::batch_from_text(text)?);
        }
        step.streams = self
            .streams
            .as_ref()
            .map(|text| Streams::Count(Word::flag(text)));
        step.repeat = self.repeat.as_ref().map(Word::flag);
        step.sweep = sweep_from_texts(&self.sweep)?;
        Ok(step)
    }
}

/// The job that flags make, over a job file or alone. Checked as far as it can be without a device.
///
/// # Errors
/// A [`ConfigError`] that names the flag, or the file, line and key, and what is allowed.
pub fn job_from_flags(args: &RunArgs, file: Option<Job>) -> Result<Job, ConfigError> {
    let mut job = file.unwrap_or_else(Job::of_flags);
    let keys = &args.keys;
    if let Some(name) = &keys.name {
        job.name = Some(Word::flag(name));
    }
    if !keys.device.is_empty() {
        job.devices = keys.device.iter().map(Word::flag).collect();
    }
    if let Some(backend) = &keys.backend {
        job.backend = Some(Word::flag(backend));
    }
    if let Some(passes) = &keys.precondition {
        let step = job.precondition.get_or_insert_default();
        step.keys.insert(Key::Passes, Word::flag(passes));
    }
    job.flags = keys.step()?;
    job.check()?;
    Ok(job)
}

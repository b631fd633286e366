//! `lanemark peak`: the peak, the knee, and what limits them.

use super::exit::Exit;
use super::line::one_step::{Asked, OneStepError, OneStepFlags, Ready, hand_over};
use super::output::Output;
use super::progress;
use super::{run, signals};
use crate::backend::{DeviceFacts, DeviceKind};
use crate::config::{Job, Key, Plan, Streams, Word, plan, plan_json, step_json};
use crate::method::peak::{PeakPlan, PeakResult, Probed, Setting, WINDOWS_MOST_COUNT, search};
use crate::reactor::{Control, StopCause};
use crate::record::{Outcome, RateBand, Record, Step};
use crate::report::{figures, step_title};
use crate::session::path::narrowest_shared;
use crate::session::{
    Observer, Opened, Probe, Proofs, Session, SessionError, add_verdict, workload_of,
};
use crate::sys::cpu::AllowedCpus;
use crate::sysfs::Sysfs;
use clap::Args;
use serde_json::json;
use std::sync::Arc;

const EXAMPLES: &str = "Examples:
  lanemark peak --device /dev/nvme0n1
      the most 4 KiB random reads a second, and the least depth that gives 97 % of them
  lanemark peak --device /dev/nvme0n1 --rw read --bs 128k --most_reactors 2
      the most bandwidth, with two reactors at most
  lanemark peak --device /dev/nvme0n1 --device /dev/nvme1n1
      of both together, each apart, and what the link they share lets through";

/// Length of one probe where the user names none.
const PROBE_RUNTIME: &str = "2s";
/// Ramp of one probe where the user names none.
const PROBE_RAMP: &str = "500ms";

/// Flags of `lanemark peak`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
#[command(after_help = EXAMPLES)]
pub struct PeakArgs {
    /// The greatest depth of each device that is tried: a power of two
    #[arg(
        long = "most_depth",
        alias = "most-depth",
        value_name = "N",
        default_value_t = 1024,
        help_heading = "Search"
    )]
    pub most_depth: u64,
    /// The most reactors that are tried [default: the CPUs that may be used]
    #[arg(
        long = "most_reactors",
        alias = "most-reactors",
        value_name = "N",
        help_heading = "Search"
    )]
    pub most_reactors: Option<u32>,

    /// The job, and what becomes of it.
    #[command(flatten)]
    pub flags: OneStepFlags,
}

fn asked(args: &PeakArgs) -> Asked<'_> {
    Asked {
        verb: "peak",
        flags: &args.flags,
        own_keys: &[
            Key::Iodepth,
            Key::Reactors,
            Key::BatchSubmit,
            Key::BatchCompleteMin,
            Key::BatchCompleteMax,
            Key::RateIops,
            Key::NumberIos,
            Key::IoSize,
            Key::Passes,
        ],
    }
}

/// Runs the verb; the exit code.
pub fn run(args: &PeakArgs) -> Exit {
    let sysfs = Sysfs::host();
    let output = match Output::open(args.flags.result.output.as_deref()) {
        Ok(output) => output,
        Err(error) => return run::refuse(None, args.flags.result.format, &sysfs, error.failure()),
    };
    let control = Arc::new(Control::default());
    let job = judged(args, &output, &sysfs)
        .and_then(|job| signals::listen(&control).map(|()| job).map_err(Into::into));
    let job = match job {
        Ok(job) => job,
        Err(error) => return run::refuse(None, args.flags.result.format, &sysfs, error.failure()),
    };
    match measured(args, &job, control, &sysfs) {
        Ok((record, found)) => hand_over(output, args.flags.result.format, &record, || {
            text(&record, &found)
        }),
        Err(error) => run::refuse(
            Some(output),
            args.flags.result.format,
            &sysfs,
            error.failure(),
        ),
    }
}

fn judged(args: &PeakArgs, output: &Output, sysfs: &Sysfs) -> Result<Job, OneStepError> {
    if !args.most_depth.is_power_of_two() || args.most_depth > 1 << 16 {
        return Err(OneStepError::Usage(format!(
            "--most_depth {}: a power of two from 1 to 65536",
            args.most_depth
        )));
    }
    if args.most_reactors == Some(0) {
        return Err(OneStepError::Usage(
            "--most_reactors 0: at least 1".to_owned(),
        ));
    }
    let file = args.flags.file()?;
    let mut job = asked(args).job(args.flags.keys.clone(), file, output, sysfs)?;
    if any_step(&job, |step| step.streams.is_some()) {
        return Err(OneStepError::Usage(
            "peak sets streams itself, one for each reactor: leave them out".to_owned(),
        ));
    }
    for (key, value) in [(Key::Runtime, PROBE_RUNTIME), (Key::RampTime, PROBE_RAMP)] {
        if !any_step(&job, |step| step.keys.contains_key(&key)) {
            job.flags.keys.insert(key, Word::flag(value));
        }
    }
    Ok(job)
}

fn any_step(job: &Job, holds: impl Fn(&crate::config::Step) -> bool) -> bool {
    holds(&job.defaults) || holds(&job.flags) || job.steps.iter().any(holds)
}

/// The devices under search.
struct Devices<'a> {
    session: &'a Session,
    opened: &'a Opened,
    job: &'a Job,
    seed: u64,
    ran_count: usize,
    /// The narrowest hop that all devices share, and what it lets through of the last step.
    shared: Option<(String, RateBand)>,
    observer: &'a mut dyn Observer,
}

/// The job with this setting: a stream for each reactor and device, the depth shared evenly.
fn planned(
    job: &Job,
    facts: &[DeviceFacts],
    seed: u64,
    setting: Setting,
    name: &str,
) -> Result<Plan, SessionError> {
    let mut job = job.clone();
    let reactors_count = u64::from(setting.reactors_count);
    let iodepth = setting.depth_count.div_ceil(reactors_count);
    let values = [
        (Key::Iodepth, iodepth),
        (Key::Reactors, reactors_count),
        (Key::BatchCompleteMin, u64::from(setting.complete_min_count)),
    ];
    for (key, value) in values {
        job.flags.keys.insert(key, Word::flag(value.to_string()));
    }
    job.flags.streams = Some(Streams::Count(Word::flag(reactors_count.to_string())));
    let plan = plan(&job, facts, seed);
    let mut plan = plan.map_err(|error| SessionError::Unplanned {
        step: name.to_owned(),
        why: error.to_string(),
    })?;
    for step in &mut plan.steps {
        name.clone_into(&mut step.name);
    }
    Ok(plan)
}

/// Whether the job makes a plan at the ends of the search: what is wrong with one of them is said before the first
/// probe.
fn plans(
    job: &Job,
    facts: &[DeviceFacts],
    seed: u64,
    peak_plan: &PeakPlan,
) -> Result<(), SessionError> {
    for setting in peak_plan.ends() {
        let name = format!(
            "depth {} reactors {} batch {} (--most_depth and --most_reactors allow it)",
            setting.depth_count, setting.reactors_count, setting.complete_min_count
        );
        planned(job, facts, seed, setting, &name)?;
    }
    Ok(())
}

impl Devices<'_> {
    fn run(
        &mut self,
        setting: Setting,
        name: &str,
        burn_ns: Option<u64>,
        proofs: &Proofs,
    ) -> Result<Step, SessionError> {
        if self.session.control.cause() >= StopCause::Signal {
            return Err(SessionError::Interrupted);
        }
        let plan = planned(self.job, &self.opened.facts(), self.seed, setting, name)?;
        self.ran_count += 1;
        let number = u32::try_from(self.ran_count).unwrap_or(u32::MAX);
        let own = plan.steps[0].reseeded(number);
        let probe = Probe {
            plan: &own,
            plan_json: step_json(&own, &plan.devices),
            numbers: (self.ran_count, WINDOWS_MOST_COUNT),
            burn_ns,
            devices: None,
        };
        let (mut step, paths) = self.session.probe(self.opened, probe, self.observer)?;
        add_verdict(&mut step, &own, &paths, proofs);
        self.shared = workload_of(&step, &own)
            .filter(|_| paths.len() > 1)
            .and_then(|workload| narrowest_shared(&paths, &workload));
        self.observer.step_done(&step);
        Ok(step)
    }
}

impl Probed for Devices<'_> {
    fn probe(&mut self, setting: Setting, name: &str) -> Result<Step, SessionError> {
        self.run(setting, name, None, &Proofs::default())
    }

    fn burn(&mut self, setting: Setting, name: &str, burn_ns: u64) -> Result<Step, SessionError> {
        self.run(setting, name, Some(burn_ns), &Proofs::default())
    }

    fn confirm(
        &mut self,
        setting: Setting,
        name: &str,
        proofs: &Proofs,
    ) -> Result<Step, SessionError> {
        self.run(setting, name, None, proofs)
    }
}

/// How far to search on these devices.
fn peak_plan(
    args: &PeakArgs,
    facts: &[DeviceFacts],
    plan: &Plan,
) -> Result<PeakPlan, OneStepError> {
    let cpus_count = match plan.steps[0].cpus.len() {
        0 => {
            let allowed = AllowedCpus::at_start().map_err(SessionError::from)?;
            allowed.cpus().len()
        }
        named => named,
    };
    // Simulated reactors share one line of time: more of them are not more power.
    let is_sim = facts.iter().any(|one| one.kind == DeviceKind::Sim);
    let own = if is_sim {
        1
    } else {
        u32::try_from(cpus_count).unwrap_or(u32::MAX)
    };
    Ok(PeakPlan {
        depth_most_count: args.most_depth,
        devices_count: u32::try_from(plan.devices.len()).unwrap_or(u32::MAX),
        reactors_most_count: args.most_reactors.unwrap_or(own),
        reactors_at_once_count: if is_sim { 1 } else { u32::MAX },
        precision_ratio: 0.01,
    })
}

fn measured(
    args: &PeakArgs,
    job: &Job,
    control: Arc<Control>,
    sysfs: &Sysfs,
) -> Result<(Record, Found), OneStepError> {
    let mut observer = progress::on_stderr(args.flags.result.progress);
    let judge = |facts: &[DeviceFacts], whole: &Plan| {
        let far = peak_plan(args, facts, whole)?;
        Ok(plans(job, facts, whole.seed, &far)?)
    };
    let ready = asked(args).open(job, control, observer.as_mut(), sysfs, judge)?;
    let Ready {
        opened,
        session,
        plan,
        ..
    } = &ready;
    let peak_plan = peak_plan(args, &opened.facts(), plan)?;
    let mut devices = Devices {
        session,
        opened,
        job,
        seed: plan.seed,
        ran_count: 0,
        shared: None,
        observer: observer.as_mut(),
    };
    let mut result = search(&peak_plan, &mut devices);
    if result.steps.is_empty()
        && let Some(error) = result.error.take()
    {
        return Err(error.into());
    }
    let job = json!({ "plan": plan_json(plan), "peak": result_json(&result) });
    let steps = result.steps.clone();
    let shared = devices.shared.take();
    let mut record = ready.record(result.status(), result.error.as_ref(), job, steps);
    let found = Found { result, shared };
    record.answer = answer(&record, &found);
    Ok((record, found))
}

/// What the search found, and what the devices share.
struct Found {
    result: PeakResult,
    shared: Option<(String, RateBand)>,
}

fn setting_json(setting: Setting) -> serde_json::Value {
    json!({
        "depth_count": setting.depth_count,
        "reactors_count": setting.reactors_count,
        "complete_min_count": setting.complete_min_count,
    })
}

fn result_json(result: &PeakResult) -> serde_json::Value {
    let probes: Vec<_> = result
        .probes
        .iter()
        .map(|point| json!({ "setting": setting_json(point.setting), "iops": point.iops }))
        .collect();
    json!({
        "probes": probes,
        "best": result.best.map(setting_json),
        "burns": result.burns,
        "rounds_iops": result.rounds,
        "peak_iops": result.peak_iops,
        "half_width_iops": result.half_width_iops,
        "knee_depth_count": result.knee_depth_count,
        "is_knee_exact": result.is_knee_exact,
        "ended_by": result.ended_by,
    })
}

/// The curve, then what it comes to.
fn text(record: &Record, found: &Found) -> String {
    let mut rows = super::listing::table(&["STEP", "IOPS", "GB/s", "P50", "P99", "OF PEAK"]);
    for step in &record.steps {
        rows.add_row(row(step, found.result.peak_iops));
    }
    super::listing::text_of(&rows) + "\n" + &super::listing::lines(&record.answer)
}

fn row(step: &Step, peak_iops: Option<f64>) -> Vec<String> {
    let found: Vec<_> = step.on_media().collect();
    let iops: f64 = found.iter().map(|direction| direction.iops).sum();
    let rate: f64 = found.iter().map(|direction| direction.bytes_per_s).sum();
    let worst = |of: fn(&crate::record::Latency) -> u64| {
        let most = found
            .iter()
            .map(|direction| of(&direction.latency_ns))
            .max();
        most.map_or_else(|| figures::NOT_AVAILABLE.to_owned(), figures::time_ns)
    };
    vec![
        step_title(step),
        figures::iops(iops),
        figures::rate(rate, figures::GB_BYTES),
        worst(|latency| latency.p50),
        worst(|latency| latency.p99),
        // A part of a window is no point of the curve.
        peak_iops
            .filter(|_| step.status == Outcome::Finished)
            .map_or_else(
                || figures::NOT_AVAILABLE.to_owned(),
                |peak| figures::share(iops / peak),
            ),
    ]
}

/// The peak, the setting, the knee, each device's part, the burns, the verdict.
fn answer(record: &Record, found: &Found) -> Vec<String> {
    let result = &found.result;
    let (Some(peak), Some(best), Some(last)) = (result.peak_iops, result.best, record.steps.last())
    else {
        return vec!["no peak: the search ended before a round was complete".to_owned()];
    };
    let half = result.half_width_iops.map_or_else(String::new, |half| {
        format!(" +- {}", figures::share(half / peak))
    });
    let reactors = match best.reactors_count {
        1 => "1 reactor".to_owned(),
        count => format!("{count} reactors"),
    };
    let mut lines = vec![
        format!(
            "peak: {} IOPS{half} (95 %, mean of {} fresh rounds, ended by {})",
            figures::iops(peak),
            result.rounds.len(),
            result.ended_by
        ),
        format!(
            "at depth {} on {reactors}, complete_min {}",
            best.depth_count, best.complete_min_count
        ),
        match result.knee_depth_count {
            Some(depth) if result.is_knee_exact => format!("knee: depth {depth} gives 97 % of it"),
            Some(depth) => format!(
                "knee: depth {depth} at most gives 97 % of it; the probes were spent before less was tried"
            ),
            None => "knee: no depth that was tried gives 97 % of it".to_owned(),
        },
    ];
    for (index, device) in (0..).zip(&last.devices) {
        let own = last.streams.iter().filter(|s| s.device_index == index);
        let iops: f64 = own.map(|stream| stream.iops).sum();
        if last.devices.len() > 1 {
            lines.push(format!("{}: {} IOPS", device.path, figures::iops(iops)));
        }
    }
    lines.extend(shared_text(last, found.shared.as_ref()));
    let burns = result.burns.iter();
    lines.extend(burns.map(|burn| format!("burnt {}", figures::burnt(burn))));
    let verdict = &last.verdict;
    let at = verdict
        .at
        .as_deref()
        .map_or_else(String::new, |at| format!(" at {at}"));
    lines.push(format!(
        "verdict: {}{at}: {}",
        verdict.kind.words(),
        verdict.why
    ));
    lines
}

/// What several devices share lets through, and how much of that they took.
fn shared_text(step: &Step, shared: Option<&(String, RateBand)>) -> Option<String> {
    let (at, band) = shared.filter(|_| step.devices.len() > 1)?;
    let sum: f64 = step.on_media().map(|one| one.bytes_per_s).sum();
    let most = band.high_bytes_per_s;
    Some(format!(
        "they share {at}, which lets {} GB/s through at most: {} of it",
        figures::rate(most, figures::GB_BYTES),
        figures::share(sum / most)
    ))
}

//! `lanemark scale`: one device, two, and so on to all at once, against the hop that they share.

pub(in crate::cli) mod text;

use crate::backend::DeviceFacts;
use crate::cli::exit::Exit;
use crate::cli::line::one_step::{Asked, OneStepError, OneStepFlags, Ready, hand_over};
use crate::cli::output::{self, Output};
use crate::cli::progress::{self, Mode};
use crate::cli::{run, signals};
use crate::config::{ConfigError, Job, Key, Plan, StepPlan, Word, plan, plan_json, step_json};
use crate::method::scale::{Ask, ScalePlan, Scaled, measure};
use crate::reactor::{Control, StopCause};
use crate::record::{RateBand, Record, Step};
use crate::session::path::{SeenPath, narrowest_shared};
use crate::session::{
    NearAndFar, Observer, Opened, Probe, Proofs, Session, SessionError, add_verdict, near_and_far,
    workload_of,
};
use crate::sysfs::Sysfs;
use crate::workload::Arrival;
use clap::Args;
use serde_json::json;
use std::slice;
use std::sync::Arc;

const EXAMPLES: &str = "Examples:
  lanemark scale --device /dev/sda --device /dev/sdb --device /dev/sdc --rw read --bs 128k --iodepth 8
      each alone, then two and three at once: where the HBA's link is full, and who gets how much
  lanemark scale --device /dev/nvme0n1 --device /dev/nvme1n1 --iodepth 128 --reactors 2
      random reads of two drives behind one switch
  lanemark scale --device sim:hop=hba:250M,cap_bytes_per_s=100M --device sim:hop=hba:250M,cap_bytes_per_s=100M,seed=2 ...
      simulated devices behind one hop, whose truth is known";

/// Length of one window where the user names none.
const WINDOW_RUNTIME: &str = "5s";
/// Ramp of one window where the user names none.
const WINDOW_RAMP: &str = "500ms";

/// Flags of `lanemark scale`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
#[command(after_help = EXAMPLES)]
pub struct ScaleArgs {
    /// How many devices at once, ascending, the last of them all; one is always measured
    /// [default: every number up to 16, then each doubling, and all]
    #[arg(long, value_name = "LIST", help_heading = "Scale")]
    pub counts: Option<String>,

    /// The job, and what becomes of it.
    #[command(flatten)]
    pub flags: OneStepFlags,
}

/// What `scale` shares with others. Amounts of a step are split over its devices: with more of them each would do
/// less.
fn asked(args: &ScaleArgs) -> Asked<'_> {
    Asked {
        verb: "scale",
        flags: &args.flags,
        own_keys: &[Key::NumberIos, Key::IoSize, Key::Passes],
    }
}

/// Runs the verb; the exit code.
pub fn run(args: &ScaleArgs) -> Exit {
    let sysfs = Sysfs::host();
    let format = args.flags.result.format;
    let output = match Output::open(args.flags.result.output.as_deref()) {
        Ok(output) => output,
        Err(error) => return run::refuse(None, format, &sysfs, error.failure()),
    };
    let control = Arc::new(Control::default());
    let job = judged(args, &output, &sysfs)
        .and_then(|job| signals::listen(&control).map(|()| job).map_err(Into::into));
    let job = match job {
        Ok(job) => job,
        Err(error) => return run::refuse(None, format, &sysfs, error.failure()),
    };
    match measured(args, &job, control, &sysfs) {
        Ok(record) => hand_over(output, format, &record, || text::text(&record)),
        Err(error) => run::refuse(Some(output), format, &sysfs, error.failure()),
    }
}

fn judged(args: &ScaleArgs, output: &Output, sysfs: &Sysfs) -> Result<Job, OneStepError> {
    let file = args.flags.file()?;
    let mut job = asked(args).job(args.flags.keys.clone(), file, output, sysfs)?;
    if job.devices.len() < 2 {
        return Err(OneStepError::Usage(
            "scale wants two devices at least: name each with --device".to_owned(),
        ));
    }
    for (key, value) in [(Key::Runtime, WINDOW_RUNTIME), (Key::RampTime, WINDOW_RAMP)] {
        let steps = [&job.defaults, &job.flags, &job.steps[0]];
        if !steps.iter().any(|step| step.keys.contains_key(&key)) {
            job.flags.keys.insert(key, Word::flag(value));
        }
    }
    Ok(job)
}

/// `2,4,8`, the last of them all devices.
fn counts(text: &str, devices_count: u32) -> Result<Vec<u32>, OneStepError> {
    let parsed: Option<Vec<u32>> = text
        .split(',')
        .map(|word| word.trim().parse().ok())
        .collect();
    let fits = |counts: &Vec<u32>| {
        counts.is_sorted_by(|one, other| one < other)
            && counts.first().is_some_and(|first| *first >= 2)
            && counts.last() == Some(&devices_count)
    };
    parsed.filter(fits).ok_or_else(|| {
        OneStepError::Usage(format!(
            "--counts {text}: numbers from 2, ascending, and the last is all {devices_count} devices"
        ))
    })
}

/// What `scale` cannot do with a step.
fn fits(step: &StepPlan) -> Result<(), OneStepError> {
    if !step.streams.iter().all(|stream| stream.ops.carries_data()) {
        return Err(OneStepError::Usage(
            "scale is for reads and writes: a trim, a writezeroes or a probe moves nothing over the hop"
                .to_owned(),
        ));
    }
    if step.streams.iter().any(|s| s.arrival != Arrival::Closed) {
        return Err(OneStepError::Usage(
            "scale finds out how much goes: leave rate_iops out".to_owned(),
        ));
    }
    Ok(())
}

/// The counts asked for, or the usual ones.
fn counts_of(args: &ScaleArgs, devices_count: usize) -> Result<Vec<u32>, OneStepError> {
    let devices_count = u32::try_from(devices_count).unwrap_or(u32::MAX);
    match &args.counts {
        Some(text) => counts(text, devices_count),
        None => Ok(ScalePlan::usual_counts(devices_count)),
    }
}

/// Whether the job makes a plan for each device alone and for every count: what is wrong with one of them is said
/// before the first is measured.
fn plans(job: &Job, facts: &[DeviceFacts], counts: &[u32], seed: u64) -> Result<(), OneStepError> {
    let alone = facts
        .iter()
        .map(|one| (one.path.clone(), slice::from_ref(one)));
    let together = counts.iter().map(|count| {
        let first = &facts[..facts.len().min(*count as usize)];
        (format!("{count} devices"), first)
    });
    for (step, facts) in alone.chain(together) {
        plan(job, facts, seed).map_err(|error| SessionError::Unplanned {
            step,
            why: error.to_string(),
        })?;
    }
    Ok(())
}

/// The devices under measurement.
struct Devices<'a> {
    session: &'a Session,
    opened: &'a Opened,
    job: &'a Job,
    seed: u64,
    nodes: Option<NearAndFar>,
    ran_count: u32,
    windows_count: usize,
    observer: &'a mut dyn Observer,
}

/// What is needed to judge a step later.
struct Kept {
    plan: StepPlan,
    paths: Vec<SeenPath>,
}

impl Devices<'_> {
    /// The job on these devices alone.
    fn plan(&self, ask: &Ask) -> Result<Plan, ConfigError> {
        let all = self.opened.facts();
        let facts: Vec<_> = ask.devices.iter().map(|at| all[*at].clone()).collect();
        let mut plan = plan(self.job, &facts, self.seed)?;
        let step = &mut plan.steps[0];
        *step = step.reseeded(self.ran_count);
        step.name.clone_from(&ask.name);
        for stream in &mut step.streams {
            stream.depth = (stream.depth / ask.depth_divisor).max(1);
        }
        step.in_flight_count = step.streams.iter().map(|s| u64::from(s.depth)).sum();
        if let Some(nodes) = &self.nodes {
            let (_, cpus) = if ask.is_remote {
                &nodes.far
            } else {
                &nodes.near
            };
            step.cpus.clone_from(cpus);
        }
        Ok(plan)
    }
}

impl Scaled for Devices<'_> {
    type Kept = Kept;

    fn run(&mut self, ask: &Ask) -> Result<(Step, Kept), SessionError> {
        if self.session.control.cause() >= StopCause::Signal {
            return Err(SessionError::Interrupted);
        }
        self.ran_count += 1;
        let plan = self.plan(ask).map_err(|error| SessionError::Unplanned {
            step: ask.name.clone(),
            why: error.to_string(),
        })?;
        let own = &plan.steps[0];
        let probe = Probe {
            plan: own,
            plan_json: step_json(own, &plan.devices),
            numbers: (
                self.ran_count as usize,
                self.windows_count.max(self.ran_count as usize),
            ),
            burn_ns: ask.burn_ns,
            devices: Some(&ask.devices),
        };
        let (step, paths) = self.session.probe(self.opened, probe, self.observer)?;
        self.observer.step_done(&step);
        let kept = Kept {
            plan: own.clone(),
            paths,
        };
        Ok((step, kept))
    }

    fn judge(&mut self, step: &mut Step, kept: &Kept, proofs: &Proofs) {
        add_verdict(step, &kept.plan, &kept.paths, proofs);
    }

    fn shared(&self, step: &Step, kept: &Kept) -> Result<(String, RateBand), String> {
        let workload = workload_of(step, &kept.plan).ok_or("nothing was moved")?;
        narrowest_shared(&kept.paths, &workload).ok_or_else(|| {
            let mut unseen: Vec<String> = Vec::new();
            for part in kept.paths.iter().flat_map(|path| &path.record.unseen) {
                let text = format!("{}: {}", part.name, part.why);
                if !unseen.contains(&text) {
                    unseen.push(text);
                }
            }
            if unseen.is_empty() {
                "no link leads to all of them, or what one of those carries is not known".to_owned()
            } else {
                unseen.join("; ")
            }
        })
    }

    fn controller(&self, kept: &Kept) -> Option<String> {
        SeenPath::common_hba(&kept.paths).map(str::to_owned)
    }
}

fn measured(
    args: &ScaleArgs,
    job: &Job,
    control: Arc<Control>,
    sysfs: &Sysfs,
) -> Result<Record, OneStepError> {
    let mut observer = progress::on_stderr(args.flags.result.progress);
    let mut counts = Vec::new();
    let judge = |facts: &[DeviceFacts], whole: &Plan| {
        fits(&whole.steps[0])?;
        counts = counts_of(args, facts.len())?;
        plans(job, facts, &counts, whole.seed)
    };
    let ready = asked(args).open(job, control, observer.as_mut(), sysfs, judge)?;
    let own = &ready.plan.steps[0];
    let facts = ready.opened.facts();
    let is_sim = matches!(ready.opened, Opened::Sim { .. });
    let nodes = nodes(&ready, own, sysfs);
    let plan = ScalePlan {
        devices: facts.iter().map(|one| one.path.clone()).collect(),
        counts,
        depth_count: least_depth(own),
        depth_least_count: u64::from(own.batch.complete_min),
        // Simulated reactors share one line of time: a burn of one holds up all.
        reactors_count: if is_sim { 1 } else { own.reactors_count },
        nodes: nodes
            .as_ref()
            .map(|nodes| (nodes.near.0, nodes.far.0))
            .map_err(Clone::clone),
    };
    announce(args, &plan, &ready.plan);
    let mut devices = Devices {
        session: &ready.session,
        opened: &ready.opened,
        job,
        seed: ready.plan.seed,
        nodes: nodes.ok(),
        ran_count: 0,
        windows_count: plan.windows_count(),
        observer: observer.as_mut(),
    };
    let mut result = measure(&plan, &mut devices);
    if result.steps.is_empty()
        && let Some(error) = result.error.take()
    {
        return Err(error.into());
    }
    let job = json!({ "plan": plan_json(&ready.plan) });
    let mut record = ready.record(
        result.status(),
        result.error.as_ref(),
        job,
        result.steps.clone(),
    );
    record.scale = Some(result.scale);
    record.answer = text::answer(&record);
    Ok(record)
}

/// The least depth of a stream: parts of it are measured too.
fn least_depth(step: &StepPlan) -> u64 {
    let depths = step.streams.iter().map(|stream| u64::from(stream.depth));
    depths.min().unwrap_or(0)
}

fn nodes(ready: &Ready, step: &StepPlan, sysfs: &Sysfs) -> Result<NearAndFar, String> {
    if matches!(ready.opened, Opened::Sim { .. }) {
        return Err("simulated devices are on no node".to_owned());
    }
    if !step.cpus.is_empty() {
        return Err("the CPUs were named".to_owned());
    }
    let facts = ready.opened.facts();
    let paths: Vec<SeenPath> = facts.iter().map(|one| SeenPath::read(sysfs, one)).collect();
    let count = step.reactors_count as usize;
    near_and_far(sysfs, &ready.session.allowed, &paths, count)
}

/// Says how many windows there are and about how long they take.
fn announce(args: &ScaleArgs, plan: &ScalePlan, job: &Plan) {
    if args.flags.result.progress == Mode::None {
        return;
    }
    let windows_count = plan.windows_count();
    #[allow(clippy::cast_precision_loss)]
    let all_s = windows_count as f64 * job.estimate.steps_s.first().copied().unwrap_or(0.0);
    output::note(&format!(
        "{windows_count} windows on {} devices, about {all_s:.0} s",
        plan.devices.len()
    ));
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn counts_ascend_to_all_devices() {
        assert_eq!(counts("2, 4,8", 8).unwrap(), [2, 4, 8]);
        for bad in ["", "1,8", "2,4", "4,2,8", "2,2,8", "x", "2,9"] {
            assert!(counts(bad, 8).is_err(), "{bad}");
        }
    }
}

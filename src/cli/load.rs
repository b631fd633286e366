//! `lanemark load`: latency against load, and the highest rate whose tail still holds.

use super::exit::Exit;
use super::line::one_step::{Asked, OneStepError, OneStepFlags, hand_over};
use super::output::Output;
use super::progress;
use super::{run, signals};
use crate::backend::DeviceFacts;
use crate::config::{Job, Key, Plan, Word, plan, plan_json, step_json};
use crate::method::load::{Ask, DEFAULT_LOADS_PCT, LoadPlan, LoadResult, Loaded, keeps, measure};
use crate::reactor::{Control, StopCause};
use crate::record::{Direction, Outcome, Record, Step};
use crate::report::{figures, step_title};
use crate::session::{Observer, Opened, Session, SessionError};
use crate::sysfs::Sysfs;
use crate::units::parse_duration;
use clap::Args;
use serde_json::json;
use std::sync::Arc;

const EXAMPLES: &str = "Examples:
  lanemark load --device /dev/nvme0n1 --iodepth 256 --runtime 10s
      the peak at depth 256, then Poisson arrivals at 10 to 95 % of it
  lanemark load --device /dev/nvme0n1 --iodepth 256 --p99 200us
      the highest rate whose scheduled p99 stays within 200 microseconds";

/// The most that `rate_iops` may be.
const MOST_RATE_IOPS: u64 = 1_000_000_000;

/// Flags of `lanemark load`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
#[command(after_help = EXAMPLES)]
pub struct LoadArgs {
    /// Loads to measure, in percent of the peak of the closed loop, ascending
    /// [default: 10,25,50,70,80,90,95]
    #[arg(long, value_name = "LIST", help_heading = "Load")]
    pub load: Option<String>,
    /// Search the highest rate whose 99th percentile, waiting included, is at most this
    #[arg(long, value_name = "TIME", help_heading = "Load")]
    pub p99: Option<String>,

    /// The job, and what becomes of it.
    #[command(flatten)]
    pub flags: OneStepFlags,
}

/// Runs the verb; the exit code.
pub fn run(args: &LoadArgs) -> Exit {
    let sysfs = Sysfs::host();
    let output = match Output::open(args.flags.result.output.as_deref()) {
        Ok(output) => output,
        Err(error) => return run::refuse(None, args.flags.result.format, &sysfs, error.failure()),
    };
    let control = Arc::new(Control::default());
    let job = judged_job(args, &output, &sysfs)
        .and_then(|job| signals::listen(&control).map(|()| job).map_err(Into::into));
    let judged = match job {
        Ok(job) => job,
        Err(error) => return run::refuse(None, args.flags.result.format, &sysfs, error.failure()),
    };
    match loaded(args, &judged, control, &sysfs) {
        Ok((record, result)) => handed_over(args, &judged.load, &record, &result, output),
        Err(error) => run::refuse(
            Some(output),
            args.flags.result.format,
            &sysfs,
            error.failure(),
        ),
    }
}

fn handed_over(
    args: &LoadArgs,
    plan: &LoadPlan,
    record: &Record,
    result: &LoadResult,
    output: Output,
) -> Exit {
    let exit = hand_over(output, args.flags.result.format, record, || {
        text(plan, record)
    });
    if plan.p99_at_most_ns.is_some() && result.highest_iops.is_none() {
        exit.and(Exit::Criterion)
    } else {
        exit
    }
}

/// Takes `rate_process` out of a job.
fn take_process(job: &mut Job) -> Option<Word> {
    let steps = job.steps.iter_mut().map(|step| &mut step.keys);
    let all = steps.chain([&mut job.defaults.keys]);
    all.filter_map(|keys| keys.remove(&Key::RateProcess)).next()
}

/// What `load` shares with others; it sets the rate itself and ends by runtime.
fn asked(args: &LoadArgs) -> Asked<'_> {
    Asked {
        verb: "load",
        flags: &args.flags,
        own_keys: &[Key::RateIops, Key::NumberIos, Key::IoSize, Key::Passes],
    }
}

fn judged_job(args: &LoadArgs, output: &Output, sysfs: &Sysfs) -> Result<Judged, OneStepError> {
    let mut file = args.flags.file()?;
    let mut keys = args.flags.keys.clone();
    // How arrivals are spaced has no effect before there is a rate: it waits until there is one.
    let of_flags = keys.rate_process.take().map(Word::flag);
    let of_file = file.as_mut().and_then(take_process);
    let process = of_flags
        .or(of_file)
        .unwrap_or_else(|| Word::flag("poisson"));
    let job = asked(args).job(keys, file, output, sysfs)?;
    let limit = args.p99.as_deref().map(|text| {
        let parsed = parse_duration(text)
            .map_err(|error| OneStepError::Usage(format!("--p99 {text}: {error}")));
        parsed.map(|limit| limit.0)
    });
    let load = LoadPlan {
        loads_pct: args
            .load
            .as_deref()
            .map_or(Ok(DEFAULT_LOADS_PCT.to_vec()), loads)?,
        p99_at_most_ns: limit.transpose()?,
    };
    Ok(Judged { job, process, load })
}

/// `10,50,90`, with or without `%`.
fn loads(text: &str) -> Result<Vec<f64>, OneStepError> {
    let one = |word: &str| word.trim().trim_end_matches('%').trim().parse::<f64>().ok();
    let all: Option<Vec<f64>> = text.split(',').map(one).collect();
    all.filter(|all| {
        all.iter().all(|pct| *pct > 0.0 && *pct <= 200.0) && all.is_sorted_by(|a, b| a < b)
    })
    .ok_or_else(|| {
        OneStepError::Usage(format!(
            "--load {text}: percentages above 0 and up to 200, ascending, such as 10,50,90"
        ))
    })
}

/// The command line, read and judged.
struct Judged {
    job: Job,
    /// How arrivals are spaced.
    process: Word,
    load: LoadPlan,
}

impl Judged {
    /// The job at this rate.
    fn plan(&self, ask: &Ask, facts: &[DeviceFacts], seed: u64) -> Result<Plan, SessionError> {
        let mut job = self.job.clone();
        if let Some(rate_iops) = ask.rate_iops {
            let keys = &mut job.flags.keys;
            keys.insert(Key::RateIops, Word::flag(rate_iops.to_string()));
            keys.insert(Key::RateProcess, self.process.clone());
        }
        let plan = plan(&job, facts, seed);
        let mut plan = plan.map_err(|error| SessionError::Unplanned {
            step: ask.name.clone(),
            why: error.to_string(),
        })?;
        for step in &mut plan.steps {
            step.name.clone_from(&ask.name);
        }
        Ok(plan)
    }

    /// Whether the job makes a plan with a rate: what is wrong with that is said before the closed loop is measured,
    /// which tells the rates. The greatest there may be can be shared out over any number of streams.
    fn plans(&self, facts: &[DeviceFacts], seed: u64) -> Result<(), SessionError> {
        let with_rate = Ask {
            name: "at a rate".to_owned(),
            rate_iops: Some(MOST_RATE_IOPS),
        };
        self.plan(&with_rate, facts, seed).map(drop)
    }
}

/// The device under load.
struct Device<'a> {
    session: &'a Session,
    opened: &'a Opened,
    judged: &'a Judged,
    seed: u64,
    steps_count: usize,
    ran_count: usize,
    observer: &'a mut dyn Observer,
}

impl Loaded for Device<'_> {
    fn run(&mut self, ask: &Ask) -> Result<Step, SessionError> {
        if self.session.control.cause() >= StopCause::Signal {
            return Err(SessionError::Interrupted);
        }
        let plan = self.judged.plan(ask, &self.opened.facts(), self.seed)?;
        self.ran_count += 1;
        let numbers = (self.ran_count, self.steps_count.max(self.ran_count));
        let number = u32::try_from(self.ran_count).unwrap_or(u32::MAX);
        let own = plan.steps[0].reseeded(number);
        let json = step_json(&own, &plan.devices);
        self.session
            .run_step(self.opened, &own, json, numbers, self.observer)
    }
}

fn loaded(
    args: &LoadArgs,
    judged: &Judged,
    control: Arc<Control>,
    sysfs: &Sysfs,
) -> Result<(Record, LoadResult), OneStepError> {
    let (job, load) = (&judged.job, &judged.load);
    let mut observer = progress::on_stderr(args.flags.result.progress);
    let judge = |facts: &[DeviceFacts], whole: &Plan| Ok(judged.plans(facts, whole.seed)?);
    let ready = asked(args).open(job, control, observer.as_mut(), sysfs, judge)?;
    let mut device = Device {
        session: &ready.session,
        opened: &ready.opened,
        judged,
        seed: ready.plan.seed,
        steps_count: load.loads_pct.len() + 1,
        ran_count: 0,
        observer: observer.as_mut(),
    };
    let mut result = measure(load, &mut device);
    if result.steps.is_empty()
        && let Some(error) = result.error.take()
    {
        return Err(error.into());
    }
    let job = json!({ "plan": plan_json(&ready.plan), "load": load_json(load, &result) });
    let steps = result.steps.clone();
    let mut record = ready.record(result.status(), result.error.as_ref(), job, steps);
    record.answer = answer(load, &record, &result);
    Ok((record, result))
}

/// What was asked and found, beside the steps that show it.
fn load_json(plan: &LoadPlan, result: &LoadResult) -> serde_json::Value {
    let points: Vec<_> = result
        .points
        .iter()
        .map(|(load_pct, rate_iops)| json!({ "load_pct": load_pct, "rate_iops": rate_iops }))
        .collect();
    json!({
        "peak_iops": result.peak_iops,
        "points": points,
        "p99_at_most_ns": plan.p99_at_most_ns,
        "highest_iops": result.highest_iops,
    })
}

/// The table: service and scheduled latency of every rate, side by side.
fn text(plan: &LoadPlan, record: &Record) -> String {
    let mut rows = super::listing::table(&[
        "STEP",
        "ASKED",
        "IOPS",
        "SERVICE P50",
        "P99",
        "SCHEDULED P50",
        "P99",
        "P99.9",
        "",
    ]);
    for step in &record.steps {
        for (name, direction) in [
            ("read", &step.read),
            ("write", &step.write),
            ("trim", &step.trim),
            ("writezeroes", &step.writezeroes),
        ] {
            if let Some(direction) = direction {
                rows.add_row(row(plan, step, name, direction));
            }
        }
    }
    let mut text = super::listing::text_of(&rows);
    if !record.answer.is_empty() {
        text += "\n";
    }
    text + &super::listing::lines(&record.answer)
}

/// The highest rate where one was searched, and the peak of the closed loop.
fn answer(plan: &LoadPlan, record: &Record, result: &LoadResult) -> Vec<String> {
    let mut lines = Vec::new();
    if let (Some(step), true) = (record.steps.first(), result.peak_iops > 0.0) {
        lines.push(format!(
            "peak of the closed loop: {} IOPS; {}",
            figures::iops(result.peak_iops),
            step.summary
        ));
    }
    if let Some(limit_ns) = plan.p99_at_most_ns {
        // What was asked for comes first.
        lines.insert(0, kept_text(limit_ns, record.status, result));
    }
    lines
}

/// The highest rate that keeps the percentile; after an early end, as much of it as is known.
fn kept_text(limit_ns: u64, status: Outcome, result: &LoadResult) -> String {
    let limit = format!("a scheduled p99 of at most {}", figures::time_ns(limit_ns));
    #[allow(clippy::cast_precision_loss)]
    let rate_text = |rate_iops: u64| {
        format!(
            "{} IOPS, {} of the peak",
            figures::count(rate_iops),
            figures::share(rate_iops as f64 / result.peak_iops)
        )
    };
    if status == Outcome::Finished {
        return match result.highest_iops {
            Some(rate_iops) => {
                format!("highest rate with {limit}: {}", rate_text(rate_iops))
            }
            None => format!("no rate that was tried keeps {limit}"),
        };
    }
    let whole = |step: &&Step| step.status == Outcome::Finished;
    let tried = result.points.iter().zip(result.steps.iter().skip(1));
    let known_iops = tried
        .filter(|(_, step)| whole(step))
        .take_while(|(_, step)| keeps(step, limit_ns))
        .last()
        .map(|((_, rate_iops), _)| *rate_iops);
    match result.highest_iops.or(known_iops) {
        Some(rate_iops) => format!(
            "cut short: {} keeps {limit}; whether a higher rate does is not known",
            rate_text(rate_iops)
        ),
        None => match result.steps.iter().skip(1).filter(whole).count() {
            0 => format!("cut short before any rate was measured: none is known to keep {limit}"),
            count => format!(
                "cut short: none of the {count} rates that were measured keeps {limit}; whether another does is not known"
            ),
        },
    }
}

fn row(plan: &LoadPlan, step: &Step, name: &str, direction: &Direction) -> Vec<String> {
    let service = &direction.latency_ns;
    let scheduled = direction.scheduled_latency_ns.as_ref();
    let waited = |of: fn(&crate::record::Latency) -> u64| {
        scheduled.map_or_else(|| "-".to_owned(), |latency| figures::time_ns(of(latency)))
    };
    let asked = step.plan["streams"].as_array().map_or(0.0, |streams| {
        streams
            .iter()
            .filter_map(|stream| stream["rate_iops"].as_f64())
            .sum()
    });
    let overloaded = step
        .warnings
        .iter()
        .any(|warning| warning.kind == "overload");
    let mark = match plan.p99_at_most_ns {
        _ if overloaded => "overload",
        Some(limit_ns) if scheduled.is_some() && keeps(step, limit_ns) => "ok",
        Some(_) if scheduled.is_some() => "too slow",
        _ => "",
    };
    vec![
        format!("{} {name}", step_title(step)),
        if asked > 0.0 {
            figures::iops(asked)
        } else {
            "-".to_owned()
        },
        figures::iops(direction.iops),
        figures::time_ns(service.p50),
        figures::time_ns(service.p99),
        waited(|latency| latency.p50),
        waited(|latency| latency.p99),
        waited(|latency| latency.p99_9),
        mark.to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const LIMIT_NS: u64 = 1_000_000;

    /// The closed loop, then a window at each of these p99.
    fn result(p99s_ns: &[u64], highest_iops: Option<u64>) -> LoadResult {
        let text = include_str!("../../tests/fixtures/records/normal_read.json");
        let record: Record = serde_json::from_str(text).unwrap();
        let mut closed = record.steps[0].clone();
        (closed.write, closed.trim, closed.warnings) = (None, None, Vec::new());
        let mut result = LoadResult {
            peak_iops: 10_000.0,
            highest_iops,
            steps: vec![closed.clone()],
            ..LoadResult::default()
        };
        for (p99_ns, rate_iops) in p99s_ns.iter().zip([1_000, 5_000, 9_000]) {
            let mut step = closed.clone();
            let read = step.read.as_mut().unwrap();
            let mut latency = read.latency_ns.clone();
            latency.p99 = *p99_ns;
            read.scheduled_latency_ns = Some(latency);
            result.points.push((50.0, rate_iops));
            result.steps.push(step);
        }
        result
    }

    #[test]
    fn what_a_sweep_cut_short_has_found_is_said_and_what_it_has_not_is_not_denied() {
        let cut = |result: &LoadResult| kept_text(LIMIT_NS, Outcome::Interrupted, result);
        let mut result_of = result(&[LIMIT_NS, LIMIT_NS, LIMIT_NS], None);
        result_of.steps[3].status = Outcome::Interrupted;
        let found = cut(&result_of);
        assert!(
            found.starts_with("cut short: 5,000 IOPS, 50 % of the peak keeps")
                && found.contains("whether a higher rate does is not known"),
            "{found}"
        );
        // One that was not to be started has no step.
        let mut unstarted = result(&[], None);
        unstarted.points.push((50.0, 1_000));
        for nothing in [&unstarted, &LoadResult::default()] {
            let found = kept_text(LIMIT_NS, Outcome::Failed, nothing);
            assert!(found.contains("before any rate was measured"), "{found}");
        }
        let bad = cut(&result(&[LIMIT_NS + 1, LIMIT_NS + 1], None));
        assert!(
            bad.contains("none of the 2 rates that were measured"),
            "{bad}"
        );
        // A search that was cut short.
        let found = cut(&result(&[LIMIT_NS, LIMIT_NS, LIMIT_NS + 1], Some(7_000)));
        assert!(found.starts_with("cut short: 7,000 IOPS"), "{found}");
    }

    #[test]
    fn what_a_whole_search_has_found_is_final() {
        let whole = |result: &LoadResult| kept_text(LIMIT_NS, Outcome::Finished, result);
        let none = whole(&result(&[LIMIT_NS + 1], None));
        assert!(none.starts_with("no rate that was tried"), "{none}");
        let found = whole(&result(&[LIMIT_NS], Some(4_000)));
        assert!(
            found.starts_with("highest rate with") && found.contains("4,000 IOPS, 40 %"),
            "{found}"
        );
    }

    #[test]
    fn loads_are_ascending_percentages() {
        assert_eq!(loads("10, 50%,90").unwrap(), [10.0, 50.0, 90.0]);
        for bad in ["", "0", "50,10", "10,10", "x", "201", "nan"] {
            assert!(loads(bad).is_err(), "{bad}");
        }
    }
}

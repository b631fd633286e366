//! From the job as written to intents: layers merged, texts read, contradictions and keys without
//! effect refused. Needs no device, so that a bad job is refused before any device is opened.

use super::error::ConfigError;
use super::expand::{Expanded, expand};
use super::intent::{JobIntent, StepIntent, StreamIntent};
use super::judge;
use super::key::Key;
use super::lookup::{Ledger, Lookup};
use super::place::{At, Given, Place};
use super::plan::StampChoice;
use super::resolve_stream::stream;
use super::rounds::SteadySeconds;
use super::schema::{Job, Keys, Step, Streams};
use super::value::{self, Rw};
use crate::units::Nanos;
use std::collections::BTreeSet;

/// How long a step is measured where the user names neither a time nor an amount.
const DEFAULT_RUNTIME: Nanos = Nanos::from_s(10);
/// The default ramp is a tenth of the runtime, and at most this.
const MAX_DEFAULT_RAMP: Nanos = Nanos::from_s(1);
/// How long I/Os in flight are waited for at the end.
const DEFAULT_GRACE: Nanos = Nanos::from_s(30);

impl Job {
    /// Checks everything that can be checked without a device.
    ///
    /// # Errors
    /// A [`ConfigError`] that names file, line and key, or the flag.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.device_names()?;
        self.backend_choice()?;
        resolve(self).map(drop)
    }
}

/// Reads the whole job.
pub(super) fn resolve(job: &Job) -> Result<JobIntent, ConfigError> {
    job.check_words()?;
    let ledger = Ledger::default();
    let files = &job.files;
    let expanded = expand(job, step_names(job)?)?;
    let mut steps = Vec::with_capacity(expanded.len());
    for one in &expanded {
        let layers = if one.origin.is_precondition {
            vec![&one.step.keys]
        } else {
            vec![&job.flags.keys, &one.step.keys, &job.defaults.keys]
        };
        let lookup = Lookup {
            files,
            layers,
            ledger: &ledger,
        };
        steps.push(resolve_step(job, one, &lookup)?);
    }
    known_alternatives(job, &steps)?;
    let rounds = judge::rounds(job, &expanded)?;
    let derive = judge::derive(job, &expanded)?;
    let seed = job_seed(job, &ledger)?;
    ledger.settle(files)?;
    Ok(JobIntent {
        name: job_name(job),
        seed,
        steps,
        rounds,
        derive,
    })
}

/// The job's name, or its file's without folder and ending, or `run`.
fn job_name(job: &Job) -> String {
    if let Some(word) = &job.name {
        return word.text.clone();
    }
    let stem = job
        .files
        .first()
        .and_then(|file| std::path::Path::new(file).file_stem());
    stem.map_or_else(
        || "run".to_owned(),
        |stem| stem.to_string_lossy().into_owned(),
    )
}

/// `randseed` above the steps: each step derives its own from it.
fn job_seed(job: &Job, ledger: &Ledger) -> Result<Option<u64>, ConfigError> {
    let lookup = Lookup {
        files: &job.files,
        layers: vec![&job.flags.keys, &job.defaults.keys],
        ledger,
    };
    Ok(lookup
        .read(Key::Randseed, value::seed)?
        .map(|seed| seed.value))
}

/// Every step has a name of its own: records, resumption and comparison go by it.
fn step_names(job: &Job) -> Result<Vec<String>, ConfigError> {
    let mut taken = BTreeSet::new();
    for word in job.steps.iter().filter_map(|step| step.name.as_ref()) {
        let why = if word.text.is_empty() {
            "it has no value; give the step a name, or leave the key out".to_owned()
        } else if !taken.insert(word.text.clone()) {
            format!("`{}` names two steps; give each its own name", word.text)
        } else {
            continue;
        };
        return Err(ConfigError::Value {
            place: Place::named(&job.files, word.at, "name"),
            why,
        });
    }
    let mut names = Vec::with_capacity(job.steps.len());
    for step in &job.steps {
        names.push(match &step.name {
            Some(word) => word.text.clone(),
            None => free_name(&mut taken, default_name(job, step)),
        });
    }
    Ok(names)
}

/// What an unnamed step does: `randread`, or `streams` where each does something else.
fn default_name(job: &Job, step: &Step) -> &'static str {
    if matches!(pick_streams(job, step), Some(Streams::List { .. })) {
        return "streams";
    }
    [&job.flags.keys, &step.keys, &job.defaults.keys]
        .iter()
        .find_map(|keys| keys.get(&Key::Rw))
        .and_then(|word| value::rw(&word.text).ok())
        .unwrap_or(Rw::RandRead)
        .name()
}

fn free_name(taken: &mut BTreeSet<String>, base: &str) -> String {
    let mut name = base.to_owned();
    let mut number = 2_u64;
    while !taken.insert(name.clone()) {
        name = format!("{base}-{number}");
        number += 1;
    }
    name
}

fn pick_streams<'a>(job: &'a Job, step: &'a Step) -> Option<&'a Streams> {
    job.flags
        .streams
        .as_ref()
        .or(step.streams.as_ref())
        .or(job.defaults.streams.as_ref())
}

fn resolve_step(job: &Job, one: &Expanded, lookup: &Lookup<'_>) -> Result<StepIntent, ConfigError> {
    let step = &one.step;
    let (reactors, cpus) = reactors(lookup)?;
    let streams = if one.origin.is_precondition {
        step.streams.as_ref()
    } else {
        pick_streams(job, step)
    };
    let (streams, striped, streams_place) = resolve_streams(streams, &reactors, lookup)?;
    if one.origin.is_precondition {
        only_writes(&streams)?;
    }
    let (mut runtime, mut ramp) = times(&streams, lookup)?;
    let cool_down = lookup.read(Key::CoolDown, value::time)?;
    let mut cool_down = cool_down.map_or(Nanos(0), |given| given.value);
    if let Some(quick) = job.quick {
        runtime = Some(runtime.map_or(quick, |time| time.min(quick)));
        ramp = ramp.min(Nanos(quick.0 / 10));
        cool_down = Nanos(0);
    }
    let stamp = lookup.read(Key::Stamp, value::stamp)?;
    let grace = lookup.read(Key::Grace, value::some_time)?;
    Ok(StepIntent {
        name: one.name.clone(),
        origin: one.origin.clone(),
        instead_of: step.instead_of.as_ref().map(|word| word.text.clone()),
        cool_down,
        steady: steady_seconds(lookup)?,
        streams,
        striped,
        streams_place,
        reactors,
        cpus,
        batch_submit: lookup.read(Key::BatchSubmit, value::iodepth)?,
        batch_complete_min: lookup.read(Key::BatchCompleteMin, value::iodepth)?,
        batch_complete_max: lookup.read(Key::BatchCompleteMax, value::iodepth)?,
        runtime,
        ramp,
        grace: grace.map_or(DEFAULT_GRACE, |given| given.value),
        max_errors: lookup
            .read(Key::MaxErrors, value::count)?
            .map(|given| given.value),
        stamp: stamp.map_or(StampChoice::Auto, |given| given.value),
        expect: lookup
            .read(Key::Expect, super::expect::parse)?
            .map_or_else(Vec::new, |given| given.value),
        seed: own_seed(job, step, lookup)?,
    })
}

/// What `instead_of` names are steps, as written, and not the step itself.
fn known_alternatives(job: &Job, steps: &[StepIntent]) -> Result<(), ConfigError> {
    for step in &job.steps {
        let Some(word) = &step.instead_of else {
            continue;
        };
        let own = step.name.as_ref().map(|name| name.text.as_str());
        let is_known = steps.iter().any(|other| other.origin.step == word.text);
        if !is_known || own == Some(word.text.as_str()) {
            return Err(ConfigError::Value {
                place: Place::named(&job.files, word.at, "instead_of"),
                why: format!("there is no other step `{}`", word.text),
            });
        }
    }
    Ok(())
}

fn only_writes(streams: &[StreamIntent]) -> Result<(), ConfigError> {
    let reads = |stream: &&StreamIntent| stream.rw.value.is_mixed() || !stream.rw.value.writes();
    match streams.iter().find(reads) {
        None => Ok(()),
        Some(stream) => Err(ConfigError::Value {
            place: stream.rw.place.clone(),
            why: "preconditioning writes; allowed: write, randwrite".to_owned(),
        }),
    }
}

/// fio's `steadystate` of one step.
fn steady_seconds(lookup: &Lookup<'_>) -> Result<Option<SteadySeconds>, ConfigError> {
    let keys = [Key::SteadystateDuration, Key::SteadystateRampTime];
    let Some(limit) = lookup.read(Key::Steadystate, value::steadystate)? else {
        lookup.ignore(&keys, "it belongs to `steadystate`, which is not given");
        return Ok(None);
    };
    let Some(window) = lookup.read(Key::SteadystateDuration, value::whole_seconds)? else {
        return Err(ConfigError::Conflict {
            place: limit.place,
            why: "it needs `steadystate_duration`, the length of its window, such as 30s"
                .to_owned(),
        });
    };
    let skip = lookup.read(Key::SteadystateRampTime, value::time)?;
    let second_ns = Nanos::from_s(1).0;
    let count = |time: Nanos| usize::try_from(time.0.div_ceil(second_ns)).unwrap_or(usize::MAX);
    Ok(Some(SteadySeconds {
        limit: limit.value,
        window_count: count(window.value),
        skip_count: skip.map_or(0, |given| count(given.value)),
    }))
}

/// A step's own `randseed`; a flag overrides it.
fn own_seed(job: &Job, step: &Step, lookup: &Lookup<'_>) -> Result<Option<u64>, ConfigError> {
    if job.flags.keys.contains_key(&Key::Randseed) || !step.keys.contains_key(&Key::Randseed) {
        return Ok(None);
    }
    Ok(lookup
        .read(Key::Randseed, value::seed)?
        .map(|seed| seed.value))
}

/// How many reactors, and their CPUs.
fn reactors(lookup: &Lookup<'_>) -> Result<(Given<u32>, Vec<u32>), ConfigError> {
    let cpus = lookup.read(Key::Cpus, value::cpus)?;
    let asked = lookup.read(Key::Reactors, value::reactors)?;
    let Some(cpus) = cpus else {
        let count = asked.unwrap_or_else(|| lookup.default_of(Key::Reactors, 1));
        return Ok((count, Vec::new()));
    };
    // A list has at most 8192 entries.
    let cpus_count = u32::try_from(cpus.value.len()).unwrap_or(u32::MAX);
    let count = asked.unwrap_or(Given {
        value: cpus_count,
        place: cpus.place.clone(),
    });
    if count.value != cpus_count {
        return Err(ConfigError::Conflict {
            place: count.place,
            why: format!(
                "{} reactors, but `cpus` names {cpus_count}; name one CPU for each reactor, or leave one of the two keys out",
                count.value
            ),
        });
    }
    Ok((count, cpus.value))
}

type StreamsOfStep = (Vec<StreamIntent>, bool, Given<u32>);

fn resolve_streams(
    choice: Option<&Streams>,
    reactors: &Given<u32>,
    lookup: &Lookup<'_>,
) -> Result<StreamsOfStep, ConfigError> {
    let place = |at: At| Place::named(lookup.files, at, "streams");
    match choice {
        Some(Streams::List { at, streams }) => {
            let mut list = Vec::with_capacity(streams.len());
            for keys in streams {
                list.push(stream(&with_stream(lookup, keys), true)?);
            }
            let count = u32::try_from(list.len()).unwrap_or(u32::MAX);
            let given = Given {
                value: count,
                place: place(*at),
            };
            Ok((list, false, given))
        }
        other => {
            let given = match other {
                Some(Streams::Count(word)) => Given {
                    value: value::streams(&word.text).map_err(|why| ConfigError::Value {
                        place: place(word.at),
                        why,
                    })?,
                    place: place(word.at),
                },
                _ => Given {
                    value: reactors.value,
                    place: place(At::Default),
                },
            };
            let one = stream(lookup, false)?;
            Ok((vec![one; given.value as usize], true, given))
        }
    }
}

/// The layers of one listed stream: flags, its own keys, the step, the defaults.
fn with_stream<'a>(lookup: &Lookup<'a>, keys: &'a Keys) -> Lookup<'a> {
    let mut inner = lookup.clone();
    inner.layers.insert(1, keys);
    inner
}

/// The window and the ramp. A window that nothing else ends has the default length; the default ramp
/// belongs to closed loops that run by time only: with an amount or a rate every I/O counts.
fn times(
    streams: &[StreamIntent],
    lookup: &Lookup<'_>,
) -> Result<(Option<Nanos>, Nanos), ConfigError> {
    let asked = lookup.read(Key::Runtime, value::some_time)?;
    let ramp = lookup.read(Key::RampTime, value::time)?;
    let all_end = streams.iter().all(StreamIntent::has_quota);
    let runtime = match asked {
        Some(given) => Some(given.value),
        None if all_end => None,
        None => Some(DEFAULT_RUNTIME),
    };
    let has_quota = streams.iter().any(StreamIntent::has_quota);
    let by_time_only = !has_quota && !streams.iter().any(|stream| stream.rate.is_some());
    let ramp = match (ramp, runtime) {
        (Some(given), _) if given.value.0 > 0 && has_quota => {
            return Err(ConfigError::Value {
                place: given.place,
                why: "an amount (number_ios, io_size, passes) counts from the first I/O, so there is no ramp; leave it out, or end the step by runtime alone".to_owned(),
            });
        }
        (Some(given), _) => given.value,
        (None, Some(runtime)) if by_time_only => Nanos(runtime.0 / 10).min(MAX_DEFAULT_RAMP),
        (None, _) => Nanos(0),
    };
    Ok((runtime, ramp))
}

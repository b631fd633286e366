//! Steps as they are run, from steps as they are written: sweeps and repetitions unrolled, every step with
//! a name of its own.

use super::error::ConfigError;
use super::key::Key;
use super::place::{At, Place, Word};
use super::plan::Origin;
use super::schema::{Fields, Job, Step, Streams};
use super::suggest::hint_for;
use super::value;
use std::collections::BTreeSet;

/// A job of more steps is a mistake: a cross product grows faster than one thinks.
const MAX_STEPS_COUNT: u64 = 10_000;
/// The name of the step that `precondition` makes.
pub(super) const PRECONDITION: &str = "precondition";

/// One step to run.
#[derive(Debug, Clone)]
pub(super) struct Expanded {
    /// Its own name.
    pub(super) name: String,
    /// Its keys, the swept ones with their values.
    pub(super) step: Step,
    /// Where it comes from.
    pub(super) origin: Origin,
}

/// Every step to run, in order. `names` are those of the steps as written.
pub(super) fn expand(job: &Job, names: Vec<String>) -> Result<Vec<Expanded>, ConfigError> {
    let mut all = Vec::new();
    if job.quick.is_none()
        && let Some(step) = &job.precondition
    {
        all.push(precondition(step));
    }
    let mut taken: BTreeSet<String> = BTreeSet::new();
    taken.extend(all.iter().map(|step| step.name.clone()));
    let mut count = 0_u64;
    for (step, written) in job.steps.iter().zip(names) {
        let axes = match sweep_of(job, step) {
            Some(sweep) => axes(job, step, sweep)?,
            None => Vec::new(),
        };
        let passes = passes(job, step)?;
        count = budget(job, step, &axes, passes, count)?;
        for pass_index in 0..passes {
            let mut numbers = vec![0_usize; axes.len()];
            loop {
                let one = point(step, &written, &axes, &numbers, (pass_index, passes));
                job.check_keys(&one.step.keys)?;
                if !taken.insert(one.name.clone()) {
                    return Err(same_name(job, step, &one.name));
                }
                all.push(one);
                if !next(&mut numbers, &axes) {
                    break;
                }
            }
        }
    }
    Ok(all)
}

/// A step of its own keys alone: what overrides the steps is not meant for it.
fn precondition(step: &Step) -> Expanded {
    let mut step = step.clone();
    let mut default = |key: Key, text: &str| {
        let at = At::Default;
        let text = text.to_owned();
        step.keys.entry(key).or_insert(Word { text, at });
    };
    // SNIA PTS 2.0.2: workload-independent preconditioning, twice the capacity in sequential 128 KiB.
    default(Key::Rw, "write");
    default(Key::Bs, "128k");
    default(Key::Iodepth, "32");
    if !step.keys.contains_key(&Key::IoSize) {
        let (text, at) = ("2".to_owned(), At::Default);
        step.keys.entry(Key::Passes).or_insert(Word { text, at });
    }
    Expanded {
        name: PRECONDITION.to_owned(),
        step,
        origin: Origin {
            step: PRECONDITION.to_owned(),
            is_precondition: true,
            ..Origin::default()
        },
    }
}

fn sweep_of<'a>(job: &'a Job, step: &'a Step) -> Option<&'a Fields> {
    job.flags
        .sweep
        .as_ref()
        .or(step.sweep.as_ref())
        .or(job.defaults.sweep.as_ref())
}

/// How often the step is run.
fn passes(job: &Job, step: &Step) -> Result<u32, ConfigError> {
    let word = job
        .flags
        .repeat
        .as_ref()
        .or(step.repeat.as_ref())
        .or(job.defaults.repeat.as_ref());
    let Some(word) = word else {
        return Ok(1);
    };
    value::repeat(&word.text).map_err(|why| ConfigError::Value {
        place: Place::named(&job.files, word.at, "repeat"),
        why,
    })
}

/// One swept key.
struct Axis<'a> {
    /// `None` for `streams`.
    key: Option<Key>,
    name: &'a str,
    values: &'a [Word],
}

fn axes<'a>(job: &Job, step: &Step, sweep: &'a Fields) -> Result<Vec<Axis<'a>>, ConfigError> {
    let mut axes: Vec<Axis<'_>> = Vec::new();
    for (name, values) in &sweep.entries {
        let place = Place::named(&job.files, name.at, &format!("sweep.{}", name.text));
        let key = Key::of(&name.text);
        if key.is_none() && name.text != "streams" {
            let names: Vec<&str> = Key::ALL.iter().map(|key| key.name()).collect();
            let hint = hint_for(&name.text, &names);
            return Err(ConfigError::UnknownKey { place, hint });
        }
        let why = if axes.iter().any(|axis| axis.name == name.text) {
            "the key is swept twice; keep one of them".to_owned()
        } else if let Some(fixed) = fixed_in(step, key) {
            format!("the step also fixes `{fixed}`; keep one of them")
        } else if let Some(flag) = fixed_in(&job.flags, key) {
            format!("--{flag} overrides it in every step; give --sweep {flag}=VALUE,... instead")
        } else if let Some(twice) = twice(values) {
            format!("`{twice}` stands twice; give each value once, and `repeat` to run it again")
        } else {
            for value in values {
                check_value(job, key, value)?;
            }
            axes.push(Axis {
                key,
                name: &name.text,
                values,
            });
            continue;
        };
        return Err(ConfigError::Conflict { place, why });
    }
    Ok(axes)
}

/// The key that a step gives one value and that another wants to sweep.
fn fixed_in(step: &Step, key: Option<Key>) -> Option<&'static str> {
    match key {
        None => step.streams.as_ref().map(|_| "streams"),
        Some(key) => {
            let rivals: &[Key] = match key {
                Key::Bs | Key::Bssplit => &[Key::Bs, Key::Bssplit],
                _ => &[key],
            };
            let fixed = rivals.iter().find(|key| step.keys.contains_key(key));
            fixed.map(|key| key.name())
        }
    }
}

fn twice(values: &[Word]) -> Option<&str> {
    let mut seen = BTreeSet::new();
    values
        .iter()
        .map(|word| word.text.as_str())
        .find(|text| !seen.insert(*text))
}

fn check_value(job: &Job, key: Option<Key>, word: &Word) -> Result<(), ConfigError> {
    let checked = match key {
        Some(key) => value::check(key, &word.text),
        None => value::streams(&word.text).map(drop),
    };
    checked.map_err(|why| ConfigError::Value {
        place: Place::named(&job.files, word.at, key.map_or("streams", Key::name)),
        why,
    })
}

/// Counts before anything is made: a product of millions must not be built to be refused.
fn budget(
    job: &Job,
    step: &Step,
    axes: &[Axis<'_>],
    passes: u32,
    so_far: u64,
) -> Result<u64, ConfigError> {
    let product = axes.iter().try_fold(u64::from(passes), |product, axis| {
        product.checked_mul(axis.values.len() as u64)
    });
    let total = product.and_then(|product| product.checked_add(so_far));
    if let Some(total) = total.filter(|total| *total <= MAX_STEPS_COUNT) {
        return Ok(total);
    }
    let at = match (sweep_of(job, step), &step.repeat) {
        (Some(sweep), _) => sweep.entries.first().map_or(sweep.at, |(name, _)| name.at),
        (None, Some(word)) => word.at,
        (None, None) => At::Default,
    };
    let parts: Vec<String> = axes
        .iter()
        .map(|axis| format!("{} values of {}", axis.values.len(), axis.name))
        .collect();
    let product = product.map_or_else(|| "more than 64 bits".to_owned(), |p| p.to_string());
    Err(ConfigError::Conflict {
        place: Place::named(&job.files, at, "sweep"),
        why: format!(
            "{} x {passes} passes are {product} steps; a job has at most {MAX_STEPS_COUNT}: sweep fewer values",
            parts.join(" x ")
        ),
    })
}

/// The next combination; the last key varies fastest.
fn next(numbers: &mut [usize], axes: &[Axis<'_>]) -> bool {
    for (number, axis) in numbers.iter_mut().zip(axes).rev() {
        *number += 1;
        if *number < axis.values.len() {
            return true;
        }
        *number = 0;
    }
    false
}

fn point(
    step: &Step,
    written: &str,
    axes: &[Axis<'_>],
    numbers: &[usize],
    (pass_index, passes_count): (u32, u32),
) -> Expanded {
    let mut one = Step {
        sweep: None,
        repeat: None,
        ..step.clone()
    };
    let mut values = Vec::with_capacity(axes.len());
    let mut name = written.to_owned();
    for (axis, number) in axes.iter().zip(numbers) {
        let word = &axis.values[*number];
        match axis.key {
            Some(key) => {
                one.keys.insert(key, word.clone());
            }
            None => one.streams = Some(Streams::Count(word.clone())),
        }
        let slot = format!("{{{}}}", axis.name);
        if name.contains(&slot) {
            name = name.replace(&slot, &word.text);
        } else {
            name += &format!(" {}={}", axis.name, word.text);
        }
        values.push((axis.name.to_owned(), word.text.clone()));
    }
    if passes_count > 1 {
        name += &format!(" #{}", pass_index + 1);
    }
    Expanded {
        name,
        step: one,
        origin: Origin {
            step: written.to_owned(),
            point: values,
            pass_index,
            is_precondition: false,
            dropped: Vec::new(),
        },
    }
}

fn same_name(job: &Job, step: &Step, name: &str) -> ConfigError {
    let at = step.name.as_ref().map_or(At::Default, |word| word.at);
    ConfigError::Value {
        place: Place::named(&job.files, at, "name"),
        why: format!(
            "`{name}` names two steps, once sweeps are unrolled; give each step its own name"
        ),
    }
}

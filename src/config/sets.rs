//! `--set NAME=VALUE`: a variable of the job file, a default, or one key of one step.

use super::error::ConfigError;
use super::key::{Key, Level};
use super::place::{At, Place, Word};
use super::schema::{Job, Step, Streams};
use super::suggest::hint_for;
use super::variables::is_name;

/// What the command line sets, and what of it was of use so far.
#[derive(Debug, Default)]
pub(super) struct Settings {
    entries: Vec<Setting>,
}

#[derive(Debug)]
struct Setting {
    name: String,
    value: String,
    is_used: bool,
}

impl Settings {
    /// Splits the texts of the command line.
    pub(super) fn of(sets: &[String]) -> Result<Self, ConfigError> {
        let mut settings = Self::default();
        for text in sets {
            let (name, value) = text.split_once('=').unwrap_or((text, ""));
            if name.is_empty() || !text.contains('=') {
                return Err(refuse(text, "write --set NAME=VALUE".to_owned()));
            }
            if settings.entries.iter().any(|entry| entry.name == name) {
                return Err(refuse(name, "it is set twice; set it once".to_owned()));
            }
            settings.entries.push(Setting {
                name: name.to_owned(),
                value: value.to_owned(),
                is_used: false,
            });
        }
        Ok(settings)
    }

    /// The value of a variable, noted as used.
    pub(super) fn variable(&mut self, name: &str) -> Option<String> {
        let entry = self.entries.iter_mut().find(|entry| entry.name == name)?;
        entry.is_used = true;
        Some(entry.value.clone())
    }
}

/// Sets what is no variable: `KEY` in the job or its defaults, `STEP.KEY` in the step of that name.
///
/// # Errors
/// [`ConfigError::UnknownKey`] for what is none of these, [`ConfigError::Value`] for a default that no step would take.
pub(super) fn apply(job: &mut Job, settings: &Settings) -> Result<(), ConfigError> {
    for entry in settings.entries.iter().filter(|entry| !entry.is_used) {
        let word = Word {
            text: entry.value.clone(),
            at: At::Set,
        };
        let (name, word) = (entry.name.as_str(), &word);
        if job.steps.iter().all(|step| gives(step, name)) && !job.steps.is_empty() {
            return Err(refuse(
                name,
                format!(
                    "every step gives it itself: give --set STEP.{name}={}, or the key as a flag, which holds for every step",
                    entry.value
                ),
            ));
        }
        let is_done = set_job(job, name, word) || set_step_key(&mut job.defaults, name, word) || {
            let parts = name
                .match_indices('.')
                .map(|(at, _)| (&name[..at], &name[at + 1..]));
            let mut parts = parts.collect::<Vec<_>>().into_iter().rev();
            parts.any(|(step, key)| set_in_step(job, step, key, word))
        };
        if !is_done {
            let hint = if is_name(name)
                && hint_for(name, Level::Defaults.names()).starts_with("allowed")
            {
                format!(
                    "no ${{{name}}} stands in the job, and it is no key; give a variable of the job, KEY or STEP.KEY"
                )
            } else {
                let key = name.rsplit('.').next().unwrap_or(name);
                format!(
                    "give a variable of the job, KEY or STEP.KEY; {}",
                    hint_for(key, Level::Defaults.names())
                )
            };
            return Err(ConfigError::UnknownKey {
                place: Place::named(&[], At::Set, name),
                hint,
            });
        }
    }
    Ok(())
}

/// Whether a step has this key of its own, so that a default gives way.
fn gives(step: &Step, name: &str) -> bool {
    let swept = || step.sweep.iter().flat_map(|sweep| &sweep.entries);
    match (name, Key::of(name)) {
        ("streams", _) => step.streams.is_some(),
        ("repeat", _) => step.repeat.is_some(),
        (_, Some(key)) => {
            step.keys.contains_key(&key) || swept().any(|(of, _)| Key::of(&of.text) == Some(key))
        }
        _ => false,
    }
}

fn refuse(name: &str, why: String) -> ConfigError {
    ConfigError::Value {
        place: Place::named(&[], At::Set, name),
        why,
    }
}

fn set_job(job: &mut Job, name: &str, word: &Word) -> bool {
    match name {
        "name" => job.name = Some(word.clone()),
        "device" => job.devices = vec![word.clone()],
        "backend" => job.backend = Some(word.clone()),
        _ => return false,
    }
    true
}

fn set_in_step(job: &mut Job, step: &str, key: &str, word: &Word) -> bool {
    let named = |each: &&mut Step| each.name.as_ref().is_some_and(|name| name.text == step);
    let step = job.steps.iter_mut().find(named);
    step.is_some_and(|step| set_step_key(step, key, word))
}

fn set_step_key(step: &mut Step, name: &str, word: &Word) -> bool {
    match (name, Key::of(name)) {
        ("streams", _) => step.streams = Some(Streams::Count(word.clone())),
        ("repeat", _) => step.repeat = Some(word.clone()),
        (_, Some(key)) => {
            step.keys.insert(key, word.clone());
        }
        _ => return false,
    }
    true
}

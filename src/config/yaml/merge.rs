//! A job file over the files it includes, and a walk over every value of a file.

use crate::config::error::ConfigError;
use crate::config::place::{At, Word};
use crate::config::schema::{Fields, Job, Keys, Step, Streams};

/// What is included, as if it stood before the file's own: single values give way to it, keys of
/// `defaults` one by one, lists are joined.
pub(super) fn merge(mut under: Job, over: Job) -> Job {
    under.name = over.name.or(under.name);
    under.about = over.about.or(under.about);
    under.notes.extend(over.notes);
    if !over.devices.is_empty() {
        under.devices = over.devices;
    }
    under.backend = over.backend.or(under.backend);
    under.precondition = over.precondition.or(under.precondition);
    under.steady = over.steady.or(under.steady);
    under.derive.extend(over.derive);
    under.steps.extend(over.steps);
    let defaults = &mut under.defaults;
    defaults.keys.extend(over.defaults.keys);
    defaults.streams = over.defaults.streams.or(defaults.streams.take());
    defaults.sweep = over.defaults.sweep.or(defaults.sweep.take());
    defaults.repeat = over.defaults.repeat.or(defaults.repeat.take());
    under
}

/// What is done to each value: the value, and the name of its key.
type Change<'a> = &'a mut dyn FnMut(&mut Word, &str) -> Result<(), ConfigError>;

/// Changes every value of one file; places without a value of their own get the file's index.
pub(super) fn each_word(
    job: &mut Job,
    file_index: u16,
    change: Change<'_>,
) -> Result<(), ConfigError> {
    let singles = [
        (&mut job.name, "name"),
        (&mut job.about, "about"),
        (&mut job.backend, "backend"),
    ];
    for (word, key) in singles {
        if let Some(word) = word {
            change(word, key)?;
        }
    }
    for word in &mut job.devices {
        change(word, "device")?;
    }
    for word in &mut job.notes {
        change(word, "notes")?;
    }
    let steps = job.steps.iter_mut().chain([&mut job.defaults]);
    for step in steps.chain(&mut job.precondition) {
        of_step(step, file_index, change)?;
    }
    for fields in job.derive.iter_mut().chain(&mut job.steady) {
        of_fields(fields, file_index, change)?;
    }
    Ok(())
}

fn of_step(step: &mut Step, file_index: u16, change: Change<'_>) -> Result<(), ConfigError> {
    let singles = [
        (&mut step.name, "name"),
        (&mut step.repeat, "repeat"),
        (&mut step.instead_of, "instead_of"),
    ];
    for (word, key) in singles {
        if let Some(word) = word {
            change(word, key)?;
        }
    }
    of_keys(&mut step.keys, change)?;
    match &mut step.streams {
        None => {}
        Some(Streams::Count(word)) => change(word, "streams")?,
        Some(Streams::List { at, streams }) => {
            relocate(at, file_index);
            for keys in streams {
                of_keys(keys, change)?;
            }
        }
    }
    if let Some(fields) = &mut step.sweep {
        of_fields(fields, file_index, change)?;
    }
    Ok(())
}

fn of_keys(keys: &mut Keys, change: Change<'_>) -> Result<(), ConfigError> {
    for (key, word) in keys {
        change(word, key.name())?;
    }
    Ok(())
}

fn of_fields(fields: &mut Fields, file_index: u16, change: Change<'_>) -> Result<(), ConfigError> {
    relocate(&mut fields.at, file_index);
    for (name, values) in &mut fields.entries {
        relocate(&mut name.at, file_index);
        for value in values {
            change(value, &name.text)?;
        }
    }
    Ok(())
}

fn relocate(at: &mut At, index: u16) {
    if let At::File { file_index, .. } = at {
        *file_index = index;
    }
}

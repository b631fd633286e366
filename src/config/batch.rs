//! How many commands are handed over and reaped at once.

use super::error::ConfigError;
use super::intent::StepIntent;
use super::key::{BATCH_KEYS, Key};
use super::place::{At, Given, Place, Word};
use super::schema::{Fields, Keys};
use crate::backend::Batch;
use crate::workload::StreamSpec;
use std::collections::BTreeMap;

/// Reads `batch` as the flag gives it: `submit=32,complete_min=1,complete_max=32`, any of the three.
///
/// # Errors
/// [`ConfigError::Value`] that names the parts.
pub fn batch_from_text(text: &str) -> Result<Keys, ConfigError> {
    let refuse = |why: String| ConfigError::Value {
        place: Place::named(&[], At::Flag, "batch"),
        why: format!("{why}; allowed: submit=N,complete_min=N,complete_max=N or some of them"),
    };
    let mut keys = Keys::new();
    for part in text.split(',') {
        let (name, value) = part
            .split_once('=')
            .ok_or_else(|| refuse(format!("`{part}` is not name=number")))?;
        let key = Key::of_batch(name)
            .filter(|_| BATCH_KEYS.contains(&name))
            .ok_or_else(|| refuse(format!("`{name}` is not a part of a batch")))?;
        if keys.insert(key, Word::flag(value)).is_some() {
            return Err(refuse(format!("`{name}` stands twice")));
        }
    }
    Ok(keys)
}

/// Reads `--sweep KEY=V,V,...`, as often as it is given; `None` where it is not.
///
/// # Errors
/// [`ConfigError::Value`] that says how it is written.
pub fn sweep_from_texts(texts: &[String]) -> Result<Option<Fields>, ConfigError> {
    let mut entries = Vec::with_capacity(texts.len());
    for text in texts {
        let (name, values) = text
            .split_once('=')
            .filter(|(name, values)| !name.is_empty() && !values.is_empty())
            .ok_or_else(|| ConfigError::Value {
                place: Place::named(&[], At::Flag, "sweep"),
                why: format!("`{text}` is not KEY=VALUE,VALUE,...; such as iodepth=1,4,16"),
            })?;
        entries.push((
            Word::flag(name),
            values.split(',').map(Word::flag).collect(),
        ));
    }
    Ok((!entries.is_empty()).then_some(Fields {
        at: At::Flag,
        entries,
    }))
}

/// Resolves `batch`. By default everything that is free is submitted, a poll waits for one, and takes
/// all there is.
pub(super) fn batch_of(
    step: &StepIntent,
    streams: &[StreamSpec],
    reactor_of: &[u32],
) -> Result<Batch, ConfigError> {
    let depth = deepest_queue(step, streams, reactor_of)?;
    let min = step.batch_complete_min.as_ref();
    let max = step.batch_complete_max.as_ref();
    if let Some(min) = min {
        refuse_above(min, depth, || {
            format!(
                "at most {depth} I/Os are in flight on one queue, so that {} never complete at once; allowed: 1 to {depth}",
                min.value
            )
        })?;
    }
    if let (Some(min), Some(max)) = (min, max) {
        refuse_above(min, max.value, || {
            format!(
                "{} is more than complete_max, which is {}; allowed: 1 to complete_max",
                min.value, max.value
            )
        })?;
    }
    // What is beyond the depth changes nothing, so that one batch serves steps of any depth.
    let within = |given: Option<&Given<u32>>| given.map_or(depth, |given| given.value.min(depth));
    Ok(Batch {
        submit: within(step.batch_submit.as_ref()),
        complete_min: min.map_or(1, |given| given.value),
        complete_max: within(max),
    })
}

fn refuse_above(
    given: &Given<u32>,
    most: u32,
    why: impl FnOnce() -> String,
) -> Result<(), ConfigError> {
    if given.value <= most {
        return Ok(());
    }
    Err(ConfigError::Conflict {
        place: given.place.clone(),
        why: why(),
    })
}

/// A queue belongs to one reactor and one device: it holds all their streams' I/Os.
fn deepest_queue(
    step: &StepIntent,
    streams: &[StreamSpec],
    reactor_of: &[u32],
) -> Result<u32, ConfigError> {
    let mut depths: BTreeMap<(u32, u32), u64> = BTreeMap::new();
    for (stream, reactor) in streams.iter().zip(reactor_of) {
        *depths.entry((*reactor, stream.device_index)).or_default() += u64::from(stream.depth);
    }
    let deepest = depths.values().copied().max().unwrap_or(1);
    u32::try_from(deepest).map_err(|_| ConfigError::Conflict {
        place: step.streams_place.place.clone(),
        why: format!("{deepest} I/Os in flight on one queue are too many; use fewer streams or a smaller iodepth"),
    })
}

//! Job files: the one module that names the YAML crate. It turns YAML into the schema, keeps the place
//! of every value, and says in our words what is wrong.

mod errors;
mod fields;
mod load;
mod merge;
mod words;

use super::error::ConfigError;
use super::place::Word;
use super::schema::{Fields, Job, Step};
use errors::{line_at, syntax, translate};
use fields::{Listed, Precondition};
pub use load::Loader;
use std::path::Path;
use words::{Defaults, Devices, given};

/// A job is a page of text; these keep a hostile or mistaken file from eating the machine.
const MAX_FILE_BYTES: usize = 4 << 20;
const MAX_NODES_COUNT: usize = 100_000;

impl Job {
    /// Reads a job file and what it includes; variables come from the environment.
    ///
    /// # Errors
    /// [`ConfigError::Read`], and everything [`Job::from_yaml`] refuses.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        Loader::default().load(path)
    }

    /// Reads a job from YAML text; `file` is the name that errors carry, and what an `include` is
    /// relative to.
    ///
    /// # Errors
    /// [`ConfigError::Syntax`], [`ConfigError::UnknownKey`], or [`ConfigError::Value`] where a text is
    /// not what its key allows.
    pub fn from_yaml(text: &str, file: &str) -> Result<Self, ConfigError> {
        Loader::default().from_text(text, file)
    }
}

/// One file as it is written, and what it includes.
struct Fragment {
    job: Job,
    includes: Vec<Word>,
}

/// Reads one file. `file` is the name that errors carry.
fn parse(text: &str, file: &str) -> Result<Fragment, ConfigError> {
    if text.len() > MAX_FILE_BYTES {
        return Err(syntax(
            file,
            line_at(1, 1),
            "",
            "the file is larger than 4 MiB; a job is a page of text",
        ));
    }
    let options = serde_yaml::options! {
        budget: serde_yaml::budget! { max_nodes: MAX_NODES_COUNT },
        with_snippet: false,
    };
    let raw: RawJob = serde_yaml::from_str_with_options(text, options)
        .map_err(|error| translate(error.without_snippet(), text, file))?;
    let job = Job {
        name: raw.name,
        about: raw.about,
        notes: raw.notes.unwrap_or_default().0,
        devices: raw.device.unwrap_or_default().0,
        backend: raw.backend,
        precondition: raw.precondition.map(|given| given.0),
        defaults: raw.defaults.unwrap_or_default().0,
        steps: raw.steps.unwrap_or_default(),
        steady: raw.steady,
        derive: raw.derive.unwrap_or_default(),
        ..Job::default()
    };
    Ok(Fragment {
        job,
        includes: raw.include.unwrap_or_default().0,
    })
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct RawJob {
    #[serde(default, deserialize_with = "given")]
    name: Option<Word>,
    #[serde(default, deserialize_with = "given")]
    about: Option<Word>,
    #[serde(default, deserialize_with = "given")]
    notes: Option<Listed>,
    #[serde(default, deserialize_with = "given")]
    include: Option<Listed>,
    #[serde(default, deserialize_with = "given")]
    device: Option<Devices>,
    #[serde(default, deserialize_with = "given")]
    backend: Option<Word>,
    #[serde(default, deserialize_with = "given")]
    precondition: Option<Precondition>,
    #[serde(default)]
    defaults: Option<Defaults>,
    #[serde(default)]
    steps: Option<Vec<Step>>,
    #[serde(default, deserialize_with = "given")]
    steady: Option<Fields>,
    #[serde(default)]
    derive: Option<Vec<Fields>>,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::config::key::{BATCH_KEYS, JOB_KEYS, Level};
    use serde_yaml::Error as YamlError;

    /// What serde itself lists as allowed where a key is unknown.
    fn expected_at(text: &str) -> Vec<&'static str> {
        match serde_yaml::from_str::<RawJob>(text)
            .err()
            .unwrap()
            .without_snippet()
        {
            YamlError::SerdeUnknownField { expected, .. } => expected.clone(),
            other => panic!("{other}"),
        }
    }

    #[test]
    fn serde_accepts_exactly_the_listed_keys() {
        assert_eq!(expected_at("bogus: 1\n"), JOB_KEYS);
        assert_eq!(
            expected_at("defaults: { bogus: 1 }\n"),
            Level::Defaults.names()
        );
        assert_eq!(expected_at("steps: [{ bogus: 1 }]\n"), Level::Step.names());
        assert_eq!(
            expected_at("steps: [{ streams: [{ bogus: 1 }] }]\n"),
            Level::Stream.names()
        );
        assert_eq!(
            expected_at("precondition: { bogus: 1 }\n"),
            Level::Precondition.names()
        );
        assert_eq!(
            expected_at("steps: [{ batch: { bogus: 1 } }]\n"),
            BATCH_KEYS
        );
    }
}

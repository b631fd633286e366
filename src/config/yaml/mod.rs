//! Job files: the one module that names the YAML crate. It turns YAML into the schema, keeps the place
//! of every value, and says in our words what is wrong.

mod errors;
mod words;

use super::error::ConfigError;
use super::place::{At, Word};
use super::schema::{Job, Step};
use errors::{line_at, syntax, translate};
use std::path::Path;
use words::{Defaults, Devices, given};

/// A job is a page of text; these keep a hostile or mistaken file from eating the machine.
const MAX_FILE_BYTES: usize = 4 << 20;
const MAX_NODES_COUNT: usize = 100_000;

impl Job {
    /// Reads a job file.
    ///
    /// # Errors
    /// [`ConfigError::Read`], and everything [`Job::from_yaml`] refuses.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let name = path.display().to_string();
        let bytes = std::fs::read(path).map_err(|error| ConfigError::Read {
            path: name.clone(),
            errno: crate::errno::Errno::of(&error),
        })?;
        let text = String::from_utf8(bytes).map_err(|error| {
            let line = 1 + error.as_bytes()[..error.utf8_error().valid_up_to()]
                .iter()
                .filter(|byte| **byte == b'\n')
                .count();
            syntax(
                &name,
                line_at(line as u64, 1),
                "",
                "the file is not UTF-8 text",
            )
        })?;
        Self::from_yaml(&text, &name)
    }

    /// Reads a job from YAML text; `file` is the name that errors carry.
    ///
    /// # Errors
    /// [`ConfigError::Syntax`], [`ConfigError::UnknownKey`], or [`ConfigError::Value`] where a text is
    /// not what its key allows.
    pub fn from_yaml(text: &str, file: &str) -> Result<Self, ConfigError> {
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
        let job = Self {
            file: Some(file.to_owned()),
            name: raw.name,
            devices: raw.device.unwrap_or_default().0,
            backend: raw.backend,
            defaults: raw.defaults.unwrap_or_default().0,
            steps: raw.steps.unwrap_or_default(),
            flags: Step::default(),
        };
        if job.steps.is_empty() {
            return Err(syntax(
                file,
                At::Default,
                "steps",
                "a job file needs at least one step, such as `steps: [{ rw: randread, bs: 4k, iodepth: 32 }]`",
            ));
        }
        job.check_words()?;
        Ok(job)
    }
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct RawJob {
    #[serde(default, deserialize_with = "given")]
    name: Option<Word>,
    #[serde(default, deserialize_with = "given")]
    device: Option<Devices>,
    #[serde(default, deserialize_with = "given")]
    backend: Option<Word>,
    #[serde(default)]
    defaults: Option<Defaults>,
    #[serde(default)]
    steps: Option<Vec<Step>>,
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
            expected_at("steps: [{ batch: { bogus: 1 } }]\n"),
            BATCH_KEYS
        );
    }
}

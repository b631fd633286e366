//! A job file with what it includes, its variables put in, and what the command line sets.

use super::errors::{line_at, syntax};
use super::merge::{each_word, merge};
use super::{Fragment, parse};
use crate::config::error::ConfigError;
use crate::config::place::{At, Place, Word};
use crate::config::schema::Job;
use crate::config::sets::{self, Settings};
use crate::config::variables::substitute;
use crate::errno::Errno;
use crate::sys::whole::{WholeError, read_whole};
use std::path::{Component, Path, PathBuf};

/// Files may include files so deep.
const MAX_DEPTH_COUNT: usize = 8;
/// A file is not read any further: a device or disk image that was named as a job has no end to speak of.
const MAX_BYTES: u64 = 16 << 20;
/// Files of one job, at most.
const MAX_FILES_COUNT: usize = 64;

/// How job files are read: where their texts come from, and what is put into them.
#[derive(Clone, Copy)]
pub struct Loader<'a> {
    /// Files that are part of the program, by name: `include` in one of them looks here.
    pub embedded: &'a [(&'a str, &'a str)],
    /// Values of variables.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// `--set NAME=VALUE`, as given.
    pub sets: &'a [String],
}

impl Default for Loader<'_> {
    /// Files from disk, variables from the environment.
    fn default() -> Self {
        Self {
            embedded: &[],
            variable: &|name| std::env::var(name).ok(),
            sets: &[],
        }
    }
}

impl std::fmt::Debug for Loader<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Loader")
            .field("sets", &self.sets)
            .finish_non_exhaustive()
    }
}

/// What is known while files are read.
struct State {
    files: Vec<String>,
    /// The files that are being read, the outermost first.
    open: Vec<PathBuf>,
    settings: Settings,
}

impl Loader<'_> {
    /// Reads a job file, or an embedded one of this name.
    ///
    /// # Errors
    /// [`ConfigError::Read`], and everything [`Job::from_yaml`] refuses.
    pub fn load(&self, path: &Path) -> Result<Job, ConfigError> {
        let name = path.display().to_string();
        let text = self.text_of(path)?;
        self.from_text(&text, &name)
    }

    /// Reads a job from text; see [`Job::from_yaml`].
    ///
    /// # Errors
    /// See [`Job::from_yaml`].
    pub fn from_text(&self, text: &str, file: &str) -> Result<Job, ConfigError> {
        let mut state = State {
            files: Vec::new(),
            open: Vec::new(),
            settings: Settings::of(self.sets)?,
        };
        let mut job = self.read(text, file, &mut state)?;
        job.files = state.files;
        if job.steps.is_empty() {
            return Err(syntax(
                file,
                At::Default,
                "steps",
                "a job file needs at least one step, such as `steps: [{ rw: randread, bs: 4k, iodepth: 32 }]`",
            ));
        }
        sets::apply(&mut job, &state.settings)?;
        job.check_words()?;
        Ok(job)
    }

    /// One file and, under it, what it includes.
    fn read(&self, text: &str, file: &str, state: &mut State) -> Result<Job, ConfigError> {
        let Fragment {
            mut job,
            mut includes,
        } = parse(text, file)?;
        // At most `MAX_FILES_COUNT`.
        let file_index = u16::try_from(state.files.len()).unwrap_or(u16::MAX);
        state.files.push(file.to_owned());
        let files = state.files.clone();
        let settings = &mut state.settings;
        let mut finish = |word: &mut Word, key: &str| {
            if let At::File {
                file_index: index, ..
            } = &mut word.at
            {
                *index = file_index;
            }
            word.text = substitute(&word.text, &mut |name| {
                settings.variable(name).or_else(|| (self.variable)(name))
            })
            .map_err(|why| ConfigError::Value {
                place: Place::named(&files, word.at, key),
                why,
            })?;
            Ok(())
        };
        each_word(&mut job, file_index, &mut finish)?;
        for word in &mut includes {
            finish(word, "include")?;
        }
        let mut whole = Job::default();
        state.open.push(plain(Path::new(file)));
        for word in &includes {
            let part = self.include(word, file, state)?;
            whole = merge(whole, part);
        }
        state.open.pop();
        Ok(merge(whole, job))
    }

    fn include(&self, word: &Word, file: &str, state: &mut State) -> Result<Job, ConfigError> {
        let refuse = |why: String, files: &[String]| ConfigError::Syntax {
            place: Place::named(files, word.at, "include"),
            why,
        };
        let folder = Path::new(file).parent().unwrap_or(Path::new(""));
        let path = folder.join(&word.text);
        if state.open.contains(&plain(&path)) {
            let mut chain: Vec<_> = state.open.iter().map(|p| p.display().to_string()).collect();
            chain.push(path.display().to_string());
            let why = format!("the files include each other: {}", chain.join(" > "));
            return Err(refuse(why, &state.files));
        }
        if state.open.len() >= MAX_DEPTH_COUNT || state.files.len() >= MAX_FILES_COUNT {
            let why = format!(
                "files may include files {MAX_DEPTH_COUNT} deep, and a job has at most {MAX_FILES_COUNT}"
            );
            return Err(refuse(why, &state.files));
        }
        let text = self.text_of(&path).map_err(|error| {
            let why = match error {
                ConfigError::NoJob { path, why } => format!("{path} is no job file: {why}"),
                other => other.to_string(),
            };
            refuse(why, &state.files)
        })?;
        self.read(&text, &path.display().to_string(), state)
    }

    fn text_of(&self, path: &Path) -> Result<String, ConfigError> {
        let name = path.display().to_string();
        let known = plain(path);
        if let Some((_, text)) = self
            .embedded
            .iter()
            .find(|(name, _)| Path::new(name) == known)
        {
            return Ok((*text).to_owned());
        }
        let no_job = |why: String| ConfigError::NoJob {
            path: name.clone(),
            why,
        };
        let bytes = read_whole(path, MAX_BYTES, |_| true).map_err(|error| match error {
            WholeError::Io(error) => ConfigError::Read {
                path: name.clone(),
                errno: Errno::of(&error),
            },
            other => no_job(other.to_string()),
        })?;
        if bytes.contains(&0) {
            return Err(no_job("it is not text".to_owned()));
        }
        String::from_utf8(bytes).map_err(|error| {
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
        })
    }
}

/// A path without `.` and with `..` taken where that can be told from the text alone.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir
                if matches!(plain.components().next_back(), Some(Component::Normal(_))) =>
            {
                plain.pop();
            }
            other => plain.push(other),
        }
    }
    plain
}

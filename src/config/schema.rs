//! The job as it is written: every value still a text with its place. Mirrors the YAML; decides nothing.

use super::error::ConfigError;
use super::key::{JOB_KEYS, Key};
use super::place::{At, Place, Word};
use super::value;
use crate::units::Nanos;
use std::collections::BTreeMap;

/// The single-valued keys of one mapping.
pub type Keys = BTreeMap<Key, Word>;

/// A job as written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Job {
    /// The job file as errors name it, then what it includes; empty for a job made of flags alone.
    pub files: Vec<String>,
    /// `name`
    pub name: Option<Word>,
    /// `about`: what the job measures, in a line.
    pub about: Option<Word>,
    /// `notes`: what a reader of the result has to know of the method.
    pub notes: Vec<Word>,
    /// `device`, one or several.
    pub devices: Vec<Word>,
    /// `backend`
    pub backend: Option<Word>,
    /// What every step takes unless it says otherwise.
    pub defaults: Step,
    /// The steps. A job of flags alone has one, empty.
    pub steps: Vec<Step>,
    /// Flags of the command line: they override every step and every stream.
    pub flags: Step,
    /// `precondition`: what is written before the first step, by its own keys alone.
    pub precondition: Option<Step>,
    /// `steady`: the steps are one round, and rounds go on until they are steady.
    pub steady: Option<Fields>,
    /// `derive`: figures of the whole.
    pub derive: Vec<Fields>,
    /// A first look: no window longer than this, one round, no preconditioning, no cooling down.
    pub quick: Option<Nanos>,
}

/// A mapping whose entries have one value or several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fields {
    /// Where it begins.
    pub at: At,
    /// Names in order, each with its values.
    pub entries: Vec<(Word, Vec<Word>)>,
}

/// One entry of `steps`, and also `defaults` and the flags.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Step {
    /// `name`; steps only.
    pub name: Option<Word>,
    /// Everything with one value.
    pub keys: Keys,
    /// `streams`
    pub streams: Option<Streams>,
    /// `sweep`: keys with several values each; the step is run for every combination.
    pub sweep: Option<Fields>,
    /// `repeat`: how often the step, with all of its sweep, is run.
    pub repeat: Option<Word>,
    /// `instead_of`: run only where the step of this name was left out.
    pub instead_of: Option<Word>,
}

/// `streams`: how many alike, or one mapping for each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Streams {
    /// So many, alike.
    Count(Word),
    /// One by one.
    List {
        /// Where the list begins.
        at: At,
        /// The keys of each.
        streams: Vec<Keys>,
    },
}

/// How commands are to reach the devices, as asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BackendChoice {
    /// The best that fits the device.
    #[default]
    Auto,
    /// Completes at once.
    Null,
    /// A simulated device.
    Sim,
    /// The kernel's block layer through io_uring.
    Uring,
    /// NVMe passthrough through io_uring.
    UringCmd,
    /// SCSI passthrough.
    Sg,
    /// SPDK.
    Spdk,
}

impl BackendChoice {
    /// Every choice.
    pub const ALL: [Self; 7] = [
        Self::Auto,
        Self::Null,
        Self::Sim,
        Self::Uring,
        Self::UringCmd,
        Self::Sg,
        Self::Spdk,
    ];

    /// The name in job files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Null => "null",
            Self::Sim => "sim",
            Self::Uring => "uring",
            Self::UringCmd => "uring-cmd",
            Self::Sg => "sg",
            Self::Spdk => "spdk",
        }
    }
}

impl Job {
    /// A job with one step that takes everything from flags and defaults.
    #[must_use]
    pub fn of_flags() -> Self {
        Self {
            steps: vec![Step::default()],
            ..Self::default()
        }
    }

    /// The devices as named, in order.
    ///
    /// # Errors
    /// [`ConfigError::Value`] where a name is empty or stands twice.
    pub fn device_names(&self) -> Result<Vec<&str>, ConfigError> {
        let mut names: Vec<&str> = Vec::new();
        for word in &self.devices {
            let name = word.text.as_str();
            let why = if name.is_empty() {
                "it has no value; name a device, such as a block device node, a file, a PCI address, sim or \"null\" (in quotes: a bare null is YAML for nothing)".to_owned()
            } else if names.contains(&name) {
                format!("`{name}` is named twice; name each device once")
            } else {
                names.push(name);
                continue;
            };
            return Err(self.refuse(word, "device", why));
        }
        Ok(names)
    }

    /// How commands are to reach the devices.
    ///
    /// # Errors
    /// [`ConfigError::Value`] that lists the names.
    pub fn backend_choice(&self) -> Result<BackendChoice, ConfigError> {
        let Some(word) = &self.backend else {
            return Ok(BackendChoice::Auto);
        };
        value::backend(&word.text).map_err(|why| self.refuse(word, "backend", why))
    }

    fn refuse(&self, word: &Word, key: &str, why: String) -> ConfigError {
        debug_assert!(JOB_KEYS.contains(&key), "a key of the job itself");
        ConfigError::Value {
            place: Place::named(&self.files, word.at, key),
            why,
        }
    }

    /// Puts every text through the reader of its key, used or not: a mistake in a default that every
    /// step overrides is still a mistake.
    ///
    /// # Errors
    /// [`ConfigError::Value`], the first in order of keys.
    pub(super) fn check_words(&self) -> Result<(), ConfigError> {
        let lists = [&self.defaults, &self.flags]
            .into_iter()
            .chain(&self.steps)
            .chain(&self.precondition);
        for step in lists {
            self.check_keys(&step.keys)?;
            if let Some(Streams::List { streams, .. }) = &step.streams {
                for keys in streams {
                    self.check_keys(keys)?;
                }
            }
        }
        Ok(())
    }

    pub(super) fn check_keys(&self, keys: &Keys) -> Result<(), ConfigError> {
        let files = &self.files;
        if let (Some(bs), Some(bssplit)) = (keys.get(&Key::Bs), keys.get(&Key::Bssplit)) {
            let (later, key) = if bs.at > bssplit.at {
                (bs, Key::Bs)
            } else {
                (bssplit, Key::Bssplit)
            };
            return Err(ConfigError::Conflict {
                place: Place::of(files, later.at, key),
                why: "`bs` and `bssplit` exclude each other; keep one of them".to_owned(),
            });
        }
        for (key, word) in keys {
            value::check(*key, &word.text).map_err(|why| ConfigError::Value {
                place: Place::of(files, word.at, *key),
                why,
            })?;
        }
        Ok(())
    }
}

//! One folder a run: what was to be run, and every finished step on disk at once. A run that was cut off
//! goes on from there.
//!
//! `run.json` says what is run on which device by which program, `steps/0001-name.json` hold the finished
//! steps. They are written beside, made durable and then renamed: whole or not at all.

use super::run_folder::is_free;
use crate::backend::DeviceFacts;
use crate::record::{Outcome, Step};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Version of the layout of `run.json`.
pub const RUN_SCHEMA_VERSION: u32 = 1;
pub(super) const RUN_FILE: &str = "run.json";
pub(super) const STEPS_FOLDER: &str = "steps";
/// Mode of new files, before the umask.
const NEW_FILE_MODE: u32 = 0o666;

/// Why a run cannot be kept, or not be gone on with.
#[derive(Debug, thiserror::Error)]
pub enum ResumeError {
    /// A file or folder does not do what is needed.
    #[error("{path}: {what}: {why}")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What was tried.
        what: &'static str,
        /// Why it failed.
        why: io::Error,
    },
    /// There is a run in it already.
    #[error("{0} holds a run already; go on with it by --resume {0}, or name another folder")]
    Taken(String),
    /// There is something else in it that would be replaced, or taken for a part of the run.
    #[error("{folder} holds {name}, which is not of a run: name an empty folder, or a new one")]
    Foreign {
        /// The folder.
        folder: String,
        /// The file in it.
        name: String,
    },
    /// Found before anything runs: there is no such folder, and none can be made.
    #[error("nothing can be kept in {path}: {why}; name a folder you may write to")]
    NoFolder {
        /// The folder.
        path: String,
        /// Why.
        why: io::Error,
    },
    /// There is no run in it.
    #[error("{0} holds no run: there is no run.json in it")]
    NoRun(String),
    /// A file in it is not what it should be.
    #[error("{path} cannot be read as a part of a run: {why}")]
    Garbled {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// It is another run.
    #[error("{folder} cannot be gone on with: {what} was {was}, and is now {is}")]
    Another {
        /// The folder.
        folder: String,
        /// What differs.
        what: String,
        /// As the folder has it.
        was: String,
        /// As it is now.
        is: String,
    },
}

impl ResumeError {
    /// 2 for what the user can mend, 1 for what the disk does.
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Io { .. } => 1,
            _ => 2,
        }
    }
}

/// A device as far as a run that goes on must find it again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceMark {
    /// As it was named.
    pub path: String,
    /// World-wide identity.
    pub identity: Option<String>,
    /// Model.
    pub model: Option<String>,
    /// Serial number.
    pub serial: Option<String>,
    /// Firmware.
    pub firmware: Option<String>,
    /// Size.
    pub capacity_bytes: u64,
    /// Logical block.
    pub logical_block_bytes: u32,
}

impl DeviceMark {
    /// The mark of an opened device.
    #[must_use]
    pub fn of(facts: &DeviceFacts) -> Self {
        Self {
            path: facts.path.clone(),
            identity: facts.identity.clone(),
            model: facts.model.clone(),
            serial: facts.serial.clone(),
            firmware: facts.firmware.clone(),
            capacity_bytes: facts.capacity.0,
            logical_block_bytes: facts.logical_block.bytes(),
        }
    }
}

/// What a run is: `run.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunMark {
    /// [`RUN_SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Version of the program.
    pub version: String,
    /// The source it was built from.
    pub git_commit: String,
    /// The backend.
    pub backend: String,
    /// The words of the command line. Leave to write that stands in them is never taken up again.
    pub words: Vec<String>,
    /// Where it was started: what relative paths are relative to.
    pub folder: Option<PathBuf>,
    /// The seed.
    pub seed: u64,
    /// The devices.
    pub devices: Vec<DeviceMark>,
    /// The resolved job.
    pub plan: Value,
}

impl RunMark {
    /// Whether a run that is about to begin is this one.
    ///
    /// # Errors
    /// [`ResumeError::Another`] that names the first difference.
    pub fn check(&self, now: &Self, folder: &Path) -> Result<(), ResumeError> {
        let another = |what: String, was: String, is: String| ResumeError::Another {
            folder: folder.display().to_string(),
            what,
            was,
            is,
        };
        let versions = [
            (
                "the layout",
                self.schema_version.to_string(),
                now.schema_version.to_string(),
            ),
            (
                "the program's version",
                self.version.clone(),
                now.version.clone(),
            ),
            (
                "the program's source",
                self.git_commit.clone(),
                now.git_commit.clone(),
            ),
            ("the backend", self.backend.clone(), now.backend.clone()),
        ];
        for (what, was, is) in versions {
            if was != is {
                return Err(another(what.to_owned(), was, is));
            }
        }
        if self.devices.len() != now.devices.len() {
            let count = |mark: &Self| mark.devices.len().to_string();
            return Err(another(
                "the number of devices".to_owned(),
                count(self),
                count(now),
            ));
        }
        for (was, is) in self.devices.iter().zip(&now.devices) {
            if let Some((field, was_text, is_text)) = device_difference(was, is) {
                return Err(another(
                    format!("{field} of {}", was.path),
                    was_text,
                    is_text,
                ));
            }
        }
        match plan_difference(&self.plan, &now.plan) {
            Some((what, was, is)) => Err(another(what, was, is)),
            None => Ok(()),
        }
    }
}

fn device_difference(was: &DeviceMark, is: &DeviceMark) -> Option<(&'static str, String, String)> {
    let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "none".to_owned());
    let fields = [
        ("the path", was.path.clone(), is.path.clone()),
        ("the identity", text(&was.identity), text(&is.identity)),
        ("the model", text(&was.model), text(&is.model)),
        ("the serial number", text(&was.serial), text(&is.serial)),
        ("the firmware", text(&was.firmware), text(&is.firmware)),
        (
            "the capacity",
            was.capacity_bytes.to_string(),
            is.capacity_bytes.to_string(),
        ),
        (
            "the logical block",
            was.logical_block_bytes.to_string(),
            is.logical_block_bytes.to_string(),
        ),
    ];
    fields.into_iter().find(|(_, was, is)| was != is)
}

/// The first difference of two resolved jobs, in words.
fn plan_difference(was: &Value, is: &Value) -> Option<(String, String, String)> {
    if was == is {
        return None;
    }
    let steps = |plan: &Value| plan["steps"].as_array().cloned().unwrap_or_default();
    let (old, new) = (steps(was), steps(is));
    if old.len() != new.len() {
        let count = |steps: &[Value]| steps.len().to_string();
        return Some((
            "the job's number of steps".to_owned(),
            count(&old),
            count(&new),
        ));
    }
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    for (old, new) in old.iter().zip(&new) {
        if let Some(key) = differing_key(old, new) {
            let what = format!("the job's step {}: {key}", text(&old["name"]));
            return Some((what, text(&old[&key]), text(&new[&key])));
        }
    }
    let key = differing_key(was, is).unwrap_or_else(|| "plan".to_owned());
    Some((format!("the job: {key}"), text(&was[&key]), text(&is[&key])))
}

fn differing_key(was: &Value, is: &Value) -> Option<String> {
    let (was, is) = (was.as_object()?, is.as_object()?);
    let mut keys = was.keys().chain(is.keys());
    keys.find(|key| was.get(*key) != is.get(*key)).cloned()
}

/// Keeps finished steps.
pub trait Keeper {
    /// The step of this number as an earlier run has left it; `None` where it is to be run.
    ///
    /// # Errors
    /// [`ResumeError::Garbled`], [`ResumeError::Another`].
    fn kept(&mut self, number: usize, name: &str) -> Result<Option<Step>, ResumeError>;

    /// Keeps a step that has ended.
    ///
    /// # Errors
    /// [`ResumeError::Io`].
    fn keep(&mut self, number: usize, step: &Step) -> Result<(), ResumeError>;
}

/// Keeps nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoKeeper;

impl Keeper for NoKeeper {
    fn kept(&mut self, _number: usize, _name: &str) -> Result<Option<Step>, ResumeError> {
        Ok(None)
    }

    fn keep(&mut self, _number: usize, _step: &Step) -> Result<(), ResumeError> {
        Ok(())
    }
}

/// The folder of a run.
#[derive(Debug, Clone)]
pub struct Folder {
    path: PathBuf,
}

impl Folder {
    /// Begins a run in a new folder, or in one without a run.
    ///
    /// # Errors
    /// Those of [`is_free`]; [`ResumeError::Io`].
    pub fn begin(path: &Path, mark: &RunMark) -> Result<Self, ResumeError> {
        is_free(path)?;
        let folder = Self {
            path: path.to_owned(),
        };
        let steps = folder.steps();
        fs::create_dir_all(&steps).map_err(|why| failed(&steps, "cannot make the folder", why))?;
        let text = format!("{:#}\n", serde_json::to_value(mark).unwrap_or_default());
        folder.write(RUN_FILE, &text)?;
        Ok(folder)
    }

    /// Opens the folder of an earlier run.
    ///
    /// # Errors
    /// [`ResumeError::NoRun`], [`ResumeError::Garbled`], [`ResumeError::Io`].
    pub fn open(path: &Path) -> Result<(Self, RunMark), ResumeError> {
        let file = path.join(RUN_FILE);
        let text = match fs::read(&file) {
            Ok(text) => text,
            Err(why) if why.kind() == io::ErrorKind::NotFound => {
                return Err(ResumeError::NoRun(path.display().to_string()));
            }
            Err(why) => return Err(failed(&file, "cannot read", why)),
        };
        let mark = serde_json::from_slice(&text).map_err(|error| garbled(&file, &error))?;
        let folder = Self {
            path: path.to_owned(),
        };
        Ok((folder, mark))
    }

    /// Writes a file of the folder, whole or not at all.
    ///
    /// # Errors
    /// [`ResumeError::Io`].
    pub fn write(&self, name: &str, text: &str) -> Result<(), ResumeError> {
        write_whole(&self.path.join(name), text)
    }

    fn steps(&self) -> PathBuf {
        self.path.join(STEPS_FOLDER)
    }

    /// The file of the step of this number, whatever its name.
    fn find(&self, number: usize) -> Result<Option<PathBuf>, ResumeError> {
        let steps = self.steps();
        let prefix = format!("{number:05}-");
        let entries = fs::read_dir(&steps).map_err(|why| failed(&steps, "cannot list", why))?;
        for entry in entries {
            let path = entry
                .map_err(|why| failed(&steps, "cannot list", why))?
                .path();
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            if name.starts_with(&prefix) && name.ends_with(".json") {
                return Ok(Some(path));
            }
        }
        Ok(None)
    }
}

impl Keeper for Folder {
    fn kept(&mut self, number: usize, name: &str) -> Result<Option<Step>, ResumeError> {
        let Some(path) = self.find(number)? else {
            return Ok(None);
        };
        let text = fs::read(&path).map_err(|why| failed(&path, "cannot read", why))?;
        let step: Step = serde_json::from_slice(&text).map_err(|error| garbled(&path, &error))?;
        if step.name != name {
            return Err(ResumeError::Another {
                folder: self.path.display().to_string(),
                what: format!("step {number}"),
                was: step.name,
                is: name.to_owned(),
            });
        }
        // What failed is tried again.
        Ok((step.status == Outcome::Finished).then_some(step))
    }

    fn keep(&mut self, number: usize, step: &Step) -> Result<(), ResumeError> {
        let path = self
            .steps()
            .join(format!("{number:05}-{}.json", slug(&step.name)));
        let mut text =
            serde_json::to_string_pretty(step).map_err(|error| garbled(&path, &error))?;
        text.push('\n');
        write_whole(&path, &text)
    }
}

/// Letters, digits and dashes of a name; the step's own name is in the file.
fn slug(name: &str) -> String {
    let mut slug = String::new();
    for letter in name.chars().take(80) {
        if letter.is_ascii_alphanumeric() {
            slug.push(letter.to_ascii_lowercase());
        } else if !slug.ends_with('-') && !slug.is_empty() {
            slug.push('-');
        }
    }
    let slug = slug.trim_end_matches('-');
    if slug.is_empty() {
        "step".to_owned()
    } else {
        slug.to_owned()
    }
}

/// Writes beside, makes it durable, renames, and makes the name durable.
fn write_whole(path: &Path, text: &str) -> Result<(), ResumeError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let write = || -> io::Result<()> {
        let mut file = tempfile::Builder::new()
            .prefix(".part-")
            .permissions(Permissions::from_mode(NEW_FILE_MODE))
            .tempfile_in(folder)?;
        file.write_all(text.as_bytes())?;
        file.as_file().sync_all()?;
        file.persist(path).map_err(|error| error.error)?;
        File::open(folder)?.sync_all()
    };
    write().map_err(|why| failed(path, "cannot write", why))
}

fn failed(path: &Path, what: &'static str, why: io::Error) -> ResumeError {
    ResumeError::Io {
        path: path.to_owned(),
        what,
        why,
    }
}

fn garbled(path: &Path, error: &serde_json::Error) -> ResumeError {
    ResumeError::Garbled {
        path: path.to_owned(),
        why: error.to_string(),
    }
}

#[cfg(test)]
#[path = "resume_tests.rs"]
mod tests;

//! What a result must not replace: what is read, what is measured, what is in use. One judge for every verb that
//! writes a file.

use super::output::Output;
use crate::config::Job;
use crate::session::guard::in_use;
use crate::sysfs::Sysfs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// What an input is that is measured.
pub(super) const MEASURED: &str = "it is what is measured";

/// The files of a job, those that it includes among them.
pub(super) fn files_of(job: &Job) -> impl Iterator<Item = (&Path, &'static str)> {
    let files = job.files.iter();
    files.map(|name| (Path::new(name), "it is read as the job"))
}

/// A file that the result must not go into. Found before anything runs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the result cannot go into {path}: {why}; name another with -o")]
pub(super) struct Clash {
    /// The file.
    path: String,
    /// What it is.
    why: String,
}

/// Judges where `-o` leads against everything that the verb reads, each with what it is; and whether a loop
/// device, swap or a lock is on that file.
///
/// # Errors
/// [`Clash`].
pub(super) fn judge<'a>(
    output: &Output,
    inputs: impl IntoIterator<Item = (&'a Path, &'static str)>,
    sysfs: &Sysfs,
) -> Result<(), Clash> {
    let mut inputs = inputs.into_iter();
    if let Some((path, why)) = inputs.find(|(path, _)| output.is(path)) {
        return Err(Clash::new(path, why));
    }
    output.path().map_or(Ok(()), |path| judge_file(path, sysfs))
}

/// The same for files of these names in a folder.
///
/// # Errors
/// [`Clash`].
pub(super) fn judge_folder(
    folder: &Path,
    names: &[&str],
    inputs: &[(&Path, &'static str)],
    sysfs: &Sysfs,
) -> Result<(), Clash> {
    let id = |path: &Path| Some(std::fs::metadata(path).ok()?).map(|it| (it.dev(), it.ino()));
    for path in names.iter().map(|name| folder.join(name)) {
        let own = id(&path);
        if let Some((_, why)) = inputs.iter().find(|(it, _)| own.is_some() && id(it) == own) {
            return Err(Clash::new(&path, why));
        }
        judge_file(&path, sysfs)?;
    }
    Ok(())
}

/// Whether something uses a file that is there.
fn judge_file(path: &Path, sysfs: &Sysfs) -> Result<(), Clash> {
    let used = in_use(sysfs, path);
    match used.first().filter(|_| path.is_file()) {
        Some(why) => Err(Clash::new(path, why)),
        None => Ok(()),
    }
}

impl Clash {
    fn new(path: &Path, why: &str) -> Self {
        Self {
            path: path.display().to_string(),
            why: why.to_owned(),
        }
    }
}

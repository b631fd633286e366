//! What a result must not replace: what is read, what is measured, what is in use. One judge for every verb that
//! writes a file.

use super::Output;
use crate::config::Job;
use crate::session::guard::in_use;
use crate::sysfs::Sysfs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// What an input is that is measured.
pub(in crate::cli) const MEASURED: &str = "it is what is measured";

/// The files of a job, those that it includes among them.
pub(in crate::cli) fn files_of(job: &Job) -> impl Iterator<Item = (&Path, &'static str)> {
    let files = job.files.iter();
    files.map(|name| (Path::new(name), "it is read as the job"))
}

/// A file that the result must not go into. Found before anything runs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the result cannot go into {path}: {why}; name another with -o")]
pub(in crate::cli) struct Clash {
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
pub(in crate::cli) fn judge<'a>(
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
pub(in crate::cli) fn judge_folder(
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// A machine on which one loop device stands on `image`.
    fn with_loop_on(image: &Path) -> (tempfile::TempDir, Sysfs) {
        let root = tempfile::tempdir().unwrap();
        let file = |path: &Path, text: &str| {
            let path = root.path().join(path.strip_prefix("/").unwrap());
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let own = Path::new("/sys/class/block/loop0");
        file(&own.join("dev"), "7:0");
        file(&own.join("loop/backing_file"), &image.display().to_string());
        file(Path::new("/proc/self/mountinfo"), "");
        file(
            Path::new("/proc/swaps"),
            "Filename Type Size Used Priority\n",
        );
        file(Path::new("/proc/locks"), "");
        file(image, "what is on the image, more than a node would have");
        let sysfs = Sysfs::at(std::fs::canonicalize(root.path()).unwrap());
        (root, sysfs)
    }

    #[test]
    fn a_file_behind_a_loop_device_takes_no_result() {
        let folder = tempfile::tempdir().unwrap();
        let dir = std::fs::canonicalize(folder.path()).unwrap();
        let (image, other) = (dir.join("image"), dir.join("other"));
        std::fs::write(&image, "").unwrap();
        std::fs::write(&other, "").unwrap();
        let (root, sysfs) = with_loop_on(&image);
        let copy = root.path().join(other.strip_prefix("/").unwrap());
        std::fs::write(copy, "a file that nothing stands on, like any other").unwrap();
        let link = dir.join("link");
        std::os::unix::fs::symlink(&image, &link).unwrap();
        let judged = |path: &Path| judge(&Output::open(Some(path)).unwrap(), [], &sysfs);
        for path in [&image, &link] {
            let why = judged(path).unwrap_err().why;
            assert!(why.contains("loop0"), "{why}");
        }
        assert_eq!(judged(&other), Ok(()));
        assert_eq!(judged(&dir.join("new")), Ok(()));
        let inputs = [(other.as_path(), MEASURED)];
        let output = Output::open(Some(&other)).unwrap();
        assert_eq!(judge(&output, inputs, &sysfs).unwrap_err().why, MEASURED);
        let judged = |names: &[&str]| judge_folder(&dir, names, &inputs, &sysfs);
        assert_eq!(judged(&["new"]), Ok(()));
        assert!(judged(&["new", "image"]).is_err() && judged(&["other"]).is_err());
    }
}

//! Where a run can be kept: in a folder that holds nothing it would replace, or take for its own.

use super::resume::{RUN_FILE, ResumeError, STEPS_FOLDER};
use std::fs;
use std::path::Path;

/// The record of the whole.
pub const RECORD_FILE: &str = "record.json";
/// A row for each step.
pub const STEPS_FILE: &str = "steps.csv";
/// A line for each second.
pub const SERIES_FILE: &str = "series.jsonl";
/// The files of a run that are written anew at its end.
pub const WHOLE_FILES: [&str; 3] = [RECORD_FILE, STEPS_FILE, SERIES_FILE];

/// Whether a run can begin in a folder, which need not be there yet. Nothing is made.
///
/// # Errors
/// [`ResumeError::Taken`], [`ResumeError::Foreign`], [`ResumeError::NoFolder`].
pub fn is_free(path: &Path) -> Result<(), ResumeError> {
    let is_there = |name: &&str| path.join(name).symlink_metadata().is_ok();
    if is_there(&RUN_FILE) {
        return Err(ResumeError::Taken(path.display().to_string()));
    }
    let mut foreign = WHOLE_FILES.into_iter().find(is_there);
    let steps = fs::read_dir(path.join(STEPS_FOLDER));
    if steps.is_ok_and(|mut steps| steps.next().is_some()) {
        foreign = foreign.or(Some(STEPS_FOLDER));
    }
    match foreign {
        Some(name) => Err(ResumeError::Foreign {
            folder: path.display().to_string(),
            name: name.to_owned(),
        }),
        None => has_room(path),
    }
}

/// Whether files can be made in a folder, or in the nearest one above it that is there.
fn has_room(path: &Path) -> Result<(), ResumeError> {
    let mut above = path.ancestors().map(|above| match above {
        // Above a relative path is where we are.
        none if none.as_os_str().is_empty() => Path::new("."),
        some => some,
    });
    let nearest = above.find(|above| above.symlink_metadata().is_ok());
    // What only blocks the way (a file, a link to nothing) says so when something is to be made in it.
    let made = tempfile::tempfile_in(nearest.unwrap_or(Path::new(".")));
    made.map(drop).map_err(|why| ResumeError::NoFolder {
        path: path.display().to_string(),
        why,
    })
}

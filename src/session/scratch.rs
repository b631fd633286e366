//! Scratch files: made, filled with random data, and gone with the process, however it ends.

use super::SessionError;
use crate::sysfs::Sysfs;
use crate::units::{Bytes, SizeSpec, parse_size};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// What to make: `scratch:size=1G,dir=/data`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScratchSpec {
    size: Bytes,
    dir: PathBuf,
}

/// A file without a name: nothing can find it, nothing is left of it, not even after SIGKILL.
#[derive(Debug)]
pub struct Scratch {
    _file: File,
    path: PathBuf,
    dir: PathBuf,
}

const DEFAULT_BYTES: u64 = 1 << 30;
const CHUNK_BYTES: usize = 1 << 20;

impl Scratch {
    /// Reads what follows `scratch:`; the default is 1 GiB in the current folder.
    ///
    /// # Errors
    /// [`SessionError::WrongBackend`] naming what is allowed.
    pub fn parse(text: &str) -> Result<ScratchSpec, SessionError> {
        let refuse = || SessionError::WrongBackend {
            device: format!("scratch:{text}"),
            backend: "uring",
            why: "write scratch, or scratch:size=1G,dir=FOLDER (1 MiB at least)".to_owned(),
        };
        let mut spec = ScratchSpec {
            size: Bytes(DEFAULT_BYTES),
            dir: PathBuf::from("."),
        };
        for part in text.split(',').filter(|part| !part.is_empty()) {
            match part.split_once('=').ok_or_else(refuse)? {
                ("size", size) => match parse_size(size) {
                    Ok(SizeSpec::Bytes(bytes)) if bytes.0 >= CHUNK_BYTES as u64 => {
                        spec.size = bytes
                    }
                    _ => return Err(refuse()),
                },
                ("dir", dir) => spec.dir = PathBuf::from(dir),
                _ => return Err(refuse()),
            }
        }
        Ok(spec)
    }

    /// A path that opens the file for as long as this lives.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folder whose file system holds it.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }
}

impl ScratchSpec {
    /// Makes the file and fills it: reads of a file with holes would measure nothing.
    ///
    /// # Errors
    /// [`SessionError::Scratch`].
    pub fn make(self, sysfs: &Sysfs) -> Result<Scratch, SessionError> {
        let fail = |error: std::io::Error| SessionError::Scratch {
            dir: self.dir.display().to_string(),
            why: format!("{error}; name another folder with scratch:dir=FOLDER or a smaller size="),
        };
        let mut file = tempfile::tempfile_in(&self.dir).map_err(fail)?;
        let mut random = Xoshiro256PlusPlus::seed_from_u64(self.size.0);
        let mut chunk = vec![0; CHUNK_BYTES];
        let mut left = self.size.0;
        while left > 0 {
            random.fill_bytes(&mut chunk);
            let bytes = left.min(CHUNK_BYTES as u64);
            #[allow(clippy::cast_possible_truncation)] // At most CHUNK_BYTES.
            file.write_all(&chunk[..bytes as usize]).map_err(fail)?;
            left -= bytes;
        }
        file.sync_all().map_err(fail)?;
        let path = sysfs.proc(format!("self/fd/{}", file.as_raw_fd()));
        Ok(Scratch {
            _file: file,
            path,
            dir: self.dir,
        })
    }
}

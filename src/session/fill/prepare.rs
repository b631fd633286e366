//! Fills a range with random data before it is read, and goes on where a killed run stopped.

use crate::errno::Errno;
use crate::measure::status_name;
use crate::request::Status;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Size of one write: sequential, as SNIA's preconditioning wants it.
pub const CHUNK_BYTES: usize = 128 * 1024;
/// Buffers for direct I/O start on a multiple of this.
const ALIGN_BYTES: usize = 4096;
/// What was written is made durable and noted this often.
const NOTE_EVERY: Duration = Duration::from_secs(1);

/// What to fill. Two fills are the same work, and one continues the other, when all four are equal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fill {
    /// Identity of the device, or path of the file.
    pub device: String,
    /// First byte.
    pub first_byte: u64,
    /// Length.
    pub length_bytes: u64,
    /// Seed of the data: the same seed writes the same bytes.
    pub seed: u64,
}

/// Where the data go.
pub trait Medium {
    /// Writes all of `data` at an offset of the device. `data` starts on a 4 KiB address and is 128 KiB
    /// long, but for the last piece of the range. A medium may write later what it has taken.
    ///
    /// # Errors
    /// How the write ended, or one before it that had not been told yet.
    fn write_at(&mut self, offset_bytes: u64, data: &[u8]) -> Result<(), Status>;

    /// Writes what was taken, and makes it durable.
    ///
    /// # Errors
    /// How the flush, or a write since the last one, ended. Then no later call succeeds.
    fn sync(&mut self) -> Result<(), Status>;

    /// Told after every write. `Break` stops: what is done is noted, and a later run goes on from there.
    fn progress(&mut self, now: Progress) -> ControlFlow<()>;
}

/// A file or block node as a medium. Best opened past the page cache (`O_DIRECT`).
#[derive(Debug)]
pub struct FileMedium<F> {
    /// Opened for writing, with the guard's leave.
    pub file: File,
    /// Told after every write.
    pub progress: F,
}

impl<F: FnMut(Progress) -> ControlFlow<()>> Medium for FileMedium<F> {
    fn write_at(&mut self, offset_bytes: u64, data: &[u8]) -> Result<(), Status> {
        let written = self.file.write_all_at(data, offset_bytes);
        written.map_err(|error| Status::Errno(Errno::of(&error)))
    }

    fn sync(&mut self) -> Result<(), Status> {
        let synced = self.file.sync_data();
        synced.map_err(|error| Status::Errno(Errno::of(&error)))
    }

    fn progress(&mut self, now: Progress) -> ControlFlow<()> {
        (self.progress)(now)
    }
}

/// How far a fill is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Bytes of the range that are filled, those of earlier runs included.
    pub done_bytes: u64,
    /// Bytes of the range.
    pub total_bytes: u64,
    /// Bytes written by this run.
    pub written_bytes: u64,
    /// Time of this run.
    pub elapsed: Duration,
}

/// How a fill ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Filled {
    /// Bytes written by this run.
    pub written_bytes: u64,
    /// Bytes that earlier runs had filled.
    pub resumed_from_bytes: u64,
    /// Whether the whole range is filled.
    pub is_complete: bool,
}

/// Why a fill ended early.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    /// The device refused a write or a flush.
    #[error(
        "filling {device} failed at byte {at_bytes}: {}; run it again to go on from there",
        status_name(*status)
    )]
    Write {
        /// The device.
        device: String,
        /// Where, or not far behind.
        at_bytes: u64,
        /// Why.
        status: Status,
    },
    /// Progress cannot be noted.
    #[error(
        "cannot note the progress of --prepare in {path}: {why}; name another folder in XDG_STATE_HOME"
    )]
    Note {
        /// The file.
        path: PathBuf,
        /// Why.
        why: std::io::Error,
    },
}

/// The file that notes how far a fill is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Note {
    fill: Fill,
    done_bytes: u64,
}

impl Fill {
    /// The file that notes its progress, in this folder.
    #[must_use]
    pub fn note_path(&self, folder: &Path) -> PathBuf {
        // FNV-1a over the four fields; the file repeats them in full, so a collision is noticed.
        let text = format!(
            "{}\0{}\0{}\0{}",
            self.device, self.first_byte, self.length_bytes, self.seed
        );
        let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        folder.join(format!("prepare-{hash:016x}.json"))
    }

    /// Bytes that earlier runs have filled; 0 where nothing (or nothing legible) is noted.
    #[must_use]
    pub fn done_bytes(&self, folder: &Path) -> u64 {
        let text = std::fs::read(self.note_path(folder)).unwrap_or_default();
        match serde_json::from_slice::<Note>(&text) {
            Ok(note) if note.fill == *self => note.done_bytes.min(self.length_bytes),
            _ => 0,
        }
    }

    /// Fills what earlier runs have left. The note is removed once all is filled.
    ///
    /// # Errors
    /// [`PrepareError`]; what was filled until then is noted.
    pub fn run(&self, folder: &Path, medium: &mut dyn Medium) -> Result<Filled, PrepareError> {
        let resumed_from_bytes = self.done_bytes(folder) / CHUNK_BYTES as u64 * CHUNK_BYTES as u64;
        let mut buffer = vec![0; CHUNK_BYTES + ALIGN_BYTES];
        let skip = buffer.as_ptr().align_offset(ALIGN_BYTES);
        let chunk = &mut buffer[skip..skip + CHUNK_BYTES];
        let (began, mut noted) = (Instant::now(), Instant::now());
        let mut done = resumed_from_bytes;
        while done < self.length_bytes {
            let data = self.data(done, chunk);
            let at_bytes = self.first_byte + done;
            if let Err(status) = medium.write_at(at_bytes, data) {
                // The device may be gone: what cannot be made durable is not noted.
                let _ = self.note(folder, done, medium);
                return Err(self.failed(at_bytes, status));
            }
            done += data.len() as u64;
            let now = Progress {
                done_bytes: done,
                total_bytes: self.length_bytes,
                written_bytes: done - resumed_from_bytes,
                elapsed: began.elapsed(),
            };
            if medium.progress(now).is_break() {
                break;
            }
            if noted.elapsed() >= NOTE_EVERY {
                self.note(folder, done, medium)?;
                noted = Instant::now();
            }
        }
        self.note(folder, done, medium)?;
        let is_complete = done == self.length_bytes;
        if is_complete {
            // A note left behind would only make the next fill start at the end.
            let path = self.note_path(folder);
            std::fs::remove_file(&path).map_err(|why| PrepareError::Note { path, why })?;
        }
        Ok(Filled {
            written_bytes: done - resumed_from_bytes,
            resumed_from_bytes,
            is_complete,
        })
    }

    /// The bytes from `done` on: every chunk has a generator of its own, so a resumed fill writes the same.
    fn data<'b>(&self, done: u64, chunk: &'b mut [u8]) -> &'b [u8] {
        let number = done / CHUNK_BYTES as u64;
        let seed = self.seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Xoshiro256PlusPlus::seed_from_u64(seed).fill_bytes(chunk);
        let left = self.length_bytes - done;
        &chunk[..usize::try_from(left).unwrap_or(usize::MAX).min(CHUNK_BYTES)]
    }

    fn note(
        &self,
        folder: &Path,
        done_bytes: u64,
        medium: &mut dyn Medium,
    ) -> Result<(), PrepareError> {
        medium
            .sync()
            .map_err(|status| self.failed(self.first_byte + done_bytes, status))?;
        let path = self.note_path(folder);
        let write = || -> std::io::Result<()> {
            std::fs::create_dir_all(folder)?;
            let text = serde_json::to_vec(&Note {
                fill: self.clone(),
                done_bytes,
            })?;
            // Whole or not at all: a run killed here leaves the older note.
            let mut file = tempfile::NamedTempFile::new_in(folder)?;
            std::io::Write::write_all(&mut file, &text)?;
            file.persist(&path)?;
            Ok(())
        };
        write().map_err(|why| PrepareError::Note {
            path: path.clone(),
            why,
        })
    }

    fn failed(&self, at_bytes: u64, status: Status) -> PrepareError {
        PrepareError::Write {
            device: self.device.clone(),
            at_bytes,
            status,
        }
    }
}

/// Where progress is noted unless told otherwise: `$XDG_STATE_HOME/lanemark`, `~/.local/state/lanemark`, or
/// the folder for temporary files.
#[must_use]
pub fn state_folder() -> PathBuf {
    let absolute = |name: &str| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let base = absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")));
    base.unwrap_or_else(std::env::temp_dir).join("lanemark")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::cast_possible_truncation)]
    use super::*;

    /// A medium in memory that can stop or fail after some bytes.
    struct Memory {
        bytes: Vec<u8>,
        synced_count: u32,
        stop_at_bytes: Option<u64>,
        fail_at_bytes: Option<u64>,
        seen: Vec<Progress>,
    }

    impl Memory {
        fn new(len: usize) -> Self {
            Self {
                bytes: vec![0; len],
                synced_count: 0,
                stop_at_bytes: None,
                fail_at_bytes: None,
                seen: Vec::new(),
            }
        }
    }

    impl Medium for Memory {
        fn write_at(&mut self, offset_bytes: u64, data: &[u8]) -> Result<(), Status> {
            assert_eq!(data.as_ptr().align_offset(ALIGN_BYTES), 0);
            if self.fail_at_bytes.is_some_and(|at| offset_bytes >= at) {
                return Err(Status::Errno(Errno(libc::EIO)));
            }
            let at = offset_bytes as usize;
            self.bytes[at..at + data.len()].copy_from_slice(data);
            Ok(())
        }
        fn sync(&mut self) -> Result<(), Status> {
            self.synced_count += 1;
            Ok(())
        }
        fn progress(&mut self, now: Progress) -> ControlFlow<()> {
            self.seen.push(now);
            let stops = self.stop_at_bytes.is_some_and(|at| now.done_bytes >= at);
            if stops {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        }
    }

    const LEN: usize = 10 * CHUNK_BYTES + 4096;

    fn fill() -> Fill {
        Fill {
            device: "naa.1".to_owned(),
            first_byte: 8192,
            length_bytes: LEN as u64,
            seed: 7,
        }
    }

    fn filled_in_one_go() -> Vec<u8> {
        let folder = tempfile::tempdir().unwrap();
        let mut medium = Memory::new(LEN + 16384);
        let done = fill().run(folder.path(), &mut medium).unwrap();
        assert_eq!(
            done,
            Filled {
                written_bytes: LEN as u64,
                resumed_from_bytes: 0,
                is_complete: true
            }
        );
        assert!(!fill().note_path(folder.path()).exists());
        medium.bytes
    }

    #[test]
    fn the_range_is_filled_to_its_ends_and_nothing_beside_it() {
        let bytes = filled_in_one_go();
        assert!(
            bytes[..8192]
                .iter()
                .chain(&bytes[8192 + LEN..])
                .all(|byte| *byte == 0)
        );
        let inside = &bytes[8192..8192 + LEN];
        let mut blocks: Vec<&[u8]> = inside.chunks(4096).collect();
        let count = blocks.len();
        blocks.sort_unstable();
        blocks.dedup();
        assert_eq!(blocks.len(), count, "no two blocks are alike");
        let ones: u32 = inside.iter().map(|byte| byte.count_ones()).sum();
        let share = f64::from(ones) / (LEN as f64 * 8.0);
        assert!((share - 0.5).abs() < 0.001, "{share}");
    }

    #[test]
    fn a_stopped_fill_goes_on_and_ends_with_the_same_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let mut medium = Memory::new(LEN + 16384);
        medium.stop_at_bytes = Some(3 * CHUNK_BYTES as u64);
        let first = fill().run(folder.path(), &mut medium).unwrap();
        assert!(!first.is_complete && first.written_bytes == 3 * CHUNK_BYTES as u64);
        assert!(medium.synced_count > 0, "noted only after a flush");
        medium.stop_at_bytes = None;
        let second = fill().run(folder.path(), &mut medium).unwrap();
        assert!(second.is_complete);
        assert_eq!(second.resumed_from_bytes, 3 * CHUNK_BYTES as u64);
        assert_eq!(second.written_bytes, LEN as u64 - second.resumed_from_bytes);
        assert_eq!(medium.bytes, filled_in_one_go());
        assert_eq!(medium.seen.last().unwrap().done_bytes, LEN as u64);
    }

    #[test]
    fn another_device_region_or_seed_starts_from_the_beginning() {
        let folder = tempfile::tempdir().unwrap();
        let mut medium = Memory::new(LEN + 16384);
        medium.stop_at_bytes = Some(1);
        fill().run(folder.path(), &mut medium).unwrap();
        assert_eq!(fill().done_bytes(folder.path()), CHUNK_BYTES as u64);
        let others = [
            Fill {
                device: "naa.2".to_owned(),
                ..fill()
            },
            Fill {
                first_byte: 0,
                ..fill()
            },
            Fill {
                length_bytes: 1,
                ..fill()
            },
            Fill { seed: 8, ..fill() },
        ];
        for other in others {
            assert_eq!(other.done_bytes(folder.path()), 0, "{other:?}");
        }
        // A note of something else under this name, and half a note.
        let path = fill().note_path(folder.path());
        std::fs::write(
            &path,
            serde_json::to_vec(&Note {
                fill: Fill { seed: 9, ..fill() },
                done_bytes: 5,
            })
            .unwrap(),
        )
        .unwrap();
        assert_eq!(fill().done_bytes(folder.path()), 0);
        std::fs::write(&path, "{").unwrap();
        assert_eq!(fill().done_bytes(folder.path()), 0);
    }

    #[test]
    fn a_failed_write_names_the_place_and_keeps_what_is_done() {
        let folder = tempfile::tempdir().unwrap();
        let mut medium = Memory::new(LEN + 16384);
        let at = 8192 + 2 * CHUNK_BYTES as u64;
        medium.fail_at_bytes = Some(at);
        let error = fill().run(folder.path(), &mut medium).unwrap_err();
        assert!(
            matches!(error, PrepareError::Write { at_bytes, status: Status::Errno(Errno(libc::EIO)), .. } if at_bytes == at)
        );
        assert_eq!(fill().done_bytes(folder.path()), 2 * CHUNK_BYTES as u64);
    }

    #[test]
    fn a_sparse_file_is_filled_and_then_nothing_of_it_was_never_written() {
        let folder = tempfile::tempdir().unwrap();
        let file = tempfile::tempfile_in(folder.path()).unwrap();
        file.set_len(8192 + LEN as u64).unwrap();
        let range = 8192..8192 + LEN as u64;
        let before = crate::session::fill::written::of_file(&file, range.clone()).unwrap();
        let mut told = 0;
        let progress = |now: Progress| {
            told = now.done_bytes;
            ControlFlow::Continue(())
        };
        let mut medium = FileMedium {
            file: file.try_clone().unwrap(),
            progress,
        };
        assert!(fill().run(folder.path(), &mut medium).unwrap().is_complete);
        assert_eq!(told, LEN as u64);
        let after = crate::session::fill::written::of_file(&file, range).unwrap();
        assert!(before.warning("f").is_some(), "{before}");
        assert_eq!(after.warning("f"), None);
    }

    #[test]
    fn progress_that_cannot_be_noted_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let blocked = folder.path().join("file");
        std::fs::write(&blocked, "").unwrap();
        let mut medium = Memory::new(LEN + 16384);
        assert!(matches!(
            fill().run(&blocked, &mut medium),
            Err(PrepareError::Note { .. })
        ));
    }
}

//! Scratch files: made, filled with random data, and gone with the process, however it ends.

use super::scratch_fs::HomeFs;
use crate::errno::Errno;
use crate::reactor::{Control, StopCause};
use crate::record::Warning;
use crate::session::SessionError;
use crate::session::observer::{Observer, Phase, Snapshot};
use crate::sys::buffers::Arena;
use crate::sys::ioctl::{self, OpenMode};
use crate::sys::space::space;
use crate::sysfs::Sysfs;
use crate::units::{Bytes, SizeSpec, parse_duration, parse_size};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What to make: `scratch:size=1G,dir=/data,within=10s`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScratchSpec {
    size: Bytes,
    dir: PathBuf,
    /// The fill ends after this time, and the file is as large as it has become.
    within: Option<Duration>,
}

/// A file without a name: nothing can find it, nothing is left of it, not even after SIGKILL.
#[derive(Debug)]
pub struct Scratch {
    _file: File,
    path: PathBuf,
    size_bytes: u64,
    asked_bytes: u64,
    home: HomeFs,
}

/// What goes on around the opening of devices.
pub struct Setup<'a> {
    /// A signal ends the fill.
    pub control: &'a Control,
    /// Told how far the fill is.
    pub observer: &'a mut dyn Observer,
    /// Nothing will be measured: files are as large as asked, and empty.
    pub dry_run: bool,
}

const DEFAULT_BYTES: u64 = 1 << 30;
const CHUNK_BYTES: u32 = 1 << 20;
/// A file whose fill is bounded by time is never smaller: too much of it would fit a drive's cache.
const LEAST_BYTES: u64 = 64 << 20;
/// Direct I/O wants lengths that are multiples of the block, which is never larger.
const BLOCK_BYTES: u64 = 4096;
/// This much, or a tenth of the file system where that is less, stays free.
const SPARED_BYTES: u64 = 1 << 30;
/// Snapshots of the fill come this often.
const TELL_EVERY: Duration = Duration::from_millis(500);

impl Scratch {
    /// Reads what follows `scratch:`; the default is 1 GiB in the current folder.
    ///
    /// # Errors
    /// [`SessionError::WrongBackend`] naming what is allowed.
    pub fn parse(text: &str) -> Result<ScratchSpec, SessionError> {
        let refuse = || {
            SessionError::WrongBackend {
            device: format!("scratch:{text}"),
            backend: "uring",
            why: "write scratch, or scratch:size=1G,dir=FOLDER,within=10s (1 MiB at least, 64 MiB with within=)".to_owned(),
        }
        };
        let mut spec = ScratchSpec {
            size: Bytes(DEFAULT_BYTES),
            dir: PathBuf::from("."),
            within: None,
        };
        for part in text.split(',').filter(|part| !part.is_empty()) {
            match part.split_once('=').ok_or_else(refuse)? {
                ("size", size) => match parse_size(size) {
                    Ok(SizeSpec::Bytes(bytes)) if bytes.0 >= u64::from(CHUNK_BYTES) => {
                        spec.size = bytes;
                    }
                    _ => return Err(refuse()),
                },
                ("dir", dir) => spec.dir = PathBuf::from(dir),
                ("within", time) => {
                    let time = parse_duration(time).map_err(|_| refuse())?;
                    spec.within = Some(Duration::from_nanos(time.0));
                }
                _ => return Err(refuse()),
            }
        }
        if spec.within.is_some() && spec.size.0 < LEAST_BYTES {
            return Err(refuse());
        }
        Ok(spec)
    }

    /// A path that opens the file for as long as this lives.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What a reader of the result must know: where the file is, and that it is not a device.
    #[must_use]
    pub fn note(&self) -> Warning {
        self.home.note(self.size_bytes, self.asked_bytes)
    }
}

impl ScratchSpec {
    /// Makes the file and fills it past the page cache: reads of a file with holes would measure
    /// nothing, and pages left in memory would slow the first writes.
    ///
    /// # Errors
    /// [`SessionError::Scratch`], [`SessionError::ScratchFill`]; [`SessionError::Interrupted`] where a signal ended the fill.
    pub fn make(self, sysfs: &Sysfs, setup: &mut Setup<'_>) -> Result<Scratch, SessionError> {
        let fail = |why: String| SessionError::Scratch {
            dir: self.dir.display().to_string(),
            why,
        };
        let failed = |errno: Errno| {
            fail(format!(
                "{errno}; name another folder with scratch:dir=FOLDER or a smaller size="
            ))
        };
        let file = tempfile::tempfile_in(&self.dir).map_err(|error| failed(Errno::of(&error)))?;
        let home = HomeFs::of(sysfs, &self.dir);
        let path = sysfs.proc(format!("self/fd/{}", file.as_raw_fd()));
        let mode = OpenMode {
            direct: true,
            write: true,
            exclusive: false,
        };
        let direct = ioctl::open(&path, mode).map_err(|errno| match errno {
            Errno(libc::EINVAL) => fail(home.refuses_direct()),
            errno => failed(errno),
        })?;
        let room_bytes = room_bytes(&file).map_err(failed)?;
        let wanted_bytes = match self.within {
            Some(_) if room_bytes >= LEAST_BYTES => self.size.0.min(room_bytes),
            _ => self.size.0,
        };
        if wanted_bytes > room_bytes {
            return Err(fail(too_full(wanted_bytes, room_bytes)));
        }
        let unfilled = |errno: Errno| SessionError::ScratchFill {
            dir: self.dir.display().to_string(),
            why: format!("{errno}; name another folder with scratch:dir=FOLDER"),
        };
        let size_bytes = if setup.dry_run {
            wanted_bytes
        } else {
            let fill = Fill::new(&direct, wanted_bytes, self.within);
            fill.run(sysfs, setup)?.map_err(unfilled)?
        };
        let done = file.set_len(size_bytes).and_then(|()| file.sync_all());
        done.map_err(|error| unfilled(Errno::of(&error)))?;
        Ok(Scratch {
            _file: file,
            path,
            size_bytes,
            asked_bytes: self.size.0,
            home,
        })
    }
}

/// What a file may take without filling the file system up.
fn room_bytes(file: &File) -> Result<u64, Errno> {
    let space = space(file)?;
    let spared_bytes = SPARED_BYTES.min(space.total_bytes / 10);
    Ok(space.available_bytes.saturating_sub(spared_bytes))
}

fn too_full(wanted_bytes: u64, room_bytes: u64) -> String {
    format!(
        "it would take {} MiB, and only {} MiB may be used (1 GiB, or a tenth of the file system, stays free); make room, or name another folder with scratch:dir=FOLDER or a smaller size=",
        wanted_bytes >> 20,
        room_bytes >> 20
    )
}

/// A fill on its way.
struct Fill<'a> {
    file: &'a File,
    wanted_bytes: u64,
    done_bytes: u64,
    within: Option<Duration>,
    started: Instant,
    told: Option<Instant>,
}

impl<'a> Fill<'a> {
    fn new(file: &'a File, wanted_bytes: u64, within: Option<Duration>) -> Self {
        Self {
            file,
            wanted_bytes,
            done_bytes: 0,
            within,
            started: Instant::now(),
            told: None,
        }
    }

    /// Writes until the file is full or the time is up; how many bytes it holds then.
    fn run(
        mut self,
        sysfs: &Sysfs,
        setup: &mut Setup<'_>,
    ) -> Result<Result<u64, Errno>, SessionError> {
        let mut arena = match Arena::new(sysfs, 1, CHUNK_BYTES) {
            Ok(arena) => arena,
            Err(errno) => return Ok(Err(errno)),
        };
        let mut random = Xoshiro256PlusPlus::seed_from_u64(self.wanted_bytes);
        while self.done_bytes < self.wanted_bytes && !self.is_out_of_time() {
            if setup.control.cause() >= StopCause::Signal {
                return Err(SessionError::Interrupted);
            }
            self.tell(setup.observer);
            let left = (self.wanted_bytes - self.done_bytes).next_multiple_of(BLOCK_BYTES);
            // At most CHUNK_BYTES, hence it fits.
            let length = left.min(u64::from(CHUNK_BYTES)) as usize;
            let chunk = &mut arena.slot(0)[..length];
            random.fill_bytes(chunk);
            if let Err(error) = self.file.write_all_at(chunk, self.done_bytes) {
                return Ok(Err(Errno::of(&error)));
            }
            self.done_bytes += length as u64;
        }
        Ok(Ok(self.done_bytes.min(self.wanted_bytes)))
    }

    fn is_out_of_time(&self) -> bool {
        self.done_bytes >= LEAST_BYTES
            && self
                .within
                .is_some_and(|within| self.started.elapsed() >= within)
    }

    #[allow(clippy::cast_precision_loss)]
    fn tell(&mut self, observer: &mut dyn Observer) {
        if self.told.is_some_and(|told| told.elapsed() < TELL_EVERY) {
            return;
        }
        self.told = Some(Instant::now());
        let elapsed_s = self.started.elapsed().as_secs_f64();
        let done_ratio = self.done_bytes as f64 / self.wanted_bytes as f64;
        let expected_s = (self.done_bytes > 0).then(|| elapsed_s / done_ratio);
        let limit_s = self
            .within
            .map_or(f64::INFINITY, |within| within.as_secs_f64());
        observer.snapshot(&Snapshot {
            step: "fill the scratch file".to_owned(),
            step_number: 1,
            steps_count: 1,
            phase: Phase::Setup,
            elapsed_s,
            total_s: expected_s.map(|expected_s| expected_s.min(limit_s).max(elapsed_s)),
            intervals_count: 0,
            iops: None,
            bytes_per_s: (elapsed_s > 0.0).then(|| self.done_bytes as f64 / elapsed_s),
            p50_ns: None,
            p99_ns: None,
            in_flight_count: 0,
            errors_count: 0,
        });
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::session::Silent;

    fn make(spec: &str, control: &Control) -> Result<Scratch, SessionError> {
        let mut setup = Setup {
            control,
            observer: &mut Silent,
            dry_run: false,
        };
        Scratch::parse(spec)?.make(&Sysfs::host(), &mut setup)
    }

    #[test]
    fn what_is_asked_is_read_or_refused() {
        let spec = Scratch::parse("size=2G,dir=/data,within=10s").unwrap();
        assert_eq!(
            (spec.size, spec.within),
            (Bytes(2 << 30), Some(Duration::from_secs(10)))
        );
        for bad in [
            "size=1k",
            "size",
            "within=10",
            "size=8M,within=1s",
            "colour=red",
        ] {
            assert!(
                matches!(Scratch::parse(bad), Err(SessionError::WrongBackend { .. })),
                "{bad}"
            );
        }
    }

    #[test]
    fn the_file_is_full_of_data_and_exactly_as_large_as_asked() {
        let dir = tempfile::tempdir().unwrap();
        let spec = format!("size=1049601,dir={}", dir.path().display());
        let scratch = make(&spec, &Control::default()).unwrap();
        let data = std::fs::read(scratch.path()).unwrap();
        assert_eq!(data.len(), 1_049_601);
        assert!(data.chunks(4096).all(|block| block.iter().any(|b| *b != 0)));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_fill_that_is_out_of_time_ends_at_the_least_size() {
        let dir = tempfile::tempdir().unwrap();
        let spec = format!("size=1G,within=1us,dir={}", dir.path().display());
        let scratch = make(&spec, &Control::default()).unwrap();
        assert_eq!(scratch.size_bytes, LEAST_BYTES);
        assert!(scratch.note().text.contains("of the 1024 MiB"));
    }

    #[test]
    fn a_signal_ends_the_fill() {
        let dir = tempfile::tempdir().unwrap();
        let control = Control::default();
        control.stop(StopCause::Signal);
        let spec = format!("size=64M,dir={}", dir.path().display());
        assert!(matches!(
            make(&spec, &control),
            Err(SessionError::Interrupted)
        ));
    }

    #[test]
    fn a_file_system_is_never_filled_up() {
        let dir = tempfile::tempdir().unwrap();
        let spec = format!("size=8E,dir={}", dir.path().display());
        match make(&spec, &Control::default()) {
            Err(SessionError::Scratch { why, .. }) => assert!(why.contains("stays free"), "{why}"),
            other => panic!("{other:?}"),
        }
    }
}

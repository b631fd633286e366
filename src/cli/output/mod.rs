//! Where results go, and the one place that speaks on stderr.
//!
//! stdout or `-o FILE` is the result and nothing else; stderr is errors, warnings and progress.

pub(in crate::cli) mod clash;
pub(in crate::cli) mod resume;
pub(in crate::cli) mod saved;

use crate::cli::exit::Exit;
use crate::cli::progress::terminal;
use crate::errno::Errno;
use crate::record::{Environment, Failure, Outcome, Record, SCHEMA_VERSION, Step, Tool, Warning};
use crate::report::{Format, Style, criterion_text, printable, render};
use crate::sys::stdout;
use std::fs::{File, Metadata, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{
    FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::{Path, PathBuf};

/// Why the result could not be handed over.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OutputError {
    /// Whoever read stdout has gone.
    #[error("the reader of stdout has gone before it had the whole result")]
    ReaderGone,
    /// There is no stdout. Found before anything runs.
    #[error("stdout is closed, or cannot be written to: the result would be lost")]
    NoStdout,
    /// stdout takes no more.
    #[error("cannot write the result to stdout: {0}")]
    Stdout(Errno),
    /// The file of `-o` cannot be opened or made. Found before anything runs.
    #[error("cannot write to {path}: {errno}")]
    Open {
        /// The file.
        path: String,
        /// Why.
        errno: Errno,
    },
    /// `-o` names a device. Found before anything runs; nothing was written.
    #[error("{path} is a block device: a report is never written to one")]
    BlockDevice {
        /// The device.
        path: String,
    },
    /// `-o` names a character device that is no terminal: what is written there may be a command (sg).
    #[error("{path} is a character device, and no terminal: a report is never written to one")]
    CharDevice {
        /// The device.
        path: String,
    },
    /// The file of `-o` could be opened, and then took no more.
    #[error("cannot write the result to {path}: {errno}")]
    Write {
        /// The file.
        path: String,
        /// Why.
        errno: Errno,
        /// Whether the result went to stdout instead.
        rescued: bool,
    },
}

impl OutputError {
    /// What the user can do.
    #[must_use]
    pub const fn next_step(&self) -> &'static str {
        match self {
            Self::ReaderGone | Self::NoStdout => "keep the result with -o FILE",
            Self::Write { rescued: true, .. } => {
                "the result is on stdout instead; next time name another file with -o FILE"
            }
            Self::Stdout(_) | Self::Write { .. } => "make room, or name another file with -o FILE",
            Self::Open { .. } => "name a file in a folder you may write to",
            Self::BlockDevice { .. } | Self::CharDevice { .. } => {
                "name a file; the device to measure goes with --device"
            }
        }
    }

    /// The exit code: bad input where nothing has run yet, a failure afterwards.
    #[must_use]
    pub const fn exit(&self) -> Exit {
        match self {
            Self::NoStdout
            | Self::Open { .. }
            | Self::BlockDevice { .. }
            | Self::CharDevice { .. } => Exit::Usage,
            Self::ReaderGone | Self::Stdout(_) | Self::Write { .. } => Exit::Failed,
        }
    }

    /// As records carry it.
    #[must_use]
    pub fn failure(&self) -> Failure {
        Failure {
            kind: "output".to_owned(),
            text: self.to_string(),
            next_step: self.next_step().to_owned(),
            exit_code: self.exit().code(),
        }
    }
}

/// The place for the result, known to be writable.
#[derive(Debug)]
pub struct Output {
    target: Target,
}

#[derive(Debug)]
enum Target {
    Stdout,
    /// A regular file, there or not yet: replaced as a whole, by a rename.
    Replace {
        path: PathBuf,
        mode: u32,
    },
    /// Pipes, terminals, character devices, and files in folders that take no new ones.
    Direct {
        path: PathBuf,
        file: File,
    },
}

/// Mode of a new file, before the umask.
const NEW_FILE_MODE: u32 = 0o666;

impl Output {
    /// Opens the place for the result: stdout for `None` and for `-`. An existing file keeps its
    /// content until [`Output::write`] replaces it.
    ///
    /// # Errors
    /// [`OutputError::Open`], [`OutputError::NoStdout`] and those of devices: before anything has run.
    pub fn open(path: Option<&Path>) -> Result<Self, OutputError> {
        let target = match path {
            Some(path) if path != Path::new("-") => Self::open_file(path)?,
            _ if stdout::is_closed() => return Err(OutputError::NoStdout),
            _ => Target::Stdout,
        };
        Ok(Self { target })
    }

    fn open_file(path: &Path) -> Result<Target, OutputError> {
        let fail = |error: &io::Error| OutputError::Open {
            path: shown(path),
            errno: Errno::of(error),
        };
        // A rename would replace a link by the file: follow it first.
        let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        match std::fs::metadata(&real) {
            Ok(found) if found.file_type().is_block_device() => {
                Err(OutputError::BlockDevice { path: shown(path) })
            }
            Ok(found) if is_foreign(&found) => Err(OutputError::CharDevice { path: shown(path) }),
            Ok(found) => {
                let file = OpenOptions::new().write(true).open(&real);
                let file = file.map_err(|error| fail(&error))?;
                // The name may have changed hands since; what was opened is what counts.
                let opened = file.metadata().map_err(|error| fail(&error))?;
                if opened.file_type().is_block_device() {
                    return Err(OutputError::BlockDevice { path: shown(path) });
                }
                let replaceable = found.is_file() && scratch_beside(&real, found.mode()).is_ok();
                Ok(if replaceable {
                    Target::Replace {
                        path: real,
                        mode: found.mode() & 0o7777,
                    }
                } else {
                    Target::Direct { path: real, file }
                })
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // Made and removed at once: a run that is killed leaves nothing behind.
                scratch_beside(&real, NEW_FILE_MODE).map_err(|error| fail(&error))?;
                Ok(Target::Replace {
                    path: real,
                    mode: NEW_FILE_MODE,
                })
            }
            Err(error) => Err(fail(&error)),
        }
    }

    /// Whether the result would go into the file or device node `path`, by whatever name. For refusing
    /// a report that would overwrite what is measured.
    #[must_use]
    pub fn is(&self, path: &Path) -> bool {
        let ours = match &self.target {
            Target::Stdout => None,
            Target::Replace { path, .. } => std::fs::metadata(path).ok(),
            Target::Direct { file, .. } => file.metadata().ok(),
        };
        let same = |a: Metadata, b: Metadata| (a.dev(), a.ino()) == (b.dev(), b.ino());
        ours.zip(std::fs::metadata(path).ok())
            .is_some_and(|(ours, theirs)| same(ours, theirs))
    }

    /// The file, where it is no stdout; without symbolic links where it is there already.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match &self.target {
            Target::Stdout => None,
            Target::Replace { path, .. } | Target::Direct { path, .. } => Some(path),
        }
    }

    /// How text for this place should look.
    #[must_use]
    pub fn style(&self) -> Style {
        match self.target {
            Target::Stdout => Style {
                color: terminal::is_colorful(&io::stdout()),
                width: terminal::stdout_width().unwrap_or(Style::PLAIN.width),
            },
            _ => Style::PLAIN,
        }
    }

    /// Hands the result over: all of it, or an error. Where a file takes no more, what was measured is
    /// not thrown away: it goes to stdout instead.
    ///
    /// # Errors
    /// [`OutputError::Write`], [`OutputError::Stdout`], [`OutputError::ReaderGone`].
    pub fn write(self, text: &str) -> Result<(), OutputError> {
        let (path, done) = match self.target {
            Target::Stdout => return to_stdout(text),
            Target::Replace { path, mode } => {
                let done = replace(&path, mode, text);
                (path, done)
            }
            Target::Direct { path, file } => (path, direct(&file, text)),
        };
        done.map_err(|error| OutputError::Write {
            path: shown(&path),
            errno: Errno::of(&error),
            rescued: to_stdout(text).is_ok(),
        })
    }

    /// Renders a record for this place and hands it over.
    ///
    /// # Errors
    /// See [`Output::write`].
    pub fn write_record(self, record: &Record, format: Format) -> Result<(), OutputError> {
        let text = render(record, format, &self.style());
        self.write(&text)
    }
}

/// A character device other than a terminal or one of the kernel's memory devices (null, zero, full).
fn is_foreign(found: &Metadata) -> bool {
    // Documentation/admin-guide/devices.txt: 1 memory, 4 and 5 tty, 136 to 143 pty, 188 USB serial.
    let known = matches!(libc::major(found.rdev()), 1 | 4 | 5 | 136..=143 | 188);
    found.file_type().is_char_device() && !known
}

fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// A new file in the folder of `path`, gone again when dropped.
fn scratch_beside(path: &Path, mode: u32) -> io::Result<tempfile::NamedTempFile> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    // A path that ends in `/` or `..` names a folder.
    if path.file_name().is_none() || path.as_os_str().as_encoded_bytes().ends_with(b"/") {
        return Err(io::Error::from_raw_os_error(libc::EISDIR));
    }
    // tempfile wraps errors to add the path, and the errno is lost on the way: keep our own.
    let mut cause = None;
    let mut create = |path: &Path| {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(mode & 0o777);
        let file = options.open(path);
        file.inspect_err(|error| cause = error.raw_os_error())
    };
    let made = tempfile::Builder::new()
        .prefix(".lanemark-")
        .make_in(folder, &mut create);
    made.map_err(|error| cause.map_or(error, io::Error::from_raw_os_error))
}

fn replace(path: &Path, mode: u32, text: &str) -> io::Result<()> {
    let scratch = scratch_beside(path, mode)?;
    scratch.as_file().write_all(text.as_bytes())?;
    if path.exists() {
        // The file that goes keeps its mode in the one that comes, without the umask.
        scratch
            .as_file()
            .set_permissions(Permissions::from_mode(mode))?;
    }
    // Delayed allocation reports a full disk here, not at write.
    scratch.as_file().sync_all()?;
    scratch.persist(path).map_err(|error| error.error)?;
    Ok(())
}

fn direct(mut file: &File, text: &str) -> io::Result<()> {
    let regular = file.metadata()?.is_file();
    if regular {
        file.set_len(0)?;
    }
    file.write_all(text.as_bytes())?;
    file.flush()?;
    if regular {
        file.sync_all()?;
    }
    Ok(())
}

/// Writes to stdout and makes sure it has arrived.
///
/// # Errors
/// [`OutputError::NoStdout`], [`OutputError::ReaderGone`], [`OutputError::Stdout`]. Rust ignores SIGPIPE, so both come as errors.
pub fn to_stdout(text: &str) -> Result<(), OutputError> {
    if stdout::is_closed() {
        return Err(OutputError::NoStdout);
    }
    hand_over(&mut io::stdout().lock(), text)
}

fn hand_over(stdout: &mut impl Write, text: &str) -> Result<(), OutputError> {
    stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
        .map_err(|error| match error.kind() {
            io::ErrorKind::BrokenPipe => OutputError::ReaderGone,
            _ => OutputError::Stdout(Errno::of(&error)),
        })
}

/// A record of a run that did not take place, so that `--format json` says it in JSON. Bad input and
/// the guard's refusals are `refused`, everything else `failed`.
#[must_use]
pub fn failure_record(failure: Failure, tool: Tool, environment: Environment) -> Record {
    let status = match Exit::of_code(failure.exit_code) {
        Exit::Usage | Exit::Refused => Outcome::Refused,
        Exit::Interrupted => Outcome::Interrupted,
        _ => Outcome::Failed,
    };
    Record {
        schema_version: SCHEMA_VERSION,
        command: command_line(),
        status,
        error: Some(failure),
        tool,
        environment,
        job: serde_json::Value::Null,
        seed: 0,
        suite: None,
        about: None,
        steps: Vec::new(),
        left_out: Vec::new(),
        derived: Vec::new(),
        steady: None,
        scale: None,
        answer: Vec::new(),
        warnings: Vec::new(),
    }
}

/// The command line of this process, for records.
#[must_use]
pub fn command_line() -> Vec<String> {
    std::env::args_os()
        .map(|word| word.to_string_lossy().into_owned())
        .collect()
}

/// Tells an error on stderr: what happened, and what to do. Nobody may be listening: that is no error.
pub fn complain(failure: &Failure) {
    say("error", "1;31", &failure.text);
    if !failure.next_step.is_empty() {
        say("hint", "36", &failure.next_step);
    }
}

/// Tells a warning on stderr.
pub fn warn(warning: &Warning) {
    say("warning", "33", &warning.text);
    if !warning.next_step.is_empty() {
        say("hint", "36", &warning.next_step);
    }
}

/// Tells which criteria of a step were missed, on stderr.
pub fn missed(step: &Step) {
    for criterion in step.expect.iter().filter(|criterion| !criterion.is_met) {
        let text = format!("{}: {}", step.name, criterion_text(criterion));
        say("expect", "1;31", &text);
    }
}

/// Tells something worth knowing on stderr.
pub fn note(text: &str) {
    say("note", "2", text);
}

fn say(label: &str, sgr: &str, text: &str) {
    let mut stderr = io::stderr().lock();
    let color = terminal::is_colorful(&stderr);
    let mut line = labelled(label, sgr, text, color);
    if terminal::stderr_redraws() {
        // A progress line may stand there.
        line.insert_str(0, "\r\x1b[K");
    }
    let _ = stderr.write_all(line.as_bytes());
    let _ = stderr.flush();
}

/// `label: text`; the text keeps its line breaks and nothing else that steers a terminal.
fn labelled(label: &str, sgr: &str, text: &str, color: bool) -> String {
    let lines: Vec<_> = text.trim_end().lines().map(printable).collect();
    let text = lines.join("\n  ");
    if color {
        format!("\x1b[{sgr}m{label}:\x1b[0m {text}\n")
    } else {
        format!("{label}: {text}\n")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_reader_that_left_is_told_apart_from_a_full_disk() {
        let (reader, mut writer) = io::pipe().unwrap();
        drop(reader);
        let gone = hand_over(&mut writer, "result");
        assert_eq!(gone, Err(OutputError::ReaderGone));
        let mut full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let full = hand_over(&mut full, "result");
        assert_eq!(full, Err(OutputError::Stdout(Errno(libc::ENOSPC))));
    }

    /// `LineWriter` keeps text without a line break until it is flushed: the flush must be checked.
    #[test]
    fn an_error_at_the_flush_is_not_lost() {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut buffered = io::LineWriter::new(full);
        let full = hand_over(&mut buffered, "no line break");
        assert_eq!(full, Err(OutputError::Stdout(Errno(libc::ENOSPC))));
        // Dropping it would write once more, to no avail.
        drop(buffered);
    }

    #[test]
    fn what_is_said_keeps_its_lines_and_steers_nothing() {
        let said = labelled("error", "1;31", "no \x1b[2J such\ndevice\r\n", false);
        assert_eq!(said, "error: no \\x1b[2J such\n  device\n");
        let said = labelled("hint", "36", "x", true);
        assert_eq!(said, "\x1b[36mhint:\x1b[0m x\n");
    }
}

//! Is there something to read? Looks for never-written data before a run, and fills it where asked.

use super::SessionError;
use super::guard::content::{FileContent, ReadAt};
use super::guard::{Consent, Guard, Intent};
use super::leave::permit;
use super::observer::{Observer, Phase, Snapshot};
use super::open::Opened;
use super::prepare::{FileMedium, Fill, Filled, state_folder};
use super::written::{SAMPLES_COUNT, Share, of_opened, of_samples};
use crate::backend::{DeviceFacts, DeviceKind};
use crate::config::{Plan, StepPlan};
use crate::errno::Errno;
use crate::reactor::{Control, StopCause};
use crate::record::Warning;
use crate::sysfs::Sysfs;
use crate::workload::OpMix;
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::ops::{ControlFlow, Range};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// The observer is told of a fill this often.
const TELL_EVERY: Duration = Duration::from_millis(500);

/// Warnings of each step, in order: what it reads and was never written.
///
/// # Errors
/// [`SessionError::NeverWritten`] for the first finding where `strict`.
pub fn never_written(
    plan: &Plan,
    opened: &Opened,
    strict: bool,
    control: &Control,
) -> Result<Vec<Vec<Warning>>, SessionError> {
    let facts = opened.facts();
    let mut known: HashMap<(u32, Range<u64>), Option<Warning>> = HashMap::new();
    let mut all = Vec::new();
    for step in &plan.steps {
        let mut warnings = Vec::new();
        for (index, facts) in (0_u32..).zip(&facts) {
            let Some(range_bytes) = read_range([step], index, facts) else {
                continue;
            };
            let found = known
                .entry((index, range_bytes.clone()))
                .or_insert_with(|| look(facts, range_bytes, plan.seed, control));
            warnings.extend(found.clone());
        }
        if let (true, Some(warning)) = (strict, warnings.first()) {
            return Err(SessionError::NeverWritten(warning.text.clone()));
        }
        all.push(warnings);
    }
    Ok(all)
}

/// Fills what the plan reads with random data, on every device. What an earlier run had filled is not
/// filled again. A warning for the record says how much was written.
///
/// # Errors
/// [`SessionError::Guard`] without leave to write; [`SessionError::Prepare`]; [`SessionError::Interrupted`],
/// and then the next run goes on from there.
pub fn prepare(
    plan: &Plan,
    opened: &Opened,
    consent: &Consent,
    sysfs: &Sysfs,
    control: &Control,
    observer: &mut dyn Observer,
) -> Result<Vec<Warning>, SessionError> {
    if !reads_anything(plan) {
        return Err(SessionError::NothingToPrepare);
    }
    let mut notes = Vec::new();
    for (index, facts) in (0_u32..).zip(&opened.facts()) {
        let Some(range_bytes) = read_range(&plan.steps, index, facts) else {
            continue;
        };
        if facts.own_scratch {
            continue;
        }
        let permit = permit(facts, consent, Intent::Prepare, sysfs)?;
        Guard::new(sysfs).again(&permit)?;
        let fill = Fill {
            device: (facts.identity.clone().or_else(|| facts.serial.clone()))
                .unwrap_or_else(|| permit.path().display().to_string()),
            first_byte: range_bytes.start,
            length_bytes: range_bytes.end - range_bytes.start,
            seed: 1,
        };
        let file = open_for_filling(facts, permit.path())?;
        let mut told = Instant::now();
        let progress = |now: super::prepare::Progress| {
            if told.elapsed() >= TELL_EVERY || now.done_bytes == now.total_bytes {
                told = Instant::now();
                observer.snapshot(&snapshot(facts, &now));
            }
            if control.cause() >= StopCause::Signal {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        };
        let filled = fill.run(&state_folder(), &mut FileMedium { file, progress })?;
        if !filled.is_complete {
            return Err(SessionError::Interrupted);
        }
        notes.push(note(facts, &filled));
    }
    Ok(notes)
}

fn note(facts: &DeviceFacts, filled: &Filled) -> Warning {
    let resumed = match filled.resumed_from_bytes {
        0 => String::new(),
        bytes => format!(", after the {bytes} bytes of an earlier run"),
    };
    Warning {
        kind: "prepared".to_owned(),
        text: format!(
            "{}: {} bytes of random data were written before the run{resumed}",
            facts.path, filled.written_bytes
        ),
        next_step: String::new(),
    }
}

fn reads_anything(plan: &Plan) -> bool {
    let mut streams = plan.steps.iter().flat_map(|step| &step.streams);
    streams.any(|stream| matches!(stream.ops, OpMix::Read | OpMix::ReadWrite { .. }))
}

/// The bytes between the first and the last block that these steps read on a device; `None` where they
/// read nothing there.
fn read_range<'a>(
    steps: impl IntoIterator<Item = &'a StepPlan>,
    device_index: u32,
    facts: &DeviceFacts,
) -> Option<Range<u64>> {
    if !matches!(facts.kind, DeviceKind::Block | DeviceKind::File) {
        return None;
    }
    let block_bytes = u64::from(facts.logical_block.bytes());
    let regions = steps
        .into_iter()
        .flat_map(|step| &step.streams)
        .filter(|stream| {
            let reads = matches!(stream.ops, OpMix::Read | OpMix::ReadWrite { .. });
            reads && stream.device_index == device_index
        });
    let ends = regions.map(|s| (s.region.first_lba, s.region.first_lba + s.region.blocks));
    let (first, end) = ends.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))?;
    Some(first * block_bytes..end * block_bytes)
}

/// One look at one range. A device that cannot be read says so when it is measured.
fn look(
    facts: &DeviceFacts,
    range_bytes: Range<u64>,
    seed: u64,
    control: &Control,
) -> Option<Warning> {
    if facts.own_scratch {
        return None;
    }
    let mut options = OpenOptions::new();
    let file = options
        .read(true)
        .custom_flags(libc::O_DIRECT)
        .open(&facts.path)
        .ok()?;
    let block_bytes = facts.logical_block.bytes();
    let share: Share = if facts.kind == DeviceKind::File {
        of_opened(file, range_bytes, block_bytes, seed).ok()?
    } else {
        let content = Interruptible {
            content: FileContent::new(file).ok()?,
            control,
        };
        of_samples(&content, range_bytes, block_bytes, seed, SAMPLES_COUNT).ok()?
    };
    share.warning(&facts.path)
}

/// Content that stops being readable when a signal comes: samples of a slow disk take their time.
struct Interruptible<'a> {
    content: FileContent,
    control: &'a Control,
}

impl ReadAt for Interruptible<'_> {
    fn size_bytes(&self) -> u64 {
        self.content.size_bytes()
    }

    fn read_at(&self, offset_bytes: u64, buffer: &mut [u8]) -> Result<(), Errno> {
        if self.control.cause() >= StopCause::Signal {
            return Err(Errno(libc::EINTR));
        }
        self.content.read_at(offset_bytes, buffer)
    }
}

fn open_for_filling(facts: &DeviceFacts, path: &Path) -> Result<File, SessionError> {
    let exclusive = if facts.kind == DeviceKind::Block {
        libc::O_EXCL
    } else {
        0
    };
    let mut options = OpenOptions::new();
    options.write(true).custom_flags(libc::O_DIRECT | exclusive);
    options.open(path).map_err(|error| {
        SessionError::Backend(crate::backend::BackendError::Open {
            path: facts.path.clone(),
            errno: Errno::of(&error),
            hint: " for filling".to_owned(),
        })
    })
}

#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)]
fn snapshot(facts: &DeviceFacts, now: &super::prepare::Progress) -> Snapshot {
    let elapsed_s = now.elapsed.as_secs_f64();
    let rate = now.written_bytes as f64 / elapsed_s.max(1e-9);
    let total_s =
        (rate > 0.0).then(|| elapsed_s + (now.total_bytes - now.done_bytes) as f64 / rate);
    Snapshot {
        step: format!("filling {}", facts.path),
        step_number: 1,
        steps_count: 1,
        phase: Phase::Setup,
        elapsed_s,
        total_s,
        // Every snapshot has news.
        intervals_count: (now.written_bytes / super::prepare::CHUNK_BYTES as u64) as usize,
        iops: None,
        bytes_per_s: Some(rate),
        p50_ns: None,
        p99_ns: None,
        in_flight_count: 1,
        errors_count: 0,
    }
}

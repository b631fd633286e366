//! Is there something to read? Looks for never-written data before a run, and fills it where asked.

use super::prepare::{FileMedium, Fill, Filled, PrepareError, Progress, state_folder};
use super::samples::{Blank, Places, SAMPLES_COUNT};
use super::written::of_opened;
use crate::backend::spdk::SpdkDevice;
use crate::backend::{Device, DeviceFacts, DeviceKind};
use crate::config::{Plan, StepPlan};
use crate::errno::Errno;
use crate::reactor::{Control, StopCause};
use crate::record::Warning;
use crate::session::SessionError;
use crate::session::guard::{Consent, Guard, Intent, Permit};
use crate::session::machine::Machine;
use crate::session::observer::{Observer, Phase, Snapshot};
use crate::session::open::Opened;
use crate::session::open::leave::permit;
use crate::session::spdk::blocks::{SpdkMedium, for_filling, for_samples};
use crate::session::spdk::writes;
use crate::sysfs::Sysfs;
use crate::units::Bytes;
use crate::workload::OpMix;
use std::collections::HashMap;
use std::fmt::Write;
use std::fs::{File, Metadata, OpenOptions};
use std::ops::{ControlFlow, Range};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant, UNIX_EPOCH};

/// The observer is told of a fill this often.
const TELL_EVERY: Duration = Duration::from_millis(500);
/// Signals are looked for this often.
const SIGNAL_EVERY: Duration = Duration::from_millis(50);
/// A disk of 10 ms a read is looked at in half of this.
const LOOK_LIMIT: Duration = Duration::from_secs(5);

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
    let through_spdk = matches!(opened, Opened::Spdk { .. });
    let mut known: HashMap<(u32, Range<u64>), Option<Warning>> = HashMap::new();
    let mut all = Vec::new();
    for step in &plan.steps {
        let mut warnings = Vec::new();
        for (index, facts) in (0_u32..).zip(&facts) {
            let Some(range_bytes) = read_range([step], (index, through_spdk), facts) else {
                continue;
            };
            let found = known
                .entry((index, range_bytes.clone()))
                .or_insert_with(|| match opened {
                    Opened::Spdk { devices, .. } => {
                        look_through_spdk(&devices[index as usize], range_bytes, plan.seed, control)
                    }
                    _ => look(facts, range_bytes, plan.seed, control),
                });
            warnings.extend(found.clone());
        }
        if let (true, Some(warning)) = (strict, warnings.first()) {
            return Err(SessionError::NeverWritten(warning.text.clone()));
        }
        all.push(warnings);
    }
    Ok(all)
}

/// One device that is to be filled, with the guard's leave.
struct Filling {
    index: u32,
    range_bytes: Range<u64>,
    permit: Permit,
}

/// Whether [`prepare`] may fill what it would: the guard's word on every device. Nothing is written.
///
/// # Errors
/// [`SessionError::Guard`], [`SessionError::NothingToPrepare`].
pub fn may_prepare(
    plan: &Plan,
    opened: &Opened,
    consent: &Consent,
    sysfs: &Sysfs,
) -> Result<(), SessionError> {
    fillings(plan, opened, consent, sysfs).map(drop)
}

fn fillings(
    plan: &Plan,
    opened: &Opened,
    consent: &Consent,
    sysfs: &Sysfs,
) -> Result<Vec<Filling>, SessionError> {
    if !reads_anything(plan) {
        return Err(SessionError::NothingToPrepare);
    }
    let through_spdk = matches!(opened, Opened::Spdk { .. });
    let mut fillings = Vec::new();
    for (index, facts) in (0_u32..).zip(&opened.facts()) {
        let range_bytes = read_range(&plan.steps, (index, through_spdk), facts);
        let Some(range_bytes) = range_bytes.filter(|_| !facts.own_scratch) else {
            continue;
        };
        let permit = match opened {
            Opened::Spdk { devices, .. } => {
                writes::permit(devices, index as usize, consent, Intent::Prepare, sysfs)?
            }
            _ => permit(facts, consent, Intent::Prepare, sysfs)?,
        };
        fillings.push(Filling {
            index,
            range_bytes,
            permit,
        });
    }
    Ok(fillings)
}

/// Fills what the plan reads with random data, on every device, once all of them are known to be free for that.
/// What an earlier run had filled is not filled again. A warning for the record says how much was written.
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
    let all = opened.facts();
    let mut notes = Vec::new();
    for filling in fillings(plan, opened, consent, sysfs)? {
        let index = filling.index as usize;
        let (facts, permit) = (&all[index], &filling.permit);
        let mut told = Instant::now();
        let mut progress = |now: Progress| {
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
        let filled = match opened {
            Opened::Spdk { devices, .. } => {
                let device = &devices[index];
                fill_through_spdk(device, filling.range_bytes, control, &mut progress)?
            }
            _ => {
                Guard::new(sysfs).again(permit)?;
                let path = match (facts.kind, facts.content_path()) {
                    (DeviceKind::Block | DeviceKind::File, _) | (_, None) => permit.path(),
                    (_, Some(block)) => Path::new(block),
                };
                let file = open_for_filling(facts, path)?;
                let device = (facts.identity.clone().or_else(|| facts.serial.clone()))
                    .unwrap_or_else(|| own_name(permit, &file, sysfs));
                fill(device, filling.range_bytes)
                    .run(&state_folder(), &mut FileMedium { file, progress })?
            }
        };
        if !filled.is_complete {
            return Err(SessionError::Interrupted);
        }
        notes.push(note(facts, &filled));
    }
    Ok(notes)
}

/// What is filled, where nothing in the world names it: its path, and what tells it from another file or medium
/// that comes to be there. A number of a file that is gone is soon given to the next: hence its time of birth.
fn own_name(permit: &Permit, file: &File, sysfs: &Sysfs) -> String {
    let mut name = permit.path().display().to_string();
    let born = |file: &Metadata| file.created().ok()?.duration_since(UNIX_EPOCH).ok();
    let mut add = |found: &Metadata| {
        let born_ns = born(found).map_or(0, |born| born.as_nanos());
        let _ = write!(name, " {}:{}:{born_ns}", found.dev(), found.ino());
    };
    match file.metadata() {
        Ok(found) if found.is_file() => add(&found),
        _ => {
            let machine = Machine::read(sysfs).ok();
            let loops = machine.iter().flat_map(|machine| &machine.loops);
            let mut own = loops.filter(|it| permit.path().ends_with(&it.name));
            let behind = own.next().and_then(|it| it.backing.path.metadata().ok());
            behind.iter().for_each(add);
        }
    }
    // Counted up by the kernel whenever another medium, or file, comes to be behind a node.
    let sequence = permit.disk_sequence();
    sequence.map_or(name.clone(), |sequence| format!("{name} #{sequence}"))
}

fn fill(device: String, range_bytes: Range<u64>) -> Fill {
    Fill {
        device,
        first_byte: range_bytes.start,
        length_bytes: range_bytes.end - range_bytes.start,
        seed: 1,
    }
}

/// Fills a namespace that the guard has permitted to be filled.
fn fill_through_spdk(
    device: &SpdkDevice,
    range_bytes: Range<u64>,
    control: &Control,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Filled, SessionError> {
    let facts = device.facts();
    // A serial number is the whole controller's: it does not tell namespaces apart.
    let name = facts.identity.clone().unwrap_or_else(|| facts.path.clone());
    let stop = || control.cause() >= StopCause::Signal;
    let mut medium = SpdkMedium {
        blocks: for_filling(device)?,
        stop: &stop,
        progress,
    };
    let filled = fill(name, range_bytes).run(&state_folder(), &mut medium);
    medium.blocks.close();
    match filled {
        Err(PrepareError::Write { .. }) if stop() => Err(SessionError::Interrupted),
        filled => Ok(filled?),
    }
}

fn note(facts: &DeviceFacts, filled: &Filled) -> Warning {
    let resumed = match filled.resumed_from_bytes {
        0 => String::new(),
        bytes => format!(", after the {} of an earlier run", Bytes(bytes)),
    };
    Warning {
        kind: "prepared".to_owned(),
        text: format!(
            "{}: {} of random data were written before the run{resumed}",
            facts.path,
            Bytes(filled.written_bytes)
        ),
        next_step: String::new(),
    }
}

fn reads_anything(plan: &Plan) -> bool {
    let mut streams = plan.steps.iter().flat_map(|step| &step.streams);
    streams.any(|stream| reads(stream.ops))
}

const fn reads(ops: OpMix) -> bool {
    matches!(
        ops,
        OpMix::Read | OpMix::ReadWrite { .. } | OpMix::ProbeRead
    )
}

/// The bytes between the first and the last block that these steps read on a device; `None` where they
/// read nothing there.
fn read_range<'a>(
    steps: impl IntoIterator<Item = &'a StepPlan>,
    (device_index, through_spdk): (u32, bool),
    facts: &DeviceFacts,
) -> Option<Range<u64>> {
    if !through_spdk {
        facts.content_path()?;
    }
    let block_bytes = u64::from(facts.logical_block.bytes());
    let regions = steps
        .into_iter()
        .flat_map(|step| &step.streams)
        .filter(|stream| reads(stream.ops) && stream.device_index == device_index);
    let ends = regions.map(|s| (s.region.first_lba, s.region.first_lba + s.region.blocks));
    let (first, end) = ends.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))?;
    Some(first * block_bytes..end * block_bytes)
}

/// One look at one range. A device that cannot be read says so when it is measured; one that never answers
/// must not keep the run from its own deadline, so the look has a thread of its own, which is left behind.
fn look(
    facts: &DeviceFacts,
    range_bytes: Range<u64>,
    seed: u64,
    control: &Control,
) -> Option<Warning> {
    if facts.own_scratch {
        return None;
    }
    let path = facts.content_path()?.to_owned();
    let block_bytes = facts.logical_block.bytes();
    let is_late = Arc::new(AtomicBool::new(false));
    let (sender, receiver) = std::sync::mpsc::channel();
    let given_up = Arc::clone(&is_late);
    std::thread::spawn(move || {
        let mut options = OpenOptions::new();
        let options = options.read(true).custom_flags(libc::O_DIRECT);
        let share = (options.open(path).ok())
            .and_then(|file| of_opened(file, range_bytes, block_bytes, seed, &given_up).ok());
        // Nobody listens any more where it came too late.
        let _ = sender.send(share);
    });
    let began = Instant::now();
    loop {
        match receiver.recv_timeout(SIGNAL_EVERY) {
            Err(RecvTimeoutError::Timeout) => {
                let is_signalled = control.cause() >= StopCause::Signal;
                if is_signalled || began.elapsed() >= LOOK_LIMIT {
                    // Later reads would be measured along with the run's own.
                    is_late.store(true, Ordering::Relaxed);
                    return Some(not_looked_at(facts));
                }
            }
            Err(RecvTimeoutError::Disconnected) | Ok(None) => return None,
            Ok(Some(share)) => return share.warning(&facts.path),
        }
    }
}

/// The same through SPDK, where it has the device. Polled, so it needs no thread to be given up.
fn look_through_spdk(
    device: &SpdkDevice,
    range_bytes: Range<u64>,
    seed: u64,
    control: &Control,
) -> Option<Warning> {
    let facts = device.facts();
    let block_bytes = facts.logical_block.bytes();
    let places = Places::of(
        facts.capacity.0,
        range_bytes,
        block_bytes,
        seed,
        SAMPLES_COUNT,
    );
    let blank = match device.namespace().identify.deallocated_reads {
        2 => Blank::ZerosOrOnes,
        _ => Blank::Zeros,
    };
    let began = Instant::now();
    let is_late = || control.cause() >= StopCause::Signal || began.elapsed() >= LOOK_LIMIT;
    let mut blocks = for_samples(device, places.sample_bytes).ok()?;
    let found = blocks.blank_count(&places, blank, &is_late);
    blocks.close();
    match found {
        Ok(count) => places.share(count, blank).warning(&facts.path),
        Err(_) if is_late() => Some(not_looked_at(facts)),
        Err(_) => None,
    }
}

fn not_looked_at(facts: &DeviceFacts) -> Warning {
    Warning {
        kind: "never-written-unknown".to_owned(),
        text: format!(
            "{}: whether its blocks were ever written is not known: it did not answer {SAMPLES_COUNT} reads in {} s",
            facts.path,
            LOOK_LIMIT.as_secs()
        ),
        next_step:
            "see whether something else keeps it busy, and its errors in dmesg or at its target"
                .to_owned(),
    }
}

fn open_for_filling(facts: &DeviceFacts, path: &Path) -> Result<File, SessionError> {
    let exclusive = match facts.kind {
        DeviceKind::File => 0,
        _ => libc::O_EXCL,
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

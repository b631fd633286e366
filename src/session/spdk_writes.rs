//! Leave to write to a namespace that SPDK drives: consent by name, signatures read through SPDK itself, and the
//! kernel's word where it has the same namespace too.

use super::SessionError;
use super::guard::content::ReadAt;
use super::guard::{Consent, Guard, Intent, Permit};
use super::identity::Identity;
use super::machine::Machine;
use crate::backend::spdk::{SpdkDevice, SpdkQueue};
use crate::backend::{Batch, Device, DeviceFacts, Queue, QueueSpec, Sink, Wait};
use crate::errno::Errno;
use crate::request::{Io, Op, Slot, Status};
use crate::spdk::{NamespaceChoice, TransportId};
use crate::sysfs::Sysfs;
use std::cell::RefCell;
use std::time::{Duration, Instant};

/// How long one read of the guard's may take.
const READ_LIMIT: Duration = Duration::from_secs(10);
/// How long giving its queue back may take.
const CLOSE_LIMIT: Duration = Duration::from_millis(500);
/// Bytes read at once, where a block is not larger.
const PIECE_BYTES: u32 = 64 << 10;

/// The guard's word on one of the devices of a run.
///
/// # Errors
/// [`SessionError::Guard`] with everything that was found; [`SessionError::Refused`] where the kernel drives the
/// same namespace.
pub(super) fn permit(
    devices: &[SpdkDevice],
    index: usize,
    consent: &Consent,
    intent: Intent,
    sysfs: &Sysfs,
) -> Result<Permit, SessionError> {
    let device = &devices[index];
    let facts = device.facts();
    if let Some(twin) = kernel_twin(facts, sysfs) {
        return Err(SessionError::Refused {
            device: facts.path.clone(),
            why: format!(
                "the kernel has the same namespace as {twin}, which may be in use: name that node instead, \
                 or disconnect it"
            ),
        });
    }
    let same_serial = devices
        .iter()
        .filter(|other| other.facts().serial == facts.serial);
    let serial = facts.serial.as_deref().filter(|_| same_serial.count() == 1);
    let alone = devices
        .iter()
        .filter(|other| other.controller().name() == device.controller().name())
        .count()
        == 1;
    let consent = Consent {
        allow_write: consent
            .allow_write
            .iter()
            .map(|word| full_name(&known_now(word, sysfs), &facts.path, alone))
            .collect(),
        ..consent.clone()
    };
    let content = Content::open(device)?;
    let word = Guard::check_unlisted(&facts.path, serial, &content, &consent, intent);
    content.close();
    Ok(word?)
}

/// The node that a claimed device had before is gone; it still names the device.
fn known_now(word: &str, sysfs: &Sysfs) -> String {
    super::auto::claimed(std::path::Path::new(word), sysfs).unwrap_or_else(|| word.to_owned())
}

/// A word of consent as the device's own name, where it is another spelling of it.
fn full_name(word: &str, path: &str, alone: bool) -> String {
    let same = || {
        let (given, device) = (
            word.parse::<TransportId>().ok()?,
            path.parse::<TransportId>().ok()?,
        );
        let namespace = match given.namespace {
            NamespaceChoice::Only => alone,
            NamespaceChoice::All => true,
            chosen @ NamespaceChoice::Id(_) => chosen == device.namespace,
        };
        (namespace && given.controller_text() == device.controller_text()).then(|| path.to_owned())
    };
    same().unwrap_or_else(|| word.to_owned())
}

/// A disk of the kernel's with the same world-wide name.
fn kernel_twin(facts: &DeviceFacts, sysfs: &Sysfs) -> Option<String> {
    let own = facts.identity.as_deref()?;
    let machine = Machine::read(sysfs).ok()?;
    let is_twin = |identity: &Identity| {
        identity
            .world_wide_name()
            .is_some_and(|name| name.eq_ignore_ascii_case(own))
    };
    let twin = machine
        .disks()
        .find(|disk| Identity::of_disk(disk).is_ok_and(|identity| is_twin(&identity)))?;
    Some(machine.node_path(&twin.name).display().to_string())
}

/// A namespace's content, read one piece at a time.
struct Content {
    queue: RefCell<SpdkQueue>,
    size_bytes: u64,
    block_bytes: u64,
    piece_bytes: u64,
}

impl Content {
    fn open(device: &SpdkDevice) -> Result<Self, SessionError> {
        let facts = device.facts();
        let piece_bytes = PIECE_BYTES.max(facts.logical_block.bytes());
        let spec = QueueSpec {
            reactor_index: 0,
            slots_count: 1,
            slot_bytes: piece_bytes,
            batch: Batch {
                submit: 1,
                complete_min: 1,
                complete_max: 1,
            },
            writes: false,
        };
        Ok(Self {
            queue: RefCell::new(device.open_queue(spec)?),
            size_bytes: facts.capacity.0,
            block_bytes: u64::from(facts.logical_block.bytes()),
            piece_bytes: u64::from(piece_bytes),
        })
    }

    fn close(self) {
        self.queue.into_inner().close(CLOSE_LIMIT);
    }
}

/// Takes the bytes of one read.
struct Take<'a> {
    out: &'a mut [u8],
    skip: usize,
    status: Option<Status>,
}

impl Sink for Take<'_> {
    fn complete(&mut self, _slot: Slot, status: Status, buffer: &mut [u8]) -> Option<Io> {
        let bytes = self.out.len();
        self.out
            .copy_from_slice(&buffer[self.skip..self.skip + bytes]);
        self.status = Some(status);
        None
    }
}

impl ReadAt for Content {
    fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    fn read_at(&self, offset_bytes: u64, buffer: &mut [u8]) -> Result<(), Errno> {
        const FAILED: Errno = Errno(libc::EIO);
        let end = offset_bytes
            .checked_add(buffer.len() as u64)
            .ok_or(FAILED)?;
        if end > self.size_bytes {
            return Err(FAILED);
        }
        let mut queue = self.queue.borrow_mut();
        let (mut at, mut rest) = (offset_bytes, buffer);
        while !rest.is_empty() {
            let skip = at % self.block_bytes;
            let bytes = (self.piece_bytes - skip).min(rest.len() as u64);
            let blocks = (skip + bytes).div_ceil(self.block_bytes);
            let (now, later) = rest.split_at_mut(usize::try_from(bytes).map_err(|_| FAILED)?);
            let mut take = Take {
                out: now,
                skip: usize::try_from(skip).map_err(|_| FAILED)?,
                status: None,
            };
            let io = Io {
                lba: at / self.block_bytes,
                blocks: u32::try_from(blocks).map_err(|_| FAILED)?,
                op: Op::Read,
            };
            queue.submit(Slot(0), io).map_err(|_| FAILED)?;
            let start = Instant::now();
            while take.status.is_none() {
                queue
                    .poll(&mut take, Wait::Never)
                    .map_err(|_| Errno(libc::ENODEV))?;
                if start.elapsed() > READ_LIMIT {
                    return Err(Errno(libc::ETIMEDOUT));
                }
            }
            if take.status != Some(Status::Ok) {
                return Err(FAILED);
            }
            (at, rest) = (at + bytes, later);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consent_may_spell_the_same_controller_in_another_way_and_never_another_namespace() {
        let path = "trtype:TCP adrfam:IPv4 traddr:127.0.0.1 trsvcid:4420 subnqn:x ns:1";
        let short = "trtype:tcp traddr:127.0.0.1 trsvcid:4420 subnqn:x";
        assert_eq!(full_name(short, path, true), path);
        assert_eq!(full_name(short, path, false), short);
        assert_eq!(full_name(&format!("{short} ns:1"), path, false), path);
        assert_eq!(full_name(&format!("{short} ns:all"), path, false), path);
        assert_ne!(full_name(&format!("{short} ns:2"), path, true), path);
        assert_ne!(full_name(&short.replace("4420", "4421"), path, true), path);
        assert_eq!(full_name("SERIAL", path, true), "SERIAL");
        assert_eq!(
            full_name("01:00.0", "0000:01:00.0 ns:1", true),
            "0000:01:00.0 ns:1"
        );
    }
}

//! SCSI generic, interface version 3 (include/scsi/sg.h): commands go to a SCSI device by write(2) of a header
//! and come back by read(2), neither of which waits for the device.
//!
//! A file takes 16 commands at most, so a queue has several ([`super::sg_lane::SgLane`]). The driver queues a command at the head
//! of what waits in the kernel unless told otherwise, which past the device's own queue is last in, first out;
//! here every command is queued at the tail.
//!
//! Data are copied through buffers of the kernel, or go straight to ours where the driver allows it (`allow_dio`)
//! and the device can take their alignment; each command tells afterwards which it was.

use super::buffers::Arena;
use super::ioctl::{self, OpenMode};
use super::last_errno;
use crate::errno::Errno;
use crate::proto::scsi::{Cdb, Sense, UNMAP_LIST_BYTES};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// Commands that the driver takes per open file (`SG_MAX_QUEUE`).
pub const COMMANDS_PER_FILE: usize = 16;
/// Room for sense data: what the kernel itself keeps of them (`SCSI_SENSE_BUFFERSIZE`).
const SENSE_BYTES: usize = 96;

const INTERFACE_ID: i32 = b'S' as i32;
const DXFER_NONE: i32 = -1;
const DXFER_TO_DEV: i32 = -2;
const DXFER_FROM_DEV: i32 = -3;
const FLAG_DIRECT_IO: u32 = 0x01;
const FLAG_Q_AT_TAIL: u32 = 0x10;
const INFO_DIRECT_IO_MASK: u32 = 0x06;
const INFO_DIRECT_IO: u32 = 0x02;

/// `struct sg_io_hdr`. Pointers are numbers here: only the kernel follows them.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct Header {
    interface_id: i32,
    dxfer_direction: i32,
    cmd_len: u8,
    mx_sb_len: u8,
    iovec_count: u16,
    dxfer_len: u32,
    dxferp: u64,
    cmdp: u64,
    sbp: u64,
    timeout_ms: u32,
    flags: u32,
    pack_id: i32,
    usr_ptr: u64,
    status: u8,
    masked_status: u8,
    msg_status: u8,
    sb_len_wr: u8,
    host_status: u16,
    driver_status: u16,
    resid: i32,
    duration_ms: u32,
    info: u32,
}

/// What a command moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Payload {
    /// Nothing.
    None,
    /// From the device into a part of the slot's buffer.
    Read {
        /// Where in the slot.
        offset_bytes: u32,
        /// How much.
        length_bytes: u32,
    },
    /// From a part of the slot's buffer to the device.
    Write {
        /// Where in the slot.
        offset_bytes: u32,
        /// How much.
        length_bytes: u32,
    },
    /// A parameter list to the device.
    List([u8; UNMAP_LIST_BYTES]),
}

impl Payload {
    /// Bytes it moves.
    #[must_use]
    pub const fn length_bytes(&self) -> u32 {
        match self {
            Self::None => 0,
            Self::Read { length_bytes, .. } | Self::Write { length_bytes, .. } => *length_bytes,
            Self::List(_) => UNMAP_LIST_BYTES as u32,
        }
    }

    /// The part of the slot's buffer that it moves.
    #[must_use]
    pub const fn part(&self) -> Option<(u32, u32)> {
        match *self {
            Self::Read {
                offset_bytes,
                length_bytes,
            }
            | Self::Write {
                offset_bytes,
                length_bytes,
            } => Some((offset_bytes, length_bytes)),
            Self::None | Self::List(_) => None,
        }
    }
}

/// One command.
#[derive(Debug, Clone, Copy)]
pub struct Command {
    /// Whose buffer it moves.
    pub slot: u32,
    /// The command itself.
    pub cdb: Cdb,
    /// What it moves.
    pub payload: Payload,
    /// The kernel aborts it after this long.
    pub timeout_ms: u32,
    /// Ask for transfers without a copy.
    pub direct: bool,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Done {
    /// Its number among those in flight in its file, below [`COMMANDS_PER_FILE`].
    pub place: u8,
    /// SAM status.
    pub status: u8,
    /// Host byte.
    pub host: u8,
    /// Driver byte.
    pub driver: u8,
    /// Bytes that were asked for and not moved.
    pub residual_bytes: u32,
    /// Sense data, where some came.
    pub sense: Option<Sense>,
    /// The data went straight to or from our buffer.
    pub was_direct: bool,
}

/// Shown by a lane, which alone sees to it that buffers outlive what is in flight: nobody else may hand commands
/// to a file.
#[derive(Debug, Clone, Copy)]
pub struct InLane(pub(super) ());

/// A file that takes commands: an open sg node, or a test's stand-in.
pub trait CommandFile: Sized {
    /// Hands a command over. `place` is free. The part of the buffer that it moves is the device's until the
    /// command was reaped.
    ///
    /// # Errors
    /// The kernel's: ENODEV where the device is gone, ENOMEM where it has no room for a copy of the data,
    /// EINVAL where the transfer is larger than the queue allows.
    fn send(
        &mut self,
        place: u8,
        command: &Command,
        buffers: &mut Arena,
        lane: InLane,
    ) -> Result<(), Errno>;

    /// A command that has ended; `None` where there is none.
    ///
    /// # Errors
    /// The kernel's, which leave the file of no use.
    fn reap(&mut self, buffers: &mut Arena, lane: InLane) -> Result<Option<Done>, Errno>;

    /// Looks which files have something to reap and marks them in `ready`, in their order; waits for one up to
    /// `timeout_ms`. ENODEV where the device is gone.
    ///
    /// # Errors
    /// The kernel's.
    fn look(files: &mut [Self], ready: &mut [PollSlot], timeout_ms: u32) -> Result<(), Errno>;
}

/// One file's word in a look.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
pub struct PollSlot(libc::pollfd);

impl Default for PollSlot {
    fn default() -> Self {
        Self(libc::pollfd {
            fd: -1,
            events: libc::POLLIN,
            revents: 0,
        })
    }
}

impl PollSlot {
    /// Whether there is something to reap.
    #[must_use]
    #[inline]
    pub const fn is_ready(self) -> bool {
        self.0.revents & libc::POLLIN != 0
    }

    /// Says whether there is.
    pub const fn mark(&mut self, is_ready: bool) {
        self.0.revents = if is_ready { libc::POLLIN } else { 0 };
    }
}

/// Where such files come from.
pub trait CommandNode: Send + Sync {
    /// What it opens.
    type File: CommandFile;

    /// Opens one more, with a buffer of its own in the kernel of at least `reserve_bytes` for copies, as far as
    /// there is memory.
    ///
    /// # Errors
    /// The kernel's.
    fn open(&self, reserve_bytes: u32) -> Result<Self::File, Errno>;

    /// What limits a command.
    ///
    /// # Errors
    /// The kernel's.
    fn limits(&self) -> Result<NodeLimits, Errno>;
}

/// What the kernel says of a node's commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeLimits {
    /// Largest transfer of the queue (`BLKSECTGET`, which for sg is in bytes): `max_sectors_kb`.
    pub max_sectors_bytes: u32,
    /// Most scatter-gather elements (`SG_GET_SG_TABLESIZE`).
    pub elements_count: u32,
    /// Version of the driver: 30536 is 3.5.36.
    pub version: u32,
}

/// An sg node of the machine.
#[derive(Debug, Clone)]
pub struct SgNode {
    path: PathBuf,
}

impl SgNode {
    /// The node at a path. Nothing is opened yet.
    #[must_use]
    pub fn at(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
        }
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Commands are sent by write(2), so that even reading needs a file that is open for writing.
    fn open_file(&self) -> Result<File, Errno> {
        let mode = OpenMode {
            direct: false,
            write: true,
            exclusive: false,
        };
        ioctl::open_no_wait(&self.path, mode)
    }
}

impl CommandNode for SgNode {
    type File = SgFile;

    fn open(&self, reserve_bytes: u32) -> Result<SgFile, Errno> {
        let file = self.open_file()?;
        if reserve_bytes > 0 {
            // What it gives less than asked, it takes from elsewhere for each command: slower, no error.
            let _ = ioctl::sg_set_reserved_size(&file, reserve_bytes);
        }
        Ok(SgFile {
            file,
            sense: Box::new([[0; SENSE_BYTES]; COMMANDS_PER_FILE]),
        })
    }

    fn limits(&self) -> Result<NodeLimits, Errno> {
        let file = self.open_file()?;
        Ok(NodeLimits {
            max_sectors_bytes: ioctl::sg_max_sectors_bytes(&file)?,
            elements_count: ioctl::sg_table_size(&file)?,
            version: ioctl::sg_version(&file)?,
        })
    }
}

/// An open sg node.
#[derive(Debug)]
pub struct SgFile {
    // Closed before the sense buffers go: the kernel writes to those only in a read(2) of this file.
    file: File,
    sense: Box<[[u8; SENSE_BYTES]; COMMANDS_PER_FILE]>,
}

impl CommandFile for SgFile {
    #[inline]
    fn send(
        &mut self,
        place: u8,
        command: &Command,
        buffers: &mut Arena,
        _lane: InLane,
    ) -> Result<(), Errno> {
        let (direction, address) = match &command.payload {
            Payload::None => (DXFER_NONE, 0),
            Payload::Read { offset_bytes, .. } => (
                DXFER_FROM_DEV,
                buffers.address(command.slot as usize) + u64::from(*offset_bytes),
            ),
            Payload::Write { offset_bytes, .. } => (
                DXFER_TO_DEV,
                buffers.address(command.slot as usize) + u64::from(*offset_bytes),
            ),
            Payload::List(list) => (DXFER_TO_DEV, list.as_ptr() as u64),
        };
        if let Some((offset, length)) = command.payload.part() {
            let end = u64::from(offset) + u64::from(length);
            assert!(
                end <= buffers.slot_bytes() as u64,
                "a transfer past the slot"
            );
        }
        let direct = command.direct && command.payload.part().is_some();
        let cdb = command.cdb.as_bytes();
        let header = Header {
            interface_id: INTERFACE_ID,
            dxfer_direction: direction,
            cmd_len: cdb.len() as u8,
            mx_sb_len: SENSE_BYTES as u8,
            dxfer_len: command.payload.length_bytes(),
            dxferp: address,
            cmdp: cdb.as_ptr() as u64,
            sbp: self.sense[usize::from(place)].as_mut_ptr() as u64,
            timeout_ms: command.timeout_ms,
            flags: FLAG_Q_AT_TAIL | if direct { FLAG_DIRECT_IO } else { 0 },
            pack_id: i32::from(place),
            ..Header::default()
        };
        let bytes = size_of::<Header>();
        // SAFETY: the kernel reads the header and through it the CDB and a parameter list, all alive during the
        // call (lists are never sent direct, so they are copied now). It keeps the addresses of the slot and of
        // the sense buffer until the command is reaped or the file is closed; both lie in memory that outlives
        // the file (the lane drops files first), the lane gives the slot to nobody meanwhile, and pages under
        // direct I/O are held by the kernel itself whatever becomes of the mapping. The part lies in the slot:
        // asserted above.
        let sent = unsafe { libc::write(self.file.as_raw_fd(), (&raw const header).cast(), bytes) };
        if sent < 0 { Err(last_errno()) } else { Ok(()) }
    }

    #[inline]
    fn reap(&mut self, _buffers: &mut Arena, _lane: InLane) -> Result<Option<Done>, Errno> {
        let mut header = Header::default();
        let bytes = size_of::<Header>();
        // SAFETY: the kernel writes the header, which is live and of its layout, and copies data and sense to
        // the addresses that `send` gave it, which are still ours to give: see there.
        let got = unsafe { libc::read(self.file.as_raw_fd(), (&raw mut header).cast(), bytes) };
        if got < 0 {
            return match last_errno() {
                Errno(libc::EAGAIN | libc::EINTR) => Ok(None),
                errno => Err(errno),
            };
        }
        let place = header.pack_id as usize % COMMANDS_PER_FILE;
        let sense = &self.sense[place][..usize::from(header.sb_len_wr).min(SENSE_BYTES)];
        Ok(Some(Done {
            place: place as u8,
            status: header.status,
            host: header.host_status as u8,
            driver: header.driver_status as u8,
            residual_bytes: header.resid.max(0).cast_unsigned(),
            sense: Sense::decode(sense),
            was_direct: header.info & INFO_DIRECT_IO_MASK == INFO_DIRECT_IO,
        }))
    }

    #[inline]
    fn look(files: &mut [Self], ready: &mut [PollSlot], timeout_ms: u32) -> Result<(), Errno> {
        for (file, slot) in files.iter().zip(ready.iter_mut()) {
            slot.0.fd = file.file.as_raw_fd();
            slot.0.revents = 0;
        }
        let count = files.len().min(ready.len());
        let timeout = i32::try_from(timeout_ms).unwrap_or(i32::MAX);
        // SAFETY: `PollSlot` is a pollfd (`repr(transparent)`), and `count` of them are live.
        let found =
            unsafe { libc::poll(ready.as_mut_ptr().cast(), count as libc::nfds_t, timeout) };
        if found < 0 {
            return match last_errno() {
                Errno(libc::EAGAIN | libc::EINTR) => Ok(()),
                errno => Err(errno),
            };
        }
        // A device that is being removed hangs up; what has ended is still to be read.
        let is_gone = |slot: &PollSlot| slot.0.revents & libc::POLLHUP != 0 && !slot.is_ready();
        if found > 0 && ready[..count].iter().all(is_gone) {
            return Err(Errno(libc::ENODEV));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    #[test]
    fn the_header_is_laid_out_as_the_kernels() {
        assert_eq!(size_of::<Header>(), 88);
        let offsets = [
            (offset_of!(Header, dxfer_direction), 4),
            (offset_of!(Header, cmd_len), 8),
            (offset_of!(Header, mx_sb_len), 9),
            (offset_of!(Header, dxfer_len), 12),
            (offset_of!(Header, dxferp), 16),
            (offset_of!(Header, cmdp), 24),
            (offset_of!(Header, sbp), 32),
            (offset_of!(Header, timeout_ms), 40),
            (offset_of!(Header, flags), 44),
            (offset_of!(Header, pack_id), 48),
            (offset_of!(Header, usr_ptr), 56),
            (offset_of!(Header, status), 64),
            (offset_of!(Header, sb_len_wr), 67),
            (offset_of!(Header, host_status), 68),
            (offset_of!(Header, driver_status), 70),
            (offset_of!(Header, resid), 72),
            (offset_of!(Header, duration_ms), 76),
            (offset_of!(Header, info), 80),
        ];
        for (found, wanted) in offsets {
            assert_eq!(found, wanted);
        }
        assert_eq!(size_of::<PollSlot>(), size_of::<libc::pollfd>());
    }

    /// What is no sg node says so, and never waits.
    #[test]
    fn another_character_device_is_refused() {
        let node = SgNode::at(&crate::sysfs::Sysfs::host().dev("null"));
        assert_eq!(node.limits(), Err(Errno(libc::ENOTTY)));
    }
}

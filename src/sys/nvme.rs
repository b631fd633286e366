//! NVMe namespaces of the kernel's driver without its block layer: admin commands by ioctl
//! (include/uapi/linux/nvme_ioctl.h), and I/O commands in a ring (Linux 5.19).
//!
//! A passthrough command is not checked by the kernel: a controller that is told to move more than the
//! command's buffer holds writes to memory that is not ours. So commands are built here and nowhere else,
//! their data length always follows from their blocks and from what Identify said of the namespace, and no
//! command of the user's own is sent.

use super::ioctl::{self, OpenMode};
use super::ring::{RingError, Wide};
use super::slot_kind::{Frame, SlotKind, sealed};
use super::slots::{SlotRing, SlotRingSpec};
use super::uapi as k;
use crate::errno::Errno;
use crate::proto::nvme::{
    CNS_COMMAND_SET_CONTROLLER, Command, DSM_RANGE_BYTES, IDENTIFY_BYTES, IdentifyController,
    IdentifyNamespace, Layout, LbaFormat, Metadata, NvmeStatus, SMART_BYTES, SMART_LOG_ID,
    SmartLog, VOLATILE_WRITE_CACHE, dsm_range, has_command_set_controller, is_no_feature,
    is_write_cache_on, zeroes_shift,
};
use crate::request::Status;
use crate::sysfs::Sysfs;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

/// Identify Namespace (Base, "Identify – CNS Values").
const CNS_NAMESPACE: u8 = 0x00;
/// Identify Controller.
const CNS_CONTROLLER: u8 = 0x01;
/// Number of Queues: every controller with I/O queues has it, it carries no data and reads no media
/// (Base, "Number of Queues (Feature Identifier 07h)").
const PROBED_FEATURE: u8 = 0x07;
/// The most blocks of one read or write: NLB has 16 bits and counts from zero.
const MAX_BLOCKS: u32 = 1 << 16;

/// Why a namespace cannot be driven.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NvmeError {
    /// The kernel refused a call.
    #[error("{what} failed: {errno}")]
    Kernel {
        /// Which.
        what: &'static str,
        /// Why.
        errno: Errno,
    },
    /// The controller refused a command.
    #[error("{what} failed: {status}")]
    Refused {
        /// Which.
        what: &'static str,
        /// Why.
        status: NvmeStatus,
    },
    /// The namespace's format.
    #[error("{0}")]
    Format(String),
}

/// A namespace's generic node, opened and identified.
#[derive(Debug)]
pub struct NvmeNode {
    file: Arc<File>,
    nsid: u32,
    controller: IdentifyController,
    namespace: IdentifyNamespace,
    layout: Layout,
    zeroes_shift: Option<u8>,
}

impl NvmeNode {
    /// Opens a generic node (or a block node of the driver) and identifies what is behind it. Nothing is
    /// written.
    ///
    /// # Errors
    /// [`NvmeError`]: ENOTTY where it is no NVMe node, a format whose metadata cannot be driven.
    pub fn open(path: &Path, write: bool) -> Result<Self, NvmeError> {
        let mode = OpenMode {
            direct: false,
            write,
            exclusive: false,
        };
        let kernel = |what| move |errno| NvmeError::Kernel { what, errno };
        let file = ioctl::open(path, mode).map_err(kernel("open"))?;
        let nsid = ioctl::nvme_nsid(&file).map_err(kernel("NVME_IOCTL_ID"))?;
        let identify = |what, cns, nsid| {
            let mut bytes = [0; IDENTIFY_BYTES];
            admin(&file, what, Command::identify(cns, nsid), &mut bytes).map(|_| bytes)
        };
        let controller = identify("Identify Controller", CNS_CONTROLLER, 0)?;
        let namespace = identify("Identify Namespace", CNS_NAMESPACE, nsid)?;
        let cut = |error: crate::proto::nvme::Truncated| NvmeError::Format(error.to_string());
        let controller = IdentifyController::decode(&controller).map_err(cut)?;
        let namespace = IdentifyNamespace::decode(&namespace).map_err(cut)?;
        let layout = Layout::of(&namespace).map_err(NvmeError::Format)?;
        // A controller that does not answer has no limit of its own.
        let zeroes_shift = has_command_set_controller(controller.version)
            .then(|| identify("Identify (NVM)", CNS_COMMAND_SET_CONTROLLER, 0).ok())
            .flatten()
            .and_then(|bytes| zeroes_shift(&bytes).ok().flatten());
        if let Metadata::Separate(bytes) = layout.metadata {
            return Err(NvmeError::Format(format!(
                "is formatted with {bytes} bytes of separate metadata per {}-byte block, which uring-cmd does not \
                 drive; use a format without metadata (nvme format --lbaf), backend: uring or backend: spdk",
                layout.block_bytes
            )));
        }
        Ok(Self {
            file: Arc::new(file),
            nsid,
            controller,
            namespace,
            layout,
            zeroes_shift,
        })
    }

    /// The open file.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Namespace ID.
    #[must_use]
    pub const fn nsid(&self) -> u32 {
        self.nsid
    }

    /// What the controller says of itself.
    #[must_use]
    pub const fn controller(&self) -> &IdentifyController {
        &self.controller
    }

    /// What the controller says of the namespace.
    #[must_use]
    pub const fn namespace(&self) -> &IdentifyNamespace {
        &self.namespace
    }

    /// How its format travels.
    #[must_use]
    pub const fn layout(&self) -> Layout {
        self.layout
    }

    /// WZSL: the controller's own limit of a Write Zeroes, as a power of two of a page; absent: it has none.
    #[must_use]
    pub const fn zeroes_shift(&self) -> Option<u8> {
        self.zeroes_shift
    }

    /// The health log of the controller. Reading it changes nothing.
    ///
    /// # Errors
    /// [`NvmeError`].
    pub fn smart(&self) -> Result<SmartLog, NvmeError> {
        smart_of(&self.file)
    }

    /// Whether the volatile write cache of the controller is on; `None` where it has none.
    ///
    /// # Errors
    /// [`NvmeError`].
    pub fn write_cache(&self) -> Result<Option<bool>, NvmeError> {
        write_cache_of(&self.file)
    }

    /// A ring for I/O to the namespace, and for probes where the controller's own node is given.
    ///
    /// # Errors
    /// [`RingError`].
    pub fn ring(
        &self,
        sysfs: &Sysfs,
        controller: Option<&Arc<File>>,
        mut spec: SlotRingSpec,
    ) -> Result<SlotRing<Passthrough>, RingError> {
        let mut files = vec![Arc::clone(&self.file)];
        files.extend(controller.cloned());
        // The range of a deallocation lies in the slot's buffer.
        spec.slot_bytes = spec.slot_bytes.max(DSM_RANGE_BYTES as u32);
        let kind = Passthrough {
            nsid: self.nsid,
            layout: self.layout,
            read: self.layout.template(Command::read(self.nsid, 0, 1)),
            write: self.layout.template(Command::write(self.nsid, 0, 1)),
            zeroes: self.layout.zeroes(self.nsid),
        };
        SlotRing::of_kind(sysfs, files, spec, kind)
    }
}

/// Identifies the namespace of a generic or block node, whatever its format: what it has, and the table of formats
/// that it could have. Nothing is written.
///
/// # Errors
/// [`NvmeError`]: ENOTTY where it is no NVMe node; EACCES where the user may not.
pub fn identified(path: &Path) -> Result<(IdentifyNamespace, Vec<LbaFormat>), NvmeError> {
    let mode = OpenMode {
        direct: false,
        write: false,
        exclusive: false,
    };
    let kernel = |what| move |errno| NvmeError::Kernel { what, errno };
    let file = ioctl::open(path, mode).map_err(kernel("open"))?;
    let nsid = ioctl::nvme_nsid(&file).map_err(kernel("NVME_IOCTL_ID"))?;
    let mut bytes = [0; IDENTIFY_BYTES];
    let command = Command::identify(CNS_NAMESPACE, nsid);
    admin(&file, "Identify Namespace", command, &mut bytes)?;
    let cut = |error: crate::proto::nvme::Truncated| NvmeError::Format(error.to_string());
    let namespace = IdentifyNamespace::decode(&bytes).map_err(cut)?;
    let table = IdentifyNamespace::format_table(&bytes).map_err(cut)?;
    Ok((namespace, table))
}

/// The health log of a controller, by its own node or that of a namespace. Reading it changes nothing.
///
/// # Errors
/// [`NvmeError`]: EACCES where the user may not, ENOTTY where it is no NVMe node.
pub fn smart_at(path: &Path) -> Result<SmartLog, NvmeError> {
    let mode = OpenMode {
        direct: false,
        write: false,
        exclusive: false,
    };
    let kernel = |what| move |errno| NvmeError::Kernel { what, errno };
    let file = ioctl::open(path, mode).map_err(kernel("open"))?;
    smart_of(&file)
}

fn smart_of(file: &File) -> Result<SmartLog, NvmeError> {
    let mut bytes = [0; SMART_BYTES];
    let page = Command::get_log_page(SMART_LOG_ID, u32::MAX, SMART_BYTES as u32);
    admin(file, "Get Log Page (SMART)", page, &mut bytes)?;
    SmartLog::decode(&bytes).map_err(|error| NvmeError::Format(error.to_string()))
}

/// Whether the volatile write cache of a controller is on, by its own node; `None` where it has none.
///
/// # Errors
/// [`NvmeError`]: EACCES where the user may not, ENOTTY where it is no NVMe node.
pub fn write_cache_at(path: &Path) -> Result<Option<bool>, NvmeError> {
    let mode = OpenMode {
        direct: false,
        write: false,
        exclusive: false,
    };
    let kernel = |what| move |errno| NvmeError::Kernel { what, errno };
    let file = ioctl::open(path, mode).map_err(kernel("open"))?;
    write_cache_of(&file)
}

fn write_cache_of(file: &File) -> Result<Option<bool>, NvmeError> {
    let command = Command::get_features(VOLATILE_WRITE_CACHE);
    match admin(
        file,
        "Get Features (Volatile Write Cache)",
        command,
        &mut [],
    ) {
        Ok(dword_0) => Ok(Some(is_write_cache_on(dword_0))),
        Err(NvmeError::Refused { status, .. }) if is_no_feature(status) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Sends an admin command that fills all of `data`. Says dword 0 of its completion.
fn admin(
    file: &File,
    what: &'static str,
    command: Command,
    data: &mut [u8],
) -> Result<u32, NvmeError> {
    match ioctl::nvme_admin(file, &command, data) {
        Ok((0, dword_0)) => Ok(dword_0),
        Ok((status, _)) => Err(NvmeError::Refused {
            what,
            status: NvmeStatus::from_result(status),
        }),
        Err(errno) => Err(NvmeError::Kernel { what, errno }),
    }
}

/// What to do with a slot, in logical blocks of the namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NvmeRequest {
    /// Reads into the slot's buffer.
    Read {
        /// First block.
        lba: u64,
        /// How many, 1 to 65,536.
        blocks: u32,
    },
    /// Writes from the slot's buffer.
    Write {
        /// First block.
        lba: u64,
        /// How many, 1 to 65,536.
        blocks: u32,
    },
    /// Makes blocks read as zeros.
    WriteZeroes {
        /// First block.
        lba: u64,
        /// How many, 1 to 65,536.
        blocks: u32,
    },
    /// Deallocates blocks.
    Deallocate {
        /// First block.
        lba: u64,
        /// How many.
        blocks: u32,
    },
    /// Makes earlier writes durable.
    Flush,
    /// Get Features of the controller: no media, no data.
    Probe,
}

/// NVMe commands to one namespace.
#[derive(Debug, Clone, Copy)]
pub struct Passthrough {
    nsid: u32,
    layout: Layout,
    /// With the flags that the format wants; the range is set for each I/O.
    read: Command,
    write: Command,
    zeroes: Command,
}

impl Passthrough {
    /// The command and the bytes that it moves.
    #[inline]
    fn command(&self, request: NvmeRequest) -> (Command, u32) {
        let transfer = |mut command: Command, lba: u64, blocks: u32| {
            command.set_range(lba, blocks);
            if let Metadata::Stripped {
                reference: true, ..
            } = self.layout.metadata
            {
                // Types 1 and 2: the initial reference tag is the low half of the LBA.
                command = command.with_reference_tag(lba as u32);
            }
            // `buffer_bytes` fits the slot, which has 32 bits.
            (command, self.buffer_bytes(request) as u32)
        };
        match request {
            NvmeRequest::Read { lba, blocks } => transfer(self.read, lba, blocks),
            NvmeRequest::Write { lba, blocks } => transfer(self.write, lba, blocks),
            NvmeRequest::WriteZeroes { lba, blocks } => (transfer(self.zeroes, lba, blocks).0, 0),
            NvmeRequest::Deallocate { .. } => {
                (Command::deallocate(self.nsid, 1), DSM_RANGE_BYTES as u32)
            }
            NvmeRequest::Flush => (Command::flush(self.nsid), 0),
            NvmeRequest::Probe => (Command::get_features(PROBED_FEATURE), 0),
        }
    }
}

impl sealed::Sealed for Passthrough {}

impl SlotKind for Passthrough {
    type Entries = Wide;
    type Request = NvmeRequest;

    /// Never less than what the controller moves; a count that the command cannot say fits no slot.
    #[inline]
    fn buffer_bytes(&self, request: NvmeRequest) -> u64 {
        match request {
            NvmeRequest::Read { blocks, .. } | NvmeRequest::Write { blocks, .. } => {
                if blocks == 0 || blocks > MAX_BLOCKS {
                    return u64::MAX;
                }
                u64::from(blocks) * u64::from(self.layout.block_bytes)
            }
            // No buffer holds what the command cannot say.
            NvmeRequest::WriteZeroes { blocks, .. } if blocks == 0 || blocks > MAX_BLOCKS => {
                u64::MAX
            }
            NvmeRequest::WriteZeroes { .. } => 0,
            NvmeRequest::Deallocate { .. } => DSM_RANGE_BYTES as u64,
            NvmeRequest::Flush | NvmeRequest::Probe => 0,
        }
    }

    #[inline]
    fn expected(&self, _request: NvmeRequest) -> u32 {
        0
    }

    /// A polled queue has no use for commands without data, and the kernel polls no admin queue.
    #[inline]
    fn is_aside(&self, request: NvmeRequest) -> bool {
        !matches!(
            request,
            NvmeRequest::Read { .. } | NvmeRequest::Write { .. }
        )
    }

    #[inline]
    fn prepare(&self, request: NvmeRequest, buffer: &mut [u8]) {
        if let NvmeRequest::Deallocate { lba, blocks } = request {
            buffer[..DSM_RANGE_BYTES].copy_from_slice(&dsm_range(lba, blocks));
        }
    }

    #[inline]
    fn entry(&self, frame: &Frame, request: NvmeRequest) -> k::Sqe128 {
        let (command, data_bytes) = self.command(request);
        let admin = request == NvmeRequest::Probe;
        let moves = data_bytes > 0;
        let address = if moves { frame.address } else { 0 };
        let base = k::Sqe {
            opcode: k::IORING_OP_URING_CMD,
            fd: frame.fds[usize::from(admin)],
            off: u64::from(if admin {
                k::NVME_URING_CMD_ADMIN
            } else {
                k::NVME_URING_CMD_IO
            }),
            op_flags: if moves && frame.fixed_buffers {
                k::IORING_URING_CMD_FIXED
            } else {
                0
            },
            buf_index: if frame.fixed_buffers {
                frame.buf_index
            } else {
                0
            },
            ..frame.base()
        };
        let dwords = std::array::from_fn(|index| command.dword(index));
        k::nvme_entry(base, dwords, address, data_bytes)
    }

    /// Positive results are the status field of the completion without its phase tag, negative ones are
    /// errnos (drivers/nvme/host/ioctl.c, `nvme_uring_cmd_end_io`).
    #[inline]
    fn status(&self, res: i32, _expected: u32) -> Status {
        if res == 0 {
            return Status::Ok;
        }
        if res < 0 {
            return Status::Errno(Errno(-res));
        }
        let NvmeStatus { sct, sc, .. } = NvmeStatus::from_result(res);
        Status::Nvme { sct, sc }
    }
}

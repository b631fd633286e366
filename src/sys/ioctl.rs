//! Opening devices and files, and asking the kernel about them: sizes, kinds, alignment, extents.

use super::last_errno;
use crate::errno::Errno;
use crate::proto::nvme::Command;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

/// What a path leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeKind {
    /// A block device with its numbers.
    Block {
        /// Major number.
        major: u32,
        /// Minor number.
        minor: u32,
    },
    /// A character device with its numbers.
    Char {
        /// Major number.
        major: u32,
        /// Minor number.
        minor: u32,
    },
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A pipe or a socket.
    Other,
}

/// How to open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenMode {
    /// Past the page cache.
    pub direct: bool,
    /// For writing as well.
    pub write: bool,
    /// `O_EXCL` on a block device: fails with EBUSY where it is mounted or held.
    pub exclusive: bool,
}

/// Opens an existing path; never creates one.
///
/// # Errors
/// The kernel's: EINVAL where the file system refuses `O_DIRECT`.
pub fn open(path: &Path, mode: OpenMode) -> Result<File, Errno> {
    open_with(path, mode, libc::O_CLOEXEC)
}

/// The same for a node on which nothing shall wait (`O_NONBLOCK`), not even the opening of it.
///
/// # Errors
/// The kernel's.
pub fn open_no_wait(path: &Path, mode: OpenMode) -> Result<File, Errno> {
    open_with(path, mode, libc::O_CLOEXEC | libc::O_NONBLOCK)
}

fn open_with(path: &Path, mode: OpenMode, mut flags: libc::c_int) -> Result<File, Errno> {
    if mode.direct {
        flags |= libc::O_DIRECT;
    }
    if mode.exclusive {
        flags |= libc::O_EXCL;
    }
    std::fs::OpenOptions::new()
        .read(true)
        .write(mode.write)
        .custom_flags(flags)
        .open(path)
        .map_err(|error| Errno::of(&error))
}

/// What an open file is.
///
/// # Errors
/// The kernel's.
pub fn node_kind(file: &File) -> Result<NodeKind, Errno> {
    let metadata = file.metadata().map_err(|error| Errno::of(&error))?;
    Ok(kind_of(&metadata))
}

/// What a path leads to, without opening it.
///
/// # Errors
/// The kernel's.
pub fn path_kind(path: &Path) -> Result<NodeKind, Errno> {
    let metadata = std::fs::metadata(path).map_err(|error| Errno::of(&error))?;
    Ok(kind_of(&metadata))
}

fn kind_of(metadata: &std::fs::Metadata) -> NodeKind {
    let device = metadata.rdev();
    let (major, minor) = (libc::major(device), libc::minor(device));
    let kind = metadata.file_type();
    if kind.is_block_device() {
        NodeKind::Block { major, minor }
    } else if kind.is_char_device() {
        NodeKind::Char { major, minor }
    } else if kind.is_file() {
        NodeKind::File
    } else if kind.is_dir() {
        NodeKind::Directory
    } else {
        NodeKind::Other
    }
}

/// Capacity of a block device in bytes (`BLKGETSIZE64`).
///
/// # Errors
/// The kernel's: ENOTTY where it is not a block device.
pub fn block_capacity_bytes(file: &File) -> Result<u64, Errno> {
    // include/uapi/linux/fs.h: `_IOR(0x12, 114, size_t)`; the kernel writes a u64.
    let request = ior(0x12, 114, size_of::<usize>());
    let mut bytes = 0u64;
    // SAFETY: this request writes one u64 to the address, which is live and writable.
    unsafe { ioctl(file, request, (&raw mut bytes).cast()) }?;
    Ok(bytes)
}

/// Logical block of a block device in bytes (`BLKSSZGET`).
///
/// # Errors
/// The kernel's: ENOTTY where it is not a block device.
pub fn logical_block_bytes(file: &File) -> Result<u32, Errno> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: this request writes one int to the address, which is live and writable.
    unsafe { ioctl(file, libc::BLKSSZGET, (&raw mut bytes).cast()) }?;
    u32::try_from(bytes).map_err(|_| Errno(libc::ERANGE))
}

/// Physical block of a block device in bytes (`BLKPBSZGET`).
///
/// # Errors
/// The kernel's: ENOTTY where it is not a block device.
pub fn physical_block_bytes(file: &File) -> Result<u32, Errno> {
    let mut bytes: libc::c_uint = 0;
    // SAFETY: this request writes one unsigned int to the address, which is live and writable.
    unsafe { ioctl(file, libc::BLKPBSZGET, (&raw mut bytes).cast()) }?;
    Ok(bytes)
}

/// Alignment that direct I/O on a file must keep (statx `STATX_DIOALIGN`, Linux 6.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DirectAlign {
    /// The file system does not do direct I/O on this file.
    Refused,
    /// The kernel does not say.
    Unknown,
    /// Buffers and offsets must be multiples of these.
    Known {
        /// For buffers.
        memory_bytes: u32,
        /// For offsets and lengths.
        offset_bytes: u32,
    },
}

/// Asks for the direct I/O alignment of an open file.
///
/// # Errors
/// The kernel's.
pub fn direct_align(file: &File) -> Result<DirectAlign, Errno> {
    // include/uapi/linux/stat.h.
    const STATX_DIOALIGN: libc::c_uint = 0x2000;
    // SAFETY: statx is integers only, for which all zeros is a value.
    let mut answer: libc::statx = unsafe { std::mem::zeroed() };
    // SAFETY: the path is an empty C string, and `answer` is live, writable and the kernel's layout.
    let done = unsafe {
        libc::statx(
            file.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH,
            STATX_DIOALIGN,
            &raw mut answer,
        )
    };
    if done != 0 {
        return Err(last_errno());
    }
    Ok(if answer.stx_mask & STATX_DIOALIGN == 0 {
        DirectAlign::Unknown
    } else if answer.stx_dio_offset_align == 0 {
        DirectAlign::Refused
    } else {
        DirectAlign::Known {
            memory_bytes: answer.stx_dio_mem_align,
            offset_bytes: answer.stx_dio_offset_align,
        }
    })
}

/// The next offset at or after `from_bytes` that holds data (`SEEK_DATA`); `None` past the last.
///
/// # Errors
/// The kernel's: EINVAL where the file system cannot tell.
pub fn next_data(file: &File, from_bytes: u64) -> Result<Option<u64>, Errno> {
    seek(file, from_bytes, libc::SEEK_DATA)
}

/// The next offset at or after `from_bytes` that is a hole or the end (`SEEK_HOLE`); `None` past the end.
///
/// # Errors
/// The kernel's: EINVAL where the file system cannot tell.
pub fn next_hole(file: &File, from_bytes: u64) -> Result<Option<u64>, Errno> {
    seek(file, from_bytes, libc::SEEK_HOLE)
}

fn seek(file: &File, from_bytes: u64, whence: libc::c_int) -> Result<Option<u64>, Errno> {
    let from = i64::try_from(from_bytes).map_err(|_| Errno(libc::EOVERFLOW))?;
    // SAFETY: moves the file's position, which nothing here depends on; touches no memory.
    let at = unsafe { libc::lseek(file.as_raw_fd(), from, whence) };
    if at >= 0 {
        return Ok(Some(at as u64));
    }
    match last_errno() {
        Errno(libc::ENXIO) => Ok(None),
        errno => Err(errno),
    }
}

/// One extent of a file (`struct fiemap_extent`, include/uapi/linux/fiemap.h).
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Extent {
    /// Offset in the file.
    pub logical_bytes: u64,
    /// Offset on the device.
    pub physical_bytes: u64,
    /// Length.
    pub length_bytes: u64,
    reserved64: [u64; 2],
    /// `FIEMAP_EXTENT_*`.
    pub flags: u32,
    reserved: [u32; 3],
}

impl Extent {
    /// `FIEMAP_EXTENT_LAST`: no extent follows.
    pub const LAST: u32 = 0x1;
    /// `FIEMAP_EXTENT_UNWRITTEN`: allocated, but reads give zeros without asking the device.
    pub const UNWRITTEN: u32 = 0x800;

    /// Whether reads of it never reach the device.
    #[must_use]
    pub const fn is_unwritten(&self) -> bool {
        self.flags & Self::UNWRITTEN != 0
    }
}

/// Extents fetched by one call.
const EXTENTS_PER_CALL: usize = 256;

/// `struct fiemap` with room for its extents.
#[repr(C)]
struct Fiemap {
    start: u64,
    length: u64,
    flags: u32,
    mapped_extents: u32,
    extent_count: u32,
    reserved: u32,
    extents: [Extent; EXTENTS_PER_CALL],
}

/// The extents of `start_bytes..start_bytes + length_bytes`, in order, after writing dirty data back
/// (`FS_IOC_FIEMAP` with `FIEMAP_FLAG_SYNC`). Holes have none.
///
/// # Errors
/// The kernel's: EOPNOTSUPP where the file system cannot tell.
pub fn extents(file: &File, start_bytes: u64, length_bytes: u64) -> Result<Vec<Extent>, Errno> {
    const FIEMAP_FLAG_SYNC: u32 = 1;
    const HEADER_BYTES: usize = 32;
    let request = iowr(b'f', 11, HEADER_BYTES);
    let end = start_bytes.saturating_add(length_bytes);
    let mut found: Vec<Extent> = Vec::new();
    let mut start = start_bytes;
    while start < end {
        let mut map = Box::new(Fiemap {
            start,
            length: end - start,
            flags: FIEMAP_FLAG_SYNC,
            mapped_extents: 0,
            extent_count: EXTENTS_PER_CALL as u32,
            reserved: 0,
            extents: [Extent::default(); EXTENTS_PER_CALL],
        });
        // SAFETY: this request reads the header and writes it and up to `extent_count` extents, all of
        // which lie in `map`.
        unsafe { ioctl(file, request, (&raw mut *map).cast()) }?;
        let got = &map.extents[..(map.mapped_extents as usize).min(EXTENTS_PER_CALL)];
        found.extend_from_slice(got);
        match got.last() {
            Some(last) if last.flags & Extent::LAST == 0 => {
                let next = last.logical_bytes.saturating_add(last.length_bytes);
                if next <= start {
                    break;
                }
                start = next;
            }
            _ => break,
        }
    }
    Ok(found)
}

/// Largest transfer of an sg node's queue in bytes (`BLKSECTGET`: drivers/scsi/sg.c gives bytes, not sectors).
///
/// # Errors
/// The kernel's: ENOTTY where it is not one.
pub fn sg_max_sectors_bytes(file: &File) -> Result<u32, Errno> {
    get_int(file, io(0, 0x12, 103, 0))
}

/// Most scatter-gather elements of a command to an sg node (`SG_GET_SG_TABLESIZE`).
///
/// # Errors
/// The kernel's: ENOTTY where it is not one.
pub fn sg_table_size(file: &File) -> Result<u32, Errno> {
    get_int(file, SG | 0x7f)
}

/// Version of the sg driver, two digits to a component (`SG_GET_VERSION_NUM`).
///
/// # Errors
/// The kernel's: ENOTTY where it is not one.
pub fn sg_version(file: &File) -> Result<u32, Errno> {
    get_int(file, SG | 0x82)
}

/// Asks for a buffer of this size for an open sg node (`SG_SET_RESERVED_SIZE`).
///
/// # Errors
/// The kernel's: EBUSY while commands are in flight.
pub fn sg_set_reserved_size(file: &File, bytes: u32) -> Result<(), Errno> {
    let mut bytes = libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX);
    // SAFETY: this request reads one int from the address, which is live.
    unsafe { ioctl(file, SG | 0x75, (&raw mut bytes).cast()) }?;
    Ok(())
}

/// include/scsi/sg.h numbers its requests `0x22..` without direction or size.
const SG: libc::Ioctl = 0x2200;

fn get_int(file: &File, request: libc::Ioctl) -> Result<u32, Errno> {
    let mut value: libc::c_int = 0;
    // SAFETY: the requests of the callers above write one int to the address, which is live and writable.
    unsafe { ioctl(file, request, (&raw mut value).cast()) }?;
    u32::try_from(value).map_err(|_| Errno(libc::ERANGE))
}

/// Namespace ID of an NVMe node (`NVME_IOCTL_ID`).
///
/// # Errors
/// The kernel's: ENOTTY where it is no NVMe node.
pub(super) fn nvme_nsid(file: &File) -> Result<u32, Errno> {
    // include/uapi/linux/nvme_ioctl.h: `_IO('N', 0x40)`; the result is the ID.
    let request = io(0, b'N', 0x40, 0);
    // SAFETY: this request takes no argument.
    let nsid = unsafe { ioctl(file, request, std::ptr::null_mut()) }?;
    u32::try_from(nsid).map_err(|_| Errno(libc::ERANGE))
}

/// `struct nvme_passthru_cmd` (include/uapi/linux/nvme_ioctl.h) as dwords.
type NvmePassthru = [u32; 18];

/// Sends an admin command that fills `data`, and waits for it. Says the completion's status without its phase
/// tag, 0 for success, and its dword 0. Only for commands that move exactly `data.len()` bytes to the host, or none.
///
/// # Errors
/// The kernel's.
pub(super) fn nvme_admin(
    file: &File,
    command: &Command,
    data: &mut [u8],
) -> Result<(i32, u32), Errno> {
    let request = iowr(b'N', 0x41, size_of::<NvmePassthru>());
    let address = if data.is_empty() {
        0
    } else {
        data.as_mut_ptr() as u64
    };
    let mut dwords: NvmePassthru = std::array::from_fn(|index| command.dword(index));
    dwords[6] = address as u32;
    dwords[7] = (address >> 32) as u32;
    dwords[9] = u32::try_from(data.len()).map_err(|_| Errno(libc::EINVAL))?;
    // SAFETY: this request reads and writes the 72 bytes of its struct, and lets the controller write to the
    // `data_len` bytes at `addr`, which are `data`, ours alone for the call. That the command moves no more
    // is promised by the callers, all in this folder.
    let status = unsafe { ioctl(file, request, dwords.as_mut_ptr().cast()) }?;
    // `result`, the last of its fields.
    Ok((status, dwords[17]))
}

/// # Safety
/// `arg` must be what `request` reads and writes.
unsafe fn ioctl(file: &File, request: libc::Ioctl, arg: *mut libc::c_void) -> Result<i32, Errno> {
    // SAFETY: the caller's promise.
    let done = unsafe { libc::ioctl(file.as_raw_fd(), request, arg) };
    if done < 0 {
        Err(last_errno())
    } else {
        Ok(done)
    }
}

/// `_IOR` and `_IOWR` of include/uapi/asm-generic/ioctl.h. C libraries differ in the type of a request; the kernel looks at 32 bits.
const fn ior(kind: u8, number: u8, size: usize) -> libc::Ioctl {
    io(2, kind, number, size)
}

const fn iowr(kind: u8, number: u8, size: usize) -> libc::Ioctl {
    io(3, kind, number, size)
}

const fn io(direction: u32, kind: u8, number: u8, size: usize) -> libc::Ioctl {
    ((direction << 30) | ((size as u32) << 16) | ((kind as u32) << 8) | number as u32)
        as libc::Ioctl
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::os::unix::fs::FileExt;

    #[test]
    fn request_numbers_and_layouts_are_the_kernels() {
        assert_eq!(ior(0x12, 114, 8), 0x8008_1272, "BLKGETSIZE64");
        assert_eq!(iowr(b'f', 11, 32), 0xc020_660b, "FS_IOC_FIEMAP");
        assert_eq!(io(0, 0x12, 103, 0), 0x1267, "BLKSECTGET");
        assert_eq!(io(0, b'N', 0x40, 0), 0x4e40, "NVME_IOCTL_ID");
        let admin = iowr(b'N', 0x41, size_of::<NvmePassthru>());
        assert_eq!(admin, 0xc048_4e41, "NVME_IOCTL_ADMIN_CMD");
        assert_eq!(size_of::<Extent>(), 56);
        assert_eq!(std::mem::offset_of!(Extent, flags), 40);
        assert_eq!(std::mem::offset_of!(Fiemap, extents), 32);
    }

    #[test]
    fn kinds_are_told_apart() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(path_kind(dir.path()), Ok(NodeKind::Directory));
        let file = tempfile::tempfile_in(dir.path()).unwrap();
        assert_eq!(node_kind(&file), Ok(NodeKind::File));
        let null = path_kind(&crate::sysfs::Sysfs::host().dev("null"));
        assert_eq!(null, Ok(NodeKind::Char { major: 1, minor: 3 }));
        assert_eq!(path_kind(&dir.path().join("no")), Err(Errno(libc::ENOENT)));
        assert_eq!(logical_block_bytes(&file), Err(Errno(libc::ENOTTY)));
    }

    #[test]
    fn holes_and_extents_of_a_sparse_file() {
        let dir = tempfile::tempdir().unwrap();
        let file = tempfile::tempfile_in(dir.path()).unwrap();
        file.set_len(4 << 20).unwrap();
        file.write_all_at(&[7; 65_536], 1 << 20).unwrap();
        // File systems without holes say that all is data.
        let data = next_data(&file, 0).unwrap().unwrap();
        assert!(data <= 1 << 20);
        if data == 1 << 20 {
            assert_eq!(next_hole(&file, data), Ok(Some((1 << 20) + 65_536)));
            assert_eq!(next_data(&file, 2 << 20), Ok(None));
        }
        if let Ok(extents) = extents(&file, 0, 4 << 20) {
            let bytes: u64 = extents.iter().map(|extent| extent.length_bytes).sum();
            assert_eq!((extents[0].logical_bytes, bytes), (1 << 20, 65_536));
            assert!(!extents[0].is_unwritten());
        }
    }
}

//! The kernel's io_uring interface as far as we use it (include/uapi/linux/io_uring.h, Linux 6.12).
//! libc has none of it. Layouts are pinned by the tests below.

use super::last_errno;
use crate::errno::Errno;

/// Submission queue entry, 64 bytes. Unions of the header are named after the use we make of them.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Sqe {
    /// `IORING_OP_*`.
    pub opcode: u8,
    /// `IOSQE_*`.
    pub flags: u8,
    /// I/O priority.
    pub ioprio: u16,
    /// File descriptor, or index of a registered file.
    pub fd: i32,
    /// Offset in bytes (`off`); for `IORING_OP_URING_CMD` the command (`cmd_op`).
    pub off: u64,
    /// Address of the buffer; for block discard the first byte.
    pub addr: u64,
    /// Length in bytes.
    pub len: u32,
    /// Flags of the operation.
    pub op_flags: u32,
    /// Handed back in the completion.
    pub user_data: u64,
    /// Index of the registered buffer.
    pub buf_index: u16,
    /// Credentials.
    pub personality: u16,
    /// `splice_fd_in`, `file_index`.
    pub file_index: u32,
    /// For block discard the length in bytes; first bytes of the command area of 128-byte entries.
    pub addr3: u64,
    /// Padding.
    pub pad2: u64,
}

/// Submission queue entry of `IORING_SETUP_SQE128`: 80 bytes of command from offset 48.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Sqe128 {
    /// The first half; its `addr3` and `pad2` are the first 16 bytes of the command.
    pub base: Sqe,
    /// Bytes 16 to 79 of the command.
    pub more: [u8; 64],
}

/// Completion queue entry, 16 bytes.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Cqe {
    /// From the submission.
    pub user_data: u64,
    /// Bytes moved, or a negative errno.
    pub res: i32,
    /// `IORING_CQE_F_*`.
    pub flags: u32,
}

/// Completion queue entry of `IORING_SETUP_CQE32`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Cqe32 {
    /// The first half.
    pub base: Cqe,
    /// Two more words from the driver.
    pub big: [u64; 2],
}

/// `struct io_sqring_offsets`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct SqOffsets {
    pub head: u32,
    pub tail: u32,
    pub ring_mask: u32,
    pub ring_entries: u32,
    pub flags: u32,
    pub dropped: u32,
    pub array: u32,
    pub resv1: u32,
    pub user_addr: u64,
}

/// `struct io_cqring_offsets`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct CqOffsets {
    pub head: u32,
    pub tail: u32,
    pub ring_mask: u32,
    pub ring_entries: u32,
    pub overflow: u32,
    pub cqes: u32,
    pub flags: u32,
    pub resv1: u32,
    pub user_addr: u64,
}

/// `struct io_uring_params`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Params {
    pub sq_entries: u32,
    pub cq_entries: u32,
    pub flags: u32,
    pub sq_thread_cpu: u32,
    pub sq_thread_idle: u32,
    pub features: u32,
    pub wq_fd: u32,
    pub resv: [u32; 3],
    pub sq_off: SqOffsets,
    pub cq_off: CqOffsets,
}

/// `struct io_uring_getevents_arg`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct GetEventsArg {
    pub sigmask: u64,
    pub sigmask_sz: u32,
    pub min_wait_usec: u32,
    pub ts: u64,
}

/// `struct __kernel_timespec`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct KernelTimespec {
    pub tv_sec: i64,
    pub tv_nsec: i64,
}

/// `struct io_uring_rsrc_update`, for `IORING_REGISTER_RING_FDS`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct RsrcUpdate {
    pub offset: u32,
    pub resv: u32,
    pub data: u64,
}

pub const IORING_MAX_ENTRIES: u32 = 32_768;
/// Longest single registered buffer (io_uring/rsrc.c, `io_buffer_validate`).
pub const MAX_REGISTERED_BUFFER_BYTES: usize = 1 << 30;

#[cfg(test)]
pub const IORING_OP_NOP: u8 = 0;
pub const IORING_OP_FSYNC: u8 = 3;
pub const IORING_OP_READ_FIXED: u8 = 4;
pub const IORING_OP_WRITE_FIXED: u8 = 5;
pub const IORING_OP_READ: u8 = 22;
pub const IORING_OP_WRITE: u8 = 23;
pub const IORING_OP_URING_CMD: u8 = 46;

/// Use the registered buffer `buf_index`; in `op_flags` of `IORING_OP_URING_CMD`.
pub const IORING_URING_CMD_FIXED: u32 = 1 << 0;
/// `_IOWR('N', 0x80, struct nvme_uring_cmd)`, include/uapi/linux/nvme_ioctl.h.
pub const NVME_URING_CMD_IO: u32 = 0xc048_4e80;
/// `_IOWR('N', 0x82, struct nvme_uring_cmd)`.
pub const NVME_URING_CMD_ADMIN: u32 = 0xc048_4e82;

pub const IOSQE_FIXED_FILE: u8 = 1 << 0;
pub const IOSQE_ASYNC: u8 = 1 << 4;
pub const IORING_FSYNC_DATASYNC: u32 = 1 << 0;

/// `_IO(0x12, 0)`, include/uapi/linux/blkdev.h, since 6.12.
pub const BLOCK_URING_CMD_DISCARD: u32 = 0x1200;

pub const IORING_SETUP_IOPOLL: u32 = 1 << 0;
pub const IORING_SETUP_CQSIZE: u32 = 1 << 3;
pub const IORING_SETUP_SUBMIT_ALL: u32 = 1 << 7;
pub const IORING_SETUP_COOP_TASKRUN: u32 = 1 << 8;
pub const IORING_SETUP_TASKRUN_FLAG: u32 = 1 << 9;
pub const IORING_SETUP_SQE128: u32 = 1 << 10;
pub const IORING_SETUP_CQE32: u32 = 1 << 11;
pub const IORING_SETUP_SINGLE_ISSUER: u32 = 1 << 12;
pub const IORING_SETUP_DEFER_TASKRUN: u32 = 1 << 13;

pub const IORING_FEAT_SINGLE_MMAP: u32 = 1 << 0;
pub const IORING_FEAT_NODROP: u32 = 1 << 1;
pub const IORING_FEAT_EXT_ARG: u32 = 1 << 8;

pub const IORING_OFF_SQ_RING: i64 = 0;
pub const IORING_OFF_SQES: i64 = 0x1000_0000;

pub const IORING_SQ_CQ_OVERFLOW: u32 = 1 << 1;
pub const IORING_SQ_TASKRUN: u32 = 1 << 2;

pub const IORING_ENTER_GETEVENTS: u32 = 1 << 0;
pub const IORING_ENTER_EXT_ARG: u32 = 1 << 3;
pub const IORING_ENTER_REGISTERED_RING: u32 = 1 << 4;

pub const IORING_REGISTER_BUFFERS: u32 = 0;
pub const IORING_REGISTER_FILES: u32 = 2;
pub const IORING_UNREGISTER_FILES: u32 = 3;
pub const IORING_REGISTER_RING_FDS: u32 = 20;
pub const IORING_UNREGISTER_RING_FDS: u32 = 21;

/// `io_uring_setup(2)`.
pub fn setup(entries: u32, params: &mut Params) -> Result<i32, Errno> {
    // SAFETY: `params` is live, writable and laid out as the kernel's struct (tested below).
    let fd = unsafe {
        libc::syscall(
            libc::SYS_io_uring_setup,
            libc::c_long::from(entries),
            std::ptr::from_mut(params),
        )
    };
    // A descriptor fits 31 bits.
    if fd < 0 {
        Err(last_errno())
    } else {
        Ok(fd as i32)
    }
}

/// `io_uring_register(2)`.
///
/// # Safety
/// `arg` must point to what `opcode` reads or writes, `count` of them.
pub unsafe fn register(
    fd: i32,
    opcode: u32,
    arg: *mut libc::c_void,
    count: u32,
) -> Result<i32, Errno> {
    // SAFETY: the caller's promise.
    let done = unsafe {
        libc::syscall(
            libc::SYS_io_uring_register,
            libc::c_long::from(fd),
            libc::c_long::from(opcode),
            arg,
            libc::c_long::from(count),
        )
    };
    if done < 0 {
        Err(last_errno())
    } else {
        Ok(done as i32)
    }
}

/// An entry whose command area is a `struct nvme_uring_cmd` (include/uapi/linux/nvme_ioctl.h): the command's
/// 16 dwords with address (dwords 6 and 7), metadata length (8) and data length (9) in place of its data
/// pointer, then a timeout of 0, the driver's own.
#[inline]
pub fn nvme_entry(base: Sqe, mut dwords: [u32; 16], address: u64, data_bytes: u32) -> Sqe128 {
    dwords[6] = address as u32;
    dwords[7] = (address >> 32) as u32;
    dwords[8] = 0;
    dwords[9] = data_bytes;
    let pair = |low: u32, high: u32| u64::from(high) << 32 | u64::from(low);
    let mut more = [0; 64];
    for (place, dword) in more.chunks_exact_mut(4).zip(&dwords[4..]) {
        place.copy_from_slice(&dword.to_le_bytes());
    }
    Sqe128 {
        base: Sqe {
            addr3: pair(dwords[0], dwords[1]),
            pad2: pair(dwords[2], dwords[3]),
            ..base
        },
        more,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::{offset_of, size_of};

    #[test]
    fn an_nvme_entry_is_the_commands_dwords_with_address_and_length() {
        let mut dwords: [u32; 16] = std::array::from_fn(|index| 0x0101_0101 * index as u32);
        (dwords[6], dwords[7], dwords[8], dwords[9]) = (9, 9, 9, 9);
        let sqe = nvme_entry(Sqe::default(), dwords, 0x1122_3344_5566_7788, 4096);
        assert_eq!(
            (sqe.base.addr3, sqe.base.pad2),
            (0x0101_0101 << 32, 0x0303_0303_0202_0202)
        );
        let byte = |at: usize| sqe.more[at - 16];
        let word =
            |at: usize| u32::from_le_bytes([byte(at), byte(at + 1), byte(at + 2), byte(at + 3)]);
        // Offsets in `struct nvme_uring_cmd`.
        assert_eq!((word(16), word(20)), (0x0404_0404, 0x0505_0505), "metadata");
        assert_eq!((word(24), word(28)), (0x5566_7788, 0x1122_3344), "addr");
        assert_eq!((word(32), word(36)), (0, 4096), "metadata_len, data_len");
        assert_eq!(
            (word(40), word(60)),
            (0x0a0a_0a0a, 0x0f0f_0f0f),
            "cdw10, cdw15"
        );
        assert_eq!((word(64), word(68)), (0, 0), "timeout_ms");
    }

    #[test]
    fn layouts_are_the_kernels() {
        assert_eq!((size_of::<Sqe>(), size_of::<Sqe128>()), (64, 128));
        assert_eq!((size_of::<Cqe>(), size_of::<Cqe32>()), (16, 32));
        let sqe = [
            (offset_of!(Sqe, fd), 4),
            (offset_of!(Sqe, off), 8),
            (offset_of!(Sqe, addr), 16),
            (offset_of!(Sqe, len), 24),
            (offset_of!(Sqe, op_flags), 28),
            (offset_of!(Sqe, user_data), 32),
            (offset_of!(Sqe, buf_index), 40),
            (offset_of!(Sqe, file_index), 44),
            (offset_of!(Sqe, addr3), 48),
            (offset_of!(Sqe128, more), 64),
            (offset_of!(Cqe, res), 8),
            (offset_of!(Cqe, flags), 12),
            (offset_of!(Cqe32, big), 16),
        ];
        assert!(sqe.iter().all(|(ours, kernel)| ours == kernel), "{sqe:?}");
        assert_eq!((size_of::<SqOffsets>(), size_of::<CqOffsets>()), (40, 40));
        assert_eq!(size_of::<Params>(), 120);
        assert_eq!(offset_of!(Params, sq_off), 40);
        assert_eq!(offset_of!(Params, cq_off), 80);
        assert_eq!(offset_of!(SqOffsets, array), 24);
        assert_eq!(offset_of!(CqOffsets, cqes), 20);
        assert_eq!(
            (size_of::<GetEventsArg>(), offset_of!(GetEventsArg, ts)),
            (24, 16)
        );
        assert_eq!(
            (size_of::<KernelTimespec>(), size_of::<RsrcUpdate>()),
            (16, 16)
        );
    }
}

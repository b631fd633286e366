//! Memory that devices can reach.

use super::SpdkError;
use super::env::Env;
use std::ptr::NonNull;

/// Every buffer starts on a page: NVMe's data pointers describe pages.
pub(super) const ALIGN_BYTES: usize = 4096;

/// Zeroed DMA memory on one NUMA node, given back on drop.
#[derive(Debug)]
pub(super) struct Dma {
    start: NonNull<u8>,
    bytes: usize,
}

impl Dma {
    /// `bytes` (at least 1) on `node` (negative: any).
    ///
    /// # Errors
    /// [`SpdkError::NoMemory`], which names `device`.
    pub(super) fn zeroed(
        _env: &Env,
        device: &str,
        bytes: usize,
        node: i32,
    ) -> Result<Self, SpdkError> {
        let size = bytes.max(1);
        // SAFETY: the environment runs (`_env`); the arguments are plain values.
        let start = unsafe {
            spdk_sys::spdk_zmalloc(
                size,
                ALIGN_BYTES,
                std::ptr::null_mut(),
                node,
                spdk_sys::SPDK_MALLOC_DMA,
            )
        };
        match NonNull::new(start.cast()) {
            Some(start) => Ok(Self { start, bytes: size }),
            None => Err(SpdkError::NoMemory {
                device: device.to_owned(),
                bytes: bytes as u64,
                node: if node < 0 {
                    "any node".to_owned()
                } else {
                    format!("node {node}")
                },
            }),
        }
    }

    /// Its first byte.
    pub(super) fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// What it holds. Only for memory that no device writes to meanwhile.
    pub(super) fn copy_to(&self, out: &mut [u8]) {
        let bytes = out.len().min(self.bytes);
        // SAFETY: both ranges are at least `bytes` long and belong to different allocations.
        unsafe { std::ptr::copy_nonoverlapping(self.start.as_ptr(), out.as_mut_ptr(), bytes) };
    }
}

impl Drop for Dma {
    fn drop(&mut self) {
        // SAFETY: the memory came from spdk_zmalloc and is freed once; whoever let a device use it has made sure
        // that it no longer does, or has forgotten this value (Qpair::close, Controller::admin).
        unsafe { spdk_sys::spdk_free(self.start.as_ptr().cast()) };
    }
}

//! Access to what a device holds, by any way that can read: a node, a captured image, SPDK.

use crate::errno::Errno;
use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Reads bytes of a device. Callers ask for 4 KiB pieces at 4 KiB offsets wherever the size allows it,
/// so that a reader that only knows logical blocks can serve them.
pub trait ReadAt {
    /// Size of the device in bytes.
    fn size_bytes(&self) -> u64;

    /// Fills `buffer` from `offset_bytes`.
    ///
    /// # Errors
    /// The errno of the failed read; past the end it is `EIO`.
    fn read_at(&self, offset_bytes: u64, buffer: &mut [u8]) -> Result<(), Errno>;
}

/// Opens content by path, for reading only.
pub trait Contents {
    /// Opens one device or file.
    ///
    /// # Errors
    /// The errno of the failed open.
    fn open(&self, path: &Path) -> Result<Box<dyn ReadAt>, Errno>;
}

/// The running machine's nodes and files.
#[derive(Debug, Clone, Copy, Default)]
pub struct HostContents;

impl Contents for HostContents {
    fn open(&self, path: &Path) -> Result<Box<dyn ReadAt>, Errno> {
        FileContent::open(path).map(|content| Box::new(content) as Box<dyn ReadAt>)
    }
}

/// A file or block device node read through the page cache. Reads never need the device to themselves.
#[derive(Debug)]
pub struct FileContent {
    file: File,
    size_bytes: u64,
}

impl FileContent {
    /// Opens a path for reading.
    ///
    /// # Errors
    /// The errno of open(2) or lseek(2).
    pub fn open(path: &Path) -> Result<Self, Errno> {
        Self::new(File::open(path).map_err(|error| Errno::of(&error))?)
    }

    /// Wraps an opened file or block device.
    ///
    /// # Errors
    /// The errno of lseek(2).
    pub fn new(mut file: File) -> Result<Self, Errno> {
        // The length in stat(2) is 0 for block devices; the end of a seek is right for both.
        let end = file.seek(SeekFrom::End(0));
        let size_bytes = end.map_err(|error| Errno::of(&error))?;
        Ok(Self { file, size_bytes })
    }
}

impl ReadAt for FileContent {
    fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    fn read_at(&self, offset_bytes: u64, buffer: &mut [u8]) -> Result<(), Errno> {
        let read = self.file.read_exact_at(buffer, offset_bytes);
        read.map_err(|error| Errno::of(&error))
    }
}

impl ReadAt for Vec<u8> {
    fn size_bytes(&self) -> u64 {
        self.len() as u64
    }

    fn read_at(&self, offset_bytes: u64, buffer: &mut [u8]) -> Result<(), Errno> {
        let start = usize::try_from(offset_bytes).map_err(|_| Errno(libc::EIO))?;
        let piece = self.get(start..).and_then(|rest| rest.get(..buffer.len()));
        buffer.copy_from_slice(piece.ok_or(Errno(libc::EIO))?);
        Ok(())
    }
}

/// A part of a device: what a partition holds, read through the whole disk.
pub struct Part<'a> {
    /// The whole.
    pub whole: &'a dyn ReadAt,
    /// First byte of the part.
    pub start_bytes: u64,
    /// Length of the part.
    pub size_bytes: u64,
}

impl ReadAt for Part<'_> {
    fn size_bytes(&self) -> u64 {
        let left = self.whole.size_bytes().saturating_sub(self.start_bytes);
        self.size_bytes.min(left)
    }

    fn read_at(&self, offset_bytes: u64, buffer: &mut [u8]) -> Result<(), Errno> {
        let end = offset_bytes.checked_add(buffer.len() as u64);
        if end.is_none_or(|end| end > self.size_bytes()) {
            return Err(Errno(libc::EIO));
        }
        self.whole.read_at(self.start_bytes + offset_bytes, buffer)
    }
}

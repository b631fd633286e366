//! Access to what a device holds, by any way that can read: a node, a captured image, SPDK.

use crate::errno::Errno;
use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

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
        let content = FileContent::open(path)?;
        Ok(Box::new(Patient::new(content, READ_LIMIT)))
    }
}

/// A device that has not answered one small read in this time is not judged, and so not written.
const READ_LIMIT: Duration = Duration::from_secs(10);

/// Content of a device that may never answer: a read waits for so long and no longer, and after one that was
/// given up there is no other. The thread that is stuck in it stays behind.
struct Patient {
    content: Arc<FileContent>,
    limit: Duration,
    is_stuck: AtomicBool,
}

impl Patient {
    fn new(content: FileContent, limit: Duration) -> Self {
        Self {
            content: Arc::new(content),
            limit,
            is_stuck: AtomicBool::new(false),
        }
    }
}

impl ReadAt for Patient {
    fn size_bytes(&self) -> u64 {
        self.content.size_bytes
    }

    fn read_at(&self, offset_bytes: u64, buffer: &mut [u8]) -> Result<(), Errno> {
        const LATE: Errno = Errno(libc::ETIMEDOUT);
        if self.is_stuck.load(Ordering::Relaxed) {
            return Err(LATE);
        }
        let (sender, receiver) = mpsc::channel();
        let (content, bytes_count) = (Arc::clone(&self.content), buffer.len());
        let read = move || {
            let mut bytes = vec![0; bytes_count];
            let done = content.read_at(offset_bytes, &mut bytes);
            // Nobody listens any more where it came too late.
            let _ = sender.send(done.map(|()| bytes));
        };
        let spawned = std::thread::Builder::new().spawn(read);
        spawned.map_err(|error| Errno::of(&error))?;
        let Ok(done) = receiver.recv_timeout(self.limit) else {
            self.is_stuck.store(true, Ordering::Relaxed);
            return Err(LATE);
        };
        buffer.copy_from_slice(&done?);
        Ok(())
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::io::Write;

    #[test]
    fn a_read_is_the_same_with_patience_and_past_the_end_it_fails() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[7; 8192]).unwrap();
        let content = Patient::new(FileContent::new(file).unwrap(), READ_LIMIT);
        let mut bytes = [0; 4096];
        content.read_at(4096, &mut bytes).unwrap();
        assert_eq!((bytes, content.size_bytes()), ([7; 4096], 8192));
        assert!(content.read_at(8192, &mut bytes).is_err());
        assert!(
            content.read_at(0, &mut bytes).is_ok(),
            "an error is no silence"
        );
    }

    #[test]
    fn who_was_too_late_once_is_not_asked_again() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[7; 4096]).unwrap();
        let content = Patient::new(FileContent::new(file).unwrap(), Duration::ZERO);
        // A limit of nothing at all: whether the first read makes it is chance.
        let _ = content.read_at(0, &mut [0; 16]);
        content.is_stuck.store(true, Ordering::Relaxed);
        assert_eq!(
            content.read_at(0, &mut [0; 16]),
            Err(Errno(libc::ETIMEDOUT))
        );
    }
}

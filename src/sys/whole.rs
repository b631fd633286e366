//! Files read as a whole, of which nobody knows how long they are.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// Why a file is not read.
#[derive(Debug, thiserror::Error)]
pub enum WholeError {
    /// The kernel's word.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// It was not opened.
    #[error("it is a block device")]
    BlockDevice,
    /// It was read up to there.
    #[error("it is longer than {limit_bytes} bytes")]
    TooLong {
        /// What is read at most.
        limit_bytes: u64,
    },
}

/// Reads a file, a pipe or a terminal to its end, unless it begins with something else than what is wanted:
/// then only those first bytes.
///
/// # Errors
/// [`WholeError`].
pub fn read_whole(
    path: &Path,
    limit_bytes: u64,
    is_wanted: impl FnOnce(&[u8]) -> bool,
) -> Result<Vec<u8>, WholeError> {
    const FIRST_BYTES: u64 = 64;
    if std::fs::metadata(path)?.file_type().is_block_device() {
        return Err(WholeError::BlockDevice);
    }
    let mut file = File::open(path)?;
    let mut bytes = Vec::new();
    file.by_ref().take(FIRST_BYTES).read_to_end(&mut bytes)?;
    if !is_wanted(&bytes) {
        return Ok(bytes);
    }
    let left_bytes = limit_bytes.saturating_sub(bytes.len() as u64);
    file.take(left_bytes + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit_bytes {
        return Err(WholeError::TooLong { limit_bytes });
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_has_no_end_is_read_no_further_than_the_limit() {
        let zero = Path::new("/dev/zero");
        let endless = read_whole(zero, 1000, |_| true);
        assert!(matches!(
            endless,
            Err(WholeError::TooLong { limit_bytes: 1000 })
        ));
        assert_eq!(read_whole(zero, 1000, |_| false).unwrap(), [0; 64]);
        let file = tempfile::NamedTempFile::new().unwrap();
        for (length, limit_bytes, is_read) in [(0, 0, true), (100, 100, true), (100, 99, false)] {
            std::fs::write(file.path(), vec![7; length]).unwrap();
            let read = read_whole(file.path(), limit_bytes, |_| true);
            assert_eq!(
                read.is_ok_and(|bytes| bytes.len() == length),
                is_read,
                "{length}"
            );
        }
    }
}

//! A fact of hardware that may be missing, with the reason why.

use super::{SysfsError, read_text};
use std::path::{Path, PathBuf};

/// A fact, or why there is none. Never a zero in its place.
pub type Fact<T> = Result<T, Absent>;

/// Why a fact is not known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Absent {
    /// The kernel has no such file: an old kernel, or hardware without the feature.
    #[error("the kernel does not show {path}")]
    NotShown {
        /// The file.
        path: PathBuf,
    },
    /// The kernel itself says that it does not know.
    #[error("{path} says `{text}`: the kernel does not know")]
    Unknown {
        /// The file.
        path: PathBuf,
        /// Its word for it.
        text: String,
    },
    /// The configuration space ends after its first 64 bytes for everybody but root.
    #[error("{path} shows {len_bytes} bytes to this user: run as root to see the rest")]
    Closed {
        /// The file.
        path: PathBuf,
        /// What was shown.
        len_bytes: usize,
    },
    /// The configuration space holds no such capability, or a reserved value.
    #[error("{path} has no {what}")]
    Lacking {
        /// The file.
        path: PathBuf,
        /// What is not there.
        what: &'static str,
    },
    /// The two ends of one link say different things.
    #[error("the ends of one link disagree: {upper} and {lower}")]
    Disagree {
        /// The upper end's word.
        upper: String,
        /// The lower end's.
        lower: String,
    },
    /// Unreadable or garbled.
    #[error(transparent)]
    Unreadable(SysfsError),
}

impl From<SysfsError> for Absent {
    fn from(error: SysfsError) -> Self {
        match error {
            SysfsError::Read { ref path, .. } if error.is_absent() => {
                Self::NotShown { path: path.clone() }
            }
            error => Self::Unreadable(error),
        }
    }
}

/// Whether a fact is garbled or unreadable: a fault worth telling, unlike one that is simply not there.
#[must_use]
pub fn fault<T>(fact: &Fact<T>) -> Option<String> {
    match fact {
        Err(absent @ (Absent::Unreadable(_) | Absent::Disagree { .. })) => Some(absent.to_string()),
        _ => None,
    }
}

/// A number that sysfs writes with `0x`.
///
/// # Errors
/// [`Absent`].
pub(super) fn hex(path: &Path, most: u32) -> Fact<u32> {
    let text = read_text(path)?;
    let digits = text.strip_prefix("0x").unwrap_or_default();
    let plain = !digits.is_empty() && digits.chars().all(|c| c.is_ascii_hexdigit());
    let value = u32::from_str_radix(digits, 16).ok();
    match value.filter(|value| plain && *value <= most) {
        Some(value) => Ok(value),
        None => Err(SysfsError::garbled(path, &text, "a number such as 0x8086").into()),
    }
}

//! Sizes: `4k`, `1.5G`, `0x1000`, `25%`.

use super::Bytes;

/// A size as written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SizeSpec {
    /// So many bytes.
    Bytes(Bytes),
    /// A share of the device, in percent.
    Percent(f64),
}

/// Why a text is not a size.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a size: {why}")]
pub struct SizeError {
    /// The text.
    pub text: String,
    /// What is wrong and what is allowed.
    pub why: &'static str,
}

/// Reads a size.
///
/// # Errors
/// [`SizeError`].
pub fn parse_size(text: &str) -> Result<SizeSpec, SizeError> {
    Err(SizeError {
        text: text.to_owned(),
        why: "not yet",
    })
}

/// Reads a block size.
///
/// # Errors
/// [`SizeError`].
pub fn parse_block_size(text: &str) -> Result<Bytes, SizeError> {
    Err(SizeError {
        text: text.to_owned(),
        why: "not yet",
    })
}

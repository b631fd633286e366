//! Flags that verbs which measure have in common.

use super::args::names;
use crate::cli::progress::Mode;
use crate::report::Format;
use crate::session::guard::{Consent, UnknownSignature, parse_overwrite};
use clap::Args;
use std::path::PathBuf;

/// Where the result goes, and how progress is shown.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct ResultFlags {
    /// What stdout holds
    #[arg(long, value_parser = names(&Format::ALL, Format::name), default_value = Format::Text.name(), help_heading = "Result")]
    pub format: Format,
    /// Write the result to this file, not to stdout
    #[arg(short, long, value_name = "FILE", help_heading = "Result")]
    pub output: Option<PathBuf>,
    /// How to show progress on stderr: auto is a live line on a terminal and plain lines elsewhere
    #[arg(long, value_parser = names(&Mode::ALL, Mode::name), default_value = Mode::Auto.name(), help_heading = "Result")]
    pub progress: Mode,
}

/// What may be done to devices.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct SafetyFlags {
    /// Consent to write to this device, named by its serial number or path. Repeatable
    #[arg(long, value_name = "ID", help_heading = "Safety")]
    pub allow_write: Vec<String>,
    /// Consent to overwrite this kind of signature, as a refusal names it. Repeatable
    #[arg(long, value_name = "SIGNATURE", help_heading = "Safety")]
    pub overwrite: Vec<String>,
    /// Refuse where a warning would do, such as reads of never-written blocks
    #[arg(long, help_heading = "Safety")]
    pub strict: bool,
    /// Write the range first, so that reads meet real data. Needs --allow-write on a device
    #[arg(long, help_heading = "Safety")]
    pub prepare: bool,
}

impl SafetyFlags {
    /// What the user allowed.
    ///
    /// # Errors
    /// A signature that `--overwrite` does not know.
    pub fn consent(&self) -> Result<Consent, UnknownSignature> {
        let mut overwrite = Vec::new();
        for word in &self.overwrite {
            overwrite.extend(parse_overwrite(word)?);
        }
        Ok(Consent {
            allow_write: self.allow_write.clone(),
            overwrite,
        })
    }
}

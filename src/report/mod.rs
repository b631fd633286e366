//! Records as people and programs read them: one exporter a file, and nothing but records goes in.

mod csv;
mod directions;
pub mod figures;
mod json;
mod printable;
mod series;
mod steps;
mod text;

pub use printable::{html_escaped, printable};
pub use series::series_lines;
pub use steps::steps_table;

use crate::record::Record;

/// The form of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// Tables for a terminal.
    #[default]
    Text,
    /// The record itself.
    Json,
    /// One row for each step and direction.
    Csv,
}

impl Format {
    /// Every form, in the order of the help text.
    pub const ALL: [Self; 3] = [Self::Text, Self::Json, Self::Csv];

    /// The name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
            Self::Csv => "csv",
        }
    }
}

/// Why a text names no format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a format: text, json and csv are")]
pub struct FormatError(pub String);

impl std::str::FromStr for Format {
    type Err = FormatError;

    fn from_str(text: &str) -> Result<Self, FormatError> {
        Self::ALL
            .into_iter()
            .find(|format| format.name() == text)
            .ok_or_else(|| FormatError(text.to_owned()))
    }
}

/// What the place that will show a text can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Whether it understands ANSI colours.
    pub color: bool,
    /// Its width in columns.
    pub width: usize,
}

impl Style {
    /// For files and pipes: no colour, 80 columns.
    pub const PLAIN: Self = Self {
        color: false,
        width: 80,
    };
}

impl Default for Style {
    fn default() -> Self {
        Self::PLAIN
    }
}

/// The report of `record`; ends with a line break. Only [`Format::Text`] looks at `style`.
#[must_use]
pub fn render(record: &Record, format: Format, style: &Style) -> String {
    match format {
        Format::Text => text::render(record, style),
        Format::Json => json::render(record),
        Format::Csv => csv::render(record),
    }
}

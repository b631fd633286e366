//! Records as people and programs read them: one exporter a file, and nothing but records goes in.

mod comparison_csv;
mod conditions;
mod csv;
mod directions;
pub mod figures;
pub mod html;
mod json;
mod printable;
mod scale_csv;
mod series;
mod steps;
mod text;

pub use printable::{html_escaped, printable};
pub use series::series_lines;
pub use steps::steps_table;

use crate::record::{Comparison, Record};

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
    /// A page for a browser.
    Html,
}

impl Format {
    /// Every form, in the order of the help text.
    pub const ALL: [Self; 4] = [Self::Text, Self::Json, Self::Csv, Self::Html];

    /// The name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
            Self::Csv => "csv",
            Self::Html => "html",
        }
    }
}

/// Why a text names no format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a format: text, json, csv and html are")]
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

/// A criterion with what was measured: `read_iops>=1000k: missed, 912,000`.
#[must_use]
pub fn criterion_text(criterion: &crate::record::Criterion) -> String {
    text::criterion_text(criterion)
}

/// The text of a verb that has tables of its own, between how it ended and every warning of its record.
#[must_use]
pub fn render_verb(record: &Record, own: &str, style: &Style) -> String {
    text::verb::render(record, own, style)
}

/// The name of a step, marked where it did not finish.
#[must_use]
pub fn step_title(step: &crate::record::Step) -> String {
    text::step_title(step)
}

/// The report of `lanemark lanes` as text; ends with a line break.
#[must_use]
pub fn render_lanes(report: &crate::record::LanesReport, style: &Style) -> String {
    text::lanes::render(report, style)
}

/// The report of `record`; ends with a line break. Only [`Format::Text`] looks at `style`.
#[must_use]
pub fn render(record: &Record, format: Format, style: &Style) -> String {
    match format {
        Format::Text => text::render(record, style),
        Format::Json => json::render(record),
        Format::Csv => match &record.scale {
            Some(scale) => scale_csv::render(scale),
            None => csv::render(record),
        },
        Format::Html => html::render(std::slice::from_ref(record), &[]),
    }
}

/// The report of a comparison, like [`render`].
#[must_use]
pub fn render_comparison(comparison: &Comparison, format: Format, style: &Style) -> String {
    match format {
        Format::Text => text::render_comparison(comparison, style),
        Format::Json => json::render(comparison),
        Format::Csv => comparison_csv::render(comparison),
        Format::Html => html::render(&[], std::slice::from_ref(comparison)),
    }
}

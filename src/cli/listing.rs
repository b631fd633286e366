//! What the verbs that list things share: how they are shown, and tables that fit a terminal.

use crate::report::{Format, printable};
use comfy_table::{ContentArrangement, Table, presets};

/// How a list is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum ListFormat {
    /// A table.
    #[default]
    Text,
    /// One JSON document.
    Json,
}

impl From<ListFormat> for Format {
    fn from(format: ListFormat) -> Self {
        match format {
            ListFormat::Text => Self::Text,
            ListFormat::Json => Self::Json,
        }
    }
}

/// Version of the JSON layout of lists.
pub(super) const LIST_SCHEMA_VERSION: u32 = 1;

/// A table without frames. Its width is the terminal's on a terminal and its content's elsewhere.
pub(super) fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(header.iter().copied());
    table
}

/// Lines of an answer as they are shown: nothing of a device's name steers the terminal.
pub(super) fn lines(answer: &[String]) -> String {
    answer.iter().map(|line| printable(line) + "\n").collect()
}

/// The table's text without the blanks that pad its borders.
pub(super) fn text_of(table: &Table) -> String {
    table.lines().fold(String::new(), |text, line| {
        let line = line.strip_prefix(' ').unwrap_or(&line).trim_end();
        text + line + "\n"
    })
}

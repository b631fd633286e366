//! Paragraphs, labelled rows and tables that fit a width.

use super::super::Style;
use comfy_table::{Attribute, Cell, CellAlignment, ContentArrangement, Table, TableStyle};

/// How a line is meant; a colour where there are colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// Nothing special.
    Plain,
    /// The name of a step.
    Heading,
    /// Aside.
    Quiet,
    /// Something to do or to doubt.
    Caution,
    /// Something went wrong.
    Bad,
}

impl Tone {
    /// SGR parameters (ECMA-48), where the tone has any.
    const fn sgr(self) -> Option<&'static str> {
        match self {
            Self::Plain => None,
            Self::Heading => Some("1"),
            Self::Quiet => Some("2"),
            Self::Caution => Some("33"),
            Self::Bad => Some("1;31"),
        }
    }
}

/// A labelled row: `backend  uring: …`. An empty label continues the row above.
pub struct Row {
    /// What it is.
    pub label: &'static str,
    /// What it says.
    pub text: String,
    /// How it is meant.
    pub tone: Tone,
}

impl Row {
    /// A plain row.
    pub const fn new(label: &'static str, text: String) -> Self {
        Self {
            label,
            text,
            tone: Tone::Plain,
        }
    }

    /// A row with a tone.
    pub const fn toned(label: &'static str, text: String, tone: Tone) -> Self {
        Self { label, text, tone }
    }
}

/// Width of the labels of rows.
const LABEL: usize = 9;

/// Columns between two columns of a table.
const GUTTER: u16 = 2;

/// A table by columns, the first of them labels.
pub struct Columns {
    /// Title and cells of each column; all of one length.
    pub columns: Vec<(String, Vec<String>)>,
}

/// A report being written.
pub struct Page {
    out: String,
    style: Style,
}

impl Page {
    /// An empty page.
    pub const fn new(style: Style) -> Self {
        Self {
            out: String::new(),
            style,
        }
    }

    /// The text of the page.
    pub fn finish(self) -> String {
        self.out
    }

    /// An empty line, never two.
    pub fn gap(&mut self) {
        if !self.out.is_empty() && !self.out.ends_with("\n\n") {
            self.out.push('\n');
        }
    }

    /// A text that is laid out already.
    pub fn verbatim(&mut self, text: &str) {
        self.out.push_str(text);
    }

    /// A text, wrapped.
    pub fn paragraph(&mut self, text: &str, tone: Tone) {
        for line in wrapped(text, self.style.width) {
            self.line(&line, tone);
        }
    }

    /// Labelled rows, their texts wrapped beside the labels.
    pub fn rows(&mut self, rows: &[Row]) {
        let indent = LABEL + usize::from(GUTTER);
        let room = self.style.width.saturating_sub(indent);
        for row in rows {
            for (n, line) in wrapped(&row.text, room).iter().enumerate() {
                let label = if n == 0 { row.label } else { "" };
                let label = self.paint(&format!("{label:indent$}"), Tone::Quiet);
                let line = self.paint(line, row.tone);
                self.out.push_str(format!("{label}{line}").trim_end());
                self.out.push('\n');
            }
        }
    }

    /// A table: as many columns side by side as fit, the rest below under the same labels.
    pub fn table(&mut self, table: &Columns) {
        let Some((labels, columns)) = table.columns.split_first() else {
            return;
        };
        let room = self.style.width.saturating_sub(width_of(labels));
        let mut rest = columns;
        while !rest.is_empty() {
            let mut used = 0;
            let fitting = rest
                .iter()
                .take_while(|column| {
                    used += width_of(column) + usize::from(GUTTER);
                    used <= room
                })
                .count()
                .max(1);
            let (now, later) = rest.split_at(fitting);
            if rest.len() != columns.len() {
                self.gap();
            }
            self.block(labels, now);
            rest = later;
        }
    }

    fn block(&mut self, labels: &(String, Vec<String>), columns: &[(String, Vec<String>)]) {
        let mut table = bare(self.style.width);
        let all: Vec<_> = std::iter::once(labels).chain(columns).collect();
        let head = |title: &str| Cell::new(title).add_attribute(Attribute::Bold);
        table.set_header(all.iter().map(|(title, _)| head(title)));
        let says = |row: &usize| columns.iter().any(|(_, cells)| !cells[*row].is_empty());
        for row in (0..labels.1.len()).filter(says) {
            table.add_row(all.iter().map(|(_, cells)| cells[row].as_str()));
        }
        for (n, column) in table.column_iter_mut().enumerate() {
            column.set_padding((if n == 0 { 0 } else { GUTTER }, 0));
            if n > 0 {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        if self.style.color {
            table.enforce_styling();
        }
        for line in table.lines() {
            self.out.push_str(line.trim_end());
            self.out.push('\n');
        }
    }

    fn line(&mut self, text: &str, tone: Tone) {
        let text = self.paint(text.trim_end(), tone);
        self.out.push_str(&text);
        self.out.push('\n');
    }

    fn paint(&self, text: &str, tone: Tone) -> String {
        match tone.sgr() {
            Some(sgr) if self.style.color && !text.trim().is_empty() => {
                format!("\x1b[{sgr}m{text}\x1b[0m")
            }
            _ => text.to_owned(),
        }
    }
}

/// Display width of the widest cell or title.
fn width_of(column: &(String, Vec<String>)) -> usize {
    let mut table = Table::new();
    table.force_no_tty().set_header([&column.0]);
    table.add_rows(column.1.iter().map(|cell| [cell]));
    table
        .column_max_content_widths()
        .first()
        .copied()
        .unwrap_or(0)
        .into()
}

/// The lines of a text at most `width` columns wide; words that are longer are cut.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut table = bare(width.max(10));
    table.add_row([text]);
    for column in table.column_iter_mut() {
        column.set_padding((0, 0));
    }
    table
        .lines()
        .map(|line| line.trim_end().to_owned())
        .collect()
}

/// A table without borders.
fn bare(width: usize) -> Table {
    let mut table = Table::new();
    table
        .force_no_tty()
        .load_style(TableStyle::new())
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(u16::try_from(width).unwrap_or(u16::MAX));
    table
}

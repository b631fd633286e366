//! The report as one HTML file: no script, nothing fetched, light and dark, on paper and on a phone.
//!
//! Everything it says is taken from records. Cells of the big table carry the record's own number beside the
//! rounded text (`data-field`, `data-value`), so that the file can be held against the JSON.

mod chart;
mod compare;
mod conditions;
mod curves;
mod derived;
mod page;
mod path;
mod steady;
mod step;
mod step_charts;
mod table;
mod traits;
mod verdict;

use crate::record::{Comparison, Record};

/// The report of records side by side, and of comparisons; a whole HTML document.
#[must_use]
pub fn render(records: &[Record], comparisons: &[Comparison]) -> String {
    page::render(records, comparisons)
}

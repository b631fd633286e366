//! What stands around the tables of a verb: how it ended, what failed, and every doubt.

use super::super::Style;
use super::layout::Page;
use super::{details, state, whole};
use crate::record::Record;

/// The verb's own text between how it ended, where it did not finish, and all warnings. A table of figures alone would
/// hide what makes them doubtful.
pub fn render(record: &Record, own: &str, style: &Style) -> String {
    let mut page = Page::new(*style);
    state(&mut page, record.status, record.error.as_ref());
    page.verbatim(own);
    let doubts = whole::doubts_of_steps(record);
    if !doubts.is_empty() {
        page.gap();
        page.rows(&doubts);
    }
    if !record.warnings.is_empty() {
        page.gap();
        page.rows(&details::warnings(&record.warnings));
    }
    page.finish()
}

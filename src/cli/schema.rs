//! `lanemark schema`: the JSON Schema of records.

/// The schema, ready to print.
pub(super) fn text() -> String {
    format!("{:#}\n", crate::record::schema())
}

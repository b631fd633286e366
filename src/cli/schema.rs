//! `lanemark schema`: the JSON Schema of each document that lanemark writes.

use super::devices::DevicesList;
use crate::record::{comparison_schema, lanes_schema, schema, schema_of};

/// Which document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Document {
    /// Of run, suite run, peak, load and scale.
    #[default]
    Record,
    /// Of compare.
    Comparison,
    /// Of lanes.
    Lanes,
    /// Of devices.
    Devices,
}

/// The schema, ready to print.
pub(super) fn text(document: Document) -> String {
    let schema = match document {
        Document::Record => schema(),
        Document::Comparison => comparison_schema(),
        Document::Lanes => lanes_schema(),
        Document::Devices => schema_of::<DevicesList<'_>>(
            "A list of devices of lanemark",
            "The result of `lanemark devices`. What is not known is null.",
        ),
    };
    format!("{schema:#}\n")
}

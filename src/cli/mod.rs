//! The command line: its types, and one file per verb.

pub mod args;
mod job_flags;

pub use args::{Cli, Format, Progress, RunArgs, Verb};
pub use job_flags::{JobFlags, job_from_flags};

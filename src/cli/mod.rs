//! The command line: its types, one file per verb, and what goes out to the user.

pub mod args;
pub mod completions;
pub mod exit;
mod job_flags;
pub mod output;
pub mod progress;
mod progress_line;
pub mod run;
mod signals;
mod terminal;

pub use args::{Cli, Format, Progress, RunArgs, Verb};
pub use job_flags::{JobFlags, job_from_flags};

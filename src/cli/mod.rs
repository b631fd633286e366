//! The command line: what goes out to the user, and with which exit code.

pub mod completions;
pub mod exit;
pub mod output;
pub mod run;
mod signals;
mod terminal;

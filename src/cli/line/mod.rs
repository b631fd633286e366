//! The command line, read: verbs and flags as types, and the job that they make.

pub mod args;
pub(in crate::cli) mod endings;
pub(in crate::cli) mod flags;
pub(in crate::cli) mod help;
pub(in crate::cli) mod job_flags;
pub(in crate::cli) mod one_step;
pub(in crate::cli) mod operands;

//! Whether there is something to read, and writing it where there is not: what was never written is answered
//! without asking the medium, and looks like its speed.

pub mod prepare;
pub mod samples;
pub mod written;

pub(in crate::session) mod readiness;

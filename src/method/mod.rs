//! What is built from runs.

pub mod calibrate;
pub mod derive;
pub mod resume;
pub mod steady;
mod steady_watch;
pub mod suite;
pub mod suites;

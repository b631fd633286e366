//! What is built from runs.

pub mod calibrate;
pub mod compare;
pub mod derive;
pub mod lanes;
pub mod resume;
pub mod steady;
mod steady_watch;
pub mod suite;
pub mod suites;

//! What is built from runs.

mod burns;
pub mod calibrate;
pub mod compare;
mod curve;
pub mod derive;
pub mod expect;
pub mod lanes;
pub mod load;
mod outcome;
pub mod peak;
pub mod resume;
pub mod run_folder;
pub mod scale;
pub mod steady;
mod steady_watch;
pub mod suite;
pub mod suites;

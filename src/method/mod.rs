//! What is built from runs.

pub mod calibrate;
pub mod lanes;

//! What is built from runs.

pub mod calibrate;
pub mod compare;
pub mod expect;
pub mod lanes;
pub mod load;
pub mod peak;

//! lanemark.

pub mod proto;

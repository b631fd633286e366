//! lanemark.

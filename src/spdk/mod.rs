//! SPDK.

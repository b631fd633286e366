//! What a device's name means: which device that is, by all of its paths, what is known of it, and what drives it.

pub mod identity;

pub(in crate::session) mod auto;
pub(in crate::session) mod describe;
pub(in crate::session) mod named;
pub(in crate::session) mod nodes;
pub(in crate::session) mod overlap;

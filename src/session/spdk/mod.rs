//! What SPDK's devices need of a session beyond opening them: room for a step, consent, blocks outside of a
//! measurement.

pub(in crate::session) mod blocks;
pub(in crate::session) mod checks;
pub(in crate::session) mod step;
pub(in crate::session) mod writes;

//! From the description of an access pattern and a seed to the next I/O. Pure: no clock, no device.
//!
//! [`Generator`] says what comes next, [`Arrivals`] when (in an open loop), [`Filler`] what writes carry.

mod arrivals;
mod deck;
mod filler;
mod generator;
mod permutation;
mod positions;
mod random;
mod ranks;
mod spec;
mod stripes;

pub use arrivals::Arrivals;
pub use deck::share_error_bound_count;
pub use filler::Filler;
pub use generator::Generator;
pub use random::stream_seed;
pub use spec::{
    Access, Arrival, DataPattern, Distribution, OpMix, Quota, Region, SizeShare, StreamSpec, Zone,
};
pub use stripes::stripes;

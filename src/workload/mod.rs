//! From the description of an access pattern and a seed to the next I/O. Pure: no clock, no device.

mod spec;

pub use spec::{
    Access, Arrival, DataPattern, Distribution, OpMix, Quota, Region, SizeShare, StreamSpec, Zone,
};

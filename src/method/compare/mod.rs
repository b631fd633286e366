//! Two sides, or saved records, held against each other.

pub mod aggregate;
pub mod build;
mod claims;
pub mod comparable;
pub mod conclude;
pub mod confound;
pub mod criterion;
pub mod judge;
mod labelled;
mod level;
pub mod live;
pub mod metric;
pub mod runs;
pub mod saturation;
pub mod saved;
pub mod side;
pub mod stats;
pub mod stopping;
pub mod table;
pub mod ways;

/// Who is measured in a round, in order; `true` is B. A B B A and B A A B in turn: what drifts evenly cancels
/// within a round, and what drifts faster and faster cancels over two.
#[must_use]
pub const fn order(round_index: u32) -> [bool; 4] {
    if round_index.is_multiple_of(2) {
        [false, true, true, false]
    } else {
        [true, false, false, true]
    }
}

/// [`order`] in words, as records show it.
pub const ORDER: &str = "A B B A, B A A B";

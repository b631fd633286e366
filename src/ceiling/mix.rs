//! Reads and writes at once.

use super::{lesser, times};
use crate::record::RateBand;

/// The most that reads and writes together can move, given the most of either way by itself and the share of
/// bytes that are read: min(up / read share, down / write share) on links that carry both ways at once; the
/// lesser of both, weighted by time, on those that carry one at a time.
#[must_use]
pub fn total(read: RateBand, write: RateBand, read_ratio: f64, is_half_duplex: bool) -> RateBand {
    let write_ratio = 1.0 - read_ratio;
    if read_ratio >= 1.0 {
        return read;
    }
    if read_ratio <= 0.0 {
        return write;
    }
    if is_half_duplex {
        // Each byte takes its time: 1 / (r / up + w / down).
        let at = |up: f64, down: f64| 1.0 / (read_ratio / up + write_ratio / down);
        return RateBand {
            low_bytes_per_s: at(read.low_bytes_per_s, write.low_bytes_per_s),
            high_bytes_per_s: at(read.high_bytes_per_s, write.high_bytes_per_s),
        };
    }
    lesser(
        times(read, 1.0 / read_ratio),
        times(write, 1.0 / write_ratio),
    )
}

#[cfg(test)]
mod tests {
    use super::super::exact;
    use super::*;

    #[test]
    fn the_busier_way_binds() {
        let at = |ratio| total(exact(4.0), exact(3.0), ratio, false).high_bytes_per_s;
        assert!((at(0.5) - 6.0).abs() < 1e-12, "both ways at once");
        assert!((at(0.8) - 5.0).abs() < 1e-12, "reads bind: 4 / 0.8");
        assert!((at(0.25) - 4.0).abs() < 1e-12, "writes bind: 3 / 0.75");
        assert!((at(1.0) - 4.0).abs() < 1e-12 && (at(0.0) - 3.0).abs() < 1e-12);
    }

    #[test]
    fn one_way_at_a_time_never_beats_the_faster_way() {
        let at = |ratio| total(exact(4.0), exact(2.0), ratio, true).high_bytes_per_s;
        assert!((at(0.5) - 8.0 / 3.0).abs() < 1e-12);
        assert!((at(1.0) - 4.0).abs() < 1e-12 && (at(0.0) - 2.0).abs() < 1e-12);
    }
}

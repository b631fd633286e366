//! Whether more depth still brings more.

/// The most that rates on a plateau may lie below the best of them.
pub const TOLERATED_RATIO: f64 = 0.05;
/// Depth has to grow by this factor without effect.
const SPAN_FACTOR: u64 = 4;
/// So many points at least are on a plateau.
const LEAST_COUNT: usize = 3;

/// The rate at one depth; of all devices of the step together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CurvePoint {
    /// I/Os in flight.
    pub depth_count: u64,
    /// Bytes or I/Os a second, the same for all points.
    pub rate: f64,
}

/// What a curve over depth shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plateau {
    /// Too few depths were measured to tell.
    NotMeasured,
    /// The rate still changes with depth.
    Rising,
    /// Four times the depth changes nothing.
    Flat,
    /// A quarter of the greatest depth gives as much as any, and more depth gives less: buffers that no longer fit a
    /// cache, say.
    Falling,
}

/// Judges a curve, in any order of points.
#[must_use]
pub fn judge(points: &[CurvePoint]) -> Plateau {
    let deepest = points.iter().map(|point| point.depth_count).max();
    let Some(deepest) = deepest else {
        return Plateau::NotMeasured;
    };
    let deep = points
        .iter()
        .filter(|point| point.depth_count.saturating_mul(SPAN_FACTOR) >= deepest);
    let rates: Vec<f64> = deep.clone().map(|point| point.rate).collect();
    let shallowest = deep.map(|point| point.depth_count).min().unwrap_or(deepest);
    if rates.len() < LEAST_COUNT || shallowest.saturating_mul(SPAN_FACTOR) > deepest {
        return Plateau::NotMeasured;
    }
    let best = points.iter().map(|point| point.rate).fold(0.0, f64::max);
    let is_flat = rates
        .iter()
        .all(|rate| *rate >= best * (1.0 - TOLERATED_RATIO));
    let is_reached = |point: &CurvePoint| {
        point.depth_count.saturating_mul(SPAN_FACTOR) <= deepest
            && point.rate >= best * (1.0 - TOLERATED_RATIO)
    };
    if is_flat {
        Plateau::Flat
    } else if points.iter().any(is_reached) {
        Plateau::Falling
    } else {
        Plateau::Rising
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(points: &[(u64, f64)]) -> Plateau {
        let points: Vec<CurvePoint> = points
            .iter()
            .map(|&(depth_count, rate)| CurvePoint { depth_count, rate })
            .collect();
        judge(&points)
    }

    #[test]
    fn four_times_the_depth_must_change_nothing() {
        assert_eq!(
            of(&[(8, 50.0), (16, 96.0), (32, 99.0), (64, 100.0)]),
            Plateau::Flat
        );
        assert_eq!(
            of(&[(8, 50.0), (16, 94.0), (32, 99.0), (64, 100.0)]),
            Plateau::Rising
        );
        assert_eq!(of(&[(64, 100.0), (16, 100.0), (32, 100.0)]), Plateau::Flat);
        // Falling with depth is no plateau either, but nothing that more depth would lift.
        for falling in [
            [(8, 120.0), (16, 100.0), (32, 100.0), (64, 100.0)],
            [(8, 50.0), (16, 96.0), (32, 100.0), (64, 90.0)],
            [(8, 50.0), (16, 100.0), (32, 90.0), (64, 98.0)],
        ] {
            assert_eq!(of(&falling), Plateau::Falling, "{falling:?}");
        }
        assert_eq!(
            of(&[(8, 50.0), (16, 94.0), (32, 100.0), (64, 90.0)]),
            Plateau::Rising,
            "best above a quarter of the depth"
        );
    }

    #[test]
    fn few_or_close_depths_tell_nothing() {
        assert_eq!(of(&[]), Plateau::NotMeasured);
        assert_eq!(of(&[(32, 1.0)]), Plateau::NotMeasured);
        assert_eq!(of(&[(32, 1.0), (128, 1.0)]), Plateau::NotMeasured);
        assert_eq!(of(&[(32, 1.0), (48, 1.0), (64, 1.0)]), Plateau::NotMeasured);
    }
}

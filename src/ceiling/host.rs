//! Whether the host's reactors bind.
//!
//! A busy reactor proves nothing: a poll that spins in the kernel looks busy. So a known time is burnt for each
//! I/O. If the reactor is what binds, every I/O then takes that much longer and the rate falls just so; if it is
//! not, the time comes out of waiting and the rate stays.

/// Burns that should cost less than this share of the rate are too small to judge by.
const LEAST_FALL_RATIO: f64 = 0.1;
/// The fall must be the expected one within this share of it.
const PROOF_RATIO: f64 = 0.25;
/// A fall of less than this share of the expected one excludes the host.
const EXCLUSION_RATIO: f64 = 0.25;

/// The rate with a burn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BurnPoint {
    /// Burnt per I/O on its reactor.
    pub burn_ns: f64,
    /// The rate of all reactors with it.
    pub iops: f64,
}

/// What is known of the host's part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HostEvidence {
    /// Nothing was burnt.
    #[default]
    NotTried,
    /// The rate stayed: the host does not bind.
    Excluded,
    /// The rate fell as it must: the host binds.
    Proven,
    /// Something in between.
    Unclear,
}

/// Judges the rates with a burn against the one without.
#[must_use]
pub fn judge(base_iops: f64, reactors_count: u32, points: &[BurnPoint]) -> HostEvidence {
    if base_iops <= 0.0 {
        return HostEvidence::NotTried;
    }
    let period_ns = f64::from(reactors_count) * 1e9 / base_iops;
    let mut falls: Vec<(f64, f64)> = points
        .iter()
        .map(|point| {
            let expected = point.burn_ns / (period_ns + point.burn_ns);
            let found = 1.0 - point.iops / base_iops;
            (expected, found / expected)
        })
        .filter(|(expected, _)| *expected >= LEAST_FALL_RATIO)
        .collect();
    falls.sort_by(|one, other| one.0.total_cmp(&other.0));
    let Some((_, smallest)) = falls.first() else {
        return HostEvidence::NotTried;
    };
    let as_expected = |(_, part): &(f64, f64)| (part - 1.0).abs() <= PROOF_RATIO;
    if falls.len() >= 2 && falls.iter().all(as_expected) {
        HostEvidence::Proven
    } else if *smallest <= EXCLUSION_RATIO {
        // A larger burn may well make the host the limit; the smallest says whether it was.
        HostEvidence::Excluded
    } else {
        HostEvidence::Unclear
    }
}

/// What the reactors can drive at least: with a burn b and a period t each I/O cost the reactor at most t - b.
/// Exact where one of the burns made the host the limit. `None` without a usable point.
#[must_use]
pub fn reachable_iops(base_iops: f64, reactors_count: u32, points: &[BurnPoint]) -> Option<f64> {
    let reactors = f64::from(reactors_count);
    let all = points.iter().copied().chain([BurnPoint {
        burn_ns: 0.0,
        iops: base_iops,
    }]);
    let own_ns = all
        .filter(|point| point.iops > 0.0)
        .map(|point| reactors * 1e9 / point.iops - point.burn_ns)
        .filter(|own_ns| *own_ns > 0.0)
        .min_by(f64::total_cmp)?;
    Some(reactors * 1e9 / own_ns)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// A reactor that needs `own_ns` for an I/O in front of a device that does `device_iops`.
    fn machine(own_ns: f64, reactors: u32, device_iops: f64) -> (f64, Vec<BurnPoint>) {
        let with = |burn_ns: f64| (f64::from(reactors) * 1e9 / (own_ns + burn_ns)).min(device_iops);
        let base = with(0.0);
        let period_ns = f64::from(reactors) * 1e9 / base;
        let burns = [0.25, 0.5, 1.0].map(|part| part * period_ns);
        let points = burns.map(|burn_ns| BurnPoint {
            burn_ns,
            iops: with(burn_ns),
        });
        (base, points.to_vec())
    }

    #[test]
    fn a_reactor_that_binds_is_proven_and_one_that_waits_is_excluded() {
        for reactors in [1, 4] {
            let (base, points) = machine(500.0, reactors, 1e12);
            assert_eq!(judge(base, reactors, &points), HostEvidence::Proven);
            let (base, points) = machine(500.0, reactors, f64::from(reactors) * 1e6);
            assert_eq!(
                judge(base, reactors, &points),
                HostEvidence::Excluded,
                "half idle"
            );
            assert!(
                (reachable_iops(base, reactors, &points).unwrap() / (f64::from(reactors) * 2e6)
                    - 1.0)
                    .abs()
                    < 1e-9
            );
        }
    }

    /// Nearly saturated: the smallest burn bites, but not in full.
    #[test]
    fn what_lies_between_is_unclear() {
        let (base, points) = machine(900.0, 1, 1e6);
        assert_eq!(judge(base, 1, &points), HostEvidence::Unclear);
    }

    #[test]
    fn one_point_or_a_small_burn_proves_nothing() {
        let (base, points) = machine(500.0, 1, 1e12);
        assert_eq!(judge(base, 1, &points[..1]), HostEvidence::Unclear);
        let small = [BurnPoint {
            burn_ns: 10.0,
            iops: base,
        }];
        assert_eq!(judge(base, 1, &small), HostEvidence::NotTried);
        assert_eq!(judge(base, 1, &[]), HostEvidence::NotTried);
        assert_eq!(judge(0.0, 1, &points), HostEvidence::NotTried);
    }
}

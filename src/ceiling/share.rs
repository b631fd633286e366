//! A measurement in percent of its limits.

use crate::record::{Ceiling, CeilingKind, Ceilings, ShareOfCeiling};

/// The rate of one direction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measured {
    /// Data rate.
    pub bytes_per_s: f64,
    /// I/Os a second.
    pub iops: f64,
}

/// What goes over one link, in percent of what it carries of the workload.
#[derive(Debug, Clone, PartialEq)]
pub struct LinkLoad {
    /// The hop.
    pub at: String,
    /// Where its figures come from.
    pub source: String,
    /// In percent of the favourable end of its band.
    pub low_pct: f64,
    /// In percent of the unfavourable end.
    pub high_pct: f64,
    /// In percent of what packets with the shortest headers would let through: nothing honest is above 100.
    pub least_pct: f64,
    /// The devices behind it, by their places in the step.
    pub devices: Vec<usize>,
}

/// The measurement in percent of each limit that is known.
#[must_use]
pub fn shares(
    read: Option<Measured>,
    write: Option<Measured>,
    ceilings: Option<&Ceilings>,
) -> Vec<ShareOfCeiling> {
    let Some(ceilings) = ceilings else {
        return Vec::new();
    };
    let sides = [
        ("read", read, &ceilings.read),
        ("write", write, &ceilings.write),
    ];
    let mut all = Vec::new();
    for (direction, measured, ceilings) in sides {
        let (Some(measured), Some(ceilings)) = (measured, ceilings) else {
            continue;
        };
        for kind in CeilingKind::ALL {
            let share = ceilings.of(kind).and_then(|limit| share(measured, limit));
            if let Some((low_pct, high_pct)) = share {
                all.push(ShareOfCeiling {
                    direction: direction.to_owned(),
                    of: kind,
                    low_pct,
                    high_pct,
                });
            }
        }
    }
    all
}

/// In percent of the favourable and of the unfavourable end. A limit in bytes and in I/Os: the nearer one.
fn share(measured: Measured, limit: &Ceiling) -> Option<(f64, f64)> {
    let pct = |part: f64, whole: f64| {
        if whole > 0.0 {
            part / whole * 100.0
        } else {
            0.0
        }
    };
    let rate = limit.rate.map(|band| {
        (
            pct(measured.bytes_per_s, band.high_bytes_per_s),
            pct(measured.bytes_per_s, band.low_bytes_per_s),
        )
    });
    let io = limit.io.map(|band| {
        (
            pct(measured.iops, band.high_iops),
            pct(measured.iops, band.low_iops),
        )
    });
    match (rate, io) {
        (Some(rate), Some(io)) => Some((rate.0.max(io.0), rate.1.max(io.1))),
        (rate, io) => rate.or(io),
    }
}

/// The direction that is nearest to a limit of this kind.
#[must_use]
pub fn nearest(shares: &[ShareOfCeiling], kind: CeilingKind) -> Option<&ShareOfCeiling> {
    shares
        .iter()
        .filter(|share| share.of == kind)
        .max_by(|one, other| one.low_pct.total_cmp(&other.low_pct))
}

/// `87.2 %`, or `80.3 to 87.2 %` of a band.
#[must_use]
pub fn pct(low_pct: f64, high_pct: f64) -> String {
    let (low, high) = (format!("{low_pct:.1}"), format!("{high_pct:.1}"));
    if low == high {
        format!("{low} %")
    } else {
        format!("{low} to {high} %")
    }
}

//! Scales: where a value stands on an axis, and which values are marked on it.

use crate::report::figures as show;

/// How values are spread over an axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scale {
    /// Evenly, from 0 or from the smallest value.
    Linear {
        /// Value at the start.
        low: f64,
        /// Value at the end.
        high: f64,
    },
    /// By their logarithm. Both ends are above 0.
    Log {
        /// Value at the start.
        low: f64,
        /// Value at the end.
        high: f64,
        /// 2 where values are powers of two, 10 otherwise.
        base: f64,
    },
}

impl Scale {
    /// Evenly from 0 to a round value not below `high`.
    #[must_use]
    pub fn from_zero(high: f64) -> Self {
        let high = if high > 0.0 { round_up(high) } else { 1.0 };
        Self::Linear { low: 0.0, high }
    }

    /// Evenly over exactly this range, widened where it is empty.
    #[must_use]
    pub fn over(low: f64, high: f64) -> Self {
        if high > low {
            Self::Linear { low, high }
        } else {
            Self::Linear {
                low,
                high: low + 1.0,
            }
        }
    }

    /// By powers of `base` around this range; `None` where a value is not above 0.
    #[must_use]
    pub fn log(low: f64, high: f64, base: f64) -> Option<Self> {
        if !(low > 0.0 && high >= low && high.is_finite()) {
            return None;
        }
        let power = |value: f64| value.ln() / base.ln();
        // The tolerance keeps 1000 = 10^2.9999999999999996 from claiming a decade of its own.
        let low = base.powf((power(low) + 1e-9).floor());
        let mut high = base.powf((power(high) - 1e-9).ceil());
        if high <= low {
            high = low * base;
        }
        Some(Self::Log { low, high, base })
    }

    /// Place of a value: 0 at the start, 1 at the end; values outside stand on the edge.
    #[must_use]
    pub fn place(self, value: f64) -> f64 {
        let at = match self {
            Self::Linear { low, high } => (value - low) / (high - low),
            Self::Log { low, high, .. } => {
                (value.max(low).ln() - low.ln()) / (high.ln() - low.ln())
            }
        };
        at.clamp(0.0, 1.0)
    }

    /// Values to mark, at most about `most`.
    #[must_use]
    pub fn ticks(self, most: usize) -> Vec<f64> {
        match self {
            Self::Linear { low, high } => linear_ticks(low, high, most),
            Self::Log { low, high, base } => log_ticks(low, high, base, most),
        }
    }
}

/// The smallest of 1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10 times a power of ten that is not below `value`.
fn round_up(value: f64) -> f64 {
    let decade = 10_f64.powf(value.log10().floor());
    let steps = [1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0];
    let found = steps
        .iter()
        .map(|step| step * decade)
        .find(|round| *round >= value * (1.0 - 1e-12));
    found.unwrap_or(10.0 * decade)
}

fn linear_ticks(low: f64, high: f64, most: usize) -> Vec<f64> {
    let wanted = f64::from(u32::try_from(most.max(2)).unwrap_or(10));
    let raw = (high - low) / wanted;
    let decade = 10_f64.powf(raw.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0]
        .into_iter()
        .map(|step| step * decade)
        .find(|step| *step >= raw)
        .unwrap_or(10.0 * decade);
    let mut ticks = Vec::new();
    let mut number = (low / step).ceil();
    while number * step <= high + step * 1e-9 && ticks.len() <= 4 * most {
        ticks.push(number * step);
        number += 1.0;
    }
    ticks
}

fn log_ticks(low: f64, high: f64, base: f64, most: usize) -> Vec<f64> {
    let mut all = Vec::new();
    let mut value = low;
    while value <= high * (1.0 + 1e-9) && all.len() < 400 {
        all.push(value);
        value *= base;
    }
    if base == 10.0 && all.len() <= 3 {
        // One or two decades: 2 and 5 of each are marked as well.
        let within = [1.0, 2.0, 5.0];
        let fine = all.iter().flat_map(|value| within.map(|step| value * step));
        return fine.filter(|value| *value <= high * (1.0 + 1e-9)).collect();
    }
    let every = all.len().div_ceil(most.max(1)).max(1);
    all.into_iter().step_by(every).collect()
}

/// What an axis measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    /// I/Os a second.
    Iops,
    /// Bytes a second.
    Rate,
    /// Nanoseconds.
    Time,
    /// Bytes, in binary units.
    Size,
    /// Bytes, in decimal units: places on a device.
    Place,
    /// Anything counted.
    Count,
    /// Percent.
    Percent,
    /// Seconds.
    Seconds,
    /// 1 / (1 - p): 10 stands for 90 %, 100 for 99 %.
    Nines,
}

impl Quantity {
    /// A value as it stands beside a mark.
    #[must_use]
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    pub fn text(self, value: f64) -> String {
        match self {
            Self::Iops | Self::Count => show::compact(value),
            Self::Rate => format!("{} GB/s", show::significant(value / 1e9, 3)),
            Self::Time => show::time(value),
            Self::Size => crate::units::Bytes(value.max(0.0) as u64).to_string(),
            Self::Place => format!("{} GB", show::significant(value / 1e9, 3)),
            Self::Percent => format!("{} %", show::significant(value, 3)),
            Self::Seconds => show::significant(value, 4),
            Self::Nines => format!("{} %", show::significant(100.0 - 100.0 / value, 8)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_round_and_hold_every_value() {
        assert_eq!(
            Scale::from_zero(142_831.0),
            Scale::Linear {
                low: 0.0,
                high: 150_000.0
            }
        );
        assert_eq!(
            Scale::from_zero(0.0),
            Scale::Linear {
                low: 0.0,
                high: 1.0
            }
        );
        let Some(Scale::Log { low, high, .. }) = Scale::log(1000.0, 94_000.0, 10.0) else {
            panic!("a logarithmic scale");
        };
        assert!((low - 1000.0).abs() < 1e-6 && (high - 100_000.0).abs() < 1e-3);
        assert_eq!(Scale::log(0.0, 1.0, 10.0), None);
    }

    #[test]
    fn places_are_where_they_belong() {
        let scale = Scale::log(1.0, 1000.0, 10.0).expect("above 0");
        assert!((scale.place(10.0) - 1.0 / 3.0).abs() < 1e-9);
        assert!((Scale::from_zero(100.0).place(25.0) - 0.25).abs() < 1e-9);
        assert!(scale.place(1e9) <= 1.0 && scale.place(0.0) >= 0.0);
    }

    #[test]
    fn marks_are_few_and_round() {
        assert_eq!(
            Scale::from_zero(100.0).ticks(5),
            vec![0.0, 20.0, 40.0, 60.0, 80.0, 100.0]
        );
        let scale = Scale::log(1.0, 256.0, 2.0).expect("above 0");
        assert_eq!(scale.ticks(9).len(), 9);
        let wide = Scale::log(1.0, 1e30, 2.0).expect("above 0");
        assert!(wide.ticks(10).len() <= 10);
    }

    #[test]
    fn values_are_written_in_their_unit() {
        assert_eq!(Quantity::Nines.text(1000.0), "99.9 %");
        assert_eq!(Quantity::Nines.text(1.0), "0 %");
        assert_eq!(Quantity::Time.text(1.5e6), "1.5 ms");
        assert_eq!(Quantity::Size.text(4096.0), "4 KiB");
        assert_eq!(Quantity::Rate.text(1.684e9), "1.68 GB/s");
    }
}

//! `expect`: criteria that a result has to meet, `read_iops>=1000k,p99<=200us`.

use super::value::Why;
use crate::units::parse_duration;

/// A figure of a result that can be held against a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Figure {
    /// Which direction; `None`: all together, for latency the worst of them.
    pub direction: Option<Direction>,
    /// From when a latency counts; of latencies only.
    pub basis: LatencyBasis,
    /// What of it.
    pub kind: FigureKind,
}

/// From when a latency counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LatencyBasis {
    /// Not said: from the scheduled arrival where there is a rate, since a stall hides in the other; else from
    /// the submission.
    Unsaid,
    /// From the submission.
    Service,
    /// From the scheduled arrival.
    Scheduled,
}

/// A direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Trims.
    Trim,
    /// Commands that write zeros.
    WriteZeroes,
}

/// What can be held against a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FigureKind {
    /// I/Os a second.
    Iops,
    /// Bytes a second.
    BytesPerS,
    /// Mean latency.
    Mean,
    /// Median.
    P50,
    /// 90th percentile.
    P90,
    /// 99th percentile.
    P99,
    /// 99.9th percentile.
    P99_9,
    /// 99.99th percentile.
    P99_99,
    /// Largest latency.
    Max,
    /// I/Os that failed or were abandoned; of all directions only.
    Errors,
}

impl Direction {
    const ALL: [(&'static str, Self); 4] = [
        ("read_", Self::Read),
        ("write_", Self::Write),
        ("trim_", Self::Trim),
        ("writezeroes_", Self::WriteZeroes),
    ];
}

impl FigureKind {
    /// Every kind by its name.
    pub const ALL: [(&'static str, Self); 10] = [
        ("iops", Self::Iops),
        ("bytes_per_s", Self::BytesPerS),
        ("mean", Self::Mean),
        ("p50", Self::P50),
        ("p90", Self::P90),
        ("p99", Self::P99),
        ("p99_9", Self::P99_9),
        ("p99_99", Self::P99_99),
        ("max", Self::Max),
        ("errors", Self::Errors),
    ];

    /// The unit that records name.
    #[must_use]
    pub const fn unit(self) -> &'static str {
        match self {
            Self::Iops => "iops",
            Self::BytesPerS => "bytes_per_s",
            Self::Errors => "count",
            _ => "ns",
        }
    }
}

impl LatencyBasis {
    /// What stands before the figure.
    const ALL: [(&'static str, Self); 3] = [
        ("service_", Self::Service),
        ("scheduled_", Self::Scheduled),
        ("", Self::Unsaid),
    ];
}

impl Figure {
    /// `read_iops`, `p99`, `write_scheduled_p99`.
    #[must_use]
    pub fn name(self) -> String {
        let direction = Direction::ALL
            .iter()
            .find(|(_, d)| Some(*d) == self.direction);
        let kind = FigureKind::ALL.iter().find(|(_, kind)| *kind == self.kind);
        let basis = LatencyBasis::ALL.iter().find(|(_, b)| *b == self.basis);
        let direction = direction.map_or("", |(name, _)| name);
        let basis = basis.map_or("", |(name, _)| name);
        format!("{direction}{basis}{}", kind.map_or("", |(name, _)| name))
    }

    fn parse(text: &str) -> Option<Self> {
        let (direction, rest) = Direction::ALL
            .iter()
            .find_map(|(name, direction)| Some((Some(*direction), text.strip_prefix(name)?)))
            .unwrap_or((None, text));
        let (basis, rest) = LatencyBasis::ALL
            .iter()
            .find_map(|(name, basis)| Some((*basis, rest.strip_prefix(name)?)))?;
        let (_, kind) = FigureKind::ALL.iter().find(|(name, _)| *name == rest)?;
        let is_latency = kind.unit() == "ns";
        let fits = (*kind != FigureKind::Errors || direction.is_none())
            && (basis == LatencyBasis::Unsaid || is_latency);
        fits.then_some(Self {
            direction,
            basis,
            kind: *kind,
        })
    }
}

/// How a figure has to lie to its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    /// `>=`
    AtLeast,
    /// `<=`
    AtMost,
    /// `>`
    Above,
    /// `<`
    Below,
}

impl Relation {
    /// The two-letter ones first: `>` begins `>=` too.
    const ALL: [(&'static str, Self); 4] = [
        (">=", Self::AtLeast),
        ("<=", Self::AtMost),
        (">", Self::Above),
        ("<", Self::Below),
    ];

    /// Whether a value lies so.
    #[must_use]
    pub fn holds(self, value: f64, limit: f64) -> bool {
        match self {
            Self::AtLeast => value >= limit,
            Self::AtMost => value <= limit,
            Self::Above => value > limit,
            Self::Below => value < limit,
        }
    }
}

/// One criterion.
#[derive(Debug, Clone, PartialEq)]
pub struct Expectation {
    /// As it was written, without blanks.
    pub text: String,
    /// The figure.
    pub figure: Figure,
    /// How it has to lie.
    pub relation: Relation,
    /// To what, in the figure's unit.
    pub limit: f64,
}

/// Reads a list of criteria.
pub(super) fn parse(text: &str) -> Result<Vec<Expectation>, Why> {
    if text.trim().is_empty() {
        return Err(format!("it has no value; {}", allowed()));
    }
    text.split(',').map(one).collect()
}

fn allowed() -> String {
    let names: Vec<&str> = FigureKind::ALL.iter().map(|(name, _)| *name).collect();
    format!(
        "allowed: FIGURE>=LIMIT, <=, > or <, with commas between; figures are {}, all but errors also with read_, write_, trim_ or writezeroes_ in front, latencies then with service_ (from submission) or scheduled_ (from the arrival of a rate; what is meant there where neither is said)",
        names.join(", ")
    )
}

fn one(part: &str) -> Result<Expectation, Why> {
    let text: String = part.split_whitespace().collect();
    let found = Relation::ALL
        .iter()
        .find_map(|(sign, relation)| Some((text.split_once(sign)?, *relation)));
    let Some(((name, limit), relation)) = found else {
        return Err(format!(
            "`{}` holds nothing against a limit; {}",
            part.trim(),
            allowed()
        ));
    };
    let Some(figure) = Figure::parse(name) else {
        return Err(format!("`{name}` is no figure; {}", allowed()));
    };
    let limit = limit_of(figure.kind, limit)?;
    Ok(Expectation {
        text,
        figure,
        relation,
        limit,
    })
}

fn limit_of(kind: FigureKind, text: &str) -> Result<f64, Why> {
    if kind.unit() == "ns" {
        #[allow(clippy::cast_precision_loss)] // Latencies are far below 2^53 ns.
        return parse_duration(text)
            .map(|time| time.0 as f64)
            .map_err(|error| error.to_string());
    }
    let wrong = || {
        format!(
            "`{text}` is no number; allowed: a number, with k, M or G for 10^3, 10^6 or 10^9, such as 1000k"
        )
    };
    let (digits, factor) = match text.char_indices().last() {
        Some((at, 'k' | 'K')) => (&text[..at], 1e3),
        Some((at, 'm' | 'M')) => (&text[..at], 1e6),
        Some((at, 'g' | 'G')) => (&text[..at], 1e9),
        _ => (text, 1.0),
    };
    let plain = !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit() || c == '.');
    let number: f64 = digits.parse().ok().filter(|_| plain).ok_or_else(wrong)?;
    Ok(number * factor)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn limit(text: &str) -> (String, Relation, f64) {
        let all = parse(text).unwrap();
        assert_eq!(all.len(), 1, "{text}");
        (all[0].figure.name(), all[0].relation, all[0].limit)
    }

    #[test]
    fn criteria_are_read_with_their_units() {
        for (text, name, relation, wanted) in [
            ("read_iops>=1000k", "read_iops", Relation::AtLeast, 1e6),
            ("p99<=200us", "p99", Relation::AtMost, 200_000.0),
            (
                "write_p99_99 < 1.5ms",
                "write_p99_99",
                Relation::Below,
                1_500_000.0,
            ),
            ("bytes_per_s>2.5G", "bytes_per_s", Relation::Above, 2.5e9),
            ("errors<=0", "errors", Relation::AtMost, 0.0),
            (
                "write_scheduled_p99<=1s",
                "write_scheduled_p99",
                Relation::AtMost,
                1e9,
            ),
            ("service_max<=1s", "service_max", Relation::AtMost, 1e9),
            ("trim_mean<=1s", "trim_mean", Relation::AtMost, 1e9),
            (
                "writezeroes_iops>1k",
                "writezeroes_iops",
                Relation::Above,
                1e3,
            ),
        ] {
            assert_eq!(limit(text), (name.to_owned(), relation, wanted), "{text}");
        }
        let both = parse("read_iops>=1000k, p99<=200us").unwrap();
        assert_eq!((both.len(), both[1].text.as_str()), (2, "p99<=200us"));
    }

    #[test]
    fn what_is_no_criterion_is_refused_with_what_is_allowed() {
        for (text, part) in [
            ("", "it has no value"),
            ("fast", "`fast` holds nothing"),
            ("iops=5", "`iops=5` holds nothing"),
            ("read_speed>=5", "`read_speed` is no figure"),
            ("read_errors<=0", "`read_errors` is no figure"),
            ("scheduled_iops>=5", "`scheduled_iops` is no figure"),
            ("iops>=", "`` is no number"),
            ("iops>=-5", "`-5` is no number"),
            ("iops>=5x", "`5x` is no number"),
            ("iops>=1e6", "`1e6` is no number"),
            ("p99<=200", "it has no unit"),
            ("p99<=200us,", "holds nothing"),
        ] {
            let why = parse(text).unwrap_err();
            assert!(why.contains(part), "{text}: {why}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_panic(text in ".{0,40}") {
            let _ = parse(&text);
        }
    }
}

//! `--fail-if 'p99>+5%'`: how far a side may fall behind the baseline.

use super::metric::{Metric, names};
use crate::record::{ComparedMetric, Comparison};

/// Figures within this share of each other are the same.
const EQUAL_RATIO: f64 = 1e-9;

/// One criterion that must not come true.
#[derive(Debug, Clone, PartialEq)]
pub struct Criterion {
    text: String,
    direction: Option<&'static str>,
    metric: &'static str,
    /// A latency of which it is not said from when it counts: from the scheduled arrival where there is a rate.
    is_unsaid: bool,
    /// More than the limit fails; otherwise less.
    is_above: bool,
    limit_pct: f64,
}

/// Why a text is no criterion.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "--fail-if `{text}`: {why}; write METRIC>+N% or METRIC<-N%, such as p99>+5%, read.iops<-3%"
)]
pub struct CriterionError {
    /// As it was given.
    pub text: String,
    /// What is wrong.
    pub why: String,
}

impl std::str::FromStr for Criterion {
    type Err = CriterionError;

    fn from_str(text: &str) -> Result<Self, CriterionError> {
        let fail = |why: String| CriterionError {
            text: text.to_owned(),
            why,
        };
        let at = text
            .find(['>', '<'])
            .ok_or_else(|| fail("there is neither > nor <".to_owned()))?;
        let (direction, metric, is_service) = named(text[..at].trim()).map_err(fail)?;
        let limit = text[at + 1..].trim();
        let number = limit
            .strip_suffix('%')
            .ok_or_else(|| fail(format!("`{limit}` has no % at its end")))?;
        let number = number.trim();
        if !number.starts_with(['+', '-']) && number.parse() != Ok(0.0) {
            return Err(fail(format!(
                "`{limit}` has no sign: a change is meant, +5% or -5%"
            )));
        }
        let limit_pct = number
            .parse::<f64>()
            .ok()
            .filter(|limit| limit.is_finite() && *limit >= -100.0)
            .ok_or_else(|| fail(format!("`{limit}` is no percentage of -100 % or more")))?;
        Ok(Self {
            text: text.to_owned(),
            direction,
            metric,
            is_unsaid: !is_service && scheduled(metric).is_some(),
            is_above: text.as_bytes()[at] == b'>',
            limit_pct,
        })
    }
}

/// The same latency from the scheduled arrival on; `None` of other figures.
fn scheduled(metric: &str) -> Option<&'static str> {
    let is_it = |name: &&&str| name.strip_prefix("scheduled_") == Some(metric);
    names().iter().find(is_it).copied()
}

/// `p99`, `read.p99`, `p99.9`, `write.service_p99_9`: direction, metric, and whether it counts from the submission.
fn named(words: &str) -> Result<(Option<&'static str>, &'static str, bool), String> {
    let normal = words.replace("p99.9", "p99_9");
    let (direction, name) = match normal.split_once('.') {
        Some((direction, name)) => (Some(direction), name),
        None => (None, normal.as_str()),
    };
    let service = (name.strip_prefix("service_")).filter(|name| scheduled(name).is_some());
    let name = service.unwrap_or(name);
    let known = names().iter().find(|known| **known == name);
    let Some(metric) = known else {
        return Err(format!(
            "`{words}` is no metric; metrics are {}; service_ in front of a latency means it from submission where there is a rate",
            names().join(", ")
        ));
    };
    match direction {
        None => Ok((None, metric, service.is_some())),
        Some(direction) => match Metric::named(direction, metric) {
            Some(found) if !direction.is_empty() => {
                Ok((Some(found.direction()), metric, service.is_some()))
            }
            _ => Err(format!(
                "`{direction}` is no direction; read, write, trim, writezeroes and flush are"
            )),
        },
    }
}

impl Criterion {
    /// Whether it is about this one of a step's figures.
    fn applies(&self, metric: &ComparedMetric, all: &[ComparedMetric]) -> bool {
        let scheduled = scheduled(self.metric).filter(|scheduled| {
            let is_it = |one: &ComparedMetric| {
                one.direction == metric.direction && one.metric == *scheduled
            };
            self.is_unsaid && all.iter().any(is_it)
        });
        metric.metric == scheduled.unwrap_or(self.metric)
            && self
                .direction
                .is_none_or(|direction| metric.direction == direction)
    }

    /// Whether `b` lies further from `a` than the limit. At the limit it does not, whatever the last bits say.
    fn is_beyond(&self, a: f64, b: f64) -> bool {
        let beyond = b - a * (1.0 + self.limit_pct / 100.0);
        let beyond = if self.is_above { beyond } else { -beyond };
        beyond > EQUAL_RATIO * a.max(b)
    }

    /// Every figure of the comparison that makes it come true, in words; and one where it has nothing to
    /// look at, since a criterion that is never looked at would always be met. The means of the rounds are
    /// held against each other.
    #[must_use]
    pub fn misses(&self, comparison: &Comparison) -> Vec<String> {
        let mut misses = Vec::new();
        let mut looked_count = 0;
        for step in &comparison.steps {
            let all = &step.metrics;
            for metric in all.iter().filter(|metric| self.applies(metric, all)) {
                for against in &metric.against {
                    let side = against.side_index as usize;
                    let means = (metric.means[0], metric.means.get(side).copied().flatten());
                    let (Some(a), Some(b)) = means else { continue };
                    if a <= 0.0 {
                        continue;
                    }
                    looked_count += 1;
                    let change_pct = (b / a - 1.0) * 100.0;
                    if self.is_beyond(a, b) {
                        let label = &comparison.sides[side].label;
                        misses.push(format!(
                            "{}: {} {} of {label} changed by {change_pct:+.2} %",
                            self.text, step.name, metric.metric
                        ));
                    }
                }
            }
        }
        if looked_count == 0 {
            misses.push(format!(
                "{}: no step has this figure on both sides",
                self.text
            ));
        }
        misses
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn criteria_are_read() {
        let criterion: Criterion = "p99>+5%".parse().unwrap();
        assert_eq!((criterion.metric, criterion.direction), ("p99", None));
        assert!(criterion.is_above && (criterion.limit_pct - 5.0).abs() < 1e-12);
        let criterion: Criterion = " read.iops < -2.5 % ".parse().unwrap();
        assert_eq!(
            (criterion.metric, criterion.direction),
            ("iops", Some("read"))
        );
        assert!(!criterion.is_above && (criterion.limit_pct + 2.5).abs() < 1e-12);
        let criterion: Criterion = "write.p99.9>0%".parse().unwrap();
        assert_eq!(
            (criterion.metric, criterion.direction),
            ("p99_9", Some("write"))
        );
    }

    #[test]
    fn a_change_of_just_the_limit_is_not_beyond_it() {
        let is_beyond = |text: &str, a, b| text.parse::<Criterion>().unwrap().is_beyond(a, b);
        for (a, limit_pct, b) in [(1e5, 1, 1.01e5), (1e5, 10, 1.1e5), (3e5, 7, 3.21e5)] {
            assert!(!is_beyond(&format!("mean>+{limit_pct}%"), a, b));
            assert!(is_beyond(&format!("mean>+{limit_pct}%"), a, b * 1.000_001));
        }
        assert!(!is_beyond("iops<-10%", 1e5, 0.9e5));
        assert!(is_beyond("iops<-10%", 1e5, 0.899_999e5));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, word) in [
            ("p99", "neither"),
            ("p42>+5%", "no metric"),
            ("up.p99>+5%", "no direction"),
            ("p99>+5", "no %"),
            ("p99>5%", "no sign"),
            ("p99>+x%", "no percentage"),
            ("p99>+inf%", "no percentage"),
            ("p99>-101%", "no percentage"),
            (">+5%", "no metric"),
            (".p99>+5%", "no direction"),
        ] {
            let error = text.parse::<Criterion>().unwrap_err();
            assert!(error.why.contains(word), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC{0,20}|[a-z0-9_.]{0,8}[<>][+-]?[0-9.e]{0,6}%?") {
            let _ = text.parse::<Criterion>();
        }
    }
}

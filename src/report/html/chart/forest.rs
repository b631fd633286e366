//! Differences with their intervals, one row each, around a line where there is none.

use super::Scale;
use super::scale::Quantity;
use crate::report::html_escaped;
use std::fmt::Write as _;

/// One row, in percent of the baseline.
#[derive(Debug, Clone, PartialEq)]
pub struct Interval {
    /// What is compared.
    pub name: String,
    /// The difference.
    pub value_pct: f64,
    /// Lower end; absent where there is no interval.
    pub low_pct: Option<f64>,
    /// Upper end.
    pub high_pct: Option<f64>,
    /// What may be said of it.
    pub said: String,
    /// Which colour: 0 for no difference, 1 for better, 2 for worse.
    pub tone: u8,
}

const WIDTH: f64 = 640.0;
const LEFT: f64 = 210.0;
const RIGHT: f64 = 30.0;
const ROW: f64 = 22.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 44.0;

/// The drawing; `None` without a row.
#[must_use]
pub fn forest(title: &str, axis: &str, rows: &[Interval]) -> Option<String> {
    let values = || {
        rows.iter().flat_map(|row| {
            [Some(row.value_pct), row.low_pct, row.high_pct]
                .into_iter()
                .flatten()
                .filter(|value| value.is_finite())
        })
    };
    let reach = values().fold(0.0_f64, |most, value| most.max(value.abs()));
    if rows.is_empty() || !reach.is_finite() {
        return None;
    }
    let reach = if reach > 0.0 { reach * 1.1 } else { 1.0 };
    let reach = reach.min(most_shown(rows));
    let is_cut = values().any(|value| value.abs() > reach);
    let scale = Scale::over(-reach, reach);
    let left = |value: f64| LEFT + scale.place(value) * (WIDTH - LEFT - RIGHT);
    let mut bottom = TOP;
    rows.iter().for_each(|_| bottom += ROW);
    let height = bottom + BOTTOM;
    let mut out = format!(
        "<figure class=\"chart\"><figcaption>{}</figcaption><svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\"><title>{}</title><desc>{}</desc>",
        html_escaped(title),
        html_escaped(title),
        html_escaped(&described(rows))
    );
    for tick in scale.ticks(6) {
        let x = left(tick);
        let _ = write!(
            out,
            "<path class=\"grid\" d=\"M{x:.1} {TOP}V{bottom}\"/><text x=\"{x:.1}\" y=\"{:.1}\" class=\"mid\">{}</text>",
            bottom + 16.0,
            html_escaped(&Quantity::Percent.text(tick))
        );
    }
    let zero = left(0.0);
    let _ = write!(
        out,
        "<path class=\"axis\" d=\"M{zero:.1} {TOP}V{bottom}\"/><text x=\"{:.1}\" y=\"{:.1}\" class=\"mid name\">{}</text>",
        f64::midpoint(LEFT, WIDTH - RIGHT),
        height - 8.0,
        html_escaped(&match is_cut {
            true => format!("{axis}; the axis is cut, what lies beyond is marked with its figure"),
            false => axis.to_owned(),
        })
    );
    let mut y = TOP + ROW / 2.0;
    for row in rows {
        out += &drawn(row, y, &left);
        out += &beyond(row, y, reach);
        y += ROW;
    }
    out.push_str("</svg></figure>");
    Some(out)
}

/// So many times the middle of all rows may one reach: the axis of one that goes farther would flatten all others.
const REACH_RATIO: f64 = 8.0;

/// How far the axis goes at most.
fn most_shown(rows: &[Interval]) -> f64 {
    let far = |row: &Interval| {
        let ends = [Some(row.value_pct), row.low_pct, row.high_pct];
        let ends = ends.into_iter().flatten().filter(|end| end.is_finite());
        ends.fold(0.0_f64, |most, end| most.max(end.abs()))
    };
    let mut all: Vec<f64> = rows.iter().map(far).collect();
    all.sort_by(f64::total_cmp);
    match all.get(all.len() / 2) {
        Some(middle) if *middle > 0.0 => REACH_RATIO * middle,
        _ => f64::INFINITY,
    }
}

/// What of a row lies beyond the axis, at the edge that it leaves by.
fn beyond(row: &Interval, y: f64, reach: f64) -> String {
    let mut out = String::new();
    let ends = [Some(row.value_pct), row.low_pct, row.high_pct];
    let most = |sign: f64| {
        let ends = ends.iter().flatten().map(|end| end * sign);
        ends.fold(0.0_f64, f64::max)
    };
    if most(1.0) > reach {
        let figure = Quantity::Percent.text(most(1.0));
        let _ = write!(
            out,
            "<text class=\"end\" x=\"{:.1}\" y=\"{:.1}\">{figure} \u{25b8}</text>",
            WIDTH - 4.0,
            y - 4.0
        );
    }
    if most(-1.0) > reach {
        let figure = Quantity::Percent.text(-most(-1.0));
        let _ = write!(
            out,
            "<text x=\"{LEFT:.1}\" y=\"{:.1}\">\u{25c2} {figure}</text>",
            y - 4.0
        );
    }
    out
}

fn drawn(row: &Interval, y: f64, left: &impl Fn(f64) -> f64) -> String {
    let mut out = format!(
        "<text x=\"{:.1}\" y=\"{:.1}\" class=\"end\">{}</text>",
        LEFT - 8.0,
        y + 4.0,
        html_escaped(&row.name)
    );
    if let (Some(low), Some(high)) = (row.low_pct, row.high_pct) {
        let (from, to) = (left(low), left(high));
        let _ = write!(
            out,
            "<path class=\"tone{}\" d=\"M{from:.1} {y:.1}H{to:.1}M{from:.1} {:.1}v8M{to:.1} {:.1}v8\"/>",
            row.tone,
            y - 4.0,
            y - 4.0
        );
    }
    let _ = write!(
        out,
        "<circle class=\"tone{}\" cx=\"{:.1}\" cy=\"{y:.1}\" r=\"4\"><title>{}</title></circle>",
        row.tone,
        left(row.value_pct),
        html_escaped(&text(row))
    );
    out
}

fn text(row: &Interval) -> String {
    let mut text = format!("{}: {}", row.name, Quantity::Percent.text(row.value_pct));
    if let (Some(low), Some(high)) = (row.low_pct, row.high_pct) {
        let _ = write!(
            text,
            " ({} to {})",
            Quantity::Percent.text(low),
            Quantity::Percent.text(high)
        );
    }
    format!("{text}: {}", row.said)
}

fn described(rows: &[Interval]) -> String {
    rows.iter().map(text).collect::<Vec<_>>().join(". ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_row_that_goes_far_does_not_flatten_the_others() {
        let row = |value_pct: f64| Interval {
            name: "read p99".to_owned(),
            value_pct,
            low_pct: Some(value_pct - 1.0),
            high_pct: Some(value_pct + 1.0),
            said: String::new(),
            tone: 0,
        };
        let shown = |rows: &[Interval]| forest("Difference", "B", rows).expect("rows");
        let wild = shown(&[row(5.0), row(-4.0), row(40_000.0)]);
        assert!(
            wild.contains("40,001 % \u{25b8}") && wild.contains("the axis is cut"),
            "{wild}"
        );
        // 5 % stands well off the line of 0 %, at the middle of the axis.
        let zero = LEFT + (WIDTH - LEFT - RIGHT) / 2.0;
        let places = wild
            .split("cx=\"")
            .skip(1)
            .map(|rest| rest.split('"').next());
        let first: f64 = places
            .flatten()
            .next()
            .and_then(|x| x.parse().ok())
            .expect("a place");
        assert!(first > zero + 15.0, "{first}");
        let tame = shown(&[row(5.0), row(-4.0), row(9.0)]);
        assert!(!tame.contains('\u{25b8}') && !tame.contains("the axis is cut"));
    }

    #[test]
    fn rows_are_drawn_around_zero_and_described() {
        let row = Interval {
            name: "read <p99>".to_owned(),
            value_pct: 5.0,
            low_pct: Some(2.0),
            high_pct: Some(8.0),
            said: "A better".to_owned(),
            tone: 2,
        };
        let shown = forest("Difference", "B against A", &[row]).expect("a row");
        assert!(shown.contains("read &lt;p99&gt;: 5 % (2 % to 8 %): A better"));
        assert_eq!(forest("Difference", "", &[]), None);
    }
}

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
        html_escaped(axis)
    );
    let mut y = TOP + ROW / 2.0;
    for row in rows {
        out += &drawn(row, y, &left);
        y += ROW;
    }
    out.push_str("</svg></figure>");
    Some(out)
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

//! Bars in groups: sides beside each other, with the rounds they are the mean of as dots.

use super::{Quantity, Scale};
use crate::report::html_escaped;
use std::fmt::Write as _;

/// One bar.
#[derive(Debug, Clone, PartialEq)]
pub struct Bar {
    /// Place among the sides, for the colour.
    pub side: usize,
    /// Its height; absent without a sample.
    pub value: Option<f64>,
    /// Lower and upper end of its interval; absent where there is none.
    pub interval: Option<(f64, f64)>,
    /// The single rounds.
    pub rounds: Vec<f64>,
}

/// Bars that stand together.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// What they measure.
    pub name: String,
    /// The bars.
    pub bars: Vec<Bar>,
}

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 92.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 34.0;

/// The drawing, with a legend of `sides`; `None` without a bar.
#[must_use]
pub fn bars(title: &str, quantity: Quantity, sides: &[String], groups: &[Group]) -> Option<String> {
    let all = || groups.iter().flat_map(|group| &group.bars);
    let tops = all().flat_map(|bar| {
        let high = bar.interval.map(|(_, high)| high);
        bar.value
            .into_iter()
            .chain(high)
            .chain(bar.rounds.iter().copied())
    });
    let most = tops.filter(|top| top.is_finite()).fold(0.0, f64::max);
    if all().all(|bar| bar.value.is_none()) {
        return None;
    }
    let scale = Scale::from_zero(most);
    let floor = HEIGHT - BOTTOM;
    let top = |value: f64| floor - scale.place(value) * (floor - TOP);
    let mut out = format!(
        "<figure class=\"chart\"><figcaption>{}</figcaption><svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\"><title>{}</title><desc>{}</desc>",
        html_escaped(title),
        html_escaped(title),
        html_escaped(&described(quantity, sides, groups))
    );
    for tick in scale.ticks(6) {
        let y = top(tick);
        let _ = write!(
            out,
            "<path class=\"grid\" d=\"M{LEFT} {y:.1}H{}\"/><text x=\"{}\" y=\"{:.1}\" class=\"end\">{}</text>",
            WIDTH - RIGHT,
            LEFT - 6.0,
            y + 4.0,
            html_escaped(&quantity.text(tick))
        );
    }
    let room = (WIDTH - LEFT - RIGHT) / count(groups.len());
    let mut left = LEFT;
    for group in groups {
        out += &drawn(group, left, room, floor, &top);
        left += room;
    }
    out.push_str("</svg><ul class=\"legend\">");
    for (number, side) in sides.iter().enumerate() {
        let _ = write!(
            out,
            "<li><svg viewBox=\"0 0 28 10\" aria-hidden=\"true\"><rect class=\"b{number}\" width=\"28\" height=\"10\"/></svg>{}</li>",
            html_escaped(side)
        );
    }
    out.push_str("</ul></figure>");
    Some(out)
}

fn count(number: usize) -> f64 {
    f64::from(u32::try_from(number.max(1)).unwrap_or(u32::MAX))
}

fn drawn(group: &Group, left: f64, room: f64, floor: f64, top: &impl Fn(f64) -> f64) -> String {
    let gap = room * 0.15;
    let width = (room - 2.0 * gap) / count(group.bars.len());
    let mut out = format!(
        "<text x=\"{:.1}\" y=\"{:.1}\" class=\"mid\">{}</text>",
        left + room / 2.0,
        floor + 18.0,
        html_escaped(&group.name)
    );
    let mut x = left + gap;
    for bar in &group.bars {
        if let Some(value) = bar.value.filter(|value| value.is_finite()) {
            let y = top(value);
            let _ = write!(
                out,
                "<rect class=\"b{}\" x=\"{:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{:.1}\"/>",
                bar.side,
                x + width * 0.05,
                width * 0.9,
                (floor - y).max(0.5)
            );
        }
        let middle = x + width / 2.0;
        if let Some((low, high)) = bar.interval {
            let _ = write!(
                out,
                "<path class=\"whisker\" d=\"M{middle:.1} {:.1}V{:.1}\"/>",
                top(low),
                top(high)
            );
        }
        for round in &bar.rounds {
            let _ = write!(
                out,
                "<circle class=\"round\" cx=\"{middle:.1}\" cy=\"{:.1}\" r=\"2\"/>",
                top(*round)
            );
        }
        x += width;
    }
    out
}

fn described(quantity: Quantity, sides: &[String], groups: &[Group]) -> String {
    let mut text = String::new();
    for group in groups {
        let bars = group.bars.iter().map(|bar| {
            let side = sides.get(bar.side).map_or("", String::as_str);
            let value = bar.value.map(|value| quantity.text(value));
            format!("{side} {}", value.unwrap_or_else(|| "n/a".to_owned()))
        });
        let _ = write!(
            text,
            "{}: {}. ",
            group.name,
            bars.collect::<Vec<_>>().join(", ")
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_side_without_a_sample_has_no_bar() {
        let bar = |side, value| Bar {
            side,
            value,
            interval: None,
            rounds: vec![],
        };
        let group = Group {
            name: "randread".to_owned(),
            bars: vec![bar(0, Some(10.0)), bar(1, None)],
        };
        let sides = ["A".to_owned(), "B".to_owned()];
        let shown = bars("IOPS", Quantity::Iops, &sides, &[group]).expect("a bar");
        assert!(shown.contains("B n/a") && shown.matches("class=\"b1\"").count() == 1);
        let none = Group {
            name: String::new(),
            bars: vec![bar(0, None)],
        };
        assert_eq!(bars("IOPS", Quantity::Iops, &sides, &[none]), None);
    }
}

//! The drawing itself.

use super::{Axis, Chart, Level, Scale, Series};
use crate::report::html_escaped;
use std::fmt::Write as _;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 300.0;
/// Room for the marks' texts and the axes' names.
const LEFT: f64 = 92.0;
const RIGHT: f64 = 30.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 46.0;
const X_TICKS: usize = 8;
const Y_TICKS: usize = 6;

struct Frame {
    x: Scale,
    y: Scale,
}

impl Frame {
    fn left(&self, x: f64) -> f64 {
        LEFT + self.x.place(x) * (WIDTH - LEFT - RIGHT)
    }

    fn top(&self, y: f64) -> f64 {
        HEIGHT - BOTTOM - self.y.place(y) * (HEIGHT - TOP - BOTTOM)
    }
}

/// The `<svg>` element. The chart has at least one point, and every point can stand on its axes.
pub fn drawing(chart: &Chart) -> String {
    let frame = frame(chart);
    let mut out = format!(
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" preserveAspectRatio=\"xMidYMid meet\"><title>{}</title><desc>{}</desc>",
        html_escaped(&chart.title),
        html_escaped(&description(chart))
    );
    shade(&mut out, chart, &frame);
    grid(&mut out, chart, &frame);
    levels(&mut out, chart, &frame);
    for (number, series) in chart.series.iter().enumerate() {
        line(&mut out, chart, &frame, number, series);
    }
    out.push_str("</svg>");
    out
}

/// What the lines are; nothing where there is one that the heading already names.
pub fn legend(chart: &Chart) -> String {
    let mut items = String::new();
    for (number, series) in chart.series.iter().enumerate() {
        push(
            &mut items,
            &format!(
                "<li><svg viewBox=\"0 0 28 10\" aria-hidden=\"true\"><path class=\"s{number}\" d=\"M0 5H28\"/></svg>{}</li>",
                html_escaped(&series.name)
            ),
        );
    }
    format!("<ul class=\"legend\">{items}</ul>")
}

fn push(out: &mut String, text: &str) {
    write!(out, "{text}").expect("writing to a String cannot fail");
}

fn frame(chart: &Chart) -> Frame {
    let points = || chart.series.iter().flat_map(|series| &series.points);
    let levels = chart.levels.iter().map(|level| level.y);
    let window = chart
        .window
        .iter()
        .flat_map(|window| [window.from, window.to]);
    let across = points().map(|(x, _)| *x).chain(window);
    Frame {
        x: scale(&chart.x, across, false),
        y: scale(
            &chart.y,
            points()
                .map(|(_, y)| *y)
                .chain(levels.filter(|y| y.is_finite())),
            true,
        ),
    }
}

fn scale(axis: &Axis, values: impl Iterator<Item = f64>, from_zero: bool) -> Scale {
    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
    for value in values {
        low = low.min(value);
        high = high.max(value);
    }
    let log = axis.log_base.and_then(|base| Scale::log(low, high, base));
    log.unwrap_or_else(|| {
        if from_zero && low >= 0.0 {
            Scale::from_zero(high)
        } else {
            Scale::over(low, high)
        }
    })
}

/// What a screen reader says: the axes and the ends of every line.
fn description(chart: &Chart) -> String {
    let mut text = format!("{} against {}.", chart.y.name, chart.x.name);
    for series in &chart.series {
        if let (Some(first), Some(last)) = (series.points.first(), series.points.last()) {
            let point = |(x, y): &(f64, f64)| {
                format!(
                    "{} at {}",
                    chart.y.quantity.text(*y),
                    chart.x.quantity.text(*x)
                )
            };
            let _ = write!(
                text,
                " {}: from {} to {}.",
                series.name,
                point(first),
                point(last)
            );
        }
    }
    text
}

fn grid(out: &mut String, chart: &Chart, frame: &Frame) {
    let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
    for tick in frame.y.ticks(Y_TICKS) {
        let y = frame.top(tick);
        let text = html_escaped(&chart.y.quantity.text(tick));
        push(
            out,
            &format!(
                "<path class=\"grid\" d=\"M{LEFT} {y:.1}H{right}\"/><text x=\"{:.1}\" y=\"{:.1}\" class=\"end\">{text}</text>",
                LEFT - 6.0,
                y + 4.0
            ),
        );
    }
    for tick in x_ticks(chart, frame) {
        let x = frame.left(tick);
        let text = html_escaped(&chart.x.quantity.text(tick));
        push(
            out,
            &format!(
                "<path class=\"grid\" d=\"M{x:.1} {TOP}V{bottom}\"/><text x=\"{x:.1}\" y=\"{:.1}\" class=\"mid\">{text}</text>",
                bottom + 16.0
            ),
        );
    }
    push(
        out,
        &format!(
            "<path class=\"axis\" d=\"M{LEFT} {TOP}V{bottom}H{right}\"/><text x=\"{:.1}\" y=\"{:.1}\" class=\"mid name\">{}</text>",
            f64::midpoint(LEFT, right),
            HEIGHT - 8.0,
            html_escaped(&chart.x.name)
        ),
    );
}

/// Marks across: the measured points themselves where they are few, round values otherwise.
#[allow(clippy::cast_precision_loss)]
fn x_ticks(chart: &Chart, frame: &Frame) -> Vec<f64> {
    let mut own: Vec<f64> = chart
        .series
        .iter()
        .filter(|series| series.marked)
        .flat_map(|series| series.points.iter().map(|(x, _)| *x))
        .collect();
    own.sort_by(f64::total_cmp);
    own.dedup();
    if own.is_empty() {
        return frame.x.ticks(X_TICKS);
    }
    // Texts must not run into each other: each has room for its characters, in the larger letters of a phone.
    let width = |value: f64| {
        let count = chart.x.quantity.text(value).chars().count();
        count as f64 * 10.0 / (WIDTH - LEFT - RIGHT)
    };
    let mut kept: Vec<f64> = Vec::new();
    for value in own {
        let is_clear = kept.last().is_none_or(|last| {
            let apart = frame.x.place(value) - frame.x.place(*last);
            apart > f64::midpoint(width(value), width(*last)) + 0.02
        });
        if is_clear {
            kept.push(value);
        }
    }
    kept
}

/// Behind everything else.
fn shade(out: &mut String, chart: &Chart, frame: &Frame) {
    let Some(window) = &chart.window else {
        return;
    };
    let (left, right) = (frame.left(window.from), frame.left(window.to));
    push(
        out,
        &format!(
            "<rect class=\"window\" x=\"{left:.1}\" y=\"{TOP}\" width=\"{:.1}\" height=\"{:.1}\"/><text x=\"{:.1}\" y=\"{:.1}\" class=\"mid name\">{}</text>",
            (right - left).max(1.0),
            HEIGHT - TOP - BOTTOM,
            f64::midpoint(left, right),
            HEIGHT - BOTTOM - 6.0,
            html_escaped(&window.name)
        ),
    );
}

fn levels(out: &mut String, chart: &Chart, frame: &Frame) {
    for Level { y, name } in &chart.levels {
        if y.is_finite() {
            let top = frame.top(*y);
            push(
                out,
                &format!(
                    "<path class=\"level\" d=\"M{LEFT} {top:.1}H{}\"/><text x=\"{:.1}\" y=\"{:.1}\" class=\"end\">{}: {}</text>",
                    WIDTH - RIGHT,
                    WIDTH - RIGHT - 4.0,
                    top - 4.0,
                    html_escaped(name),
                    html_escaped(&chart.y.quantity.text(*y))
                ),
            );
        }
    }
}

fn line(out: &mut String, chart: &Chart, frame: &Frame, number: usize, series: &Series) {
    let mut path = String::new();
    for (index, (x, y)) in series.points.iter().enumerate() {
        let word = if index == 0 { 'M' } else { 'L' };
        let _ = write!(path, "{word}{:.1} {:.1}", frame.left(*x), frame.top(*y));
    }
    push(out, &format!("<path class=\"s{number}\" d=\"{path}\"/>"));
    if !series.marked && series.points.len() > 1 {
        return;
    }
    for (x, y) in &series.points {
        let said = format!(
            "{}: {} at {}",
            series.name,
            chart.y.quantity.text(*y),
            chart.x.quantity.text(*x)
        );
        push(
            out,
            &format!(
                "<circle class=\"s{number}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"3.5\"><title>{}</title></circle>",
                frame.left(*x),
                frame.top(*y),
                html_escaped(&said)
            ),
        );
    }
}

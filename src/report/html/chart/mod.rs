//! Line charts as inline SVG: no script, readable in light, dark and print, described for screen readers.

mod bars;
mod forest;
mod scale;
mod svg;

pub use bars::{Bar, Group, bars};
pub use forest::{Interval, forest};
pub use scale::{Quantity, Scale};

use crate::report::html_escaped;

/// One line of a chart.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// What it is, as the legend says it.
    pub name: String,
    /// Points in order of `x`; others than finite ones are left out.
    pub points: Vec<(f64, f64)>,
    /// Whether each point is marked: for measured points that a line merely joins.
    pub marked: bool,
}

/// A level of `y` that the lines are held against, such as a ceiling.
#[derive(Debug, Clone, PartialEq)]
pub struct Level {
    /// Where.
    pub y: f64,
    /// What it is.
    pub name: String,
}

/// A stretch of `x` that the eye is led to, such as the window that was judged.
#[derive(Debug, Clone, PartialEq)]
pub struct Window {
    /// Where it begins.
    pub from: f64,
    /// Where it ends.
    pub to: f64,
    /// What it is.
    pub name: String,
}

/// One axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// What it measures, in words.
    pub name: String,
    /// In what unit.
    pub quantity: Quantity,
    /// Whether values are spread by their logarithm, and to what base.
    pub log_base: Option<f64>,
}

impl Axis {
    /// An axis with even steps.
    #[must_use]
    pub fn linear(name: &str, quantity: Quantity) -> Self {
        Self {
            name: name.to_owned(),
            quantity,
            log_base: None,
        }
    }

    /// An axis of powers.
    #[must_use]
    pub fn log(name: &str, quantity: Quantity, base: f64) -> Self {
        Self {
            name: name.to_owned(),
            quantity,
            log_base: Some(base),
        }
    }
}

/// A chart.
#[derive(Debug, Clone, PartialEq)]
pub struct Chart {
    /// Its heading.
    pub title: String,
    /// Across.
    pub x: Axis,
    /// Up.
    pub y: Axis,
    /// The lines, at most [`SERIES_MOST`]; more are left out and counted in the heading.
    pub series: Vec<Series>,
    /// What they are held against.
    pub levels: Vec<Level>,
    /// What is shaded behind them.
    pub window: Option<Window>,
}

/// Lines that can still be told apart.
pub const SERIES_MOST: usize = 8;

/// Points of one line that a screen can show.
const POINTS_MOST: usize = 240;

impl Chart {
    /// The chart as a `<figure>`; `None` where there is no point to draw.
    #[must_use]
    pub fn render(&self) -> Option<String> {
        let mut chart = self.clone();
        for series in &mut chart.series {
            series
                .points
                .retain(|(x, y)| x.is_finite() && y.is_finite());
            if chart.x.log_base.is_some() {
                series.points.retain(|(x, _)| *x > 0.0);
            }
            if chart.y.log_base.is_some() {
                series.points.retain(|(_, y)| *y > 0.0);
            }
            series.points = thinned(std::mem::take(&mut series.points));
        }
        chart.series.retain(|series| !series.points.is_empty());
        let left_out = chart.series.len().saturating_sub(SERIES_MOST);
        chart.series.truncate(SERIES_MOST);
        if chart.series.is_empty() {
            return None;
        }
        let mut heading = html_escaped(&chart.title);
        if left_out > 0 {
            heading += &format!(" ({left_out} more lines are in the table)");
        }
        Some(format!(
            "<figure class=\"chart\"><figcaption>{heading}</figcaption>{}{}</figure>",
            svg::drawing(&chart),
            svg::legend(&chart)
        ))
    }
}

/// At most [`POINTS_MOST`] points: of each group of neighbours the highest stays, so that no spike is lost.
fn thinned(points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    let every = points.len().div_ceil(POINTS_MOST).max(1);
    if every == 1 {
        return points;
    }
    let highest = |group: &[(f64, f64)]| {
        let mut best = group[0];
        for point in group {
            if point.1 > best.1 {
                best = *point;
            }
        }
        best
    };
    points.chunks(every).map(highest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(points: Vec<(f64, f64)>) -> Chart {
        Chart {
            title: "IOPS <over> depth".to_owned(),
            x: Axis::log("depth", Quantity::Count, 2.0),
            y: Axis::linear("IOPS", Quantity::Iops),
            series: vec![Series {
                name: "a & b".to_owned(),
                points,
                marked: true,
            }],
            levels: vec![Level {
                y: 50.0,
                name: "link".to_owned(),
            }],
            window: None,
        }
    }

    #[test]
    fn a_chart_without_a_point_is_no_chart() {
        assert_eq!(chart(vec![]).render(), None);
        assert_eq!(chart(vec![(0.0, 1.0)]).render(), None, "0 has no logarithm");
        assert_eq!(chart(vec![(1.0, f64::NAN)]).render(), None);
    }

    #[test]
    fn texts_are_escaped_and_the_drawing_is_described() {
        let shown = chart(vec![(1.0, 10.0), (2.0, 20.0)])
            .render()
            .expect("points");
        assert!(shown.contains("IOPS &lt;over&gt; depth") && shown.contains("a &amp; b"));
        assert!(!shown.contains("<over>") && shown.contains("role=\"img\""));
        assert!(shown.contains("<title>") && shown.contains("<desc>"));
    }

    #[test]
    fn thinning_keeps_the_spikes() {
        let points: Vec<(f64, f64)> = (0..10_000)
            .map(|i| (f64::from(i), if i == 7_777 { 9.0 } else { 1.0 }))
            .collect();
        let thin = thinned(points);
        assert!(thin.len() <= POINTS_MOST && thin.contains(&(7_777.0, 9.0)));
    }

    #[test]
    fn lines_that_cannot_be_told_apart_are_left_out_and_counted() {
        let mut many = chart(vec![(1.0, 1.0)]);
        many.series = vec![many.series[0].clone(); 11];
        let shown = many.render().expect("points");
        assert!(shown.contains("3 more lines"));
    }
}
